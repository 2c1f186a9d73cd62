//! Matrix products, 2-D and batched.

use std::sync::Arc;

use super::premises::{Accept, Premises, host};
use crate::ir::array::{Array, Values, linear, points};
use crate::ir::attr::AttrValue;
use crate::ir::kernel::{BinaryFn, Combine, Kernel, Loop, MapDim, Read, Scalar, Source};
use crate::ir::memory;
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError, TypeErrorKind, Where};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

struct Matmul {
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    vec![Arc::new(Matmul { signature: Signature::operands_only(&["a", "b"]) })]
}

impl Operator for Matmul {
    fn name(&self) -> &str {
        "matmul"
    }

    fn doc(&self) -> &str {
        "out[.., i, j] = sum over k of a[.., i, k] * b[.., k, j]; leading dimensions are a batch and must be equal"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        premises.placement()?;
        premises.dtype(0, Accept::Floats)?;
        premises.dtype(1, Accept::Floats)?;
        premises.equal_dtypes(0, 1)?;
        for operand in [0, 1] {
            premises.rank_at_least(operand, 2, "`reshape` a vector to a matrix of one row or one column")?;
        }
        let (a, b) = (premises.ty(0), premises.ty(1));
        let rank = a.rank();
        if b.rank() != rank {
            return Err(premises
                .error(
                    TypeErrorKind::Rank,
                    Where::Operand(1),
                    format!("needs operands of equal rank: `a` is {}, but `b` is {}", a.shape, b.shape),
                )
                .help("`broadcast` the smaller one over the batch dimensions"));
        }
        let batch = &a.shape[..rank - 2];
        if batch != &b.shape[..rank - 2] {
            return Err(premises
                .error(
                    TypeErrorKind::Shape,
                    Where::Operand(1),
                    format!("needs equal batch dimensions: `a` is {}, but `b` is {}", a.shape, b.shape),
                )
                .help("`broadcast` one of them over the batch dimensions"));
        }
        let (m, k) = (a.shape[rank - 2], a.shape[rank - 1]);
        let (k2, n) = (b.shape[rank - 2], b.shape[rank - 1]);
        if k != k2 {
            return Err(premises
                .error(
                    TypeErrorKind::Shape,
                    Where::Operand(1),
                    format!("needs columns of `a` as many as rows of `b`: `a` is {}, but `b` is {}", a.shape, b.shape),
                )
                .help("`transpose` one of them, if it is stored the other way round"));
        }
        let mut dims = batch.to_vec();
        dims.extend([m, n]);
        let shape = premises.result_shape(dims)?;
        Ok(a.with_shape(shape))
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (a, b) = (eval.args[0], eval.args[1]);
        let (shape, dtype) = (&eval.result.shape, eval.result.dtype);
        let rank = shape.rank();
        let k = a.shape[rank - 1];
        let mut out = memory::reserve(shape.elements())?;
        for point in points(shape) {
            let (batch, i, j) = (&point[..rank - 2], point[rank - 2], point[rank - 1]);
            let mut sum = 0.0;
            for l in 0..k {
                let x = a.floats()[linear(&a.shape, batch.iter().copied().chain([i, l]))];
                let y = b.floats()[linear(&b.shape, batch.iter().copied().chain([l, j]))];
                let product = eval.precision.round(dtype, x * y);
                sum = eval.precision.round(dtype, sum + product);
            }
            out.push(sum);
        }
        Ok(Array::new(shape.clone(), Values::Float(out)))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let rank = result.rank();
        let batch = rank - 2;
        // Iterations: batch.., i, j, k.
        let mut domain = result.shape.to_vec();
        domain.push(call.operands[0].shape[rank - 1]);
        let (i, j, k) = (MapDim::Dim(batch), MapDim::Dim(batch + 1), MapDim::Dim(batch + 2));
        let map = |last: [MapDim; 2]| (0..batch).map(MapDim::Dim).chain(last).collect::<Vec<_>>();
        Kernel::Loops(vec![Loop {
            domain,
            inputs: vec![Read::new(Source::Operand(0), map([i, k])), Read::new(Source::Operand(1), map([k, j]))],
            dtype: result.dtype,
            shape: result.shape.to_vec(),
            result_map: map([i, j]),
            body: Scalar::binary(BinaryFn::Mul, Scalar::Input(0), Scalar::Input(1)),
            reduce: Some(Combine::Add),
            sequence: None,
        }])
    }

    fn range(&self, operands: &[Range], call: Call<'_>, result: &TensorType) -> Range {
        let n = call.operands[0].shape.last().copied().unwrap_or(0);
        (operands[0] * operands[1]).fit(result).sum(n, result.dtype).fit(result)
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let rows: [(DType, &[u64], &[u64]); 6] = [
            (DType::F32, &[2, 3], &[3, 4]),
            (DType::F64, &[3, 3], &[3, 3]),
            (DType::F32, &[1, 3], &[3, 1]),
            (DType::F32, &[2, 2, 3], &[2, 3, 4]),
            (DType::F32, &[2, 1, 2, 3], &[2, 1, 3, 2]),
            (DType::F64, &[2, 0], &[0, 3]),
        ];
        rows.into_iter().map(|(t, a, b)| (vec![host(t, a), host(t, b)], vec![])).collect()
    }
}
