//! The buffer plan: liveness, results written straight into the caller's outputs, in-place reuse, and offsets of
//! temporaries in one workspace, and of single rows in the scratch memory of a thread.

use std::cmp::Reverse;

use super::nest::{Nest, ValueId};
use super::strips::reads_own_part;
use super::{Group, GroupKind, Place, Schedule, ScheduleError, Step};
use crate::ir::Graph;
use crate::ir::kernel::MapDim;

/// Alignment of a temporary in bytes: one cache line.
const ALIGN: u64 = 64;
/// Temporaries up to which a second plan is made, which takes time in proportion to the square of their number.
const LARGEST_SORTED: usize = 1 << 12;

/// When a value is written first and needed last.
#[derive(Clone, Copy, Debug)]
struct Life {
    /// Steps.
    first: usize,
    last: usize,
    /// Within the last step: the nest that reads it last.
    last_nest: usize,
    /// Is it needed in another step than the one that writes it?
    whole: bool,
}

/// Gives every value its [`Place`] and the schedule its workspace size.
///
/// # Errors
/// [`ScheduleError::TooLarge`]
pub(super) fn plan(schedule: &mut Schedule, graph: &Graph) -> Result<(), ScheduleError> {
    outputs(schedule, graph);
    let lives = lives(schedule);
    let home = in_place(schedule, &lives);
    place(schedule, &lives, &home)
}

/// Lets the value of each output live there, or copies it where it lives elsewhere already.
fn outputs(schedule: &mut Schedule, graph: &Graph) {
    for (j, output) in graph.outputs.iter().enumerate() {
        let root = schedule.root(output.node.into());
        if schedule.value(root).place == Place::Inlined {
            schedule.values[root.index()].place = Place::Output(j);
        } else {
            schedule.steps.push(Step::Copy { from: output.node.into(), output: j });
        }
    }
}

fn lives(schedule: &Schedule) -> Vec<Option<Life>> {
    let mut lives: Vec<Option<Life>> = vec![None; schedule.values.len()];
    let touch = |lives: &mut Vec<Option<Life>>, v: ValueId, step: usize, nest: usize| {
        if let Some(life) = &mut lives[schedule.root(v).index()] {
            life.whole |= step != life.first;
            (life.last, life.last_nest) = (step, nest);
        }
    };
    for (s, step) in schedule.steps.iter().enumerate() {
        match step {
            Step::Check(site) => touch(&mut lives, schedule.sites[*site].indices, s, 0),
            Step::Copy { from, .. } => touch(&mut lives, *from, s, 0),
            Step::Run(g) => {
                for (n, nest) in schedule.groups[*g].nests.iter().enumerate() {
                    nest.operands().into_iter().for_each(|v| touch(&mut lives, v, s, n));
                    for r in &nest.results {
                        lives[r.value.index()] = Some(Life { first: s, last: s, last_nest: n, whole: false });
                    }
                }
            }
        }
    }
    lives
}

/// For each value the one in whose buffer it lives: itself, or the value that a nest writes over it while reading it
/// for the last time, element by element.
fn in_place(schedule: &Schedule, lives: &[Option<Life>]) -> Vec<ValueId> {
    let mut home: Vec<ValueId> = (0..schedule.values.len() as u32).map(ValueId).collect();
    let mut taken = vec![false; schedule.values.len()];
    let mut viewed = vec![false; schedule.values.len()];
    for v in &schedule.values {
        if let Place::View(of) = v.place {
            viewed[schedule.root(of).index()] = true;
        }
    }
    for (s, step) in schedule.steps.iter().enumerate().rev() {
        let Step::Run(g) = step else { continue };
        let group = &schedule.groups[*g];
        for (n, nest) in group.nests.iter().enumerate().rev() {
            for result in nest.results.iter().filter(|r| r.reduce.is_none()) {
                let target = schedule.value(result.value);
                // What is written over it later may be whole, and then all of the buffer is there.
                let stays = chain(&home, result.value)
                    .any(|v| schedule.value(v).place != Place::Inlined || lives[v.index()].is_some_and(|l| l.whole));
                let whole = stays || group.rows().is_empty();
                let fits = |m: &ValueId| {
                    let source = schedule.value(*m);
                    let Some(life) = lives[m.index()] else { return false };
                    source.place == Place::Inlined
                        && home[m.index()] == *m
                        && !viewed[m.index()]
                        && !viewed[result.value.index()]
                        && source.ty.dtype == target.ty.dtype
                        && source.ty.shape == target.ty.shape
                        && (life.last, life.last_nest) == (s, n)
                        && (whole || !life.whole)
                        && reads_at(nest, *m, &result.map)
                        && group
                            .nests
                            .iter()
                            .all(|other| reads_own_part(other, *m, group.outer(), group.strip.is_some()))
                };
                // A scalar of a row lives in a register.
                let by_row = matches!(group.kind, GroupKind::Rows(_));
                if by_row && !stays && elements_of_row(group, &target.ty.shape) <= 1 {
                    continue;
                }
                let source = nest.operands().into_iter().find(fits);
                if let Some(m) = source.filter(|_| !taken[result.value.index()]) {
                    taken[result.value.index()] = true;
                    home[m.index()] = result.value;
                }
            }
        }
    }
    // Chains: the targets are written later, so their own homes are final.
    for i in 0..home.len() {
        home[i] = chain(&home, home[i]).last().unwrap_or(home[i]);
    }
    home
}

