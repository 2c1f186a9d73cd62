//! Tensors one after the other.

use std::sync::Arc;

use super::premises::{Premises, host};
use crate::ir::array::{Array, Values, points};
use crate::ir::attr::{AttrKind, AttrValue};
use crate::ir::kernel::{BinaryFn, CompareFn, Kernel, Loop, Read, Scalar, Source};
use crate::ir::memory::{self, OutOfMemory};
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError, TypeErrorKind, Where};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

struct Concat {
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    vec![Arc::new(Concat { signature: Signature::new(Vec::new()).variadic("xs").attr("axis", AttrKind::Axis) })]
}

/// Where an operand begins along the axis, and how far it reaches, for those that have elements.
fn parts(call: Call<'_>, axis: usize) -> Vec<(usize, u64, u64)> {
    let mut start = 0;
    let mut parts = Vec::new();
    for (i, ty) in call.operands.iter().enumerate() {
        let size = ty.shape[axis];
        if size > 0 {
            parts.push((i, start, size));
        }
        start += size;
    }
    parts
}

impl Operator for Concat {
    fn name(&self) -> &str {
        "concat"
    }

    fn doc(&self) -> &str {
        "the tensors one after the other along an axis: concat(a, b, axis=0); along the others they have one shape"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name(), &self.signature, call);
        let first = premises.ty(0);
        premises.rank_at_least(0, 1, "`reshape` it to give it an axis, e.g. `reshape(x, shape=[1])`")?;
        let axis = premises.axis(call.attrs[0].as_int().unwrap_or(-1), first.rank())?;
        let mut dims = first.shape.to_vec();
        for (i, ty) in call.operands.iter().enumerate().skip(1) {
            premises.equal_dtypes(0, i)?;
            let fits = ty.rank() == first.rank() && ty.shape.without(axis) == first.shape.without(axis);
            if !fits {
                let (a, b) = (premises.operand_name(0), premises.operand_name(i));
                return Err(premises
                    .error(
                        if ty.rank() == first.rank() { TypeErrorKind::Shape } else { TypeErrorKind::Rank },
                        Where::Operand(i),
                        format!(
                            "needs tensors that differ along axis {axis} only: `{a}` is {}, but `{b}` is {}",
                            first.shape, ty.shape
                        ),
                    )
                    .help("`broadcast` or `reshape` one of them, or concatenate along another axis"));
            }
            dims[axis] = dims[axis].saturating_add(ty.shape[axis]);
        }
        premises.placement()?;
        let shape = premises.result_shape(dims).map_err(|error| error.help("concatenate fewer or smaller tensors"))?;
        Ok(first.with_shape(shape))
    }

    /// Block by block: what lies before the axis counts the rows, and a row has the rows of all operands in turn.
    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let (axis, shape) = (eval.call.axis(0), &eval.result.shape);
        let rows = points(&shape[..axis]).count();
        let count = shape.elements();
        let values = match &eval.args[0].values {
            Values::Float(_) => Values::Float(joined(eval.args, rows, count, Array::floats)?),
            Values::Int(_) => Values::Int(joined(eval.args, rows, count, Array::ints)?),
            Values::Bool(_) => Values::Bool(joined(eval.args, rows, count, Array::bools)?),
        };
        Ok(Array::new(shape.clone(), values))
    }

    /// A choice by the index along the axis. All arms are computed, so each reads inside its operand wherever the index is.
    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let axis = call.axis(0);
        let rank = result.rank();
        let int = |v: u64| Scalar::constant(v as f64, DType::I64);
        let parts = parts(call, axis);
        let mut join = Loop::elementwise(&result.shape, result.dtype, 0, Scalar::constant(0.0, result.dtype));
        let read = |(i, start, size): (usize, u64, u64)| {
            let index = Scalar::Index(axis);
            let own = match (start, size) {
                (_, 1) => int(0),
                (0, _) => Scalar::binary(BinaryFn::Min, index, int(size - 1)),
                _ => {
                    let from_start = Scalar::binary(BinaryFn::Sub, index, int(start));
                    Scalar::binary(BinaryFn::Max, Scalar::binary(BinaryFn::Min, from_start, int(size - 1)), int(0))
                }
            };
            let mut at: Vec<Scalar> = (0..rank).map(Scalar::Index).collect();
            at[axis] = own;
            Scalar::Gather(Source::Operand(i), at)
        };
        match &parts[..] {
            // Nothing is computed.
            [] => {}
            [(only, _, _)] => {
                join.inputs = vec![Read::same(*only, rank)];
                join.body = Scalar::Input(0);
            }
            [others @ .., last] => {
                join.body = others.iter().rev().fold(read(*last), |behind, part| {
                    let here = Scalar::compare(CompareFn::Lt, Scalar::Index(axis), int(part.1 + part.2));
                    Scalar::select(here, read(*part), behind)
                });
            }
        }
        Kernel::Loops(vec![join])
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, result: &TensorType) -> Range {
        operands.iter().copied().reduce(Range::hull).unwrap_or_else(|| Range::of_type(result))
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        true
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let rows: [(DType, &[&[u64]], i64); 10] = [
            (DType::F32, &[&[2], &[3]], 0),
            (DType::F64, &[&[2, 3], &[2, 1], &[2, 2]], 1),
            (DType::F32, &[&[1, 3], &[2, 3]], 0),
            (DType::F32, &[&[2, 3]], 1),
            (DType::F32, &[&[2, 0], &[2, 3]], 1),
            (DType::F32, &[&[2, 1, 3], &[2, 2, 3]], 1),
            (DType::F64, &[&[2, 3, 1, 2], &[1, 3, 1, 2], &[2, 3, 1, 2]], 0),
            (DType::F32, &[&[2, 3, 2, 1], &[2, 3, 2, 1], &[2, 3, 2, 1], &[2, 3, 2, 2]], 3),
            (DType::I64, &[&[3], &[1]], 0),
            (DType::Bool, &[&[2, 2], &[2, 2]], 1),
        ];
        rows.into_iter()
            .map(|(dtype, parts, axis)| {
                (parts.iter().map(|dims| host(dtype, dims)).collect(), vec![AttrValue::Int(axis)])
            })
            .collect()
    }
}

