//! Where the values of a schedule are while a function is being emitted: tensors, or places in the caller's memory.

use melior::ir::{BlockRef, Value};
use rustc_hash::FxHashMap;

use super::LowerError;
use super::builder::{Builder, refused};
use super::part::Strip;
use crate::ir::{DType, Level, Shape};
use crate::schedule::{Group, Place, Schedule, ValueId};

/// The buffers of the status form.
pub(super) struct Memory<'c, 'a> {
    /// One per output, of the output's type.
    pub outputs: Vec<(Value<'c, 'a>, Shape)>,
    pub workspace: Value<'c, 'a>,
    /// Of the thread that runs the function.
    pub scratch: Value<'c, 'a>,
    /// The function's first block, for stack slots.
    pub entry: BlockRef<'c, 'a>,
}

/// Emits the steps of one schedule into one function.
pub(super) struct Emitter<'c, 'a, 's> {
    pub schedule: &'s Schedule,
    pub level: Level,
    pub inputs: Vec<Value<'c, 'a>>,
    /// `None` where values are tensors.
    pub memory: Option<Memory<'c, 'a>>,
    /// The dimension of nests without rows that threads share, and the part of it that is computed.
    pub share: Option<(usize, Strip<'c, 'a>)>,
    /// Tensors so far, by value.
    tensors: Vec<Option<Value<'c, 'a>>>,
    /// What the current row sees of its last dimension, if that is cut.
    pub strip: Option<Strip<'c, 'a>>,
    /// Scalars of the current row, as stored. Looked up only.
    registers: FxHashMap<ValueId, Value<'c, 'a>>,
    /// Stack slots by (dtype, number in its nest). Looked up only.
    slots: FxHashMap<(DType, usize), Value<'c, 'a>>,
}

impl<'c, 'a, 's> Emitter<'c, 'a, 's> {
    pub fn new(
        schedule: &'s Schedule,
        level: Level,
        inputs: Vec<Value<'c, 'a>>,
        memory: Option<Memory<'c, 'a>>,
    ) -> Self {
        Emitter {
            schedule,
            level,
            inputs,
            memory,
            share: None,
            tensors: vec![None; schedule.values.len()],
            strip: None,
            registers: FxHashMap::default(),
            slots: FxHashMap::default(),
        }
    }

