//! splat, cast and stop_gradient.

use std::sync::Arc;

use super::premises::{Premises, host};
use crate::ir::array::{Array, Values};
use crate::ir::attr::{AttrKind, AttrValue};
use crate::ir::kernel::{Kernel, Loop, Scalar};
use crate::ir::memory::{self, OutOfMemory};
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError, TypeErrorKind, Where};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

struct Splat {
    signature: Signature,
}

struct Cast {
    signature: Signature,
}

struct StopGradient {
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    vec![
        Arc::new(Splat {
            signature: Signature::new(Vec::new()).attr("value", AttrKind::Float).attr("type", AttrKind::Type),
        }),
        Arc::new(Cast { signature: Signature::operands_only(&["x"]).attr("dtype", AttrKind::DType) }),
        Arc::new(StopGradient { signature: Signature::operands_only(&["x"]) }),
    ]
}

/// Can the dtype hold the value, rounding aside?
pub(super) fn holds(dtype: DType, value: f64) -> bool {
    match dtype {
        DType::F64 => true,
        DType::F32 => !value.is_finite() || (value as f32).is_finite(),
        DType::Bool => value == 0.0 || value == 1.0,
        // 2^63 itself is out of range, and the greatest f64 below it is exact.
        DType::I64 => {
            let limit = 2f64.powi(63);
            value.fract() == 0.0 && (-limit..limit).contains(&value)
        }
        DType::I32 => value.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value),
    }
}

/// A value as a constant of the dtype, rounded once.
pub(super) fn rounded(dtype: DType, value: f64) -> f64 {
    if dtype == DType::F32 { f64::from(value as f32) } else { value }
}

/// `n` times a value that the dtype holds.
pub(super) fn filled(dtype: DType, n: u64, value: f64) -> Result<Values, OutOfMemory> {
    Ok(match dtype {
        DType::F32 | DType::F64 => Values::Float(memory::filled(n, rounded(dtype, value))?),
        DType::I32 | DType::I64 => Values::Int(memory::filled(n, value as i64)?),
        DType::Bool => Values::Bool(memory::filled(n, value != 0.0)?),
    })
}

impl Operator for Splat {
    fn name(&self) -> &str {
        "splat"
    }

    fn doc(&self) -> &str {
        "a tensor of one value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        let (Some(value), Some(ty)) = (call.attrs[0].as_float(), call.attrs[1].as_type()) else {
            return Err(premises.error(TypeErrorKind::Attribute, Where::Call, "needs a number and a tensor type"));
        };
        if !holds(ty.dtype, value) {
            return Err(premises
                .error(TypeErrorKind::Attribute, Where::Attr("value"), format!("cannot write {value} as {}", ty.dtype))
                .help("choose a value of the dtype's range, without a fraction for integers"));
        }
        Ok(ty.clone())
    }

    /// The value rounded to the dtype, once: equal constants are then equal attributes, and arithmetic on constants is
    /// arithmetic of the dtype.
    fn canonical(&self, attrs: &[AttrValue]) -> Option<Vec<AttrValue>> {
        let [value, AttrValue::Type(ty)] = attrs else { return None };
        let value = value.as_float()?;
        let rounded = rounded(ty.dtype, value);
        let changes = rounded != value && !value.is_nan();
        changes.then(|| vec![AttrValue::float(rounded), AttrValue::Type(ty.clone())])
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let value = eval.call.attrs[0].as_float().unwrap_or(0.0);
        let values = filled(eval.result.dtype, eval.result.shape.elements(), value)?;
        Ok(Array::new(eval.result.shape.clone(), values))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let value = call.attrs[0].as_float().unwrap_or(0.0);
        let body = Scalar::constant(value, result.dtype);
        Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 0, body)])
    }

    fn range(&self, _operands: &[Range], call: Call<'_>, result: &TensorType) -> Range {
        Range::point(call.attrs[0].as_float().unwrap_or(f64::NAN)).fit(result)
    }

    fn keeps_numbers(&self, call: Call<'_>) -> bool {
        call.attrs[0].as_float().is_some_and(|v| !v.is_nan())
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let rows: [(f64, DType, &[u64]); 6] = [
            (1.5, DType::F32, &[3]),
            (-0.0, DType::F64, &[2, 3]),
            (f64::NEG_INFINITY, DType::F32, &[]),
            (7.0, DType::I64, &[2]),
            (-3.0, DType::I32, &[1, 2, 2]),
            (1.0, DType::Bool, &[2, 1, 1, 2]),
        ];
        rows.into_iter()
            .map(|(v, dtype, dims)| (vec![], vec![AttrValue::float(v), AttrValue::Type(host(dtype, dims))]))
            .collect()
    }
}

