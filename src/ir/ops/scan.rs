//! Running totals along an axis: cumsum, and the linear recurrence that products of all but one are made of.

use std::sync::Arc;

use super::constant::{holds, rounded};
use super::premises::{Accept, Premises, host};
use super::unary::wrap;
use crate::ir::array::{Array, Values, linear, points};
use crate::ir::attr::{AttrKind, AttrValue};
use crate::ir::kernel::{BinaryFn, CompareFn, Kernel, Loop, Scalar, Sequence, Source};
use crate::ir::memory;
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError, TypeErrorKind, Visibility, Where};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

struct CumSum {
    signature: Signature,
}

struct LinearRecurrence {
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    vec![
        Arc::new(CumSum { signature: Signature::operands_only(&["x"]).attr("axis", AttrKind::Axis) }),
        Arc::new(LinearRecurrence {
            signature: Signature::operands_only(&["a", "b"])
                .attr("axis", AttrKind::Axis)
                .attr("start", AttrKind::Float),
        }),
    ]
}

/// The linear index of the element before `point` along an axis, if there is one.
fn before(shape: &[u64], mut point: Vec<u64>, axis: usize) -> Option<usize> {
    point[axis] = point[axis].checked_sub(1)?;
    Some(linear(shape, point))
}

impl Operator for CumSum {
    fn name(&self) -> &str {
        "cumsum"
    }

    fn doc(&self) -> &str {
        "the sum of the elements up to and with this one along the axis; integers wrap around"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        premises.dtype(0, Accept::Numbers)?;
        premises.axis(call.attrs[0].as_int().unwrap_or(-1), premises.ty(0).rank())?;
        Ok(premises.ty(0).clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (x, axis, dtype) = (eval.args[0], eval.call.axis(0), eval.result.dtype);
        let values = match &x.values {
            Values::Float(v) => {
                let mut out: Vec<f64> = memory::reserve(v.len() as u64)?;
                for (point, x_here) in points(&x.shape).zip(v) {
                    let sum = before(&x.shape, point, axis).map_or(0.0, |i| out[i]);
                    out.push(eval.precision.round(dtype, sum + x_here));
                }
                Values::Float(out)
            }
            Values::Int(v) => {
                let mut out: Vec<i64> = memory::reserve(v.len() as u64)?;
                for (point, x_here) in points(&x.shape).zip(v) {
                    let sum = before(&x.shape, point, axis).map_or(0, |i| out[i]);
                    out.push(wrap(dtype, sum.wrapping_add(*x_here)));
                }
                Values::Int(out)
            }
            Values::Bool(v) => Values::Bool(memory::copy(v)?),
        };
        Ok(Array::new(x.shape.clone(), values))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let body = Scalar::binary(BinaryFn::Add, Scalar::Previous, Scalar::Input(0));
        let scan = Loop::elementwise(&result.shape, result.dtype, 1, body);
        Kernel::Loops(vec![Loop { sequence: Some(Sequence::Scan(call.axis(0))), ..scan }])
    }

    fn range(&self, operands: &[Range], call: Call<'_>, result: &TensorType) -> Range {
        let x = operands[0];
        x.hull(x.sum(call.operands[0].shape[call.axis(0)], result.dtype)).fit(result)
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let rows: [(DType, &[u64], i64); 9] = [
            (DType::F32, &[5], 0),
            (DType::F64, &[2, 3], 1),
            (DType::F32, &[4, 3], 0),
            (DType::F32, &[2, 1, 4], 1),
            (DType::F64, &[2, 3, 2], 1),
            (DType::F32, &[2, 3, 1, 2], 0),
            (DType::I64, &[2, 3], 1),
            (DType::I32, &[3, 2], 0),
            (DType::F32, &[2, 0], 1),
        ];
        rows.into_iter().map(|(dtype, dims, axis)| (vec![host(dtype, dims)], vec![AttrValue::Int(axis)])).collect()
    }
}

impl Operator for LinearRecurrence {
    fn name(&self) -> &str {
        "linear_recurrence"
    }

    fn doc(&self) -> &str {
        "out[0] = start, out[i + 1] = a[i] out[i] + b[i] along the axis"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn visibility(&self) -> Visibility {
        Visibility::Internal("it is what the gradient of `prod` is made of: products of all elements but one")
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        premises.placement()?;
        premises.dtype(0, Accept::Floats)?;
        premises.equal_dtypes(0, 1)?;
        premises.equal_shapes(0, 1)?;
        let ty = premises.ty(0);
        premises.axis(call.attrs[0].as_int().unwrap_or(-1), ty.rank())?;
        let start = call.attrs[1].as_float().unwrap_or(0.0);
        if !holds(ty.dtype, start) {
            return Err(premises
                .error(TypeErrorKind::Attribute, Where::Attr("start"), format!("cannot write {start} as {}", ty.dtype))
                .help("choose a value of the dtype's range"));
        }
        Ok(ty.clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (a, b) = (eval.args[0].floats(), eval.args[1].floats());
        let (shape, dtype, axis) = (&eval.result.shape, eval.result.dtype, eval.call.axis(0));
        let start = rounded(dtype, eval.call.attrs[1].as_float().unwrap_or(0.0));
        let round = |v| eval.precision.round(dtype, v);
        let mut out: Vec<f64> = memory::reserve(shape.elements())?;
        for point in points(shape) {
            out.push(match before(shape, point, axis) {
                Some(i) => round(round(a[i] * out[i]) + b[i]),
                None => start,
            });
        }
        Ok(Array::new(shape.clone(), Values::Float(out)))
    }

    /// At the first place, what is read before it is not used.
    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let axis = call.axis(0);
        let int = |v: f64| Scalar::constant(v, DType::I64);
        let mut at: Vec<Scalar> = (0..result.rank()).map(Scalar::Index).collect();
        let before = Scalar::binary(BinaryFn::Sub, Scalar::Index(axis), int(1.0));
        at[axis] = Scalar::binary(BinaryFn::Max, before, int(0.0));
        let read = |operand| Scalar::Gather(Source::Operand(operand), at.clone());
        let scaled = Scalar::binary(BinaryFn::Mul, read(0), Scalar::Previous);
        let next = Scalar::binary(BinaryFn::Add, scaled, read(1));
        let first = Scalar::compare(CompareFn::Eq, Scalar::Index(axis), int(0.0));
        let start = rounded(result.dtype, call.attrs[1].as_float().unwrap_or(0.0));
        let body = Scalar::select(first, Scalar::constant(start, result.dtype), next);
        let scan = Loop::elementwise(&result.shape, result.dtype, 0, body);
        Kernel::Loops(vec![Loop { sequence: Some(Sequence::Scan(axis)), ..scan }])
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let rows: [(DType, &[u64], i64, f64); 6] = [
            (DType::F32, &[5], 0, 1.0),
            (DType::F64, &[2, 3], 1, 0.0),
            (DType::F32, &[4, 3], 0, 0.1),
            (DType::F32, &[2, 1, 4], 1, 1.0),
            (DType::F64, &[2, 3, 1, 2], 1, 1.0),
            (DType::F32, &[2, 0], 1, 1.0),
        ];
        rows.into_iter()
            .map(|(dtype, dims, axis, start)| {
                (vec![host(dtype, dims); 2], vec![AttrValue::Int(axis), AttrValue::float(start)])
            })
            .collect()
    }
}