/// A value, what is written over it, and so on.
fn chain(home: &[ValueId], value: ValueId) -> impl Iterator<Item = ValueId> {
    std::iter::successors(Some(value), |v| Some(home[v.index()]).filter(|next| next != v))
}

/// Does the nest read `m` only with this map?
fn reads_at(nest: &Nest, m: ValueId, map: &[MapDim]) -> bool {
    !nest.gathers.contains(&m) && nest.reads.iter().filter(|r| r.value == m).all(|r| r.map == map)
}

/// Elements of one row of a value of `shape`.
fn elements_of_row(group: &Group, shape: &[u64]) -> u64 {
    group.part(shape).iter().product()
}

/// A stretch of memory that is needed from `first` to `last`.
struct Stretch {
    value: ValueId,
    first: usize,
    last: usize,
    bytes: u64,
    row: bool,
}

impl Stretch {
    /// What it takes.
    fn room(&self) -> u64 {
        self.bytes.next_multiple_of(ALIGN)
    }
}

fn place(schedule: &mut Schedule, lives: &[Option<Life>], home: &[ValueId]) -> Result<(), ScheduleError> {
    let mut stretches: Vec<Option<Stretch>> = (0..schedule.values.len()).map(|_| None).collect();
    for (s, step) in schedule.steps.iter().enumerate() {
        let Step::Run(g) = step else { continue };
        let group = &schedule.groups[*g];
        let by_row = matches!(group.kind, GroupKind::Rows(_));
        for value in group.nests.iter().flat_map(|n| n.results.iter().map(|r| r.value)) {
            let at = home[value.index()];
            let (Some(life), v) = (lives[value.index()], &schedule.values[value.index()]) else { continue };
            if schedule.values[at.index()].place != Place::Inlined {
                continue;
            }
            let row = by_row && !life.whole;
            let elements = if row { elements_of_row(group, &v.ty.shape) } else { v.ty.shape.elements() };
            if row && elements == 1 {
                schedule.values[value.index()].place = Place::Register;
                continue;
            }
            // The only row is no matter of each thread.
            let row = row && !group.rows().is_empty();
            let new = || Stretch { value: at, first: s, last: life.last, bytes: 0, row: true };
            let stretch = stretches[at.index()].get_or_insert_with(new);
            stretch.first = stretch.first.min(s);
            stretch.last = stretch.last.max(life.last);
            stretch.row &= row;
            stretch.bytes = stretch.bytes.max(elements * v.ty.dtype.size());
        }
    }
    let (rows, whole): (Vec<Stretch>, Vec<Stretch>) = stretches.into_iter().flatten().partition(|s| s.row);
    schedule.least = most_at_one_time(&whole);
    schedule.workspace = offsets(schedule, whole, Place::Slot)?;
    schedule.scratch = offsets(schedule, rows, Place::Row)?;
    for (i, at) in home.iter().enumerate() {
        if at.index() != i {
            schedule.values[i].place = schedule.values[at.index()].place;
        }
    }
    Ok(())
}

/// Gives each stretch a place in one space of memory, and returns the size of the space.
fn offsets(
    schedule: &mut Schedule,
    mut stretches: Vec<Stretch>,
    place: impl Fn(u64) -> Place,
) -> Result<u64, ScheduleError> {
    stretches.sort_by_key(|s| (s.first, Reverse(s.bytes), s.value));
    let (size, offsets) = plan_offsets(&stretches)?;
    for (stretch, offset) in stretches.iter().zip(offsets) {
        schedule.values[stretch.value.index()].place = place(offset);
    }
    Ok(size)
}

