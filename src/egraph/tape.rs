//! The differentiation tape: a typed graph whose nodes are mirrored in the e-graph.

use std::hash::BuildHasher;

use egg::Id;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use super::language::ENode;
use super::space::{OriginId, Space};
use crate::ir::{AttrValue, Graph, Node, NodeId, NodeKind, OpId, Origin, Registry, TensorType, TypeError};
use crate::rules::RuleSet;
use crate::rules::term::Builder;

/// The forward graph, then everything that differentiation added, in order.
///
/// Handlers are differentiated on the tape and not on e-classes: a class may hold two forms of one value, and
/// which operands a value has decides its VJP. Nodes that rules make are shared when they are the same call.
pub struct Tape {
    pub graph: Graph,
    /// The e-class of each node.
    pub classes: Vec<Id>,
    /// Calls by a hash of operator, operands and attributes; the calls themselves stand in the graph.
    made: FxHashMap<u64, SmallVec<[NodeId; 1]>>,
    /// What the first nodes come to, and how many those are: see [`Tape::values`].
    weighed: (u64, usize),
}

/// Most values on the tape of a program of so many nodes. A gradient takes about ten per node; each handler inside another
/// one takes that many again, so that a short program could ask for any number.
pub fn max_values(program: usize) -> u64 {
    (50_000 + 20 * program as u64).min(2_000_000)
}

impl Tape {
    pub fn new() -> Self {
        Self { graph: Graph::new(), classes: Vec::new(), made: FxHashMap::default(), weighed: (0, 0) }
    }

    /// How many values there are; composite operators count as what they will be expanded to.
    pub fn values(&mut self, rules: &RuleSet) -> u64 {
        let (mut sum, first) = self.weighed;
        for node in self.graph.since(first) {
            let def = match &node.kind {
                NodeKind::Op { op, .. } => rules.def(rules.registry.op(*op).name()),
                _ => None,
            };
            sum += def.map_or(1, |def| def.head.extent.calls.max(1));
        }
        self.weighed = (sum, self.graph.len());
        sum
    }

    pub fn class(&self, id: NodeId) -> Id {
        self.classes[id.index()]
    }

    /// Adds a program input.
    pub fn input(&mut self, space: &mut Space, node: Node) -> NodeId {
        let number = self.graph.inputs.len() as u32;
        let ty = space.intern(node.ty.clone());
        space.egraph.analysis.inputs.push(ty.clone());
        let origin = space.origin(node.origin.clone());
        let class = space.add(ENode::Input(number), Some(ty), origin);
        let id = self.push(node, class);
        self.graph.inputs.push(id);
        id
    }

    /// Adds a parameter of a handler: a variable of its own on the tape, in the e-graph the same as its argument.
    pub fn param(&mut self, node: Node, argument: NodeId) -> NodeId {
        let class = self.class(argument);
        self.push(node, class)
    }

    /// Adds a call of the program as it stands there.
    ///
    /// # Errors
    /// The violated premise of the operator's typing rule.
    pub fn program_call(&mut self, space: &mut Space, node: Node) -> Result<NodeId, TypeError> {
        let origin = space.origin(node.origin.clone());
        let class = match &node.kind {
            NodeKind::Op { op, operands, attrs } => {
                let classes: Vec<Id> = operands.iter().map(|o| self.class(*o)).collect();
                let class = space.op(*op, &classes, attrs, origin)?;
                if self.find(*op, operands, attrs).is_none() {
                    self.remember(NodeId(self.graph.len() as u32), *op, operands, attrs);
                }
                class
            }
            NodeKind::Param { argument, .. } => self.class(*argument),
            NodeKind::Input | NodeKind::Gradient { .. } => return Ok(self.input(space, node)),
        };
        Ok(self.push(node, class))
    }

    /// The node of a call, if it is there.
    fn find(&self, op: OpId, operands: &[NodeId], attrs: &[AttrValue]) -> Option<NodeId> {
        let same = |id: &&NodeId| match &self.graph.node(**id).kind {
            NodeKind::Op { op: o, operands: x, attrs: a } => *o == op && x == operands && a == attrs,
            _ => false,
        };
        self.made.get(&hash(op, operands, attrs))?.iter().find(same).copied()
    }

    fn remember(&mut self, id: NodeId, op: OpId, operands: &[NodeId], attrs: &[AttrValue]) {
        self.made.entry(hash(op, operands, attrs)).or_default().push(id);
    }

    fn push(&mut self, node: Node, class: Id) -> NodeId {
        let id = self.graph.push(node);
        self.classes.push(class);
        id
    }
}

fn hash(op: OpId, operands: &[NodeId], attrs: &[AttrValue]) -> u64 {
    FxBuildHasher.hash_one((op, operands, attrs))
}

/// Builds conclusions onto the tape.
pub struct TapeBuilder<'a> {
    pub tape: &'a mut Tape,
    pub space: &'a mut Space,
    pub origin: OriginId,
}

impl TapeBuilder<'_> {
    fn registry(&self) -> &Registry {
        self.space.registry()
    }
}

impl Builder for TapeBuilder<'_> {
    type Value = NodeId;

    fn ty(&self, value: NodeId) -> TensorType {
        self.tape.graph.ty(value).clone()
    }

    fn op(&mut self, op: OpId, operands: &[NodeId], attrs: Vec<AttrValue>) -> Result<NodeId, TypeError> {
        let attrs = self.registry().op(op).canonical(&attrs).unwrap_or(attrs);
        if let Some(id) = self.tape.find(op, operands, &attrs) {
            return Ok(id);
        }
        let origin: Origin = self.space.origin_of(self.origin).clone();
        let classes: Vec<Id> = operands.iter().map(|o| self.tape.class(*o)).collect();
        let class = self.space.op(op, &classes, &attrs, self.origin)?;
        let registry = self.space.registry().clone();
        let id = NodeId(self.tape.graph.len() as u32);
        self.tape.remember(id, op, operands, &attrs);
        self.tape.graph.add(&registry, op, operands.to_vec(), attrs, origin)?;
        self.tape.classes.push(class);
        // A trap of the backward graph is a trap of the program (unless the same indices are checked already).
        if let Some(check) = self.tape.graph.check_of(&registry, id) {
            self.tape.graph.checks.add(check);
        }
        Ok(id)
    }

    fn splat(&mut self, value: f64, ty: TensorType) -> Result<NodeId, TypeError> {
        let (op, attrs) = self.registry().splat(value, ty)?;
        self.op(op, &[], attrs)
    }

    fn accepts(&self, op: OpId, operands: &[&TensorType], attrs: &[AttrValue]) -> bool {
        self.registry().infer(op, operands, attrs).is_ok()
    }
}
