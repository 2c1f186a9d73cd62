//! Emission of loop nests: one `linalg.generic` each, whole or for one row.

use melior::ir::{BlockRef, Type, Value};

use super::LowerError;
use super::builder::{Builder, Generic, Operand, argument, refused, result_of};
use super::emit::{Emitter, load_at};
use super::gather::Gathered;
use super::part::{At, Strip, places, point, shifted};
use super::scalar::{self, Point};
use crate::ir::kernel::MapDim;
use crate::schedule::{Inst, Nest, NestResult, Place, ValueId};

/// Where a read of the nest comes from.
#[derive(Clone, Copy)]
pub(super) enum Source<'c, 'a> {
    /// Not needed.
    None,
    /// A value from outside the loop.
    Outside(Value<'c, 'a>),
    /// An argument of the loop's block: the operand of that index.
    Argument(usize),
    /// The argument of that output: the nest writes over what it reads.
    Output(usize),
}

impl<'c, 'a> Source<'c, 'a> {
    /// The element, in the block of a `linalg.generic` of that many inputs.
    pub fn value(&self, block: BlockRef<'c, 'a>, ins: usize) -> Result<Value<'c, 'a>, LowerError> {
        match self {
            Source::Outside(v) => Ok(*v),
            Source::Argument(i) => argument(block, *i),
            Source::Output(o) => argument(block, ins + o),
            // Never looked at, but positions must agree.
            Source::None => argument(block, ins),
        }
    }
}

/// A point of the nest for [`scalar::body`].
pub(super) struct Here<'s, 'c, 'a> {
    pub rows: &'s [Value<'c, 'a>],
    pub inputs: Vec<Value<'c, 'a>>,
    pub gathers: &'s [Gathered<'c, 'a>],
    pub buffers: bool,
    /// The indices of the inner dimensions; `None` where they are those of an enclosing `linalg.generic`.
    pub inner: Option<Vec<Value<'c, 'a>>>,
    /// The dimension of which only a part is computed, and the part.
    pub lane: Option<(usize, Strip<'c, 'a>)>,
    /// By instruction: is it a comparison that is known to fail? Empty where none is.
    pub compares: &'s [bool],
}

impl<'c, 'a> Point<'c, 'a> for Here<'_, 'c, 'a> {
    fn input(&self, _: &Builder<'c, 'a>, i: usize) -> Result<Value<'c, 'a>, LowerError> {
        self.inputs.get(i).copied().ok_or_else(|| refused("a read without a source"))
    }

    fn index(&self, b: &Builder<'c, 'a>, d: usize) -> Result<Value<'c, 'a>, LowerError> {
        match d.checked_sub(self.rows.len()) {
            None => Ok(self.rows[d]),
            Some(inner) => match &self.inner {
                Some(at) => at.get(inner).copied().ok_or_else(|| refused("an index without a loop")),
                None => {
                    let dim = melior::ir::attribute::IntegerAttribute::new(b.int_type(64), inner as i64).into();
                    let index = b.value("linalg.index", &[], b.index_type(), &[("dim", dim)])?;
                    match self.lane {
                        Some((lane, strip)) if lane == d => {
                            b.value("arith.addi", &[strip.start, index], b.index_type(), &[])
                        }
                        _ => Ok(index),
                    }
                }
            },
        }
    }

    fn previous(&self, _: &Builder<'c, 'a>) -> Result<Value<'c, 'a>, LowerError> {
        Err(refused("a point before this one, where points have no order"))
    }

    fn narrow_indices(&self) -> bool {
        self.buffers
    }

    fn outcome(&self, i: usize) -> Option<bool> {
        self.compares.get(i).is_some_and(|known| *known).then_some(false)
    }

    fn gather(&self, b: &Builder<'c, 'a>, i: usize, at: &[Value<'c, 'a>]) -> Result<Value<'c, 'a>, LowerError> {
        match self.gathers.get(i) {
            Some(gathered) => gathered.at(b, at, self.rows.len(), self.buffers),
            None => Err(refused("a gather without a source")),
        }
    }
}

