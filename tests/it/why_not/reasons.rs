//! Every reason that there is for a rewrite, each with a program and rules of its own.

use std::collections::BTreeSet;

use kina_ad::Level;
use kina_ad::egraph::Budget;
use kina_ad::explore::why_not::{Options, Outcome};

use super::{ask, complaint, program};

/// What it is about, rules, shape and body of the program, the rule, how it is asked, what came of it, and what is said.
type Case<'a> = (&'a str, String, &'a str, &'a str, &'a str, Options<'a>, Outcome, &'a [&'a str]);

#[test]
fn every_reason_is_told() {
    let o2 = Options::default();
    let o1 = Options { level: Level::O1, ..o2 };
    let o0 = Options { level: Level::O0, ..o2 };
    let rule = |class: &str, body: &str| format!("/// d\nrewrite r [{class}] {{\n  {body}\n}}\n");
    let none = String::new();
    let few = |budget: Budget| Options { budget, ..o2 };
    let full = Budget::default();
    let cases: Vec<Case<'_>> = vec![
        (
            "another form",
            none.clone(),
            "[3]",
            "x.exp()",
            "exp_of_log_softmax",
            o2,
            Outcome::Pattern,
            &["expects log_softmax(x, axis) as operand x of exp, found input x"],
        ),
        (
            "in either order",
            rule("real", "a * relu(b) => relu(b) * a"),
            "[3]",
            "x * y",
            "r",
            o2,
            Outcome::Pattern,
            &[
                "expects relu(b) as operand b of mul, found input y",
                "expects relu(b) as operand a of mul, found input x",
            ],
        ),
        (
            "deep",
            rule("real", "exp(-relu(b)) => exp(relu(b))"),
            "[3]",
            "(-(x + y)).exp()",
            "r",
            o2,
            Outcome::Pattern,
            &["expects relu(b) as operand x of neg, found add(x, y)"],
        ),
        (
            "a number",
            none.clone(),
            "[3]",
            "x * 2.0",
            "mul_by_one",
            o2,
            Outcome::Attribute,
            &["expects value=1.0 of splat, found value=2.0"],
        ),
        (
            "a fixed attribute",
            rule("real", "max(x, axis, keepdims=true) => max(x, axis, keepdims=true) + 0.0"),
            "[3]",
            "x.max(axis=0).broadcast([3])",
            "r",
            o2,
            Outcome::Attribute,
            &["expects keepdims=true of max, found keepdims=false"],
        ),
        (
            "a computed attribute",
            rule("exact", "squeeze(x, rank(x) - 1) => reshape(x, [dim(x, i) for i in range(rank(x) - 1)])"),
            "[1, 3]",
            "x.squeeze(axis=0)",
            "r",
            o2,
            Outcome::Attribute,
            &["expects axis=1, which is rank(x) - 1 of squeeze, found axis=0"],
        ),
        (
            "another number of operands",
            none.clone(),
            "[3]",
            "concat(x, y, axis=0)",
            "concat_of_one",
            o2,
            Outcome::Pattern,
            &["expects concat of 1, found concat of 2"],
        ),
        (
            "two values",
            rule("real", "a / a => splat(1.0, type(a))"),
            "[3]",
            "x / y",
            "r",
            o2,
            Outcome::Name,
            &["expects a again (x) as operand b of div, found y"],
        ),
        (
            "two attributes",
            none.clone(),
            "[3, 4]",
            "x.reverse(axis=0).reverse(axis=1)",
            "reverse_of_reverse",
            o2,
            Outcome::Name,
            &["expects axis again ([1]) as attribute axis of reverse, found [0]"],
        ),
        (
            "a type",
            rule("exact", "abs(abs(x)) => abs(x)\n  where dtype(x) == F64"),
            "[3]",
            "x.abs().abs()",
            "r",
            o2,
            Outcome::Type,
            &["where dtype(x) == F64 (", "r.rules:4): dtype(x) = F32"],
        ),
        (
            "where",
            rule("exact", "reverse(x, axis) => x\n  where len(axis) == 1 && dim(x, axis[0]) == 1"),
            "[3, 4]",
            "x.reverse(axis=0)",
            "r",
            o2,
            Outcome::Where,
            &["where dim(x, axis[0]) == 1 (", "dim(x, axis[0]) = 3, axis[0] = 0, axis = [0]"],
        ),
        (
            "when",
            rule("exact", "abs(-x) => abs(x)\n  when rank(x) > 4"),
            "[3]",
            "(-x).abs()",
            "r",
            o2,
            Outcome::When,
            &["when rank(x) > 4 (", "rank(x) = 1"],
        ),
        (
            "nothing known",
            none.clone(),
            "[3]",
            "x.abs()",
            "abs_of_nonnegative",
            o2,
            Outcome::Domain,
            &["domain x >= 0.0 (rules/algebra.rules:", "nothing is known of the elements of x"],
        ),
        (
            "a range",
            rule("real", "relu(x) => x + 0.0\n  domain x > 1.0"),
            "[3]",
            "x.sigmoid().relu()",
            "r",
            o2,
            Outcome::Domain,
            &["domain x > 1.0 (", "are known to lie in [0, 1]"],
        ),
        (
            "NaN",
            rule("real", "x * 0.0 => splat(0.0, type(x))\n  domain x >= 0.0 && x <= 1.0"),
            "[3]",
            "x.sigmoid() * 0.0",
            "r",
            o2,
            Outcome::Domain,
            &["known to lie in [0, 1], and one may be NaN"],
        ),
        (
            "-O1",
            none.clone(),
            "[3]",
            "-(x - y)",
            "neg_of_sub",
            o1,
            Outcome::Level,
            &["it would make sub(y, x)", "-O1 uses no `[real]` rewrites, -O2 does"],
        ),
        (
            "-O0",
            none.clone(),
            "[3]",
            "-(-x)",
            "neg_of_neg",
            o0,
            Outcome::Level,
            &["it would make `a` itself", "-O0 uses no `[exact]` rewrites, -O1 does"],
        ),
        (
            "applications",
            none.clone(),
            "[3]",
            "-(x - y)",
            "neg_of_sub",
            few(Budget { applications: 0, ..full }),
            Outcome::Budget,
            &["ran out of its budget of applications"],
        ),
        (
            "e-nodes",
            none.clone(),
            "[3]",
            "(x + 0.0) * 1.0 - (-y)",
            "sub_of_neg",
            few(Budget { nodes: 0, nodes_per_node: 0, ..full }),
            Outcome::Budget,
            &["ran out of its budget of e-nodes"],
        ),
        (
            "steps",
            none.clone(),
            "[3]",
            "-(x - y)",
            "neg_of_sub",
            few(Budget { steps: 1, steps_per_node: 0, ..full }),
            Outcome::Budget,
            &["ran out of its budget of steps"],
        ),
        (
            "iterations",
            none.clone(),
            "[3]",
            "-(x - (-y))",
            "neg_of_sub",
            few(Budget { iterations: 0, ..full }),
            Outcome::Budget,
            &["ran out of its budget of iterations"],
        ),
        (
            "constants",
            rule("real", "splat(2.0, t) => splat(2.5)"),
            "[3]",
            "x * 2.0",
            "r",
            o2,
            Outcome::Constants,
            &["2.0 and 2.5 are never made one value"],
        ),
        (
            "known already",
            rule("exact", "tanh(x) * 1.0 => tanh(x)"),
            "[3]",
            "x.tanh() * 1.0",
            "r",
            o2,
            Outcome::AlreadyEqual,
            &["it is tanh(x) already"],
        ),
        (
            "a name as right side",
            none.clone(),
            "[3]",
            "-(-(x * y))",
            "neg_of_neg",
            o2,
            Outcome::Chosen,
            &["made    `a` itself"],
        ),
        ("used", none.clone(), "[3]", "x - (-y)", "sub_of_neg", o2, Outcome::Chosen, &["made    add(x, y)"]),
        (
            "too expensive",
            rule("real", "tanh(x) => log(exp(tanh(x)))"),
            "[3]",
            "x.tanh() * y",
            "r",
            o2,
            Outcome::Cost,
            &["made    log(", "chosen  tanh(x)  // p.kina:4", "cannot be computed without the value itself"],
        ),
        (
            "more expensive",
            rule("real", "x * y => exp(log(x) + log(y))"),
            "[3]",
            "x.sin() * y.sin()",
            "r",
            o2,
            Outcome::Cost,
            &["made    exp(", "chosen  mul(sin_", " more)"],
        ),
        (
            "of no use",
            none.clone(),
            "[3]",
            "-(-(x - y))",
            "neg_of_sub",
            o2,
            Outcome::NotReached,
            &["nothing needs it: ", " is computed as "],
        ),
        (
            "commutes",
            none.clone(),
            "[3]",
            "x * y",
            "mul_commutes",
            o2,
            Outcome::Commutes,
            &["it only says that `mul` commutes"],
        ),
    ];
    let mut met = BTreeSet::new();
    let mut complaints = Vec::new();
    for (what, rules, shape, body, rule, options, outcome, words) in cases {
        let answer = ask(&rules, &program(shape, body), rule, &options);
        let text = answer.text();
        let [one] = &answer.rules[..] else { panic!("{what}: {text}") };
        assert_eq!(one.places.len(), one.count(), "{what}");
        complaints.extend(complaint(what, one.outcomes.contains_key(&outcome).then_some(outcome), &text, words));
        met.insert(outcome);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert_eq!(met.len(), 15, "{met:?}");
}
