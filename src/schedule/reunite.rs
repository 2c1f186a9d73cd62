//! Groups that are apart only because of the order in which their work was met.
//!
//! Grouping goes through the work once. A gradient that waits for something small, such as the number of rows that a
//! mean is over, is met after that, in a group of its own, although it goes through the rows of the loss once more. Such a
//! group joins the earlier one at its own, later place, if nothing that it waits for depends on the earlier one.

use super::Schedule;
use super::nest::{Nest, ValueId};
use super::rows::{Open, shared_rows};

/// How far apart groups are looked at.
const WINDOW: usize = 16;

/// The groups of a stretch without checks, in an order in which they can run.
pub(super) fn reunite(schedule: &Schedule, mut groups: Vec<Open>) -> Vec<Open> {
    let mut at = 1;
    while at < groups.len() {
        let joined = (at.saturating_sub(WINDOW)..at).find_map(|a| Some((a, joined(schedule, &groups[a..=at])?)));
        let Some((a, Joined { rows, behind })) = joined else {
            at += 1;
            continue;
        };
        let mut stretch = groups.drain(a..=at);
        let (Some(mut first), Some(last)) = (stretch.next(), stretch.next_back()) else { break };
        let between: Vec<Open> = stretch.collect();
        first.rows.truncate(rows);
        first.nests.extend(last.nests);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (group, is_behind) in between.into_iter().zip(behind) {
            if is_behind { after.push(group) } else { before.push(group) }
        }
        at = a + before.len() + 1 + after.len();
        groups.splice(a..a, before.into_iter().chain([first]).chain(after));
    }
    groups
}

/// How the first and the last of some groups can be one.
struct Joined {
    /// The dimensions they share.
    rows: usize,
    /// For each group between them: does it depend on the first, and must run after both?
    behind: Vec<bool>,
}

/// `None` if the first and the last of `stretch` cannot run as one group, or have nothing in common.
fn joined(schedule: &Schedule, stretch: &[Open]) -> Option<Joined> {
    let [first, between @ .., last] = stretch else { return None };
    if first.closed || last.closed || first.rows.is_empty() || first.rows.first() != last.rows.first() {
        return None;
    }
    let results = |group: &Open| group.nests.iter().flat_map(|n| n.results.iter().map(|r| r.value)).collect::<Vec<_>>();
    let own = results(first);
    let operands: Vec<ValueId> = last.nests.iter().flat_map(Nest::operands).collect();
    // What is seen through a view must be whole.
    if !operands.iter().any(|v| own.contains(v))
        || operands.iter().any(|v| schedule.root(*v) != *v && own.contains(&schedule.root(*v)))
    {
        return None;
    }
    let mut tainted = own;
    let mut behind = Vec::with_capacity(between.len());
    for group in between {
        let depends = group.nests.iter().flat_map(Nest::operands).any(|v| tainted.contains(&schedule.root(v)));
        if depends {
            let more = results(group);
            if operands.iter().any(|v| more.contains(&schedule.root(*v))) {
                return None;
            }
            tainted.extend(more);
        }
        behind.push(depends);
    }
    let mut group = Open { rows: first.rows.clone(), nests: first.nests.clone(), closed: false, contraction: false };
    for nest in &last.nests {
        // That it reads something in common with the first is known of the last group as a whole: a nest of it that does
        // not may compute what another one needs.
        group.rows.truncate(shared_rows(schedule, &group, nest)?.rows);
        group.nests.push(nest.clone());
    }
    Some(Joined { rows: group.rows.len(), behind })
}
