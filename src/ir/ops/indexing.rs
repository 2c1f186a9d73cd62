//! take_along_axis of Section 9 §4.2 and the IR-internal scatter_along_axis of Section 10 §7.

use std::sync::Arc;

use super::premises::{Premises, host};
use crate::ir::array::{Array, Values, linear, points};
use crate::ir::attr::{AttrKind, AttrValue};
use crate::ir::kernel::{CompareFn, Kernel, Loop, MapDim, Read, Scalar, Source};
use crate::ir::memory::{self, OutOfMemory};
use crate::ir::operator::{
    Bound, Call, Eval, EvalError, Operator, Signature, Trap, TypeError, TypeErrorKind, Visibility, Where,
};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

struct TakeAlongAxis {
    signature: Signature,
}

struct ScatterAlongAxis {
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    vec![
        Arc::new(TakeAlongAxis {
            signature: Signature::operands_only(&["values", "indices"]).attr("axis", AttrKind::Axis),
        }),
        // Constructor order of §7.1: axis, updates, indices, dest_ty.
        Arc::new(ScatterAlongAxis {
            signature: Signature::new(Vec::new())
                .attr("axis", AttrKind::Axis)
                .operand("updates")
                .operand("indices")
                .attr("dest_ty", AttrKind::Type),
        }),
    ]
}

/// `point` with `index` put in at `axis`.
fn with_axis(point: &[u64], axis: usize, index: u64) -> Vec<u64> {
    let mut full = point.to_vec();
    full.insert(axis, index);
    full
}

fn trap(operator: &str) -> Trap {
    Trap { operator: operator.into() }
}

impl Operator for TakeAlongAxis {
    fn name(&self) -> &str {
        "take_along_axis"
    }

    fn doc(&self) -> &str {
        "out[a ++ b] = values[a ++ [indices[a ++ b]] ++ b], |a| = axis; an index out of range traps"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        let (values, indices) = (premises.ty(0), premises.ty(1));
        premises.rank_at_least(0, 2, "`reshape` it to add a dimension of size 1")?;
        let axis = premises.axis(call.attrs[0].as_int().unwrap_or(-1), values.rank())?;
        premises.indices(1)?;
        let shape = values.shape.without(axis);
        if indices.shape != shape {
            return Err(premises
                .error(
                    TypeErrorKind::Shape,
                    Where::Operand(1),
                    format!(
                        "needs `indices` of the shape of `values` without axis {axis}, {shape}, but they are {}",
                        indices.shape
                    ),
                )
                .help("`reshape` or `broadcast` the indices, or take along another axis"));
        }
        premises.placement()?;
        Ok(values.with_shape(shape))
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (values, indices) = (eval.args[0], eval.args[1].ints());
        let axis = eval.call.axis(0);
        let size = values.shape[axis];
        let mut places = memory::reserve(indices.len() as u64)?;
        for (point, index) in points(&eval.result.shape).zip(indices) {
            match u64::try_from(*index) {
                Ok(i) if i < size => places.push(linear(&values.shape, with_axis(&point, axis, i))),
                _ => return Err(trap(self.name()).into()),
            }
        }
        Ok(Array::new(eval.result.shape.clone(), values.values.pick(indices.len() as u64, places.into_iter())?))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let axis = call.axis(0);
        let rank = result.rank();
        // Coordinates of the element: the iteration's own, with the index put in at the axis.
        let mut at: Vec<Scalar> = (0..rank).map(Scalar::Index).collect();
        at.insert(axis, Scalar::Input(0));
        let mut take = Loop::elementwise(&result.shape, result.dtype, 0, Scalar::Gather(Source::Operand(0), at));
        take.inputs = vec![Read::same(1, rank)];
        Kernel::Loops(vec![take])
    }

    fn bound(&self, call: Call<'_>) -> Option<Bound> {
        let size = *call.operands[0].shape.get(call.axis(0))?;
        Some(Bound { operand: 1, size })
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, _result: &TensorType) -> Range {
        operands[0]
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        true
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        families()
            .map(|(dtype, dims, axis)| {
                let values = host(dtype, dims);
                let indices = host(DType::I64, &values.shape.without(axis as usize));
                (vec![values, indices], vec![AttrValue::Int(axis)])
            })
            .collect()
    }
}

impl Operator for ScatterAlongAxis {
    fn name(&self) -> &str {
        "scatter_along_axis"
    }

