//! Rewrites: their left sides looked for again, and their conditions asked again.

use std::collections::BTreeSet;
use std::sync::Arc;

use egg::Id;

use super::conditions::{Failed, attribute_of, first_failed, one_line};
use super::context::Context;
use super::fate::{self, Made, bind, right_in_words};
use super::unmatched::{attribute, domain, forms, unmatched, wanted};
use super::value::place;
use super::{Detail, Outcome, Place, RuleAnswer, Unmatched};
use crate::egraph::language::{Discriminant, ENode};
use crate::egraph::lookup::LookupBuilder;
use crate::egraph::matching::{Fuel, Match};
use crate::egraph::mismatch::{Closest, End, Mismatch, closest};
use crate::egraph::patterns::{Variant, commutes, variants};
use crate::egraph::record::Cause;
use crate::egraph::{Stop, ranges};
use crate::ir::{AttrValue, Level, OpId};
use crate::rules::term::Bindings;
use crate::rules::{Rewrite, RewriteClass};

/// Steps of matching and of conditions for one answer, and for one place at least and at most.
const STEPS: usize = 2_000_000;
const LEAST_STEPS: usize = 500;
const MOST_STEPS: usize = 100_000;

/// What came of one place, before it is told.
struct Found<'p> {
    class: Id,
    root: Option<ENode>,
    outcome: Outcome,
    why: Why<'p>,
}

enum Why<'p> {
    Nothing,
    Made(Made),
    Ends(Vec<End<'p>>),
    Condition(Failed, &'static str),
    Domain(usize, Id),
    Would(Option<String>, Option<String>),
    Constants(AttrValue, AttrValue),
}

/// The lowest level that has a class of rewrites.
pub(super) fn level_of(class: RewriteClass) -> Level {
    match class {
        RewriteClass::Exact => Level::O1,
        RewriteClass::Real => Level::O2,
    }
}

pub(super) fn answer(
    ctx: &mut Context<'_>,
    rule: &Arc<Rewrite>,
    at: Option<&BTreeSet<Id>>,
    shown: usize,
) -> RuleAnswer {
    let kind = if rule.class == RewriteClass::Exact { "exact" } else { "real" };
    let mut answer = RuleAnswer::new(kind, &rule.head.rule, &rule.head.doc);
    let Some(op) = rule.left.root() else { return answer };
    let name = ctx.registry().op(op).name();
    let needed = level_of(rule.class);
    if ctx.level < needed {
        answer.remarks.push(format!(
            "{} uses no `[{kind}]` rewrites, {needed} does: places that it would be used at are told as `not at this level`",
            ctx.level
        ));
    }
    let egraph = &ctx.space().egraph;
    let mut classes: Vec<Id> = match at {
        Some(at) => at.iter().copied().collect(),
        None => egraph.classes_for_op(&Discriminant::Op(op)).into_iter().flatten().collect(),
    };
    // What the program or the result has comes first.
    let has = |class: &Id| ctx.tape.contains_key(class) || ctx.is_live(*class);
    classes.sort_by_cached_key(|class| (!has(class), ctx.names.age(*class)));
    classes.dedup();
    if classes.is_empty() {
        answer.remarks.push(format!(
            "there is no call of `{name}`: not in the program, not in the result, and no other rule made one"
        ));
    }
    let commutes = commutes(rule) == Some(op);
    if commutes {
        answer.remarks.push(format!(
            "it only says that `{name}` commutes: no other order is made, but where both stand they become one, and the left sides of \
             other rules match either way"
        ));
    }
    let level = ctx.level.max(needed);
    let others = ctx.rules().rewrites().iter().filter(|r| level_of(r.class) <= level);
    let commutative: BTreeSet<OpId> = others.filter_map(|r| self::commutes(r)).collect();
    let variants = variants(&rule.left, &commutative);
    let found: Vec<Found<'_>> = match commutes {
        true => commuted(ctx, rule, op, &classes),
        false => rewritten(ctx, rule, &variants, &classes),
    };
    for found in answer.count_in(&found, shown, |found| found.outcome) {
        answer.places.push(tell(ctx, rule, op, found));
    }
    answer
}

