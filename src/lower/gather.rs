//! Elements at computed coordinates.

use melior::ir::Value;

use super::LowerError;
use super::builder::Builder;
use super::emit::{Emitter, load_at};
use super::part::Strip;
use super::scalar;
use crate::ir::DType;
use crate::schedule::{Nest, Place};

/// A gathered value.
#[derive(Clone, Copy)]
pub(super) enum Gathered<'c, 'a> {
    Whole(Value<'c, 'a>, DType),
    /// One row: the first coordinates are those of the row. Lanes are counted from the start of the strip.
    Row(Value<'c, 'a>, DType, Option<Strip<'c, 'a>>),
    Scalar(Value<'c, 'a>),
}

impl<'c, 'a> Gathered<'c, 'a> {
    /// The element at `at`, of which the first coordinates are those of `rows`.
    pub fn at(
        &self,
        b: &Builder<'c, 'a>,
        at: &[Value<'c, 'a>],
        rows: usize,
        buffers: bool,
    ) -> Result<Value<'c, 'a>, LowerError> {
        match self {
            Gathered::Whole(v, dtype) => load_at(b, *v, buffers, at, *dtype),
            Gathered::Row(v, dtype, strip) => {
                let mut at = at.get(rows..).unwrap_or_default().to_vec();
                if let (Some(strip), Some(lane)) = (strip, at.last_mut()) {
                    *lane = b.value("arith.subi", &[*lane, strip.start], b.index_type(), &[])?;
                }
                load_at(b, *v, buffers, &at, *dtype)
            }
            Gathered::Scalar(v) => Ok(*v),
        }
    }
}

impl<'c, 'a> Emitter<'c, 'a, '_> {
    /// What the nest gathers from, in the row at `rows` if there are any.
    pub(super) fn gathers(
        &mut self,
        b: &Builder<'c, 'a>,
        rows: &[Value<'c, 'a>],
        nest: &Nest,
    ) -> Result<Vec<Gathered<'c, 'a>>, LowerError> {
        let mut all = Vec::with_capacity(nest.gathers.len());
        for v in &nest.gathers {
            let dtype = self.dtype(*v);
            // A check has failed before anything is read from nothing, and buffers without elements are never touched.
            if self.memory.is_some() && self.shape(*v).elements() == 0 {
                let zero = scalar::constant(b, 0.0, dtype)?;
                all.push(Gathered::Scalar(scalar::store(b, zero, dtype)?));
                continue;
            }
            all.push(match (self.place(*v), self.register(*v)) {
                (Place::Register, Some(value)) => Gathered::Scalar(value),
                _ => match self.row(b, rows.len(), *v)? {
                    Some(row) => Gathered::Row(row, dtype, self.strip),
                    None => Gathered::Whole(self.whole(b, *v)?, dtype),
                },
            });
        }
        Ok(all)
    }
}
