//! `kina-ad diff`: programs and rule sets compared by meaning.

use std::collections::BTreeSet;
use std::path::Path;

use kina_ad::review::meaning::{commutative, compare};
use kina_ad::review::record::{Arg, Call, Maker, Named, Record, Value};
use kina_ad::{RuleOptions, Session};

use crate::support::{Outcome, directory, kina};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

const WAVE: &str = "let f = fn(x: tensor<F32, [4], @host>, y: tensor<F32, [4], @host>) -> tensor<F32, [], @host> {
  let a = x.tanh() in
  let b = y.exp() in
  let c = a * b in
  c.sum()
} in
let x = tensor<F32, [4], @host> in
let y = tensor<F32, [4], @host> in
handle f(x, y) with reverseMode
";

/// The same with other names, lines in another order, and comments.
const RENAMED: &str = "// Nothing is as it was called.
let wave = fn(x: tensor<F32, [4], @host>, y: tensor<F32, [4], @host>) -> tensor<F32, [], @host> {
  let grown = y.exp() in

  let bent = x.tanh() in  // before it was the first
  let product = bent * grown in
  let total = product.sum() in
  total
} in
let y = tensor<F32, [4], @host> in
let x = tensor<F32, [4], @host> in
handle wave(x, y) with reverseMode
";

/// Another form of what tanh concludes; it costs more.
const TANH: &str = "/// From the value itself, twice.
override vjp tanh {
  y = tanh(x)
  -----------
  g_x = g_y * (1.0 - tanh(x) * y) * 1.0
}
";

const WRONG_EXP: &str = "/// The sign is wrong.
override vjp exp {
  y = exp(x)
  ----------
  g_x = -(g_y * y)
}
";

/// Edits that have no part in `WAVE`.
const UNUSED: &str = "/// The same in other words.
override vjp cos {
  y = cos(x)
  ----------
  g_x = -(sin(x) * g_y)
}

/// Over the reals.
rewrite circle [real] {
  sin(x) * sin(x) + cos(x) * cos(x) => splat(1.0, type(x))
}
";

/// Stdout of a comparison that finds a difference.
#[track_caller]
fn different(outcome: Outcome) -> String {
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stdout.ends_with("\ndifferent\n") && !outcome.stderr.contains("error["), "{outcome:?}");
    outcome.stdout
}

#[track_caller]
fn the_same(outcome: Outcome) -> String {
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("\ngraph: no difference\n"), "{}", outcome.stdout);
    assert!(outcome.stdout.ends_with("\nno difference\n"), "{}", outcome.stdout);
    outcome.stdout
}

#[test]
fn names_order_and_form_are_no_difference() {
    let place = directory(&[("a.kina", WAVE), ("b.kina", RENAMED)]);
    let sexpr = kina(place.path(), "emit a.kina --stage program --format sexpr").ok();
    std::fs::write(place.path().join("c.kina"), sexpr).unwrap();
    for level in ["-O0", "-O1", "-O2"] {
        for other in ["a.kina", "b.kina", "c.kina"] {
            let said = the_same(kina(place.path(), &format!("diff a.kina {other} {level}")));
            assert!(said.contains("lines of the programs that make the difference: none\n"), "{said}");
            assert!(said.contains("  g_x: worst relative difference <= 1e-6 (4 elements): the same\n"), "{said}");
            // Without fusion the order of the lines is that of the work.
            assert_eq!(said.contains("which the peak depends on"), (level, other) == ("-O0", "b.kina"), "{said}");
        }
    }
}

/// The layout, the comments, the place and the documentation of rules are no edits.
#[test]
fn rules_that_say_the_same_are_no_difference() {
    let moved = format!("// A comment.\n\n\n{}", TANH.replace("  g_x", "  // more\n  g_x").replace("twice", "thrice"));
    let place = directory(&[("a.kina", WAVE), ("old.rules", TANH), ("new.rules", &moved)]);
    let said = the_same(kina(place.path(), "diff a.kina --rules old.rules --against-rules new.rules"));
    assert!(
        said.contains("no difference: 1 value made by a rule that stands elsewhere now\n")
            || said.contains("values made by a rule that stands elsewhere now\n"),
        "{said}"
    );
    assert!(!said.contains("rule edits"), "{said}");
}

