//! Emission of nests whose points are visited in order: scans and scatters, as nests of `scf.for` over loads and stores.
//!
//! No `linalg.generic` says them: its points must not depend on each other. Here the loops are sequential by construction, no two
//! threads share one, and a sum is added up in the order of its terms at every level.

use melior::ir::{BlockRef, Value};

use super::LowerError;
use super::builder::{Builder, Operand, argument, refused, result_of};
use super::emit::{Emitter, load_at};
use super::gather::Gathered;
use super::nest::fill;
use super::scalar::{self, Point};
use crate::ir::kernel::{MapDim, identity};
use crate::ir::{DType, Level};
use crate::schedule::{Inst, Nest, NestResult, Sequence};

/// A point of the nest, inside all its loops.
struct Here<'s, 'c, 'a> {
    /// The iteration indices.
    indices: &'s [Value<'c, 'a>],
    /// One element for each read; `None` where it is not needed.
    inputs: Vec<Option<Value<'c, 'a>>>,
    gathers: &'s [Gathered<'c, 'a>],
    buffers: bool,
    /// What is written, and where this point's element is: for scans.
    out: Value<'c, 'a>,
    place: Vec<Value<'c, 'a>>,
    /// The coordinate of `place` along which it scans, and the dtype.
    scan: Option<(usize, DType)>,
}

impl<'c, 'a> Point<'c, 'a> for Here<'_, 'c, 'a> {
    fn input(&self, _: &Builder<'c, 'a>, i: usize) -> Result<Value<'c, 'a>, LowerError> {
        self.inputs.get(i).copied().flatten().ok_or_else(|| refused("a read without a source"))
    }

    fn index(&self, _: &Builder<'c, 'a>, d: usize) -> Result<Value<'c, 'a>, LowerError> {
        self.indices.get(d).copied().ok_or_else(|| refused("an index without a loop"))
    }

    /// At the first place, the element there is read and not used.
    fn previous(&self, b: &Builder<'c, 'a>) -> Result<Value<'c, 'a>, LowerError> {
        let (axis, dtype) = self.scan.ok_or_else(|| refused("a point before this one, where nothing scans"))?;
        let here = self.place[axis];
        let (zero, one) = (b.constant_index(0)?, b.constant_index(1)?);
        let first = b.cmpi(0, here, zero)?;
        let before = b.value("arith.subi", &[here, one], b.index_type(), &[])?;
        let mut at = self.place.clone();
        at[axis] = b.select(first, zero, before, b.index_type())?;
        let before = load_at(b, self.out, self.buffers, &at, dtype)?;
        let nothing = scalar::store(b, scalar::constant(b, 0.0, dtype)?, dtype)?;
        b.select(first, nothing, before, b.stored(dtype))
    }

    fn narrow_indices(&self) -> bool {
        self.buffers
    }

    fn outcome(&self, _: usize) -> Option<bool> {
        None
    }

    fn gather(&self, b: &Builder<'c, 'a>, i: usize, at: &[Value<'c, 'a>]) -> Result<Value<'c, 'a>, LowerError> {
        self.gathers.get(i).ok_or_else(|| refused("a gather without a source"))?.at(b, at, 0, self.buffers)
    }
}

/// A loop that is open: its block, and the operation on tensors whose result it gives.
struct Open<'c, 'a> {
    block: BlockRef<'c, 'a>,
    op: melior::ir::OperationRef<'c, 'a>,
}

