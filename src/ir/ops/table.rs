//! gather, which takes rows of a table, and the IR-internal scatter_add, which adds to rows.

use std::sync::Arc;

use super::premises::{Premises, host};
use super::unary::wrap;
use crate::ir::array::{Array, Values};
use crate::ir::attr::{AttrKind, AttrValue};
use crate::ir::kernel::{Combine, Kernel, Loop, MapDim, Read, Scalar, Sequence, Source};
use crate::ir::memory;
use crate::ir::operator::{
    Bound, Call, Eval, EvalError, Operator, Signature, Trap, TypeError, TypeErrorKind, Visibility, Where,
};
use crate::ir::range::Range;
use crate::ir::types::{DType, Shape, TensorType};

struct Gather {
    signature: Signature,
}

struct ScatterAdd {
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    vec![
        Arc::new(Gather { signature: Signature::operands_only(&["table", "ids"]) }),
        Arc::new(ScatterAdd {
            signature: Signature::operands_only(&["updates", "ids"]).attr("dest_ty", AttrKind::Type),
        }),
    ]
}

/// The ids as places of rows.
fn rows(operator: &dyn Operator, ids: &Array, size: u64) -> Result<Vec<usize>, EvalError> {
    let mut rows = memory::reserve(ids.values.len() as u64)?;
    for id in ids.ints() {
        match u64::try_from(*id) {
            Ok(row) if row < size => rows.push(row as usize),
            _ => return Err(Trap { operator: operator.name().into() }.into()),
        }
    }
    Ok(rows)
}

/// `ids` as an I64, whatever integer it is.
fn row(ids: &TensorType, input: usize) -> Scalar {
    if ids.dtype == DType::I64 { Scalar::Input(input) } else { Scalar::cast(Scalar::Input(input), DType::I64) }
}

/// `ids.shape ++ table.shape[1..]`.
fn result_dims(ids: &TensorType, table: &TensorType) -> Vec<u64> {
    ids.shape.iter().chain(table.shape.iter().skip(1)).copied().collect()
}

/// The types of the instances of both operators: a table and ids.
fn families() -> impl Iterator<Item = (TensorType, TensorType)> {
    let rows: [(DType, &[u64], DType, &[u64]); 8] = [
        (DType::F32, &[5, 3], DType::I64, &[4]),
        (DType::F64, &[4], DType::I32, &[6]),
        (DType::F32, &[3, 2], DType::I64, &[]),
        (DType::F32, &[3, 2], DType::I32, &[2, 3]),
        (DType::F64, &[2, 1, 3], DType::I64, &[2, 1]),
        (DType::F32, &[3, 2, 1, 2], DType::I64, &[2]),
        (DType::F32, &[3, 2], DType::I64, &[0]),
        (DType::F64, &[3, 0], DType::I32, &[2]),
    ];
    rows.into_iter().map(|(dtype, table, ids_dtype, ids)| (host(dtype, table), host(ids_dtype, ids)))
}

impl Operator for Gather {
    fn name(&self) -> &str {
        "gather"
    }

    fn doc(&self) -> &str {
        "out[i ++ b] = table[[ids[i]] ++ b]: the rows of `table` that the ids (I64 or I32, of any shape) name; an id out of range traps"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        premises.rank_at_least(0, 1, "`unsqueeze` it to a table of one row")?;
        premises.integers(1)?;
        premises.placement()?;
        let (table, ids) = (premises.ty(0), premises.ty(1));
        let shape =
            premises.result_shape(result_dims(ids, table)).map_err(|error| error.help("take fewer rows at a time"))?;
        Ok(table.with_shape(shape))
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (table, ids) = (eval.args[0], eval.args[1]);
        let rows = rows(self, ids, table.shape[0])?;
        let width = table.shape[1..].iter().product::<u64>() as usize;
        let places = rows.into_iter().flat_map(|row| row * width..(row + 1) * width);
        Ok(Array::new(eval.result.shape.clone(), table.values.pick(eval.result.shape.elements(), places)?))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let ids = call.operands[1];
        let inner = (ids.rank()..result.rank()).map(Scalar::Index);
        let at = [row(ids, 0)].into_iter().chain(inner).collect();
        let mut take = Loop::elementwise(&result.shape, result.dtype, 0, Scalar::Gather(Source::Operand(0), at));
        take.inputs = vec![Read::same(1, ids.rank())];
        Kernel::Loops(vec![take])
    }

