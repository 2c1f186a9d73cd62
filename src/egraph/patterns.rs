//! Left sides, widened by the commutative operators.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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

/// A left side in one of the orders of its commutative operators.
#[derive(Clone, Debug)]
pub struct Variant {
    pub pattern: Pattern,
    /// For each call of the left side, in the order in which they are written: do its operands stand here the other way round?
    pub swapped: Arc<[bool]>,
}

/// The left side with the operands of every commutative operator in either order, where the order can matter:
/// two variables that stand nowhere else match the same either way. As written comes first.
pub fn variants(pattern: &Pattern, commutative: &BTreeSet<OpId>) -> Vec<Variant> {
    let mut uses = BTreeMap::new();
    count(pattern, &mut uses);
    let forms = widen(pattern, commutative, &uses);
    forms.into_iter().map(|(pattern, swapped)| Variant { pattern, swapped: swapped.into() }).collect()
}

fn count(pattern: &Pattern, uses: &mut BTreeMap<VarId, usize>) {
    match pattern {
        Pattern::Var(v) => *uses.entry(*v).or_default() += 1,
        Pattern::Op { operands, .. } => operands.iter().for_each(|o| count(o, uses)),
    }
}

fn widen(pattern: &Pattern, commutative: &BTreeSet<OpId>, uses: &BTreeMap<VarId, usize>) -> Vec<(Pattern, Vec<bool>)> {
    let Pattern::Op { op, operands, attrs } = pattern else { return vec![(pattern.clone(), Vec::new())] };
    let mut lists: Vec<(Vec<Pattern>, Vec<bool>)> = vec![(Vec::new(), Vec::new())];
    for operand in operands {
        let forms = widen(operand, commutative, uses);
        let mut next = Vec::new();
        for (list, swapped) in &lists {
            for (form, below) in &forms {
                if next.len() < MAX_VARIANTS {
                    let list = list.iter().chain([form]).cloned().collect();
                    next.push((list, [&swapped[..], below].concat()));
                }
            }
        }
        lists = next;
    }
    let mut out: Vec<(Pattern, Vec<bool>)> = Vec::new();
    for (list, below) in lists {
        let free = |p: &Pattern| matches!(p, Pattern::Var(v) if uses.get(v) == Some(&1));
        let matters = commutative.contains(op) && list.len() == 2 && !(free(&list[0]) && free(&list[1]));
        let turned = matters.then(|| (vec![list[1].clone(), list[0].clone()], true));
        for (operands, turned) in std::iter::once((list, false)).chain(turned) {
            let form = Pattern::Op { op: *op, operands, attrs: attrs.clone() };
            if out.len() < MAX_VARIANTS && out.iter().all(|(known, _)| *known != form) {
                out.push((form, [&[turned], &below[..]].concat()));
            }
        }
    }
    out
}