#[test]
fn a_rule_that_changes_the_form_is_found_among_others() {
    let place = directory(&[("a.kina", WAVE), ("tanh.rules", TANH), ("unused.rules", UNUSED)]);
    let arguments = "diff a.kina --against-rules tanh.rules --against-rules unused.rules -O0";
    let said = different(kina(place.path(), arguments));
    // What differs, with who made it, and that the numbers are right on both sides.
    assert!(said.contains("of another form"), "{said}");
    assert!(said.contains("// tanh.rules:2 vjp tanh, for a\n"), "{said}");
    assert!(said.contains("results at the same inputs, seed 0\n"), "{said}");
    assert!(said.contains("  g_x: worst relative difference <= 1e-6 (4 elements): the same\n"), "{said}");
    assert!(!said.contains("FAILED") && said.contains("\nbytes  ") && said.contains("\npeak   "), "{said}");
    // The edit responsible, tested by leaving it out.
    assert!(said.contains("rule edits: 3, 1 of them responsible (found in "), "{said}");
    assert!(said.contains("  changed vjp tanh  rules/elementwise.rules:"), "{said}");
    assert!(said.contains("-> tanh.rules:2\n      without this edit there is no difference\n"), "{said}");
    assert!(said.contains("  without the other 2 edits, the graph is the same\n"), "{said}");
    assert!(!said.contains("vjp cos") && !said.contains("circle"), "{said}");
    // Without the edit that is said to be responsible there is no difference indeed.
    let said = the_same(kina(place.path(), "diff a.kina --against-rules unused.rules -O0"));
    assert!(said.contains("rule edits: 2, none of them responsible (without them the graph is the same)\n"), "{said}");
}

/// Two edits each of which changes something, and two that only together do.
#[test]
fn each_responsible_edit_is_named_and_edits_that_need_each_other_too() {
    let both = format!("{TANH}\n{WRONG_EXP}\n{UNUSED}");
    let place = directory(&[("a.kina", WAVE), ("both.rules", &both)]);
    let said = different(kina(place.path(), "diff a.kina --against-rules both.rules"));
    assert!(said.contains("rule edits: 4, 2 of them responsible"), "{said}");
    assert_eq!(said.matches("without this edit the difference is another one\n").count(), 2, "{said}");

    let program = "let f = fn(x: tensor<F32, [4], @host>) { x.asinh_of() } in
let x = tensor<F32, [4], @host> in
handle f(x) with reverseMode
";
    // The second rule set takes another `def` through a third one: neither edit loads without the other.
    let old = "/// A step.\ndef asinh_of(x) {\n  => tanh(x)\n}\n";
    let new = "/// A part.\ndef part_of(x) {\n  => exp(x)\n}\n\n/// A step.\ndef asinh_of(x) {\n  => part_of(x)\n}\n";
    let place = directory(&[("a.kina", program), ("old.rules", old), ("new.rules", new)]);
    let said = different(kina(place.path(), "diff a.kina --rules old.rules --against-rules new.rules"));
    assert!(said.contains("rule edits: 2, 2 of them responsible"), "{said}");
    assert!(
        said.contains("  added def part_of  new.rules:2\n      without this edit the rules cannot be loaded\n"),
        "{said}"
    );
    assert!(
        said.contains(
            "  changed def asinh_of  old.rules:2 -> new.rules:7\n      without this edit there is no difference\n"
        ),
        "{said}"
    );
}

#[test]
fn a_wrong_gradient_is_seen_on_either_side() {
    let place = directory(&[("a.kina", WAVE), ("wrong.rules", WRONG_EXP)]);
    let outcome = kina(place.path(), "diff a.kina --against-rules wrong.rules");
    assert!(outcome.stderr.contains("warning[E0919]: the numbers of the second side are not right"), "{outcome:?}");
    assert!(outcome.stderr.contains("g_y: worst relative error > 1e-1"), "{outcome:?}");
    let said = different(outcome);
    assert!(said.contains("\n- g_y: worst relative error <= 1e-6 (4 of 4 compared): passed\n"), "{said}");
    assert!(said.contains("\n+ g_y: worst relative error > 1e-1 (4 of 4 compared, worst at element "), "{said}");
    assert!(said.contains("  g_y: worst relative difference > 1e-1 (4 elements): DIFFERENT\n"), "{said}");

    // Both sides have it: no difference, and still told.
    let outcome = kina(place.path(), "diff a.kina a.kina --rules wrong.rules");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("the first side") && outcome.stderr.contains("the second side"), "{outcome:?}");
    assert!(outcome.stdout.contains("FAILED"), "{outcome:?}");

    let unchecked = kina(place.path(), "diff a.kina --against-rules wrong.rules --no-check");
    assert_eq!(unchecked.stderr, "");
    let said = different(unchecked);
    assert!(
        said.contains("gradient check\n  not checked, as was asked for\n") && !said.contains("results at"),
        "{said}"
    );
}

