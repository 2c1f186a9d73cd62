//! Operators that read an array in strides: slice, pad, reverse.
//!
//! Each element of the result is one element of x or a constant; which one is arithmetic on indices, so all three fuse into what
//! reads them.

use std::sync::Arc;

use super::constant::{filled, holds, rounded};
use super::premises::{Premises, check_axes, host};
use crate::ir::array::{Array, Values, linear, points};
use crate::ir::attr::{AttrKind, AttrValue};
use crate::ir::kernel::{BinaryFn, CompareFn, Kernel, Loop, Scalar, Source};
use crate::ir::operator::{Call, Default, Eval, EvalError, Operator, Signature, TypeError, TypeErrorKind, Where};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

struct Slice {
    signature: Signature,
}

struct Pad {
    signature: Signature,
}

struct Reverse {
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    let x = || Signature::operands_only(&["x"]);
    vec![
        Arc::new(Slice {
            signature: x().attr("start", AttrKind::PerAxis).attr("limit", AttrKind::PerAxis).attr_or(
                "stride",
                AttrKind::PerAxis,
                Default::Each(1),
            ),
        }),
        Arc::new(Pad {
            signature: x()
                .attr("low", AttrKind::PerAxis)
                .attr("high", AttrKind::PerAxis)
                .attr_or("value", AttrKind::Float, Default::Value(AttrValue::float(0.0)))
                .attr_or("interior", AttrKind::PerAxis, Default::Each(0)),
        }),
        Arc::new(Reverse { signature: x().attr_or("axis", AttrKind::Axes, Default::AllAxes) }),
    ]
}

/// The attribute as one number for each axis of `x`, none below `least`.
fn per_axis(premises: &Premises<'_>, attr: usize, name: &'static str, least: i64) -> Result<Vec<u64>, TypeError> {
    let (given, rank) = (premises.call.ints(attr), premises.ty(0).rank());
    if given.len() != rank {
        let message = format!("needs {rank} number(s) in `{name}`, one for each axis of `x`, not {}", given.len());
        return Err(premises
            .error(TypeErrorKind::Attribute, Where::Attr(name), message)
            .help(format!("`x` is {}", premises.ty(0))));
    }
    if let Some(small) = given.iter().find(|v| **v < least) {
        return Err(premises
            .error(
                TypeErrorKind::Attribute,
                Where::Attr(name),
                format!("needs numbers of at least {least} in `{name}`, not {small}"),
            )
            .help("positions are counted from the start of an axis"));
    }
    Ok(given.iter().map(|v| *v as u64).collect())
}

/// An index.
fn int(value: u64) -> Scalar {
    Scalar::constant(value as f64, DType::I64)
}

/// `f(a, b)`, or `a` itself where that makes no difference.
fn arithmetic(f: BinaryFn, a: Scalar, b: u64) -> Scalar {
    let neutral = if matches!(f, BinaryFn::Add | BinaryFn::Sub) { 0 } else { 1 };
    if b == neutral { a } else { Scalar::binary(f, a, int(b)) }
}

/// `out[d] = x[at]`.
fn copy(result: &TensorType, at: Vec<Scalar>) -> Kernel {
    let body = Scalar::Gather(Source::Operand(0), at);
    Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 0, body)])
}

impl Operator for Slice {
    fn name(&self) -> &str {
        "slice"
    }

