//! A row group on tensors: one `scf.forall` over the rows, its nests as `linalg.generic`s on what each row sees.
//!
//! What is needed after the group is a shared result of the loop, and each row inserts its part. A value that the buffer plan puts
//! where a result goes later is computed in the slice of that result, so that nothing of a row's size is allocated for it.

use melior::ir::r#type::RankedTensorType;
use melior::ir::{Type, Value, ValueLike};
use rustc_hash::FxHashMap;

use super::LowerError;
use super::builder::{Builder, DYNAMIC, Generic, Operand, argument, result_of};
use super::emit::{Emitter, load_at};
use super::gather::Gathered;
use super::nest::{Here, Source, fill, in_row, iterators, yields};
use super::part::{At, places, point, shifted};
use super::scalar;
use crate::ir::NodeId;
use crate::ir::kernel::{MapDim, identity};
use crate::schedule::{Group, Inst, Nest, NestResult, Place, ValueId};

/// What the current row holds.
#[derive(Default)]
struct Row<'c, 'a> {
    /// Tensors of the row's part of values. Looked up only.
    tensors: FxHashMap<ValueId, Value<'c, 'a>>,
    /// The last tensor of each place of the buffer plan.
    places: Vec<(Place, Value<'c, 'a>)>,
}

impl<'c, 'a> Row<'c, 'a> {
    fn at(&self, place: Place) -> Option<Value<'c, 'a>> {
        self.places.iter().find(|(p, _)| *p == place).map(|(_, tensor)| *tensor)
    }

    fn set(&mut self, value: ValueId, place: Place, tensor: Value<'c, 'a>) {
        self.tensors.insert(value, tensor);
        self.places.retain(|(p, _)| *p != place);
        self.places.push((place, tensor));
    }
}

/// A slice at known places, for an operation that takes offsets, sizes and strides.
struct Slice<'c, 'a> {
    offsets: Vec<i64>,
    dynamic: Vec<Value<'c, 'a>>,
    sizes: Vec<i64>,
    kept: Vec<u64>,
}

impl<'c, 'a> Slice<'c, 'a> {
    fn new(shape: &[u64], at: &[At<'c, 'a>]) -> Slice<'c, 'a> {
        let mut slice = Slice { offsets: Vec::new(), dynamic: Vec::new(), sizes: Vec::new(), kept: Vec::new() };
        for (extent, at) in shape.iter().zip(at) {
            if let At::Fixed(offset) = at {
                slice.dynamic.push(*offset);
                slice.offsets.push(DYNAMIC);
                slice.sizes.push(1);
            } else {
                slice.offsets.push(0);
                slice.sizes.push(*extent as i64);
                slice.kept.push(*extent);
            }
        }
        slice
    }

    fn attributes(&self, b: &Builder<'c, 'a>, segments: &[i32]) -> [(&'static str, melior::ir::Attribute<'c>); 4] {
        [
            ("static_offsets", b.i64s(&self.offsets)),
            ("static_sizes", b.i64s(&self.sizes)),
            ("static_strides", b.i64s(&vec![1; self.sizes.len()])),
            ("operandSegmentSizes", b.i32s(segments)),
        ]
    }
}

/// Can the group be emitted so? Tensors without elements and strips are emitted whole.
pub(super) fn has_rows(emitter: &Emitter<'_, '_, '_>, group: &Group) -> bool {
    let values = || group.nests.iter().flat_map(|n| n.operands().into_iter().chain(n.results.iter().map(|r| r.value)));
    !group.rows().is_empty()
        && group.strip.is_none()
        && group.nests.iter().all(|n| n.sequence.is_none() && n.points() > 0)
        && values().all(|v| emitter.shape(v).elements() > 0)
}

