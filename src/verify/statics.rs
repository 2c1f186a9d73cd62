//! What can be said of rules without computing anything: closure, overlap, rules that do nothing. (That every conclusion is
//! well-typed over a family of instances is checked when rule files are loaded.)

use std::collections::{BTreeMap, BTreeSet};

use super::Subject;
use super::trial::{Trial, in_f64};
use crate::diagnostics::Diagnostic;
use crate::ir::{NodeKind, OpId, Registry};
use crate::rules::term::{Term, TermKind};
use crate::rules::{Pattern, Rewrite, RuleSet, Vjp};

/// How far gradients of an operator can be differentiated again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orders {
    /// Nothing to differentiate: no float operand, no float result, or a constant for differentiation.
    None,
    /// No VJP.
    Missing,
    /// This operator of a conclusion, or of a conclusion of its operators, has no VJP.
    Until(OpId),
    All,
}

/// For each operator, how often it can be differentiated.
pub fn orders(rules: &RuleSet) -> BTreeMap<OpId, Orders> {
    let registry = &rules.registry;
    let mut needs: BTreeMap<OpId, BTreeSet<OpId>> = BTreeMap::new();
    let mut out = BTreeMap::new();
    for (op, _) in registry.iter() {
        if !is_differentiable(op, registry) {
            out.insert(op, Orders::None);
        } else if rules.vjps(op).is_empty() {
            out.insert(op, Orders::Missing);
        } else {
            needs.insert(op, rules.vjps(op).iter().flat_map(|vjp| concluded(vjp, rules)).collect());
            out.insert(op, Orders::All);
        }
    }
    loop {
        let mut news = false;
        for (op, needed) in &needs {
            if out[op] != Orders::All {
                continue;
            }
            let culprit = needed.iter().find_map(|n| match out.get(n)? {
                Orders::Missing => Some(*n),
                Orders::Until(culprit) => Some(*culprit),
                Orders::None | Orders::All => None,
            });
            if let Some(culprit) = culprit {
                out.insert(*op, Orders::Until(culprit));
                news = true;
            }
        }
        if !news {
            return out;
        }
    }
}

/// Has the operator an instance with a float operand and a float result, and is it no constant?
fn is_differentiable(op: OpId, registry: &Registry) -> bool {
    let operator = registry.op(op);
    !operator.is_constant()
        && operator.instances().iter().any(|(types, attrs)| {
            let refs: Vec<_> = types.iter().collect();
            types.iter().any(|t| t.dtype.is_float())
                && registry.infer(op, &refs, attrs).is_ok_and(|result| result.dtype.is_float())
        })
}

/// The differentiable operators that a VJP's conclusions are made of.
pub fn concluded(vjp: &Vjp, rules: &RuleSet) -> BTreeSet<OpId> {
    let mut ops = BTreeSet::new();
    for (types, attrs) in rules.registry.op(vjp.op).instances() {
        let (types, attrs) = in_f64(types, attrs);
        let Ok(Some(trial)) = Trial::new(vjp, rules, &types, &attrs) else { continue };
        for (id, node) in trial.graph.iter() {
            let NodeKind::Op { op, operands, .. } = &node.kind else { continue };
            let active = operands.iter().any(|o| trial.graph.ty(*o).dtype.is_float()) && node.ty.dtype.is_float();
            if id != trial.primal && active && !rules.registry.op(*op).is_constant() {
                ops.insert(*op);
            }
        }
    }
    ops
}

/// Remarks on one rule.
pub fn warnings(subject: &Subject, rules: &RuleSet) -> Vec<Diagnostic> {
    match subject {
        Subject::Vjp(vjp) => closure(vjp, rules).into_iter().collect(),
        Subject::Rewrite(rewrite) => overlap(rewrite, rules).into_iter().chain(idle(rewrite)).collect(),
        Subject::Def(_) => Vec::new(),
    }
}

fn closure(vjp: &Vjp, rules: &RuleSet) -> Option<Diagnostic> {
    let missing: Vec<&str> = concluded(vjp, rules)
        .into_iter()
        .filter(|op| rules.vjps(*op).is_empty())
        .map(|op| rules.registry.op(op).name())
        .collect();
    (!missing.is_empty()).then(|| {
        let names = missing.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        Diagnostic::warning(
            "E0910",
            format!("`{}` cannot be differentiated again: no VJP for {names}", vjp.head.rule.name),
        )
        .at(vjp.head.span, "first order only")
        .help(format!("add a `vjp {}`, or conclude by operators that have one", missing[0]))
    })
}

/// Another rewrite of the same left side, and no condition to tell them apart.
fn overlap(rewrite: &Rewrite, rules: &RuleSet) -> Option<Diagnostic> {
    let plain = |r: &Rewrite| r.head.conditions.is_empty() && r.head.worth.is_empty() && r.head.domain.is_empty();
    let other = rules.rewrites().iter().find(|other| {
        other.head.rule.name < rewrite.head.rule.name && other.left == rewrite.left && plain(other) && plain(rewrite)
    })?;
    let same = same_term(&other.right, &rewrite.right);
    let what = if same { "is the same rule as" } else { "has the left side of" };
    Some(
        Diagnostic::warning("E0911", format!("`{}` {what} `{}`", rewrite.head.rule.name, other.head.rule.name))
            .at(rewrite.head.span, "fires on the same values")
            .also(other.head.span, "the other one")
            .help(if same {
                "remove one of them"
            } else {
                "both forms stay available; remove one if that is not meant"
            }),
    )
}

/// Equal up to places, as far as operators and variables go.
fn same_term(a: &Term, b: &Term) -> bool {
    match (&a.kind, &b.kind) {
        (TermKind::Var(a), TermKind::Var(b)) => a == b,
        (TermKind::Op { op: a, operands: x, attrs: p }, TermKind::Op { op: b, operands: y, attrs: q }) => {
            a == b
                && p.is_empty()
                && q.is_empty()
                && x.len() == y.len()
                && x.iter().zip(y).all(|(x, y)| same_term(x, y))
        }
        _ => false,
    }
}

/// A rewrite to its own left side.
fn idle(rewrite: &Rewrite) -> Option<Diagnostic> {
    fn is(term: &Term, pattern: &Pattern) -> bool {
        match (&term.kind, pattern) {
            (TermKind::Var(a), Pattern::Var(b)) => a == b,
            (TermKind::Op { op: a, operands: x, attrs }, Pattern::Op { op: b, operands: y, attrs: given }) => {
                a == b && attrs.is_empty() && given.is_empty() && x.iter().zip(y).all(|(x, y)| is(x, y))
            }
            _ => false,
        }
    }
    is(&rewrite.right, &rewrite.left).then(|| {
        Diagnostic::warning("E0911", format!("`{}` rewrites a value to itself", rewrite.head.rule.name))
            .at(rewrite.head.span, "does nothing")
            .help("remove it, or mend its right side")
    })
}
