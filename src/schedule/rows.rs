//! Fusion groups: nests that share outer dimensions run together, one row at a time.

use super::events::Unit;
use super::fuse::{merge, pinned};
use super::nest::{Access, Inst, Nest, ValueId};
use super::strips::{self, aligned, aligned_gather, element_bytes};
use super::{Group, GroupKind, Schedule, Step};
use crate::ir::kernel::MapDim;
use crate::ir::target::ROW_BYTES;
use crate::ir::{Graph, volume};

/// How many open groups are looked at for a nest to join.
const WINDOW: usize = 8;

#[derive(Clone)]
pub(super) struct Open {
    pub rows: Vec<u64>,
    pub nests: Vec<Nest>,
    /// Takes no further nests.
    pub closed: bool,
    /// Is it a product of matrices or the like?
    pub contraction: bool,
    /// Is its last dimension cut into strips?
    pub strips: bool,
    /// Is it all one row: vectors or small tensors, and sums of all their elements?
    pub vectors: bool,
}

/// Puts the units into groups and steps.
pub(super) fn group(schedule: &mut Schedule, graph: &Graph, units: Vec<Unit>) {
    if schedule.level.fuses() {
        fused(schedule, graph, units);
    } else {
        for unit in units {
            match unit {
                Unit::Check(site) => schedule.steps.push(Step::Check(site)),
                Unit::Nest(nest) => match schedule.groups.last_mut() {
                    Some(last) if last.nodes == nest.nodes => last.nests.push(nest),
                    _ => {
                        schedule.steps.push(Step::Run(schedule.groups.len()));
                        let nodes = nest.nodes.clone();
                        let nests = vec![nest];
                        schedule.groups.push(Group { kind: GroupKind::Single, nodes, nests, strip: None });
                    }
                },
            }
        }
    }
}

fn fused(schedule: &mut Schedule, graph: &Graph, units: Vec<Unit>) {
    let mut open: Vec<Open> = Vec::new();
    let mut group_of: Vec<Option<usize>> = vec![None; schedule.values.len()];
    // Checks, each with the number of groups before it.
    let mut checks: Vec<(usize, usize)> = Vec::new();
    // Groups before it run before the last check.
    let mut barrier = 0;
    for unit in units {
        let nest = match unit {
            Unit::Check(site) => {
                barrier = open.len();
                checks.push((barrier, site));
                continue;
            }
            Unit::Nest(nest) => nest,
        };
        let earliest = nest.operands().into_iter().fold(barrier, |earliest, v| {
            let root = schedule.root(v);
            let after = |g: usize| if root == v { g } else { g + 1 };
            group_of[root.index()].map_or(earliest, |g| earliest.max(after(g)))
        });
        let contraction = is_contraction(schedule, &nest);
        // Nor do points that depend on each other share their rows.
        let alone = contraction || nest.sequence.is_some();
        let joined = (earliest.max(open.len().saturating_sub(WINDOW))..open.len())
            .filter(|_| !alone)
            .find_map(|g| Some((g, common_rows(schedule, &open[g], &nest)?)));
        let g = match joined {
            Some((g, shared)) => {
                open[g].share(&shared);
                g
            }
            None => {
                let rows = nest.domain[..parallel_prefix(&nest)].to_vec();
                open.push(Open { rows, nests: Vec::new(), closed: alone, contraction, strips: false, vectors: false });
                open.len() - 1
            }
        };
        for r in &nest.results {
            group_of[r.value.index()] = Some(g);
        }
        open[g].nests.push(nest);
    }
    // No group crosses a check.
    let mut rest = open;
    let mut open: Vec<Open> = Vec::new();
    let mut taken = 0;
    for (before, site) in checks {
        let behind = rest.split_off(before - taken);
        taken = before;
        let first = open.len();
        open.extend(super::reunite::reunite(schedule, std::mem::replace(&mut rest, behind)));
        schedule.steps.extend((first..open.len()).map(Step::Run));
        schedule.steps.push(Step::Check(site));
    }
    let first = open.len();
    open.extend(super::reunite::reunite(schedule, rest));
    schedule.steps.extend((first..open.len()).map(Step::Run));

    for (g, group) in open.iter().enumerate() {
        for r in group.nests.iter().flat_map(|n| &n.results) {
            group_of[r.value.index()] = Some(g);
        }
    }
    let mut kept = pinned(schedule, graph);
    for (g, group) in open.iter().enumerate() {
        for v in group.nests.iter().flat_map(Nest::operands) {
            if group_of[v.index()] != Some(g) {
                kept[v.index()] = true;
            }
        }
    }
    schedule.groups = open.into_iter().map(|g| finish(schedule, g, &kept)).collect();
}

