//! Typing rules and reference semantics of the operators.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::premises::host;
use crate::ir::array::{Array, Precision, Values};
use crate::ir::attr::AttrValue;
use crate::ir::operator::{Call, Eval, EvalError, Registry, TypeError, TypeErrorKind, Where};
use crate::ir::range::Range;
use crate::ir::types::{DType, Placement, Shape, TensorType};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn f32s(dims: &[u64]) -> TensorType {
    host(DType::F32, dims)
}

fn on_device(mut ty: TensorType) -> TensorType {
    ty.placement = Placement::Device;
    ty
}

fn axis(i: i64) -> AttrValue {
    AttrValue::Int(i)
}

fn axes(axes: &[i64], keepdims: bool) -> Vec<AttrValue> {
    vec![AttrValue::Ints(axes.to_vec()), AttrValue::Bool(keepdims)]
}

fn windows(lists: &[&[i64]]) -> Vec<AttrValue> {
    lists.iter().map(|l| AttrValue::Ints(l.to_vec())).collect()
}

fn dest(dims: &[u64]) -> AttrValue {
    AttrValue::Type(f32s(dims))
}

/// The attributes of a `pad` of a vector.
fn pads(low: i64, high: i64, value: f64, interior: i64) -> Vec<AttrValue> {
    let list = |v| AttrValue::Ints(vec![v]);
    vec![list(low), list(high), AttrValue::float(value), list(interior)]
}

fn iota(shape: &[i64], axis: i64, dtype: DType) -> Vec<AttrValue> {
    vec![AttrValue::Ints(shape.to_vec()), AttrValue::Int(axis), AttrValue::DType(dtype)]
}

fn infer(op: &str, operands: &[TensorType], attrs: &[AttrValue]) -> Result<TensorType, TypeError> {
    let registry = Registry::builtin();
    let id = registry.id(op).expect("a known operator");
    registry.infer(id, &operands.iter().collect::<Vec<_>>(), attrs)
}

fn refused(op: &str, operands: &[TensorType], attrs: &[AttrValue]) -> TypeError {
    infer(op, operands, attrs).expect_err("a violated premise")
}

fn eval_in(precision: Precision, op: &str, args: &[(DType, Array)], attrs: &[AttrValue]) -> Result<Array, EvalError> {
    let registry = Registry::builtin();
    let types: Vec<TensorType> =
        args.iter().map(|(d, a)| TensorType::new(*d, a.shape.clone(), Placement::Host)).collect();
    let types: Vec<&TensorType> = types.iter().collect();
    let arrays: Vec<&Array> = args.iter().map(|(_, a)| a).collect();
    let id = registry.id(op).expect("a known operator");
    let result = registry.infer(id, &types, attrs).expect("a well-typed call");
    let call = Call { operands: &types, attrs };
    registry.op(id).reference(&Eval { call, args: &arrays, result: &result, precision })
}

fn floats(dims: &[u64], values: &[f64]) -> (DType, Array) {
    (DType::F64, Array::new(Shape::new(dims.to_vec()).unwrap(), Values::Float(values.to_vec())))
}

fn longs(dims: &[u64], values: &[i64]) -> (DType, Array) {
    (DType::I64, Array::new(Shape::new(dims.to_vec()).unwrap(), Values::Int(values.to_vec())))
}

fn eval(op: &str, args: &[(DType, Array)], attrs: &[AttrValue]) -> Array {
    eval_in(Precision::Double, op, args, attrs).expect("no trap")
}

/// Equal bits, all NaNs being one value: tells -0 from +0.
fn assert_same(got: &Array, want: &[f64]) {
    let bits = |v: &[f64]| v.iter().map(|x| if x.is_nan() { 0x7ff8 << 48 } else { x.to_bits() }).collect::<Vec<_>>();
    assert_eq!(bits(got.floats()), bits(want), "{:?} is not {want:?}", got.floats());
}

