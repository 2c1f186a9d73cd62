//! Proofs of equality: chains of rule instances, with lemmas for operands.

use rustc_hash::FxHashMap;

use super::bank::{Bank, TermId};
use super::closure::{Closure, Edge, EquationId, Reason};

/// Number of a [`Lemma`] in its proof.
pub type LemmaId = usize;

/// Why one term equals another.
///
/// Each pair of terms is proved once, whoever needs it, and a lemma uses only lemmas before it. A proof therefore is no larger than the
/// e-graph that it is about, though written out as a chain it might be exponentially longer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// The last one is what was to be proved.
    pub lemmas: Vec<Lemma>,
}

/// `left = right`, by links from one to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lemma {
    pub left: TermId,
    pub right: TermId,
    pub links: Vec<Link>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub from: TermId,
    pub to: TermId,
    pub by: By,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// An instance of a rule, read from left to right or reversed.
    Rule { equation: EquationId, reversed: bool },
    /// The operands at these places are equal by lemmas, and everything else is the same.
    Operands(Vec<(usize, LemmaId)>),
}

impl Proof {
    /// The lemma that was asked for. Every proof that [`prove`] gives has one.
    pub fn goal(&self) -> Option<&Lemma> {
        self.lemmas.last()
    }

    /// Rule instances in all lemmas.
    pub fn steps(&self) -> usize {
        let rules = |l: &Lemma| l.links.iter().filter(|link| matches!(link.by, By::Rule { .. })).count();
        self.lemmas.iter().map(rules).sum()
    }
}

/// Proofs of several goals over one closure, which share their lemmas.
#[derive(Clone, Debug, Default)]
pub struct Prover {
    pub proof: Proof,
    // Looked up only, never iterated.
    known: FxHashMap<(TermId, TermId), LemmaId>,
}

impl Prover {
    /// The lemma `left = right`; `None` if the closure does not have it.
    pub fn prove(&mut self, bank: &Bank, closure: &Closure, left: TermId, right: TermId) -> Option<LemmaId> {
        let mut stack = vec![(left, right)];
        while let Some((a, b)) = stack.last().copied() {
            if self.known.contains_key(&(a, b)) {
                stack.pop();
                continue;
            }
            let path = shortened(closure.path(a, b)?);
            let waiting = stack.len();
            for edge in path.iter().filter(|e| e.reason == Reason::Congruence) {
                let pairs = bank.operands(edge.from).iter().zip(bank.operands(edge.to));
                stack.extend(
                    pairs.map(|(x, y)| (*x, *y)).filter(|pair| pair.0 != pair.1 && !self.known.contains_key(pair)),
                );
            }
            if stack.len() > waiting {
                continue;
            }
            let links = path.iter().map(|edge| self.link(bank, *edge)).collect::<Option<Vec<_>>>()?;
            self.known.insert((a, b), self.proof.lemmas.len());
            self.proof.lemmas.push(Lemma { left: a, right: b, links });
            stack.pop();
        }
        self.known.get(&(left, right)).copied()
    }

    fn link(&self, bank: &Bank, edge: Edge) -> Option<Link> {
        let by = match edge.reason {
            Reason::Equation { id, reversed } => By::Rule { equation: id, reversed },
            Reason::Congruence => {
                let pairs = bank.operands(edge.from).iter().zip(bank.operands(edge.to)).enumerate();
                let unequal = pairs.filter(|(_, (x, y))| x != y);
                By::Operands(unequal.map(|(i, (x, y))| Some((i, *self.known.get(&(*x, *y))?))).collect::<Option<_>>()?)
            }
        };
        Some(Link { from: edge.from, to: edge.to, by })
    }
}

/// Congruences in a row are one.
fn shortened(path: Vec<Edge>) -> Vec<Edge> {
    let mut out: Vec<Edge> = Vec::with_capacity(path.len());
    for edge in path {
        match out.last_mut() {
            Some(last) if last.reason == Reason::Congruence && edge.reason == Reason::Congruence => last.to = edge.to,
            _ => out.push(edge),
        }
    }
    out
}
