//! A dead arm never puts NaN into a gradient (DESIGN §8, select): masks pass through the VJPs of elementwise operators,
//! at every level and in every engine.

use crate::programs::{assert_close, results, ways};
use crate::support::{directory, npy_f32, npy_f64};
use kina_ad::{CheckOptions, RuleOptions, Session};

/// A function body of `x`, a name for it, points, and the derivative at each.
struct Case {
    what: &'static str,
    body: &'static str,
    x: &'static [f64],
    gradient: &'static [f64],
}

const fn case(what: &'static str, body: &'static str, x: &'static [f64], gradient: &'static [f64]) -> Case {
    Case { what, body, x, gradient }
}

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

const CASES: &[Case] = &[
    case("log", "select(x > 0.0, x.log(), 0.0)", &[0.0, -1.0, 2.0, -INF], &[0.0, 0.0, 0.5, 0.0]),
    case("log in the other arm", "select(x <= 0.0, 0.0, x.log())", &[0.0, -1.0, 2.0, -INF], &[0.0, 0.0, 0.5, 0.0]),
    case("exp", "select(x < 1.0, x.exp(), x)", &[2000.0, INF, 0.0, -INF], &[1.0, 1.0, 1.0, 0.0]),
    case("division", "select(x != 0.0, 1.0 / x, x * 3.0)", &[0.0, -0.0, 2.0, -1.0], &[3.0, 3.0, -0.25, -1.0]),
    case("divisor and dividend", "select(x != 0.0, (x * x) / x, 0.0)", &[0.0, 2.0], &[0.0, 1.0]),
    case("power", "select(x > 0.0, pow(x, splat(0.5, like=x)), 0.0)", &[0.0, 4.0, -1.0], &[0.0, 0.25, 0.0]),
    case("exponent", "select(x > 0.0, pow(x - x, x), x)", &[0.0, -1.0, -2.0], &[1.0, 1.0, 1.0]),
    case("square root", "select(x > 0.0, x.sqrt(), 0.0)", &[0.0, 4.0, -1.0], &[0.0, 0.25, 0.0]),
    case("reciprocal root", "select(x > 0.0, x.rsqrt(), 0.0)", &[0.0, 4.0, -1.0], &[0.0, -0.0625, 0.0]),
    case("a chain", "select(x > 0.0, -(x.log().exp() / x).sqrt(), x)", &[0.0, -1.0, 2.0], &[1.0, 1.0, 0.0]),
    case(
        "a value used twice in one arm",
        "let l = x.log() in select(x > 0.0, l * l, 0.0)",
        &[0.0, 1.0, -1.0],
        &[0.0, 0.0, 0.0],
    ),
    case(
        "a value used in arms of two conditions",
        "let l = x.log() in select(x > 0.0, l, 0.0) + select(x > 1.0, l, 0.0) * 2.0",
        &[0.0, 0.5, 2.0, -1.0],
        &[0.0, 2.0, 1.5, 0.0],
    ),
    case(
        "conditions of either sign",
        "let l = x.log() in select(x <= 0.0, 0.0, l) + select(x > 1.0, l, 0.0)",
        &[0.0, 0.5, 2.0],
        &[0.0, 2.0, 1.0],
    ),
    case(
        "an arm within an arm",
        "select(x > 0.0, select(x < 3.0, (x.log() * 2.0) / (x - 3.0), 0.0), 0.0)",
        &[0.0, 3.0, 1.0],
        &[0.0, 0.0, -1.0],
    ),
    case("the same condition twice", "select(x > 0.0, select(x > 0.0, x.log(), x), 0.0)", &[0.0, 2.0], &[0.0, 0.5]),
    case("below relu", "x.log().relu()", &[0.0, 0.5, 2.0], &[0.0, 0.0, 0.5]),
    case("below a floor", "maximum(x.log(), splat(-100.0, like=x))", &[0.0, 2.0], &[0.0, 0.5]),
    case("below a ceiling", "minimum(1.0 / x, splat(8.0, like=x))", &[0.0, 0.5], &[0.0, -4.0]),
    case(
        "below a row's maximum",
        "x.log().max(axis=0, keepdims=true).broadcast([3])",
        &[0.0, 2.0, 1.0],
        &[0.0, 1.5, 0.0],
    ),
    case("NaN in the taken arm stays", "select(x < 0.0, 0.0, x.log() * x)", &[NAN, 1.0], &[NAN, 1.0]),
    case("an arm that both values meet in", "select(x > 0.0, x.log(), 0.0) + x.log()", &[1.0, 2.0], &[2.0, 1.0]),
];

