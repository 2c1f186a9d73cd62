//! The buffer plan: liveness, results written straight into the caller's outputs, in-place reuse, and offsets of
//! temporaries in one workspace, and of single rows in the scratch memory of a thread.

use super::nest::{Nest, ValueId};
use super::strips::reads_own_part;
use super::{Group, GroupKind, Place, Schedule, ScheduleError, Step};
use crate::ir::Graph;
use crate::ir::kernel::MapDim;

/// Alignment of a temporary in bytes: one cache line.
const ALIGN: u64 = 64;

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
                let whole = group.rows().is_empty()
                    || target.place != Place::Inlined
                    || lives[result.value.index()].is_some_and(|l| l.whole);
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
                if !(whole || elements_of_row(group, &target.ty.shape) > 1) {
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
        let mut at = home[i];
        while home[at.index()] != at {
            at = home[at.index()];
        }
        home[i] = at;
    }
    home
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
            let new = || Stretch { value: at, first: s, last: life.last, bytes: 0, row: true };
            let stretch = stretches[at.index()].get_or_insert_with(new);
            stretch.first = stretch.first.min(s);
            stretch.last = stretch.last.max(life.last);
            stretch.row &= row;
            stretch.bytes = stretch.bytes.max(elements * v.ty.dtype.size());
        }
    }
    let (rows, whole): (Vec<Stretch>, Vec<Stretch>) = stretches.into_iter().flatten().partition(|s| s.row);
    schedule.workspace = offsets(schedule, whole, Place::Slot)?;
    schedule.scratch = offsets(schedule, rows, Place::Row)?;
    for (i, at) in home.iter().enumerate() {
        if at.index() != i {
            schedule.values[i].place = schedule.values[at.index()].place;
        }
    }
    Ok(())
}

/// Gives each stretch a place in one space of memory, in the order of first use, and returns the size of the space.
fn offsets(
    schedule: &mut Schedule,
    mut order: Vec<Stretch>,
    place: impl Fn(u64) -> Place,
) -> Result<u64, ScheduleError> {
    order.sort_by_key(|s| (s.first, std::cmp::Reverse(s.bytes), s.value));
    let mut size = 0;
    // Stretches that are still needed, by offset.
    let mut active: Vec<(u64, u64, usize)> = Vec::new();
    for stretch in order {
        active.retain(|(_, _, last)| *last >= stretch.first);
        let bytes = stretch.bytes.next_multiple_of(ALIGN);
        let mut offset = 0;
        let mut at = 0;
        for (start, end, _) in &active {
            if offset + bytes <= *start {
                break;
            }
            offset = *end;
            at += 1;
        }
        // Each alone is below 2^63, so this does not overflow.
        if offset + bytes > i64::MAX as u64 {
            return Err(ScheduleError::TooLarge);
        }
        active.insert(at, (offset, offset + bytes, stretch.last));
        size = size.max(offset + bytes);
        schedule.values[stretch.value.index()].place = place(offset);
    }
    Ok(size)
}
