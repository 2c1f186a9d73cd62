//! Elementwise operators of one operand: signs, roots, rounding, and the elementary functions.

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
    // A function of floats that the kernel has by name.
    macro_rules! function {
        ($name:literal, $doc:literal, $reference:expr, $kernel:ident) => {
            op($name, $doc, Floats, $reference, same, |x, _| Scalar::unary(UnaryFn::$kernel, x))
        };
    }
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
        op("relu", "x if x > 0, +0 otherwise, NaN at NaN", Floats, relu, same, |x, dtype| {
            Scalar::binary(BinaryFn::Max, x, Scalar::constant(0.0, dtype))
        }),
        function!("sqrt", "the square root of x; NaN below -0", f64::sqrt, Sqrt),
        function!("rsqrt", "1 / sqrt(x); inf at 0, NaN below -0", |x| 1.0 / x.sqrt(), Rsqrt),
        function!("cbrt", "the cube root of x", f64::cbrt, Cbrt),
        function!("floor", "the greatest integer that is not above x", f64::floor, Floor),
        function!("ceil", "the least integer that is not below x", f64::ceil, Ceil),
        function!("round", "the integer nearest to x, halves to the even one", f64::round_ties_even, Round),
        function!("exp", "e^x", f64::exp, Exp),
        function!("exp2", "2^x", f64::exp2, Exp2),
        function!("expm1", "e^x - 1, accurate near 0", f64::exp_m1, Expm1),
        function!("log", "ln x; -inf at 0, NaN below", f64::ln, Log),
        function!("log1p", "ln(1 + x), accurate near 0; -inf at -1, NaN below", f64::ln_1p, Log1p),
        function!("sin", "the sine of x radians; NaN at the infinities", f64::sin, Sin),
        function!("cos", "the cosine of x radians; NaN at the infinities", f64::cos, Cos),
        function!("tan", "the tangent of x radians; NaN at the infinities", f64::tan, Tan),
        function!("asin", "the angle in -pi/2..pi/2 whose sine is x; NaN beyond -1..1", f64::asin, Asin),
        function!("acos", "the angle in 0..pi whose cosine is x; NaN beyond -1..1", f64::acos, Acos),
        function!("atan", "the angle in -pi/2..pi/2 whose tangent is x", f64::atan, Atan),
        function!("sinh", "the hyperbolic sine of x", f64::sinh, Sinh),
        function!("cosh", "the hyperbolic cosine of x", f64::cosh, Cosh),
        function!("tanh", "the hyperbolic tangent of x", f64::tanh, Tanh),
        function!("sigmoid", "1 / (1 + e^-x), accurate to the last digits where that is small", sigmoid, Sigmoid),
        function!("erf", "the error function, 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x", libm::erf, Erf),
        function!("erfc", "1 - erf(x), accurate to the last digits where that is small", libm::erfc, Erfc),
    ]
}

fn sign(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() { x } else { x.signum() }
}

/// 1 / (1 + e^-x) without overflow of e^-x.
pub fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
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
            // Its least results round to 0. Other bounds have room for the errors of any way to compute it.
            "exp" => {
                let lo = if x.lo >= -80.0 { x.lo.exp() * (1.0 - 1e-5) } else { 0.0 };
                Range::new(lo, if x.hi <= 80.0 { x.hi.exp() * (1.0 + 1e-5) } else { f64::INFINITY })
            }
            "log" if x.lo >= 1.0 => Range::NON_NEGATIVE,
            "log" if x.hi <= 1.0 => Range::NON_POSITIVE,
            "sqrt" => x.map(|v| v.max(0.0).sqrt()),
            // rsqrt(-0) is -inf.
            "rsqrt" if x.lo > 0.0 => Range::NON_NEGATIVE,
            "floor" => x.map(f64::floor),
            "ceil" => x.map(f64::ceil),
            "round" => x.map(f64::round_ties_even),
            "exp2" => Range::NON_NEGATIVE,
            "expm1" => Range::new(-1.0, f64::INFINITY),
            "log1p" if x.lo >= 0.0 => Range::NON_NEGATIVE,
            "sin" | "cos" => Range::new(-1.0, 1.0),
            "cosh" => Range::new(1.0, f64::INFINITY),
            "acos" => Range::new(0.0, 4.0),
            "asin" | "atan" => Range::new(-2.0, 2.0),
            // Odd functions that grow keep the sign of x.
            "cbrt" | "sinh" if x.lo >= 0.0 => Range::NON_NEGATIVE,
            "cbrt" | "sinh" if x.hi <= 0.0 => Range::NON_POSITIVE,
            "erfc" if x.lo >= 0.0 => Range::UNIT,
            "erfc" => Range::new(0.0, 2.0),
            "sigmoid" => Range::UNIT,
            "tanh" | "erf" => x.map(f64::signum).hull(Range::point(0.0)),
            "relu" => x.map(relu),
            _ => Range::UNBOUNDED,
        }
        .fit(result)
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        matches!(
            self.name,
            "neg"
                | "abs"
                | "sign"
                | "relu"
                | "floor"
                | "ceil"
                | "round"
                | "exp"
                | "exp2"
                | "expm1"
                | "cbrt"
                | "atan"
                | "sinh"
                | "cosh"
                | "tanh"
                | "sigmoid"
                | "erf"
                | "erfc"
        )
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
