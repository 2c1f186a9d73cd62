use super::*;
use crate::ir::{AttrValue, DType, Node, NodeKind, Origin, Placement, Shape, TensorType};

/// `primal = f(x)` with a gradient of our choice, built by `build(graph, x) -> (primal, gradient)`.
fn check(values: Vec<f64>, build: impl Fn(&mut Graph, &Registry, NodeId) -> (NodeId, NodeId)) -> GradientResult {
    let registry = Registry::builtin();
    let mut graph = Graph::new();
    let shape = Shape::new(vec![values.len() as u64]).unwrap();
    let ty = TensorType::new(DType::F64, shape.clone(), Placement::Host);
    let origin = || Origin::Accumulate { serves: vec![] };
    let input = graph.push(Node { kind: NodeKind::Input, ty: ty.clone(), name: Some("x".into()), origin: origin() });
    graph.inputs.push(input);
    let kind = NodeKind::Param { handler: 0, index: 0, argument: input };
    let param = graph.push(Node { kind, ty, name: None, origin: origin() });
    let (primal, gradient) = build(&mut graph, &registry, param);
    let probe = GradientProbe { name: "x".into(), primal, param, gradient, cotangent: None };
    let inputs = vec![Array::new(shape, Values::Float(values))];
    check_gradients(&graph, &registry, inputs, &[probe], 1).unwrap().gradients.remove(0)
}

fn op(graph: &mut Graph, registry: &Registry, name: &str, operands: &[NodeId]) -> NodeId {
    let origin = Origin::Accumulate { serves: vec![] };
    graph.add(registry, registry.id(name).unwrap(), operands.to_vec(), vec![], origin).unwrap()
}

fn splat(graph: &mut Graph, registry: &Registry, value: f64, like: NodeId) -> NodeId {
    let ty = graph.ty(like).clone();
    let origin = Origin::Accumulate { serves: vec![] };
    let attrs = vec![AttrValue::float(value), AttrValue::Type(ty)];
    graph.add(registry, registry.id("splat").unwrap(), vec![], attrs, origin).unwrap()
}

#[test]
fn a_right_gradient_passes() {
    let result = check(vec![0.3, -2.0, 1e3, 1e-3], |g, r, x| {
        let y = op(g, r, "mul", &[x, x]);
        (y, op(g, r, "add", &[x, x]))
    });
    assert_eq!(result.verdict, Verdict::Passed, "{result:?}");
    assert!(result.worst <= 1e-9, "{result:?}");
    assert_eq!((result.checked, result.at_kinks), (4, 0));
}

#[test]
fn elements_of_any_size_are_compared() {
    let extremes = vec![f64::MAX, -f64::MAX, 1e200, f64::MIN_POSITIVE, 0.0, -0.0];
    let constant = check(extremes.clone(), |g, r, x| (splat(g, r, 2.0, x), splat(g, r, 0.0, x)));
    assert_eq!((constant.verdict, constant.checked), (Verdict::Passed, 6));
    let linear = check(extremes, |g, r, x| {
        let scale = splat(g, r, 2f64.powi(-1000), x);
        (op(g, r, "mul", &[x, scale]), scale)
    });
    assert_eq!(linear.verdict, Verdict::Passed, "{linear:?}");
    // A derivative along the line beyond the range of f64.
    let steep = check(vec![f64::MAX, 1.0], |g, r, x| {
        let scale = splat(g, r, 4.0, x);
        let small = op(g, r, "div", &[x, scale]);
        (op(g, r, "div", &[small, scale]), splat(g, r, 1.0 / 16.0, x))
    });
    assert_eq!(steep.verdict, Verdict::Passed, "{steep:?}");
}

