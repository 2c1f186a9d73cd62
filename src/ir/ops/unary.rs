//! Elementwise operators of one operand: neg, abs, sign, exp, log, sqrt, rsqrt, tanh, relu.

use std::sync::Arc;

use super::premises::{Accept, Premises, host};
use crate::ir::array::{Array, Values};
use crate::ir::attr::AttrValue;
use crate::ir::kernel::{BinaryFn, CompareFn, Kernel, Loop, Scalar, UnaryFn};
use crate::ir::memory;
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

/// `out[i] = f(x[i])`.
struct Unary {
    name: &'static str,
    doc: &'static str,
    accept: Accept,
    float: fn(f64) -> f64,
    /// Of integers, where they are accepted; wraps around in I64, and the result is then wrapped to its dtype.
    int: fn(i64) -> i64,
    body: fn(Scalar, DType) -> Scalar,
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    use Accept::{Floats, Numbers};
    let op = |name, doc, accept, float, int, body| -> Arc<dyn Operator> {
        Arc::new(Unary { name, doc, accept, float, int, body, signature: Signature::operands_only(&["x"]) })
    };
    let same: fn(i64) -> i64 = |x| x;
    vec![
        op(
            "neg",
            "-x; integers wrap around",
            Numbers,
            |x| -x,
            i64::wrapping_neg,
            |x, _| Scalar::unary(UnaryFn::Neg, x),
        ),
        op("abs", "|x|; integers wrap around", Numbers, f64::abs, i64::wrapping_abs, |x, _| {
            Scalar::unary(UnaryFn::Abs, x)
        }),
        op("sign", "1 if x > 0, -1 if x < 0, x itself (0, -0, NaN) otherwise", Numbers, sign, i64::signum, sign_body),
        op("exp", "e^x", Floats, f64::exp, same, |x, _| Scalar::unary(UnaryFn::Exp, x)),
        op("log", "ln x; -inf at 0, NaN below", Floats, f64::ln, same, |x, _| Scalar::unary(UnaryFn::Log, x)),
        op("sqrt", "the square root of x; NaN below -0", Floats, f64::sqrt, same, |x, _| {
            Scalar::unary(UnaryFn::Sqrt, x)
        }),
        op(
            "rsqrt",
            "1 / sqrt(x); inf at 0, NaN below -0",
            Floats,
            |x| 1.0 / x.sqrt(),
            same,
            |x, _| Scalar::unary(UnaryFn::Rsqrt, x),
        ),
        op("tanh", "the hyperbolic tangent of x", Floats, f64::tanh, same, |x, _| Scalar::unary(UnaryFn::Tanh, x)),
        op("relu", "x if x > 0, +0 otherwise, NaN at NaN", Floats, relu, same, |x, dtype| {
            Scalar::binary(BinaryFn::Max, x, Scalar::constant(0.0, dtype))
        }),
    ]
}

fn sign(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() { x } else { x.signum() }
}

fn sign_body(x: Scalar, dtype: DType) -> Scalar {
    let constant = |v| Scalar::constant(v, dtype);
    let negative = Scalar::compare(CompareFn::Lt, x.clone(), constant(0.0));
    let positive = Scalar::compare(CompareFn::Gt, x.clone(), constant(0.0));
    Scalar::select(positive, constant(1.0), Scalar::select(negative, constant(-1.0), x))
}

fn relu(x: f64) -> f64 {
    if x.is_nan() || x > 0.0 { x } else { 0.0 }
}

/// An I64 result brought into its dtype; what does not fit wraps around.
pub(super) fn wrap(dtype: DType, value: i64) -> i64 {
    if dtype == DType::I32 { i64::from(value as i32) } else { value }
}

impl Operator for Unary {
    fn name(&self) -> &str {
        self.name
    }

    fn doc(&self) -> &str {
        self.doc
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name, &self.signature, call);
        premises.dtype(0, self.accept)?;
        Ok(premises.ty(0).clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let x = eval.args[0];
        let dtype = eval.result.dtype;
        let values = match &x.values {
            Values::Float(v) => Values::Float(memory::map(v, |x| eval.precision.round(dtype, (self.float)(*x)))?),
            Values::Int(v) => Values::Int(memory::map(v, |x| wrap(dtype, (self.int)(*x)))?),
            Values::Bool(v) => Values::Bool(memory::copy(v)?),
        };
        Ok(Array::new(x.shape.clone(), values))
    }

    fn kernel(&self, _call: Call<'_>, result: &TensorType) -> Kernel {
        let body = (self.body)(Scalar::Input(0), result.dtype);
        Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 1, body)])
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, result: &TensorType) -> Range {
        let x = operands[0];
        match self.name {
            "neg" => -x,
            "abs" => x.abs(),
            "sign" => x.map(sign),
            // Its least results round to 0.
            "exp" => Range::NON_NEGATIVE,
            "log" if x.lo >= 1.0 => Range::NON_NEGATIVE,
            "log" if x.hi <= 1.0 => Range::NON_POSITIVE,
            "sqrt" => x.map(|v| v.max(0.0).sqrt()),
            // rsqrt(-0) is -inf.
            "rsqrt" if x.lo > 0.0 => Range::NON_NEGATIVE,
            "tanh" => x.map(f64::signum).hull(Range::point(0.0)),
            "relu" => x.map(relu),
            _ => Range::UNBOUNDED,
        }
        .fit(result)
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let mut types = vec![
            host(DType::F32, &[3]),
            host(DType::F64, &[2, 3]),
            host(DType::F32, &[2, 1, 3]),
            host(DType::F32, &[1, 2, 2, 3]),
        ];
        if self.accept == Accept::Numbers {
            types.extend([host(DType::I32, &[5]), host(DType::I64, &[2, 2])]);
        }
        types.into_iter().map(|t| (vec![t], vec![])).collect()
    }
}
