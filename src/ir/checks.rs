//! Bounds checks of a program.

use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::graph::NodeId;

/// A bounds check of the program: every element of `indices` lies in `0..size`. It belongs to the program, not to
/// the operator node it came from, so that no rewrite can lose it (DESIGN §7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub indices: NodeId,
    pub size: u64,
    /// The operator that speaks when it fails.
    pub operator: Arc<str>,
}

impl Check {
    /// The trap message of the specification.
    pub fn message(&self) -> String {
        format!("{} index out of bounds", self.operator)
    }
}

/// Checks in program order, the same indices against the same bound once: the first speaks.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    list: Vec<Check>,
    seen: FxHashSet<(NodeId, u64)>,
}

impl Checks {
    /// Adds a check unless it is there.
    pub fn add(&mut self, check: Check) {
        if self.seen.insert((check.indices, check.size)) {
            self.list.push(check);
        }
    }
}

impl Deref for Checks {
    type Target = [Check];

    fn deref(&self) -> &[Check] {
        &self.list
    }
}

impl PartialEq for Checks {
    fn eq(&self, other: &Checks) -> bool {
        self.list == other.list
    }
}

impl IntoIterator for Checks {
    type Item = Check;
    type IntoIter = std::vec::IntoIter<Check>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Checks {
    type Item = &'a Check;
    type IntoIter = std::slice::Iter<'a, Check>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}
