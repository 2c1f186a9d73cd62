//! softmax and log_softmax, max-shifted.

use std::sync::Arc;

use super::binary::greater;
use super::premises::{Accept, Premises, host};
use crate::ir::array::{Array, Values, linear, points};
use crate::ir::attr::{AttrKind, AttrValue};
use crate::ir::kernel::{BinaryFn, Combine, Kernel, Loop, MapDim, Read, Scalar, Source, UnaryFn, identity};
use crate::ir::memory;
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

/// Both share the shift by the row's maximum, which keeps `exp` from overflowing and its sum at 1 or more. A row of
/// all -inf has no softmax: -inf - -inf is NaN, in that row only.
struct Softmax {
    log: bool,
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    let signature = || Signature::operands_only(&["x"]).attr("axis", AttrKind::Axis);
    vec![
        Arc::new(Softmax { log: false, signature: signature() }),
        Arc::new(Softmax { log: true, signature: signature() }),
    ]
}

impl Operator for Softmax {
    fn name(&self) -> &str {
        if self.log { "log_softmax" } else { "softmax" }
    }

    fn doc(&self) -> &str {
        if self.log {
            "(x - m) - log(sum(exp(x - m))), m the maximum along the axis"
        } else {
            "exp(x - m) / sum(exp(x - m)), m the maximum along the axis"
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        premises.dtype(0, Accept::Floats)?;
        let ty = premises.ty(0);
        let axis = call.attrs[0].as_int().unwrap_or(-1);
        premises.axis(axis, ty.rank())?;
        Ok(ty.clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (x, axis) = (eval.args[0], eval.call.axis(0));
        let round = |v: f64| eval.precision.round(eval.result.dtype, v);
        let mut out = memory::filled(x.shape.elements(), 0.0)?;
        let length = x.shape[axis];
        for row in points(&x.shape.without(axis)) {
            let place = |c: u64| {
                let mut point = row.clone();
                point.insert(axis, c);
                linear(&x.shape, point)
            };
            let at = |c: u64| x.floats()[place(c)];
            let max = (0..length).map(at).fold(f64::NEG_INFINITY, greater);
            let shifted = memory::collect(length, (0..length).map(|c| round(at(c) - max)))?;
            let exps = memory::map(&shifted, |s| round(s.exp()))?;
            let sum = exps.iter().fold(0.0, |sum, e| round(sum + e));
            let log = round(sum.ln());
            for c in 0..length {
                let i = c as usize;
                out[place(c)] = if self.log { round(shifted[i] - log) } else { round(exps[i] / sum) };
            }
        }
        Ok(Array::new(x.shape.clone(), Values::Float(out)))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let axis = call.axis(0);
        let (shape, dtype, rank) = (&result.shape, result.dtype, result.rank());
        let row_map: Vec<MapDim> = (0..rank).map(|d| if d == axis { MapDim::Zero } else { MapDim::Dim(d) }).collect();
        let row_shape = shape.with_one(axis);
        let x = || Read::same(0, rank);
        let whole = |temporary| Read::new(Source::Temporary(temporary), identity(rank));
        let of_row = |temporary| Read::new(Source::Temporary(temporary), row_map.clone());
        let reduce = |input: Read, combine| Loop {
            domain: shape.to_vec(),
            inputs: vec![input],
            dtype,
            shape: row_shape.to_vec(),
            result_map: row_map.clone(),
            body: Scalar::Input(0),
            reduce: Some(combine),
            sequence: None,
        };
        let elementwise = |inputs: Vec<Read>, body| {
            let mut l = Loop::elementwise(shape, dtype, 0, body);
            l.inputs = inputs;
            l
        };
        let exp = |s| Scalar::unary(UnaryFn::Exp, s);
        let op = |f| Scalar::binary(f, Scalar::Input(0), Scalar::Input(1));
        let max = reduce(x(), Combine::Max);
        Kernel::Loops(if self.log {
            let shifted = elementwise(vec![x(), of_row(0)], op(BinaryFn::Sub));
            let mut sum = reduce(whole(1), Combine::Add);
            sum.body = exp(Scalar::Input(0));
            let mut log = Loop::elementwise(&row_shape, dtype, 0, Scalar::unary(UnaryFn::Log, Scalar::Input(0)));
            log.inputs = vec![Read::new(Source::Temporary(2), identity(rank))];
            vec![max, shifted, sum, log, elementwise(vec![whole(1), of_row(3)], op(BinaryFn::Sub))]
        } else {
            let exps = elementwise(vec![x(), of_row(0)], exp(op(BinaryFn::Sub)));
            vec![max, exps, reduce(whole(1), Combine::Add), elementwise(vec![whole(1), of_row(2)], op(BinaryFn::Div))]
        })
    }

    /// The sum holds exp(0) = 1 and no negative term, so no quotient is above 1 and its logarithm is not negative.
    fn range(&self, _operands: &[Range], _call: Call<'_>, _result: &TensorType) -> Range {
        if self.log { Range::NON_POSITIVE } else { Range::UNIT }
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let rows: [(DType, &[u64], i64); 8] = [
            (DType::F32, &[4], 0),
            (DType::F32, &[2, 3], 1),
            (DType::F64, &[2, 3], 0),
            (DType::F32, &[2, 3, 4], 2),
            (DType::F32, &[2, 3, 4], 1),
            (DType::F32, &[2, 1, 4], 1),
            (DType::F64, &[2, 3, 1, 2], 3),
            (DType::F32, &[2, 0], 1),
        ];
        rows.into_iter().map(|(t, dims, axis)| (vec![host(t, dims)], vec![AttrValue::Int(axis)])).collect()
    }
}
