//! VJPs: at each operand of each call of the operator, what the rule concluded or why it did not.

use std::collections::BTreeSet;
use std::sync::Arc;

use egg::{Id, Language};

use super::conditions::{Failed, first_failed, one_line};
use super::context::Context;
use super::fate::{self, Made};
use super::unmatched::{attribute, domain};
use super::value::{made_by, place, tape_node};
use super::{Detail, Outcome, Place, RuleAnswer, Unmatched};
use crate::egraph::language::ENode;
use crate::egraph::lookup::LookupBuilder;
use crate::egraph::{Concluded, ranges, stops};
use crate::ir::{AttrValue, Level, NodeId, NodeKind, Origin};
use crate::rules::term::Bindings;
use crate::rules::{AttrPattern, Conclusion, Vjp};

struct Found {
    call: NodeId,
    operand: usize,
    outcome: Outcome,
    why: Why,
}

enum Why {
    Nothing,
    Said(String),
    Made(Id, Made),
    Attribute(usize, AttrValue, AttrValue),
    Condition(Failed),
    Domain(usize, Id),
}

pub(super) fn answer(ctx: &mut Context<'_>, rule: &Arc<Vjp>, at: Option<&BTreeSet<Id>>, shown: usize) -> RuleAnswer {
    let mut answer = RuleAnswer::new("vjp", &rule.head.rule, &rule.head.doc);
    let name = ctx.registry().op(rule.op).name();
    if let Some(span) = ctx.rules().replaced(rule) {
        let place = ctx.session.sources.file_line(span);
        answer.remarks.push(format!("it says `override`: the rule at {place} is not in effect"));
    }
    let calls: Vec<NodeId> = ctx
        .program
        .tape
        .iter()
        .filter(|(_, n)| matches!(&n.kind, NodeKind::Op { op, .. } if *op == rule.op))
        .map(|(id, _)| id)
        .collect();
    if calls.is_empty() {
        answer.remarks.push(format!("neither the program nor a gradient of it has a call of `{name}`"));
    } else if ctx.program.gradients.is_empty() {
        answer.remarks.push("the program has no handler, so that nothing is differentiated".to_owned());
    }
    let asked: Vec<NodeId> =
        calls.iter().copied().filter(|c| at.is_none_or(|at| at.contains(&ctx.program.class_of_node(*c)))).collect();
    if asked.is_empty() && !calls.is_empty() {
        answer.remarks.push(format!("this value is no call of `{name}`"));
    }
    let found = applied(ctx, rule, &asked);
    for found in answer.count_in(&found, shown, |found| found.outcome) {
        answer.places.push(tell(ctx, rule, found));
    }
    answer
}

/// Every operand of every call.
fn applied(ctx: &Context<'_>, rule: &Vjp, calls: &[NodeId]) -> Vec<Found> {
    let activity = Activity::new(ctx);
    let mut concluded: Vec<&Concluded> = ctx.program.concluded.iter().collect();
    concluded.sort_by_key(|c| (c.call, c.operand));
    let mut found = Vec::new();
    for call in calls {
        let NodeKind::Op { operands, .. } = &ctx.program.tape.node(*call).kind else { continue };
        for operand in 0..operands.len() {
            let first = concluded.partition_point(|c| (c.call, c.operand) < (*call, operand));
            let here = concluded[first..].iter().take_while(|c| (c.call, c.operand) == (*call, operand));
            let here: Vec<&Concluded> = here.copied().collect();
            let (outcome, why) = match here.iter().find(|c| c.rule.head.rule == rule.head.rule) {
                Some(_) if rule.alternative.is_some() && ctx.level < Level::O2 => {
                    let why = format!("an alternative is equal over the reals: {} uses it", Level::O2);
                    (Outcome::Level, Why::Said(why))
                }
                Some(concluded) => fate_of(ctx, concluded),
                None => unused(ctx, rule, *call, operand, &activity, !here.is_empty()),
            };
            found.push(Found { call: *call, operand, outcome, why });
        }
    }
    found
}

