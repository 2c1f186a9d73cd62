use super::super::build::{Build, floats, ints, ty};
use super::*;
use crate::ir::{AttrValue, Output};

/// `picked = take_along_axis(x, i, 1)`, `again = take_along_axis(y, j, 1)`.
fn two_takes() -> Build {
    let mut b = Build::new();
    let x = b.input("x", ty(DType::F32, &[2, 3]));
    let i = b.input("i", ty(DType::I64, &[2]));
    let y = b.input("y", ty(DType::F32, &[2, 2]));
    let picked = b.op("take_along_axis", &[x, i], &[AttrValue::Int(1)]);
    b.op("take_along_axis", &[y, i], &[AttrValue::Int(1)]);
    b.output("result", picked);
    b
}

fn inputs(i: [i64; 2]) -> Vec<Array> {
    vec![floats(&[2, 3], &[1., 2., 3., 4., 5., 6.]), ints(&[2], &i), floats(&[2, 2], &[0.; 4])]
}

#[test]
fn outputs_come_by_name() {
    let b = two_takes();
    let out = run(&b.graph, &b.registry, inputs([1, 0]), Precision::Double).unwrap();
    assert_eq!(out, [("result".into(), floats(&[2], &[2., 4.]))]);
}

#[test]
fn a_check_of_an_unused_value_traps() {
    let b = two_takes();
    // 2 is in the bound of x only.
    let error = run(&b.graph, &b.registry, inputs([2, 0]), Precision::Double).unwrap_err();
    assert_eq!(error.to_string(), "take_along_axis index out of bounds");
    assert!(run(&b.graph, &b.registry, inputs([-1, 0]), Precision::Double).is_err());
}

#[test]
fn the_first_check_of_the_program_speaks() {
    let mut b = two_takes();
    let checks = std::mem::take(&mut b.graph.checks);
    for (check, operator) in checks.into_iter().zip(["first", "second"]) {
        b.graph.checks.add(Check { operator: operator.into(), ..check });
    }
    let message = |i| run(&b.graph, &b.registry, inputs(i), Precision::Double).unwrap_err().to_string();
    assert_eq!(message([7, 0]), "first index out of bounds");
    assert_eq!(message([2, 0]), "second index out of bounds");
}

#[test]
fn inputs_must_fit() {
    let b = two_takes();
    let new = |inputs| Evaluator::new(&b.graph, &b.registry, inputs, Precision::Double).err().unwrap();
    let mut wrong = inputs([0, 0]);
    wrong[1] = floats(&[2], &[0., 0.]);
    let error = new(wrong);
    assert!(matches!(&error, InterpError::WrongInput { name, .. } if name == "i"), "{error}");
    let mut wrong = inputs([0, 0]);
    wrong[0] = floats(&[3, 2], &[0.; 6]);
    assert!(matches!(new(wrong), InterpError::WrongInput { .. }));
    let mut missing = inputs([0, 0]);
    missing.pop();
    assert_eq!(new(missing), InterpError::InputCount { wanted: 3, given: 2 });
    let mut more = inputs([0, 0]);
    more.push(floats(&[], &[0.]));
    assert_eq!(new(more), InterpError::InputCount { wanted: 3, given: 4 });
}

#[test]
fn typed_precision_rounds_every_result() {
    let mut b = Build::new();
    let x = b.input("x", ty(DType::F32, &[1]));
    let e = b.op("exp", &[x], &[]);
    b.output("result", e);
    let value = |precision| {
        let out = run(&b.graph, &b.registry, vec![floats(&[1], &[1.0])], precision).unwrap();
        out[0].1.floats()[0]
    };
    assert_eq!(value(Precision::Double), 1f64.exp());
    assert_eq!(value(Precision::Typed), f64::from(1f64.exp() as f32));
}

#[test]
fn a_replaced_value_reaches_its_dependents_only() {
    let mut b = Build::new();
    let x = b.input("x", ty(DType::F64, &[2]));
    let p = b.param(x);
    let q = b.param(x);
    let stopped = b.op("stop_gradient", &[p], &[]);
    let product = b.op("mul", &[p, q], &[]);
    let result = b.op("add", &[product, stopped], &[]);
    b.output("result", result);
    let mut evaluator =
        Evaluator::new(&b.graph, &b.registry, vec![floats(&[2], &[2., 3.])], Precision::Double).unwrap();
    evaluator.evaluate().unwrap();
    let with = |node| Array::clone(&evaluator.value_with(result, node, floats(&[2], &[10., 10.])).unwrap());
    assert_eq!(with(p), floats(&[2], &[30., 40.]));
    assert_eq!(with(q), floats(&[2], &[22., 33.]));
    assert_eq!(with(x), floats(&[2], &[110., 110.]));
    assert_eq!(with(result), floats(&[2], &[10., 10.]));
    // Frozen, the stopped value keeps what it was.
    let dependents = evaluator.dependents(result, p, |id| id == stopped);
    assert_eq!(*evaluator.value_at(&dependents, floats(&[2], &[10., 10.])).unwrap(), floats(&[2], &[22., 33.]));
    assert_eq!(evaluator.value(result), Some(&floats(&[2], &[6., 12.])));
    let error = evaluator.value_with(result, p, floats(&[1], &[0.])).unwrap_err();
    assert!(matches!(error, InterpError::WrongReplacement { .. }));
}

#[test]
fn what_cannot_be_evaluated_is_an_error() {
    let mut b = Build::new();
    let x = b.input("x", ty(DType::F64, &[1]));
    let wide = b.op("broadcast", &[x], &[AttrValue::Ints(vec![1 << 40])]);
    b.output("result", wide);
    let error = run(&b.graph, &b.registry, vec![floats(&[1], &[0.])], Precision::Double).unwrap_err();
    assert!(matches!(error, InterpError::TooLarge { .. }), "{error}");
    let mut node = b.graph.node(x).clone();
    node.kind = NodeKind::Gradient { handler: 0, index: 0 };
    let gradient = b.graph.push(node);
    b.graph.outputs = vec![Output { name: "g_x".into(), node: gradient }];
    let error = run(&b.graph, &b.registry, vec![floats(&[1], &[0.])], Precision::Double).unwrap_err();
    assert_eq!(error, InterpError::NotDifferentiated);
}
