//! Definitions: composites that stand for their operators.

use std::collections::BTreeSet;
use std::sync::Arc;

use egg::Id;

use super::context::Context;
use super::fate;
use super::value::place;
use super::{Detail, Outcome, Place, RuleAnswer};
use crate::egraph::language::{Discriminant, ENode};
use crate::egraph::record::Cause;
use crate::ir::{Level, Origin};
use crate::rules::Def;

pub(super) fn answer(ctx: &mut Context<'_>, def: &Arc<Def>, at: Option<&BTreeSet<Id>>, shown: usize) -> RuleAnswer {
    let mut answer = RuleAnswer::new("def", &def.head.rule, &def.head.doc);
    let Some(op) = ctx.registry().id(&def.name) else {
        expanded(ctx, def, at, shown, &mut answer);
        return answer;
    };
    answer
        .remarks
        .push(format!("`{}` has a VJP, so that it is differentiated whole and expanded afterwards", def.name));
    let is_call = |n: &ENode| matches!(n, ENode::Op(o, _) if *o == op);
    let egraph = &ctx.space().egraph;
    let mut classes: Vec<Id> = egraph.classes_for_op(&Discriminant::Op(op)).into_iter().flatten().collect();
    if classes.is_empty() {
        answer.remarks.push(format!("there is no call of `{}`", def.name));
    }
    if let Some(at) = at {
        classes = at.iter().copied().collect();
    }
    classes.sort_by_cached_key(|class| ctx.names.age(*class));
    classes.dedup();
    let applied =
        ctx.applications(|a| matches!(&a.cause, Cause::Definition { def: d, .. } if d.head.rule == def.head.rule));
    let mut fates = fate::fates(ctx, &applied);
    let found: Vec<_> = classes
        .iter()
        .map(|class| match fates.remove(class) {
            Some((outcome, made)) => (*class, outcome, Some(made)),
            None if !egraph[*class].nodes.iter().any(is_call) => (*class, Outcome::Pattern, None),
            // Without rewriting it stands for its definition all the same.
            None if ctx.level == Level::O0 => (*class, Outcome::Expanded, None),
            None => (*class, Outcome::AlreadyEqual, None),
        })
        .collect();
    for (class, outcome, made) in answer.count_in(&found, shown, |(_, outcome, _)| *outcome) {
        let detail = match made {
            Some(made) => fate::detail(ctx, *class, *outcome, made),
            None if *outcome == Outcome::Pattern => Detail::Mismatches(vec![super::Unmatched {
                wanted: format!("a call of {}", def.name),
                ..super::unmatched::forms(ctx, *class)
            }]),
            None => Detail::Nothing,
        };
        answer.places.push(place(ctx, *class, Some(op), None, *outcome, detail));
    }
    answer
}

/// A definition without a VJP: the checker writes its operators in place of each call.
fn expanded(ctx: &Context<'_>, def: &Def, at: Option<&BTreeSet<Id>>, shown: usize, answer: &mut RuleAnswer) {
    let made = |origin: &Origin| matches!(origin, Origin::Rule { rule, .. } if *rule == def.head.rule);
    let inside = ctx.checked.iter().filter(|(_, n)| made(&n.origin)).count();
    // What stands for a call belongs to the program's line.
    let sources = &ctx.session.sources;
    let mut spans = BTreeSet::new();
    let is_call = |origin: &Origin| match origin {
        Origin::Program(span) => calls(sources.text(*span), &def.name).then_some(*span),
        _ => None,
    };
    let mut found = Vec::new();
    for (id, node) in ctx.program.tape.iter() {
        let class = ctx.program.class_of_node(id);
        if let Some(span) = is_call(&node.origin)
            && spans.insert((span, class))
            && at.is_none_or(|at| at.contains(&class))
        {
            found.push(class);
        }
    }
    if !found.is_empty() || inside > 0 {
        let more = if inside > 0 { format!(", {} more inside", counted(inside, "value")) } else { String::new() };
        answer.remarks.push(format!(
            "it has no VJP of its own, so that its operators stood in the program before anything was differentiated: {}{more}",
            counted(found.len(), "call"),
        ));
    }
    if found.is_empty() {
        let name = &def.name;
        answer.remarks.push(format!(
            "no value that was asked about is a call of `{name}`; calls in other definitions count as theirs"
        ));
    }
    for class in answer.count_in(&found, shown, |_| Outcome::Expanded) {
        let told = place(ctx, *class, None, None, Outcome::Expanded, Detail::Nothing);
        answer.places.push(Place { in_program: true, ..told });
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Is a text of a program a call of that name: `name(..)`, `x.name(..)` or `(name ..)`?
fn calls(text: &str, name: &str) -> bool {
    let text = text.trim();
    let begins =
        |text: &str, open: &str| text.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(open));
    if begins(text, "(") {
        return true;
    }
    if let Some(rest) = text.strip_prefix('(') {
        let after = rest.trim_start().strip_prefix(name);
        if after.is_some_and(|a| a.starts_with(|c: char| c.is_whitespace() || c == ')')) {
            return true;
        }
    }
    // The last method of a chain is the call: its bracket closes at the end.
    if !text.ends_with(')') {
        return false;
    }
    let mut depth = 0usize;
    for (index, c) in text.char_indices().rev() {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    let before = text[..index].trim_end();
                    let method = before.strip_suffix(name).map(str::trim_end);
                    return method.is_some_and(|m| m.ends_with('.'));
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::calls;

    #[test]
    fn a_call_is_told_from_its_text() {
        for text in ["sq(x)", "x.sq()", "(x + y)\n  .sq( )", "(sq x)", "exp(x).sq()", "sq (x)"] {
            assert!(calls(text, "sq"), "{text}");
        }
        for text in ["exp(sq(x))", "x.sq().exp()", "sqr(x)", "x.msq()", "(sqr x)", "sq", "x", ""] {
            assert!(!calls(text, "sq"), "{text}");
        }
    }
}
