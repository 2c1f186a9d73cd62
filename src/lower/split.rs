//! Index-set splitting: a loop in whose body one point of each row is an exception.
//!
//! The body of a fused scatter compares the index with the same element at every point of a row, and at most one point is equal.
//! Such a nest is emitted without the comparison, as if no point were; the exception is computed before the loop, which
//! may write over what it reads, and stored after it. Every element is computed by the same operations as before.

use melior::ir::Value;

use super::LowerError;
use super::builder::Builder;
use super::emit::{Emitter, load_at};
use super::gather::Gathered;
use super::nest::{Here, in_row};
use super::part::point;
use super::scalar;
use crate::ir::kernel::{CompareFn, MapDim};
use crate::schedule::{Inst, InstId, Nest, Place};

/// Points of a row from which on a comparison at each of them costs more than one exception.
const LEAST: u64 = 32;

/// What is exceptional about a point of a row.
pub(super) struct Split {
    /// The iteration dimension, the only one inside the row.
    dim: usize,
    /// The index of the exception, an I64, the same all over the row; nothing says that it is in range.
    index: InstId,
    /// By instruction: is it the comparison with that index?
    pub compares: Vec<bool>,
}

/// The exceptional point, computed.
pub(super) struct Exception<'c, 'a> {
    at: Value<'c, 'a>,
    in_range: Value<'c, 'a>,
    /// As stored, one for each result of the nest.
    values: Vec<Value<'c, 'a>>,
}

/// How to split the nest, where the first `rows` dimensions are those of its row group.
pub(super) fn split(nest: &Nest, rows: usize) -> Option<Split> {
    let mut long = (rows..nest.domain.len()).filter(|d| nest.domain[*d] != 1);
    let (Some(dim), None) = (long.next(), long.next()) else { return None };
    let everywhere = nest.results.iter().all(|r| r.map.contains(&MapDim::Dim(dim)));
    if rows == 0 || nest.domain[dim] < LEAST || !nest.is_map() || !everywhere {
        return None;
    }
    let same = same_all_over_a_row(nest, rows, dim);
    let index_of = |inst: &Inst| match inst {
        Inst::Compare(CompareFn::Eq, a, b) if *nest.body.inst(*a) == Inst::Index(dim) && same[b.index()] => Some(*b),
        Inst::Compare(CompareFn::Eq, a, b) if *nest.body.inst(*b) == Inst::Index(dim) && same[a.index()] => Some(*a),
        _ => None,
    };
    let needed = nest.body.needed(nest.roots());
    let insts = || nest.body.insts().iter().zip(&needed);
    let index = insts().find_map(|(inst, needed)| needed.then(|| index_of(inst)).flatten())?;
    let compares = insts().map(|(inst, _)| index_of(inst) == Some(index)).collect();
    Some(Split { dim, index, compares })
}

/// By instruction: does it depend on nothing that varies inside a row?
fn same_all_over_a_row(nest: &Nest, rows: usize, dim: usize) -> Vec<bool> {
    let mut same: Vec<bool> = Vec::with_capacity(nest.body.insts().len());
    for inst in nest.body.insts() {
        same.push(match inst {
            Inst::Index(d) => *d != dim,
            Inst::Input(r) => nest.reads[*r].map.iter().all(|m| in_row(nest, rows, *m)),
            Inst::Gather(..) | Inst::Previous => false,
            inst => inst.operands().iter().all(|o| same[o.index()]),
        });
    }
    same
}

impl<'c, 'a> Emitter<'c, 'a, '_> {
    /// Computes the exception. Where its index is out of range, that of the first point is taken instead, and not used.
    pub(super) fn exception(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        nest: &Nest,
        split: &Split,
        gathers: &[Gathered<'c, 'a>],
    ) -> Result<Exception<'c, 'a>, LowerError> {
        let zero = b.constant_index(0)?;
        let mut inputs = Vec::with_capacity(nest.reads.len());
        for r in &nest.reads {
            inputs.push(if r.map.iter().all(|m| in_row(nest, rows.len(), *m)) {
                self.scalar_at(b, rows.len(), r.value, &point(b, rows, &r.map)?)?
            } else {
                zero // not a part of what is computed first
            });
        }
        let mut here = Here { rows, inputs, gathers, buffers: true, inner: None, lane: None, compares: &[] };
        let index = scalar::values(b, self.schedule, nest, &[split.index], self.level, &here)?[0];
        let long = b.int_type(64);
        let (least, end) = (b.constant_int(0, long)?, b.constant_int(nest.domain[split.dim] as i64, long)?);
        let (not_below, below_end) = (b.cmpi(5, index, least)?, b.cmpi(2, index, end)?);
        let in_range = b.value("arith.andi", &[not_below, below_end], b.int_type(1), &[])?;
        let index = b.value("arith.index_cast", &[index], b.index_type(), &[])?;
        let at = b.select(in_range, index, zero, b.index_type())?;
        for (i, r) in nest.reads.iter().enumerate() {
            if !r.map.iter().all(|m| in_row(nest, rows.len(), *m)) {
                here.inputs[i] =
                    self.scalar_at(b, rows.len(), r.value, &self.place_in_row(b, rows, split, &r.map, at)?)?;
            }
        }
        here.inner = Some((rows.len()..nest.domain.len()).map(|d| if d == split.dim { at } else { zero }).collect());
        let computed = scalar::body(b, self.schedule, nest, self.level, &here)?;
        let mut values = Vec::with_capacity(computed.len());
        for (r, v) in nest.results.iter().zip(computed) {
            values.push(scalar::store(b, v, self.dtype(r.value))?);
        }
        Ok(Exception { at, in_range, values })
    }

    /// Stores the exception, after the loop over the row.
    pub(super) fn store_exception(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        nest: &Nest,
        split: &Split,
        exception: &Exception<'c, 'a>,
    ) -> Result<(), LowerError> {
        for (r, value) in nest.results.iter().zip(&exception.values) {
            let place = self.place_in_row(b, rows, split, &r.map, exception.at)?;
            let (buffer, place) = match self.row(b, rows.len(), r.value)? {
                Some(row) => (row, place.get(rows.len()..).unwrap_or_default().to_vec()),
                None => (self.whole(b, r.value)?, place),
            };
            let dtype = self.dtype(r.value);
            let there = load_at(b, buffer, true, &place, dtype)?;
            let value = b.select(exception.in_range, *value, there, b.stored(dtype))?;
            let operands: Vec<_> = [value, buffer].into_iter().chain(place).collect();
            b.op("memref.store", &operands, &[], &[])?;
        }
        Ok(())
    }

    /// The coordinates that a map leads to from the point `at` of the row.
    fn place_in_row(
        &self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        split: &Split,
        map: &[MapDim],
        at: Value<'c, 'a>,
    ) -> Result<Vec<Value<'c, 'a>>, LowerError> {
        let mut place = point(b, rows, map)?;
        for (p, m) in place.iter_mut().zip(map) {
            if *m == MapDim::Dim(split.dim) {
                *p = at;
            }
        }
        Ok(place)
    }

    /// Can a nest of this emitter be split? Its results must be in memory.
    pub(super) fn splits(&self, nest: &Nest, rows: usize) -> Option<Split> {
        let stored = nest.results.iter().all(|r| self.place(r.value) != Place::Register);
        (self.memory.is_some() && self.strip.is_none() && self.level.fuses() && stored)
            .then(|| split(nest, rows))
            .flatten()
    }
}