    fn doc(&self) -> &str {
        "out[i, ..] = x[start[0] + i stride[0], ..], for all positions below `limit`"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        let ty = premises.ty(0);
        let start = per_axis(&premises, 0, "start", 0)?;
        let limit = per_axis(&premises, 1, "limit", 0)?;
        let stride = per_axis(&premises, 2, "stride", 1)?;
        let mut dims = Vec::with_capacity(ty.rank());
        for (d, size) in ty.shape.iter().enumerate() {
            if limit[d] > *size || start[d] > limit[d] {
                return Err(premises
                    .error(
                        TypeErrorKind::Shape,
                        Where::Attr(if limit[d] > *size { "limit" } else { "start" }),
                        format!("cannot take {}..{} of axis {d}, which has size {size}", start[d], limit[d]),
                    )
                    .help(format!("0 <= start <= limit <= {size} on that axis")));
            }
            dims.push((limit[d] - start[d]).div_ceil(stride[d]));
        }
        let shape = premises.result_shape(dims)?;
        Ok(ty.with_shape(shape))
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (x, shape) = (eval.args[0], &eval.result.shape);
        let (start, stride) = (eval.call.ints(0), eval.call.ints(2));
        let places = points(shape).map(|point| {
            let own =
                point.iter().zip(start).zip(stride).map(|((p, start), stride)| *start as u64 + p * *stride as u64);
            linear(&x.shape, own)
        });
        Ok(Array::new(shape.clone(), x.values.pick(shape.elements(), places)?))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let (start, stride) = (call.ints(0), call.ints(2));
        let x = call.operands[0];
        let at = (0..result.rank()).map(|d| {
            if x.shape[d] == result.shape[d] {
                return Scalar::Index(d);
            }
            // A sum also where it starts at 0: an index alone would say that it walks all of the axis.
            let scaled = arithmetic(BinaryFn::Mul, Scalar::Index(d), stride[d] as u64);
            Scalar::binary(BinaryFn::Add, scaled, int(start[d] as u64))
        });
        copy(result, at.collect())
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, _result: &TensorType) -> Range {
        operands[0]
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        true
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        type Row<'a> = (DType, &'a [u64], &'a [i64], &'a [i64], &'a [i64]);
        let rows: [Row<'_>; 9] = [
            (DType::F32, &[5, 3], &[0, 0], &[3, 2], &[1, 1]),
            (DType::F32, &[5], &[1], &[4], &[1]),
            (DType::F64, &[7], &[1], &[7], &[3]),
            (DType::F32, &[2, 3], &[0, 1], &[2, 3], &[1, 1]),
            (DType::F32, &[4, 5], &[1, 0], &[4, 5], &[2, 2]),
            (DType::F64, &[2, 1, 6], &[0, 0, 1], &[2, 1, 6], &[1, 1, 4]),
            (DType::F32, &[2, 3, 4, 2], &[1, 0, 1, 0], &[2, 3, 4, 1], &[1, 2, 1, 5]),
            (DType::I64, &[3, 2], &[2, 0], &[2, 2], &[1, 1]),
            (DType::Bool, &[0, 3], &[0, 1], &[0, 3], &[1, 2]),
        ];
        let ints = |v: &[i64]| AttrValue::Ints(v.to_vec());
        rows.into_iter()
            .map(|(t, dims, start, limit, stride)| (vec![host(t, dims)], vec![ints(start), ints(limit), ints(stride)]))
            .collect()
    }
}

/// One axis of a pad: an element of x stands at `low + i step` for its index i.
#[derive(Clone, Copy)]
struct Spread {
    size: u64,
    low: u64,
    step: u64,
}

impl Spread {
    fn of(call: Call<'_>, d: usize) -> Spread {
        let at = |attr: usize| call.ints(attr)[d] as u64;
        Spread { size: call.operands[0].shape[d], low: at(0), step: at(3) + 1 }
    }

    /// The index of the element that stands at `place`.
    fn element(self, place: u64) -> Option<u64> {
        let from = place.checked_sub(self.low)?;
        (from % self.step == 0 && from / self.step < self.size).then_some(from / self.step)
    }
}

impl Operator for Pad {
    fn name(&self) -> &str {
        "pad"
    }

    fn doc(&self) -> &str {
        "x with `low` values before, `high` after and `interior` between its elements along each axis"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        let ty = premises.ty(0);
        let low = per_axis(&premises, 0, "low", 0)?;
        let high = per_axis(&premises, 1, "high", 0)?;
        let interior = per_axis(&premises, 3, "interior", 0)?;
        let value = call.attrs[2].as_float().unwrap_or(0.0);
        if !holds(ty.dtype, value) {
            return Err(premises
                .error(TypeErrorKind::Attribute, Where::Attr("value"), format!("cannot write {value} as {}", ty.dtype))
                .help("choose a value of the dtype's range, without a fraction for integers"));
        }
        let mut dims = Vec::with_capacity(ty.rank());
        for (d, size) in ty.shape.iter().enumerate() {
            let between = interior[d].saturating_mul(size.saturating_sub(1));
            dims.push(low[d].saturating_add(high[d]).saturating_add(*size).saturating_add(between));
        }
        let shape = premises.result_shape(dims).map_err(|error| error.help("pad with fewer elements"))?;
        Ok(ty.with_shape(shape))
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (x, shape) = (eval.args[0], &eval.result.shape);
        let value = eval.call.attrs[2].as_float().unwrap_or(0.0);
        let axes: Vec<Spread> = (0..x.shape.rank()).map(|d| Spread::of(eval.call, d)).collect();
        let mut out = filled(eval.result.dtype, shape.elements(), value)?;
        for (place, point) in points(shape).enumerate() {
            let own: Option<Vec<u64>> = point.iter().zip(&axes).map(|(p, axis)| axis.element(*p)).collect();
            let Some(from) = own.map(|own| linear(&x.shape, own)) else { continue };
            match (&mut out, &x.values) {
                (Values::Float(out), Values::Float(x)) => out[place] = x[from],
                (Values::Int(out), Values::Int(x)) => out[place] = x[from],
                (Values::Bool(out), Values::Bool(x)) => out[place] = x[from],
                _ => {}
            }
        }
        Ok(Array::new(shape.clone(), out))
    }

