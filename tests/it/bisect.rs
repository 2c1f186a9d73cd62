//! `kina-ad bisect`: rules that are wrong are planted, and must be named.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::support::{Outcome, directory, kina, npy_f32, npy_i64};

/// A program with a gradient, in which many rules fire.
const PROGRAM: &str = "let f = fn(x: tensor<F32, [2, 3], @host>) -> tensor<F32, [], @host> {
  let y = x.tanh() in
  let z = (y * 3.0) * 5.0 in
  (z * y).sum()
} in
let x = tensor<F32, [2, 3], @host> in
handle f(x) with reverseMode
";

fn bisect(rules: &str, program: &str, arguments: &str) -> Outcome {
    let place = directory(&[("my.rules", rules), ("p.kina", program)]);
    kina(place.path(), &format!("bisect p.kina --rules my.rules {arguments}"))
}

/// The answer as JSON, of a run that finds something wrong.
#[track_caller]
fn found(rules: &str, program: &str, arguments: &str) -> Value {
    let outcome = bisect(rules, program, &format!("--json {arguments}"));
    assert_eq!(outcome.code, Some(1), "{}\n{}", outcome.stdout, outcome.stderr);
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).expect("the answer is JSON")
}

#[track_caller]
fn right(rules: &str, program: &str, arguments: &str) {
    let out = bisect(rules, program, arguments).ok();
    assert!(out.ends_with("nothing to bisect\n"), "{out}");
}

