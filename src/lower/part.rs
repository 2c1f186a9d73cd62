//! The part of a buffer that one row sees.

use melior::ir::r#type::MemRefType;
use melior::ir::{Type, Value};

use super::LowerError;
use super::builder::{Builder, DYNAMIC};
use crate::ir::kernel::MapDim;
use crate::schedule;

/// The lanes that the current row sees, of one dimension of all nests: the last one, or in a group without rows the one that
/// threads share.
#[derive(Clone, Copy)]
pub(super) struct Strip<'c, 'a> {
    pub start: Value<'c, 'a>,
    /// How many; `None` if always as many as the schedule says.
    count: Option<Value<'c, 'a>>,
    /// Of buffers that hold one row.
    pub width: u64,
}

impl<'c, 'a> Strip<'c, 'a> {
    /// The strip number `n`. The last one is narrower where the extent is no multiple of the width.
    pub fn new(b: &Builder<'c, 'a>, strip: &schedule::Strip, n: Value<'c, 'a>) -> Result<Self, LowerError> {
        let width = b.constant_index(strip.width)?;
        let start = b.value("arith.muli", &[n, width], b.index_type(), &[])?;
        let count = if strip.extent.is_multiple_of(strip.width) {
            None
        } else {
            let left = b.value("arith.subi", &[b.constant_index(strip.extent)?, start], b.index_type(), &[])?;
            Some(b.value("arith.minui", &[left, width], b.index_type(), &[])?)
        };
        Ok(Strip { start, count, width: strip.width })
    }

    /// Lanes of values that are stored whole.
    pub fn between(start: Value<'c, 'a>, count: Value<'c, 'a>) -> Self {
        Strip { start, count: Some(count), width: 0 }
    }

    /// The used lanes of a buffer of `shape`, whose last dimension is as wide as a strip.
    pub fn of_row(
        &self,
        b: &Builder<'c, 'a>,
        row: Value<'c, 'a>,
        shape: &[u64],
        element: Type<'c>,
    ) -> Result<Value<'c, 'a>, LowerError> {
        let (Some(count), Some(last)) = (self.count, shape.len().checked_sub(1)) else { return Ok(row) };
        let mut at = vec![At::All; shape.len()];
        at[last] = At::Lanes(Strip { start: b.constant_index(0)?, count: Some(count), width: self.width });
        b.part_of(row, shape, element, &at)
    }
}

/// Where one coordinate of a buffer is.
#[derive(Clone, Copy)]
pub(super) enum At<'c, 'a> {
    /// At one place: the part does not have the dimension.
    Fixed(Value<'c, 'a>),
    /// Everywhere in the strip.
    Lanes(Strip<'c, 'a>),
    All,
}

/// The places of the coordinates `map` in the row at `rows`. `lane` is the iteration dimension that is cut into strips.
pub(super) fn places<'c, 'a>(
    b: &Builder<'c, 'a>,
    rows: &[Value<'c, 'a>],
    lane: Option<(usize, Strip<'c, 'a>)>,
    map: &[MapDim],
) -> Result<Vec<At<'c, 'a>>, LowerError> {
    let place = |m: &MapDim| match (*m, lane) {
        (MapDim::Zero, _) => b.constant_index(0).map(At::Fixed),
        (MapDim::Dim(d), _) if d < rows.len() => Ok(At::Fixed(rows[d])),
        (MapDim::Dim(d), Some((lane, strip))) if d == lane => Ok(At::Lanes(strip)),
        (MapDim::Dim(_), _) => Ok(At::All),
    };
    map.iter().map(place).collect()
}

/// The coordinates of a point: those of the row, and 0 in the others, which are of size 1.
pub(super) fn point<'c, 'a>(
    b: &Builder<'c, 'a>,
    rows: &[Value<'c, 'a>],
    map: &[MapDim],
) -> Result<Vec<Value<'c, 'a>>, LowerError> {
    let fixed = |at| match at {
        At::Fixed(value) => Ok(value),
        At::Lanes(_) | At::All => b.constant_index(0),
    };
    places(b, rows, None, map)?.into_iter().map(fixed).collect()
}

/// A map inside the row: without its first `rows` iteration dimensions.
pub(super) fn shifted(map: impl IntoIterator<Item = MapDim>, rows: usize) -> Vec<MapDim> {
    map.into_iter()
        .map(|m| match m {
            MapDim::Dim(d) => MapDim::Dim(d.saturating_sub(rows)),
            MapDim::Zero => MapDim::Zero,
        })
        .collect()
}

impl<'c, 'a> Builder<'c, 'a> {
    /// The part of a whole buffer of `shape` that lies at `at`.
    pub fn part_of(
        &self,
        whole: Value<'c, 'a>,
        shape: &[u64],
        element: Type<'c>,
        at: &[At<'c, 'a>],
    ) -> Result<Value<'c, 'a>, LowerError> {
        if at.iter().all(|a| matches!(a, At::All)) {
            return Ok(whole);
        }
        let mut strides = vec![1u64; shape.len()];
        for d in (1..shape.len()).rev() {
            strides[d - 1] = strides[d] * shape[d].max(1);
        }
        let (mut offsets, mut sizes) = (Vec::new(), Vec::new());
        let (mut dynamic_offsets, mut dynamic_sizes) = (Vec::new(), Vec::new());
        let (mut kept_sizes, mut kept_strides) = (Vec::new(), Vec::new());
        for ((place, extent), stride) in at.iter().zip(shape).zip(&strides) {
            let (offset, size) = match place {
                At::Fixed(offset) => (Some(*offset), 1),
                At::Lanes(strip) => {
                    dynamic_sizes.extend(strip.count);
                    (Some(strip.start), strip.count.map_or(strip.width as i64, |_| DYNAMIC))
                }
                At::All => (None, *extent as i64),
            };
            offsets.push(offset.map_or(0, |_| DYNAMIC));
            dynamic_offsets.extend(offset);
            sizes.push(size);
            if !matches!(place, At::Fixed(_)) {
                kept_sizes.push(size);
                kept_strides.push(stride.to_string());
            }
        }
        let layout = self.attribute(&format!("strided<[{}], offset: ?>", kept_strides.join(", ")))?;
        let ty = MemRefType::new(element, &kept_sizes, Some(layout), None).into();
        let segments = self.i32s(&[1, dynamic_offsets.len() as i32, dynamic_sizes.len() as i32, 0]);
        let operands: Vec<_> = [whole].into_iter().chain(dynamic_offsets).chain(dynamic_sizes).collect();
        let attributes = [
            ("static_offsets", self.i64s(&offsets)),
            ("static_sizes", self.i64s(&sizes)),
            ("static_strides", self.i64s(&vec![1; shape.len()])),
            ("operandSegmentSizes", segments),
        ];
        self.value("memref.subview", &operands, ty, &attributes)
    }
}