/// What became of a conclusion.
fn fate_of(ctx: &Context<'_>, concluded: &Concluded) -> (Outcome, Why) {
    let class = ctx.program.class_of_node(concluded.value);
    let passed_on = concluded.value == concluded.cotangent;
    let node = tape_node(ctx, concluded.value).filter(|_| !passed_on);
    let all = ctx.space().egraph[class].nodes.iter().filter(|n| matches!(n, ENode::Op(..) | ENode::Input(_)));
    let made = match node {
        Some(node) => {
            // Rewriting may have found that a part of what was concluded is all of it, as in 1 * x.
            let mut nodes = vec![node];
            let rule = &concluded.rule.head.rule;
            let by_it = |n: &&ENode| matches!(made_by(ctx, n), Some(Origin::Rule { rule: r, .. }) if r == rule);
            for other in all.filter(by_it) {
                if !nodes.contains(other) {
                    nodes.push(other.clone());
                }
            }
            let is_of_itself = |n: &&ENode| n.children().iter().any(|c| ctx.find(*c) == class);
            let told = nodes.iter().find(|n| !is_of_itself(n)).unwrap_or(&nodes[0]);
            Made { text: ctx.names.node(told), nodes, application: None }
        }
        None => {
            let text = if passed_on { "the cotangent itself, " } else { "" };
            Made { text: format!("{text}{}", ctx.names.of(class)), nodes: all.cloned().collect(), application: None }
        }
    };
    let outcome = match ctx.form(class) {
        None => Outcome::NotReached,
        Some(form) if made.nodes.contains(&form) => Outcome::Chosen,
        Some(_) => Outcome::Cost,
    };
    (outcome, Why::Made(class, made))
}

/// Why a rule concluded nothing for an operand.
fn unused(
    ctx: &Context<'_>,
    rule: &Vjp,
    call: NodeId,
    operand: usize,
    activity: &Activity,
    others: bool,
) -> (Outcome, Why) {
    let tape = &ctx.program.tape;
    let NodeKind::Op { op, operands, attrs } = &tape.node(call).kind else {
        return (Outcome::NotDifferentiated, Why::Nothing);
    };
    let at = operands[operand];
    let said = |outcome, text: String| (outcome, Why::Said(text));
    if call.index() >= activity.end {
        let text = match tape.node(call).origin {
            Origin::Program(_) => "no handler differentiates what it stands in",
            _ => "it is part of a gradient, which no handler differentiates again",
        };
        return said(Outcome::NotDifferentiated, text.to_owned());
    }
    if !tape.ty(at).dtype.is_float() {
        return said(Outcome::Inactive, format!("the operand is {}, which carries no cotangent", tape.ty(at)));
    }
    if !activity.active[at.index()] {
        return said(Outcome::Inactive, "the operand depends on no parameter of a handler".to_owned());
    }
    let signature = ctx.registry().op(*op).signature();
    let (param, _) = signature.param_of(operand, operands.len());
    let none = || {
        let text = format!("the rule concludes `none` for {}", signature.operand_label(operand, operands.len()));
        said(Outcome::NoConclusion, text)
    };
    let is_none = matches!(rule.conclusions.get(param), Some(Conclusion::NoCotangent(_)) | None);
    if stops(ctx.rules(), *op, operand, operands.len()) {
        return match rule.alternative {
            None => none(),
            Some(_) => said(Outcome::NoConclusion, "the primary VJP concludes `none`".to_owned()),
        };
    }
    if !tape.ty(call).dtype.is_float() {
        return said(Outcome::NoCotangent, format!("the value is {}, which carries no cotangent", tape.ty(call)));
    }
    if !others && rule.alternative.is_some() {
        return said(Outcome::NoCotangent, "the primary VJP concluded nothing either".to_owned());
    }
    for (index, (pattern, value)) in rule.attrs.iter().zip(attrs).enumerate() {
        if let AttrPattern::Const(wanted) = pattern
            && wanted != value
        {
            return (Outcome::Attribute, Why::Attribute(index, wanted.clone(), value.clone()));
        }
    }
    if let Some(failed) = premise(ctx, rule, call, operand) {
        return failed;
    }
    match (is_none, rule.alternative.is_some()) {
        (true, _) => none(),
        (false, false) => said(Outcome::NoCotangent, "nothing that is differentiated depends on the value".to_owned()),
        (false, true) => (Outcome::Late, Why::Nothing),
    }
}