    pub fn shape(&self, v: ValueId) -> &'s Shape {
        &self.schedule.value(v).ty.shape
    }

    pub fn dtype(&self, v: ValueId) -> DType {
        self.schedule.value(v).ty.dtype
    }

    pub fn place(&self, v: ValueId) -> Place {
        self.schedule.value(v).place
    }

    /// Forgets the scalars and the strip of the last row.
    pub fn start_group(&mut self) {
        self.registers.clear();
        self.strip = None;
    }

    /// Turns to the row of `group` at `at`, and returns the dimensions that it fixes.
    pub fn enter<'v>(
        &mut self,
        b: &Builder<'c, 'a>,
        group: &Group,
        at: &'v [Value<'c, 'a>],
    ) -> Result<&'v [Value<'c, 'a>], LowerError> {
        let (Some(strip), [outer @ .., n]) = (&group.strip, at) else { return Ok(at) };
        self.strip = Some(Strip::new(b, strip, *n)?);
        Ok(outer)
    }

    pub fn register(&self, v: ValueId) -> Option<Value<'c, 'a>> {
        self.registers.get(&v).copied()
    }

    pub fn set_register(&mut self, v: ValueId, value: Value<'c, 'a>) {
        self.registers.insert(v, value);
    }

    pub fn set_tensor(&mut self, v: ValueId, value: Value<'c, 'a>) {
        if let Some(place) = self.tensors.get_mut(v.index()) {
            *place = Some(value);
        }
    }

    /// A stack slot for the accumulator number `n` of a nest.
    pub fn slot(&mut self, b: &Builder<'c, 'a>, dtype: DType, n: usize) -> Result<Value<'c, 'a>, LowerError> {
        if let Some(slot) = self.slots.get(&(dtype, n)) {
            return Ok(*slot);
        }
        let memory = self.memory()?;
        let slot = b.stack_slot(memory.entry, b.stored(dtype))?;
        self.slots.insert((dtype, n), slot);
        Ok(slot)
    }

    pub fn memory(&self) -> Result<&Memory<'c, 'a>, LowerError> {
        self.memory.as_ref().ok_or_else(|| refused("a buffer where values are tensors"))
    }

    /// All of `v`, of its own shape: a tensor, or a buffer.
    pub fn whole(&mut self, b: &Builder<'c, 'a>, v: ValueId) -> Result<Value<'c, 'a>, LowerError> {
        if self.memory.is_some() { self.buffer(b, v) } else { self.tensor(b, v) }
    }

    fn tensor(&mut self, b: &Builder<'c, 'a>, v: ValueId) -> Result<Value<'c, 'a>, LowerError> {
        if let Some(tensor) = self.tensors[v.index()] {
            return Ok(tensor);
        }
        let tensor = match self.place(v) {
            Place::Input(i) => *self.inputs.get(i).ok_or_else(|| refused("an input that is not an argument"))?,
            Place::View(of) => {
                let from = self.tensor(b, of)?;
                reshape_tensor(b, from, self.shape(of), self.shape(v), self.dtype(v))?
            }
            _ => return Err(refused(format_args!("value {} is used before it is computed", v.0))),
        };
        self.tensors[v.index()] = Some(tensor);
        Ok(tensor)
    }

    fn buffer(&self, b: &Builder<'c, 'a>, v: ValueId) -> Result<Value<'c, 'a>, LowerError> {
        let root = self.schedule.root(v);
        let shape = self.shape(v);
        let element = b.stored(self.dtype(v));
        let memory = self.memory()?;
        let (base, base_shape) = match self.place(root) {
            Place::Input(i) => (self.inputs.get(i).copied(), self.shape(root)),
            Place::Output(j) => match memory.outputs.get(j) {
                Some((out, shape)) => (Some(*out), shape),
                None => (None, shape),
            },
            Place::Slot(at) => (Some(self.view(b, memory.workspace, at, shape, self.dtype(v))?), shape),
            Place::Inlined | Place::Row(_) | Place::Register | Place::View(_) => (None, shape),
        };
        let base = base.ok_or_else(|| refused(format_args!("value {} has no buffer", v.0)))?;
        if base_shape == shape {
            return Ok(base);
        }
        let sizes: Vec<i64> = shape.iter().map(|d| *d as i64).collect();
        let strides: Vec<i64> = shape.strides().iter().map(|d| *d as i64).collect();
        let attributes = [
            ("static_offsets", b.i64s(&[0])),
            ("static_sizes", b.i64s(&sizes)),
            ("static_strides", b.i64s(&strides)),
            ("operandSegmentSizes", b.i32s(&[1, 0, 0, 0])),
        ];
        b.value("memref.reinterpret_cast", &[base], b.memref(shape, element), &attributes)
    }

    /// A buffer of `shape` in the workspace or the scratch memory.
    pub fn view(
        &self,
        b: &Builder<'c, 'a>,
        memory: Value<'c, 'a>,
        at: u64,
        shape: &[u64],
        dtype: DType,
    ) -> Result<Value<'c, 'a>, LowerError> {
        let at = b.constant_index(at)?;
        b.value("memref.view", &[memory, at], b.memref(shape, b.stored(dtype)), &[])
    }

    /// One element of a whole value.
    pub fn element(
        &mut self,
        b: &Builder<'c, 'a>,
        v: ValueId,
        at: &[Value<'c, 'a>],
    ) -> Result<Value<'c, 'a>, LowerError> {
        let whole = self.whole(b, v)?;
        load_at(b, whole, self.memory.is_some(), at, self.dtype(v))
    }
}

/// One element of a buffer or a tensor, as stored.
pub(super) fn load_at<'c, 'a>(
    b: &Builder<'c, 'a>,
    whole: Value<'c, 'a>,
    buffer: bool,
    at: &[Value<'c, 'a>],
    dtype: DType,
) -> Result<Value<'c, 'a>, LowerError> {
    let name = if buffer { "memref.load" } else { "tensor.extract" };
    let operands: Vec<_> = [whole].into_iter().chain(at.iter().copied()).collect();
    b.value(name, &operands, b.stored(dtype), &[])
}

/// The elements of a tensor under another shape, through one dimension.
fn reshape_tensor<'c, 'a>(
    b: &Builder<'c, 'a>,
    from: Value<'c, 'a>,
    from_shape: &Shape,
    to: &Shape,
    dtype: DType,
) -> Result<Value<'c, 'a>, LowerError> {
    if from_shape == to {
        return Ok(from);
    }
    let element = b.stored(dtype);
    let groups = |rank: usize| {
        let all = (0..rank).map(|d| d.to_string()).collect::<Vec<_>>().join(", ");
        b.attribute(&if rank == 0 { "[]".to_owned() } else { format!("[[{all}]]") })
    };
    let expand = |from, shape: &[u64], grouping| {
        let sizes: Vec<i64> = shape.iter().map(|d| *d as i64).collect();
        let attributes = [("reassociation", grouping), ("static_output_shape", b.i64s(&sizes))];
        b.value("tensor.expand_shape", &[from], b.tensor(shape, element), &attributes)
    };
    let collapse = |from, shape: &[u64], grouping| {
        b.value("tensor.collapse_shape", &[from], b.tensor(shape, element), &[("reassociation", grouping)])
    };
    let line = [from_shape.elements()];
    let flat = match from_shape.rank() {
        0 => expand(from, &line, groups(0)?)?,
        1 => from,
        rank => collapse(from, &line, groups(rank)?)?,
    };
    match to.rank() {
        0 => collapse(flat, &[], groups(0)?),
        1 => Ok(flat),
        rank => expand(flat, to, groups(rank)?),
    }
}