#[test]
fn a_wrong_vjp_is_named_with_its_call_and_both_numbers() {
    // A sign, a missing factor, a missing term.
    for conclusion in ["g_y * (y * y - 1.0)", "g_y * (1.0 - y)", "g_y"] {
        let rules =
            format!("/// Wrong.\noverride vjp tanh {{\n  y = tanh(x)\n  -----------\n  g_x = {conclusion}\n}}\n");
        let answer = found(&rules, PROGRAM, "");
        assert_eq!(answer["premise"]["check"]["outcome"], "failed");
        assert_eq!(answer["premise"]["results"]["outcome"], "agrees", "both use the same VJP");
        assert_eq!(answer["culprit"]["rule"], "vjp tanh");
        assert_eq!(answer["culprit"]["location"], "my.rules:2");
        let call = &answer["application"];
        assert_eq!((&call["value"], &call["place"], &call["operand"]), (&"y".into(), &"p.kina:2".into(), &"x".into()));
        assert_eq!(call["call"], "tanh(x)");
        let (given, slope) = (call["given"].as_f64().unwrap(), call["measured"]["slope"].as_f64().unwrap());
        assert!((given - slope).abs() > 1e-3 * slope.abs(), "{given} {slope}");
        // All calls are one step.
        assert_eq!(answer["steps"].as_array().unwrap().len(), 1);
        assert_eq!((&answer["steps"][0]["stage"], &answer["steps"][0]["number"]), (&"vjps".into(), &1.into()));
        assert_eq!(answer["others"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn the_message_shows_the_conclusion() {
    let rules = "/// Wrong.\noverride vjp tanh {\n  y = tanh(x)\n  -----------\n  g_x = g_y * (y * y - 1.0)\n}\n";
    let outcome = bisect(rules, PROGRAM, "");
    assert_eq!(outcome.code, Some(1));
    for line in [
        "gradient check: FAILED\n",
        "results: -O2 agrees with -O0\n",
        "VJPs, step 1 of 1: ",
        ": 1 rule is WRONG\n",
        "culprit: vjp tanh at my.rules:2\n  call     y = tanh(x) at p.kina:2\n  operand  x, element 0\n",
        "  numbers  the rule gives ",
    ] {
        assert!(outcome.stdout.contains(line), "`{line}` in\n{}", outcome.stdout);
    }
    for words in ["error[E0920]: `vjp tanh` makes the gradient check fail", "my.rules:5:9", "rules check my.rules"] {
        assert!(outcome.stderr.contains(words), "`{words}` in\n{}", outcome.stderr);
    }
}

#[test]
fn operands_and_definitions_are_told_apart() {
    let program = |body: &str| {
        format!(
            "let f = fn(a: tensor<F64, [4], @host>, b: tensor<F64, [4], @host>) -> tensor<F64, [4], @host> {{\n  {body}\n}} in
let a = tensor<F64, [4], @host> in\nlet b = tensor<F64, [4], @host> in\nhandle f(a, b) with reverseMode\n"
        )
    };
    // The operands changed places: wrong for both. One of them is enough to name the rule.
    let swapped =
        "/// Wrong.\noverride vjp mul {\n  y = mul(a, b)\n  -------------\n  g_a = g_y * b\n  g_b = g_y * b\n}\n";
    let answer = found(swapped, &program("let p = a + b in p * a"), "");
    assert_eq!((&answer["culprit"]["rule"], &answer["application"]["operand"]), (&"vjp mul".into(), &"b".into()));
    assert_eq!(answer["application"]["call"], "mul(p, a)");

    // One operand that gets nothing, so that no cotangent comes through at all.
    let none = "/// Wrong.\noverride vjp tanh {\n  y = tanh(x)\n  -----------\n  g_x = none\n}\n";
    let answer = found(none, &program("let t = a.tanh() in t * b"), "");
    assert_eq!((&answer["culprit"]["rule"], &answer["application"]["value"]), (&"vjp tanh".into(), &"t".into()));
    assert_eq!(answer["application"]["given"], 0.0);

    // A definition with a VJP of its own.
    let def = "/// Twice.\ndef twice(x) { => x + x }\n/// Wrong.\nvjp twice {\n  y = twice(x)\n  ------------\n  g_x = g_y\n}\n";
    let answer = found(def, &program("a.twice() * b"), "");
    assert_eq!(
        (&answer["culprit"]["rule"], &answer["culprit"]["location"]),
        (&"vjp twice".into(), &"my.rules:4".into())
    );
    assert_eq!(
        answer["application"]["measured"]["slope"].as_f64().unwrap() / answer["application"]["given"].as_f64().unwrap(),
        2.0
    );

    // Two wrong rules are both named, in the order of the program.
    let two = format!("{none}{}", none.replace("tanh", "exp"));
    let two = two.replace("g_x = none", "g_x = g_y * 3.0");
    let answer = found(&two, &program("let t = a.tanh() in t.exp() * b"), "");
    assert_eq!(answer["culprit"]["rule"], "vjp tanh");
    assert_eq!(answer["others"][0]["culprit"]["rule"], "vjp exp");
}

#[test]
fn kinks_and_policies_are_held_to_what_they_state() {
    let program = "let f = fn(x: tensor<F64, [4], @host>) -> tensor<F64, [4], @host> { x.OP() * 2.0 } in
let x = tensor<F64, [4], @host> in\nhandle f(x) with reverseMode\n";
    let zeros = npy("<f8", &[4], &[0.0, 0.0, 1.0, -1.0]);
    let run = |op: &str, rules: &str| {
        let text = program.replace("OP", op);
        let place = directory(&[("my.rules", rules.as_bytes()), ("p.kina", text.as_bytes()), ("x.npy", &zeros)]);
        kina(place.path(), "bisect p.kina --rules my.rules --input x=x.npy")
    };
    // The default rules state what they do at 0; another value between the slopes is a policy as well.
    assert!(run("relu", "").ok().contains("nothing to bisect"));
    let half = "/// Half.\noverride vjp relu {\n  y = relu(x)\n  -----------\n  g_x = g_y * select(x == 0.0, 0.5, select(x > 0.0, 1.0, 0.0))\n}\n";
    assert!(run("relu", half).ok().contains("nothing to bisect"));
    // Outside of them there is no excuse.
    let outcome = run("relu", &half.replace("0.5", "1.5"));
    assert!(outcome.stdout.contains("culprit: vjp relu at my.rules:2"), "{outcome:?}");
    assert!(outcome.stdout.contains("the slope is 0.0 on the left and 2.0 on the right"), "{outcome:?}");

    // By intent no derivative: that is no fault of the rule, and is said.
    let through = "/// Straight through.\noverride vjp floor {\n  y = floor(x)\n  ------------\n  g_x = g_y\n  not_a_derivative\n  example x == 0.3: g_x = 1.0\n}\n";
    let inputs = npy("<f8", &[4], &[0.3, 1.4, 2.5, -1.2]);
    let text = program.replace("OP", "floor");
    let place = directory(&[("my.rules", through.as_bytes()), ("p.kina", text.as_bytes()), ("x.npy", &inputs)]);
    let outcome = kina(place.path(), "bisect p.kina --rules my.rules --input x=x.npy");
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stdout.contains("culprit: unknown"), "{outcome:?}");
    assert!(outcome.stdout.contains("by intent no derivative: vjp floor at my.rules:2"), "{outcome:?}");
    assert!(outcome.stderr.contains("error[E0922]"), "{outcome:?}");
    // But it is held to its examples.
    let broken = through.replace("g_x = 1.0", "g_x = 2.0");
    let place = directory(&[("my.rules", broken.as_bytes()), ("p.kina", text.as_bytes()), ("x.npy", &inputs)]);
    let outcome = kina(place.path(), "bisect p.kina --rules my.rules --input x=x.npy");
    assert!(outcome.stdout.contains("culprit: vjp floor at my.rules:2"), "{outcome:?}");
    assert!(outcome.stderr.contains("error[E0920]: an example of `vjp floor` does not hold"), "{outcome:?}");
}

fn npy(descr: &str, shape: &[usize], values: &[f64]) -> Vec<u8> {
    crate::support::npy(descr, shape, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
}

/// 200 rewrites, of which one is wrong, and a program in which all of them fire and make the result cheaper.
fn two_hundred(wrong: usize) -> (String, String) {
    let (mut rules, mut body) = (String::new(), String::from("let y_0 = x in\n"));
    for i in 0..200 {
        // Around 2, so that the product of all stays near 1; exact in F32.
        let factor = 2.0 + (if i % 2 == 0 { 1.0 } else { -1.0 }) * (i + 1) as f64 / 512.0;
        let right = if i == wrong { factor } else { factor / 2.0 };
        let _ = writeln!(
            rules,
            "/// Scales by {factor}.\nrewrite scale_{i} [real] {{\n  (a * {factor:?}) * 0.5 => a * {right:?}\n}}"
        );
        let _ = writeln!(body, "let y_{} = (y_{i} * {factor:?}) * 0.5 in", i + 1);
    }
    let program = format!("let x = tensor<F32, [2], @host> in\n{body}y_200\n");
    (rules, program)
}

#[test]
fn one_wrong_rewrite_among_200_is_named_in_at_most_8_steps() {
    let mut generator = 88172645463325252u64;
    let mut random = || {
        generator ^= generator << 13;
        generator ^= generator >> 7;
        generator ^= generator << 17;
        (generator % 200) as usize
    };
    for wrong in [0, 199, random(), random(), random()] {
        let (rules, program) = two_hundred(wrong);
        for arguments in ["--no-default-rules", ""] {
            // The default rules are known to be right, and add to those that fire.
            if !arguments.is_empty() && wrong % 2 == 0 {
                continue;
            }
            let answer = found(&rules, &program, arguments);
            let candidates = answer["candidates"].as_u64().unwrap();
            assert!((200..=256).contains(&candidates), "{candidates} fire");
            let steps = answer["steps"].as_array().unwrap();
            let halving: Vec<&Value> = steps.iter().filter(|s| s["stage"] == "rewrites").collect();
            assert!(halving.len() <= 8, "{} steps for {wrong}", halving.len());
            assert!(halving.iter().all(|s| s["at_most"] == 8));
            // Without any other, to be sure: nothing else is needed, and nothing else looked for.
            assert!(steps.iter().filter(|s| s["stage"] == "alone").count() <= 1);
            assert_eq!(steps.iter().filter(|s| s["stage"] == "companions" || s["stage"] == "without").count(), 0);
            assert_eq!(answer["culprit"]["rule"], format!("scale_{wrong}"));
            assert_eq!(answer["culprit"]["location"], format!("my.rules:{}", 4 * wrong + 2));
            let done = &answer["application"];
            assert_eq!(done["value"], format!("y_{}", wrong + 1));
            assert_eq!(done["number"], 1);
            let factor = 2.0 + (if wrong % 2 == 0 { 1.0 } else { -1.0 }) * (wrong + 1) as f64 / 512.0;
            assert_eq!(done["left"], format!("mul(mul(y_{wrong}, {factor:?}), 0.5)").replace("y_0", "x"));
            assert_eq!(done["right"], format!("mul(y_{wrong}, {factor:?})").replace("y_0", "x"));
        }
    }
}

#[test]
fn the_text_shows_every_step() {
    let (rules, program) = two_hundred(77);
    let outcome = bisect(&rules, &program, "--no-default-rules");
    let out = outcome.stdout;
    assert!(out.contains("gradient check: the program has no gradient\n"), "{out}");
    assert!(out.contains("results: -O2 DIFFERS from -O0: `result`, element 0: "), "{out}");
    assert!(out.contains("rewrites, step 1 of at most 8: 100 of 200 rules: differs\n"), "{out}");
    assert!(out.contains("rewrites, step 2 of at most 8: 50 of 100 rules: agrees\n"), "{out}");
    assert!(out.contains("rewrites, step 3 of at most 8: 25 of 50 rules, after 50: agrees\n"), "{out}");
    assert!(out.contains("culprit: scale_77 at my.rules:310\n"), "{out}");
    assert!(out.contains("  applied  to y_78, in iteration 1: application 1 of 1\n"), "{out}");
    assert!(outcome.stderr.contains("error[E0921]: `scale_77` makes -O2 differ from -O0"), "{}", outcome.stderr);
}

#[test]
fn a_rewrite_that_is_wrong_only_after_another_is_named_with_it() {
    let opens = "/// True.\nrewrite opens [real] {\n  (a * 3.0) * 5.0 => (a * 4.0) * 3.75\n}\n";
    let wrong = "/// Wrong, where the other has been.\nrewrite wrong [real] {\n  a * 4.0 => a\n}\n";
    for rules in [format!("{opens}{wrong}"), format!("{wrong}{opens}")] {
        let answer = found(&rules, PROGRAM, "");
        assert_eq!(answer["premise"]["check"]["outcome"], "passed");
        assert_eq!(answer["culprit"]["rule"], "wrong", "{answer:#}");
        assert_eq!(answer["culprit"]["takes"][0]["rule"], "opens", "{answer:#}");
        assert_eq!(answer["culprit"]["takes"].as_array().unwrap().len(), 1);
        assert_eq!(
            (&answer["application"]["left"], &answer["application"]["right"]),
            (&"mul(y, 4.0)".into(), &"y".into())
        );
    }
    right(opens, PROGRAM, "");
    right(wrong, PROGRAM, "");
}

#[test]
fn many_applications_of_one_rule_are_told_apart() {
    // True at all but one of its places: where nothing is negative.
    let mut body = String::new();
    for i in 0..24 {
        let _ = writeln!(body, "  let y_{i} = (x + {i}.0).abs() in",);
    }
    let sum: Vec<String> = (0..24).map(|i| format!("y_{i}")).collect();
    let program = format!("let x = tensor<F64, [2], @host> in\n{body}  {}\n", sum.join(" + "));
    let rules = "/// Wrong for negative ones.\nrewrite positive [real] {\n  abs(a) => a\n}\n";
    let place = directory(&[
        ("my.rules", rules.as_bytes()),
        ("p.kina", program.as_bytes()),
        ("x.npy", &npy("<f8", &[2], &[3.5, -0.5])[..]),
    ]);
    let outcome = kina(place.path(), "bisect p.kina --rules my.rules --json --input x=x.npy");
    let answer: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(answer["culprit"]["rule"], "positive");
    let done = &answer["application"];
    assert_eq!((&done["value"], &done["difference"]["element"]), (&"y_0".into(), &1.into()));
    assert_eq!((&done["difference"]["expected"], &done["difference"]["found"]), (&0.5.into(), &(-0.5).into()));
    let steps = answer["steps"].as_array().unwrap().iter().filter(|s| s["stage"] == "applications");
    assert!(steps.count() <= 5, "24 applications");
}

#[test]
fn losses_of_accuracy_and_moved_nans_are_found() {
    let accuracy = "/// Adds what is small to what is large first.\nrewrite joins [real] {\n  (x - broadcast(m, s)) - broadcast(l, s) => x - broadcast(m + l, s)\n  where shape(m) == shape(l)\n}\n";
    let program =
        "let x = tensor<F32, [4], @host> in\nlet m = tensor<F32, [1], @host> in\nlet l = tensor<F32, [1], @host> in
let far = x - m.broadcast(shape=[4]) in\nfar - l.broadcast(shape=[4])\n";
    let place = |m: f32, x: [f32; 4]| {
        directory(&[
            ("my.rules", accuracy.as_bytes().to_vec()),
            ("p.kina", program.as_bytes().to_vec()),
            ("x.npy", npy_f32(&[4], &x)),
            ("m.npy", npy_f32(&[1], &[m])),
            ("l.npy", npy_f32(&[1], &[0.7])),
        ])
    };
    let arguments = "bisect p.kina --rules my.rules --input x=x.npy --input m=m.npy --input l=l.npy";
    let outcome = kina(place(1e8, [1e8; 4]).path(), arguments);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stdout.contains("culprit: joins at my.rules:2\n"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("element 0: -0.699999988 on the left, 0.0 on the right"), "{}", outcome.stdout);
    // With ordinary numbers it rounds elsewhere, and that is no difference.
    let outcome = kina(place(1.25, [0.1, 2.3, 4.7, -1.9]).path(), arguments);
    assert!(outcome.ok().ends_with("nothing to bisect\n"));

    let nan = "/// Wrong at 0.\nrewrite one [real] {\n  a / a => 1.0\n}\n";
    let program = "let x = tensor<F32, [3], @host> in\nlet y = x.relu() in\ny / y\n";
    let zero = npy_f32(&[3], &[1.0, 0.0, 2.0]);
    let place = directory(&[("my.rules", nan.as_bytes()), ("p.kina", program.as_bytes()), ("x.npy", &zero)]);
    let outcome = kina(place.path(), "bisect p.kina --rules my.rules --input x=x.npy");
    assert!(outcome.stdout.contains("culprit: one at my.rules:2\n"), "{outcome:?}");
    assert!(outcome.stdout.contains("element 1: nan on the left, 1.0 on the right"), "{outcome:?}");
}

#[test]
fn commuting_rules_and_alternatives_are_suspects_too() {
    // A rule of this form is not run: it says that operands may change places.
    let commutes = "/// Wrong.\nrewrite turns [exact] {\n  a - b => b - a\n}\n";
    let program = "let a = tensor<F64, [2], @host> in\nlet b = tensor<F64, [2], @host> in\n(a - b) * (b - a)\n";
    let answer = found(commutes, program, "");
    assert_eq!(answer["culprit"]["rule"], "turns", "{answer:#}");
    let done = &answer["application"];
    let sides = [done["left"].as_str().unwrap(), done["right"].as_str().unwrap()];
    assert!(sides == ["sub(a, b)", "sub(b, a)"] || sides == ["sub(b, a)", "sub(a, b)"], "{sides:?}");

    // Chosen where it is cheaper, at -O2 only.
    let alternative =
        "/// Wrong.\nvjp sigmoid as constant {\n  y = sigmoid(x)\n  --------------\n  g_x = g_y * 0.25\n}\n";
    let program = "let f = fn(x: tensor<F64, [3], @host>) -> tensor<F64, [3], @host> { x.sigmoid() } in
let x = tensor<F64, [3], @host> in\nhandle f(x) with reverseMode\n";
    let answer = found(alternative, program, "");
    assert_eq!(answer["premise"]["check"]["outcome"], "passed", "-O0 uses the primary rule");
    assert_eq!(
        (&answer["culprit"]["kind"], &answer["culprit"]["location"]),
        (&"alternative".into(), &"my.rules:2".into())
    );
    assert_eq!(answer["application"]["kind"], "vjp");
    assert_eq!(answer["application"]["given"], 0.25);
    right(alternative, program, "-O1");
}

#[test]
fn a_level_uses_its_own_rewrites_only() {
    let wrong = |class: &str| format!("/// Wrong.\nrewrite wrong [{class}] {{\n  (a * 3.0) * 5.0 => a * 16.0\n}}\n");
    let answer = found(&wrong("exact"), PROGRAM, "-O1");
    assert_eq!((&answer["level"], &answer["culprit"]["rule"]), (&"-O1".into(), &"wrong".into()));
    right(&wrong("real"), PROGRAM, "-O1");
    right(&wrong("exact"), PROGRAM, "-O0");
    let out = bisect(&wrong("exact"), PROGRAM, "-O0").ok();
    assert!(out.contains("results: those of -O0, which uses no rewrite\n"), "{out}");
}

#[test]
fn where_nothing_is_wrong_there_is_nothing_to_bisect() {
    right("", PROGRAM, "");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for program in ["storylm0_nll.kina", "storylm0_nll_mean.kina", "mlp.kina"] {
        let out = kina(&examples, &format!("bisect {program}")).ok();
        assert!(out.contains("gradient check: passed\n"), "{out}");
        assert!(out.ends_with("results: -O2 agrees with -O0\nnothing to bisect\n"), "{out}");
    }
    let out = kina(&examples, "bisect storylm0_nll.kina --json --seed 3").ok();
    let answer: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&answer["version"], &answer["right"], &answer["culprit"]), (&1.into(), &true.into(), &Value::Null));
    assert_eq!(answer["steps"].as_array().unwrap().len(), 0);
}

#[test]
fn programs_that_trap_and_rules_that_are_ill_typed_say_so() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let place = directory(&[("t.npy", npy_i64(&[1, 4], &[0, 1, 8, 2]))]);
    let program = examples.join("storylm0_nll.kina");
    let arguments = format!("bisect {} --input targets=t.npy", program.display());
    let outcome = kina(place.path(), &arguments);
    assert_eq!(outcome.code, Some(3), "{outcome:?}");
    assert!(outcome.stdout.contains("the program traps whatever the rules: nothing to bisect\n"), "{outcome:?}");
    assert!(outcome.stderr.contains("error[E0801]: take_along_axis index out of bounds"), "{outcome:?}");

    let ill = "/// Another type where the shape is not [2].\nrewrite ill [real] {\n  tanh(x) => reshape(x, [2])\n}\n";
    let place = directory(&[("my.rules", ill), ("p.kina", PROGRAM)]);
    kina(place.path(), "bisect p.kina --rules my.rules")
        .refusal(1, &["E04"])
        .or_else(|_| {
            let outcome = kina(place.path(), "bisect p.kina --rules my.rules");
            if outcome.code == Some(1) && outcome.stderr.contains("error[E0503]") {
                Ok(())
            } else {
                Err(outcome.stderr)
            }
        })
        .unwrap();
    kina(place.path(), "bisect p.kina --input z=z.npy").refusal(1, &["E0709"]).unwrap();
    kina(place.path(), "bisect absent.kina").refusal(4, &["E0701"]).unwrap();
}

#[test]
fn large_tensors_are_sampled() {
    let rules = "/// Wrong where x is large.\noverride vjp tanh {\n  y = tanh(x)\n  -----------\n  g_x = g_y * select(x > 3.0, 1.0, 1.0 - y * y)\n}\n";
    let rows = "/// A factor too much.\noverride vjp matmul {\n  y = matmul(a, b)\n  ----------------\n  g_a = matmul(g_y, transpose(b, swap_last(rank(b))))\n  g_b = matmul(transpose(a, swap_last(rank(a))), g_y) * 1.5\n}\n";
    let program =
        "let f = fn(x: tensor<F32, [60, 50], @host>, w: tensor<F32, [50, 4], @host>) -> tensor<F32, [60, 4], @host> {
  let y = x.tanh() in y.matmul(w)\n} in
let x = tensor<F32, [60, 50], @host> in\nlet w = tensor<F32, [50, 4], @host> in\nhandle f(x, w) with reverseMode\n";
    // Of 3,000 normal numbers a few are beyond 3: they look wrong from afar, and are looked at.
    let answer = found(rules, program, "");
    assert_eq!(answer["culprit"]["rule"], "vjp tanh");
    let answer = found(rows, program, "");
    assert_eq!((&answer["culprit"]["rule"], &answer["application"]["operand"]), (&"vjp matmul".into(), &"b".into()));
}