#[test]
fn every_instance_is_well_typed_and_ranks_1_to_4_occur() {
    let registry = Registry::builtin();
    for (id, op) in registry.iter() {
        let mut ranks = Vec::new();
        for (operands, attrs) in op.instances() {
            let types: Vec<&TensorType> = operands.iter().collect();
            let result = registry.infer(id, &types, &attrs).unwrap_or_else(|e| panic!("{}: {e}", op.name()));
            assert!(operands.iter().all(|t| t.placement == result.placement));
            ranks.push(operands.first().unwrap_or(&result).rank().max(result.rank()));
        }
        let least =
            if ["matmul", "take_along_axis", "scatter_along_axis", "tril"].contains(&op.name()) { 2 } else { 1 };
        for rank in least..=4 {
            assert!(ranks.contains(&rank), "{} has no instance of rank {rank}", op.name());
        }
    }
}

#[test]
fn results_follow_the_placement_of_the_operands_and_mixed_placement_is_refused() {
    let registry = Registry::builtin();
    for (id, op) in registry.iter() {
        for (operands, attrs) in op.instances().into_iter().filter(|(o, _)| !o.is_empty()) {
            // The destination of a scatter is an attribute.
            let attrs: Vec<AttrValue> = attrs
                .into_iter()
                .map(|a| match a {
                    AttrValue::Type(ty) => AttrValue::Type(on_device(ty)),
                    other => other,
                })
                .collect();
            let moved: Vec<TensorType> = operands.iter().cloned().map(on_device).collect();
            let types: Vec<&TensorType> = moved.iter().collect();
            assert_eq!(registry.infer(id, &types, &attrs).unwrap().placement, Placement::Device, "{}", op.name());
            for i in 1..operands.len() {
                let mut mixed = operands.clone();
                mixed[i].placement = Placement::Device;
                let error = refused(op.name(), &mixed, &attrs);
                assert_eq!((error.kind, error.place), (TypeErrorKind::Placement, Where::Operand(i)));
                assert!(error.message.contains("equal placement") && error.help.is_some());
            }
        }
    }
}

