//! What became of the forms that a rule made: chosen, too expensive, or of no use to anybody.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use egg::Id;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::context::{Context, node};
use super::value::made_by;
use super::{Detail, Fired, Instead, Outcome, User};
use crate::egraph::language::ENode;
use crate::egraph::lookup::LookupBuilder;
use crate::egraph::record::{Application, Cause};
use crate::ir::{Origin, RuleRef};
use crate::rules::term::{Bindings, TermKind, expand};
use crate::rules::{AttrPattern, Pattern, Rewrite};

/// Values above one that are looked at for what did away with it.
const MAX_USERS: usize = 2_000;

/// What a rule made of a class.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// E-nodes of the class, with classes as they are now.
    pub nodes: Vec<ENode>,
    pub text: String,
    /// The first application that made them, if it was one of the record.
    pub application: Option<usize>,
}

/// What became of each class that a rule was applied to.
pub(super) fn fates(ctx: &Context<'_>, applied: &BTreeMap<Id, Vec<usize>>) -> BTreeMap<Id, (Outcome, Made)> {
    // A right side that is a name makes no e-node: it says that whatever that value is, the class is as well.
    let mut named: BTreeSet<usize> = BTreeSet::new();
    let mut made: BTreeMap<Id, Made> = BTreeMap::new();
    for (class, applications) in applied {
        let mut nodes = Vec::new();
        let mut text = None;
        for index in applications {
            let Some(application) = ctx.application(*index) else { continue };
            let (node, words) = right(ctx, application);
            match node {
                Some(node) if nodes.contains(&node) => {}
                Some(node) => nodes.push(node),
                None => {
                    named.insert(*index);
                }
            }
            text.get_or_insert(words);
        }
        let application = applications.first().copied();
        made.insert(*class, Made { nodes, text: text.unwrap_or_default(), application });
    }
    let left = left_sides(ctx, &named);
    let mut fates = BTreeMap::new();
    for (class, mut made) in made {
        for index in applied.get(&class).into_iter().flatten() {
            let Some(before) = left.get(index) else { continue };
            let forms = ctx.space().egraph[class].nodes.iter();
            let others = forms.filter(|n| matches!(n, ENode::Op(..) | ENode::Input(_)) && !before.contains(*n));
            made.nodes.extend(others.cloned());
        }
        let outcome = match ctx.form(class) {
            None => Outcome::NotReached,
            Some(form) if made.nodes.contains(&form) => Outcome::Chosen,
            Some(_) => Outcome::Cost,
        };
        fates.insert(class, (outcome, made));
    }
    fates
}

/// The e-node that an application made, if it made one, and what it is in words.
fn right(ctx: &Context<'_>, application: &Application) -> (Option<ENode>, String) {
    let space = ctx.space();
    let mut builder = LookupBuilder::new(space);
    let value = match &application.cause {
        Cause::Rewrite { rule, bindings: bound, .. } => {
            let mut bindings = Bindings::new(rule.head.vars.len(), &rule.head.locals);
            bind(ctx, bound, &mut bindings, &mut builder);
            bindings.expected = space.ty(application.class).map(|ty| (**ty).clone());
            let Ok(value) = bindings.build(&rule.right, &mut builder) else { return (None, String::new()) };
            let text = right_in_words(ctx, rule, application.class, &builder, value);
            return (builder.value(value).node.clone(), text);
        }
        Cause::Commutes { op, operands: [a, b], .. } => {
            let node = node(space, *op, &[*b, *a], &[]);
            let text = node.as_ref().map(|n| ctx.names.node(n)).unwrap_or_default();
            return (node, text);
        }
        Cause::Definition { def, operands, attrs } => {
            let operands: Vec<usize> = operands.iter().map(|o| builder.given(*o)).collect();
            let attrs: Vec<_> = attrs.iter().filter_map(|a| space.egraph[*a].data.attr().cloned()).collect();
            expand(def, &operands, &attrs, &mut builder).ok()
        }
        Cause::Alternative => None,
    };
    let Some(value) = value else { return (None, String::new()) };
    (builder.value(value).node.clone(), ctx.names.found(&builder, value))
}

/// What the right side of a rewrite is. Where that is something that the rule matched, it is one value with the class, or would be.
pub(super) fn right_in_words(
    ctx: &Context<'_>,
    rule: &Rewrite,
    class: Id,
    builder: &LookupBuilder<'_>,
    value: usize,
) -> String {
    let found = builder.value(value);
    match (&rule.right.kind, found.class) {
        (TermKind::Var(var), Some(other)) => {
            let name = rule.head.vars.get(var.0 as usize).map_or("", |v| v.name.as_str());
            match ctx.find(other) == ctx.find(class) {
                true => format!("`{name}` itself"),
                false => format!("`{name}` itself, which is {}", ctx.names.of(other)),
            }
        }
        _ => ctx.names.found(builder, value),
    }
}

/// The call that an application matched.
pub(super) fn left(ctx: &Context<'_>, application: &Application) -> Option<ENode> {
    match &application.cause {
        Cause::Rewrite { rule, bindings, swapped } => matched(ctx, &rule.left, bindings, &mut swapped.iter().copied()),
        Cause::Commutes { op, operands, .. } => node(ctx.space(), *op, operands, &[]),
        Cause::Definition { .. } | Cause::Alternative => None,
    }
}

