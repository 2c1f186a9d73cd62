//! Powers.

use std::sync::Arc;

use super::premises::{Accept, Premises, host};
use crate::ir::array::{Array, Values};
use crate::ir::attr::AttrValue;
use crate::ir::kernel::{BinaryFn, CompareFn, Kernel, Loop, Scalar};
use crate::ir::memory;
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

/// `out[i] = a[i] ^ b[i]`.
struct Power {
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    vec![Arc::new(Power { signature: Signature::operands_only(&["a", "b"]) })]
}

/// IEEE 754 `pow`, but NaN if one is NaN: there `pow(NaN, 0)` and `pow(1, NaN)` are 1, and NaN never turns into a number here.
fn power(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.powf(b) }
}

impl Operator for Power {
    fn name(&self) -> &str {
        "pow"
    }

    fn doc(&self) -> &str {
        "a to the power b; 1 where b is 0, NaN where a < 0 and b is not an integer, or one is NaN"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new("pow", &self.signature, call);
        premises.placement()?;
        premises.dtype(0, Accept::Floats)?;
        premises.equal_dtypes(0, 1)?;
        premises.equal_shapes(0, 1)?;
        Ok(premises.ty(0).clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let pairs = eval.args[0].floats().iter().zip(eval.args[1].floats());
        let (shape, dtype) = (&eval.result.shape, eval.result.dtype);
        let powers = pairs.map(|(a, b)| eval.precision.round(dtype, power(*a, *b)));
        Ok(Array::new(shape.clone(), Values::Float(memory::collect(shape.elements(), powers)?)))
    }

    fn kernel(&self, _call: Call<'_>, result: &TensorType) -> Kernel {
        let (a, b) = (Scalar::Input(0), Scalar::Input(1));
        // The sum is NaN if one of them is; the sum of opposite infinities is, too, so it is only asked for NaN operands.
        let is_nan = |x: &Scalar| Scalar::compare(CompareFn::Ne, x.clone(), x.clone());
        let sum = Scalar::binary(BinaryFn::Add, a.clone(), b.clone());
        let nan = Scalar::binary(BinaryFn::Or, is_nan(&a), is_nan(&b));
        let body = Scalar::select(nan, sum, Scalar::binary(BinaryFn::Pow, a, b));
        Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 2, body)])
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, result: &TensorType) -> Range {
        // A power of a number that is not negative is not negative.
        if operands[0].lo >= 0.0 { Range::new(0.0, f64::INFINITY) } else { Range::of_type(result) }
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
