//! Elementwise operators of two operands of one type: add, sub, mul, div, maximum, minimum.

use std::sync::Arc;

use super::premises::{Accept, Premises, host};
use super::unary::wrap;
use crate::ir::array::{Array, Values};
use crate::ir::attr::AttrValue;
use crate::ir::kernel::{BinaryFn, Kernel, Loop, Scalar};
use crate::ir::memory;
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

/// `out[i] = f(a[i], b[i])`. Broadcasting is explicit in Kina, so the shapes are equal.
struct Binary {
    name: &'static str,
    doc: &'static str,
    float: fn(f64, f64) -> f64,
    /// Wraps around in I64; the result is then wrapped to its dtype.
    int: fn(i64, i64) -> i64,
    body: BinaryFn,
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    let op = |name, doc, float, int, body| -> Arc<dyn Operator> {
        Arc::new(Binary { name, doc, float, int, body, signature: Signature::operands_only(&["a", "b"]) })
    };
    vec![
        op("add", "a + b; integers wrap around", |a, b| a + b, i64::wrapping_add, BinaryFn::Add),
        op("sub", "a - b; integers wrap around", |a, b| a - b, i64::wrapping_sub, BinaryFn::Sub),
        op("mul", "a * b; integers wrap around", |a, b| a * b, i64::wrapping_mul, BinaryFn::Mul),
        op(
            "div",
            "a / b; integers are truncated, division by zero gives 0, the least integer by -1 gives itself",
            |a, b| a / b,
            |a, b| if b == 0 { 0 } else { a.wrapping_div(b) },
            BinaryFn::Div,
        ),
        op("maximum", "the greater of a and b; NaN if one is NaN; -0 < +0", greater, Ord::max, BinaryFn::Max),
        op("minimum", "the lesser of a and b; NaN if one is NaN; -0 < +0", lesser, Ord::min, BinaryFn::Min),
    ]
}

/// IEEE 754-2019 `maximum`.
pub(super) fn greater(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a > b || (a == b && a.is_sign_positive()) {
        a
    } else {
        b
    }
}

/// IEEE 754-2019 `minimum`.
pub(super) fn lesser(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a < b || (a == b && a.is_sign_negative()) {
        a
    } else {
        b
    }
}

impl Operator for Binary {
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
        premises.placement()?;
        premises.dtype(0, Accept::Numbers)?;
        premises.dtype(1, Accept::Numbers)?;
        premises.equal_dtypes(0, 1)?;
        premises.equal_shapes(0, 1)?;
        Ok(premises.ty(0).clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (a, b) = (eval.args[0], eval.args[1]);
        let (dtype, n) = (eval.result.dtype, eval.result.shape.elements());
        let values = if dtype.is_float() {
            let pairs = a.floats().iter().zip(b.floats());
            let of = |(a, b): (&f64, &f64)| eval.precision.round(dtype, (self.float)(*a, *b));
            Values::Float(memory::collect(n, pairs.map(of))?)
        } else {
            let pairs = a.ints().iter().zip(b.ints());
            Values::Int(memory::collect(n, pairs.map(|(a, b)| wrap(dtype, (self.int)(*a, *b))))?)
        };
        Ok(Array::new(eval.result.shape.clone(), values))
    }

    fn kernel(&self, _call: Call<'_>, result: &TensorType) -> Kernel {
        let body = Scalar::binary(self.body, Scalar::Input(0), Scalar::Input(1));
        Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 2, body)])
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, result: &TensorType) -> Range {
        let (a, b) = (operands[0], operands[1]);
        match self.body {
            BinaryFn::Add => a + b,
            BinaryFn::Sub => a - b,
            BinaryFn::Mul => a * b,
            BinaryFn::Div if result.dtype.is_float() => a / b,
            BinaryFn::Max => Range::new(a.lo.max(b.lo), a.hi.max(b.hi)),
            BinaryFn::Min => Range::new(a.lo.min(b.lo), a.hi.min(b.hi)),
            _ => Range::of_type(result),
        }
        .fit(result)
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        [
            host(DType::F32, &[3]),
            host(DType::F64, &[2, 3]),
            host(DType::F32, &[2, 1, 3]),
            host(DType::F32, &[1, 2, 2, 3]),
            host(DType::I32, &[5]),
            host(DType::I64, &[2, 2]),
        ]
        .into_iter()
        .map(|t| (vec![t.clone(), t], vec![]))
        .collect()
    }
}
