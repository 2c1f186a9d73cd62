//! Congruence closure over ground equations that can say why two terms are equal.
//!
//! Classes as in union-find, smaller into larger, and beside them a forest whose edges are the equations and congruences that made classes
//! one (R. Nieuwenhuis, A. Oliveras: Proof-producing congruence closure, RTA 2005). The path between two terms of a class does not
//! change when classes are merged later, so that a congruence is explained by equalities older than itself.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::bank::{Bank, HeadId, TermId};

/// Number of an equation that was put in.
pub type EquationId = u32;

/// Why two terms beside each other in the forest are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// An equation whose left side the edge leaves, or, reversed, its right side.
    Equation { id: EquationId, reversed: bool },
    /// Equal heads and equal operands.
    Congruence,
}

impl Reason {
    fn turned(self) -> Reason {
        match self {
            Reason::Equation { id, reversed } => Reason::Equation { id, reversed: !reversed },
            Reason::Congruence => Reason::Congruence,
        }
    }
}

/// One step between terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: TermId,
    pub to: TermId,
    pub reason: Reason,
}

#[derive(Clone, Debug, Default)]
pub struct Closure {
    /// The class of each term, by one of its members.
    class: Vec<TermId>,
    members: Vec<Vec<TermId>>,
    /// Terms with an operand in the class.
    users: Vec<Vec<TermId>>,
    /// To the next term on the way to the root of its tree.
    up: Vec<Option<(TermId, Reason)>>,
    signatures: FxHashMap<(HeadId, SmallVec<[TermId; 3]>), TermId>,
    /// Terms that have to become one.
    pending: Vec<(TermId, TermId, Reason)>,
}

impl Closure {
    /// Takes in all terms of a bank that are not in yet.
    pub fn extend(&mut self, bank: &Bank) {
        for index in self.class.len()..bank.len() {
            let term = TermId(index as u32);
            self.class.push(term);
            self.members.push(vec![term]);
            self.users.push(Vec::new());
            self.up.push(None);
            for operand in bank.operands(term) {
                let class = self.class[operand.index()];
                let users = &mut self.users[class.index()];
                if users.last() != Some(&term) {
                    users.push(term);
                }
            }
            self.sign(bank, term);
            self.run(bank);
        }
    }

    /// The class of a term, as one of its members. A term that is not in is a class of its own.
    pub fn class(&self, term: TermId) -> TermId {
        self.class.get(term.index()).copied().unwrap_or(term)
    }

    pub fn equal(&self, a: TermId, b: TermId) -> bool {
        self.class(a) == self.class(b)
    }

    /// All terms equal to one.
    pub fn members(&self, term: TermId) -> &[TermId] {
        self.members.get(self.class(term).index()).map_or(&[], Vec::as_slice)
    }

    /// Puts in an equation between terms that are in.
    pub fn equate(&mut self, bank: &Bank, left: TermId, right: TermId, id: EquationId) {
        self.pending.push((left, right, Reason::Equation { id, reversed: false }));
        self.run(bank);
    }

    fn run(&mut self, bank: &Bank) {
        while let Some((a, b, reason)) = self.pending.pop() {
            self.merge(bank, a, b, reason);
        }
    }