    fn bound(&self, call: Call<'_>) -> Option<Bound> {
        Some(Bound { operand: 1, size: *call.operands[0].shape.first()? })
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, _result: &TensorType) -> Range {
        operands[0]
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        families().map(|(table, ids)| (vec![table, ids], vec![])).collect()
    }
}

impl Operator for ScatterAdd {
    fn name(&self) -> &str {
        "scatter_add"
    }

    fn doc(&self) -> &str {
        "out[[r] ++ b] = the sum of updates[i ++ b] over the i with ids[i] = r, in their order; an id out of range traps"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn visibility(&self) -> Visibility {
        Visibility::Internal("the AD pass builds it as the cotangent of `gather`")
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        let (updates, ids) = (premises.ty(0), premises.ty(1));
        let Some(dest) = call.attrs[0].as_type() else {
            let place = Where::Attr("dest_ty");
            return Err(premises.error(TypeErrorKind::Attribute, place, "needs a tensor type as `dest_ty`"));
        };
        premises.dtype(0, super::premises::Accept::Numbers)?;
        premises.integers(1)?;
        premises.placement()?;
        let wrong = |kind, message: String| {
            Err(premises
                .error(kind, Where::Attr("dest_ty"), message)
                .help("`dest_ty` is the type of the table that was gathered from"))
        };
        if dest.rank() < 1 {
            return wrong(TypeErrorKind::Rank, format!("needs a `dest_ty` of rank >= 1, not {dest}"));
        }
        if dest.placement != updates.placement {
            let message =
                format!("needs equal placement: `updates` is {}, `dest_ty` {}", updates.placement, dest.placement);
            return wrong(TypeErrorKind::Placement, message);
        }
        if dest.dtype != updates.dtype {
            let message = format!("needs equal dtype: `updates` is {}, but `dest_ty` is {}", updates.dtype, dest.dtype);
            return wrong(TypeErrorKind::DType, message);
        }
        let wanted = result_dims(ids, dest);
        if updates.shape[..] != wanted[..] {
            let message =
                format!("needs `updates` of shape {wanted:?}, one row of {dest} for each id, not {}", updates.shape);
            return wrong(TypeErrorKind::Shape, message);
        }
        Ok(dest.clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (updates, shape, dtype) = (eval.args[0], &eval.result.shape, eval.result.dtype);
        let rows = rows(self, eval.args[1], shape[0])?;
        let width = shape[1..].iter().product::<u64>() as usize;
        let places = || rows.iter().flat_map(|row| row * width..(row + 1) * width);
        let values = match &updates.values {
            Values::Float(v) => {
                let mut out = memory::filled(shape.elements(), 0.0)?;
                for (place, update) in places().zip(v) {
                    out[place] = eval.precision.round(dtype, out[place] + update);
                }
                Values::Float(out)
            }
            Values::Int(v) => {
                let mut out = memory::filled(shape.elements(), 0_i64)?;
                for (place, update) in places().zip(v) {
                    out[place] = wrap(dtype, out[place].wrapping_add(*update));
                }
                Values::Int(out)
            }
            Values::Bool(v) => Values::Bool(memory::copy(v)?),
        };
        Ok(Array::new(shape.clone(), values))
    }

    /// One pass over the updates: time in proportion to them and to the destination, which is cleared first.
    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let (updates, ids) = (call.operands[0], call.operands[1]);
        Kernel::Loops(vec![Loop {
            domain: updates.shape.to_vec(),
            inputs: vec![Read::same(0, updates.rank()), Read::same(1, ids.rank())],
            dtype: result.dtype,
            shape: result.shape.to_vec(),
            result_map: (ids.rank()..updates.rank()).map(MapDim::Dim).collect(),
            body: Scalar::Input(0),
            reduce: Some(Combine::Add),
            sequence: Some(Sequence::Scatter(row(ids, 1))),
        }])
    }

    fn bound(&self, call: Call<'_>) -> Option<Bound> {
        Some(Bound { operand: 1, size: *call.attrs[0].as_type()?.shape.first()? })
    }

    fn range(&self, operands: &[Range], call: Call<'_>, result: &TensorType) -> Range {
        let ids = call.operands[1].shape.elements();
        operands[0].hull(Range::point(0.0)).sum(ids, result.dtype).hull(Range::point(0.0)).fit(result)
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        families()
            .map(|(table, ids)| {
                let updates = table.with_shape(Shape::new(result_dims(&ids, &table)).unwrap_or_default());
                (vec![updates, ids], vec![AttrValue::Type(table)])
            })
            .collect()
    }
}
