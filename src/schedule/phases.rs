//! Stretches of work that one piece of code does, and what of it several threads may share.

use std::ops::Range;

use super::nest::{Nest, ValueId};
use super::{Group, GroupKind, Place, Schedule, Step};
use crate::ir::kernel::identity;
use crate::ir::volume;

/// Points of a row group from which on sharing it is worth starting threads.
const SHARED_POINTS: u64 = 1 << 18;

/// Points of a piece of work that one thread does before it asks for the next: some ten microseconds.
const PIECE_POINTS: u64 = 1 << 17;

/// Consecutive steps of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    pub steps: Range<usize>,
    /// Rows of the phase's only group, or points along one dimension of it, which may be computed in any order and by several
    /// threads; `None` where there is no such freedom.
    pub rows: Option<u64>,
    /// Rows, or points, that are too few to be handed to a thread by themselves.
    pub grain: u64,
}

impl Schedule {
    /// The phases, in order. A small program is one phase.
    pub fn phases(&self) -> Vec<Phase> {
        let mut phases: Vec<Phase> = Vec::new();
        for (s, step) in self.steps.iter().enumerate() {
            let shared = self.shared_rows(step);
            let (rows, grain) = (shared.map(|(rows, _)| rows), shared.map_or(1, |(_, grain)| grain));
            match phases.last_mut() {
                Some(last) if last.rows.is_none() && rows.is_none() => last.steps.end = s + 1,
                _ => phases.push(Phase { steps: s..s + 1, rows, grain }),
            }
        }
        phases
    }

    /// How much of a large group there is to share. A row, or a point where nothing is reduced, reads and writes nothing of
    /// another one, and each thread has scratch memory of its own, so results do not depend on who computes which.
    /// Returns the rows, and the grain.
    fn shared_rows(&self, step: &Step) -> Option<(u64, u64)> {
        let Step::Run(g) = step else { return None };
        let group = &self.groups[*g];
        let points = group.nests.iter().fold(0u64, |sum, n| sum.saturating_add(n.points()));
        if points < SHARED_POINTS || !self.level.fuses() {
            return None;
        }
        let rows = match &group.kind {
            GroupKind::Rows(rows) => volume(rows),
            GroupKind::Single | GroupKind::Loops => group.nests.first()?.domain[self.shared_dim(group)?],
        };
        (rows > 1).then(|| (rows, (PIECE_POINTS / (points / rows).max(1)).max(1)))
    }

    /// The dimension of a group without rows whose points threads may share: the outermost of more than one point, if its
    /// nests are maps over the same points, all results have them in order, and no point reads memory that another one writes.
    pub fn shared_dim(&self, group: &Group) -> Option<usize> {
        let domain = &group.nests.first()?.domain;
        let own = identity(domain.len());
        let in_order = |n: &Nest| n.is_map() && n.domain == *domain && n.results.iter().all(|r| r.map == own);
        if !group.rows().is_empty() || !group.nests.iter().all(in_order) {
            return None;
        }
        let place = |v: ValueId| self.value(self.root(v)).place;
        let written: Vec<Place> = group.nests.iter().flat_map(|n| n.results.iter().map(|r| place(r.value))).collect();
        let apart = |n: &Nest| {
            let elsewhere = n.reads.iter().filter(|r| r.map != own || self.root(r.value) != r.value).map(|r| r.value);
            elsewhere.chain(n.gathers.iter().copied()).all(|v| !written.contains(&place(v)))
        };
        group.nests.iter().all(apart).then(|| domain.iter().position(|d| *d > 1)).flatten()
    }
}
