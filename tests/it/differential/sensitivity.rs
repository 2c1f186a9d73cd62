//! The comparisons find what they are for: rules that are wrong, most of them only at some values, are found out.

use proptest::test_runner::Config;

use super::case::Case;
use super::compare::{Disagreement, INTERPRETED, Program};
use super::{config, counterexample, session};
use crate::support::directory;
use kina_ad::Session;

type Property = fn(&mut Session, &Case) -> Result<(), Disagreement>;

/// Do generated programs show that a rule is wrong?
#[track_caller]
fn found(rule: &str, smooth: bool, property: Property) {
    let place = directory(&[("wrong.rules", format!("/// Wrong.\n{rule}"))]);
    let session = session(&[place.path().join("wrong.rules")]);
    // The smallest program is of no interest here.
    let config = Config { max_shrink_iters: 0, ..config(600, 4) };
    assert!(counterexample(config, session, smooth, property).is_some(), "not found: {rule}");
}

#[test]
fn wrong_rewrites_are_found() {
    let property: Property = |session, case| Program::new(session, &case.to_string())?.agree(INTERPRETED).map(|_| ());
    let wrong = [
        // NaN and infinities.
        "rewrite sub_itself [real] {\n  a - a => 0.0\n}",
        "rewrite mul_by_zero [real] {\n  a * 0.0 => 0.0\n}",
        "rewrite log_of_exp [real] {\n  log_softmax(x, axis) => x - broadcast(log(sum(exp(x), axis, keepdims=true)), shape(x))\n}",
        // The sign of a zero.
        "rewrite add_zero_exactly [exact] {\n  a + 0.0 => a\n}",
        "rewrite neg_of_sub_exactly [exact] {\n  -(a - b) => b - a\n}",
        // The order of elements.
        "rewrite reshape_of_transpose [exact] {\n  reshape(transpose(x, p), s) => reshape(x, s)\n}",
        // The last bits.
        "rewrite div_by_splat [real] {\n  a / splat(v, t) => a * splat(1.00001 / v)\n  where is_float(t)\n}",
    ];
    for rule in wrong {
        found(rule, false, property);
    }
}

#[test]
fn wrong_derivatives_are_found() {
    let property: Property = |session, case| Program::new(session, &case.to_string())?.gradients().map(|_| ());
    let wrong = [
        "override vjp tanh {\n  y = tanh(x)\n  ---\n  g_x = g_y * (1.0 - y)\n}",
        "override vjp div {\n  y = div(a, b)\n  ---\n  g_a = g_y / b\n  g_b = (g_y * y) / b\n}",
        "override vjp softmax {\n  y = softmax(x, axis)\n  ---\n  g_x = y * g_y\n}",
        "override vjp select {\n  y = select(c, a, b)\n  ---\n  g_c = none\n  g_a = g_y\n  g_b = select(c, 0.0, g_y)\n}",
    ];
    for rule in wrong {
        found(rule, true, property);
    }
}
