//! Functions of two floats: pow and atan2.

use std::sync::Arc;

use super::premises::{Accept, Premises, host};
use crate::ir::array::{Array, Values};
use crate::ir::attr::AttrValue;
use crate::ir::kernel::{BinaryFn, CompareFn, Kernel, Loop, Scalar};
use crate::ir::memory;
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

/// `out[i] = f(a[i], b[i])`, floats of one type.
struct Function {
    name: &'static str,
    doc: &'static str,
    float: fn(f64, f64) -> f64,
    body: fn(Scalar, Scalar) -> Scalar,
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    let op = |name, doc, float, body| -> Arc<dyn Operator> {
        Arc::new(Function { name, doc, float, body, signature: Signature::operands_only(&["a", "b"]) })
    };
    vec![
        op(
            "pow",
            "a to the power b; 1 where b is 0, NaN where a < 0 and b is not an integer, or one is NaN",
            power,
            power_body,
        ),
        op("atan2", "the angle of the point (b, a) in -pi..pi; the signs of zeros count", f64::atan2, |a, b| {
            Scalar::binary(BinaryFn::Atan2, a, b)
        }),
    ]
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

impl Operator for Function {
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
        premises.dtype(0, Accept::Floats)?;
        premises.equal_dtypes(0, 1)?;
        premises.equal_shapes(0, 1)?;
        Ok(premises.ty(0).clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let pairs = eval.args[0].floats().iter().zip(eval.args[1].floats());
        let values = pairs.map(|(a, b)| eval.precision.round(eval.result.dtype, (self.float)(*a, *b)));
        let values = memory::collect(eval.result.shape.elements(), values)?;
        Ok(Array::new(eval.result.shape.clone(), Values::Float(values)))
    }

    fn kernel(&self, _call: Call<'_>, result: &TensorType) -> Kernel {
        let body = (self.body)(Scalar::Input(0), Scalar::Input(1));
        Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 2, body)])
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, result: &TensorType) -> Range {
        match self.name {
            // A power of a positive number is not negative; of -0 it may be -inf.
            "pow" if operands[0].lo > 0.0 => Range::NON_NEGATIVE,
            "atan2" => Range::new(-4.0, 4.0),
            _ => Range::of_type(result),
        }
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        [
            host(DType::F32, &[3]),
            host(DType::F64, &[2, 3]),
            host(DType::F32, &[2, 1, 3]),
            host(DType::F64, &[1, 2, 2, 3]),
        ]
        .into_iter()
        .map(|t| (vec![t.clone(), t], vec![]))
        .collect()
    }
}
