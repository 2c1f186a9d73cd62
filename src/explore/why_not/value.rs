//! A place in words.

use egg::Id;

use super::context::{Context, node};
use super::{Detail, Outcome, Place};
use crate::egraph::language::ENode;
use crate::ir::{NodeId, NodeKind, OpId, Origin};

/// A place with the call that was looked at: `root` if that is known, otherwise the call of `op` that is nearest to the reader.
pub(super) fn place(
    ctx: &Context<'_>,
    class: Id,
    op: Option<OpId>,
    root: Option<&ENode>,
    outcome: Outcome,
    detail: Detail,
) -> Place {
    let class = ctx.find(class);
    let is_call = |n: &ENode| match (n, op) {
        (ENode::Op(o, _), Some(op)) => *o == op,
        (ENode::Op(..) | ENode::Input(_), None) => true,
        _ => false,
    };
    let tape = ctx.tape.get(&class).map_or(&[][..], Vec::as_slice);
    let mut calls: Vec<(NodeId, ENode)> = Vec::new();
    for id in tape {
        if let Some(n) = tape_node(ctx, *id).filter(|n| is_call(n)) {
            calls.push((*id, n));
        }
    }
    let nodes = &ctx.space().egraph[class].nodes;
    let shown = root
        .cloned()
        .or_else(|| ctx.form(class).filter(|n| is_call(n)))
        .or_else(|| calls.first().map(|(_, n)| n.clone()))
        .or_else(|| nodes.iter().find(|n| is_call(n)).cloned())
        .or_else(|| ctx.form(class))
        .or_else(|| nodes.iter().find(|n| !matches!(n, ENode::Vjp(..))).cloned());
    let written = calls.iter().find(|(_, n)| Some(n) == shown.as_ref()).or(calls.first());
    let origin = match (written, &shown) {
        (Some((id, _)), _) => Some(&ctx.program.tape.node(*id).origin),
        (None, Some(n)) => made_by(ctx, n),
        (None, None) => None,
    };
    Place {
        value: ctx.names.of(class),
        class: usize::from(class),
        form: shown.as_ref().map(|n| ctx.names.node(n)).unwrap_or_default(),
        operand: None,
        in_program: written.is_some(),
        in_result: ctx.is_live(class),
        origin: origin.map(|o| ctx.place_of(o)).unwrap_or_default(),
        outcome,
        detail,
    }
}

/// Who made an e-node first.
pub(super) fn made_by<'a>(ctx: &Context<'a>, n: &ENode) -> Option<&'a Origin> {
    ctx.first_made(n).and_then(|index| ctx.space().class_origin(Id::from(index)))
}

/// The e-node of a call on the tape, with classes as they are now.
pub(super) fn tape_node(ctx: &Context<'_>, id: NodeId) -> Option<ENode> {
    match &ctx.program.tape.node(id).kind {
        NodeKind::Op { op, operands, attrs } => {
            let operands: Vec<Id> = operands.iter().map(|o| ctx.program.class_of_node(*o)).collect();
            let canonical = ctx.registry().op(*op).canonical(attrs);
            node(ctx.space(), *op, &operands, canonical.as_deref().unwrap_or(attrs))
        }
        _ => None,
    }
}
