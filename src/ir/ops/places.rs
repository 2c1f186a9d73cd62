//! Operators that look at where an element stands: iota and tril.

use std::sync::Arc;

use super::premises::{Premises, host};
use crate::ir::array::{Array, Values, points};
use crate::ir::attr::{AttrKind, AttrValue};
use crate::ir::kernel::{BinaryFn, CompareFn, Kernel, Loop, Scalar};
use crate::ir::memory;
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError, TypeErrorKind, Where};
use crate::ir::range::Range;
use crate::ir::types::{DType, Placement, TensorType};

struct Iota {
    signature: Signature,
}

struct Tril {
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    vec![
        Arc::new(Iota {
            signature: Signature::new(Vec::new())
                .attr("shape", AttrKind::Shape)
                .attr("axis", AttrKind::Axis)
                .attr("dtype", AttrKind::DType),
        }),
        Arc::new(Tril { signature: Signature::operands_only(&["x"]) }),
    ]
}

impl Operator for Iota {
    fn name(&self) -> &str {
        "iota"
    }

    fn doc(&self) -> &str {
        "each element is its own index along `axis`; a host tensor of numbers"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        let shape = premises.shape(0, "shape")?;
        let AttrValue::DType(dtype) = call.attrs[2] else {
            return Err(premises.error(TypeErrorKind::Attribute, Where::Attr("dtype"), "needs a dtype"));
        };
        if dtype == DType::Bool {
            return Err(premises
                .error(TypeErrorKind::DType, Where::Attr("dtype"), "counts in numbers, not in Bool")
                .help("count in I64 and compare, e.g. `iota(..) == 0`"));
        }
        let axis = premises.axis_of("shape", call.attrs[1].as_int().unwrap_or(-1), shape.rank())?;
        // Indices above 2^31 - 1 do not fit I32.
        if dtype == DType::I32 && shape[axis] > 1 << 31 {
            return Err(premises
                .error(TypeErrorKind::DType, Where::Attr("dtype"), format!("counts to {}, beyond I32", shape[axis] - 1))
                .help("count in I64"));
        }
        Ok(TensorType::new(dtype, shape, Placement::Host))
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (axis, shape, dtype) = (eval.call.axis(1), &eval.result.shape, eval.result.dtype);
        let indices = points(shape).map(|point| point[axis]);
        let n = shape.elements();
        let values = if dtype.is_float() {
            // One rounding: an index goes to f32 directly, not by way of f64.
            let float = |i: u64| match dtype {
                DType::F32 if eval.precision == crate::ir::Precision::Typed => f64::from(i as f32),
                _ => i as f64,
            };
            Values::Float(memory::collect(n, indices.map(float))?)
        } else {
            Values::Int(memory::collect(n, indices.map(|i| i as i64))?)
        };
        Ok(Array::new(shape.clone(), values))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        // As a sum: an index alone would say, where it is an index of something else, that it walks all of that axis.
        let index = Scalar::binary(BinaryFn::Add, Scalar::Index(call.axis(1)), Scalar::constant(0.0, DType::I64));
        let body = if result.dtype == DType::I64 { index } else { Scalar::cast(index, result.dtype) };
        Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 0, body)])
    }

    fn range(&self, _operands: &[Range], call: Call<'_>, result: &TensorType) -> Range {
        Range::new(0.0, result.shape[call.axis(1)].saturating_sub(1) as f64).fit(result)
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        true
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let rows: [(&[i64], i64, DType); 7] = [
            (&[4], 0, DType::I64),
            (&[2, 3], 1, DType::F32),
            (&[2, 3], 0, DType::F64),
            (&[2, 1, 3], 1, DType::I32),
            (&[2, 3, 2, 2], 1, DType::F32),
            (&[0, 2], 0, DType::I64),
            (&[2, 0], 0, DType::I32),
        ];
        rows.into_iter()
            .map(|(shape, axis, dtype)| {
                (vec![], vec![AttrValue::Ints(shape.to_vec()), AttrValue::Int(axis), AttrValue::DType(dtype)])
            })
            .collect()
    }
}

impl Operator for Tril {
    fn name(&self) -> &str {
        "tril"
    }

    fn doc(&self) -> &str {
        "the lower triangle of the last two axes, diagonal included; 0 (false) above, whatever x has there"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        premises.rank_at_least(0, 2, "`unsqueeze` it to add an axis of size 1")?;
        Ok(premises.ty(0).clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let x = eval.args[0];
        let (n, rank) = (x.shape.elements(), x.shape.rank());
        let kept = points(&x.shape).map(|point| point[rank - 2] >= point[rank - 1]);
        let values = match &x.values {
            Values::Float(v) => {
                Values::Float(memory::collect(n, kept.zip(v).map(|(kept, x)| if kept { *x } else { 0.0 }))?)
            }
            Values::Int(v) => Values::Int(memory::collect(n, kept.zip(v).map(|(kept, x)| if kept { *x } else { 0 }))?),
            Values::Bool(v) => Values::Bool(memory::collect(n, kept.zip(v).map(|(kept, x)| kept && *x))?),
        };
        Ok(Array::new(x.shape.clone(), values))
    }

    fn kernel(&self, _call: Call<'_>, result: &TensorType) -> Kernel {
        let rank = result.rank();
        let kept = Scalar::compare(CompareFn::Ge, Scalar::Index(rank - 2), Scalar::Index(rank - 1));
        let body = Scalar::select(kept, Scalar::Input(0), Scalar::constant(0.0, result.dtype));
        Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 1, body)])
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, _result: &TensorType) -> Range {
        operands[0].hull(Range::point(0.0))
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        true
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let rows: [(DType, &[u64]); 7] = [
            (DType::F32, &[3, 3]),
            (DType::F64, &[2, 4]),
            (DType::F32, &[4, 1]),
            (DType::F32, &[2, 3, 2]),
            (DType::F64, &[2, 1, 3, 3]),
            (DType::I64, &[2, 2]),
            (DType::Bool, &[2, 3]),
        ];
        rows.into_iter().map(|(t, dims)| (vec![host(t, dims)], vec![])).collect()
    }
}
