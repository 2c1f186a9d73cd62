//! What is provable about the values of an e-class, for `domain` conditions.

use egg::Id;

use super::language::ENode;
use super::space::Space;
use crate::rules::DomainCompare;

/// Is `class <compare> bound` proved for every element that is not NaN?
///
/// One e-node that proves it is enough, since all e-nodes of a class are equal.
pub fn holds(space: &Space, class: Id, compare: DomainCompare, bound: f64) -> bool {
    let egraph = &space.egraph;
    let splat = space.registry().id("splat");
    egraph[class].nodes.iter().any(|node| match node {
        ENode::Op(op, children) if Some(*op) == splat => {
            let value = children.first().and_then(|c| egraph[*c].data.attr()).and_then(|v| v.as_float());
            value.is_some_and(|v| match compare {
                DomainCompare::Lt => v < bound,
                DomainCompare::Le => v <= bound,
                DomainCompare::Gt => v > bound,
                DomainCompare::Ge => v >= bound,
            })
        }
        _ => false,
    })
}