#[test]
fn violated_premises_are_named() {
    let host_i32 = host(DType::I32, &[2]);
    let cases = [
        (refused("exp", std::slice::from_ref(&host_i32), &[]), TypeErrorKind::DType),
        (refused("neg", &[host(DType::Bool, &[2])], &[]), TypeErrorKind::DType),
        (refused("add", &[f32s(&[2]), host_i32.clone()], &[]), TypeErrorKind::DType),
        (refused("less", &[host(DType::Bool, &[2]), host(DType::Bool, &[2])], &[]), TypeErrorKind::DType),
        (refused("logical_and", &[host_i32.clone(), host_i32.clone()], &[]), TypeErrorKind::DType),
        (refused("select", &[f32s(&[2]), f32s(&[2]), f32s(&[2])], &[]), TypeErrorKind::DType),
        (refused("sum", &[f32s(&[2, 3])], &axes(&[2], false)), TypeErrorKind::Axis),
        (refused("sum", &[f32s(&[2, 3])], &axes(&[-1], false)), TypeErrorKind::Axis),
        (refused("sum", &[f32s(&[2, 3])], &axes(&[1, 1], false)), TypeErrorKind::Axis),
        (refused("mean", &[host(DType::I64, &[2])], &axes(&[0], false)), TypeErrorKind::DType),
        (refused("max", &[f32s(&[2, 0])], &axes(&[1], false)), TypeErrorKind::Empty),
        (refused("min", &[f32s(&[0, 2])], &axes(&[0], true)), TypeErrorKind::Empty),
        (refused("softmax", &[f32s(&[])], &[axis(0)]), TypeErrorKind::Axis),
        (refused("broadcast", &[f32s(&[2, 3])], &[AttrValue::Ints(vec![3])]), TypeErrorKind::Shape),
        (refused("broadcast", &[f32s(&[2])], &[AttrValue::Ints(vec![2, 3])]), TypeErrorKind::Shape),
        (refused("broadcast", &[f32s(&[1])], &[AttrValue::Ints(vec![-1])]), TypeErrorKind::Attribute),
        (refused("broadcast", &[f32s(&[1])], &[AttrValue::Ints(vec![1 << 40, 1 << 40])]), TypeErrorKind::Overflow),
        (refused("reshape", &[f32s(&[2, 3])], &[AttrValue::Ints(vec![5])]), TypeErrorKind::Shape),
        (refused("transpose", &[f32s(&[2, 3])], &[AttrValue::Ints(vec![0, 0])]), TypeErrorKind::Axis),
        (refused("unsqueeze", &[f32s(&[2])], &[axis(2)]), TypeErrorKind::Axis),
        (refused("squeeze", &[f32s(&[2])], &[axis(1)]), TypeErrorKind::Axis),
        (refused("squeeze", &[f32s(&[1, 2])], &[axis(1)]), TypeErrorKind::Shape),
        (refused("slice", &[f32s(&[2])], &windows(&[&[0, 0], &[2], &[1]])), TypeErrorKind::Attribute),
        (refused("slice", &[f32s(&[2])], &windows(&[&[-1], &[2], &[1]])), TypeErrorKind::Attribute),
        (refused("slice", &[f32s(&[2])], &windows(&[&[0], &[2], &[0]])), TypeErrorKind::Attribute),
        (refused("slice", &[f32s(&[2])], &windows(&[&[0], &[3], &[1]])), TypeErrorKind::Shape),
        (refused("slice", &[f32s(&[2])], &windows(&[&[2], &[1], &[1]])), TypeErrorKind::Shape),
        (refused("pad", std::slice::from_ref(&host_i32), &pads(1, 0, 0.5, 0)), TypeErrorKind::Attribute),
        (refused("pad", &[f32s(&[2])], &pads(-1, 0, 0.0, 0)), TypeErrorKind::Attribute),
        (refused("pad", &[f32s(&[2])], &pads(0, 0, 1e39, 0)), TypeErrorKind::Attribute),
        (refused("pad", &[f32s(&[2])], &pads(i64::MAX, i64::MAX, 0.0, 0)), TypeErrorKind::Overflow),
        (refused("pad", &[f32s(&[9])], &pads(0, 0, 0.0, i64::MAX)), TypeErrorKind::Overflow),
        (refused("reverse", &[f32s(&[2, 3])], &[AttrValue::Ints(vec![2])]), TypeErrorKind::Axis),
        (refused("reverse", &[f32s(&[2, 3])], &[AttrValue::Ints(vec![1, 0])]), TypeErrorKind::Axis),
        (refused("argmax", &[f32s(&[2, 0])], &[axis(1), AttrValue::Bool(false)]), TypeErrorKind::Empty),
        (refused("argmax", &[host(DType::Bool, &[2])], &[axis(0), AttrValue::Bool(false)]), TypeErrorKind::DType),
        (refused("cumsum", &[f32s(&[2])], &[axis(1)]), TypeErrorKind::Axis),
        (refused("cumsum", &[host(DType::Bool, &[2])], &[axis(0)]), TypeErrorKind::DType),
        (refused("gather", &[f32s(&[]), host(DType::I64, &[2])], &[]), TypeErrorKind::Rank),
        (refused("gather", &[f32s(&[2]), f32s(&[2])], &[]), TypeErrorKind::DType),
        (refused("gather", &[f32s(&[1, 1 << 40]), host(DType::I64, &[1 << 30])], &[]), TypeErrorKind::Overflow),
        (
            refused("linear_recurrence", &[f32s(&[2]), f32s(&[2])], &[axis(0), AttrValue::float(1e39)]),
            TypeErrorKind::Attribute,
        ),
        (refused("scatter_add", &[f32s(&[2, 3]), host(DType::I64, &[2])], &[dest(&[5, 4])]), TypeErrorKind::Shape),
        (refused("scatter_add", &[f32s(&[2, 3]), f32s(&[2])], &[dest(&[5, 3])]), TypeErrorKind::DType),
        (refused("scatter_add", &[f32s(&[2]), host(DType::I64, &[2])], &[dest(&[])]), TypeErrorKind::Rank),
        (refused("tril", &[f32s(&[2])], &[]), TypeErrorKind::Rank),
        (refused("iota", &[], &iota(&[2], 1, DType::I64)), TypeErrorKind::Axis),
        (refused("iota", &[], &iota(&[2], 0, DType::Bool)), TypeErrorKind::DType),
        (refused("iota", &[], &iota(&[1 << 32], 0, DType::I32)), TypeErrorKind::DType),
        (refused("iota", &[], &iota(&[-2], 0, DType::I64)), TypeErrorKind::Attribute),
        (refused("matmul", &[f32s(&[3]), f32s(&[3, 1])], &[]), TypeErrorKind::Rank),
        (refused("matmul", &[f32s(&[1, 2, 3]), f32s(&[3, 1])], &[]), TypeErrorKind::Rank),
        (refused("matmul", &[f32s(&[2, 2, 3]), f32s(&[1, 3, 1])], &[]), TypeErrorKind::Shape),
        (refused("matmul", &[f32s(&[2, 3]), f32s(&[2, 3])], &[]), TypeErrorKind::Shape),
        (refused("take_along_axis", &[f32s(&[3]), host(DType::I64, &[])], &[axis(0)]), TypeErrorKind::Rank),
        (refused("take_along_axis", &[f32s(&[2, 3]), host(DType::I64, &[3])], &[axis(1)]), TypeErrorKind::Shape),
        (refused("take_along_axis", &[f32s(&[2, 3]), host(DType::I32, &[2])], &[axis(1)]), TypeErrorKind::DType),
    ];
    for (error, kind) in cases {
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.help.is_some(), "{error} has no way out");
    }
    // The checker knows the names of the operands and says which `broadcast` would fix it.
    let shapes = refused("add", &[f32s(&[2, 3]), f32s(&[3])], &[]);
    assert_eq!((shapes.kind, shapes.help), (TypeErrorKind::Shape, None));
}

