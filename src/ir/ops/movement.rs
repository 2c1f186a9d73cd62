//! Operators that move elements without computing: broadcast, reshape, transpose.

use std::sync::Arc;

use super::premises::{Premises, host};
use crate::ir::array::{Array, linear, points};
use crate::ir::attr::{AttrKind, AttrValue};
use crate::ir::kernel::{Kernel, Loop, MapDim, Read, Scalar, Source, identity};
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError, TypeErrorKind, Where};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

struct Broadcast {
    signature: Signature,
}

struct Reshape {
    signature: Signature,
}

struct Transpose {
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    let x = || Signature::operands_only(&["x"]);
    vec![
        Arc::new(Broadcast { signature: x().attr("shape", AttrKind::Shape) }),
        Arc::new(Reshape { signature: x().attr("shape", AttrKind::Shape) }),
        Arc::new(Transpose { signature: x().attr("perm", AttrKind::Permutation) }),
    ]
}

impl Operator for Broadcast {
    fn name(&self) -> &str {
        "broadcast"
    }

    fn doc(&self) -> &str {
        "x stretched to `shape`: trailing dimensions align, size-1 dimensions stretch, leading dimensions are added"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        let ty = premises.ty(0);
        let shape = premises.shape(0, "shape")?;
        let added = shape.rank().checked_sub(ty.rank());
        let fits =
            added.is_some_and(|added| ty.shape.iter().zip(&shape[added..]).all(|(from, to)| from == to || *from == 1));
        if !fits {
            return Err(premises
                .error(TypeErrorKind::Shape, Where::Attr("shape"), format!("cannot stretch {} to {shape}", ty.shape))
                .help("trailing dimensions must be equal or 1; `reshape` first to put dimensions of size 1 where they are missing"));
        }
        Ok(ty.with_shape(shape))
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (x, shape) = (eval.args[0], &eval.result.shape);
        let added = shape.rank() - x.shape.rank();
        let places = points(shape).map(|point| {
            let own = point[added..].iter().zip(x.shape.iter());
            linear(&x.shape, own.map(|(p, d)| if *d == 1 { 0 } else { *p }))
        });
        Ok(Array::new(shape.clone(), x.values.pick(shape.elements(), places)?))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let x = call.operands[0];
        let added = result.rank() - x.rank();
        let map =
            x.shape.iter().enumerate().map(|(i, d)| {
                if *d == 1 && result.shape[added + i] != 1 { MapDim::Zero } else { MapDim::Dim(added + i) }
            });
        let mut copy = Loop::elementwise(&result.shape, result.dtype, 0, Scalar::Input(0));
        copy.inputs = vec![Read::new(Source::Operand(0), map.collect())];
        Kernel::Loops(vec![copy])
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, _result: &TensorType) -> Range {
        operands[0]
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        true
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let rows: [(DType, &[u64], &[i64]); 8] = [
            (DType::F32, &[], &[2, 3]),
            (DType::F32, &[3], &[2, 3]),
            (DType::F64, &[2, 1], &[2, 3]),
            (DType::F32, &[1, 3], &[2, 2, 3]),
            (DType::F32, &[2, 1, 4], &[2, 3, 4]),
            (DType::F32, &[3], &[3]),
            (DType::F64, &[2, 1, 1, 3], &[2, 2, 2, 3]),
            (DType::I64, &[1], &[4]),
        ];
        rows.into_iter().map(|(t, from, to)| (vec![host(t, from)], vec![AttrValue::Ints(to.to_vec())])).collect()
    }
}

impl Operator for Reshape {
    fn name(&self) -> &str {
        "reshape"
    }

    fn doc(&self) -> &str {
        "the elements of x in row-major order under another shape"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        let ty = premises.ty(0);
        let shape = premises.shape(0, "shape")?;
        if shape.elements() != ty.shape.elements() {
            let message = format!(
                "keeps the number of elements: {} has {}, but {shape} has {}",
                ty.shape,
                ty.shape.elements(),
                shape.elements()
            );
            return Err(premises
                .error(TypeErrorKind::Shape, Where::Attr("shape"), message)
                .help("to repeat elements use `broadcast`"));
        }
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
        let rows: [(DType, &[u64], &[i64]); 7] = [
            (DType::F32, &[1], &[]),
            (DType::F32, &[], &[1, 1]),
            (DType::F32, &[6], &[2, 3]),
            (DType::F64, &[2, 3], &[2, 1, 3]),
            (DType::F32, &[2, 3, 4], &[6, 4]),
            (DType::F32, &[2, 2, 1, 3], &[4, 3]),
            (DType::I64, &[0, 2], &[0]),
        ];
        rows.into_iter().map(|(t, from, to)| (vec![host(t, from)], vec![AttrValue::Ints(to.to_vec())])).collect()
    }
}

impl Operator for Transpose {
    fn name(&self) -> &str {
        "transpose"
    }

    fn doc(&self) -> &str {
        "x with its axes permuted: axis i of the result is axis perm[i] of x"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        let ty = premises.ty(0);
        let perm = call.ints(0);
        let mut sorted = perm.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..ty.rank() as i64) {
            return Err(premises
                .error(
                    TypeErrorKind::Axis,
                    Where::Attr("perm"),
                    format!("needs a permutation of the {} axes of `x`, not {perm:?}", ty.rank()),
                )
                .help("name every axis once, e.g. `perm=[1, 0]` for a matrix"));
        }
        let dims = perm.iter().map(|p| ty.shape[*p as usize]).collect();
        let shape = premises.result_shape(dims)?;
        Ok(ty.with_shape(shape))
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (x, perm, shape) = (eval.args[0], eval.call.ints(0), &eval.result.shape);
        let places = points(shape).map(|point| {
            let mut from = vec![0; point.len()];
            for (p, axis) in point.iter().zip(perm) {
                from[*axis as usize] = *p;
            }
            linear(&x.shape, from)
        });
        Ok(Array::new(shape.clone(), x.values.pick(shape.elements(), places)?))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let perm = call.ints(0);
        let mut map = identity(result.rank());
        for (i, axis) in perm.iter().enumerate() {
            map[*axis as usize] = MapDim::Dim(i);
        }
        let mut copy = Loop::elementwise(&result.shape, result.dtype, 0, Scalar::Input(0));
        copy.inputs = vec![Read::new(Source::Operand(0), map)];
        Kernel::Loops(vec![copy])
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, _result: &TensorType) -> Range {
        operands[0]
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        true
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let rows: [(DType, &[u64], &[i64]); 6] = [
            (DType::F32, &[3], &[0]),
            (DType::F32, &[2, 3], &[1, 0]),
            (DType::F64, &[2, 3, 4], &[2, 0, 1]),
            (DType::F32, &[2, 1, 4], &[0, 2, 1]),
            (DType::F32, &[2, 3, 1, 2], &[3, 1, 0, 2]),
            (DType::Bool, &[2, 3], &[1, 0]),
        ];
        rows.into_iter().map(|(t, dims, perm)| (vec![host(t, dims)], vec![AttrValue::Ints(perm.to_vec())])).collect()
    }
}