/// The conditions of a rule and, of an alternative, its domain.
fn premise(ctx: &Context<'_>, rule: &Vjp, call: NodeId, operand: usize) -> Option<(Outcome, Why)> {
    let tape = &ctx.program.tape;
    let NodeKind::Op { op, operands, attrs } = &tape.node(call).kind else { return None };
    let signature = ctx.registry().op(*op).signature();
    let mut builder = LookupBuilder::new(ctx.space());
    let mut bindings = Bindings::new(rule.head.vars.len(), &rule.head.locals);
    let values: Vec<usize> = operands.iter().map(|o| builder.given(ctx.program.class_of_node(*o))).collect();
    rule.bind_operands(signature, &values, &mut bindings);
    let _ = rule.conclusion(signature, operand, operands.len(), &mut bindings);
    for (pattern, value) in rule.attrs.iter().zip(attrs) {
        if let AttrPattern::Var(var) = pattern {
            bindings.bind_attr(*var, value.clone());
        }
    }
    let primal = builder.given(ctx.program.class_of_node(call));
    bindings.bind_tensor(rule.primal, primal);
    // A cotangent has its value's type, and conditions ask for no more.
    bindings.bind_tensor(rule.cotangent, primal);
    bindings.expected = Some(tape.ty(operands[operand]).clone());
    if rule.alternative.is_some() {
        for (index, fact) in rule.head.domain.iter().enumerate() {
            let bound = bindings.attr(&fact.bound, &mut builder).ok().and_then(|b| b.as_float());
            let tensor = bindings.tensors[fact.tensor.0 as usize].and_then(|v| builder.value(v).class);
            let (Some(bound), Some(tensor)) = (bound, tensor) else { continue };
            if !ranges::holds(ctx.space(), tensor, fact.compare, bound) {
                return Some((Outcome::Domain, Why::Domain(index, tensor)));
            }
        }
    }
    let conditions = rule.head.conditions.iter();
    match first_failed(&rule.head, conditions, &mut bindings, &mut builder, &ctx.session.sources) {
        Ok(None) => None,
        Ok(Some(failed)) => {
            let outcome = if failed.is_about_types { Outcome::Type } else { Outcome::Where };
            Some((outcome, Why::Condition(failed)))
        }
        Err(error) => Some((Outcome::Type, Why::Said(error.to_string()))),
    }
}

fn tell(ctx: &mut Context<'_>, rule: &Vjp, found: &Found) -> Place {
    let sources = &ctx.session.sources;
    let detail = match &found.why {
        Why::Nothing => Detail::Nothing,
        Why::Said(why) => Detail::Would { made: None, why: Some(why.clone()) },
        Why::Made(class, made) => fate::detail(ctx, *class, found.outcome, made),
        Why::Attribute(index, wanted, there) => {
            let name = attribute(ctx, rule.op, *index);
            Detail::Mismatches(vec![Unmatched {
                wanted: format!("{name}={wanted}"),
                place: Some(ctx.registry().op(rule.op).name().to_owned()),
                is_attribute: true,
                found: vec![format!("{name}={there}")],
                more: 0,
            }])
        }
        Why::Condition(failed) => Detail::Condition {
            line: format!("where {}", one_line(sources.text(failed.span))),
            location: sources.file_line(failed.span),
            values: failed.values.clone(),
        },
        Why::Domain(index, tensor) => domain(ctx, &rule.head, *index, *tensor, false),
    };
    let root = tape_node(ctx, found.call);
    let class = ctx.program.class_of_node(found.call);
    let node = ctx.program.tape.node(found.call);
    let count = node.operands().count();
    let label = ctx.registry().op(rule.op).signature().operand_label(found.operand, count);
    Place {
        operand: Some(label),
        origin: ctx.place_of(&node.origin),
        ..place(ctx, class, Some(rule.op), root.as_ref(), found.outcome, detail)
    }
}

/// Which nodes of the tape depend on a parameter of any handler.
struct Activity {
    active: Vec<bool>,
    /// What is differentiated stands before.
    end: usize,
}

impl Activity {
    fn new(ctx: &Context<'_>) -> Activity {
        let tape = &ctx.program.tape;
        let mut active = vec![false; tape.len()];
        let mut end = 0;
        for gradient in &ctx.program.gradients {
            active[gradient.param.index()] = true;
            end = end.max(gradient.primal.index() + 1);
        }
        for (id, node) in tape.iter() {
            let depends = match &node.kind {
                NodeKind::Op { op, operands, .. } => {
                    let count = operands.len();
                    let flows = |i: usize, o: &NodeId| active[o.index()] && !stops(ctx.rules(), *op, i, count);
                    operands.iter().enumerate().any(|(i, o)| flows(i, o))
                }
                _ => node.operands().any(|o| active[o.index()]),
            };
            active[id.index()] |= depends && node.ty.dtype.is_float();
        }
        Activity { active, end }
    }
}