#[test]
fn splat_refuses_what_its_dtype_cannot_hold() {
    let splat = |v: f64, d| infer("splat", &[], &[AttrValue::float(v), AttrValue::Type(host(d, &[2]))]);
    for (v, d) in [(1e39, DType::F32), (0.5, DType::I32), (NAN, DType::I64), (INF, DType::I64), (2.0, DType::Bool)] {
        assert_eq!(splat(v, d).expect_err("a misfit").place, Where::Attr("value"));
    }
    assert!(splat(2147483648.0, DType::I32).is_err() && splat(-2147483648.0, DType::I32).is_ok());
    assert!(splat(2f64.powi(63), DType::I64).is_err() && splat(1e39, DType::F64).is_ok());
    assert!(splat(INF, DType::F32).is_ok() && splat(NAN, DType::F32).is_ok());
}

#[test]
fn elementwise_special_values() {
    let x = floats(&[4], &[NAN, -0.0, -INF, 2.0]);
    assert_same(&eval("relu", std::slice::from_ref(&x), &[]), &[NAN, 0.0, 0.0, 2.0]);
    assert_same(&eval("sign", std::slice::from_ref(&x), &[]), &[NAN, -0.0, -1.0, 1.0]);
    assert_same(&eval("rsqrt", &[floats(&[3], &[4.0, 0.0, -1.0])], &[]), &[0.5, INF, NAN]);
    let (a, b) = (floats(&[4], &[NAN, -0.0, 0.0, 3.0]), floats(&[4], &[1.0, 0.0, -0.0, INF]));
    assert_same(&eval("maximum", &[a.clone(), b.clone()], &[]), &[NAN, 0.0, 0.0, INF]);
    assert_same(&eval("minimum", &[b.clone(), a.clone()], &[]), &[NAN, -0.0, -0.0, 3.0]);
    assert_eq!(eval("not_equal", &[a.clone(), b.clone()], &[]).bools(), [true, false, false, true]);
    assert_eq!(eval("greater_equal", &[a, b], &[]).bools(), [false, true, true, false]);
    let div = eval("div", &[longs(&[3], &[-7, 5, i64::MIN]), longs(&[3], &[2, 0, -1])], &[]);
    assert_eq!(div.ints(), [-3, 0, i64::MIN]);
}