    /// Looks whether a term with these operands is there already.
    fn sign(&mut self, bank: &Bank, term: TermId) {
        let known = bank.term(term);
        let operands = known.operands.iter().map(|o| self.class[o.index()]).collect();
        match self.signatures.entry((known.head, operands)) {
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(term);
            }
            std::collections::hash_map::Entry::Occupied(other) => {
                let other = *other.get();
                if self.class[other.index()] != self.class[term.index()] {
                    self.pending.push((term, other, Reason::Congruence));
                }
            }
        }
    }

    fn merge(&mut self, bank: &Bank, a: TermId, b: TermId, reason: Reason) {
        let (mut small, mut large) = (self.class(a), self.class(b));
        if small == large {
            return;
        }
        let (mut from, mut to, mut reason) = (a, b, reason);
        let size = |c: &Closure, class: TermId| c.members[class.index()].len() + c.users[class.index()].len();
        if size(self, small) > size(self, large) {
            (small, large) = (large, small);
            (from, to, reason) = (b, a, reason.turned());
        }
        // The tree of `from` is turned so that `from` is its root, and hung below `to`.
        let mut next = Some((to, reason));
        let mut at = from;
        while let Some((above, reason)) = next {
            let before = self.up[at.index()].replace((above, reason));
            next = before.map(|(_, reason)| (at, reason.turned()));
            if let Some((above, _)) = before {
                at = above;
            }
        }
        let members = std::mem::take(&mut self.members[small.index()]);
        for member in &members {
            self.class[member.index()] = large;
        }
        self.members[large.index()].extend(members);
        let users = std::mem::take(&mut self.users[small.index()]);
        for user in &users {
            self.sign(bank, *user);
        }
        self.users[large.index()].extend(users);
    }

    /// The way from one term to another of its class; `None` if they are not known to be equal.
    pub fn path(&self, from: TermId, to: TermId) -> Option<Vec<Edge>> {
        if from == to {
            return Some(Vec::new());
        }
        if !self.equal(from, to) {
            return None;
        }
        let depth = |term: TermId| std::iter::successors(Some(term), |t| self.up[t.index()].map(|(up, _)| up)).count();
        let (mut a, mut b) = (from, to);
        let (mut above_a, mut above_b) = (depth(a), depth(b));
        let (mut forth, mut back) = (Vec::new(), Vec::new());
        while a != b {
            if above_a >= above_b {
                let (up, reason) = self.up[a.index()]?;
                forth.push(Edge { from: a, to: up, reason });
                (a, above_a) = (up, above_a - 1);
            } else {
                let (up, reason) = self.up[b.index()]?;
                back.push(Edge { from: up, to: b, reason: reason.turned() });
                (b, above_b) = (up, above_b - 1);
            }
        }
        forth.extend(back.into_iter().rev());
        Some(forth)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::egraph::explain::bank::{Head, Operands};
    use crate::ir::{DType, Placement, Registry, Shape, TensorType};

    fn bank() -> (Bank, Arc<TensorType>) {
        let ty = TensorType::new(DType::F64, Shape::new(vec![2]).unwrap(), Placement::Host);
        (Bank::new(Arc::new(Registry::builtin())), Arc::new(ty))
    }

    fn apply(bank: &mut Bank, name: &str, operands: &[TermId]) -> TermId {
        let op = bank.registry().id(name).unwrap();
        bank.op(op, operands, &[]).unwrap()
    }

    #[test]
    fn congruent_terms_are_one_and_the_way_between_them_is_found() {
        let (mut bank, ty) = bank();
        let [a, b, c] = [0, 1, 2].map(|i| bank.add(Head::Input(i), Operands::new(), &ty));
        let [fa, fb] = [a, b].map(|x| apply(&mut bank, "exp", &[x]));
        let [gfa, gfb] = [fa, fb].map(|x| apply(&mut bank, "neg", &[x]));
        let mut closure = Closure::default();
        closure.extend(&bank);
        assert!(!closure.equal(gfa, gfb) && closure.path(gfa, gfb).is_none());
        closure.equate(&bank, a, c, 0);
        closure.equate(&bank, b, c, 1);
        assert!(closure.equal(gfa, gfb) && !closure.equal(fa, gfa));
        assert_eq!(closure.path(gfa, gfb).unwrap(), [Edge { from: gfa, to: gfb, reason: Reason::Congruence }]);
        let way = closure.path(a, b).unwrap();
        assert_eq!(
            way,
            [
                Edge { from: a, to: c, reason: Reason::Equation { id: 0, reversed: false } },
                Edge { from: c, to: b, reason: Reason::Equation { id: 1, reversed: true } },
            ]
        );
        // A term that comes later is found equal at once.
        let fc = apply(&mut bank, "exp", &[c]);
        closure.extend(&bank);
        assert!(closure.equal(fc, fa));
        assert_eq!(closure.members(fc).len(), 3);
    }

    /// f(a) = a makes f(f(f(..a))) = a, whatever the order in which it becomes known.
    #[test]
    fn cycles_close() {
        let (mut bank, ty) = bank();
        let a = bank.add(Head::Input(0), Operands::new(), &ty);
        let mut tower = vec![a];
        for _ in 0..1_000 {
            let next = apply(&mut bank, "exp", &[*tower.last().unwrap()]);
            tower.push(next);
        }
        let mut closure = Closure::default();
        closure.extend(&bank);
        closure.equate(&bank, tower[1], a, 0);
        assert!(tower.iter().all(|t| closure.equal(*t, a)));
        assert!(closure.path(tower[1_000], a).unwrap().len() <= 1_001);
    }
}