/// The check of gradients looks at what was differentiated; what rewriting makes of it is another matter.
#[test]
fn a_wrong_rewrite_is_seen_although_the_gradient_check_passes() {
    let wrong = "/// Off by a factor.\nrewrite tanh_is_near_x [real] {\n  tanh(x) => x * 1.0\n}\n";
    let place = directory(&[("a.kina", WAVE), ("wrong.rules", wrong)]);
    let outcome = kina(place.path(), "diff a.kina --against-rules wrong.rules");
    assert!(outcome.stderr.contains("the second side"), "{outcome:?}");
    let said = different(outcome);
    assert!(said.contains("gradient check\n  g_x: worst relative error <= 1e-6 (4 of 4 compared): passed\n"), "{said}");
    assert!(said.contains("\n- primal: worst relative difference <= 1e-6 (1 element): passed\n"), "{said}");
    assert!(said.contains("\n+ primal: worst relative difference > 1e-"), "{said}");
    assert!(said.contains("  added rewrite tanh_is_near_x  wrong.rules:2\n"), "{said}");
}

#[test]
fn two_programs_differ_in_lines_numbers_and_inputs() {
    let wider = WAVE.replace("y.exp()", "y.exp() + y");
    let place = directory(&[
        ("a.kina", WAVE.to_owned()),
        ("b.kina", wider),
        ("shape.kina", WAVE.replace("[4]", "[5]")),
        ("name.kina", WAVE.replace("let x = tensor", "let z = tensor").replace("f(x, y)", "f(z, y)")),
        ("cube.kina", WAVE.replace("c.sum()", "(c * c).sum()").replace("let c = a", "let c = b * 0.0 + a")),
    ]);
    let said = different(kina(place.path(), "diff a.kina b.kina"));
    let lines = said.split_once("lines of the programs that make the difference\n").unwrap().1;
    assert!(lines.contains("  + b.kina:3  let b = y.exp() + y in\n"), "{said}");
    assert!(!lines.contains("tanh") && !lines.contains("sum()") && !lines.contains("handle"), "{said}");
    assert!(said.contains("  primal: worst relative difference > 1e-"), "{said}");
    assert!(said.contains("  g_x: worst relative difference "), "{said}");

    let said = different(kina(place.path(), "diff a.kina shape.kina"));
    assert!(said.contains("  ~ input x : tensor<F32, [4], @host> -> tensor<F32, [5], @host>\n"), "{said}");
    assert!(said.contains("  ~ result g_x : tensor<F32, [4], @host> -> tensor<F32, [5], @host>\n"), "{said}");
    assert!(said.contains("  not compared: the programs do not have the same inputs\n"), "{said}");
    assert!(said.contains("  + shape.kina:7  let x = tensor<F32, [5], @host> in\n"), "{said}");

    let said = different(kina(place.path(), "diff a.kina name.kina"));
    assert!(said.contains("  - input x : ") && said.contains("  + input z : "), "{said}");
}

#[test]
fn nan_and_traps_are_differences() {
    let take = |index: &str| {
        format!(
            "let v = tensor<F32, [1, 4], @host> in\nlet i = tensor<I64, [1], @host> in\n\
             let j = i {index} in\nv.take_along_axis(j, axis=1)\n"
        )
    };
    let (plain, beyond) = (take("* 1"), take("+ 100"));
    let log = "let v = tensor<F32, [4], @host> in\nlet l = v.log() in\nl\n";
    let place = directory(&[
        ("take.kina", plain.as_str()),
        ("beyond.kina", &beyond),
        ("log.kina", log),
        ("abs.kina", &log.replace("v.log()", "v.abs().log()")),
    ]);
    let said = different(kina(place.path(), "diff log.kina abs.kina"));
    assert!(said.contains("NaN or infinite on one side only): DIFFERENT\n"), "{said}");
    assert!(said.contains("gradient check\n  the program has no gradient\n"), "{said}");
    let said = different(kina(place.path(), "diff take.kina beyond.kina"));
    assert!(said.contains("take_along_axis index out of bounds\n"), "{said}");
}