#[test]
fn softmax_keeps_its_shift_and_confines_bad_rows() {
    let x = floats(&[4, 2], &[1e8, 1e8, -INF, -INF, -INF, 0.0, NAN, 0.0]);
    let half = -std::f64::consts::LN_2;
    assert_same(
        &eval("log_softmax", std::slice::from_ref(&x), &[axis(1)]),
        &[half, half, NAN, NAN, -INF, 0.0, NAN, NAN],
    );
    assert_same(&eval("softmax", &[x], &[axis(1)]), &[0.5, 0.5, NAN, NAN, 0.0, 1.0, NAN, NAN]);
    assert_same(&eval("softmax", &[floats(&[2, 0], &[])], &[axis(1)]), &[]);
    let columns = eval("softmax", &[floats(&[2, 2], &[0.0, 5.0, 0.0, 5.0])], &[axis(0)]);
    assert_same(&columns, &[0.5; 4]);
}

#[test]
fn reductions() {
    let x = floats(&[2, 3], &[1.0, 2.0, 3.0, -0.0, 0.0, NAN]);
    assert_same(&eval("sum", std::slice::from_ref(&x), &axes(&[0], false)), &[1.0, 2.0, NAN]);
    assert_same(&eval("max", std::slice::from_ref(&x), &axes(&[1], true)), &[3.0, NAN]);
    assert_same(&eval("min", &[floats(&[2], &[0.0, -0.0])], &axes(&[0], false)), &[-0.0]);
    assert_eq!(&*eval("max", &[x], &axes(&[1], true)).shape, [2, 1]);
    assert_same(&eval("sum", &[floats(&[2, 0], &[])], &axes(&[1], false)), &[0.0, 0.0]);
    assert_same(&eval("mean", &[floats(&[2, 0], &[])], &axes(&[1], false)), &[NAN, NAN]);
    assert_same(&eval("mean", &[floats(&[4], &[1.0, 2.0, 3.0, 4.0])], &axes(&[0], false)), &[2.5]);
}

#[test]
fn typed_precision_rounds_every_step() {
    let values = Values::Float(vec![16_777_216.0, 1.0, 1.0]);
    let x = (DType::F32, Array::new(Shape::new(vec![3]).unwrap(), values));
    let sum = |p| eval_in(p, "sum", std::slice::from_ref(&x), &axes(&[0], false)).unwrap();
    assert_same(&sum(Precision::Typed), &[16_777_216.0]);
    assert_same(&sum(Precision::Double), &[16_777_218.0]);
}