#[test]
fn a_summand_that_rounding_swallows_is_not_resolved() {
    let sum = |values: Vec<f64>, slope: f64| {
        check(values, |g, r, x| {
            let origin = Origin::Accumulate { serves: vec![] };
            let attrs = vec![AttrValue::Ints(vec![0]), AttrValue::Bool(false)];
            let y = g.add(r, r.id("sum").unwrap(), vec![x], attrs, origin).unwrap();
            (y, splat(g, r, slope, x))
        })
    };
    let right = sum(vec![1e30, 1.0], 1.0);
    assert_eq!((right.verdict, right.checked, right.unresolved), (Verdict::Passed, 1, 1));
    assert_eq!(sum(vec![1e30, 1.0], 2.0).verdict, Verdict::Failed);
    // A constant is still known for one.
    let constant = check(vec![1.0], |g, r, x| (splat(g, r, 1e3, x), splat(g, r, 1.0, x)));
    assert_eq!(constant.verdict, Verdict::Failed);
}

#[test]
fn wrong_gradients_fail() {
    // Wrong sign, wrong factor, a dropped term: all of exp(x) + x, whose derivative is exp(x) + 1.
    for (sign, factor, term) in [(-1.0, 1.0, 1.0), (1.0, 2.0, 1.0), (1.0, 1.0, 0.0), (1.0, 1.000_01, 1.0)] {
        let result = check(vec![0.5, -1.0, 2.0], |g, r, x| {
            let e = op(g, r, "exp", &[x]);
            let y = op(g, r, "add", &[e, x]);
            let scale = splat(g, r, sign * factor, x);
            let one = splat(g, r, term, x);
            let scaled = op(g, r, "mul", &[e, scale]);
            (y, op(g, r, "add", &[scaled, one]))
        });
        assert_eq!(result.verdict, Verdict::Failed, "sign {sign}, factor {factor}, term {term}: {result:?}");
    }
}

#[test]
fn large_parameters_are_sampled_and_still_caught() {
    let values: Vec<f64> = (0..5000).map(|i| f64::from(i % 17) / 7.0 - 1.0).collect();
    let right = check(values.clone(), |g, r, x| {
        let y = op(g, r, "tanh", &[x]);
        let square = op(g, r, "mul", &[y, y]);
        let one = splat(g, r, 1.0, x);
        (y, op(g, r, "sub", &[one, square]))
    });
    assert_eq!((right.verdict.clone(), right.checked), (Verdict::Passed, 80), "{right:?}");
    let wrong = check(values, |g, r, x| {
        let y = op(g, r, "tanh", &[x]);
        let square = op(g, r, "mul", &[y, y]);
        let one = splat(g, r, 1.0, x);
        (y, op(g, r, "add", &[one, square]))
    });
    assert_eq!(wrong.verdict, Verdict::Failed);
}

#[test]
fn a_kink_accepts_what_lies_between_the_sides() {
    let relu = |slope_at_zero: f64| {
        check(vec![0.0, 1.0, -1.0], move |g, r, x| {
            let y = op(g, r, "relu", &[x]);
            let zero = splat(g, r, 0.0, x);
            let one = splat(g, r, 1.0, x);
            let slope = splat(g, r, slope_at_zero, x);
            let positive = op(g, r, "greater", &[x, zero]);
            let is_zero = op(g, r, "equal", &[x, zero]);
            let below = op(g, r, "select", &[is_zero, slope, zero]);
            (y, op(g, r, "select", &[positive, one, below]))
        })
    };
    let fair = relu(0.0);
    assert_eq!((fair.verdict, fair.at_kinks), (Verdict::Passed, 1));
    assert_eq!(relu(0.5).verdict, Verdict::Passed);
    assert_eq!(relu(2.0).verdict, Verdict::Failed);
}

#[test]
fn nothing_passes_unseen() {
    let result = check(vec![-1.0, 1.0], |g, r, x| {
        let y = op(g, r, "log", &[x]);
        (y, x)
    });
    assert!(matches!(result.verdict, Verdict::NotChecked(_)), "{result:?}");
    assert!(!GradReport { gradients: vec![result] }.passed());
}

