//! Candidates that are never needed.
//!
//! In an e-graph most forms of a value differ from another form by nothing that can make them cheaper: `a * b` and
//! `b * a`, or a reshape of a reshape of x beside a reshape of x. A candidate is dropped if another one of its class costs
//! no more by itself and needs only what the first would need as well, directly or by everything that could compute it: in
//! every solution with the first, the other can stand, which costs no more and makes no cycle.

use super::order::Order;
use super::{ClassIndex, Problem};

/// Most classes that are known to be needed for one; of more, some are forgotten, which drops fewer candidates.
const MAX_NEEDED: usize = 12;

/// Drops candidates of `problem` that are never needed.
pub(super) fn reduce(problem: &mut Problem, order: &Order) {
    let n = problem.classes.len();
    // Of what is needed, the nearest is worth most.
    let mut place = vec![0u32; n];
    for (i, class) in order.classes.iter().enumerate() {
        place[*class] = i as u32;
    }
    // What all candidates of each class need. What stands in a cycle with it may not be known yet, and then counts as
    // needing nothing.
    let mut needed: Vec<Vec<ClassIndex>> = vec![Vec::new(); n];
    for class in order.classes.iter().copied() {
        let list = &mut problem.candidates[class];
        let needs: Vec<Vec<ClassIndex>> = list.iter().map(|c| all_needed(&c.children, &needed)).collect();
        let covers = |i: usize, j: usize| {
            let is_needed = |child: &ClassIndex| needs[j].binary_search(child).is_ok();
            list[i].cost <= list[j].cost && list[i].children.iter().all(is_needed)
        };
        // What needs its own class computes nothing.
        let mut kept: Vec<bool> = needs.iter().map(|need| need.binary_search(&class).is_err()).collect();
        for j in 0..list.len() {
            let is_covered = (0..list.len()).any(|i| i != j && kept[i] && covers(i, j) && (i < j || !covers(j, i)));
            kept[j] &= !is_covered;
        }
        let mut lists = needs.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(need, _)| need);
        let mut common = lists.next().cloned().unwrap_or_default();
        for need in lists {
            common.retain(|c| need.binary_search(c).is_ok());
        }
        if common.len() > MAX_NEEDED {
            common.sort_unstable_by_key(|c| std::cmp::Reverse(place[*c]));
            common.truncate(MAX_NEEDED);
            common.sort_unstable();
        }
        needed[class] = common;
        let mut kept = kept.into_iter();
        list.retain(|_| kept.next().unwrap_or(true));
    }
}

/// The children of a candidate and what they need, ascending.
fn all_needed(children: &[ClassIndex], needed: &[Vec<ClassIndex>]) -> Vec<ClassIndex> {
    let mut all = children.to_vec();
    all.extend(children.iter().flat_map(|child| &needed[*child]));
    all.sort_unstable();
    all.dedup();
    all
}
