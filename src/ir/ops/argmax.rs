//! argmax: where the greatest element stands.

use std::sync::Arc;

use super::premises::{Accept, Premises, host};
use crate::ir::array::{Array, Values, linear, points};
use crate::ir::attr::{AttrKind, AttrValue};
use crate::ir::kernel::{BinaryFn, Combine, CompareFn, Kernel, Loop, MapDim, Read, Scalar, Source, identity};
use crate::ir::memory;
use crate::ir::operator::{Call, Default, Eval, EvalError, Operator, Signature, TypeError, TypeErrorKind, Where};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

struct ArgMax {
    signature: Signature,
}

const AXIS: usize = 0;
const KEEPDIMS: usize = 1;

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    vec![Arc::new(ArgMax {
        signature: Signature::operands_only(&["x"]).attr("axis", AttrKind::Axis).attr_or(
            "keepdims",
            AttrKind::Bool,
            Default::Value(AttrValue::Bool(false)),
        ),
    })]
}

impl Operator for ArgMax {
    fn name(&self) -> &str {
        "argmax"
    }

    fn doc(&self) -> &str {
        "the index, an I64, of the greatest element along the axis: of the first of equal ones, of the first NaN if there is one"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        premises.dtype(0, Accept::Numbers)?;
        let ty = premises.ty(0);
        let axis = premises.axis(call.attrs[AXIS].as_int().unwrap_or(-1), ty.rank())?;
        if ty.shape[axis] == 0 {
            return Err(premises
                .error(TypeErrorKind::Empty, Where::Call, format!("has no value over the empty axis {axis} of {ty}"))
                .help("choose an axis that has elements"));
        }
        let shape = if call.flag(KEEPDIMS) { ty.shape.with_one(axis) } else { ty.shape.without(axis) };
        Ok(ty.with_shape(shape).with_dtype(DType::I64))
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let x = eval.args[0];
        let axis = eval.call.axis(AXIS);
        let rows = x.shape.with_one(axis);
        let first = |better: &dyn Fn(usize, usize) -> bool| {
            let indices = points(&rows).map(|mut point| {
                let mut place = |i: u64| {
                    point[axis] = i;
                    linear(&x.shape, point.iter().copied())
                };
                let best = (1..x.shape[axis]).fold(0, |best, i| {
                    let (best_place, here) = (place(best), place(i));
                    if better(here, best_place) { i } else { best }
                });
                best as i64
            });
            memory::collect(rows.elements(), indices)
        };
        let indices = match &x.values {
            // NaN is better than any number, and nothing is better than NaN.
            Values::Float(v) => first(&|a, b| v[a] > v[b] || v[a].is_nan() && !v[b].is_nan())?,
            Values::Int(v) => first(&|a, b| v[a] > v[b])?,
            Values::Bool(v) => first(&|a, b| v[a] & !v[b])?,
        };
        Ok(Array::new(eval.result.shape.clone(), Values::Int(indices)))
    }

    /// The maximum, then the least index of what equals it. It is NaN where there is a NaN, and only NaN differs from itself.
    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let (x, axis) = (call.operands[0], call.axis(AXIS));
        let rank = x.rank();
        let mut row = identity(rank);
        row[axis] = MapDim::Zero;
        let max = Loop {
            domain: x.shape.to_vec(),
            inputs: vec![Read::same(0, rank)],
            dtype: x.dtype,
            shape: x.shape.with_one(axis).to_vec(),
            result_map: row.clone(),
            body: Scalar::Input(0),
            reduce: Some(Combine::Max),
            sequence: None,
        };
        let mut hit = Scalar::compare(CompareFn::Eq, Scalar::Input(0), Scalar::Input(1));
        if x.dtype.is_float() {
            let nan = Scalar::compare(CompareFn::Ne, Scalar::Input(0), Scalar::Input(0));
            hit = Scalar::binary(BinaryFn::Or, hit, nan);
        }
        let nowhere = Scalar::constant(x.shape[axis] as f64, DType::I64);
        let mut result_map = row.clone();
        if !call.flag(KEEPDIMS) {
            result_map.remove(axis);
        }
        let index = Loop {
            domain: x.shape.to_vec(),
            inputs: vec![Read::same(0, rank), Read::new(Source::Temporary(0), row)],
            dtype: DType::I64,
            shape: result.shape.to_vec(),
            result_map,
            body: Scalar::select(hit, Scalar::Index(axis), nowhere),
            reduce: Some(Combine::Min),
            sequence: None,
        };
        Kernel::Loops(vec![max, index])
    }

    fn range(&self, _operands: &[Range], call: Call<'_>, result: &TensorType) -> Range {
        let last = call.operands[0].shape[call.axis(AXIS)].saturating_sub(1);
        Range::new(0.0, last as f64).fit(result)
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let rows: [(DType, &[u64], i64, bool); 8] = [
            (DType::F32, &[5], 0, false),
            (DType::F64, &[2, 3], 1, true),
            (DType::F32, &[4, 3], 0, false),
            (DType::F32, &[2, 1, 4], 1, false),
            (DType::F64, &[2, 3, 1, 2], 1, false),
            (DType::I64, &[2, 3], 1, false),
            (DType::I32, &[3, 2], 0, true),
            (DType::F32, &[0, 2], 1, false),
        ];
        rows.into_iter()
            .map(|(dtype, dims, axis, keepdims)| {
                (vec![host(dtype, dims)], vec![AttrValue::Int(axis), AttrValue::Bool(keepdims)])
            })
            .collect()
    }
}