/// A rule that says that an operator commutes, at each call.
fn commuted(ctx: &Context<'_>, rule: &Rewrite, op: OpId, classes: &[Id]) -> Vec<Found<'static>> {
    let is_it = |cause: &Cause| matches!(cause, Cause::Commutes { rule: r, .. } if r.head.rule == rule.head.rule);
    let applied = ctx.applications(|a| is_it(&a.cause));
    let mut fates = fate::fates(ctx, &applied);
    let has = |class: Id| {
        let calls = |n: &ENode| matches!(n, ENode::Op(o, _) if *o == op);
        ctx.space().egraph[class].nodes.iter().any(calls)
    };
    let found = classes.iter().map(|class| match fates.remove(class) {
        Some((outcome, made)) => Found { class: *class, root: None, outcome, why: Why::Made(made) },
        None => {
            let outcome = match (has(*class), ctx.level < level_of(rule.class)) {
                (false, _) => Outcome::Pattern,
                (true, true) => Outcome::Level,
                (true, false) => Outcome::Commutes,
            };
            Found { class: *class, root: None, outcome, why: Why::Nothing }
        }
    });
    found.collect()
}

fn rewritten<'v>(ctx: &Context<'_>, rule: &Rewrite, variants: &'v [Variant], classes: &[Id]) -> Vec<Found<'v>> {
    let is_it = |cause: &Cause| matches!(cause, Cause::Rewrite { rule: r, .. } if r.head.rule == rule.head.rule);
    let applied = ctx.applications(|a| is_it(&a.cause));
    let mut fates = fate::fates(ctx, &applied);
    let share = (STEPS / classes.len().max(1)).clamp(LEAST_STEPS, MOST_STEPS);
    let mut found = Vec::with_capacity(classes.len());
    for class in classes {
        if let Some((outcome, made)) = fates.remove(class) {
            found.push(Found { class: *class, root: None, outcome, why: Why::Made(made) });
            continue;
        }
        let mut fuel = Fuel(share);
        let Closest { matches, ends, exhausted, .. } =
            closest(&ctx.space().egraph, variants, rule.head.vars.len(), *class, &mut fuel);
        // Of several matches the one that got furthest.
        let mut best: Option<Found<'_>> = None;
        for matched in &matches {
            let one = attempt(ctx, rule, *class, matched, &mut fuel);
            if best.as_ref().is_none_or(|b| progress(one.outcome) > progress(b.outcome)) {
                best = Some(one);
            }
            if fuel.0 == 0 {
                break;
            }
        }
        let is_out = exhausted || fuel.0 == 0;
        found.push(match best {
            Some(best) if !is_out || progress(best.outcome) == MOST_PROGRESS => best,
            _ if is_out => Found { class: *class, root: None, outcome: Outcome::Fuel, why: Why::Nothing },
            Some(best) => best,
            None => {
                let root = ends.first().and_then(|e| e.root.clone());
                let outcome = match ends.first().map(|e| &e.mismatch) {
                    Some(Mismatch::Attribute { .. }) => Outcome::Attribute,
                    Some(Mismatch::Twice { .. }) => Outcome::Name,
                    _ => Outcome::Pattern,
                };
                Found { class: *class, root, outcome, why: Why::Ends(ends) }
            }
        });
    }
    found
}

/// How far a match that was not applied came.
fn progress(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Type | Outcome::Attribute | Outcome::Where => 1,
        Outcome::When => 2,
        Outcome::Domain => 3,
        Outcome::Constants => 4,
        Outcome::AlreadyEqual => 5,
        _ => MOST_PROGRESS,
    }
}

const MOST_PROGRESS: usize = 6;