impl Operator for Cast {
    fn name(&self) -> &str {
        "cast"
    }

    fn doc(&self) -> &str {
        "x in another dtype: floats to integers are truncated and saturate, NaN gives 0; numbers to Bool by x != 0"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        match &call.attrs[0] {
            AttrValue::DType(dtype) => Ok(premises.ty(0).with_dtype(*dtype)),
            _ => Err(premises.error(TypeErrorKind::Attribute, Where::Attr("dtype"), "needs a dtype")),
        }
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let to = eval.result.dtype;
        let float = |v: f64| eval.precision.round(to, v);
        let int = |v: i64| if to == DType::I32 { v.clamp(i32::MIN.into(), i32::MAX.into()) } else { v };
        let values = match (&eval.args[0].values, to) {
            (Values::Float(v), DType::F32 | DType::F64) => Values::Float(memory::map(v, |x| float(*x))?),
            (Values::Float(v), DType::I32 | DType::I64) => Values::Int(memory::map(v, |x| int(*x as i64))?),
            (Values::Float(v), DType::Bool) => Values::Bool(memory::map(v, |x| *x != 0.0)?),
            // One rounding: an i64 goes to f32 directly, not by way of f64.
            (Values::Int(v), DType::F32) if eval.precision == crate::ir::Precision::Typed => {
                Values::Float(memory::map(v, |x| f64::from(*x as f32))?)
            }
            (Values::Int(v), DType::F32 | DType::F64) => Values::Float(memory::map(v, |x| *x as f64)?),
            (Values::Int(v), DType::I32 | DType::I64) => Values::Int(memory::map(v, |x| int(*x))?),
            (Values::Int(v), DType::Bool) => Values::Bool(memory::map(v, |x| *x != 0)?),
            (Values::Bool(v), DType::F32 | DType::F64) => Values::Float(memory::map(v, |x| f64::from(u8::from(*x)))?),
            (Values::Bool(v), DType::I32 | DType::I64) => Values::Int(memory::map(v, |x| i64::from(*x))?),
            (Values::Bool(v), DType::Bool) => Values::Bool(memory::copy(v)?),
        };
        Ok(Array::new(eval.result.shape.clone(), values))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let body = if call.operands[0].dtype == result.dtype {
            Scalar::Input(0)
        } else {
            Scalar::cast(Scalar::Input(0), result.dtype)
        };
        Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 1, body)])
    }

    fn range(&self, operands: &[Range], call: Call<'_>, result: &TensorType) -> Range {
        if !result.dtype.is_int() {
            return operands[0].fit(result);
        }
        // Floats saturate, and NaN becomes 0.
        let all = Range::of_type(result);
        let whole = operands[0].map(|v| v.trunc().clamp(all.lo, all.hi));
        if call.operands[0].dtype.is_float() { whole.hull(Range::point(0.0)) } else { whole }
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        true
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let shapes: [&[u64]; 4] = [&[5], &[2, 3], &[2, 1, 3], &[1, 2, 2, 2]];
        let pairs = DType::ALL.into_iter().flat_map(|from| DType::ALL.map(|to| (from, to)));
        pairs
            .zip(shapes.into_iter().cycle())
            .map(|((from, to), dims)| (vec![host(from, dims)], vec![AttrValue::DType(to)]))
            .collect()
    }
}

impl Operator for StopGradient {
    fn name(&self) -> &str {
        "stop_gradient"
    }

    fn doc(&self) -> &str {
        "x; its VJP passes no cotangent"
    }

    fn is_constant(&self) -> bool {
        true
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        Ok(call.operands[0].clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        Ok(eval.args[0].copy()?)
    }

    fn kernel(&self, _call: Call<'_>, result: &TensorType) -> Kernel {
        Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 1, Scalar::Input(0))])
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, _result: &TensorType) -> Range {
        operands[0]
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        true
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let dims: [&[u64]; 4] = [&[3], &[2, 3], &[2, 1, 3], &[1, 2, 2, 3]];
        dims.into_iter()
            .zip([DType::F32, DType::F64].into_iter().cycle())
            .map(|(d, t)| (vec![host(t, d)], vec![]))
            .collect()
    }
}