    /// With k = the index `(d - low) / step` brought into the axis, x has an element here if `k step = d - low`.
    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let value = Scalar::constant(rounded(result.dtype, call.attrs[2].as_float().unwrap_or(0.0)), result.dtype);
        if call.operands[0].shape.elements() == 0 {
            return Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 0, value)]);
        }
        let mut at = Vec::with_capacity(result.rank());
        let mut inside: Option<Scalar> = None;
        for d in 0..result.rank() {
            let Spread { size, low, step } = Spread::of(call, d);
            if size == result.shape[d] {
                at.push(Scalar::Index(d));
                continue;
            }
            let from = arithmetic(BinaryFn::Sub, Scalar::Index(d), low);
            let last = (size - 1) * step;
            let near = Scalar::binary(BinaryFn::Min, Scalar::binary(BinaryFn::Max, from.clone(), int(0)), int(last));
            let k = arithmetic(BinaryFn::Div, near, step);
            let here = Scalar::compare(CompareFn::Eq, arithmetic(BinaryFn::Mul, k.clone(), step), from);
            inside = Some(match inside {
                Some(others) => Scalar::binary(BinaryFn::And, others, here),
                None => here,
            });
            at.push(k);
        }
        let element = Scalar::Gather(Source::Operand(0), at);
        let body = match inside {
            Some(inside) => Scalar::select(inside, element, value),
            None => element,
        };
        Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 0, body)])
    }

    fn range(&self, operands: &[Range], call: Call<'_>, result: &TensorType) -> Range {
        let value = rounded(result.dtype, call.attrs[2].as_float().unwrap_or(0.0));
        if value.is_nan() { operands[0] } else { operands[0].hull(Range::point(value)) }
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        type Row<'a> = (DType, &'a [u64], &'a [i64], &'a [i64], &'a [i64], f64);
        let rows: [Row<'_>; 9] = [
            (DType::F32, &[3], &[1], &[2], &[0], 0.0),
            (DType::F64, &[3], &[0], &[1], &[2], 0.1),
            (DType::F32, &[2, 3], &[0, 1], &[0, 0], &[0, 0], -1.5),
            (DType::F32, &[2, 3], &[1, 0], &[0, 2], &[1, 0], 0.1),
            (DType::F64, &[2, 1, 3], &[0, 2, 0], &[0, 0, 1], &[0, 3, 1], 0.0),
            (DType::F32, &[1, 2, 1, 2], &[1, 0, 0, 1], &[0, 1, 0, 0], &[0, 2, 0, 0], 0.0),
            (DType::I32, &[0, 2], &[1, 0], &[1, 1], &[4, 0], 7.0),
            (DType::Bool, &[2], &[1], &[1], &[1], 1.0),
            (DType::I64, &[2, 2], &[0, 0], &[0, 0], &[0, 0], -3.0),
        ];
        let ints = |v: &[i64]| AttrValue::Ints(v.to_vec());
        rows.into_iter()
            .map(|(t, dims, low, high, interior, value)| {
                (vec![host(t, dims)], vec![ints(low), ints(high), AttrValue::float(value), ints(interior)])
            })
            .collect()
    }
}

impl Operator for Reverse {
    fn name(&self) -> &str {
        "reverse"
    }

    fn doc(&self) -> &str {
        "x with the order of its elements reversed along the axes"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        let ty = premises.ty(0);
        check_axes(&premises, call.ints(0), ty.rank())?;
        Ok(ty.clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (x, axes) = (eval.args[0], eval.call.ints(0));
        let places = points(&x.shape).map(|mut point| {
            for axis in axes {
                let d = *axis as usize;
                point[d] = x.shape[d] - 1 - point[d];
            }
            linear(&x.shape, point)
        });
        Ok(Array::new(x.shape.clone(), x.values.pick(x.shape.elements(), places)?))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let axes = call.ints(0);
        let at = (0..result.rank()).map(|d| {
            let turned = axes.contains(&(d as i64)) && result.shape[d] > 1;
            let last = result.shape[d].saturating_sub(1);
            if turned { Scalar::binary(BinaryFn::Sub, int(last), Scalar::Index(d)) } else { Scalar::Index(d) }
        });
        copy(result, at.collect())
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, _result: &TensorType) -> Range {
        operands[0]
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        true
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let rows: [(DType, &[u64], &[i64]); 7] = [
            (DType::F32, &[3], &[0]),
            (DType::F64, &[2, 3], &[1]),
            (DType::F32, &[2, 3], &[0, 1]),
            (DType::F32, &[2, 1, 4], &[0]),
            (DType::F64, &[2, 3, 1, 2], &[1, 2, 3]),
            (DType::I64, &[0, 2], &[0]),
            (DType::Bool, &[2, 2], &[0]),
        ];
        rows.into_iter().map(|(t, dims, axes)| (vec![host(t, dims)], vec![AttrValue::Ints(axes.to_vec())])).collect()
    }
}
