//! From an extracted value back to the tape.

use crate::egraph::explain::Explainer;
use crate::egraph::explain::bank::TermId;
use crate::egraph::explain::closure::EquationId;
use crate::egraph::explain::proof::LemmaId;
use crate::ir::{NodeId, NodeKind, Origin};

/// Who made the first term of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// A node of the tape that the program wrote.
    Forward(NodeId),
    /// A node of the tape that a VJP's conclusion has, by number in [`crate::egraph::Differentiated::concluded`] and as an equation.
    Vjp { concluded: usize, equation: EquationId, node: NodeId },
    /// A node of the tape that the walk made by itself: a seed, a sum of cotangents, a mask.
    Walk(NodeId),
    /// A part of the right side of the rule that ended the stage before.
    Inside(TermId),
}

/// `left` is equal to another term by a lemma. If it is not the last stage, that is the left side of an instance of a rule.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub made: Made,
    pub lemma: LemmaId,
    pub left: TermId,
    /// That instance, and the part of its right side with which the next stage starts.
    pub by: Option<EquationId>,
    pub marked: Option<TermId>,
}

impl Stage {
    /// The instances of rules that it states beside its lemma: that of the VJP it starts with, and that it ends with.
    pub fn instances(&self) -> impl Iterator<Item = EquationId> {
        let first = match self.made {
            Made::Vjp { equation, .. } => Some(equation),
            _ => None,
        };
        first.into_iter().chain(self.by)
    }
}

/// The stages of an extracted value, from the tape on.
///
/// A class without a node of the tape was first made as a part of some rule's right side; how the rule's left side came about is
/// the stage before. Rules that made something first are older and older on the way back, so that this ends.
pub(super) fn stages(explainer: &mut Explainer<'_>, value: NodeId) -> Option<Vec<Stage>> {
    let mut right = explainer.extracted[value.index()];
    let mut class = explainer.classes[value.index()];
    let mut stages: Vec<Stage> = Vec::new();
    let (mut by, mut marked): (Option<EquationId>, Option<TermId>) = (None, None);
    let mut before = usize::MAX;
    loop {
        if let Some(node) = class.and_then(|c| on_tape(explainer, c)).or_else(|| same_on_tape(explainer, right)) {
            let left = explainer.tape[node.index()];
            let lemma = explainer.prove(left, right)?;
            stages.push(Stage { made: made(explainer, node), lemma, left, by, marked });
            stages.reverse();
            return Some(stages);
        }
        let (equation, part) = first(explainer, class, right, &mut before)?;
        let lemma = explainer.prove(part, right)?;
        stages.push(Stage { made: Made::Inside(part), lemma, left: part, by, marked });
        (by, marked) = (Some(equation), Some(part));
        right = explainer.equations[equation as usize].left;
        class = explainer.equations[equation as usize].application.and_then(|a| {
            let record = explainer.program.record()?;
            Some(explainer.find(record.applications.get(a)?.class))
        });
    }
}

/// The first node of the tape in a class.
fn on_tape(explainer: &Explainer<'_>, class: egg::Id) -> Option<NodeId> {
    let nodes = explainer.program.tape.iter().filter(|(_, node)| !matches!(node.kind, NodeKind::Param { .. }));
    nodes.map(|(id, _)| id).find(|id| explainer.class_of_tape(*id) == class)
}

/// The first node of the tape that is this very term, or else one that is equal to it (at -O0, where composites are expanded without an e-graph).
fn same_on_tape(explainer: &Explainer<'_>, term: TermId) -> Option<NodeId> {
    let nodes = || {
        let all = explainer.program.tape.iter().filter(|(_, node)| !matches!(node.kind, NodeKind::Param { .. }));
        all.map(|(id, _)| id)
    };
    let of = |id: &NodeId| explainer.tape[id.index()];
    nodes().find(|id| of(id) == term).or_else(|| nodes().find(|id| explainer.equal(of(id), term)))
}

fn made(explainer: &mut Explainer<'_>, node: NodeId) -> Made {
    match &explainer.program.tape.node(node).origin {
        Origin::Program(_) => Made::Forward(node),
        Origin::Handler(_) | Origin::Accumulate { .. } => Made::Walk(node),
        Origin::Rule { .. } => {
            // The ranges of nodes ascend.
            let concluded = &explainer.program.concluded;
            let index = concluded.partition_point(|c| c.added.1 <= node.index());
            let found = concluded.get(index).filter(|c| c.added.0 <= node.index());
            let is_found = found.is_some();
            match if is_found { explainer.conclusion(index) } else { None } {
                Some(equation) => Made::Vjp { concluded: index, equation, node },
                None if is_forward(explainer, node) => Made::Forward(node),
                None => Made::Walk(node),
            }
        }
    }
}

/// Did the checker expand a `def` to it, before anything was differentiated?
fn is_forward(explainer: &Explainer<'_>, node: NodeId) -> bool {
    explainer.program.concluded.first().is_none_or(|first| node.index() < first.added.0)
}

/// The rule instance that first had a class in its right side, and the part that it is.
fn first(
    explainer: &mut Explainer<'_>,
    class: Option<egg::Id>,
    term: TermId,
    before: &mut usize,
) -> Option<(EquationId, TermId)> {
    let equation = match class.and_then(|c| explainer.first_made(c)) {
        Some((application, _)) if application < *before => {
            *before = application;
            explainer.equation_of(application)?
        }
        Some(_) => return None,
        // At -O0 nothing is recorded: it stands in the definition of a composite.
        None => {
            let mut found = None;
            for id in 0..explainer.equations.len() {
                let right = explainer.equations[id].right;
                if explainer.part(right, term).is_some() {
                    found = Some(id as EquationId);
                    break;
                }
            }
            found?
        }
    };
    let right = explainer.equations[equation as usize].right;
    Some((equation, explainer.part(right, term)?))
}
