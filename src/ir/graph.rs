//! The typed graph: what the checker produces, differentiation extends and extraction returns.

use std::fmt;
use std::sync::Arc;

use super::attr::AttrValue;
use super::checks::{Check, Checks};
use super::operator::{Call, OpId, Registry, TypeError};
use super::types::TensorType;
use crate::diagnostics::Span;

/// A node of one [`Graph`]. Operands have smaller ids than their users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// A program input; its name is the node's name.
    Input,
    /// An operator call, operands and attributes in the order of the signature.
    Op { op: OpId, operands: Vec<NodeId>, attrs: Vec<AttrValue> },
    /// The parameter `index` of `handlers[handler]`: equal to `argument`, but a variable of its own, so that
    /// `handle f(x, x)` has two gradients. Gone after differentiation.
    Param { handler: usize, index: usize, argument: NodeId },
    /// The gradient of `handlers[handler]` for its parameter `index`. Gone after differentiation.
    Gradient { handler: usize, index: usize },
}

/// A rule and its place, as every backward node can say it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleRef {
    pub name: Arc<str>,
    /// `rules/phase1.rules:12`.
    pub location: Arc<str>,
}

impl fmt::Display for RuleRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name, self.location)
    }
}

/// Who made a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// Written in the program.
    Program(Span),
    /// The cotangent that a handler starts with, or the zero of an argument the result does not depend on.
    Handler(Span),
    /// The conclusion of a rule, applied while differentiating or rewriting the forward value named `serves`.
    Rule { rule: RuleRef, serves: Vec<Arc<str>> },
    /// Adding up the cotangents of a value with several uses; `serves` names the value.
    Accumulate { serves: Vec<Arc<str>> },
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub kind: NodeKind,
    pub ty: TensorType,
    /// The source name where there is one.
    pub name: Option<Arc<str>>,
    pub origin: Origin,
}

/// A named result of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// `primal`, `g_NAME`, `result`, `result_0`, ..
    pub name: Arc<str>,
    pub node: NodeId,
}

/// `handle f(..) with reverseMode`, not yet differentiated.
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    pub primal: NodeId,
    /// One per *float* argument, in order.
    pub params: Vec<HandlerParam>,
    pub span: Span,
    /// The value that seeds the walk: ones of the primal's type if `None`.
    pub cotangent: Option<NodeId>,
}

/// A parameter with respect to which a handler differentiates.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerParam {
    /// The function's parameter name.
    pub name: Arc<str>,
    /// A [`NodeKind::Param`].
    pub node: NodeId,
}

/// A typed, acyclic, static-single-assignment graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    nodes: Vec<Node>,
    /// Program inputs in the order of their first evaluation.
    pub inputs: Vec<NodeId>,
    pub outputs: Vec<Output>,
    pub checks: Checks,
    /// Innermost first; empty after differentiation.
    pub handlers: Vec<Handler>,
}

impl Graph {
    pub fn new() -> Graph {
        Graph::default()
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    pub fn ty(&self, id: NodeId) -> &TensorType {
        &self.nodes[id.index()].ty
    }

    /// All nodes, operands first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(i, n)| (NodeId(i as u32), n))
    }

    /// The nodes from the one of index `first` on, in constant time per node.
    pub fn since(&self, first: usize) -> impl Iterator<Item = &Node> {
        self.nodes.iter().skip(first)
    }

    /// Adds a node as it is. Operands must already be there.
    pub fn push(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        debug_assert!(node.operands().all(|o| o < id));
        self.nodes.push(node);
        id
    }

    /// Types and adds an operator call.
    ///
    /// # Errors
    /// The first violated premise of the operator's typing rule.
    pub fn add(
        &mut self,
        registry: &Registry,
        op: OpId,
        operands: Vec<NodeId>,
        attrs: Vec<AttrValue>,
        origin: Origin,
    ) -> Result<NodeId, TypeError> {
        let ty = {
            let types: Vec<&TensorType> = operands.iter().map(|o| self.ty(*o)).collect();
            registry.infer(op, &types, &attrs)?
        };
        let attrs = registry.op(op).canonical(&attrs).unwrap_or(attrs);
        Ok(self.push(Node { kind: NodeKind::Op { op, operands, attrs }, ty, name: None, origin }))
    }

    /// Runs `f` with the call that node `id` is, if it is an operator call.
    pub fn with_call<T>(&self, id: NodeId, f: impl FnOnce(OpId, Call<'_>) -> T) -> Option<T> {
        match &self.node(id).kind {
            NodeKind::Op { op, operands, attrs } => {
                let types: Vec<&TensorType> = operands.iter().map(|o| self.ty(*o)).collect();
                Some(f(*op, Call { operands: &types, attrs }))
            }
            _ => None,
        }
    }

    /// The check that node `id` needs, if its operator has a run-time bound.
    pub fn check_of(&self, registry: &Registry, id: NodeId) -> Option<Check> {
        let NodeKind::Op { op, operands, .. } = &self.node(id).kind else { return None };
        let bound = self.with_call(id, |op, call| registry.op(op).bound(call))??;
        Some(Check { indices: operands[bound.operand], size: bound.size, operator: registry.op(*op).name().into() })
    }

    /// Nodes from which an output or a check can be reached, as a mask by node index.
    pub fn live(&self) -> Vec<bool> {
        let mut live = vec![false; self.nodes.len()];
        for o in &self.outputs {
            live[o.node.index()] = true;
        }
        for c in &self.checks {
            live[c.indices.index()] = true;
        }
        for (id, node) in self.iter().rev() {
            if live[id.index()] {
                for o in node.operands() {
                    live[o.index()] = true;
                }
            }
        }
        live
    }

    pub fn output(&self, name: &str) -> Option<NodeId> {
        self.outputs.iter().find(|o| &*o.name == name).map(|o| o.node)
    }
}

impl Node {
    /// The nodes this one reads.
    pub fn operands(&self) -> impl Iterator<Item = NodeId> + '_ {
        let (ops, one): (&[NodeId], Option<NodeId>) = match &self.kind {
            NodeKind::Op { operands, .. } => (operands, None),
            NodeKind::Param { argument, .. } => (&[], Some(*argument)),
            NodeKind::Input | NodeKind::Gradient { .. } => (&[], None),
        };
        ops.iter().copied().chain(one)
    }
}