/// A call of a left side with what its metavariables stood for. Left sides have few calls.
fn matched(
    ctx: &Context<'_>,
    pattern: &Pattern,
    bound: &[Option<Id>],
    swapped: &mut impl Iterator<Item = bool>,
) -> Option<ENode> {
    let Pattern::Op { op, operands, attrs } = pattern else { return None };
    let is_swapped = swapped.next().unwrap_or(false);
    let egraph = &ctx.space().egraph;
    let mut children = SmallVec::new();
    for operand in operands {
        children.push(match operand {
            Pattern::Var(var) => egraph.find((*bound.get(var.0 as usize)?)?),
            Pattern::Op { .. } => egraph.lookup(matched(ctx, operand, bound, swapped)?)?,
        });
    }
    if is_swapped {
        children.reverse();
    }
    for attr in attrs {
        children.push(match attr {
            AttrPattern::Var(var) => egraph.find((*bound.get(var.0 as usize)?)?),
            AttrPattern::Const(value) => egraph.lookup(ENode::Attr(value.clone()))?,
        });
    }
    Some(ENode::Op(*op, children))
}

/// Gives metavariables the classes that they stood for.
pub(super) fn bind(
    ctx: &Context<'_>,
    bound: &[Option<Id>],
    bindings: &mut Bindings<'_, usize>,
    builder: &mut LookupBuilder<'_>,
) {
    for (i, id) in bound.iter().enumerate() {
        let Some(id) = id else { continue };
        match ctx.space().egraph[*id].data.attr() {
            Some(value) => bindings.attrs[i] = Some(value.clone()),
            None => bindings.tensors[i] = Some(builder.given(*id)),
        }
    }
}

/// The e-nodes that the class of each application held before its two sides became one.
fn left_sides(ctx: &Context<'_>, applications: &BTreeSet<usize>) -> FxHashMap<usize, FxHashSet<ENode>> {
    let mut sides = FxHashMap::default();
    if applications.is_empty() {
        return sides;
    }
    let space = ctx.space();
    let egraph = &space.egraph;
    let mut members: FxHashMap<Id, Vec<usize>> = FxHashMap::default();
    for index in 0..egraph.nodes().len() {
        members.entry(egraph.find(Id::from(index))).or_default().push(index);
    }
    let unions = egraph.analysis.unions.borrow();
    let mut parents: Vec<usize> = (0..egraph.nodes().len()).collect();
    let mut done = 0;
    for index in applications {
        let Some(application) = ctx.application(*index) else { continue };
        // The last union is that of the application itself.
        let before = application.after.unions.saturating_sub(1).min(unions.len());
        for (a, b) in &unions[done.min(before)..before] {
            let (a, b) = (root(&mut parents, usize::from(*a)), root(&mut parents, usize::from(*b)));
            parents[a.max(b)] = a.min(b);
        }
        done = done.max(before);
        let wanted = root(&mut parents, usize::from(application.class));
        let mut side = FxHashSet::default();
        for member in members.get(&egraph.find(application.class)).into_iter().flatten() {
            if *member < application.after.nodes && root(&mut parents, *member) == wanted {
                side.extend(space.original(Id::from(*member)).map(|n| space.canonical(n)));
            }
        }
        sides.insert(*index, side);
    }
    sides
}

/// The root of a set, with shorter ways from now on.
fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

/// What is told of a rule that was used: costs are searched for here.
pub(super) fn detail(ctx: &mut Context<'_>, class: Id, outcome: Outcome, made: &Made) -> Detail {
    let cost = ctx.cost;
    let form = ctx.form(class);
    let origin = ctx.origin(class);
    let chosen = match (&form, outcome) {
        (Some(form), Outcome::Cost) => {
            Some((ctx.names.node(form), origin.map(|o| ctx.place_of(o)).unwrap_or_default()))
        }
        _ => None,
    };
    let restricted = match outcome {
        Outcome::Cost if cost.is_some() && ctx.has_fuel() => match ctx.restricted(class, &made.nodes) {
            Some(found) => Some(Instead::Cost { cost: found.cost, unused: !found.used, complete: found.complete }),
            None if ctx.has_fuel() => Some(Instead::Impossible),
            None => None,
        },
        _ => None,
    };
    let user = match outcome {
        Outcome::NotReached => user(ctx, class),
        _ => None,
    };
    Detail::Fired(Fired {
        made: made.text.clone(),
        chosen_rule: chosen.as_ref().and(origin).and_then(rule_of),
        chosen,
        cost,
        restricted,
        user,
    })
}

/// The nearest value of the result among those with a form that needs `class`, directly or not: a form of the program, or otherwise one that
/// a rule made.
fn user(ctx: &Context<'_>, class: Id) -> Option<User> {
    let written = ctx.program.record().map_or(0, |r| r.start.nodes);
    user_among(ctx, class, written).or_else(|| user_among(ctx, class, usize::MAX))
}

/// The same among the first `count` e-nodes.
fn user_among(ctx: &Context<'_>, class: Id, count: usize) -> Option<User> {
    let egraph = &ctx.space().egraph;
    let class = egraph.find(class);
    let (mut seen, mut queue) = (FxHashSet::from_iter([class]), VecDeque::from([class]));
    while let Some(at) = queue.pop_front() {
        for parent in egraph[at].parents().filter(|p| usize::from(*p) < count) {
            if !matches!(ctx.space().original(parent), Some(ENode::Op(..))) {
                continue;
            }
            let above = egraph.find(parent);
            if !seen.insert(above) {
                continue;
            }
            if let Some(form) = ctx.form(above) {
                let origin = made_by(ctx, &form).or(ctx.origin(above));
                return Some(User {
                    value: ctx.names.of(above),
                    form: ctx.names.node(&form),
                    origin: origin.map(|o| ctx.place_of(o)).unwrap_or_default(),
                    rule: origin.and_then(rule_of),
                });
            }
            if seen.len() > MAX_USERS {
                return None;
            }
            queue.push_back(above);
        }
    }
    None
}

fn rule_of(origin: &Origin) -> Option<RuleRef> {
    match origin {
        Origin::Rule { rule, .. } => Some(rule.clone()),
        _ => None,
    }
}
