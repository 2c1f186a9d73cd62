//! Groups that are apart only because of the order in which their work was met.
//!
//! Grouping goes through the work once. A gradient that waits for something small, such as the number of rows that a
//! mean is over, is met after that, in a group of its own, although it goes through the rows of the loss once more. Such a
//! group joins the earlier one at its own, later place, if nothing that it waits for depends on the earlier one, or only on
//! what can be split off from it for the price of a few numbers for each row. Sums over all rows that read the same are
//! computed together too.

use super::nest::{Nest, ValueId};
use super::rows::{Open, shared_rows};
use super::{NestResult, Schedule};

/// How far apart groups are looked at.
const WINDOW: usize = 16;

/// The groups of a stretch without checks, in an order in which they can run.
pub(super) fn reunite(schedule: &Schedule, groups: Vec<Open>) -> Vec<Open> {
    let groups = join(schedule, groups, &Pass { related: one_reads_the_other, vectors: false });
    let groups = join(schedule, groups, &Pass { related: sums_of_the_same, vectors: false });
    // Last, because what waits for a part of such a group waits for all of it.
    join(schedule, groups, &Pass { related: one_reads_the_other, vectors: true })
}

/// Which groups become one.
struct Pass {
    related: fn(&Open, &Open) -> bool,
    /// Also groups that have no rows?
    vectors: bool,
}

fn join(schedule: &Schedule, mut groups: Vec<Open>, pass: &Pass) -> Vec<Open> {
    let mut at = 1;
    while at < groups.len() {
        let joined = (at.saturating_sub(WINDOW)..at).find_map(|a| {
            let stretch = &groups[a..=at];
            Some((a, joined(schedule, stretch, pass).or_else(|| split(schedule, stretch, pass))?))
        });
        let Some((a, stretch)) = joined else {
            at += 1;
            continue;
        };
        // A group that has grown is compared once more. What was split is not: it would never end.
        let fewer = stretch.len() < at + 1 - a;
        groups.splice(a..=at, stretch);
        at = if fewer { a.max(1) } else { at + 1 };
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
fn joined(schedule: &Schedule, stretch: &[Open], pass: &Pass) -> Option<Vec<Open>> {
    let [first, between @ .., last] = stretch else { return None };
    let apart = first.rows.first().zip(last.rows.first()).is_some_and(|(a, b)| a != b);
    if first.closed || last.closed || apart || !(pass.related)(first, last) {
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
        let shared = shared_rows(schedule, &group, nest).filter(|shared| pass.vectors || !shared.vectors)?;
        group.share(&shared);
        group.nests.push(nest.clone());
    }
    before.push(group);
    before.extend(behind);
    Some(before)
}

/// The same where groups in between need of the first one only a few numbers that cost little: those are computed before
/// it, in a group of their own.
fn split(schedule: &Schedule, stretch: &[Open], pass: &Pass) -> Option<Vec<Open>> {
    let [first, between @ .., last] = stretch else { return None };
    if first.closed || last.closed || between.is_empty() || !(pass.related)(first, last) {
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
    // What is split off is gone through twice, or its results are.
    let few_points = first.nests.iter().map(Nest::points).max().unwrap_or(0) / 8;
    let (mut few, mut rest) = (Vec::new(), Vec::new());
    for nest in first.nests.iter().rev() {
        let is = |r: &NestResult| early.contains(&r.value);
        if nest.results.iter().any(is) {
            if nest.points() > few_points {
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
    let others = joined(schedule, &others, pass)?;
    Some([Open { nests: few, strips: false, ..first.clone() }].into_iter().chain(others).collect())
}
