//! The e-graph's language and analysis.

use std::cell::RefCell;
use std::sync::Arc;

use egg::{Analysis, DidMerge, EGraph, Id, Justification, Language};
use smallvec::SmallVec;

use crate::ir::{AttrValue, OpId, Registry, TensorType, TypeError};

/// Operands, then attributes, in the order of the operator's signature.
pub type Children = SmallVec<[Id; 4]>;

/// An e-node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ENode {
    /// An attribute: a leaf child, so that attribute metavariables are ordinary pattern variables.
    Attr(AttrValue),
    /// Program input by number.
    Input(u32),
    Op(OpId, Children),
    /// The cotangent of operand `operand` of a call of `op`, not yet concluded: `vjp:op:operand(operands..,
    /// attributes.., y, g)`. The operator stands in the node's name since y's class may hold two forms of one value
    /// (`a*b` and `b*a`), of which only one has this operand. Never extracted.
    Vjp(OpId, u32, Children),
}

/// What must agree for two e-nodes to be of one kind, children aside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Discriminant {
    Attr(AttrValue),
    Input(u32),
    Op(OpId),
    Vjp(OpId, u32),
}

impl Language for ENode {
    type Discriminant = Discriminant;

    fn discriminant(&self) -> Discriminant {
        match self {
            ENode::Attr(v) => Discriminant::Attr(v.clone()),
            ENode::Input(i) => Discriminant::Input(*i),
            ENode::Op(op, _) => Discriminant::Op(*op),
            ENode::Vjp(op, operand, _) => Discriminant::Vjp(*op, *operand),
        }
    }

    fn matches(&self, other: &Self) -> bool {
        match (self, other) {
            (ENode::Attr(a), ENode::Attr(b)) => a == b,
            (ENode::Input(a), ENode::Input(b)) => a == b,
            (ENode::Op(a, x), ENode::Op(b, y)) => a == b && x.len() == y.len(),
            (ENode::Vjp(a, i, x), ENode::Vjp(b, j, y)) => a == b && i == j && x.len() == y.len(),
            _ => false,
        }
    }

    fn children(&self) -> &[Id] {
        match self {
            ENode::Attr(_) | ENode::Input(_) => &[],
            ENode::Op(_, children) | ENode::Vjp(_, _, children) => children,
        }
    }

    fn children_mut(&mut self) -> &mut [Id] {
        match self {
            ENode::Attr(_) | ENode::Input(_) => &mut [],
            ENode::Op(_, children) | ENode::Vjp(_, _, children) => children,
        }
    }
}

/// What is known of an e-class: all its e-nodes have this type, or are this attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassData {
    Tensor(Arc<TensorType>),
    Attr(AttrValue),
    /// An e-node that could not be typed; a conflict is recorded with it.
    Unknown,
}

impl ClassData {
    pub fn ty(&self) -> Option<&Arc<TensorType>> {
        match self {
            ClassData::Tensor(ty) => Some(ty),
            _ => None,
        }
    }

    pub fn attr(&self) -> Option<&AttrValue> {
        match self {
            ClassData::Attr(value) => Some(value),
            _ => None,
        }
    }
}

/// Two classes that were merged although they cannot be equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    pub left: ClassData,
    pub right: ClassData,
}

/// The e-class analysis. egg's `merge` cannot fail, so conflicts are recorded and the driver stops at them.
pub struct TypeAnalysis {
    pub registry: Arc<Registry>,
    pub conflict: Option<Conflict>,
    /// Type of the e-node being added, when the caller has computed it already.
    pub pending: Option<Arc<TensorType>>,
    /// Types of the program's inputs, by number.
    pub inputs: Vec<Arc<TensorType>>,
    /// Classes made or merged since the driver last looked; congruence merges included. egg calls `pre_union` with a
    /// shared reference only.
    pub changed: RefCell<Vec<Id>>,
    /// All merges in order, congruence merges included.
    pub unions: RefCell<Vec<(Id, Id)>>,
}

/// The e-graph of the project.
pub type KinaEGraph = EGraph<ENode, TypeAnalysis>;

impl TypeAnalysis {
    pub fn new(registry: Arc<Registry>) -> Self {
        Self {
            registry,
            conflict: None,
            pending: None,
            inputs: Vec::new(),
            changed: RefCell::default(),
            unions: RefCell::default(),
        }
    }
}

impl Analysis<ENode> for TypeAnalysis {
    type Data = ClassData;

    fn make(egraph: &mut KinaEGraph, enode: &ENode, id: Id) -> ClassData {
        egraph.analysis.changed.get_mut().push(id);
        if let Some(ty) = egraph.analysis.pending.take() {
            return ClassData::Tensor(ty);
        }
        match enode {
            ENode::Attr(v) => ClassData::Attr(v.clone()),
            ENode::Input(i) => {
                egraph.analysis.inputs.get(*i as usize).map_or(ClassData::Unknown, |ty| ClassData::Tensor(ty.clone()))
            }
            ENode::Op(op, children) => {
                call_type(egraph, *op, children).map_or(ClassData::Unknown, |ty| ClassData::Tensor(Arc::new(ty)))
            }
            // A cotangent has the type of its operand.
            ENode::Vjp(_, operand, children) => egraph[children[*operand as usize]].data.clone(),
        }
    }

    fn pre_union(egraph: &KinaEGraph, id1: Id, id2: Id, _justification: &Option<Justification>) {
        if egraph.find(id1) != egraph.find(id2) {
            egraph.analysis.changed.borrow_mut().extend([id1, id2]);
            egraph.analysis.unions.borrow_mut().push((id1, id2));
        }
    }

    fn merge(&mut self, a: &mut ClassData, b: ClassData) -> DidMerge {
        if *a != b && self.conflict.is_none() {
            self.conflict = Some(Conflict { left: a.clone(), right: b });
        }
        DidMerge(false, false)
    }
}

/// Types an operator call whose children are e-classes.
///
/// # Errors
/// The violated premise.
pub fn call_type(egraph: &KinaEGraph, op: OpId, children: &[Id]) -> Result<TensorType, TypeError> {
    let registry = &egraph.analysis.registry;
    let mut types: SmallVec<[&TensorType; 4]> = SmallVec::new();
    let mut attrs: SmallVec<[AttrValue; 2]> = SmallVec::new();
    for child in children {
        match &egraph[*child].data {
            ClassData::Tensor(ty) => types.push(ty),
            ClassData::Attr(value) => attrs.push(value.clone()),
            ClassData::Unknown => {}
        }
    }
    registry.infer(op, &types, &attrs)
}

/// Splits the children of an operator's e-node into operand classes and attribute values.
pub fn split_call(egraph: &KinaEGraph, op: OpId, children: &[Id]) -> (SmallVec<[Id; 4]>, Vec<AttrValue>) {
    // Those of a variadic operator differ in number, its attributes do not.
    let operands = children.len().saturating_sub(egraph.analysis.registry.op(op).signature().attrs().count());
    let attrs = children[operands..].iter().filter_map(|c| egraph[*c].data.attr().cloned()).collect();
    (children[..operands].iter().copied().collect(), attrs)
}