#[test]
fn movement_and_matmul() {
    let x = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let t = eval("transpose", std::slice::from_ref(&x), &[AttrValue::Ints(vec![1, 0])]);
    assert_same(&t, &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let cube = floats(&[1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let rotated = eval("transpose", &[cube], &[AttrValue::Ints(vec![2, 0, 1])]);
    assert_eq!(&*rotated.shape, [3, 1, 2]);
    assert_same(&rotated, &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let b = eval("broadcast", &[floats(&[2, 1], &[7.0, 8.0])], &[AttrValue::Ints(vec![2, 2, 2])]);
    assert_same(&b, &[7.0, 7.0, 8.0, 8.0, 7.0, 7.0, 8.0, 8.0]);
    assert_same(&eval("matmul", &[x, (DType::F64, t)], &[]), &[14.0, 32.0, 32.0, 77.0]);
    let batched = eval("matmul", &[floats(&[2, 1, 1], &[2.0, 3.0]), floats(&[2, 1, 1], &[5.0, 7.0])], &[]);
    assert_same(&batched, &[10.0, 21.0]);
}

#[test]
fn scans_and_tables() {
    let x = floats(&[2, 3], &[1.0, NAN, 3.0, 4.0, 0.0, -INF]);
    assert_same(&eval("cumsum", std::slice::from_ref(&x), &[axis(0)]), &[1.0, NAN, 3.0, 5.0, NAN, -INF]);
    assert_same(&eval("prod", std::slice::from_ref(&x), &axes(&[0], false)), &[4.0, NAN, -INF]);
    assert_same(&eval("prod", &[floats(&[2, 0], &[])], &axes(&[1], false)), &[1.0, 1.0]);
    assert_eq!(eval("argmax", &[x], &[axis(1), AttrValue::Bool(false)]).ints(), [1, 0]);
    let ties = floats(&[4], &[-0.0, 0.0, -1.0, 0.0]);
    assert_eq!(eval("argmax", &[ties], &[axis(0), AttrValue::Bool(true)]).ints(), [0]);
    let (a, b) = (floats(&[3], &[2.0, 0.0, 5.0]), floats(&[3], &[1.0, 7.0, 9.0]));
    let attrs = [axis(0), AttrValue::float(3.0)];
    assert_same(&eval("linear_recurrence", &[a, b], &attrs), &[3.0, 7.0, 7.0]);
    let table = floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let ids = longs(&[3], &[1, 0, 1]);
    let taken = eval("gather", &[table.clone(), ids.clone()], &[]);
    assert_same(&taken, &[3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    let dest = [AttrValue::Type(host(DType::F64, &[2, 2]))];
    assert_same(&eval("scatter_add", &[(DType::F64, taken), ids], &dest), &[1.0, 2.0, 6.0, 8.0]);
    let wild = longs(&[1], &[2]);
    let trap = eval_in(Precision::Double, "gather", &[table, wild], &[]);
    assert_eq!(trap.unwrap_err().to_string(), "gather index out of bounds");
}

#[test]
fn windows_and_places() {
    let x = floats(&[5], &[1.0, 2.0, NAN, 4.0, -0.0]);
    let one = std::slice::from_ref(&x);
    assert_same(&eval("slice", one, &windows(&[&[1], &[5], &[3]])), &[2.0, -0.0]);
    assert_same(&eval("slice", one, &windows(&[&[1], &[4], &[9]])), &[2.0]);
    assert_same(&eval("reverse", one, &windows(&[&[0]])), &[-0.0, 4.0, NAN, 2.0, 1.0]);
    let two = floats(&[2], &[-0.0, NAN]);
    assert_same(&eval("pad", &[two], &pads(1, 2, 7.5, 1)), &[7.5, -0.0, 7.5, NAN, 7.5, 7.5]);
    let square = floats(&[2, 2], &[-0.0, NAN, INF, NAN]);
    assert_same(&eval("tril", &[square], &[]), &[-0.0, 0.0, INF, NAN]);
    assert_eq!(eval("iota", &[], &iota(&[2, 2], 0, DType::I64)).ints(), [0, 0, 1, 1]);
    assert_same(&eval("iota", &[], &iota(&[2, 2], 1, DType::F32)), &[0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn take_and_scatter_along_an_inner_axis() {
    let x = floats(&[2, 3, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let indices = longs(&[2, 1], &[2, 0]);
    let taken = eval("take_along_axis", &[x.clone(), indices.clone()], &[axis(1)]);
    assert_same(&taken, &[3.0, 4.0]);
    let attrs = [axis(1), AttrValue::Type(host(DType::F64, &[2, 3, 1]))];
    let scattered = eval("scatter_along_axis", &[(DType::F64, taken), indices], &attrs);
    assert_same(&scattered, &[0.0, 0.0, 3.0, 4.0, 0.0, 0.0]);
    for bad in [-1, 3] {
        let indices = longs(&[2, 1], &[0, bad]);
        let trap = eval_in(Precision::Double, "take_along_axis", &[x.clone(), indices.clone()], &[axis(1)]);
        assert_eq!(trap.unwrap_err().to_string(), "take_along_axis index out of bounds");
        let updates = floats(&[2, 1], &[1.0, 1.0]);
        let trap = eval_in(Precision::Double, "scatter_along_axis", &[updates, indices], &attrs);
        assert_eq!(trap.unwrap_err().to_string(), "scatter_along_axis index out of bounds");
    }
}

#[test]
fn casts() {
    let cast = |x: (DType, Array), to| eval_in(Precision::Typed, "cast", &[x], &[AttrValue::DType(to)]).unwrap();
    let x = floats(&[5], &[-1.9, NAN, 1e30, -INF, 0.5]);
    assert_eq!(cast(x.clone(), DType::I32).ints(), [-1, 0, i64::from(i32::MAX), i64::from(i32::MIN), 0]);
    assert_eq!(cast(x.clone(), DType::I64).ints(), [-1, 0, i64::MAX, i64::MIN, 0]);
    assert_eq!(cast(x, DType::Bool).bools(), [true; 5]);
    assert_eq!(
        cast(longs(&[2], &[1 << 40, -(1 << 40)]), DType::I32).ints(),
        [i64::from(i32::MAX), i64::from(i32::MIN)]
    );
    // Just above the middle of two f32: by way of f64 it would be a tie and go down.
    assert_same(&cast(longs(&[1], &[(1 << 60) + (1 << 36) + 1]), DType::F32), &[((1i64 << 60) + (1 << 37)) as f64]);
}

/// The elements that are not NaN, as floats.
fn numbers(array: &Array) -> Vec<f64> {
    match &array.values {
        Values::Float(v) => v.iter().copied().filter(|v| !v.is_nan()).collect(),
        Values::Int(v) => v.iter().map(|i| *i as f64).collect(),
        Values::Bool(v) => v.iter().map(|b| f64::from(u8::from(*b))).collect(),
    }
}

#[test]
fn results_lie_in_the_ranges_that_operators_promise() {
    const CENTRES: [f64; 9] = [0.0, -0.0, 1.0, -1.0, 3.5, 1e-30, -1e-30, 1e20, f64::INFINITY];
    let registry = Registry::builtin();
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut bounded = std::collections::BTreeSet::new();
    for (id, op) in registry.iter() {
        for (operands, attrs) in op.instances() {
            let types: Vec<&TensorType> = operands.iter().collect();
            let call = Call { operands: &types, attrs: &attrs };
            let result = registry.infer(id, &types, &attrs).unwrap();
            for round in 0..60 {
                let precision = if round % 2 == 0 { Precision::Double } else { Precision::Typed };
                let args: Vec<Array> = operands
                    .iter()
                    .enumerate()
                    .map(|(i, ty)| {
                        let bound = op.bound(call).filter(|b| b.operand == i).map(|b| b.size);
                        let (centre, spread) =
                            (CENTRES[random.next_u32() as usize % 9], [0.0, 0.1, 10.0][random.next_u32() as usize % 3]);
                        let mut next = || f64::from(random.next_u32()) / f64::from(u32::MAX);
                        let n = ty.shape.elements();
                        let values = match (ty.dtype, bound) {
                            (DType::F32 | DType::F64, _) => Values::Float(
                                (0..n).map(|_| precision.round(ty.dtype, centre + spread * (next() - 0.5))).collect(),
                            ),
                            (DType::Bool, _) => Values::Bool((0..n).map(|_| next() < 0.5).collect()),
                            (_, Some(size)) => {
                                Values::Int((0..n).map(|_| (next() * size as f64 * 0.99) as i64).collect())
                            }
                            (DType::I32, _) => {
                                Values::Int((0..n).map(|_| i64::from((centre + 20.0 * next()) as i32)).collect())
                            }
                            _ => Values::Int((0..n).map(|_| (centre + 20.0 * next()) as i64).collect()),
                        };
                        Array::new(ty.shape.clone(), values)
                    })
                    .collect();
                // The tightest true facts about the operands.
                let ranges: Vec<Range> = args
                    .iter()
                    .zip(&operands)
                    .map(|(a, ty)| {
                        numbers(a).into_iter().map(Range::point).reduce(Range::hull).unwrap_or(Range::of_type(ty))
                    })
                    .collect();
                let range = op.range(&ranges, call, &result);
                if range != Range::of_type(&result) {
                    bounded.insert(op.name().to_owned());
                }
                let args: Vec<&Array> = args.iter().collect();
                let out = op.reference(&Eval { call, args: &args, result: &result, precision }).unwrap();
                for value in numbers(&out) {
                    assert!(range.contains(value), "{} of {ranges:?} promises {range:?}, gave {value:e}", op.name());
                }
            }
        }
    }
    // Comparisons and Bools have only the range of their type.
    assert!(bounded.len() >= 31, "{bounded:?}");
}
