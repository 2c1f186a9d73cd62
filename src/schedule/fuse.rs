//! Inlining of producers into their consumers.
//!
//! A value that is only a map of others (elementwise, broadcast, transpose, scatter, gather) is computed where it is
//! used, and never stored, if that costs no more than storing it: always if it computes nothing, else if it is
//! evaluated about once per element, or if it is cheap and evaluated about once per element and consumer.

use super::Schedule;
use super::events::Unit;
use super::nest::{Coordinate, InstId, Nest, NestResult, ValueId};
use crate::ir::Graph;
use crate::ir::kernel::MapDim;

/// Arithmetic instructions up to which a value is recomputed rather than stored.
const CHEAP: usize = 6;
/// Instructions up to which a nest grows.
const LARGEST: usize = 512;
/// Instructions up to which a nest is copied into several consumers.
const LARGEST_COPIED: usize = 48;

/// The values that must exist in memory: outputs, checked indices, and what is seen through a view.
pub(super) fn pinned(schedule: &Schedule, graph: &Graph) -> Vec<bool> {
    let mut pinned = vec![false; schedule.values.len()];
    let mut pin = |v: ValueId| pinned[schedule.root(v).index()] = true;
    for o in &graph.outputs {
        pin(o.node.into());
    }
    for s in &schedule.sites {
        pin(s.indices);
    }
    for (i, v) in schedule.values.iter().enumerate() {
        if matches!(v.place, super::Place::View(_)) {
            pin(ValueId(i as u32));
        }
    }
    pinned
}

/// How a value is used by nests, before inlining.
#[derive(Clone, Copy, Default)]
struct Uses {
    consumers: usize,
    /// Sum and maximum over the consumers of how often each evaluates it.
    total: u64,
    most: u64,
}

/// Inlines producers and drops the nests nobody needs any more.
pub(super) fn inline(schedule: &Schedule, graph: &Graph, units: Vec<Unit>) -> Vec<Unit> {
    let pinned = pinned(schedule, graph);
    let mut uses = vec![Uses::default(); schedule.values.len()];
    for unit in &units {
        if let Unit::Nest(nest) = unit {
            for v in nest.operands() {
                let u = &mut uses[v.index()];
                u.consumers += 1;
                u.total = u.total.saturating_add(nest.points());
                u.most = u.most.max(nest.points());
            }
        }
    }
    let mut inlined: Vec<Option<Nest>> = vec![None; schedule.values.len()];
    let mut out = Vec::with_capacity(units.len());
    for unit in units {
        let nest = match unit {
            Unit::Nest(nest) => resolve(&nest, &inlined),
            check @ Unit::Check(_) => {
                out.push(check);
                continue;
            }
        };
        let value = nest.results[0].value;
        let elements = schedule.value(value).ty.shape.elements();
        let trivial = nest.work().0 == 0;
        if should_inline(&nest, elements, uses[value.index()]) {
            let keep = pinned[value.index()];
            // A pinned value is stored anyway: read it unless computing it is free.
            if !keep || trivial {
                inlined[value.index()] = Some(nest.clone());
            }
            if !keep {
                continue;
            }
        }
        out.push(Unit::Nest(nest));
    }
    out
}

fn should_inline(nest: &Nest, elements: u64, uses: Uses) -> bool {
    let [result] = &nest.results[..] else { return false };
    let covered = (0..nest.domain.len()).all(|d| nest.domain[d] == 1 || result.map.contains(&MapDim::Dim(d)));
    if !nest.is_map() || !covered || uses.consumers == 0 {
        return false;
    }
    let (work, expensive) = nest.work();
    let size = nest.body.insts().len();
    if work == 0 {
        return true;
    }
    let about_once = |evaluations: u64| evaluations <= elements.saturating_add(elements / 4);
    if uses.consumers > 1 && size > LARGEST_COPIED || size > LARGEST {
        return false;
    }
    about_once(uses.total) || expensive == 0 && work <= CHEAP && about_once(uses.most)
}

/// The nest with every inlined operand replaced by its computation.
fn resolve(nest: &Nest, inlined: &[Option<Nest>]) -> Nest {
    let mut out = Nest::empty(nest.node, nest.domain.clone());
    let dims: Vec<Coordinate> = (0..nest.domain.len()).map(Coordinate::Dim).collect();
    let roots = out.import(nest, &nest.roots(), &dims, &mut |out, value, coords| match &inlined[value.index()] {
        Some(producer) => expand(out, producer, coords),
        None => out.read_at(value, coords),
    });
    out.write_as(nest, &roots);
    out
}

/// Computes one element of the map nest `producer` inside `out`.
fn expand(out: &mut Nest, producer: &Nest, coords: &[Coordinate]) -> InstId {
    let result = &producer.results[0];
    let dims: Vec<Coordinate> = (0..producer.domain.len())
        .map(|d| {
            let place = result.map.iter().position(|m| *m == MapDim::Dim(d));
            place.map_or(Coordinate::Zero, |p| coords[p])
        })
        .collect();
    let roots = out.import(producer, &[result.root], &dims, &mut |out, value, coords| out.read_at(value, coords));
    roots[0]
}

/// Merges nest `b` into nest `a` of the same domain: one traversal writes the results of both. Results of `a` that `b`
/// reads at its own point are used as they are computed. The caller has checked that this is possible.
pub(super) fn merge(a: &mut Nest, b: &Nest) {
    let dims: Vec<Coordinate> = (0..a.domain.len()).map(Coordinate::Dim).collect();
    let own: Vec<(ValueId, InstId)> = a.results.iter().map(|r| (r.value, r.root)).collect();
    let roots: Vec<InstId> = b.results.iter().map(|r| r.root).collect();
    let roots = a.import(b, &roots, &dims, &mut |a, value, coords| match own.iter().find(|(v, _)| *v == value) {
        Some((_, root)) => *root,
        None => a.read_at(value, coords),
    });
    for (r, root) in b.results.iter().zip(roots) {
        a.results.push(NestResult { root, ..r.clone() });
    }
}
