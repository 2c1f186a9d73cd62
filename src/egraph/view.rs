//! A saturated e-graph to look at: classes by number, their e-nodes, and who made each.

use std::collections::BTreeMap;

use egg::{Id, Language};
use rustc_hash::FxHashMap;

use super::Differentiated;
use super::language::{ENode, split_call};
use crate::ir::{AttrValue, OpId, Origin, RuleRef, TensorType};

/// One way to compute a class.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeView {
    /// Program input by number.
    Input(usize),
    /// A call; operands are positions in the list of classes.
    Call { op: OpId, operands: Vec<usize>, attrs: Vec<AttrValue>, rule: Option<RuleRef> },
}

/// The e-nodes that are claimed to be equal, without cotangents that no rule concluded.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassView {
    pub ty: TensorType,
    pub nodes: Vec<NodeView>,
}

/// All tensor classes, in an order that depends on the program and the rules alone.
pub fn classes(program: &Differentiated) -> Vec<ClassView> {
    let space = &program.space;
    let egraph = &space.egraph;
    let mut makers: FxHashMap<ENode, &Origin> = FxHashMap::default();
    for (node, origin) in space.log() {
        let canonical = node.clone().map_children(|c| egraph.find(c));
        makers.entry(canonical).or_insert(origin);
    }
    let mut ids: Vec<Id> = egraph.classes().filter(|c| c.data.ty().is_some()).map(|c| c.id).collect();
    ids.sort_unstable();
    let positions: BTreeMap<Id, usize> = ids.iter().enumerate().map(|(i, id)| (*id, i)).collect();
    let mut views = Vec::with_capacity(ids.len());
    for id in &ids {
        let Some(ty) = space.ty(*id) else { continue };
        let mut nodes = Vec::new();
        for node in &egraph[*id].nodes {
            match node {
                ENode::Input(number) => nodes.push(NodeView::Input(*number as usize)),
                ENode::Op(op, children) => {
                    let (operands, attrs) = split_call(egraph, *op, children);
                    let operands = operands.iter().filter_map(|o| positions.get(&egraph.find(*o)).copied()).collect();
                    let canonical = node.clone().map_children(|c| egraph.find(c));
                    let rule = match makers.get(&canonical) {
                        Some(Origin::Rule { rule, .. }) => Some(rule.clone()),
                        _ => None,
                    };
                    nodes.push(NodeView::Call { op: *op, operands, attrs, rule });
                }
                ENode::Attr(_) | ENode::Vjp(..) => {}
            }
        }
        views.push(ClassView { ty: (**ty).clone(), nodes });
    }
    views
}
