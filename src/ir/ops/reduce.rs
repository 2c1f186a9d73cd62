//! Reductions: sum, mean, prod, max, min.

use std::sync::Arc;

use super::binary::{greater, lesser};
use super::premises::{Accept, Premises, check_axes, host};
use super::unary::wrap;
use crate::ir::array::{Array, Values, linear, points};
use crate::ir::attr::{AttrKind, AttrValue};
use crate::ir::kernel::{BinaryFn, Combine, Kernel, Loop, MapDim, Read, Scalar, Source, identity};
use crate::ir::memory;
use crate::ir::operator::{Call, Default, Eval, EvalError, Operator, Signature, TypeError, TypeErrorKind, Where};
use crate::ir::range::Range;
use crate::ir::types::{DType, Shape, TensorType};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fold {
    Sum,
    Mean,
    Prod,
    Max,
    Min,
}

/// One element for each row of elements along `axis`.
struct Reduction {
    name: &'static str,
    doc: &'static str,
    fold: Fold,
    signature: Signature,
}

const AXES: usize = 0;
const KEEPDIMS: usize = 1;

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    let op = |name, doc, fold| -> Arc<dyn Operator> {
        let signature = Signature::operands_only(&["x"]).attr_or("axis", AttrKind::Axes, Default::AllAxes).attr_or(
            "keepdims",
            AttrKind::Bool,
            Default::Value(AttrValue::Bool(false)),
        );
        Arc::new(Reduction { name, doc, fold, signature })
    };
    vec![
        op("sum", "the sum along the axes; 0 of no elements; integers wrap around", Fold::Sum),
        op("mean", "the sum along the axes divided by the number of elements; NaN of none", Fold::Mean),
        op("prod", "the product along the axes; 1 of no elements; integers wrap around", Fold::Prod),
        op("max", "the greatest element along the axes; NaN if one is NaN; -0 < +0", Fold::Max),
        op("min", "the least element along the axes; NaN if one is NaN; -0 < +0", Fold::Min),
    ]
}

/// Shape after reducing `axes`, which lie in range.
fn reduced(shape: &Shape, axes: &[i64], keepdims: bool) -> Vec<u64> {
    let gone = |d: usize| axes.contains(&(d as i64));
    if keepdims {
        (0..shape.rank()).map(|d| if gone(d) { 1 } else { shape[d] }).collect()
    } else {
        (0..shape.rank()).filter(|d| !gone(*d)).map(|d| shape[d]).collect()
    }
}

/// The map from a point of the operand to the result's element.
fn result_map(rank: usize, axes: &[i64], keepdims: bool) -> Vec<MapDim> {
    let gone = |d: usize| axes.contains(&(d as i64));
    (0..rank).filter(|d| keepdims || !gone(*d)).map(|d| if gone(d) { MapDim::Zero } else { MapDim::Dim(d) }).collect()
}

/// The number of elements that each result element is made of.
fn count(shape: &Shape, axes: &[i64]) -> u64 {
    axes.iter().map(|a| shape[*a as usize]).product()
}

