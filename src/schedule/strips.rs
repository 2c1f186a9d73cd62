//! What a nest reads of its own row, and the cut of the last dimension into strips of lanes.

use super::nest::{Access, Inst, Nest, ValueId};
use super::rows::Open;
use super::{Schedule, Strip};
use crate::ir::kernel::MapDim;
use crate::ir::target::ROW_BYTES;
use crate::ir::volume;

/// Lanes of the narrowest strip: shorter stretches of memory are slow to walk through.
const NARROWEST: u64 = 128;
/// Lanes of the widest strip. Its accumulators fit a first-level cache.
const WIDEST: u64 = 1024;
/// Widths are multiples of it.
const STEP: u64 = 32;

/// How many of the first `rows` dimensions each row reads only its own part along: coordinate `i` is dimension `i`, and no
/// later coordinate is.
pub(super) fn aligned(access: &Access, rows: usize) -> usize {
    let map = &access.map;
    (0..rows).take_while(|i| map.iter().positions(MapDim::Dim(*i)).eq([*i])).count()
}

/// The same for a gather at `coords`.
pub(super) fn aligned_gather(nest: &Nest, coords: &[super::nest::InstId], rows: usize) -> usize {
    (0..rows).take_while(|i| coords.get(*i).is_some_and(|c| *nest.body.inst(*c) == Inst::Index(*i))).count()
}

/// The places of an item.
trait Positions<T> {
    fn positions(self, item: T) -> impl Iterator<Item = usize>;
}

impl<'a, I: Iterator<Item = &'a MapDim>> Positions<MapDim> for I {
    fn positions(self, item: MapDim) -> impl Iterator<Item = usize> {
        self.enumerate().filter(move |(_, m)| **m == item).map(|(i, _)| i)
    }
}

/// Does the nest read of `m` only the part that belongs to its own row: the first `outer` dimensions, and with strips the
/// last one?
pub(super) fn reads_own_part(nest: &Nest, m: ValueId, outer: usize, strips: bool) -> bool {
    let reads = nest.reads.iter().filter(|r| r.value == m).all(|r| aligned(r, outer) == outer);
    let gathers = nest.body.insts().iter().all(|inst| match inst {
        Inst::Gather(g, coords) if nest.gathers[*g] == m => aligned_gather(nest, coords, outer) == outer,
        _ => true,
    });
    reads && gathers && (!strips || reads_own_lane(nest, m))
}

/// Is the last coordinate, and no other, that dimension?
fn is_last(map: &[MapDim], dim: usize) -> bool {
    map.len().checked_sub(1).is_some_and(|last| map.iter().positions(MapDim::Dim(dim)).eq([last]))
}

/// Does the nest read `m` at its own lane only?
fn reads_own_lane(nest: &Nest, m: ValueId) -> bool {
    let Some(lane) = nest.domain.len().checked_sub(1) else { return false };
    let own = |map: &[MapDim]| is_last(map, lane);
    let reads = nest.reads.iter().filter(|r| r.value == m).all(|r| own(&r.map));
    let gathers = nest.body.insts().iter().all(|inst| match inst {
        Inst::Gather(g, coords) if nest.gathers[*g] == m => {
            coords.last().is_some_and(|c| *nest.body.inst(*c) == Inst::Index(lane))
        }
        _ => true,
    });
    reads && gathers
}

/// The extent of the nest's last dimension, if it is parallel and the last one of every result.
fn lanes(nest: &Nest) -> Option<u64> {
    let last = nest.domain.len().checked_sub(1)?;
    let own = |map: &[MapDim]| is_last(map, last);
    let extent = nest.domain[last];
    (extent > 1 && nest.sequence.is_none() && nest.results.iter().all(|r| own(&r.map))).then_some(extent)
}

/// Bytes of one lane of the nest below its first `outer` dimensions.
fn lane_bytes(schedule: &Schedule, nest: &Nest, outer: usize) -> u64 {
    let inner = nest.domain.get(outer..nest.domain.len().saturating_sub(1)).unwrap_or_default();
    volume(inner).saturating_mul(element_bytes(schedule, nest))
}

/// Bytes of the largest element that the nest writes.
pub(super) fn element_bytes(schedule: &Schedule, nest: &Nest) -> u64 {
    nest.results.iter().map(|r| schedule.value(r.value).ty.dtype.size()).max().unwrap_or(8)
}

/// How many outer dimensions the group and the nest can share if their last dimension is cut into strips: at most `rows`.
/// `None` if a lane would need what other lanes compute, or the group would lose rows that fit the cache.
pub(super) fn strip_rows(schedule: &Schedule, group: &Open, nest: &Nest, rows: usize) -> Option<usize> {
    let all = || group.nests.iter().chain([nest]);
    let extent = lanes(nest)?;
    if !all().all(|n| lanes(n) == Some(extent)) {
        return None;
    }
    let produced = || all().flat_map(|n| n.results.iter().map(|r| r.value));
    if !all().all(|n| n.operands().into_iter().all(|v| !produced().any(|p| p == v) || reads_own_lane(n, v))) {
        return None;
    }
    // The lanes are no row dimension.
    let rows = all().fold(rows, |rows, n| rows.min(n.domain.len() - 1));
    let loses = rows < group.rows.len() && group.nests.iter().any(|n| !n.is_map());
    let fits = |n: &Nest| lane_bytes(schedule, n, rows).saturating_mul(NARROWEST.min(extent)) <= ROW_BYTES;
    (!loses || all().all(fits)).then_some(rows)
}

/// The strips of a group whose rows fix `outer` dimensions; `None` if it has none to cut.
pub(super) fn cut(schedule: &Schedule, nests: &[Nest], outer: usize) -> Option<Strip> {
    let extent = lanes(nests.first()?)?;
    let lane = nests.iter().map(|n| lane_bytes(schedule, n, outer)).max().unwrap_or(1).max(1);
    let deep = nests.iter().filter(|n| volume(&n.domain[outer.min(n.domain.len() - 1)..n.domain.len() - 1]) > 1);
    // What is walked through more than once is to stay in the cache, beside what else is read and written there.
    let width = if deep.count() > 1 { (ROW_BYTES / 4 / lane).clamp(NARROWEST, WIDEST) / STEP * STEP } else { WIDEST };
    // Strips of one width are simpler code.
    let even = (width / 2 / STEP..=width / STEP).rev().map(|n| n * STEP).find(|w| *w > 0 && extent % w == 0);
    Some(Strip { extent, width: even.unwrap_or(width).min(extent) })
}