/// Merges the nests of a group where one traversal can do the work of two, and names its kind.
fn finish(schedule: &Schedule, mut group: Open, kept: &[bool]) -> Group {
    // Nests that are all of the row's rank have no work inside a row: they are one plain traversal.
    let flat = !group.strips && group.nests.iter().all(|n| n.domain.len() == group.rows.len());
    let mut rows = if flat { Vec::new() } else { group.rows };
    if let (true, [nest]) = (group.contraction, &mut group.nests[..]) {
        (*nest, rows) = contraction(nest);
    }
    let mut nests: Vec<Nest> = Vec::new();
    for nest in group.nests {
        match merge_target(&nests, &nest) {
            Some(t) => merge(&mut nests[t], &nest),
            None => nests.push(nest),
        }
    }
    let used: Vec<ValueId> = nests.iter().flat_map(Nest::operands).collect();
    for nest in &mut nests {
        nest.results.retain(|r| kept[r.value.index()] || used.contains(&r.value));
    }
    nests.retain(|n| !n.results.is_empty());
    let nests: Vec<Nest> = nests.iter().map(Nest::compact).collect();
    let mut nodes: Vec<_> = nests.iter().flat_map(|n| n.nodes.iter().copied()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    // A sum of rows is worth strips: threads share them.
    let sum = |n: &Nest| !n.is_map() && n.sequence.is_none();
    let alone = !group.contraction && rows.is_empty() && matches!(&nests[..], [nest] if sum(nest));
    let strip = (group.strips || alone).then(|| strips::cut(schedule, &nests, rows.len())).flatten();
    let strip = strip.filter(|s| group.strips || s.count() > 1);
    rows.extend(strip.map(|s| s.count()));
    // A reduction alone is worth rows too: it accumulates in a register.
    let kind = if (!rows.is_empty() || group.vectors) && (nests.len() > 1 || nests.iter().any(|n| !n.is_map())) {
        GroupKind::Rows(rows)
    } else if nodes.len() > 1 {
        GroupKind::Loops
    } else {
        GroupKind::Single
    };
    Group { kind, nodes, nests, strip }
}

/// Puts the dimension along which most operands are read in order innermost: the last one of the result (each step adds a
/// multiple of a row of one operand to a row of the result), or the last reduced one (each step is a dot product).
/// Elements of the result are summed up in the same order either way. Returns the rows too.
fn contraction(nest: &Nest) -> (Nest, Vec<u64>) {
    let rows = parallel_prefix(nest);
    let whole = || (nest.clone(), nest.domain[..rows].to_vec());
    let dims = nest.domain.len();
    // Parallel dimensions first, all of them in the result's order: what operators give for a product of matrices.
    if rows == 0 || rows == dims || nest.results.iter().any(|r| r.map.len() != rows) {
        return whole();
    }
    let along = |d: usize| -> usize {
        let reads = nest.reads.iter().map(|r| &r.map);
        reads.filter(|m| m.last() == Some(&MapDim::Dim(d)) || !m.contains(&MapDim::Dim(d))).count()
    };
    if along(rows - 1) < along(dims - 1) {
        return whole();
    }
    let order: Vec<usize> = (0..rows - 1).chain(rows..dims).chain([rows - 1]).collect();
    (nest.reordered(&order), nest.domain[..rows - 1].to_vec())
}

/// The nest into which `b` can be merged: of the same domain, after every nest whose result `b` reads, and not reading
/// anything of it but elements at the same point.
fn merge_target(nests: &[Nest], b: &Nest) -> Option<usize> {
    const LARGEST: usize = 512;
    let operands = b.operands();
    for (i, a) in nests.iter().enumerate().rev() {
        let own: Vec<_> = a.results.iter().filter(|r| operands.contains(&r.value)).collect();
        let pointwise = own.iter().all(|r| {
            r.reduce.is_none()
                && !b.gathers.contains(&r.value)
                && b.reads.iter().filter(|x| x.value == r.value).all(|x| x.map == r.map)
        });
        let small = a.body.insts().len() + b.body.insts().len() <= LARGEST;
        if a.domain == b.domain && pointwise && small {
            return Some(i);
        }
        if !own.is_empty() {
            return None;
        }
    }
    None
}

/// How many outer dimensions are parallel, outermost in every result and in order.
fn parallel_prefix(nest: &Nest) -> usize {
    if nest.sequence.is_some() {
        return 0;
    }
    (0..nest.domain.len()).take_while(|d| nest.results.iter().all(|r| r.map.get(*d) == Some(&MapDim::Dim(*d)))).count()
}

/// A reduction that visits more points than any operand has elements (a matmul): it reuses its operands across rows,
/// so rows are the wrong order for it. One that reads nothing but its own row's elements reuses none, and one that reads the
/// same for all rows (class weights) finds it in the cache.
fn is_contraction(schedule: &Schedule, nest: &Nest) -> bool {
    let operands = nest.operands();
    let long = (0..nest.domain.len()).filter(|d| nest.domain[*d] > 1).map(MapDim::Dim);
    let (rows, inner): (Vec<MapDim>, Vec<MapDim>) = long.partition(|m| nest.results.iter().all(|r| r.map.contains(m)));
    let of_rows = |r: &Access| rows.iter().map(|d| r.map.contains(d)).collect::<Vec<bool>>();
    let sums = nest.reads.iter().filter(|r| r.map.iter().any(|m| inner.contains(m)));
    let mut kinds: Vec<Vec<bool>> = sums.map(of_rows).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let own = nest.gathers.is_empty() && (kinds.len() < 2 || kinds.iter().flatten().all(|has| *has));
    !nest.is_map()
        && nest.sequence.is_none()
        && !operands.is_empty()
        && !own
        && operands.iter().all(|v| schedule.value(*v).ty.shape.elements() < nest.points())
}

/// What the group and the nest can share, if joining them is possible and of use.
fn common_rows(schedule: &Schedule, group: &Open, nest: &Nest) -> Option<Shared> {
    shared_rows(schedule, group, nest).filter(|shared| shared.values && !shared.vectors)
}

/// What a nest has in common with a group.
pub(super) struct Shared {
    /// Outer dimensions.
    rows: usize,
    /// Does the group need strips then?
    strips: bool,
    /// Is the group one row then?
    pub vectors: bool,
    /// Does it read what the group reads or writes?
    values: bool,
}

impl Open {
    /// Gives up what the next nest does not share.
    pub fn share(&mut self, shared: &Shared) {
        self.rows.truncate(shared.rows);
        self.strips |= shared.strips;
        self.vectors |= shared.vectors;
    }
}

/// What the group and the nest can share, if joining them is possible and keeps rows small.
pub(super) fn shared_rows(schedule: &Schedule, group: &Open, nest: &Nest) -> Option<Shared> {
    if group.closed {
        return None;
    }
    let prefix = parallel_prefix(nest);
    let mut rows = group.rows.iter().zip(&nest.domain[..prefix]).take_while(|(a, b)| a == b).count();
    let produced: Vec<ValueId> = group.nests.iter().flat_map(|n| n.results.iter().map(|r| r.value)).collect();
    let (mut reads_own, mut reads_common) = (false, false);
    for access in &nest.reads {
        if produced.contains(&access.value) {
            rows = rows.min(aligned(access, rows));
            reads_own = true;
        } else {
            reads_common |= group.nests.iter().any(|n| n.reads.iter().any(|r| r.value == access.value));
        }
    }
    for inst in nest.body.insts() {
        let Inst::Gather(g, coords) = inst else { continue };
        if produced.contains(&nest.gathers[*g]) {
            rows = aligned_gather(nest, coords, rows);
            reads_own = true;
        }
    }
    let values = reads_own || reads_common;
    let inner_bytes = |n: &Nest| volume(&n.domain[rows..]).saturating_mul(element_bytes(schedule, n));
    // A group gives up outer dimensions only where its rows then still fit the cache.
    let shrinks = rows < group.rows.len() || rows < prefix;
    let fits = || group.nests.iter().chain([nest]).all(|n| inner_bytes(n) <= ROW_BYTES);
    if !group.strips && rows > 0 && (!shrinks || fits()) {
        return Some(Shared { rows, strips: false, vectors: false, values });
    }
    // The others give up something: worth it where something need not be stored.
    if let Some(rows) = strips::strip_rows(schedule, group, nest, rows) {
        return Some(Shared { rows, strips: true, vectors: false, values: reads_own });
    }
    let vectors = !group.strips && are_one_row(schedule, &group.nests, nest);
    vectors.then_some(Shared { rows: 0, strips: false, vectors: true, values: reads_own })
}

/// Are all nests over vectors of the same length, or over the same few points, or over a single one?
fn are_one_row(schedule: &Schedule, nests: &[Nest], nest: &Nest) -> bool {
    let long = |n: &Nest| n.domain.iter().copied().filter(|d| *d != 1).collect::<Vec<u64>>();
    let mut extents: Option<Vec<u64>> = None;
    nests.iter().chain([nest]).all(|n| {
        let own = long(n);
        let few = own.len() <= 1 || n.points().saturating_mul(element_bytes(schedule, n)) <= ROW_BYTES;
        few && (own.is_empty() || *extents.get_or_insert_with(|| own.clone()) == own)
    })
}
