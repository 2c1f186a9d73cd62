//! What a left side asks for and what there is, in words.

use egg::Id;

use super::context::Context;
use super::{Detail, Unmatched};
use crate::egraph::language::ENode;
use crate::egraph::mismatch::{Mismatch, Place};
use crate::egraph::ranges;
use crate::ir::{OpId, Param};
use crate::rules::term::VarId;
use crate::rules::{AttrPattern, Pattern, RuleHead};

/// Forms of a class that are told.
const FORMS: usize = 4;

/// A part of a left side as a rule file could have it.
pub(super) fn wanted(ctx: &Context<'_>, head: &RuleHead, pattern: &Pattern) -> String {
    let Pattern::Op { op, operands, attrs } = pattern else {
        return match pattern {
            Pattern::Var(var) => name(head, *var).to_owned(),
            Pattern::Op { .. } => String::new(),
        };
    };
    let operator = ctx.registry().op(*op);
    // A number alone stands for a splat of it.
    if let (Some(splat), [AttrPattern::Const(value), AttrPattern::Var(ty)]) = (ctx.registry().id("splat"), &attrs[..])
        && splat == *op
        && name(head, *ty) == "type"
    {
        return value.to_string();
    }
    let (mut parts, mut left) = (Vec::new(), attrs.iter());
    let mut operands = operands.iter();
    let count = operands.len();
    for param in operator.signature().params() {
        match param {
            Param::Operand(_) => parts.extend(operands.next().map(|o| wanted(ctx, head, o))),
            // Behind a variadic parameter no other operand stands.
            Param::Variadic(_) => parts.extend(operands.by_ref().take(count).map(|o| wanted(ctx, head, o))),
            Param::Attr { name: attr, .. } => match left.next() {
                Some(AttrPattern::Const(value)) => parts.push(format!("{attr}={value}")),
                Some(AttrPattern::Var(var)) => match name(head, *var) {
                    "(computed)" => parts.push(format!("{attr}=..")),
                    var if var == attr => parts.push(var.to_owned()),
                    var => parts.push(format!("{attr}={var}")),
                },
                None => {}
            },
        }
    }
    format!("{}({})", operator.name(), parts.join(", "))
}

fn name(head: &RuleHead, var: VarId) -> &str {
    head.vars.get(var.0 as usize).map_or("_", |v| v.name.as_str())
}

/// The name of an attribute of an operator.
pub(super) fn attribute(ctx: &Context<'_>, op: OpId, index: usize) -> String {
    let attrs = ctx.registry().op(op).signature().attrs().nth(index);
    attrs.map(|(name, ..)| name.to_owned()).unwrap_or_default()
}

/// `operand b of mul`
fn operand(ctx: &Context<'_>, place: &Place) -> String {
    let operator = ctx.registry().op(place.op);
    format!("operand {} of {}", operator.signature().operand_label(place.index, place.operands), operator.name())
}

/// The forms of a class, as what was found.
pub(super) fn forms(ctx: &Context<'_>, class: Id) -> Unmatched {
    let class = ctx.find(class);
    // What the result and the program have comes first.
    let mut forms: Vec<ENode> = ctx.form(class).into_iter().collect();
    let tape = ctx.tape.get(&class).into_iter().flatten();
    for node in tape.filter_map(|id| super::value::tape_node(ctx, *id)) {
        if !forms.contains(&node) {
            forms.push(node);
        }
    }
    let of_class = ctx.space().egraph[class].nodes.iter().filter(|n| matches!(n, ENode::Op(..) | ENode::Input(_)));
    let mut more = 0;
    for node in of_class {
        if forms.len() >= FORMS {
            more += usize::from(!forms.contains(node));
        } else if !forms.contains(node) {
            forms.push(node.clone());
        }
    }
    more += forms.len().saturating_sub(FORMS);
    forms.truncate(FORMS);
    let (wanted, place, is_attribute) = (String::new(), None, false);
    Unmatched { wanted, place, is_attribute, found: forms.iter().map(|n| ctx.names.node(n)).collect(), more }
}

/// One end of a search in words.
pub(super) fn unmatched(ctx: &Context<'_>, head: &RuleHead, mismatch: &Mismatch<'_>) -> Unmatched {
    match mismatch {
        Mismatch::Form { wanted: pattern, class, place } => Unmatched {
            wanted: wanted(ctx, head, pattern),
            place: place.as_ref().map(|p| operand(ctx, p)),
            ..forms(ctx, *class)
        },
        Mismatch::Operands { wanted: pattern, found } => {
            let (name, count) = match pattern {
                Pattern::Op { op, operands, .. } => (ctx.registry().op(*op).name(), operands.len()),
                Pattern::Var(_) => ("", 1),
            };
            Unmatched {
                wanted: format!("{name} of {count}"),
                place: None,
                is_attribute: false,
                found: vec![format!("{name} of {found}")],
                more: 0,
            }
        }
        Mismatch::Attribute { wanted, found, place } => {
            let name = attribute(ctx, place.op, place.index);
            Unmatched {
                wanted: format!("{name}={wanted}"),
                place: Some(ctx.registry().op(place.op).name().to_owned()),
                is_attribute: true,
                found: vec![format!("{name}={}", ctx.names.of(*found))],
                more: 0,
            }
        }
        Mismatch::Twice { var, first, second, place } => {
            let is_attr = ctx.space().egraph[*first].data.attr().is_some();
            let place = place.as_ref().map(|p| match is_attr {
                true => {
                    format!("attribute {} of {}", attribute(ctx, p.op, p.index), ctx.registry().op(p.op).name())
                }
                false => operand(ctx, p),
            });
            Unmatched {
                wanted: format!("{} again ({})", name(head, *var), ctx.names.of(*first)),
                place,
                is_attribute: false,
                found: vec![ctx.names.of(*second)],
                more: 0,
            }
        }
    }
}

/// A fact that is not proved.
pub(super) fn domain(ctx: &Context<'_>, head: &RuleHead, index: usize, tensor: Id, needs_numbers: bool) -> Detail {
    let Some(fact) = head.domain.get(index) else { return Detail::Nothing };
    let sources = &ctx.session.sources;
    let range = ranges::known(ctx.space(), tensor);
    Detail::Domain {
        line: format!("domain {}", super::conditions::one_line(sources.text(fact.span))),
        location: sources.file_line(fact.span),
        value: ctx.names.of(tensor),
        range: (range.lo, range.hi),
        may_be_nan: needs_numbers && !ranges::never_nan(ctx.space(), tensor),
    }
}
