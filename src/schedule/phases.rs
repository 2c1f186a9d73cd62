//! Stretches of work that one piece of code does, and what of it several threads may share.

use std::ops::Range;

use super::{GroupKind, Schedule, Step};
use crate::ir::volume;

/// Points of a row group from which on sharing it is worth starting threads.
const SHARED_POINTS: u64 = 1 << 18;

/// Consecutive steps of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    pub steps: Range<usize>,
    /// Rows of the phase's only group, which may be computed in any order and by several threads; `None` where there is
    /// no such freedom.
    pub rows: Option<u64>,
}

impl Schedule {
    /// The phases, in order. A small program is one phase.
    pub fn phases(&self) -> Vec<Phase> {
        let mut phases: Vec<Phase> = Vec::new();
        for (s, step) in self.steps.iter().enumerate() {
            let rows = self.shared_rows(step);
            match phases.last_mut() {
                Some(last) if last.rows.is_none() && rows.is_none() => last.steps.end = s + 1,
                _ => phases.push(Phase { steps: s..s + 1, rows }),
            }
        }
        phases
    }

    /// The rows of a large group. A row reads and writes nothing of another row, and each thread has scratch memory of its
    /// own, so results do not depend on who computes which.
    fn shared_rows(&self, step: &Step) -> Option<u64> {
        let Step::Run(g) = step else { return None };
        let group = &self.groups[*g];
        let GroupKind::Rows(rows) = &group.kind else { return None };
        let points = group.nests.iter().fold(0u64, |sum, n| sum.saturating_add(n.points()));
        let rows = volume(rows);
        (rows > 1 && points >= SHARED_POINTS).then_some(rows)
    }
}
