//! Elementwise operators of two operands of one type: arithmetic, maximum, minimum, pow, atan2.

use std::sync::Arc;

use super::premises::{Accept, Premises, host};
use super::unary::wrap;
use crate::ir::array::{Array, Values};
use crate::ir::attr::AttrValue;
use crate::ir::kernel::{BinaryFn, CompareFn, Kernel, Loop, Scalar};
use crate::ir::memory;
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

/// `out[i] = f(a[i], b[i])`. Broadcasting is explicit in Kina, so the shapes are equal.
struct Binary {
    name: &'static str,
    doc: &'static str,
    accept: Accept,
    float: fn(f64, f64) -> f64,
    /// Of integers, where they are accepted; wraps around in I64, and the result is then wrapped to its dtype.
    int: fn(i64, i64) -> i64,
    body: fn(Scalar, Scalar) -> Scalar,
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    use Accept::{Floats, Numbers};
    let op = |name, doc, accept, float, int, body| -> Arc<dyn Operator> {
        Arc::new(Binary { name, doc, accept, float, int, body, signature: Signature::operands_only(&["a", "b"]) })
    };
    // A function of numbers that the kernel has by name.
    macro_rules! function {
        ($name:literal, $doc:literal, $float:expr, $int:expr, $kernel:ident) => {
            op($name, $doc, Numbers, $float, $int, |a, b| Scalar::binary(BinaryFn::$kernel, a, b))
        };
    }
    let first: fn(i64, i64) -> i64 = |a, _| a;
    vec![
        function!("add", "a + b; integers wrap around", |a, b| a + b, i64::wrapping_add, Add),
        function!("sub", "a - b; integers wrap around", |a, b| a - b, i64::wrapping_sub, Sub),
        function!("mul", "a * b; integers wrap around", |a, b| a * b, i64::wrapping_mul, Mul),
        function!(
            "div",
            "a / b; integers are truncated, division by zero gives 0, the least integer by -1 gives itself",
            |a, b| a / b,
            |a, b| if b == 0 { 0 } else { a.wrapping_div(b) },
            Div
        ),
        function!("maximum", "the greater of a and b; NaN if one is NaN; -0 < +0", greater, Ord::max, Max),
        function!("minimum", "the lesser of a and b; NaN if one is NaN; -0 < +0", lesser, Ord::min, Min),
        op(
            "pow",
            "a to the power b; 1 where b is 0, NaN where a < 0 and b is not an integer, or one is NaN",
            Floats,
            power,
            first,
            power_body,
        ),
        op(
            "atan2",
            "the angle of the point (b, a) in -pi..pi; the signs of zeros count",
            Floats,
            f64::atan2,
            first,
            |a, b| Scalar::binary(BinaryFn::Atan2, a, b),
        ),
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

/// IEEE 754 `pow`, but NaN if one is NaN: there `pow(NaN, 0)` and `pow(1, NaN)` are 1, and NaN never turns into a number here.
fn power(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.powf(b) }
}

fn power_body(a: Scalar, b: Scalar) -> Scalar {
    // The sum is NaN if one of them is; the sum of opposite infinities is, too, so it is only asked for NaN operands.
    let is_nan = |x: &Scalar| Scalar::compare(CompareFn::Ne, x.clone(), x.clone());
    let sum = Scalar::binary(BinaryFn::Add, a.clone(), b.clone());
    let nan = Scalar::binary(BinaryFn::Or, is_nan(&a), is_nan(&b));
    Scalar::select(nan, sum, Scalar::binary(BinaryFn::Pow, a, b))
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
        premises.dtype(0, self.accept)?;
        premises.dtype(1, self.accept)?;
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
        let body = (self.body)(Scalar::Input(0), Scalar::Input(1));
        Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 2, body)])
    }

    /// Where an element is infinite or 0, differences and quotients may be NaN, of which nothing is said.
    fn range_of_one(&self, operand: Range, call: Call<'_>, result: &TensorType) -> Range {
        match self.name {
            "mul" => (operand.abs() * operand.abs()).fit(result),
            "sub" => Range::point(0.0),
            "div" if result.dtype.is_float() => Range::point(1.0),
            "div" => Range::UNIT,
            _ => self.range(&[operand, operand], call, result),
        }
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, result: &TensorType) -> Range {
        let (a, b) = (operands[0], operands[1]);
        match self.name {
            "add" => a + b,
            "sub" => a - b,
            "mul" => a * b,
            "div" if result.dtype.is_float() => a / b,
            "maximum" => Range::new(a.lo.max(b.lo), a.hi.max(b.hi)),
            "minimum" => Range::new(a.lo.min(b.lo), a.hi.min(b.hi)),
            // A power of a positive number is not negative; of -0 it may be -inf.
            "pow" if a.lo > 0.0 => Range::NON_NEGATIVE,
            "atan2" => Range::new(-4.0, 4.0),
            _ => Range::of_type(result),
        }
        .fit(result)
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        matches!(self.name, "maximum" | "minimum" | "atan2")
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
        types.into_iter().map(|t| (vec![t.clone(), t], vec![])).collect()
    }
}
