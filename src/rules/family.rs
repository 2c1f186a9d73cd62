//! Calls of a composite over varied types: what stands for the instances that an operator of the registry lists itself.

use super::builders::TypeBuilder;
use super::rule::Def;
use super::term::{Builder, expand};
use crate::ir::operator::Default;
use crate::ir::{AttrKind, AttrValue, DType, Param, Placement, Registry, Shape, TensorType};

/// Calls that are looked for.
const MOST: usize = 24;
/// Of those, so many over one shape of the first operand.
const OF_ONE_SHAPE: usize = 6;
/// Combinations tried for one shape.
const TRIES: usize = 600;

/// Operand types and attributes of well-typed calls of a definition, over ranks 1 to 4, with dimensions of size 1, squares,
/// and axes that are not the last.
pub fn of_def(def: &Def, registry: &Registry) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
    let shapes: [&[u64]; 6] = [&[3], &[2, 3], &[3, 3], &[2, 1, 3], &[2, 3, 1, 2], &[]];
    let operands = def.signature.params().iter().filter(|p| p.is_operand()).count();
    let mut out: Vec<(Vec<TensorType>, Vec<AttrValue>)> = Vec::new();
    for (turn, shape) in shapes.into_iter().enumerate() {
        let Ok(shape) = Shape::new(shape.to_vec()) else { continue };
        let dtype = if turn % 2 == 0 { DType::F64 } else { DType::F32 };
        let first = TensorType::new(dtype, shape, Placement::Host);
        let others = related(&first);
        let attrs: Vec<Vec<AttrValue>> =
            def.signature.params().iter().enumerate().filter_map(|(i, p)| choices(i, p, &first)).collect();
        // All combinations, counted through; attributes change fastest.
        let mut sizes: Vec<usize> = attrs.iter().map(Vec::len).collect();
        sizes.extend((1..operands).map(|_| others.len()));
        if sizes.contains(&0) {
            continue;
        }
        let total = sizes.iter().fold(1usize, |n, s| n.saturating_mul(*s));
        let mut found = 0;
        // Large families are walked with a stride, so that every choice is met.
        let stride = if total > TRIES { (total / TRIES) | 1 } else { 1 };
        for number in (0..total).step_by(stride).take(TRIES) {
            let mut rest = number;
            let mut digits = Vec::with_capacity(sizes.len());
            for size in &sizes {
                digits.push(rest % size);
                rest /= size;
            }
            let values: Vec<AttrValue> = attrs.iter().zip(&digits).map(|(list, d)| list[*d].clone()).collect();
            let mut types: Vec<TensorType> = Vec::new();
            if operands > 0 {
                types.push(first.clone());
                types.extend(digits[attrs.len()..].iter().map(|d| others[*d].clone()));
            }
            if accepts(def, registry, &types, &values) && !out.contains(&(types.clone(), values.clone())) {
                out.push((types, values));
                found += 1;
            }
            if found == OF_ONE_SHAPE || out.len() == MOST {
                break;
            }
        }
    }
    out
}

fn accepts(def: &Def, registry: &Registry, types: &[TensorType], attrs: &[AttrValue]) -> bool {
    let mut builder = TypeBuilder::new(registry);
    let operands: Vec<usize> = types.iter().map(|t| builder.given(t.clone())).collect();
    expand(def, &operands, attrs, &mut builder).is_ok_and(|result| builder.ty(result).shape.elements() > 0)
}

/// Types that a further operand may have beside the first: the same, without one axis, of one axis alone, of another dtype.
fn related(first: &TensorType) -> Vec<TensorType> {
    let mut out = vec![first.clone()];
    for axis in 0..first.rank() {
        let rows = first.shape.without(axis);
        out.push(first.with_dtype(DType::I64).with_shape(rows.clone()));
        out.push(first.with_shape(rows));
        if let Ok(line) = Shape::new(vec![first.shape[axis]]) {
            out.push(first.with_shape(line));
        }
    }
    out.push(first.with_shape(Shape::scalar()));
    out.push(first.with_dtype(DType::Bool));
    out.push(first.with_dtype(DType::I64));
    out
}

/// Values to try for a parameter; `None` if it is no attribute. The default comes first.
fn choices(place: usize, param: &Param, first: &TensorType) -> Option<Vec<AttrValue>> {
    let Param::Attr { kind, default, words, .. } = param else { return None };
    let mut values: Vec<AttrValue> = default.iter().map(|d: &Default| d.value(first.rank())).collect();
    let axes = 0..first.rank() as i64;
    match kind {
        AttrKind::Bool => values.extend([AttrValue::Bool(false), AttrValue::Bool(true)]),
        AttrKind::Axis => values.extend(axes.map(AttrValue::Int)),
        AttrKind::NewAxis => values.extend((0..=first.rank() as i64).map(AttrValue::Int)),
        AttrKind::Axes => {
            values.extend(axes.clone().map(|a| AttrValue::Ints(vec![a])));
            values.push(AttrValue::Ints(axes.collect()));
        }
        AttrKind::Word => values.extend(words.iter().map(|w| AttrValue::Word(w.to_string()))),
        AttrKind::Int => values.extend([AttrValue::Int(0), AttrValue::Int(1)]),
        // Ascending from parameter to parameter, as bounds are, and none a number that arithmetic treats in a special way.
        AttrKind::Float if values.is_empty() => values.push(AttrValue::float(place as f64 - 1.5)),
        AttrKind::Float => values.push(AttrValue::float(0.25)),
        AttrKind::Shape | AttrKind::PerAxis => {
            values.push(AttrValue::Ints(first.shape.iter().map(|d| *d as i64).collect()));
        }
        AttrKind::Permutation => values.push(AttrValue::Ints((0..first.rank() as i64).rev().collect())),
        AttrKind::DType => values.push(AttrValue::DType(first.dtype)),
        AttrKind::Type => values.push(AttrValue::Type(first.clone())),
    }
    values.dedup();
    let mut seen = Vec::new();
    values.retain(|v| {
        !seen.contains(v) && {
            seen.push(v.clone());
            true
        }
    });
    Some(values)
}