    fn doc(&self) -> &str {
        "out[a ++ [c] ++ b] = updates[a ++ b] if indices[a ++ b] = c, otherwise 0; an index out of range traps"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn visibility(&self) -> Visibility {
        Visibility::Internal(
            "ScatterAlongAxis is IR-internal (Section 10 §7.4): the AD pass builds it as the cotangent of take_along_axis",
        )
    }

    /// The premises of §7.1 in their order. The last but one, `placement = Host (this slice)`, is a premise of
    /// lowering: DESIGN §7 lets device programs be checked and differentiated, and emit refuses them by name.
    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        let (updates, indices) = (premises.ty(0), premises.ty(1));
        let Some(dest) = call.attrs[1].as_type() else {
            return Err(premises.error(
                TypeErrorKind::Attribute,
                Where::Attr("dest_ty"),
                "needs a tensor type as `dest_ty`",
            ));
        };
        premises.indices(1)?;
        if indices.shape != updates.shape {
            return Err(premises
                .error(
                    TypeErrorKind::Shape,
                    Where::Operand(1),
                    format!("needs `updates` and `indices` of one shape, not {} and {}", updates.shape, indices.shape),
                )
                .help("each update has one index"));
        }
        let axis = call.attrs[0].as_int().unwrap_or(-1);
        let axis = match usize::try_from(axis) {
            Ok(a) if a < dest.rank() => a,
            _ => {
                return Err(premises
                    .error(
                        TypeErrorKind::Axis,
                        Where::Attr("axis"),
                        format!("needs 0 <= axis < {}, the rank of `dest_ty`, not {axis}", dest.rank()),
                    )
                    .help("axes of the IR are never negative"));
            }
        };
        if dest.rank() < 2 {
            return Err(premises
                .error(
                    TypeErrorKind::Rank,
                    Where::Attr("dest_ty"),
                    format!("needs a `dest_ty` of rank >= 2, not {dest}"),
                )
                .help("take_along_axis has values of rank >= 2 only"));
        }
        let rows = dest.shape.without(axis);
        if updates.shape != rows {
            return Err(premises
                .error(
                    TypeErrorKind::Shape,
                    Where::Operand(0),
                    format!(
                        "needs `updates` of the shape of `dest_ty` without axis {axis}, {rows}, but they are {}",
                        updates.shape
                    ),
                )
                .help("`dest_ty` is the type of the values that were taken from"));
        }
        premises.placement()?;
        if dest.placement != updates.placement {
            return Err(premises
                .error(
                    TypeErrorKind::Placement,
                    Where::Attr("dest_ty"),
                    format!(
                        "needs equal placement: `updates` is {}, but `dest_ty` is {}",
                        updates.placement, dest.placement
                    ),
                )
                .help("updates, indices and destination live in one place"));
        }
        if dest.dtype != updates.dtype {
            return Err(premises
                .error(
                    TypeErrorKind::DType,
                    Where::Attr("dest_ty"),
                    format!("needs equal dtype: `updates` is {}, but `dest_ty` is {}", updates.dtype, dest.dtype),
                )
                .help("`dest_ty` is the type of the values that were taken from"));
        }
        Ok(dest.clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (updates, indices) = (eval.args[0], eval.args[1].ints());
        let axis = eval.call.axis(0);
        let shape = &eval.result.shape;
        let mut places = memory::reserve(indices.len() as u64)?;
        for (point, index) in points(&updates.shape).zip(indices) {
            match u64::try_from(*index) {
                Ok(i) if i < shape[axis] => places.push(linear(shape, with_axis(&point, axis, i))),
                _ => return Err(trap(self.name()).into()),
            }
        }
        let size = shape.elements();
        let values = match &updates.values {
            Values::Float(v) => Values::Float(scattered(size, &places, v, 0.0)?),
            Values::Int(v) => Values::Int(scattered(size, &places, v, 0)?),
            Values::Bool(v) => Values::Bool(scattered(size, &places, v, false)?),
        };
        Ok(Array::new(shape.clone(), values))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let axis = call.axis(0);
        let rows: Vec<MapDim> = (0..result.rank()).filter(|d| *d != axis).map(MapDim::Dim).collect();
        let here = Scalar::compare(CompareFn::Eq, Scalar::Index(axis), Scalar::Input(1));
        let body = Scalar::select(here, Scalar::Input(0), Scalar::constant(0.0, result.dtype));
        let mut scatter = Loop::elementwise(&result.shape, result.dtype, 0, body);
        scatter.inputs = vec![Read::new(Source::Operand(0), rows.clone()), Read::new(Source::Operand(1), rows)];
        Kernel::Loops(vec![scatter])
    }

    fn bound(&self, call: Call<'_>) -> Option<Bound> {
        let size = *call.attrs[1].as_type()?.shape.get(call.axis(0))?;
        Some(Bound { operand: 1, size })
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, _result: &TensorType) -> Range {
        operands[0].hull(Range::point(0.0))
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        true
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        families()
            .map(|(dtype, dims, axis)| {
                let dest = host(dtype, dims);
                let rows = dest.shape.without(axis as usize);
                let operands = vec![host(dtype, &rows), host(DType::I64, &rows)];
                (operands, vec![AttrValue::Int(axis), AttrValue::Type(dest)])
            })
            .collect()
    }
}

/// `size` zeros with `values[i]` at `places[i]`; places are distinct by construction.
fn scattered<T: Copy>(size: u64, places: &[usize], values: &[T], zero: T) -> Result<Vec<T>, OutOfMemory> {
    let mut out = memory::filled(size, zero)?;
    for (place, value) in places.iter().zip(values) {
        out[*place] = *value;
    }
    Ok(out)
}

/// Types and axes of the instances of both operators.
fn families() -> impl Iterator<Item = (DType, &'static [u64], i64)> {
    let rows: [(DType, &[u64], i64); 6] = [
        (DType::F32, &[2, 3], 1),
        (DType::F64, &[2, 3], 0),
        (DType::F32, &[1, 4, 8], 2),
        (DType::F32, &[2, 3, 4], 1),
        (DType::F32, &[2, 1, 4], 1),
        (DType::F64, &[2, 3, 1, 2], 3),
    ];
    rows.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::operator::Registry;
    use crate::ir::types::Placement;

    fn infer(op: &str, operands: &[TensorType], attrs: &[AttrValue]) -> Result<TensorType, TypeError> {
        let registry = Registry::builtin();
        let types: Vec<&TensorType> = operands.iter().collect();
        registry.infer(registry.id(op).unwrap(), &types, attrs)
    }

    fn f32(dims: &[u64]) -> TensorType {
        host(DType::F32, dims)
    }

    fn i64(dims: &[u64]) -> TensorType {
        host(DType::I64, dims)
    }

    fn device(mut ty: TensorType) -> TensorType {
        ty.placement = Placement::Device;
        ty
    }

    fn scatter(axis: i64, updates: TensorType, indices: TensorType, dest: TensorType) -> Result<TensorType, TypeError> {
        infer("scatter_along_axis", &[updates, indices], &[AttrValue::Int(axis), AttrValue::Type(dest)])
    }

    fn take(values: TensorType, indices: TensorType, axis: i64) -> Result<TensorType, TypeError> {
        infer("take_along_axis", &[values, indices], &[AttrValue::Int(axis)])
    }

    #[track_caller]
    fn violates(result: Result<TensorType, TypeError>, kind: TypeErrorKind, words: &str) {
        let error = result.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(words), "{error}");
    }