/// Gradient `slope` at every element.
fn constant(graph: &mut Graph, registry: &Registry, x: NodeId, slope: f64) -> NodeId {
    splat(graph, registry, slope, x)
}

#[test]
fn a_large_constant_in_the_primal_hides_no_error() {
    // The differences see only rounding: that is no comparison, and no pass.
    let result = check(vec![0.5, 1.0], |g, r, x| {
        let large = splat(g, r, 1e13, x);
        (op(g, r, "add", &[x, large]), constant(g, r, x, 0.9))
    });
    assert!(result.verdict != Verdict::Passed, "{result:?}");
    // Elements of different magnitude do not disturb each other.
    let result = check(vec![0.5, 1e9], |g, r, x| {
        let square = op(g, r, "mul", &[x, x]);
        (square, op(g, r, "add", &[x, x]))
    });
    assert_eq!(result.verdict, Verdict::Passed, "{result:?}");
}

#[test]
fn a_stopped_value_is_a_constant() {
    let result = check(vec![0.5, -1.0], |g, r, x| {
        let stopped = op(g, r, "stop_gradient", &[x]);
        (op(g, r, "mul", &[x, stopped]), x)
    });
    assert_eq!(result.verdict, Verdict::Passed, "{result:?}");
}

#[test]
fn the_end_of_a_domain_nearby_is_no_error() {
    let result = check(vec![1e-3, 5e-5, 1.0], |g, r, x| {
        let one = splat(g, r, 1.0, x);
        (op(g, r, "log", &[x]), op(g, r, "div", &[one, x]))
    });
    assert_eq!(result.verdict, Verdict::Passed, "{result:?}");
    assert_eq!(result.checked, 3, "{result:?}");
}

fn relu(values: Vec<f64>, slope: f64) -> GradientResult {
    check(values, move |g, r, x| {
        let zero = splat(g, r, 0.0, x);
        let slope = splat(g, r, slope, x);
        let positive = op(g, r, "greater", &[x, zero]);
        (op(g, r, "relu", &[x]), op(g, r, "select", &[positive, slope, zero]))
    })
}

#[test]
fn a_kink_nearby_does_not_excuse_a_wrong_gradient() {
    assert_eq!(relu(vec![1e-4, 1.0], 1.0).verdict, Verdict::Passed);
    assert_eq!(relu(vec![1e-4], 0.5).verdict, Verdict::Failed);
}

#[test]
fn directions_cross_kinks_without_harm() {
    let dense: Vec<f64> = (0..5000).map(|i| (f64::from(i) - 2499.5) / 1000.0).collect();
    let result = relu(dense, 1.0);
    assert_eq!(result.verdict, Verdict::Passed, "{result:?}");
    // Some elements lie at the kink itself.
    let exact: Vec<f64> = (0..5000).map(|i| f64::from(i % 5 - 2)).collect();
    let result = relu(exact, 1.0);
    assert_eq!(result.verdict, Verdict::Passed, "{result:?}");
    assert!(result.at_kinks > 0, "{result:?}");
}

#[test]
fn one_wrong_element_of_many_is_found() {
    let values: Vec<f64> = (0..4000).map(|i| if i == 2718 { 3.0 } else { f64::from(i % 13) / 7.0 - 1.0 }).collect();
    let result = check(values, |g, r, x| {
        let three = splat(g, r, 3.0, x);
        let here = op(g, r, "equal", &[x, three]);
        let twice = op(g, r, "add", &[x, x]);
        (op(g, r, "mul", &[x, x]), op(g, r, "select", &[here, x, twice]))
    });
    assert_eq!((result.verdict, result.worst_at), (Verdict::Failed, Some(2718)));
}

#[test]
fn elements_that_are_not_finite_are_not_varied() {
    let result = check(vec![f64::NEG_INFINITY, 1.0], |g, r, x| {
        let e = op(g, r, "exp", &[x]);
        (e, e)
    });
    assert_eq!((result.verdict, result.checked), (Verdict::Passed, 1));
}
