//! Terms, each once: what proofs speak of.

use std::sync::Arc;

use egg::{Id, Language};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::egraph::language::ENode;
use crate::egraph::space::Space;
use crate::ir::{AttrValue, OpId, Registry, TensorType, TypeError};
use crate::rules::term::Builder;

/// A term of one [`Bank`]. Operands have smaller numbers than what is made of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(pub(super) u32);

impl TermId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a term is, its operands aside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Head {
    /// Program input by number.
    Input(u32),
    Op(OpId, Vec<AttrValue>),
    /// A cotangent that a VJP has still to conclude: `vjp:op:operand`. Operands, the primal and the incoming cotangent are its
    /// operands.
    Cotangent(OpId, u32, Vec<AttrValue>),
}

/// The number of a [`Head`].
pub(super) type HeadId = u32;

/// Operands of a term.
pub type Operands = SmallVec<[TermId; 3]>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Term {
    pub head: HeadId,
    pub operands: Operands,
}

/// All terms of an explanation. Equal terms have one number, so that comparing and keeping them costs the same whatever their size.
#[derive(Clone, Debug)]
pub struct Bank {
    registry: Arc<Registry>,
    terms: Vec<Term>,
    types: Vec<Arc<TensorType>>,
    // Looked up only, never iterated.
    known: FxHashMap<Term, TermId>,
    heads: Vec<Head>,
    known_heads: FxHashMap<Head, HeadId>,
    known_types: FxHashSet<Arc<TensorType>>,
}

impl Bank {
    pub fn new(registry: Arc<Registry>) -> Bank {
        Bank {
            registry,
            terms: Vec::new(),
            types: Vec::new(),
            known: FxHashMap::default(),
            heads: Vec::new(),
            known_heads: FxHashMap::default(),
            known_types: FxHashSet::default(),
        }
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub fn len(&self) -> usize {
        self.terms.len()
    }

    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    pub fn head(&self, term: TermId) -> &Head {
        &self.heads[self.terms[term.index()].head as usize]
    }

    pub fn operands(&self, term: TermId) -> &[TermId] {
        &self.terms[term.index()].operands
    }

    pub fn ty(&self, term: TermId) -> &Arc<TensorType> {
        &self.types[term.index()]
    }

    pub(super) fn term(&self, term: TermId) -> &Term {
        &self.terms[term.index()]
    }

    /// The operator and the attributes of a call.
    pub fn call(&self, term: TermId) -> Option<(OpId, &[AttrValue])> {
        match self.head(term) {
            Head::Op(op, attrs) => Some((*op, attrs)),
            Head::Input(_) | Head::Cotangent(..) => None,
        }
    }

    fn head_id(&mut self, head: Head) -> HeadId {
        if let Some(id) = self.known_heads.get(&head) {
            return *id;
        }
        let id = self.heads.len() as HeadId;
        self.heads.push(head.clone());
        self.known_heads.insert(head, id);
        id
    }

    /// A term of a type that is known.
    pub fn add(&mut self, head: Head, operands: Operands, ty: &Arc<TensorType>) -> TermId {
        let head = self.head_id(head);
        let term = Term { head, operands };
        if let Some(id) = self.known.get(&term) {
            return *id;
        }
        let ty = match self.known_types.get(ty) {
            Some(known) => known.clone(),
            None => {
                self.known_types.insert(ty.clone());
                ty.clone()
            }
        };
        let id = TermId(self.terms.len() as u32);
        self.terms.push(term.clone());
        self.types.push(ty);
        self.known.insert(term, id);
        id
    }

    /// A call of an operator, typed.
    ///
    /// # Errors
    /// The violated premise of its typing rule.
    pub fn op(&mut self, op: OpId, operands: &[TermId], attrs: &[AttrValue]) -> Result<TermId, TypeError> {
        let canonical = self.registry.op(op).canonical(attrs);
        let attrs = canonical.unwrap_or_else(|| attrs.to_vec());
        let head = self.head_id(Head::Op(op, attrs.clone()));
        if let Some(id) = self.known.get(&Term { head, operands: operands.into() }) {
            return Ok(*id);
        }
        let ty = {
            let types: SmallVec<[&TensorType; 4]> = operands.iter().map(|o| &**self.ty(*o)).collect();
            Arc::new(self.registry.infer(op, &types, &attrs)?)
        };
        Ok(self.add(Head::Op(op, attrs), operands.into(), &ty))
    }

    /// The same term with another operand at one place; `None` if it is not well-typed so.
    pub fn with_operand(&mut self, term: TermId, place: usize, operand: TermId) -> Option<TermId> {
        let mut operands = self.terms[term.index()].operands.clone();
        *operands.get_mut(place)? = operand;
        let head = self.head(term).clone();
        let ty = self.ty(term).clone();
        Some(self.add(head, operands, &ty))
    }
}

/// The terms that e-nodes are, as they were added: an e-node's operands are numbers of older e-nodes.
#[derive(Debug, Default)]
pub(super) struct Originals {
    known: Vec<Option<TermId>>,
}

impl Originals {
    /// The term of the e-node of that number. `None` for an attribute.
    pub fn term(&mut self, bank: &mut Bank, space: &Space, id: Id) -> Option<TermId> {
        let wanted = usize::from(id);
        if self.known.len() < space.egraph.nodes().len() {
            self.known.resize(space.egraph.nodes().len(), None);
        }
        let mut stack = vec![wanted];
        while let Some(index) = stack.last().copied() {
            if self.known[index].is_some() {
                stack.pop();
                continue;
            }
            let node = space.original(Id::from(index))?;
            let tensors = || node.children().iter().filter(|c| space.ty(**c).is_some()).map(|c| usize::from(*c));
            let waiting = stack.len();
            stack.extend(tensors().filter(|c| self.known[*c].is_none()));
            if stack.len() > waiting {
                continue;
            }
            let operands = tensors().filter_map(|c| self.known[c]).collect();
            let attrs = node.children().iter().filter_map(|c| space.egraph[*c].data.attr().cloned()).collect();
            let head = match node {
                ENode::Attr(_) => return None,
                ENode::Input(number) => Head::Input(*number),
                ENode::Op(op, _) => Head::Op(*op, attrs),
                ENode::Vjp(op, operand, _) => Head::Cotangent(*op, *operand, attrs),
            };
            self.known[index] = Some(bank.add(head, operands, space.ty(Id::from(index))?));
        }
        self.known[wanted]
    }
}

/// Builds the sides of rules as terms.
pub(super) struct BankBuilder<'a> {
    pub bank: &'a mut Bank,
}

impl Builder for BankBuilder<'_> {
    type Value = TermId;

    fn ty(&self, value: TermId) -> TensorType {
        (**self.bank.ty(value)).clone()
    }

    fn op(&mut self, op: OpId, operands: &[TermId], attrs: Vec<AttrValue>) -> Result<TermId, TypeError> {
        self.bank.op(op, operands, &attrs)
    }

    fn splat(&mut self, value: f64, ty: TensorType) -> Result<TermId, TypeError> {
        let (op, attrs) = self.bank.registry().splat(value, ty)?;
        self.bank.op(op, &[], &attrs)
    }

    fn accepts(&self, op: OpId, operands: &[&TensorType], attrs: &[AttrValue]) -> bool {
        self.bank.registry().infer(op, operands, attrs).is_ok()
    }
}