#[test]
fn an_order_of_operands_that_the_rules_exchange_is_a_matter_of_form() {
    let rules = "/// Either first.\nrewrite max_commutes [exact] {\n  maximum(a, b) <=> maximum(b, a)\n}\n";
    let program = |call: &str| {
        format!("let x = tensor<F32, [4], @host> in\nlet y = tensor<F32, [4], @host> in\n({call}).exp()\n")
    };
    let (left, right) = (program("maximum(x, y)"), program("maximum(y, x)"));
    let place = directory(&[("a.kina", left.as_str()), ("b.kina", &right), ("max.rules", rules)]);
    let said = different(kina(place.path(), "diff a.kina b.kina -O0"));
    assert!(said.contains("values: 1 of another form, 1 that only read those\n"), "{said}");
    let said = the_same(kina(place.path(), "diff a.kina b.kina -O0 --rules max.rules"));
    assert!(said.contains("no difference: 1 value with operands in another order"), "{said}");

    let options = RuleOptions { files: vec![place.path().join("max.rules")], ..RuleOptions::default() };
    let session = Session::new(&options).unwrap();
    assert!(commutative(&session.rules).contains("maximum"));
}

#[test]
fn one_side_that_is_refused_is_no_comparison() {
    let place = directory(&[("a.kina", WAVE), ("bad.kina", "let x = 1 in"), ("bad.rules", "vjp {")]);
    // The restricted pass has no VJP of exp.
    kina(place.path(), "diff a.kina --against-profile phase1")
        .refusal(1, &["E0501", "on the second side: `a.kina` with rules "])
        .unwrap();
    kina(place.path(), "diff a.kina --profile phase1 --against-profile default")
        .refusal(1, &["E0501", "on the first side: `a.kina`"])
        .unwrap();
    kina(place.path(), "diff a.kina bad.kina").refusal(1, &["bad.kina:1"]).unwrap();
    kina(place.path(), "diff a.kina --against-rules bad.rules").refusal(1, &["bad.rules:1"]).unwrap();
    kina(place.path(), "diff a.kina absent.kina").refusal(4, &["E0701", "absent.kina"]).unwrap();
    kina(place.path(), "diff a.kina --against-rules absent.rules").refusal(4, &["E0701", "absent.rules"]).unwrap();
    kina(place.path(), "diff a.kina").refusal(2, &["OTHER.kina", "--against-rules"]).unwrap();
    std::fs::write(place.path().join("latin.kina"), b"let x = \xE9 in").unwrap();
    kina(place.path(), "diff a.kina latin.kina").refusal(1, &["E0110", "latin.kina"]).unwrap();
}

/// Many edits at once, in bounded time: everything beyond the restricted pass.
#[test]
fn a_whole_profile_is_narrowed_down() {
    let program = "let f = fn(x: tensor<F32, [4], @host>) -> tensor<F32, [4], @host> { (x * x).relu() } in
let x = tensor<F32, [4], @host> in
handle f(x) with reverseMode
";
    let relu = "/// With a product.\noverride vjp relu {\n  y = relu(x)\n  -----------\n  g_x = 1.0 * (g_y * select(x > 0.0, 1.0, 0.0))\n  kink x == 0.0: g_x = 0.0\n}\n";
    let place = directory(&[("a.kina", program), ("relu.rules", relu)]);
    let said = different(kina(
        place.path(),
        "diff a.kina --profile phase1 --against-profile default --against-rules relu.rules -O0",
    ));
    assert!(said.contains(", 1 of them responsible (found in "), "{said}");
    assert!(said.contains("  changed vjp relu  rules/phase1.rules:"), "{said}");
    let edits: usize = said.split_once("rule edits: ").unwrap().1.split_once(',').unwrap().0.parse().unwrap();
    assert!(edits > 40, "{said}");
}