/// Offsets of stretches that stand in the order of their first use, and the size of the space. None has a plan that is
/// always best; the better of two is taken. First fit in the order of use leaves gaps where something large comes late;
/// the largest first does not.
fn plan_offsets(stretches: &[Stretch]) -> Result<(u64, Vec<u64>), ScheduleError> {
    let mut order: Vec<usize> = (0..stretches.len()).collect();
    let by_use = first_fit(stretches, &order, true);
    let least = most_at_one_time(stretches);
    if stretches.len() > LARGEST_SORTED || by_use.as_ref().is_ok_and(|(size, _)| *size == least) {
        return by_use;
    }
    order.sort_by_key(|i| Reverse(stretches[*i].bytes));
    match (by_use, first_fit(stretches, &order, false)) {
        (Ok(a), Ok(b)) => Ok(if b.0 < a.0 { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// The most bytes that are needed at one time: no plan takes less.
fn most_at_one_time(stretches: &[Stretch]) -> u64 {
    let mut events: Vec<(usize, bool, u64)> = Vec::with_capacity(2 * stretches.len());
    for s in stretches {
        events.push((s.first, true, s.room()));
        events.push((s.last + 1, false, s.room()));
    }
    // What ends makes room for what begins.
    events.sort_unstable();
    let (mut now, mut most) = (0u64, 0);
    for (_, begins, bytes) in events {
        now = if begins { now.saturating_add(bytes) } else { now.saturating_sub(bytes) };
        most = most.max(now);
    }
    most
}

/// Places one after the other at the lowest offset that is free while it is needed. `in_time`: no later one is needed
/// before.
fn first_fit(stretches: &[Stretch], order: &[usize], in_time: bool) -> Result<(u64, Vec<u64>), ScheduleError> {
    let mut offsets = vec![0; stretches.len()];
    let mut size = 0;
    // By offset.
    let mut placed: Vec<(u64, u64, usize)> = Vec::new();
    for i in order {
        let stretch = &stretches[*i];
        if in_time {
            placed.retain(|(_, _, other)| stretches[*other].last >= stretch.first);
        }
        let bytes = stretch.room();
        let mut offset = 0u64;
        for (start, end, other) in &placed {
            let other = &stretches[*other];
            if other.last < stretch.first || stretch.last < other.first {
                continue;
            }
            if offset + bytes <= *start {
                break;
            }
            offset = offset.max(*end);
        }
        // Each alone is below 2^63, so this does not overflow.
        let end = offset + bytes;
        if end > i64::MAX as u64 {
            return Err(ScheduleError::TooLarge);
        }
        let place = placed.partition_point(|(start, ..)| *start < offset);
        placed.insert(place, (offset, end, *i));
        size = size.max(end);
        offsets[*i] = offset;
    }
    Ok((size, offsets))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretches(seed: u64, count: usize) -> Vec<Stretch> {
        let mut state = seed;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut all: Vec<Stretch> = (0..count)
            .map(|i| {
                let first = next(40) as usize;
                let last = first + next(12) as usize;
                Stretch { value: ValueId(i as u32), first, last, bytes: 1 + next(16) * next(1000), row: false }
            })
            .collect();
        all.sort_by_key(|s| (s.first, Reverse(s.bytes), s.value));
        all
    }

    #[test]
    fn what_is_needed_at_one_time_does_not_overlap_and_little_is_lost() {
        let (mut sizes, mut least) = (0, 0);
        for seed in 0..200 {
            let all = stretches(seed, 1 + seed as usize % 60);
            let (size, offsets) = plan_offsets(&all).unwrap();
            for (i, (a, at)) in all.iter().zip(&offsets).enumerate() {
                assert!(at + a.bytes <= size && at % ALIGN == 0);
                for (b, other) in all[..i].iter().zip(&offsets) {
                    let together = a.first <= b.last && b.first <= a.last;
                    assert!(!together || at + a.bytes <= *other || other + b.bytes <= *at, "seed {seed}");
                }
            }
            let bound = most_at_one_time(&all);
            assert!(size >= bound, "seed {seed}");
            sizes += size;
            least += bound;
        }
        assert!(sizes as f64 <= 1.06 * least as f64, "{sizes} bytes instead of {least}");
    }
}
