//! A lemma as a sequence of steps on one whole term.

use std::collections::BTreeSet;

use super::derive::Stage;
use super::names::Names;
use super::phrase::{Line, side, state, written_by};
use super::size;
use crate::egraph::explain::Explainer;
use crate::egraph::explain::bank::TermId;
use crate::egraph::explain::closure::EquationId;
use crate::egraph::explain::ground::Ground;
use crate::egraph::explain::proof::{By, LemmaId};
use crate::rules::RewriteClass;

/// Steps, and how many more there are.
#[derive(Clone, Debug, Default)]
pub struct Flat {
    pub entries: Vec<Entry>,
    /// Rule instances that are not shown.
    pub hidden: usize,
}

#[derive(Clone, Debug)]
pub enum Entry {
    /// A rule turned a part of the term into another.
    Rule {
        number: usize,
        rule: String,
        /// `rules/softmax.rules:10`
        place: String,
        kind: Kind,
        /// From its right side to its left.
        reversed: bool,
        before: Vec<Line>,
        after: Vec<Line>,
        /// The operands that its operators have the other way round than the rule has them.
        swapped: bool,
        /// What the marked part of the last step's right side is.
        made: Option<String>,
    },
    /// An operand became a value that has a derivation of its own.
    Operand { from: String, to: String, lemma: LemmaId, steps: usize },
    /// An operand changed as it did before.
    Again { from: String, to: String, lemma: LemmaId, steps: usize },
}

/// What kind of rule a step is by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Rewrite(RewriteClass),
    Definition,
    Vjp,
}

impl Flat {
    /// The lemmas that stand for derivations that are not shown here.
    pub fn mentioned(&self) -> impl Iterator<Item = LemmaId> + '_ {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Operand { lemma, .. } | Entry::Again { lemma, .. } => Some(*lemma),
            Entry::Rule { .. } => None,
        })
    }
}

/// A lemma on the way.
struct Frame {
    lemma: LemmaId,
    link: usize,
    operand: usize,
}

/// The steps of a stage. Operands that become extracted values are one step each, whatever their derivation is; what happens within
/// others is told step by step, once.
pub(super) fn flatten(
    stage: &Stage,
    explainer: &mut Explainer<'_>,
    names: &Names,
    number: &mut usize,
    budget: &mut usize,
) -> Flat {
    let mut flat = Flat::default();
    let mut whole = stage.left;
    let mut told: BTreeSet<LemmaId> = BTreeSet::new();
    let mut path: Vec<usize> = Vec::new();
    let mut stack = vec![Frame { lemma: stage.lemma, link: 0, operand: 0 }];
    while let Some(frame) = stack.last_mut() {
        let Some(link) = explainer.proof().lemmas[frame.lemma].links.get(frame.link).cloned() else {
            stack.pop();
            path.pop();
            continue;
        };
        let (place, lemma) = match &link.by {
            By::Rule { equation, reversed } => {
                frame.link += 1;
                if *budget == 0 {
                    flat.hidden += 1;
                    continue;
                }
                *budget -= 1;
                *number += 1;
                let before = opened(explainer, names, *equation, whole, &path, link.from);
                whole = replaced(explainer, whole, &path, link.to);
                let after = opened(explainer, names, *equation, whole, &path, link.to);
                flat.entries.push(rule(explainer, *equation, *number, *reversed, before, after, None));
                continue;
            }
            By::Operands(lemmas) => match lemmas.get(frame.operand) {
                None => {
                    (frame.link, frame.operand) = (frame.link + 1, 0);
                    continue;
                }
                Some(next) => {
                    frame.operand += 1;
                    *next
                }
            },
        };
        let (left, right) = {
            let proved = &explainer.proof().lemmas[lemma];
            (proved.left, proved.right)
        };
        let again = told.contains(&lemma);
        if !again && !names.is_extracted(right) {
            told.insert(lemma);
            path.push(place);
            stack.push(Frame { lemma, link: 0, operand: 0 });
            continue;
        }
        if *budget == 0 {
            continue;
        }
        path.push(place);
        whole = replaced(explainer, whole, &path, right);
        path.pop();
        let (from, to) = (names.label(explainer, left), names.label(explainer, right));
        let steps = size(explainer, &[lemma]).1;
        flat.entries.push(if again {
            Entry::Again { from, to, lemma, steps }
        } else {
            Entry::Operand { from, to, lemma, steps }
        });
    }
    if let (Some(equation), Some(marked)) = (stage.by, stage.marked) {
        *number += 1;
        *budget = budget.saturating_sub(1);
        let (left, right, bound) = {
            let e = &explainer.equations[equation as usize];
            (e.left, e.right, e.by.bound())
        };
        let before = side(explainer, names, left, left, &written_by(explainer, left, &bound));
        let after = side(explainer, names, right, marked, &written_by(explainer, right, &bound));
        let made = names.label(explainer, marked);
        flat.entries.push(rule(explainer, equation, *number, false, before, after, Some(made)));
    }
    flat
}

/// The whole term, with the part that an instance is about written out and marked.
fn opened(
    explainer: &Explainer<'_>,
    names: &Names,
    equation: EquationId,
    whole: TermId,
    path: &[usize],
    part: TermId,
) -> Vec<Line> {
    let bound = explainer.equations[equation as usize].by.bound();
    state(explainer, names, whole, path, &written_by(explainer, part, &bound))
}

fn rule(
    explainer: &Explainer<'_>,
    equation: EquationId,
    number: usize,
    reversed: bool,
    before: Vec<Line>,
    after: Vec<Line>,
    made: Option<String>,
) -> Entry {
    let by = &explainer.equations[equation as usize].by;
    let kind = match by {
        Ground::Rewrite { rule, .. } | Ground::Commutes { rule, .. } => Kind::Rewrite(rule.class),
        Ground::Definition { .. } => Kind::Definition,
        Ground::Vjp { .. } => Kind::Vjp,
    };
    let swapped = matches!(by, Ground::Rewrite { swapped, .. } if swapped.contains(&true));
    let rule = by.rule();
    Entry::Rule {
        number,
        rule: rule.name.to_string(),
        place: rule.location.to_string(),
        kind,
        reversed,
        before,
        after,
        swapped,
        made,
    }
}

/// The whole with another term at `path`.
fn replaced(explainer: &mut Explainer<'_>, whole: TermId, path: &[usize], part: TermId) -> TermId {
    let mut above = Vec::with_capacity(path.len());
    let mut term = whole;
    for place in path {
        above.push((term, *place));
        let Some(next) = explainer.bank.operands(term).get(*place) else { return whole };
        term = *next;
    }
    let mut new = part;
    for (term, place) in above.into_iter().rev() {
        let Some(next) = explainer.bank.with_operand(term, place, new) else { return whole };
        new = next;
    }
    new
}