impl<'c, 'a> Emitter<'c, 'a, '_> {
    /// Emits a row group whose values are tensors. `locate` gives the builder of a node.
    pub fn forall(&mut self, group: &Group, locate: &dyn Fn(NodeId) -> Builder<'c, 'a>) -> Result<(), LowerError> {
        let Some(first) = group.nests.first() else { return Ok(()) };
        let b = locate(first.node);
        let rank = group.rows().len();
        // What comes from outside is made outside: views are operations.
        let own = |v: ValueId| group.nests.iter().any(|n| n.results.iter().any(|r| r.value == v));
        for v in group.nests.iter().flat_map(Nest::operands).filter(|v| !own(*v)) {
            self.whole(&b, v)?;
        }
        let results = self.kept(group);
        let mut types: Vec<Type<'c>> = Vec::new();
        let mut starts = Vec::new();
        for v in &results {
            let ty = b.tensor(self.shape(*v), b.stored(self.dtype(*v)));
            starts.push(b.value("tensor.empty", &[], ty, &[])?);
            types.push(ty);
        }
        let extents: Vec<i64> = group.rows().iter().map(|d| *d as i64).collect();
        let attributes = [
            ("staticLowerBound", b.i64s(&vec![0; rank])),
            ("staticUpperBound", b.i64s(&extents)),
            ("staticStep", b.i64s(&vec![1; rank])),
            ("operandSegmentSizes", b.i32s(&[0, 0, 0, starts.len() as i32])),
        ];
        let arguments: Vec<Type<'c>> = vec![b.index_type(); rank].into_iter().chain(types.iter().copied()).collect();
        let (op, block) = b.region_op("scf.forall", &starts, &types, &attributes, &arguments)?;
        let rows = (0..rank).map(|i| argument(block, i)).collect::<Result<Vec<_>, _>>()?;
        let shared = (0..results.len()).map(|i| argument(block, rank + i)).collect::<Result<Vec<_>, _>>()?;

        let mut row = Row::default();
        let inner = b.at(block);
        for (v, shared) in results.iter().zip(&shared) {
            if self.inner(rank, *v).iter().product::<u64>() != 1 {
                let at = places(&inner, &rows, None, &identity(self.shape(*v).rank()))?;
                row.places.push((self.place(*v), self.slice(&inner, *shared, *v, &at)?));
            }
        }
        for nest in &group.nests {
            self.nest_of_row(&locate(nest.node).at(block), &rows, nest, &mut row)?;
        }

        let mut parts = Vec::new();
        for v in &results {
            parts.push(match (row.tensors.get(v), self.register(*v)) {
                (Some(tensor), _) => *tensor,
                (None, Some(scalar)) => {
                    let ty = inner.tensor(&[], inner.stored(self.dtype(*v)));
                    inner.value("tensor.from_elements", &[scalar], ty, &[])?
                }
                (None, None) => return Err(super::builder::refused("a result of a row that nothing computes")),
            });
        }
        let (_, end) = inner.region_op("scf.forall.in_parallel", &[], &[], &[], &[])?;
        let end = inner.at(end);
        for ((v, part), shared) in results.iter().zip(parts).zip(shared) {
            let at = places(&inner, &rows, None, &identity(self.shape(*v).rank()))?;
            let slice = Slice::new(self.shape(*v), &at);
            let operands: Vec<_> = [part, shared].into_iter().chain(slice.dynamic.iter().copied()).collect();
            let attributes = slice.attributes(&end, &[1, 1, slice.dynamic.len() as i32, 0, 0]);
            end.op("tensor.parallel_insert_slice", &operands, &[], &attributes)?;
        }
        for (i, v) in results.iter().enumerate() {
            self.set_tensor(*v, result_of(op, i)?);
        }
        Ok(())
    }

    /// The values of a group that are needed after it: of each place that is kept, what is written there last.
    fn kept(&self, group: &Group) -> Vec<ValueId> {
        let mut kept: Vec<ValueId> = Vec::new();
        for v in group.nests.iter().flat_map(|n| n.results.iter().map(|r| r.value)) {
            if matches!(self.place(v), Place::Output(_) | Place::Slot(_)) {
                kept.retain(|k| self.place(*k) != self.place(v));
                kept.push(v);
            }
        }
        kept
    }

    /// The dimensions of a value inside a row.
    fn inner(&self, rows: usize, v: ValueId) -> Vec<u64> {
        self.shape(v).iter().skip(rows).copied().collect()
    }

    /// The part of a whole tensor that lies at `at`.
    fn slice(
        &self,
        b: &Builder<'c, 'a>,
        whole: Value<'c, 'a>,
        v: ValueId,
        at: &[At<'c, 'a>],
    ) -> Result<Value<'c, 'a>, LowerError> {
        let slice = Slice::new(self.shape(v), at);
        if slice.dynamic.is_empty() {
            return Ok(whole);
        }
        let kept: Vec<u64> = slice.kept.clone();
        let ty = RankedTensorType::new(&kept, b.stored(self.dtype(v)), None).into();
        let operands: Vec<_> = [whole].into_iter().chain(slice.dynamic.iter().copied()).collect();
        let attributes = slice.attributes(b, &[1, slice.dynamic.len() as i32, 0, 0]);
        b.value("tensor.extract_slice", &operands, ty, &attributes)
    }

    fn nest_of_row(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        nest: &Nest,
        row: &mut Row<'c, 'a>,
    ) -> Result<(), LowerError> {
        let mut gathers = Vec::with_capacity(nest.gathers.len());
        for v in &nest.gathers {
            let dtype = self.dtype(*v);
            gathers.push(match (row.tensors.get(v), self.register(*v)) {
                (Some(tensor), _) => Gathered::Row(*tensor, dtype, None),
                (None, Some(scalar)) => Gathered::Scalar(scalar),
                (None, None) => Gathered::Whole(self.whole(b, *v)?, dtype),
            });
        }
        let extents: Vec<u64> = nest.domain.iter().skip(rows.len()).copied().collect();
        if nest.is_map() && extents.iter().all(|d| *d == 1) {
            return self.scalars_of_row(b, rows, nest, &gathers, row);
        }
        let needed = nest.body.needed(nest.roots());
        let used = |i: usize| nest.body.insts().iter().zip(&needed).any(|(inst, n)| *n && *inst == Inst::Input(i));
        let mut ins: Vec<Operand<'c, 'a>> = Vec::new();
        let mut sources = Vec::with_capacity(nest.reads.len());
        for (i, r) in nest.reads.iter().enumerate() {
            let over = |w: &NestResult| {
                let same = self.place(w.value) == self.place(r.value) && row.tensors.contains_key(&r.value);
                w.reduce.is_none() && w.map == r.map && same && self.shape(w.value) == self.shape(r.value)
            };
            sources.push(if !used(i) {
                Source::None
            } else if let Some(o) = nest.results.iter().position(over) {
                Source::Output(o)
            } else if r.map.iter().all(|m| in_row(nest, rows.len(), *m)) {
                Source::Outside(self.scalar_of_row(b, rows, r.value, &r.map, row)?)
            } else {
                ins.push(self.operand_of_row(b, rows, r.value, &r.map, row)?);
                Source::Argument(ins.len() - 1)
            });
        }
        let mut outs = Vec::with_capacity(nest.results.len());
        for r in &nest.results {
            outs.push(self.output_of_row(b, rows.len(), r, row)?);
        }
        self.cover(b, &extents, &mut ins, &outs)?;
        let types: Vec<Type<'c>> = outs.iter().map(|o| o.value.r#type()).collect();
        let iterators = iterators(nest, rows.len());
        let (op, block) = b.generic(&Generic { ins: &ins, outs: &outs, iterators: &iterators, results: &types })?;
        let mut inputs = Vec::with_capacity(sources.len());
        for s in &sources {
            inputs.push(s.value(block, ins.len())?);
        }
        let here = Here { rows, inputs, gathers: &gathers, buffers: false, inner: None, lane: None, compares: &[] };
        let inside = b.at(block);
        let values = scalar::body(&inside, self.schedule, nest, self.level, &here)?;
        yields(self, &inside, block, nest, ins.len(), values)?;
        for (i, r) in nest.results.iter().enumerate() {
            let tensor = result_of(op, i)?;
            if outs[i].map.is_empty() {
                let scalar = load_at(b, tensor, false, &[], self.dtype(r.value))?;
                self.set_register(r.value, scalar);
            } else {
                row.set(r.value, self.place(r.value), tensor);
            }
        }
        Ok(())
    }

    /// A nest whose row is one point.
    fn scalars_of_row(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        nest: &Nest,
        gathers: &[Gathered<'c, 'a>],
        row: &Row<'c, 'a>,
    ) -> Result<(), LowerError> {
        let mut inputs = Vec::with_capacity(nest.reads.len());
        for r in &nest.reads {
            inputs.push(self.scalar_of_row(b, rows, r.value, &r.map, row)?);
        }
        let inner = Some(vec![b.constant_index(0)?; nest.domain.len() - rows.len()]);
        let here = Here { rows, inputs, gathers, buffers: false, inner, lane: None, compares: &[] };
        let values = scalar::body(b, self.schedule, nest, self.level, &here)?;
        for (r, v) in nest.results.iter().zip(values) {
            let stored = scalar::store(b, v, self.dtype(r.value))?;
            self.set_register(r.value, stored);
        }
        Ok(())
    }

    /// The element that `map` leads to, which is the same all over the row.
    fn scalar_of_row(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        v: ValueId,
        map: &[MapDim],
        row: &Row<'c, 'a>,
    ) -> Result<Value<'c, 'a>, LowerError> {
        if let Some(scalar) = self.register(v) {
            return Ok(scalar);
        }
        let at = point(b, rows, map)?;
        match row.tensors.get(&v) {
            Some(tensor) => load_at(b, *tensor, false, at.get(rows.len()..).unwrap_or_default(), self.dtype(v)),
            None => self.element(b, v, &at),
        }
    }

    fn operand_of_row(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        v: ValueId,
        map: &[MapDim],
        row: &Row<'c, 'a>,
    ) -> Result<Operand<'c, 'a>, LowerError> {
        let element = b.stored(self.dtype(v));
        if let Some(tensor) = row.tensors.get(&v) {
            let map = shifted(map.iter().skip(rows.len()).copied(), rows.len());
            return Ok(Operand { value: *tensor, map, element });
        }
        let whole = self.whole(b, v)?;
        let at = places(b, rows, None, map)?;
        let free = map.iter().zip(&at).filter(|(_, a)| !matches!(a, At::Fixed(_))).map(|(m, _)| *m);
        let map = shifted(free, rows.len());
        Ok(Operand { value: self.slice(b, whole, v, &at)?, map, element })
    }

    /// The tensor that a result of a nest starts from: a scalar's own, or the row's part of the place that the value has.
    fn output_of_row(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: usize,
        r: &NestResult,
        row: &Row<'c, 'a>,
    ) -> Result<Operand<'c, 'a>, LowerError> {
        let dtype = self.dtype(r.value);
        let element = b.stored(dtype);
        let inner = self.inner(rows, r.value);
        let one = inner.iter().product::<u64>() == 1;
        let (shape, map) = match one {
            true => (Vec::new(), Vec::new()),
            false => (inner, shifted(r.map.iter().skip(rows).copied(), rows)),
        };
        let ty = b.tensor(&shape, element);
        let value = match row.at(self.place(r.value)).filter(|_| !one) {
            Some(tensor) => tensor,
            None => b.value("tensor.empty", &[], ty, &[])?,
        };
        let Some(combine) = r.reduce else { return Ok(Operand { value, map, element }) };
        let start = scalar::store(b, scalar::neutral(b, combine, dtype)?, dtype)?;
        let out = Operand { value, map: identity(shape.len()), element };
        let value = result_of(fill(b, &out, &[ty], start)?, 0)?;
        Ok(Operand { value, map, element })
    }
}
