//! Left sides, widened by the commutative operators.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::OpId;
use crate::rules::term::{TermKind, VarId};
use crate::rules::{Pattern, Rewrite};

/// The operator that a rewrite declares commutative: `op(a, b) => op(b, a)` and nothing else.
pub fn commutes(rule: &Rewrite) -> Option<OpId> {
    let Pattern::Op { op, operands, attrs } = &rule.left else { return None };
    let [Pattern::Var(a), Pattern::Var(b)] = operands.as_slice() else { return None };
    let TermKind::Op { op: right, operands: swapped, .. } = &rule.right.kind else { return None };
    let [x, y] = swapped.as_slice() else { return None };
    let plain = rule.head.conditions.is_empty()
        && rule.head.worth.is_empty()
        && rule.head.domain.is_empty()
        && attrs.is_empty();
    match (&x.kind, &y.kind) {
        (TermKind::Var(x), TermKind::Var(y)) if plain && op == right && x == b && y == a && a != b => Some(*op),
        _ => None,
    }
}

/// How many levels of classes decide whether a left side matches: those of its operators, and that of the operands below
/// them where two have to be equal.
pub fn levels(pattern: &Pattern) -> usize {
    let mut uses = BTreeMap::new();
    count(pattern, &mut uses);
    pattern.depth() + usize::from(uses.values().any(|n| *n > 1))
}

/// More variants than this of one left side are not made: a rule with that many commutative nodes is written badly
/// or to do harm, and it still fires in the form it was written.
const MAX_VARIANTS: usize = 32;

/// The left side with the operands of every commutative operator in either order, where the order can matter:
/// two variables that stand nowhere else match the same either way.
pub fn variants(pattern: &Pattern, commutative: &BTreeSet<OpId>) -> Vec<Pattern> {
    let mut uses = BTreeMap::new();
    count(pattern, &mut uses);
    widen(pattern, commutative, &uses)
}

fn count(pattern: &Pattern, uses: &mut BTreeMap<VarId, usize>) {
    match pattern {
        Pattern::Var(v) => *uses.entry(*v).or_default() += 1,
        Pattern::Op { operands, .. } => operands.iter().for_each(|o| count(o, uses)),
    }
}

fn widen(pattern: &Pattern, commutative: &BTreeSet<OpId>, uses: &BTreeMap<VarId, usize>) -> Vec<Pattern> {
    let Pattern::Op { op, operands, attrs } = pattern else { return vec![pattern.clone()] };
    let mut lists: Vec<Vec<Pattern>> = vec![Vec::new()];
    for operand in operands {
        let forms = widen(operand, commutative, uses);
        let mut next = Vec::new();
        for list in &lists {
            for form in &forms {
                if next.len() < MAX_VARIANTS {
                    let mut list = list.clone();
                    list.push(form.clone());
                    next.push(list);
                }
            }
        }
        lists = next;
    }
    let mut out: Vec<Pattern> = Vec::new();
    for list in lists {
        let free = |p: &Pattern| matches!(p, Pattern::Var(v) if uses.get(v) == Some(&1));
        let matters = commutative.contains(op) && list.len() == 2 && !(free(&list[0]) && free(&list[1]));
        let swapped = matters.then(|| vec![list[1].clone(), list[0].clone()]);
        for operands in std::iter::once(list).chain(swapped) {
            let form = Pattern::Op { op: *op, operands, attrs: attrs.clone() };
            if out.len() < MAX_VARIANTS && !out.contains(&form) {
                out.push(form);
            }
        }
    }
    out
}
