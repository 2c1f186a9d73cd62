//! All e-nodes of a program as one typed graph, each as it was when it was added.
//!
//! Merges have no part in it: as long as no rule has merged what differs, the values of all nodes of a class are equal, so that the
//! first application whose sides differ can be told from those that only follow from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use egg::Id;

use super::Differentiated;
use super::language::{ENode, split_call};
use super::record::Moment;
use crate::ir::{AttrValue, Graph, Node, NodeId, NodeKind, Origin};

/// The e-nodes as a graph.
pub struct Mirror {
    /// Without outputs.
    pub graph: Graph,
    /// By the number of the e-node; `None` for attributes.
    nodes: Vec<Option<NodeId>>,
    attrs: BTreeMap<usize, AttrValue>,
}

impl Mirror {
    /// Of a program with the record of its saturation.
    pub fn new(program: &Differentiated) -> Mirror {
        let space = &program.space;
        let mut names: BTreeMap<usize, Arc<str>> = BTreeMap::new();
        for ((_, node), class) in program.tape.iter().zip(&program.classes) {
            if let (Some(name), false) = (&node.name, matches!(node.kind, NodeKind::Param { .. })) {
                names.entry(usize::from(*class)).or_insert_with(|| name.clone());
            }
        }
        let stand_ins = stand_ins(program);
        let mut mirror = Mirror { graph: Graph::new(), nodes: Vec::new(), attrs: BTreeMap::new() };
        for (index, (node, origin)) in space.log().enumerate() {
            let ty = space.ty(Id::from(index)).map(|ty| (**ty).clone());
            let made = match (node, ty) {
                (ENode::Input(_), Some(ty)) => Some((NodeKind::Input, ty)),
                (ENode::Op(op, children), Some(ty)) => {
                    let (operands, attrs) = split_call(&space.egraph, *op, children);
                    // Splitting takes operands as they stand in the e-node.
                    let operands: Option<Vec<NodeId>> = operands.iter().map(|o| mirror.node(*o)).collect();
                    operands.map(|operands| (NodeKind::Op { op: *op, operands, attrs }, ty))
                }
                (ENode::Attr(value), _) => {
                    mirror.attrs.insert(index, value.clone());
                    None
                }
                _ => None,
            };
            let id = match made {
                Some((kind, ty)) => {
                    let is_input = kind == NodeKind::Input;
                    let name = names.get(&index).cloned();
                    let id = mirror.graph.push(Node { kind, ty, name, origin: origin.clone() });
                    if is_input {
                        mirror.graph.inputs.push(id);
                    }
                    Some(id)
                }
                None => stand_ins.get(&index).and_then(|other| mirror.nodes.get(*other).copied().flatten()),
            };
            mirror.nodes.push(id);
        }
        mirror
    }

    /// The node of an e-node.
    pub fn node(&self, id: Id) -> Option<NodeId> {
        self.nodes.get(usize::from(id)).copied().flatten()
    }

    /// The attribute that an e-node is.
    pub fn attr(&self, id: Id) -> Option<&AttrValue> {
        self.attrs.get(&usize::from(id))
    }

    /// Who made the first e-node between two moments.
    pub fn made_between(program: &Differentiated, from: Moment, to: Moment) -> Option<Origin> {
        program.space.log().skip(from.nodes).take(to.nodes.saturating_sub(from.nodes)).next().map(|(_, o)| o.clone())
    }
}

/// For each cotangent that a rule has concluded, an e-node of its class that can be computed.
fn stand_ins(program: &Differentiated) -> BTreeMap<usize, usize> {
    let start = program.at(0);
    let egraph = &start.space.egraph;
    let mut first: BTreeMap<Id, usize> = BTreeMap::new();
    let mut cotangents = Vec::new();
    for (index, node) in egraph.nodes().iter().enumerate() {
        match node {
            ENode::Op(..) | ENode::Input(_) => drop(first.entry(egraph.find(Id::from(index))).or_insert(index)),
            ENode::Vjp(..) => cotangents.push(index),
            ENode::Attr(_) => {}
        }
    }
    let known = |index: usize| Some((index, *first.get(&egraph.find(Id::from(index)))?));
    cotangents.into_iter().filter_map(known).collect()
}