/// `rows` rows, each of the same row of all `args` in turn.
fn joined<T: Copy>(
    args: &[&Array],
    rows: usize,
    count: u64,
    elements: impl Fn(&Array) -> &[T],
) -> Result<Vec<T>, OutOfMemory> {
    let mut out = memory::reserve(count)?;
    for row in 0..rows {
        for arg in args {
            let all = elements(arg);
            let length = all.len() / rows;
            out.extend_from_slice(&all[row * length..(row + 1) * length]);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::operator::{MAX_OPERANDS, Registry};

    fn infer(operands: &[TensorType], axis: i64) -> Result<TensorType, TypeError> {
        let registry = Registry::builtin();
        let types: Vec<&TensorType> = operands.iter().collect();
        registry.infer(registry.id("concat").unwrap(), &types, &[AttrValue::Int(axis)])
    }

    fn f32s(dims: &[u64]) -> TensorType {
        host(DType::F32, dims)
    }

    #[test]
    fn each_premise_is_checked_alone() {
        use TypeErrorKind as K;
        assert_eq!(infer(&[f32s(&[2, 3]), f32s(&[2, 0]), f32s(&[2, 1])], 1), Ok(f32s(&[2, 4])));
        assert_eq!(infer(&[f32s(&[2])], 0), Ok(f32s(&[2])));
        let huge = f32s(&[1 << 59]);
        for (operands, axis, kind, words) in [
            (vec![f32s(&[])], 0, K::Rank, "rank >= 1"),
            (vec![f32s(&[2]), f32s(&[2])], 1, K::Axis, "no axis 1"),
            (vec![f32s(&[2]), host(DType::F64, &[2])], 0, K::DType, "`xs[1]` is F64"),
            (vec![f32s(&[2, 3]), f32s(&[2, 3]), f32s(&[3, 3])], 1, K::Shape, "`xs[2]` is [3, 3]"),
            (vec![f32s(&[2]), f32s(&[2, 1])], 0, K::Rank, "`xs[1]` is [2, 1]"),
            (vec![huge.clone(), huge.clone(), huge], 0, K::Overflow, "no result"),
            (vec![f32s(&[2]); MAX_OPERANDS + 1], 0, K::Attribute, "1 to 512 tensor(s), not 513"),
            (vec![], 0, K::Attribute, "not 0"),
        ] {
            let error = infer(&operands, axis).unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.message.contains(words) && error.help.is_some(), "{error}");
        }
    }

    #[test]
    fn arguments_are_bound_around_the_list() {
        let signature = Signature::new(Vec::new()).operand("a").variadic("xs").attr("axis", AttrKind::Axis);
        assert_eq!(signature.bind(4, &[]), Ok(vec![vec![0], vec![1, 2], vec![3]]));
        assert_eq!(signature.bind(4, &["axis"]), Ok(vec![vec![0], vec![1, 2, 3], vec![4]]));
        assert_eq!(signature.bind(1, &["xs", "axis"]), Ok(vec![vec![0], vec![1], vec![2]]));
        for (positional, named) in [(0, &["axis"][..]), (1, &["axis"]), (2, &[]), (3, &["axis", "xs"]), (2, &["b"])] {
            assert!(signature.bind(positional, named).is_err(), "{positional} {named:?}");
        }
        let names: Vec<String> = (0..4).map(|i| signature.operand_label(i, 4)).collect();
        assert_eq!(names, ["a", "xs[0]", "xs[1]", "xs[2]"]);
        assert_eq!(signature.split(&[1, 2, 3]), [&[1][..], &[2, 3]]);
        assert_eq!(signature.to_string(), "(a, xs.., axis)");
    }
}