impl<'c, 'a> Emitter<'c, 'a, '_> {
    /// Emits a scan or a scatter.
    pub fn sequence(&mut self, b: &Builder<'c, 'a>, nest: &Nest) -> Result<(), LowerError> {
        let ([result], Some(sequence)) = (&nest.results[..], nest.sequence) else {
            return Err(refused("points in order with several results"));
        };
        // Buffers without elements are never touched.
        let buffers = self.memory.is_some();
        if buffers && self.shape(result.value).elements() == 0 {
            return Ok(());
        }
        let start = self.start(b, result)?;
        if buffers && nest.points() == 0 {
            return Ok(());
        }
        // What does not depend on the point stands outside the loops.
        let needed = nest.body.needed(nest.roots());
        let used = |i: usize| nest.body.insts().iter().zip(&needed).any(|(inst, n)| *n && *inst == Inst::Input(i));
        let mut wholes = Vec::with_capacity(nest.reads.len());
        for (i, read) in nest.reads.iter().enumerate() {
            wholes.push(if used(i) { Some(self.whole(b, read.value)?) } else { None });
        }
        let gathers = self.gathers(b, &[], nest)?;
        let (zero, one) = (b.constant_index(0)?, b.constant_index(1)?);
        let extents = nest.domain.iter().map(|d| b.constant_index(*d)).collect::<Result<Vec<_>, _>>()?;

        let mut open: Vec<Open<'c, 'a>> = Vec::with_capacity(nest.domain.len());
        let mut indices = Vec::with_capacity(nest.domain.len());
        let mut out = start;
        let mut inner = *b;
        for extent in extents {
            let mut operands = vec![zero, extent, one];
            let mut arguments = vec![b.index_type()];
            let mut results = Vec::new();
            if !buffers {
                let ty = self.tensor_type(b, result);
                operands.push(out);
                arguments.push(ty);
                results.push(ty);
            }
            let (op, block) = inner.region_op("scf.for", &operands, &results, &[], &arguments)?;
            indices.push(argument(block, 0)?);
            if !buffers {
                out = argument(block, 1)?;
            }
            inner = inner.at(block);
            open.push(Open { block, op });
        }

        let at = |map: &[MapDim]| -> Result<Vec<Value<'c, 'a>>, LowerError> {
            map.iter()
                .map(|m| match m {
                    MapDim::Dim(d) => indices.get(*d).copied().ok_or_else(|| refused("an index without a loop")),
                    MapDim::Zero => Ok(zero),
                })
                .collect()
        };
        let mut inputs = Vec::with_capacity(wholes.len());
        for (read, whole) in nest.reads.iter().zip(&wholes) {
            inputs.push(match whole {
                Some(whole) => Some(load_at(&inner, *whole, buffers, &at(&read.map)?, self.dtype(read.value))?),
                None => None,
            });
        }
        let dtype = self.dtype(result.value);
        let mut place = at(&result.map)?;
        let scan = match sequence {
            Sequence::Scan(d) => {
                let axis = result.map.iter().position(|m| *m == MapDim::Dim(d));
                Some((axis.ok_or_else(|| refused("a scan along what is not written"))?, dtype))
            }
            Sequence::Scatter(_) => None,
        };
        let here = Here { indices: &indices, inputs, gathers: &gathers, buffers, out, place: place.clone(), scan };
        let values = scalar::body(&inner, self.schedule, nest, self.level, &here)?;
        let mut value = *values.first().ok_or_else(|| refused("an empty body"))?;
        if let (Sequence::Scatter(_), Some(row)) = (sequence, values.get(1)) {
            place.insert(0, inner.value("arith.index_cast", &[*row], b.index_type(), &[])?);
        }
        if let Some(combine) = result.reduce {
            let before = scalar::load(&inner, load_at(&inner, out, buffers, &place, dtype)?, dtype)?;
            // In the order of the terms at every level.
            value = scalar::combine(&inner, combine, before, value, dtype, Level::O0)?;
        }
        let stored = scalar::store(&inner, value, dtype)?;
        let operands: Vec<_> = [stored, out].into_iter().chain(place).collect();
        if buffers {
            inner.op("memref.store", &operands, &[], &[])?;
        } else {
            out = inner.value("tensor.insert", &operands, self.tensor_type(b, result), &[])?;
        }
        for Open { block, op } in open.into_iter().rev() {
            let yielded = if buffers { Vec::new() } else { vec![out] };
            b.at(block).op("scf.yield", &yielded, &[], &[])?;
            if !buffers {
                out = result_of(op, 0)?;
            }
        }
        if !buffers {
            self.set_tensor(result.value, out);
        }
        Ok(())
    }

    fn tensor_type(&self, b: &Builder<'c, 'a>, result: &NestResult) -> melior::ir::Type<'c> {
        b.tensor(self.shape(result.value), b.stored(self.dtype(result.value)))
    }

    /// What is written to, holding the neutral element where results are combined.
    fn start(&mut self, b: &Builder<'c, 'a>, result: &NestResult) -> Result<Value<'c, 'a>, LowerError> {
        let dtype = self.dtype(result.value);
        let ty = self.tensor_type(b, result);
        let value = match self.memory {
            Some(_) => self.whole(b, result.value)?,
            None => b.value("tensor.empty", &[], ty, &[])?,
        };
        let Some(combine) = result.reduce else { return Ok(value) };
        let neutral = scalar::store(b, scalar::neutral(b, combine, dtype)?, dtype)?;
        let map = identity(self.shape(result.value).rank());
        let out = Operand { value, map, element: b.stored(dtype) };
        if self.memory.is_some() {
            fill(b, &out, &[], neutral)?;
            return Ok(value);
        }
        result_of(fill(b, &out, &[ty], neutral)?, 0)
    }
}