/// Is the coordinate the same all over a row of the nest? That of a dimension of size 1 is, wherever it stands.
pub(super) fn in_row(nest: &Nest, rows: usize, m: MapDim) -> bool {
    match m {
        MapDim::Zero => true,
        MapDim::Dim(d) => d < rows || nest.domain[d] == 1,
    }
}

impl<'c, 'a> Emitter<'c, 'a, '_> {
    /// Emits a nest, for the row at `rows` if there are any.
    pub fn nest(&mut self, b: &Builder<'c, 'a>, rows: &[Value<'c, 'a>], nest: &Nest) -> Result<(), LowerError> {
        if nest.sequence.is_some() {
            return self.sequence(b, nest);
        }
        if self.memory.is_some() && nest.points() == 0 {
            return self.reductions_of_nothing(b, rows, nest);
        }
        let gathers = self.gathers(b, rows, nest)?;
        let inner: Vec<u64> = nest.domain.iter().skip(rows.len()).copied().collect();
        if !rows.is_empty() && self.strip.is_none() && nest.is_map() && inner.iter().all(|d| *d == 1) {
            return self.scalars(b, rows, nest, &gathers);
        }
        self.loops(b, rows, nest, &inner, &gathers)
    }

    /// A nest without points leaves its reductions at their neutral elements. Buffers without elements are never
    /// touched.
    fn reductions_of_nothing(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        nest: &Nest,
    ) -> Result<(), LowerError> {
        for (i, r) in nest.results.iter().enumerate() {
            if self.shape(r.value).elements() > 0 {
                let (out, in_slot) = self.output(b, rows, nest, i)?;
                if in_slot {
                    let value = load_at(b, out.value, true, &[], self.dtype(r.value))?;
                    self.write_scalar(b, rows, r, value)?;
                }
            }
        }
        Ok(())
    }

    /// The buffer of the current row of `v`, if memory holds one row of it at a time. (Tensors are always whole.)
    pub(super) fn row(
        &self,
        b: &Builder<'c, 'a>,
        rows: usize,
        v: ValueId,
    ) -> Result<Option<Value<'c, 'a>>, LowerError> {
        match self.place(v) {
            Place::Row(offset) if self.memory.is_some() => {
                let mut shape: Vec<u64> = self.shape(v).iter().skip(rows).copied().collect();
                if let (Some(strip), Some(lanes)) = (self.strip, shape.last_mut()) {
                    *lanes = strip.width;
                }
                let row = self.view(b, self.memory()?.scratch, offset, &shape, self.dtype(v))?;
                match self.strip {
                    Some(strip) => strip.of_row(b, row, &shape, b.stored(self.dtype(v))).map(Some),
                    None => Ok(Some(row)),
                }
            }
            _ => Ok(None),
        }
    }

    /// A nest whose row is one point: plain scalar code.
    fn scalars(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        nest: &Nest,
        gathers: &[Gathered<'c, 'a>],
    ) -> Result<(), LowerError> {
        let mut inputs = Vec::with_capacity(nest.reads.len());
        for r in &nest.reads {
            let at = point(b, rows, &r.map)?;
            inputs.push(self.scalar_at(b, rows.len(), r.value, &at)?);
        }
        // Its inner dimensions are of size 1.
        let inner = Some(vec![b.constant_index(0)?; nest.domain.len() - rows.len()]);
        let here = Here { rows, inputs, gathers, buffers: self.memory.is_some(), inner, lane: None, compares: &[] };
        let values = scalar::body(b, self.schedule, nest, self.level, &here)?;
        for (r, v) in nest.results.iter().zip(values) {
            let stored = scalar::store(b, v, self.dtype(r.value))?;
            self.write_scalar(b, rows, r, stored)?;
        }
        Ok(())
    }

    /// The element of `v` at known coordinates.
    pub(super) fn scalar_at(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: usize,
        v: ValueId,
        at: &[Value<'c, 'a>],
    ) -> Result<Value<'c, 'a>, LowerError> {
        if let Some(value) = self.register(v) {
            return Ok(value);
        }
        match self.row(b, rows, v)? {
            Some(row) => load_at(b, row, true, at.get(rows..).unwrap_or_default(), self.dtype(v)),
            None => self.element(b, v, at),
        }
    }

    /// Keeps the only element of a row of `r.value`, and stores it if it has a place.
    fn write_scalar(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        r: &NestResult,
        stored: Value<'c, 'a>,
    ) -> Result<(), LowerError> {
        if !rows.is_empty() || self.place(r.value) == Place::Register {
            self.set_register(r.value, stored);
        }
        if self.place(r.value) == Place::Register {
            return Ok(());
        }
        let mut operands = vec![stored];
        match self.row(b, rows.len(), r.value)? {
            Some(row) => {
                operands.push(row);
                let rank = self.shape(r.value).rank().saturating_sub(rows.len());
                operands.extend(point(b, &[], &vec![MapDim::Zero; rank])?);
            }
            None => {
                operands.push(self.whole(b, r.value)?);
                operands.extend(point(b, rows, &r.map)?);
            }
        }
        b.op("memref.store", &operands, &[], &[])?;
        Ok(())
    }

    /// An operand of a `linalg.generic`: all of `v`, or its part in the current row.
    fn operand(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        nest: &Nest,
        v: ValueId,
        map: &[MapDim],
    ) -> Result<Operand<'c, 'a>, LowerError> {
        let element = b.stored(self.dtype(v));
        if let Some(value) = self.row(b, rows.len(), v)? {
            return Ok(Operand { value, map: shifted(map.iter().skip(rows.len()).copied(), rows.len()), element });
        }
        let whole = self.whole(b, v)?;
        if rows.is_empty() && self.lane(nest).is_none() {
            return Ok(Operand { value: whole, map: map.to_vec(), element });
        }
        let at = places(b, rows, self.lane(nest), map)?;
        let free = map.iter().zip(&at).filter(|(_, a)| !matches!(a, At::Fixed(_))).map(|(m, _)| *m);
        let map = shifted(free, rows.len());
        Ok(Operand { value: b.part_of(whole, self.shape(v), element, &at)?, map, element })
    }

    /// Do `a` and `b` occupy the same memory element by element?
    fn same_buffer(&self, a: ValueId, b: ValueId) -> bool {
        self.memory.is_some()
            && self.place(a) == self.place(b)
            && !matches!(self.place(a), Place::View(_) | Place::Inlined | Place::Register)
            && self.shape(a) == self.shape(b)
            && self.dtype(a) == self.dtype(b)
    }

    fn loops(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        nest: &Nest,
        inner: &[u64],
        gathers: &[Gathered<'c, 'a>],
    ) -> Result<(), LowerError> {
        let split = match self.splits(nest, rows.len()) {
            Some(split) => {
                let exception = self.exception(b, rows, nest, &split, gathers)?;
                Some((split, exception))
            }
            None => None,
        };
        let mut ins: Vec<Operand<'c, 'a>> = Vec::new();
        let mut sources = Vec::with_capacity(nest.reads.len());
        let needed = nest.body.needed(nest.roots());
        let used = |i: usize| nest.body.insts().iter().zip(&needed).any(|(inst, n)| *n && *inst == Inst::Input(i));
        for (i, r) in nest.reads.iter().enumerate() {
            let over = |w: &NestResult| w.reduce.is_none() && w.map == r.map && self.same_buffer(w.value, r.value);
            sources.push(if !used(i) {
                Source::None
            } else if let Some(o) = nest.results.iter().position(over) {
                Source::Output(o)
            } else if (!rows.is_empty() || self.register(r.value).is_some())
                && r.map.iter().all(|m| in_row(nest, rows.len(), *m))
            {
                Source::Outside(self.scalar_at(b, rows.len(), r.value, &point(b, rows, &r.map)?)?)
            } else {
                ins.push(self.operand(b, rows, nest, r.value, &r.map)?);
                Source::Argument(ins.len() - 1)
            });
        }
        let mut outs: Vec<Operand<'c, 'a>> = Vec::new();
        let mut in_slot = Vec::new();
        for i in 0..nest.results.len() {
            let (out, slot) = self.output(b, rows, nest, i)?;
            outs.push(out);
            in_slot.push(slot);
        }
        let iterators = iterators(nest, rows.len());
        self.cover(b, inner, &mut ins, &outs)?;
        let results: Vec<Type<'c>> = if self.memory.is_some() {
            Vec::new()
        } else {
            nest.results.iter().map(|r| b.tensor(self.shape(r.value), b.stored(self.dtype(r.value)))).collect()
        };
        let (op, block) = b.generic(&Generic { ins: &ins, outs: &outs, iterators: &iterators, results: &results })?;
        let compares = split.as_ref().map_or(&[][..], |(split, _)| &split.compares);
        self.body(&b.at(block), block, rows, nest, &sources, ins.len(), gathers, compares)?;
        for (i, r) in nest.results.iter().enumerate() {
            if self.memory.is_none() {
                self.set_tensor(r.value, result_of(op, i)?);
            } else if in_slot[i] {
                let value = load_at(b, outs[i].value, true, &[], self.dtype(r.value))?;
                self.write_scalar(b, rows, r, value)?;
            }
        }
        if let Some((split, exception)) = &split {
            self.store_exception(b, rows, nest, split, exception)?;
        }
        Ok(())
    }

    /// The dimension of the nest of which only a part is computed: the last one, which is cut into strips, or that which
    /// threads share.
    fn lane(&self, nest: &Nest) -> Option<(usize, Strip<'c, 'a>)> {
        nest.domain.len().checked_sub(1).zip(self.strip).or(self.share)
    }

    /// The operand that the `n`-th result of the nest is written to, and whether that is a stack slot.
    fn output(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        nest: &Nest,
        n: usize,
    ) -> Result<(Operand<'c, 'a>, bool), LowerError> {
        let r = &nest.results[n];
        let dtype = self.dtype(r.value);
        let element = b.stored(dtype);
        let shape = self.shape(r.value);
        let start = match r.reduce {
            Some(combine) => Some(scalar::store(b, scalar::neutral(b, combine, dtype)?, dtype)?),
            None => None,
        };
        if self.memory.is_none() {
            let ty = b.tensor(shape, element);
            let empty = b.value("tensor.empty", &[], ty, &[])?;
            let out = Operand { value: empty, map: crate::ir::kernel::identity(shape.rank()), element };
            let value = match start {
                Some(start) => result_of(fill(b, &out, &[ty], start)?, 0)?,
                None => empty,
            };
            return Ok((Operand { value, map: r.map.clone(), element }, false));
        }
        let one = self.strip.is_none() && shape.iter().skip(rows.len()).product::<u64>() == 1;
        // A map has a slot only where it shares its loop with a reduction and has no other place.
        let in_slot = match start {
            Some(_) => self.level.fuses() || !rows.is_empty(),
            None => self.place(r.value) == Place::Register,
        };
        if one && in_slot {
            let slot = self.slot(b, dtype, n)?;
            if let Some(start) = start {
                b.op("memref.store", &[start, slot], &[], &[])?;
            }
            return Ok((Operand { value: slot, map: Vec::new(), element }, true));
        }
        let out = self.operand(b, rows, nest, r.value, &r.map)?;
        if let Some(start) = start {
            // The buffer has the dimensions that the map has.
            let rank = out.map.len();
            fill(b, &Operand { map: crate::ir::kernel::identity(rank), ..out.clone() }, &[], start)?;
        }
        Ok((out, false))
    }

    /// Adds operands that are never read, so that the maps say the extent of every dimension.
    pub(super) fn cover(
        &mut self,
        b: &Builder<'c, 'a>,
        inner: &[u64],
        ins: &mut Vec<Operand<'c, 'a>>,
        outs: &[Operand<'c, 'a>],
    ) -> Result<(), LowerError> {
        let element = b.int_type(8);
        for (d, extent) in inner.iter().enumerate() {
            let dim = MapDim::Dim(d);
            if ins.iter().chain(outs).any(|o| o.map.contains(&dim)) {
                continue;
            }
            let value = match &self.memory {
                None => b.value("tensor.empty", &[], b.tensor(&[*extent], element), &[])?,
                Some(memory) => {
                    // The body ignores it, so its loads are dead and removed. (MLIR accepts no stride of 0.)
                    let layout = b.attribute("strided<[1]>")?;
                    let ty = melior::ir::r#type::MemRefType::new(element, &[*extent as i64], Some(layout), None);
                    let attributes = [
                        ("static_offsets", b.i64s(&[0])),
                        ("static_sizes", b.i64s(&[*extent as i64])),
                        ("static_strides", b.i64s(&[1])),
                        ("operandSegmentSizes", b.i32s(&[1, 0, 0, 0])),
                    ];
                    b.value("memref.reinterpret_cast", &[memory.workspace], ty.into(), &attributes)?
                }
            };
            ins.push(Operand { value, map: vec![dim], element });
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn body(
        &self,
        b: &Builder<'c, 'a>,
        block: BlockRef<'c, 'a>,
        rows: &[Value<'c, 'a>],
        nest: &Nest,
        sources: &[Source<'c, 'a>],
        ins: usize,
        gathers: &[Gathered<'c, 'a>],
        compares: &[bool],
    ) -> Result<(), LowerError> {
        let mut inputs = Vec::with_capacity(sources.len());
        for s in sources {
            inputs.push(s.value(block, ins)?);
        }
        let lane = self.lane(nest);
        let here = Here { rows, inputs, gathers, buffers: self.memory.is_some(), inner: None, lane, compares };
        let values = scalar::body(b, self.schedule, nest, self.level, &here)?;
        yields(self, b, block, nest, ins, values)
    }
}

/// Which inner dimensions of a nest are reduced.
pub(super) fn iterators(nest: &Nest, rows: usize) -> Vec<bool> {
    let reduced = |d: usize| nest.results.iter().any(|r| r.reduce.is_some() && !r.map.contains(&MapDim::Dim(d)));
    (rows..nest.domain.len()).map(reduced).collect()
}

/// Ends the body of a `linalg.generic` of `ins` inputs: `values` are written, or combined with what is there.
pub(super) fn yields<'c, 'a>(
    emitter: &Emitter<'c, 'a, '_>,
    b: &Builder<'c, 'a>,
    block: BlockRef<'c, 'a>,
    nest: &Nest,
    ins: usize,
    values: Vec<Value<'c, 'a>>,
) -> Result<(), LowerError> {
    let mut yielded = Vec::with_capacity(values.len());
    for (i, (r, v)) in nest.results.iter().zip(values).enumerate() {
        let dtype = emitter.dtype(r.value);
        let v = match r.reduce {
            Some(combine) => {
                let acc = scalar::load(b, argument(block, ins + i)?, dtype)?;
                scalar::combine(b, combine, acc, v, dtype, emitter.level)?
            }
            None => v,
        };
        yielded.push(scalar::store(b, v, dtype)?);
    }
    b.op("linalg.yield", &yielded, &[], &[])?;
    Ok(())
}

/// Sets every element of an operand.
pub(super) fn fill<'c, 'a>(
    b: &Builder<'c, 'a>,
    out: &Operand<'c, 'a>,
    results: &[Type<'c>],
    value: Value<'c, 'a>,
) -> Result<melior::ir::OperationRef<'c, 'a>, LowerError> {
    let iterators = vec![false; out.map.len()];
    let (op, block) =
        b.generic(&Generic { ins: &[], outs: std::slice::from_ref(out), iterators: &iterators, results })?;
    b.at(block).op("linalg.yield", &[value], &[], &[])?;
    Ok(op)
}