#[test]
fn the_report_is_json_on_request() {
    let place = directory(&[("a.kina", WAVE), ("wrong.rules", WRONG_EXP)]);
    let outcome = kina(place.path(), "diff a.kina --against-rules wrong.rules --json --seed 3");
    assert_eq!(outcome.code, Some(1));
    let value: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    let wanted = ["version", "differs", "level", "seed", "left", "right", "graph", "numbers", "lines", "rule_edits"];
    assert_eq!(keys, wanted);
    assert_eq!((&value["version"], &value["differs"], &value["seed"]), (&1.into(), &true.into(), &3.into()));
    assert_eq!(value["left"]["verdict"]["passed"], true);
    assert_eq!(value["right"]["verdict"]["passed"], false);
    assert_ne!(value["left"]["rules"], value["right"]["rules"]);
    assert_eq!(value["graph"]["same"], false);
    assert_eq!(value["rule_edits"]["responsible"][0]["name"], "vjp exp");
    assert_eq!(value["rule_edits"]["responsible"][0]["without"], "no difference");
    assert_eq!(value["rule_edits"]["responsible"][0]["after"], "wrong.rules:2");
    let results = value["numbers"]["results"].as_array().unwrap();
    assert_eq!(results.iter().map(|r| r["same"].as_bool().unwrap()).collect::<Vec<_>>(), [true, true, false]);
    let warnings: serde_json::Value = serde_json::from_str(&outcome.stderr).unwrap();
    assert_eq!(warnings["diagnostics"][0]["code"], "E0919");
    let same = kina(place.path(), "diff a.kina a.kina --json").ok();
    let value: serde_json::Value = serde_json::from_str(&same).unwrap();
    assert_eq!((&value["differs"], &value["lines"]["left"]), (&false.into(), &serde_json::json!([])));
}

/// The examples of `--help` name options that there are.
#[test]
fn help_has_examples() {
    for command in ["diff", "snapshot check", "snapshot accept"] {
        let help = kina(Path::new(ROOT), &format!("{command} --help")).ok();
        assert!(help.contains("Example"), "{help}");
    }
}

fn call(op: &str, args: Vec<Arg>) -> Value {
    let maker = Some(Maker::Program("p.kina:1".to_owned()));
    Value { name: String::new(), call: Some(Call { op: op.to_owned(), args }), ty: "t".to_owned(), maker }
}

/// A chain of `count` values, of which the one at `odd` is of another operator.
fn chain(count: usize, odd: usize) -> Record {
    let mut values = vec![Value { name: "x".to_owned(), call: None, ty: "t".to_owned(), maker: None }];
    for i in 0..count {
        let op = if i == odd { "exp" } else { "tanh" };
        values.push(call(op, vec![Arg::Value(i), Arg::Value(i / 2)]));
    }
    for (i, value) in values.iter_mut().enumerate().skip(1) {
        value.name = format!("v{i}");
    }
    let results = vec![Named { name: "result".to_owned(), value: count }];
    Record { values, checks: Vec::new(), results }
}

/// Quadratic time would not come to an end.
#[test]
fn large_graphs_take_time_in_proportion() {
    let (count, odd) = (200_000, 1_000);
    let (left, right) = (chain(count, count), chain(count, odd));
    let difference = compare(&left, &right, &BTreeSet::new());
    assert_eq!(difference.changed.len(), 1);
    assert_eq!(difference.changed[0].left, odd + 1);
    assert_eq!(difference.followed, count - odd - 1);
    assert!(difference.removed.is_empty() && difference.added.is_empty());
    assert!(compare(&right, &right, &BTreeSet::new()).is_none());
}

/// Long differences are cut, and `--all` shows them.
#[test]
fn long_differences_are_counted() {
    let steps = |op: &str| (0..30).map(|i| format!("let s{i} = x{i}.{op}() in\n")).collect::<String>();
    let inputs = (0..30).map(|i| format!("let x{i} = tensor<F32, [2], @host> in\n")).collect::<String>();
    let sum = (0..30).map(|i| format!("s{i}")).collect::<Vec<_>>().join(" + ");
    let program = |op: &str| format!("{inputs}{}{sum}\n", steps(op));
    let place = directory(&[("a.kina", program("exp")), ("b.kina", program("tanh"))]);
    let said = different(kina(place.path(), "diff a.kina b.kina"));
    assert!(said.contains("values: 30 of another form, "), "{said}");
    assert!(said.contains("  .. and 10 more, which `--all` shows\n"), "{said}");
    let said = different(kina(place.path(), "diff a.kina b.kina --all"));
    assert!(!said.contains(".. and") && said.contains("  + b.kina:60  let s29 = x29.tanh() in\n"), "{said}");
}