    #[test]
    fn scatter_is_typed_by_its_destination() {
        // The StoryLM-0 instance of §7.1.
        assert_eq!(scatter(2, f32(&[1, 4]), i64(&[1, 4]), f32(&[1, 4, 8])), Ok(f32(&[1, 4, 8])));
        assert_eq!(scatter(0, f32(&[3]), i64(&[3]), f32(&[2, 3])), Ok(f32(&[2, 3])));
    }

    #[test]
    fn each_premise_of_scatter_is_checked_alone() {
        use TypeErrorKind as K;
        let (u, i, d) = (|| f32(&[1, 4]), || i64(&[1, 4]), || f32(&[1, 4, 8]));
        violates(scatter(2, u(), host(DType::I32, &[1, 4]), d()), K::DType, "I64 indices");
        violates(scatter(2, u(), i64(&[4]), d()), K::Shape, "of one shape");
        violates(scatter(-1, u(), i(), d()), K::Axis, "0 <= axis < 3");
        violates(scatter(3, u(), i(), d()), K::Axis, "0 <= axis < 3");
        violates(scatter(0, f32(&[]), i64(&[]), f32(&[8])), K::Rank, "rank >= 2");
        violates(scatter(1, u(), i(), d()), K::Shape, "without axis 1");
        violates(scatter(2, u(), i(), host(DType::F64, &[1, 4, 8])), K::DType, "equal dtype");
        // Equal placement: each of the three differs alone.
        violates(scatter(2, device(u()), i(), d()), K::Placement, "equal placement");
        violates(scatter(2, u(), device(i()), d()), K::Placement, "equal placement");
        violates(scatter(2, u(), i(), device(d())), K::Placement, "equal placement");
        // `placement = Host` is refused by `lower`, see its tests.
        assert_eq!(scatter(2, device(u()), device(i()), device(d())), Ok(device(d())));
    }

    #[test]
    fn each_premise_of_take_is_checked_alone() {
        use TypeErrorKind as K;
        let (v, i) = (|| f32(&[1, 4, 8]), || i64(&[1, 4]));
        assert_eq!(take(v(), i(), 2), Ok(f32(&[1, 4])));
        violates(take(f32(&[8]), i64(&[]), 0), K::Rank, "rank >= 2");
        violates(take(v(), i(), 3), K::Axis, "no axis 3");
        violates(take(v(), i(), -1), K::Axis, "no axis -1");
        violates(take(v(), host(DType::I32, &[1, 4]), 2), K::DType, "I64 indices");
        violates(take(v(), i64(&[1, 8]), 2), K::Shape, "without axis 2");
        violates(take(v(), device(i()), 2), K::Placement, "equal placement");
    }
}