impl Operator for Reduction {
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
        premises.dtype(0, if self.fold == Fold::Mean { Accept::Floats } else { Accept::Numbers })?;
        let ty = premises.ty(0);
        let axes = call.ints(AXES);
        check_axes(&premises, axes, ty.rank())?;
        if matches!(self.fold, Fold::Max | Fold::Min) && count(&ty.shape, axes) == 0 {
            return Err(premises
                .error(TypeErrorKind::Empty, Where::Call, format!("has no value over the empty axes {axes:?} of {ty}"))
                .help("reduce an axis that has elements"));
        }
        let dims = reduced(&ty.shape, axes, call.flag(KEEPDIMS));
        let shape = premises.result_shape(dims)?;
        Ok(ty.with_shape(shape))
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let x = eval.args[0];
        let (axes, keepdims) = (eval.call.ints(AXES), eval.call.flag(KEEPDIMS));
        let (shape, dtype) = (&eval.result.shape, eval.result.dtype);
        let size = shape.elements();
        let gone = |d: usize| axes.contains(&(d as i64));
        let place = |point: &[u64]| {
            let kept = point.iter().enumerate().filter(|(d, _)| keepdims || !gone(*d));
            linear(shape, kept.map(|(d, p)| if gone(d) { 0 } else { *p }))
        };
        let values = match &x.values {
            Values::Float(v) => {
                let start = match self.fold {
                    Fold::Sum | Fold::Mean => 0.0,
                    Fold::Prod => 1.0,
                    Fold::Max => f64::NEG_INFINITY,
                    Fold::Min => f64::INFINITY,
                };
                let mut out = memory::filled(size, start)?;
                for (point, element) in points(&x.shape).zip(v) {
                    let slot = &mut out[place(&point)];
                    *slot = match self.fold {
                        Fold::Sum | Fold::Mean => eval.precision.round(dtype, *slot + element),
                        Fold::Prod => eval.precision.round(dtype, *slot * element),
                        Fold::Max => greater(*slot, *element),
                        Fold::Min => lesser(*slot, *element),
                    };
                }
                if self.fold == Fold::Mean {
                    let n = eval.precision.round(dtype, count(&x.shape, axes) as f64);
                    out.iter_mut().for_each(|s| *s = eval.precision.round(dtype, *s / n));
                }
                Values::Float(out)
            }
            Values::Int(v) => {
                let start = match self.fold {
                    Fold::Sum | Fold::Mean => 0,
                    Fold::Prod => 1,
                    Fold::Max => i64::MIN,
                    Fold::Min => i64::MAX,
                };
                let mut out = memory::filled(size, start)?;
                for (point, element) in points(&x.shape).zip(v) {
                    let slot = &mut out[place(&point)];
                    *slot = match self.fold {
                        Fold::Sum | Fold::Mean => wrap(dtype, slot.wrapping_add(*element)),
                        Fold::Prod => wrap(dtype, slot.wrapping_mul(*element)),
                        Fold::Max => (*slot).max(*element),
                        Fold::Min => (*slot).min(*element),
                    };
                }
                Values::Int(out)
            }
            Values::Bool(v) => Values::Bool(memory::copy(v)?),
        };
        Ok(Array::new(shape.clone(), values))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let x = call.operands[0];
        let (axes, keepdims) = (call.ints(AXES), call.flag(KEEPDIMS));
        let reduce = Loop {
            domain: x.shape.to_vec(),
            inputs: vec![Read::same(0, x.rank())],
            dtype: result.dtype,
            shape: result.shape.to_vec(),
            result_map: result_map(x.rank(), axes, keepdims),
            body: Scalar::Input(0),
            reduce: Some(match self.fold {
                Fold::Sum | Fold::Mean => Combine::Add,
                Fold::Prod => Combine::Mul,
                Fold::Max => Combine::Max,
                Fold::Min => Combine::Min,
            }),
            sequence: None,
        };
        if self.fold != Fold::Mean {
            return Kernel::Loops(vec![reduce]);
        }
        let n = Scalar::constant(count(&x.shape, axes) as f64, result.dtype);
        let mut divide =
            Loop::elementwise(&result.shape, result.dtype, 0, Scalar::binary(BinaryFn::Div, Scalar::Input(0), n));
        divide.inputs = vec![Read::new(Source::Temporary(0), identity(result.rank()))];
        Kernel::Loops(vec![reduce, divide])
    }

    fn range(&self, operands: &[Range], call: Call<'_>, result: &TensorType) -> Range {
        let (x, n) = (operands[0], count(&call.operands[0].shape, call.ints(AXES)));
        match self.fold {
            Fold::Sum => x.sum(n, result.dtype),
            Fold::Mean if n == 0 => Range::UNBOUNDED,
            Fold::Mean => x.sum(n, result.dtype).map(|v| v / n as f64),
            Fold::Prod if n == 0 => Range::point(1.0),
            Fold::Prod if n == 1 => x,
            Fold::Prod if x.lo >= 0.0 && x.hi <= 1.0 => Range::UNIT,
            Fold::Prod if x.lo >= 0.0 && x.hi <= f64::MAX => Range::NON_NEGATIVE,
            Fold::Prod => Range::UNBOUNDED,
            Fold::Max | Fold::Min => x,
        }
        .fit(result)
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        matches!(self.fold, Fold::Max | Fold::Min)
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let rows: [(DType, &[u64], &[i64], bool); 8] = [
            (DType::F32, &[3], &[0], false),
            (DType::F64, &[2, 3], &[1], true),
            (DType::F32, &[2, 3], &[0], false),
            (DType::F32, &[2, 1, 4], &[1], false),
            (DType::F32, &[2, 3, 4], &[0, 2], true),
            (DType::F64, &[2, 3, 1, 2], &[1, 2, 3], false),
            (DType::F32, &[2, 2], &[0, 1], false),
            (DType::I64, &[2, 3], &[1], false),
        ];
        rows.into_iter()
            .filter(|(dtype, ..)| dtype.is_float() || self.fold != Fold::Mean)
            .map(|(dtype, dims, axes, keepdims)| {
                (vec![host(dtype, dims)], vec![AttrValue::Ints(axes.to_vec()), AttrValue::Bool(keepdims)])
            })
            .collect()
    }
}
