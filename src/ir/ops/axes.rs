//! Axes of size 1: unsqueeze puts one in, squeeze takes one out.

use std::sync::Arc;

use super::premises::{Premises, host};
use crate::ir::array::Array;
use crate::ir::attr::{AttrKind, AttrValue};
use crate::ir::kernel::Kernel;
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError, TypeErrorKind, Where};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

/// The same elements with an axis of size 1 more or less.
struct Unit {
    name: &'static str,
    doc: &'static str,
    adds: bool,
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    let op = |name, doc, adds, kind| -> Arc<dyn Operator> {
        Arc::new(Unit { name, doc, adds, signature: Signature::operands_only(&["x"]).attr("axis", kind) })
    };
    vec![
        op("unsqueeze", "x with a new axis of size 1, which is axis `axis` of the result", true, AttrKind::NewAxis),
        op("squeeze", "x without axis `axis`, which has size 1", false, AttrKind::Axis),
    ]
}

impl Operator for Unit {
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
        let ty = premises.ty(0);
        let axis = premises.axis(call.attrs[0].as_int().unwrap_or(-1), ty.rank() + usize::from(self.adds))?;
        let mut dims = ty.shape.to_vec();
        if self.adds {
            dims.insert(axis, 1);
        } else {
            let size = dims.remove(axis);
            if size != 1 {
                return Err(premises
                    .error(
                        TypeErrorKind::Shape,
                        Where::Attr("axis"),
                        format!("takes out axes of size 1, but axis {axis} of {} has size {size}", ty.shape),
                    )
                    .help("reduce the axis, e.g. by `sum`, or `reshape` the tensor"));
            }
        }
        let shape = premises.result_shape(dims)?;
        Ok(ty.with_shape(shape))
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        Ok(Array::new(eval.result.shape.clone(), eval.args[0].values.copy()?))
    }

    fn kernel(&self, _call: Call<'_>, _result: &TensorType) -> Kernel {
        Kernel::Reshape
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, _result: &TensorType) -> Range {
        operands[0]
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        true
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        // The longer shape, and the axis of size 1 in it.
        let rows: [(DType, &[u64], i64); 7] = [
            (DType::F32, &[1], 0),
            (DType::F64, &[3, 1], 1),
            (DType::F32, &[1, 3], 0),
            (DType::F32, &[2, 1, 3], 1),
            (DType::F64, &[2, 3, 2, 1], 3),
            (DType::I64, &[0, 1], 1),
            (DType::F32, &[1, 1, 2, 3], 1),
        ];
        rows.into_iter()
            .map(|(dtype, long, axis)| {
                let long = host(dtype, long);
                let x = if self.adds { long.with_shape(long.shape.without(axis as usize)) } else { long };
                (vec![x], vec![AttrValue::Int(axis)])
            })
            .collect()
    }
}