/// What would come of a match that no application of the record is.
fn attempt<'p>(ctx: &Context<'_>, rule: &Rewrite, class: Id, matched: &Match, fuel: &mut Fuel) -> Found<'p> {
    let space = ctx.space();
    let found = |outcome, why| Found { class, root: None, outcome, why };
    let mut builder = LookupBuilder::new(space);
    let mut bindings = Bindings::new(rule.head.vars.len(), &rule.head.locals);
    bind(ctx, matched, &mut bindings, &mut builder);
    let wanted = space.ty(class).map(|ty| (**ty).clone());
    bindings.expected.clone_from(&wanted);
    let sources = &ctx.session.sources;
    for (word, list) in [("where", &rule.head.conditions), ("when", &rule.head.worth)] {
        let failed = first_failed(&rule.head, list.iter(), &mut bindings, &mut builder, sources);
        fuel.spend(bindings.steps());
        match failed {
            Ok(None) => {}
            Ok(Some(failed)) => {
                let outcome = match (word, &failed) {
                    ("when", _) => Outcome::When,
                    (_, f) if f.computed.is_some() => Outcome::Attribute,
                    (_, f) if f.is_about_types => Outcome::Type,
                    _ => Outcome::Where,
                };
                return found(outcome, Why::Condition(failed, word));
            }
            Err(error) => return found(Outcome::Type, Why::Would(None, Some(error.to_string()))),
        }
    }
    for (index, fact) in rule.head.domain.iter().enumerate() {
        let tensor = matched.get(fact.tensor.0 as usize).copied().flatten();
        let bound = bindings.attr(&fact.bound, &mut builder).ok().and_then(|b| b.as_float());
        let (Some(tensor), Some(bound)) = (tensor, bound) else { continue };
        let proved = ranges::holds(space, tensor, fact.compare, bound)
            && (!rule.needs_numbers || ranges::never_nan(space, tensor));
        if !proved {
            return found(Outcome::Domain, Why::Domain(index, tensor));
        }
    }
    let steps = bindings.steps();
    let built = bindings.build(&rule.right, &mut builder);
    fuel.spend(bindings.steps().saturating_sub(steps) + rule.head.extent.calls as usize);
    let value = match built {
        Ok(value) => value,
        Err(error) => return found(Outcome::Type, Why::Would(None, Some(error.to_string()))),
    };
    let right = builder.value(value);
    if let Some(wanted) = wanted.filter(|w| *w != right.ty) {
        let why = format!("the right side has the type {}, {wanted} is wanted", right.ty);
        return found(Outcome::Type, Why::Would(Some(right_in_words(ctx, rule, class, &builder, value)), Some(why)));
    }
    let splat = ctx.registry().id("splat");
    let constant = match (&right.call, right.class) {
        (Some(call), _) if Some(call.op) == splat => call.attrs.first().cloned(),
        (_, Some(other)) => constant(ctx, other),
        _ => None,
    };
    let made = || Some(right_in_words(ctx, rule, class, &builder, value));
    if right.class.is_some_and(|c| ctx.find(c) == ctx.find(class)) {
        return found(Outcome::AlreadyEqual, Why::Would(made(), None));
    }
    if let (Some(left), Some(right)) = (self::constant(ctx, class), constant)
        && left != right
    {
        return found(Outcome::Constants, Why::Constants(left, right));
    }
    let outcome = match ctx.stop {
        _ if ctx.level < level_of(rule.class) => Outcome::Level,
        Some(Stop::Saturated) | None => Outcome::Late,
        Some(_) => Outcome::Budget,
    };
    found(outcome, Why::Would(made(), None))
}

/// The value of a class that is known to be a constant.
fn constant(ctx: &Context<'_>, class: Id) -> Option<AttrValue> {
    let splat = ctx.registry().id("splat")?;
    let egraph = &ctx.space().egraph;
    egraph[class].nodes.iter().find_map(|node| match node {
        ENode::Op(op, children) if *op == splat => children.first().and_then(|c| egraph[*c].data.attr().cloned()),
        _ => None,
    })
}

/// A place in words.
fn tell(ctx: &mut Context<'_>, rule: &Rewrite, op: OpId, found: &Found<'_>) -> Place {
    let sources = &ctx.session.sources;
    let head = &rule.head;
    let detail = match &found.why {
        Why::Nothing if found.outcome == Outcome::Pattern => Detail::Mismatches(vec![Unmatched {
            wanted: wanted(ctx, head, &rule.left),
            place: None,
            ..forms(ctx, found.class)
        }]),
        Why::Nothing => Detail::Nothing,
        Why::Made(made) => fate::detail(ctx, found.class, found.outcome, made),
        Why::Ends(ends) => Detail::Mismatches(ends.iter().map(|e| unmatched(ctx, head, &e.mismatch)).collect()),
        Why::Condition(failed, word) => match &failed.computed {
            Some((var, wanted, there)) => {
                let (name, place) = attribute_of(&rule.left, *var)
                    .map(|(op, index)| (attribute(ctx, op, index), ctx.registry().op(op).name().to_owned()))
                    .unwrap_or_default();
                let text = one_line(sources.text(failed.span));
                let wanted = match wanted.to_string() {
                    wanted if wanted == text => format!("{name}={text}"),
                    wanted => format!("{name}={wanted}, which is {text}"),
                };
                let found = vec![format!("{name}={there}")];
                Detail::Mismatches(vec![Unmatched { wanted, place: Some(place), is_attribute: true, found, more: 0 }])
            }
            None => Detail::Condition {
                line: format!("{word} {}", one_line(sources.text(failed.span))),
                location: sources.file_line(failed.span),
                values: failed.values.clone(),
            },
        },
        Why::Domain(index, tensor) => domain(ctx, head, *index, *tensor, rule.needs_numbers),
        Why::Would(made, why) => Detail::Would { made: made.clone(), why: why.clone() },
        Why::Constants(left, right) => Detail::Constants { left: left.to_string(), right: right.to_string() },
    };
    let application = match &found.why {
        Why::Made(made) => made.application.and_then(|index| ctx.application(index)),
        _ => None,
    };
    let root = application.and_then(|a| fate::left(ctx, a)).or_else(|| found.root.clone());
    place(ctx, found.class, Some(op), root.as_ref(), found.outcome, detail)
}