/// `f` of one argument, as a program whose gradient is `g_x`.
fn program(dtype: &str, count: usize, body: &str) -> Vec<u8> {
    let ty = format!("tensor<{dtype}, [{count}], @host>");
    format!("let f = fn(x: {ty}) -> {ty} {{ {body} }} in let x = {ty} in handle f(x) with reverseMode").into_bytes()
}

#[test]
fn dead_arms_never_reach_a_gradient() {
    for case in CASES {
        // The literal of an arm takes the other arm's type.
        let count = case.x.len();
        let narrow: Vec<f32> = case.x.iter().map(|x| *x as f32).collect();
        for (dtype, array, tolerance) in
            [("F64", npy_f64(&[count], case.x), 1e-12), ("F32", npy_f32(&[count], &narrow), 1e-6)]
        {
            let place = directory(&[("p.kina", program(dtype, count, case.body)), ("x.npy", array)]);
            for way in ways() {
                let got = results(place.path(), &format!("{way} --input x=x.npy"));
                let what = format!("{} ({}) in {dtype}, {way}", case.what, case.body);
                assert_close(&what, &got["g_x"].values, case.gradient, tolerance);
            }
        }
    }
}

/// The gradient of a gradient is masked too, and so is one that a cotangent from outside starts.
#[test]
fn masks_hold_for_second_order_and_cotangents_from_outside() {
    let program = "let f = fn(x: tensor<F64, [3], @host>) -> tensor<F64, [3], @host> {
                     select(x > 0.0, x.log(), 0.0)
                   } in
                   let slope = fn(x: tensor<F64, [3], @host>) -> tensor<F64, [3], @host> {
                     let (y, g) = handle f(x) with reverseMode in g
                   } in
                   let x = tensor<F64, [3], @host> in
                   handle slope(x) with reverseMode";
    let place = directory(&[
        ("p.kina", program.as_bytes().to_vec()),
        ("x.npy", npy_f64(&[3], &[0.0, 2.0, -1.0])),
        ("g.npy", npy_f64(&[3], &[7.0, 8.0, INF])),
    ]);
    for way in ways() {
        let got = results(place.path(), &format!("{way} --input x=x.npy"));
        assert_close(&format!("slope, {way}"), &got["primal"].values, &[0.0, 0.5, 0.0], 1e-12);
        assert_close(&format!("curvature, {way}"), &got["g_x"].values, &[0.0, -0.25, 0.0], 1e-12);
        let got = results(place.path(), &format!("{way} --cotangent input --input x=x.npy --input cotangent=g.npy"));
        assert_close(&format!("curvature times a cotangent, {way}"), &got["g_x"].values, &[0.0, -2.0, 0.0], 1e-12);
    }
}

/// A rule file's own operator is masked like a built-in one, if its definition works point by point.
#[test]
fn masks_pass_through_operators_of_rule_files() {
    let rules = "/// x ln x.
                 def entropy(x) {
                   => x * log(x)
                 }

                 /// 1 + ln x.
                 vjp entropy {
                   y = entropy(x)
                   --------------
                   g_x = g_y * (1.0 + log(x))
                 }";
    let place = directory(&[
        ("p.kina", program("F64", 3, "select(x > 0.0, x.entropy(), 0.0)")),
        ("own.rules", rules.as_bytes().to_vec()),
        ("x.npy", npy_f64(&[3], &[0.0, 1.0, -1.0])),
    ]);
    for way in ways() {
        let got = results(place.path(), &format!("{way} --rules own.rules --input x=x.npy"));
        assert_close(&format!("own operator, {way}"), &got["g_x"].values, &[0.0, 1.0, 0.0], 1e-12);
    }
}

/// Each step adds the same number of values, however many masks lie around it.
#[test]
fn a_chain_of_masks_takes_work_in_proportion_to_its_length() {
    let values = |steps: usize| {
        let ty = "tensor<F32, [2], @host>";
        let chain: String =
            (0..steps).map(|i| format!("let v{} = select(v{i} > 0.0, v{i}.log(), v0) in ", i + 1)).collect();
        let text = format!(
            "let f = fn(v0: {ty}) -> {ty} {{ {chain} v{steps} }} in let x = {ty} in handle f(x) with reverseMode"
        );
        let mut session = Session::new(&RuleOptions::default()).expect("the rules load");
        let graph = session.check("chain.kina", &text, &CheckOptions::default()).expect("the chain is well-typed");
        session.differentiate(&graph).expect("it has a gradient").tape.len()
    };
    let [first, second, third] = [20, 40, 60].map(values);
    assert_eq!(second - first, third - second);
    assert!(second - first < 20 * 20, "{} values for 20 steps", second - first);
}
