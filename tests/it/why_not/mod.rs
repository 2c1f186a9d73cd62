//! `kina-ad why-not`: every reason with a program and rules of its own, costs, places, and all rules on many programs.

mod reasons;
mod vjps;

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

/// What is missing from what is said of a case.
fn complaint(what: &str, outcome: Option<Outcome>, text: &str, words: &[&str]) -> Option<String> {
    let missing: Vec<&&str> = words.iter().filter(|w| !text.contains(**w)).collect();
    match outcome {
        Some(_) if missing.is_empty() => None,
        _ => Some(format!("{what}: outcome {outcome:?}, without {missing:?}\n{text}")),
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
        ("vjp neg", "loss", "operand x"),
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
