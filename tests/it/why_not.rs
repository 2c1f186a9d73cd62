//! `kina-ad why-not`: every reason with a program and rules of its own, costs, places, and all rules on many programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kina_ad::egraph::record::Cause;
use kina_ad::egraph::{Budget, saturate};
use kina_ad::explore::why_not::{Answer, Detail, Instead, Options, Outcome, why_not};
use kina_ad::ir::Graph;
use kina_ad::rules::listing::entries;
use kina_ad::{CheckOptions, Level, Profile, RuleOptions, Session};

use crate::differential::{config, counterexample, session as differential_session};
use crate::support::{directory, kina};

const NLL: &str = "examples/storylm0_nll.kina";

/// A session with a file of rules beside the default ones.
fn session(rules: &str) -> Session {
    let files = directory(&[("r.rules", rules)]);
    let options = RuleOptions { files: vec![files.path().join("r.rules")], ..RuleOptions::default() };
    Session::new(&options).unwrap_or_else(|refusal| panic!("{refusal}"))
}

#[track_caller]
fn checked(session: &mut Session, text: &str) -> Graph {
    session.check("p.kina", text, &CheckOptions::default()).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// A program that binds `x`, `y` and `z` of this shape, and the gradient of the sum of `body`.
fn program(shape: &str, body: &str) -> String {
    let ty = format!("tensor<F32, {shape}, @host>");
    format!(
        "let f = fn(x: {ty}, y: {ty}) {{\n  let z = tensor<F32, {shape}, @host> in\n  let r =\n{body} in\n  r.sum()\n}} in\n\
         let x = {ty} in\nlet y = {ty} in\nhandle f(x, y) with reverseMode"
    )
}

/// What is answered, with all places.
#[track_caller]
fn ask(rules: &str, text: &str, rule: &str, options: &Options<'_>) -> Answer {
    let mut session = session(rules);
    let graph = checked(&mut session, text);
    let options = Options { shown: usize::MAX, ..*options };
    why_not(&session, &graph, rule, &options).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// Each reason that there is for a rewrite.
#[test]
fn every_reason_is_told() {
    let o2 = Options::default();
    let o1 = Options { level: Level::O1, ..o2 };
    let o0 = Options { level: Level::O0, ..o2 };
    let rule = |class: &str, body: &str| format!("/// d\nrewrite r [{class}] {{\n  {body}\n}}\n");
    let none = String::new();
    let few = |budget: Budget| Options { budget, ..o2 };
    let full = Budget::default();
    let cases: Vec<(&str, String, &str, &str, &str, Options<'_>, Outcome, &[&str])> = vec![
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
            &["expects relu(b) as operand a of neg, found add(x, y)"],
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
            rule("exact", "reverse(x, rank(x) - 1) => x"),
            "[3, 4]",
            "x.reverse(axis=0)",
            "r",
            o2,
            Outcome::Attribute,
            &["expects axis=1, which is rank(x) - 1 of reverse, found axis=0"],
        ),
        (
            "another number of operands",
            none.clone(),
            "[3]",
            "concat(x, y, axis=0).sum() * x",
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
            &["expects a again, which is x, as operand b of div, found y"],
        ),
        (
            "two attributes",
            none.clone(),
            "[3, 4]",
            "x.reverse(axis=0).reverse(axis=1)",
            "reverse_of_reverse",
            o2,
            Outcome::Name,
            &["expects axis again, which is 1, as attribute axis of reverse, found 0"],
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
            rule("exact", "reverse(x, axis) => x\n  where rank(x) == 2 && dim(x, axis) == 1"),
            "[3, 4]",
            "x.reverse(axis=0)",
            "r",
            o2,
            Outcome::Where,
            &["where dim(x, axis) == 1 (", "dim(x, axis) = 3, axis = 0"],
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
            &["it would make x", "-O0 uses no `[exact]` rewrites, -O1 does"],
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
            &["made    mul_"],
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
    for (what, rules, shape, body, rule, options, outcome, words) in cases {
        let answer = ask(&rules, &program(shape, body), rule, &options);
        let text = answer.text();
        let [one] = &answer.rules[..] else { panic!("{what}: {text}") };
        assert!(one.outcomes.contains_key(&outcome), "{what}: {outcome:?} is not among\n{text}");
        for word in words {
            assert!(text.contains(word), "{what}: `{word}` is not in\n{text}");
        }
        assert_eq!(one.places.len(), one.count(), "{what}");
        met.insert(outcome);
    }
    assert!(met.len() >= 16, "{met:?}");
}

/// And for VJPs.
#[test]
fn every_reason_of_a_vjp_is_told() {
    let o2 = Options::default();
    let o1 = Options { level: Level::O1, ..o2 };
    let o0 = Options { level: Level::O0, ..o2 };
    let other = |lines: &str, conclusion: &str| {
        format!("/// d\nvjp tanh as other {{\n  y = tanh(x)\n  ---\n{lines}  g_x = {conclusion}\n}}\n")
    };
    let dear = "g_y * exp(log(1.0 - y * y))";
    let cheap = "g_y * (1.0 - y * y)";
    let keep = "/// d\nvjp max as kept {\n  y = max(x, axis, keepdims=true)\n  ---\n  \
                g_x = broadcast(g_y, shape(x)) * cast(x == broadcast(y, shape(x)), dtype(x))\n}\n";
    let text = |body: &str| program("[3]", body);
    let nothing = String::new();
    let cases: Vec<(&str, String, String, &str, Options<'_>, Outcome, &[&str])> = vec![
        (
            "used",
            nothing.clone(),
            text("x.tanh()"),
            "vjp tanh",
            o2,
            Outcome::Chosen,
            &["operand x  // p.kina:4", "made    "],
        ),
        ("used at -O0", nothing.clone(), text("x.tanh()"), "tanh", o0, Outcome::Chosen, &["operand x"]),
        ("no call", nothing.clone(), text("x"), "vjp tanh", o2, Outcome::Chosen, &["has a call of `tanh`"]),
        (
            "inactive",
            nothing.clone(),
            text("z.tanh() * x"),
            "vjp tanh",
            o2,
            Outcome::Inactive,
            &["the operand depends on no parameter of a handler"],
        ),
        (
            "no handler",
            nothing.clone(),
            "let x = tensor<F32, [3], @host> in x.tanh()".into(),
            "vjp tanh",
            o2,
            Outcome::NotDifferentiated,
            &["the program has no handler"],
        ),
        (
            "outside",
            nothing.clone(),
            "let f = fn(x: tensor<F32, [], @host>) { x * x } in let x = tensor<F32, [], @host> in\n\
             let (p, g) = handle f(x) with reverseMode in (p, g.tanh())"
                .into(),
            "vjp tanh",
            o2,
            Outcome::NotDifferentiated,
            &["no handler differentiates what it stands in"],
        ),
        (
            "integers",
            nothing.clone(),
            std::fs::read_to_string(NLL).unwrap(),
            "vjp take_along_axis",
            o2,
            Outcome::Inactive,
            &["operand indices", "which carries no cotangent"],
        ),
        (
            "none",
            nothing.clone(),
            text("stop_gradient(x) * y"),
            "vjp stop_gradient",
            o2,
            Outcome::NoConclusion,
            &["the rule concludes `none` for x"],
        ),
        (
            "no cotangent",
            nothing.clone(),
            text("stop_gradient(x.tanh()) * y"),
            "vjp tanh",
            o2,
            Outcome::NoCotangent,
            &["nothing that is differentiated depends on the value"],
        ),
        (
            "alternative -O1",
            other("", cheap),
            text("x.tanh()"),
            "vjp tanh as other",
            o1,
            Outcome::Level,
            &["-O2 uses it"],
        ),
        (
            "alternative where",
            other("  where rank(x) == 7\n", cheap),
            text("x.tanh()"),
            "vjp tanh as other",
            o2,
            Outcome::Where,
            &["where rank(x) == 7 (", "rank(x) = 1"],
        ),
        (
            "alternative type",
            other("  where dtype(x) == F64\n", cheap),
            text("x.tanh()"),
            "vjp tanh as other",
            o2,
            Outcome::Type,
            &["dtype(x) = F32"],
        ),
        (
            "alternative domain",
            other("  domain x >= 0.0\n", cheap),
            text("x.tanh()"),
            "vjp tanh as other",
            o2,
            Outcome::Domain,
            &["domain x >= 0.0 (", "nothing is known of the elements of x"],
        ),
        (
            "alternative attribute",
            keep.into(),
            text("x.max(axis=0).broadcast([3])"),
            "vjp max as kept",
            o2,
            Outcome::Attribute,
            &["expects keepdims=true of max, found keepdims=false"],
        ),
        (
            "alternative cost",
            other("", dear),
            text("x.tanh()"),
            "vjp tanh as other",
            o2,
            Outcome::Cost,
            &["made    mul(", "chosen  ", " more)"],
        ),
    ];
    for (what, rules, text, rule, options, outcome, words) in cases {
        let answer = ask(&rules, &text, rule, &options);
        let said = answer.text();
        let found = answer.rules.iter().any(|r| r.outcomes.contains_key(&outcome));
        assert!(found || what == "no call", "{what}: {outcome:?} is not among\n{said}");
        for word in words {
            assert!(said.contains(word), "{what}: `{word}` is not in\n{said}");
        }
    }
    // By its operator: the primary one and its alternatives.
    let answer = ask(&other("", cheap), &text("x.tanh()"), "tanh", &o2);
    let names: Vec<&str> = answer.rules.iter().map(|r| &*r.rule.name).collect();
    assert_eq!(names, ["vjp tanh", "vjp tanh as other"]);
    // What an override replaces is named, and is itself a name for what replaced it.
    let rules = "/// d\noverride vjp tanh {\n  y = tanh(x)\n  ---\n  g_x = g_y - g_y * y * y\n}\n";
    let default = Session::new(&RuleOptions::default()).unwrap();
    let all = entries(&default.rules);
    let place = &all.iter().find(|e| &*e.rule.name == "vjp tanh").unwrap().rule.location;
    for name in ["vjp tanh", &**place] {
        let said = ask(rules, &text("x.tanh()"), name, &o2).text();
        assert!(said.contains(&format!("it says `override`: the rule at {place} is not in effect")), "{said}");
        assert!(said.contains("fired, "), "{said}");
    }
}

#[test]
fn definitions_are_expanded_before_or_after() {
    let rules = "/// Square.\ndef sq(x) {\n  => x * x\n}\n/// Twice.\ndef twice(x) {\n  => x + x\n}\n/// d\n\
                 vjp twice {\n  y = twice(x)\n  ---\n  g_x = g_y + g_y\n}\n";
    let text = program("[3]", "    x.sq().sq() + twice(y)");
    let before = ask(rules, &text, "sq", &Options::default());
    assert_eq!(before.rules[0].outcomes, BTreeMap::from([(Outcome::Expanded, 2)]), "{}", before.text());
    assert!(before.text().contains("2 calls by 0 operators inside"), "{}", before.text());
    let unused = ask(rules, &program("[3]", "x"), "sq", &Options::default()).text();
    assert!(unused.contains("no value that was asked about is a call of `sq`"), "{unused}");
    for (level, outcome) in [(Level::O2, Outcome::Cost), (Level::O0, Outcome::Expanded)] {
        let after = ask(rules, &text, "def twice", &Options { level, ..Options::default() });
        let said = after.text();
        let fired = after.rules[0].outcomes.keys().all(|o| o.fired());
        assert!(after.rules[0].outcomes.contains_key(&outcome) || (level == Level::O2 && fired), "{said}");
        assert!(said.contains("differentiated whole and expanded afterwards"), "{said}");
    }
}

/// The costs are those of `grad`, and what a rule lost by is a cost that it would have.
#[test]
fn costs_are_those_of_grad() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let grad: serde_json::Value = serde_json::from_str(&kina(root, &format!("grad {NLL} --json")).ok()).unwrap();
    let said: serde_json::Value =
        serde_json::from_str(&kina(root, &format!("why-not {NLL} sub_of_neg --json")).ok()).unwrap();
    assert!(grad["cost"].is_u64() && said["cost"] == grad["cost"], "{said:#}");
    let places = said["rules"][0]["places"].as_array().unwrap();
    let lost = places.iter().find(|p| p["outcome"] == "cost").expect("a place that lost on cost");
    assert_eq!(lost["value"], "g_logits");
    assert_eq!(lost["cost"], grad["cost"]);
    assert!(lost["cost_instead"]["cost"].as_u64() > grad["cost"].as_u64(), "{lost:#}");

    // A program that has no other form costs what the lost form is said to cost.
    let rules = |extra: &str| format!("/// d\nrewrite r [real] {{\n  x * y => exp(log(x) + log(y))\n}}\n{extra}");
    let text = "let x = tensor<F32, [3], @host> in let y = tensor<F32, [3], @host> in let r = x * y in r";
    let answer = ask(&rules(""), text, "r", &Options::default());
    let [place] = &answer.rules[0].places[..] else { panic!("{}", answer.text()) };
    let Detail::Fired(fired) = &place.detail else { panic!("{}", answer.text()) };
    let Some(Instead::Cost { cost, unused: false, complete: true }) = fired.restricted else { panic!("{fired:?}") };
    let mut session = session("");
    let graph = checked(
        &mut session,
        "let x = tensor<F32, [3], @host> in let y = tensor<F32, [3], @host> in (x.log() + y.log()).exp()",
    );
    let mut program = session.differentiate(&graph).unwrap();
    assert_eq!(session.optimise(&mut program, Level::O2).unwrap().cost, Some(cost));
}

#[test]
fn one_value_can_be_asked_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ask = |rule: &str, at: &str| kina(root, &format!("why-not {NLL} {rule} --at {at}"));
    // A name of the program, of the result, of nothing but the e-graph, of a result, and a line.
    for (rule, at, word) in [
        ("exp_of_log_softmax", "log_probs", "log_probs = log_softmax(logits, axis=2)"),
        ("exp_of_log_softmax", "exp_105e", "exp_105e = exp(sub_1e0b)"),
        ("exp_of_log_softmax", "exp_ed293a80", "made    softmax(logits, axis=2)"),
        ("exp_of_log_softmax", "exp_ed29", "made    softmax(logits, axis=2)"),
        ("sub_of_neg", "g_logits", "fired, lost on cost"),
        ("neg_of_sub", "primal", "made    sub("),
        ("take_of_sub", "examples/storylm0_nll.kina:9", "picked = take_along_axis("),
        ("take_of_sub", "storylm0_nll.kina:9", "1 place: "),
        ("vjp neg", "loss", "operand a"),
        ("vjp neg", "picked", "this value is no call of `neg`"),
    ] {
        let said = ask(rule, at).ok();
        assert!(said.contains(word), "{rule} at {at}: {said}");
        assert!(!said.contains(" places: "), "{rule} at {at}: {said}");
    }
    let said = ask("exp_of_log_softmax", "picked").ok();
    assert!(said.contains("expects exp(log_softmax(x, axis)), found"), "{said}");
    for (rule, at, words) in [
        ("exp_of_log_softmax", "log_prob", &["E0940", "did you mean `log_probs`?"][..]),
        ("exp_of_log_softmax", "exp_0000", &["E0940", "`kina-ad grad`"]),
        ("exp_of_log_softmax", "storylm0_nll.kina:3", &["E0941", "line 3"]),
        ("exp_of_log_softmax", "other.kina:9", &["E0941"]),
        ("exp_of_log_sofmax", "log_probs", &["E0402", "did you mean `exp_of_log_softmax`?"]),
        ("vjp log_sofmax", "log_probs", &["E0402", "did you mean `vjp log_softmax`?"]),
    ] {
        ask(rule, at).refusal(1, words).unwrap_or_else(|complaint| panic!("{rule} at {at}: {complaint}"));
    }
}

#[test]
fn a_rule_that_is_not_loaded_is_told_from_one_that_is_not_there() {
    let text = std::fs::read_to_string(NLL).unwrap();
    let options = RuleOptions { profile: Profile::Phase1, ..RuleOptions::default() };
    let mut session = Session::new(&options).unwrap();
    let graph = checked(&mut session, &text);
    let answer = why_not(&session, &graph, "vjp exp", &Options::default()).unwrap();
    assert!(answer.text().contains("it is not loaded: the default profile has it"), "{}", answer.text());
    assert!(answer.rules[0].places.is_empty() && answer.json()["rules"][0]["count"] == 0);
    let refusal = why_not(&session, &graph, "vjp expo", &Options::default()).unwrap_err().to_string();
    assert!(refusal.contains("E0402") && refusal.contains("did you mean `vjp exp`?"), "{refusal}");
}

/// `<=>` is two rules, of which the first bears the name.
#[test]
fn both_directions_of_a_rule_are_answered() {
    let rules = "/// d\nrewrite both [exact] {\n  abs(-x) <=> abs(x)\n}\n";
    let text = program("[3]", "    (-x).abs()");
    let names = |rule: &str| -> Vec<String> {
        let answer = ask(rules, &text, rule, &Options::default());
        answer.rules.iter().map(|r| r.rule.name.to_string()).collect()
    };
    assert_eq!(names("both"), ["both", "both_reversed"]);
    assert_eq!(names("both_reversed"), ["both_reversed"]);
}

#[test]
fn few_places_are_told_of_each_outcome_unless_all_are_asked_for() {
    let body: Vec<String> = (1..20).map(|i| format!("    (x * {i}.5).exp()")).collect();
    let files = directory(&[("p.kina", program("[3]", &body.join(" +\n")))]);
    let said = kina(files.path(), "why-not p.kina exp_of_log_softmax").ok();
    assert!(said.contains("19 places: 19 another form") && said.contains("and 14 more: `--all` shows them"), "{said}");
    assert_eq!(said.matches("expects log_softmax(x, axis)").count(), 5, "{said}");
    let all = kina(files.path(), "why-not p.kina exp_of_log_softmax --all").ok();
    assert!(!all.contains("--all") && all.matches("expects log_softmax(x, axis)").count() == 19, "{all}");
    let json: serde_json::Value =
        serde_json::from_str(&kina(files.path(), "why-not p.kina exp_of_log_softmax --json").ok()).unwrap();
    assert_eq!(
        (&json["version"], &json["level"], &json["saturation"]),
        (&1.into(), &"-O2".into(), &"saturated".into())
    );
    let rule = &json["rules"][0];
    assert_eq!((&rule["kind"], &rule["count"], &rule["outcomes"]["pattern"]), (&"real".into(), &19.into(), &19.into()));
    let place = &rule["places"][0];
    assert_eq!((&place["in_program"], &place["in_result"]), (&true.into(), &true.into()));
    assert_eq!(place["mismatches"][0]["wanted"], "log_softmax(x, axis)");
    assert_eq!(place["mismatches"][0]["place"], "operand x of exp");
    assert!(place["mismatches"][0]["found"][0].as_str().unwrap().starts_with("mul(x, splat_"), "{place:#}");
    assert_eq!(rule["places"].as_array().unwrap().len(), 5);
}

/// Left sides that match in more ways than anybody can look at end, and say so.
#[test]
fn hostile_left_sides_end() {
    let rules = "/// d\nrewrite assoc [real] {\n  (a + b) + c => a + (b + c)\n}\n/// d\nrewrite back [real] {\n  a + (b + c) => (a + b) + c\n}\n\
        /// d\nrewrite wide [real] {\n  (((a + b) + (c + d)) + ((e + f) + (g + h))) * p => p * a\n  where rank(p) == 9\n}\n";
    let sum: Vec<String> = (0..12).map(|i| format!("x * {i}.25")).collect();
    let text = program("[3]", &format!("    ({}) * y", sum.join(" + ")));
    let budget = Budget { nodes: 3_000, nodes_per_node: 0, ..Budget::default() };
    let started = std::time::Instant::now();
    let answer = ask(rules, &text, "wide", &Options { budget, ..Options::default() });
    let text = answer.text();
    assert!(answer.rules[0].outcomes.contains_key(&Outcome::Fuel), "{text}");
    assert!(text.contains("matches in more ways than there are steps to look at"), "{text}");
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

/// Asks about every rule. The classes that an answer calls fired are those of the record.
fn all_rules(session: &Session, graph: &Graph) -> usize {
    let mut program = session.differentiate(graph).unwrap();
    program.keep_record();
    saturate(&mut program, &session.rules, Level::O2, Budget::default()).unwrap();
    let mut applied: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for application in &program.record().unwrap().applications {
        let Some(rule) = application.cause.rule() else { continue };
        let kind = if matches!(application.cause, Cause::Definition { .. }) { "def " } else { "" };
        let class = usize::from(program.find(application.class));
        applied.entry(format!("{kind}{}", rule.name)).or_default().insert(class);
    }
    let mut fired = 0;
    let options = Options { shown: usize::MAX, ..Options::default() };
    for entry in entries(&session.rules) {
        let name = if entry.kind == "def" { format!("def {}", entry.rule.name) } else { entry.rule.name.to_string() };
        let answer = why_not(session, graph, &name, &options).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        assert!(!answer.text().is_empty() && !answer.rules.is_empty());
        assert_eq!(answer.json()["rules"].as_array().unwrap().len(), answer.rules.len());
        for rule in &answer.rules {
            assert_eq!(rule.count(), rule.places.len(), "{name}");
            if rule.kind == "vjp" {
                continue;
            }
            let said: BTreeSet<usize> = rule.places.iter().filter(|p| p.outcome.fired()).map(|p| p.class).collect();
            let key = if rule.kind == "def" { name.clone() } else { rule.rule.name.to_string() };
            assert_eq!(said, applied.get(&key).cloned().unwrap_or_default(), "{key}\n{}", answer.text());
            // The saturation ended by itself, so that no match was left over for want of a budget.
            assert!(!rule.outcomes.contains_key(&Outcome::Budget), "{}", answer.text());
            fired += said.len();
        }
    }
    fired
}

#[test]
fn every_rule_has_an_answer_on_the_examples() {
    for name in ["storylm0_nll", "storylm0_nll_mean", "mlp"] {
        let mut session = Session::new(&RuleOptions::default()).unwrap();
        let text = std::fs::read_to_string(format!("examples/{name}.kina")).unwrap();
        let graph = checked(&mut session, &text);
        let fired = all_rules(&session, &graph);
        assert!(fired > 3, "{name}: {fired}");
    }
}

#[test]
fn every_rule_has_an_answer_on_generated_programs() {
    let fired = std::cell::Cell::new(0);
    let found = counterexample(config(12, 11), differential_session(&[]), false, |session, case| {
        let graph = checked(session, &case.to_string());
        fired.set(fired.get() + all_rules(session, &graph));
        Ok(())
    });
    assert!(found.is_none(), "{}", found.map(|(case, reason)| format!("{reason}\n{case}")).unwrap_or_default());
    assert!(fired.get() > 30, "{}", fired.get());
}
