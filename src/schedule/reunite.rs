//! Groups that are apart only because of the order in which their work was met.
//!
//! Grouping goes through the work once. A gradient that waits for something small, such as the number of rows that a
//! mean is over, is met after that, in a group of its own, although it goes through the rows of the loss once more. Such a
//! group joins the earlier one at its own, later place, if nothing that it waits for depends on the earlier one, or only on
//! what can be split off from it for the price of one number for each row. Sums over all rows that read the same are
//! computed together too.

use super::nest::{Nest, ValueId};
use super::rows::{Open, shared_rows};
use super::{NestResult, Schedule};
use crate::ir::volume;

/// How far apart groups are looked at.
const WINDOW: usize = 16;

/// The groups of a stretch without checks, in an order in which they can run.
pub(super) fn reunite(schedule: &Schedule, groups: Vec<Open>) -> Vec<Open> {
    let groups = join(schedule, groups, &one_reads_the_other);
    join(schedule, groups, &sums_of_the_same)
}

fn join(schedule: &Schedule, mut groups: Vec<Open>, related: &dyn Fn(&Open, &Open) -> bool) -> Vec<Open> {
    let mut at = 1;
    while at < groups.len() {
        let joined = (at.saturating_sub(WINDOW)..at).find_map(|a| {
            let stretch = &groups[a..=at];
            Some((a, joined(schedule, stretch, related).or_else(|| split(schedule, stretch, related))?))
        });
        let Some((a, stretch)) = joined else {
            at += 1;
            continue;
        };
        let shorter = at + 1 - a - stretch.len();
        groups.splice(a..=at, stretch);
        // What is before here has been compared with each other, but for the group that is new.
        at = if shorter == 0 { at + 1 } else { at };
    }
    groups
}

fn results(group: &Open) -> impl Iterator<Item = ValueId> {
    group.nests.iter().flat_map(|n| n.results.iter().map(|r| r.value))
}

fn operands(group: &Open) -> impl Iterator<Item = ValueId> {
    group.nests.iter().flat_map(Nest::operands)
}

fn one_reads_the_other(first: &Open, last: &Open) -> bool {
    operands(last).any(|v| results(first).any(|r| r == v))
}

/// Do both sum up rows, of something that both read?
fn sums_of_the_same(first: &Open, last: &Open) -> bool {
    let sums = |group: &Open| group.rows.is_empty() && group.nests.iter().any(|n| !n.is_map());
    sums(first) && sums(last) && operands(last).any(|v| operands(first).any(|o| o == v))
}

/// The groups of `stretch` with its first and its last as one, in an order in which they can run. `None` if that is
/// impossible, or they have nothing in common.
fn joined(schedule: &Schedule, stretch: &[Open], related: &dyn Fn(&Open, &Open) -> bool) -> Option<Vec<Open>> {
    let [first, between @ .., last] = stretch else { return None };
    let apart = first.rows.first().zip(last.rows.first()).is_some_and(|(a, b)| a != b);
    if first.closed || last.closed || apart || !related(first, last) {
        return None;
    }
    let own: Vec<ValueId> = results(first).collect();
    let needed: Vec<ValueId> = operands(last).collect();
    // What is seen through a view must be whole.
    if needed.iter().any(|v| schedule.root(*v) != *v && own.contains(&schedule.root(*v))) {
        return None;
    }
    let mut tainted = own;
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    for group in between {
        if operands(group).any(|v| tainted.contains(&schedule.root(v))) {
            let more: Vec<ValueId> = results(group).collect();
            if needed.iter().any(|v| more.contains(&schedule.root(*v))) {
                return None;
            }
            tainted.extend(more);
            behind.push(group.clone());
        } else {
            before.push(group.clone());
        }
    }
    let mut group = first.clone();
    for nest in &last.nests {
        // That it reads something in common with the first is known of the last group as a whole: a nest of it that does
        // not may compute what another one needs.
        let shared = shared_rows(schedule, &group, nest)?;
        group.share(&shared);
        group.nests.push(nest.clone());
    }
    before.push(group);
    before.extend(behind);
    Some(before)
}

/// The same where groups in between need of the first one only a few numbers that cost little: those are computed before
/// it, in a group of their own.
fn split(schedule: &Schedule, stretch: &[Open], related: &dyn Fn(&Open, &Open) -> bool) -> Option<Vec<Open>> {
    let [first, between @ .., last] = stretch else { return None };
    if first.closed || first.strips || last.closed || between.is_empty() || !related(first, last) {
        return None;
    }
    // What the last group waits for, backwards through the groups in between.
    let mut wanted: Vec<ValueId> = operands(last).map(|v| schedule.root(v)).collect();
    let mut early: Vec<ValueId> = Vec::new();
    for group in between.iter().rev() {
        if results(group).any(|r| wanted.contains(&r)) {
            let reads: Vec<ValueId> = operands(group).map(|v| schedule.root(v)).collect();
            early.extend(&reads);
            wanted.extend(reads);
        }
    }
    let rows = volume(&first.rows);
    let (mut few, mut rest) = (Vec::new(), Vec::new());
    for nest in first.nests.iter().rev() {
        let is = |r: &NestResult| early.contains(&r.value);
        if nest.results.iter().any(is) {
            if nest.points() > rows {
                return None;
            }
            early.extend(nest.operands().into_iter().map(|v| schedule.root(v)));
            few.push(nest.clone());
        } else {
            rest.push(nest.clone());
        }
    }
    if few.is_empty() || rest.is_empty() {
        return None;
    }
    few.reverse();
    rest.reverse();
    let rest = Open { nests: rest, ..first.clone() };
    let others: Vec<Open> = [rest].iter().chain(between).chain([last]).cloned().collect();
    let others = joined(schedule, &others, related)?;
    Some([Open { nests: few, ..first.clone() }].into_iter().chain(others).collect())
}
