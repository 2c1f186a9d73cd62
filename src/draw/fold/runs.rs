//! Periodic stretches of the order.

use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::{Item, pays};

/// Lengths of the windows whose last occurrence suggests a period.
const WINDOWS: [usize; 3] = [2, 8, 24];
/// Most periods that are tried.
const PERIODS: usize = 48;

/// Copies of `period` items each, the first of which begins at `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub start: usize,
    pub period: usize,
    pub copies: usize,
}

impl Stretch {
    pub fn end(&self) -> usize {
        self.start + self.period * self.copies
    }
}

/// A stretch that repeats with a period, before it is cut into copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: usize,
    end: usize,
    period: usize,
}

impl Run {
    fn copies(&self) -> usize {
        (self.end - self.start) / self.period
    }

    /// The more it hides the better; of equals that with the shorter copies, then the first.
    fn rank(&self) -> (usize, std::cmp::Reverse<usize>, std::cmp::Reverse<usize>, usize) {
        let hidden = self.copies().saturating_sub(1) * self.period;
        (hidden, std::cmp::Reverse(self.period), std::cmp::Reverse(self.start), self.end)
    }
}

/// Disjoint stretches, in their order.
pub fn stretches(items: &[Item], order: &[usize]) -> Vec<Stretch> {
    let line = Line::new(items, order);
    let mut heap = BinaryHeap::new();
    for period in periods(items, order) {
        for run in line.runs(period) {
            if pays(run.copies(), period) {
                heap.push((run.rank(), run.start, run.end));
            }
        }
    }
    let mut taken: std::collections::BTreeMap<usize, usize> = std::collections::BTreeMap::new();
    let mut chosen = Vec::new();
    while let Some(((_, std::cmp::Reverse(period), ..), start, end)) = heap.pop() {
        // What is left of it: the longest piece between those that are taken.
        let mut pieces = Vec::new();
        let mut from = start;
        let before = taken.range(..=start).next_back().map(|(_, e)| *e).filter(|e| *e > start);
        from = before.map_or(from, |e| e.min(end));
        for (s, e) in taken.range(start + 1..end.max(start + 1)) {
            pieces.push((from, *s));
            from = (*e).min(end);
        }
        pieces.push((from, end));
        if pieces.as_slice() == [(start, end)] {
            let stretch = line.cut(Run { start, end, period });
            taken.insert(stretch.start, stretch.end());
            chosen.push(stretch);
            continue;
        }
        for (start, end) in pieces {
            let run = Run { start, end: end.max(start), period };
            if pays(run.copies(), period) {
                heap.push((run.rank(), run.start, run.end));
            }
        }
    }
    chosen.sort_by_key(|s| s.start);
    chosen
}

/// Distances between equal windows of keys, the most frequent ones.
fn periods(items: &[Item], order: &[usize]) -> Vec<usize> {
    let mut counts: FxHashMap<usize, usize> = FxHashMap::default();
    for window in WINDOWS {
        let mut last: FxHashMap<u64, usize> = FxHashMap::default();
        for i in 0..(order.len() + 1).saturating_sub(window) {
            // A clash of two hashes only suggests a period that is none.
            let hash = order[i..i + window].iter().fold(0xcbf2_9ce4_8422_2325u64, |h, item| {
                (h ^ u64::from(items[*item].key)).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
            });
            if let Some(before) = last.insert(hash, i) {
                *counts.entry(i - before).or_default() += 1;
            }
        }
    }
    let mut counts: Vec<(usize, usize)> = counts.into_iter().collect();
    counts.sort_unstable_by_key(|(period, count)| (std::cmp::Reverse(*count), *period));
    counts.truncate(PERIODS);
    counts.into_iter().map(|(period, _)| period).collect()
}

/// The order, with the place of each item in it.
struct Line<'a> {
    items: &'a [Item],
    order: &'a [usize],
    /// `None` for what floats.
    place: Vec<Option<usize>>,
}

impl<'a> Line<'a> {
    fn new(items: &'a [Item], order: &'a [usize]) -> Line<'a> {
        let mut place = vec![None; items.len()];
        order.iter().enumerate().for_each(|(i, item)| place[*item] = Some(i));
        Line { items, order, place }
    }

    /// Does the item at `i` do to its copy what the item at `i + period` does to the next one, in a run that begins at `start`?
    fn agree(&self, i: usize, period: usize, start: usize) -> bool {
        let (a, b) = (&self.items[self.order[i]], &self.items[self.order[i + period]]);
        a.key == b.key
            && a.operands.len() == b.operands.len()
            && a.operands.iter().zip(&b.operands).all(|(a, b)| {
                if a.result != b.result {
                    return false;
                }
                let (here, there) = (self.place[a.item], self.place[b.item]);
                let same_key = self.items[a.item].key == self.items[b.item].key;
                match (here, there) {
                    _ if a.item == b.item => here.is_none_or(|p| p < start),
                    (None, None) => same_key,
                    (Some(p), Some(q)) if q == p + period => true,
                    // One outside for each copy.
                    (Some(p), Some(q)) if p < start && q < start => same_key,
                    // What the first copy is given from outside, the second one has from the first.
                    (p, Some(q)) if p.is_none_or(|p| p < start) => {
                        i < start + period && q >= start && q < start + period
                    }
                    _ => false,
                }
            })
    }

    /// The longest stretches with that period.
    fn runs(&self, period: usize) -> Vec<Run> {
        let mut found = Vec::new();
        let last = self.order.len().saturating_sub(period);
        // Beginning again with a later start looks at items twice: within limits.
        let mut work = 4 * self.order.len();
        let (mut start, mut i) = (0, 0);
        while i < last && work > 0 {
            work -= 1;
            if self.agree(i, period, start) {
                i += 1;
                continue;
            }
            if i >= start + period {
                found.push(Run { start, end: i + period, period });
            }
            // A later start, such that this item is still one of the first copy: then it may have its operands from outside.
            let again = (i + 1).saturating_sub(period).max(start + 1);
            if again <= i && self.agree(i, period, again) {
                (start, i) = (again, again);
            } else if start < i && self.agree(i, period, i) {
                start = i;
            } else {
                (start, i) = (i + 1, i + 1);
            }
        }
        if i >= start + period {
            found.push(Run { start, end: i + period, period });
        }
        found
    }

    /// Cuts a run into as many copies as it has, where the fewest values go from copy to copy.
    fn cut(&self, run: Run) -> Stretch {
        let copies = run.copies();
        // How many values of the run are needed at or behind each place of it.
        let length = run.end - run.start;
        let mut last: Vec<usize> = (0..length).collect();
        for i in run.start..run.end {
            for operand in &self.items[self.order[i]].operands {
                if let Some(p) = self.place[operand.item].filter(|p| *p >= run.start) {
                    last[p - run.start] = last[p - run.start].max(i - run.start);
                }
            }
        }
        let mut change = vec![0i64; length + 2];
        for (i, last) in last.iter().enumerate() {
            change[i + 1] += 1;
            change[last + 1] -= 1;
        }
        let mut live = 0;
        let lives: Vec<i64> = change
            .iter()
            .map(|c| {
                live += c;
                live
            })
            .collect();
        let spare = length - copies * run.period;
        let offset = (0..=spare).min_by_key(|r| (lives.get(r + run.period).copied().unwrap_or(0), *r)).unwrap_or(0);
        Stretch { start: run.start + offset, period: run.period, copies }
    }
}
