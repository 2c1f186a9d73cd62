//! `rules check`: every embedded rule is verified, and wrong rules are refused with the point at which they are wrong.

use std::sync::OnceLock;

use kina_ad::verify::{Options, Report, cache::Cache, statics};
use kina_ad::{Profile, RuleOptions, Session};

use crate::support::{directory, kina};

/// The check of the default profile, which several tests look at.
fn embedded() -> &'static (Session, Report) {
    static CHECKED: OnceLock<(Session, Report)> = OnceLock::new();
    CHECKED.get_or_init(|| {
        let session = Session::new(&RuleOptions::default()).unwrap();
        let options = Options { threads: 2, ..Options::default() };
        let report = session.verify(&options, &mut Cache::none());
        (session, report)
    })
}

#[test]
fn every_embedded_rule_is_verified() {
    let (session, report) = embedded();
    assert!(report.diagnostics().is_empty(), "{}", session.refusal(report.diagnostics()));
    assert!(report.passed());
    assert!(report.verdicts.len() > 100, "{}", report.verdicts.len());
    for verdict in &report.verdicts {
        let f = &verdict.findings;
        // Nothing is left out in silence.
        let compared = f.points >= 100 || f.policy || f.values >= 100;
        assert!(compared, "{}", verdict.line());
        assert_eq!(f.not_second, None, "{}", verdict.line());
        assert_eq!(f.not_compared, None, "{}", verdict.line());
    }
    assert!(report.programs >= 30 && report.nodes >= 1_000, "{}", report.summary());
}

/// The restricted pass is checked as well: it is not closed, by the specification, and says so in warnings only.
#[test]
fn the_restricted_pass_is_verified() {
    let session = Session::new(&RuleOptions { profile: Profile::Phase1, ..RuleOptions::default() }).unwrap();
    let options = Options::default();
    let report = session.verify(&options, &mut Cache::none());
    assert!(report.passed(), "{}", session.refusal(report.diagnostics()));
}

#[test]
fn the_default_profile_is_closed() {
    let (session, _) = embedded();
    for (op, orders) in statics::orders(&session.rules) {
        let name = session.rules.registry.op(op).name();
        assert!(
            matches!(orders, statics::Orders::All | statics::Orders::None),
            "`{name}` cannot be differentiated to every order: {orders:?}"
        );
    }
}

/// A rule, and what its refusal says.
fn refuses(rule: &str, words: &[&str]) {
    let place = directory(&[("r.rules", rule)]);
    let outcome = kina(place.path(), "rules check r.rules --no-cache");
    assert_eq!(outcome.code, Some(1), "{rule}\n{outcome:?}");
    assert!(outcome.stdout.contains("REFUSED"), "{rule}\n{outcome:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "`{word}` is not in\n{}", outcome.stderr);
    }
}

fn accepts(rule: &str) {
    let place = directory(&[("r.rules", rule)]);
    let outcome = kina(place.path(), "rules check r.rules --no-cache");
    assert_eq!(outcome.code, Some(0), "{rule}\n{}", outcome.stderr);
    assert!(outcome.stdout.contains("verified") && !outcome.stdout.contains("REFUSED"), "{outcome:?}");
}

/// A VJP of one operand.
fn vjp(op: &str, lines: &str) -> String {
    format!("/// D.\nvjp {op} {{\n  y = {op}(x)\n  -----------\n  {lines}\n}}\n")
}

#[test]
fn wrong_derivatives_are_refused_with_the_point() {
    // The error that stands frozen in a well-known project's snapshots: a sign.
    refuses(
        &vjp("atan", "g_x = g_y / (1.0 - x * x)"),
        &["E0902", "r.rules:5:9", "the rule gives", "finite differences give", "at x = ", "g_y = "],
    );
    refuses(&vjp("tanh", "g_x = g_y * (1.0 - y)"), &["E0902", "`vjp tanh` is not the derivative"]);
    refuses(&vjp("exp", "g_x = none"), &["E0902", "the rule gives 0.0"]);
    // A relative error of 1e-7 is one.
    refuses(&vjp("exp", "g_x = g_y * y * 1.0000001"), &["E0902", "relative error"]);
    // The value of the derivative is right, and its own derivative is not.
    refuses(&vjp("exp", "g_x = g_y * stop_gradient(y)"), &["E0902", "differentiated a second time"]);
    // Right for square matrices of a symmetric kind only.
    refuses(
        "/// D.\nvjp matmul {\n  y = matmul(a, b)\n  ----------------\n  where dim(a, 0) == dim(b, 1) && dim(a, 1) == dim(b, 0) && rank(a) == 2 && dim(a, 0) == dim(a, 1)\n  g_a = matmul(g_y, b)\n  g_b = matmul(transpose(a, swap_last(rank(a))), g_y)\n}\n",
        &["E0902", "`vjp matmul`"],
    );
    // Right on the last axis only.
    refuses(
        "/// D.\nvjp log_softmax {\n  y = log_softmax(x, axis)\n  ------------------------\n  s   = exp(y)\n  g_x = g_y - broadcast(sum(g_y, [rank(x) - 1], keepdims=true), shape(x)) * s\n}\n",
        &["E0902", "at element"],
    );
}

#[test]
fn right_derivatives_are_verified_however_they_are_written() {
    accepts(&vjp("tanh", "g_x = g_y * (1.0 - y * y)"));
    accepts(&vjp("tan", "c = cos(x)\n  g_x = g_y / (c * c)"));
    accepts(&vjp("sigmoid", "g_x = g_y * y * (1.0 - y)"));
    accepts(&vjp("relu", "g_x = select(x <= 0.0, 0.0, g_y)\n  kink x == 0.0: g_x = 0.0"));
}

#[test]
fn kinks_are_verified_as_stated() {
    refuses(&vjp("abs", "g_x = g_y * sign(x)"), &["E0903", "has a kink that it does not state", "on the left and"]);
    // By no luck of one seed.
    let place = directory(&[("r.rules", vjp("abs", "g_x = g_y * sign(x)"))]);
    for seed in 1..8 {
        let outcome = kina(place.path(), &format!("rules check r.rules --no-cache --seed {seed}"));
        assert!(outcome.code == Some(1) && outcome.stderr.contains("E0903"), "seed {seed}: {outcome:?}");
    }
    refuses(
        &vjp("abs", "g_x = g_y * sign(x)\n  kink x == 0.0: g_x = g_y"),
        &["E0903", "does not do what its kink states", "stated here is"],
    );
    refuses(
        &vjp("exp", "g_x = select(x == 0.5, 0.0, g_y * y)\n  kink x == 0.5: g_x = 0.0"),
        &["E0903", "states a kink where there is none"],
    );
    refuses(
        &vjp("abs", "g_x = select(x == 0.0, 3.0 * g_y, g_y * sign(x))\n  kink x == 0.0: g_x = 3.0 * g_y"),
        &["E0903", "not between the slopes"],
    );
    refuses(
        &vjp("abs", "g_x = g_y * sign(x)\n  kink x == 0.0: g_x = 0.0\n  kink x == 0.123: g_x = g_y"),
        &["E0903", "no sampled point has the kink"],
    );
}

#[test]
fn a_vjp_that_is_no_derivative_says_what_it_is() {
    // A straight-through estimator.
    let estimator = |example: &str| vjp("round", &format!("g_x = g_y\n  not_a_derivative{example}"));
    refuses(&estimator(""), &["E0907", "example x == 0.3: g_x = 1.0"]);
    accepts(&estimator("\n  example x == 0.3: g_x = 1.0"));
    refuses(&estimator("\n  example x == 0.3: g_x = 2.0"), &["E0906", "the conclusion here is 1.0"]);
}

#[test]
fn examples_are_verified() {
    let with = |example: &str| vjp("exp", &format!("g_x = g_y * y\n  {example}"));
    accepts(&with("example exp(0.0) == 1.0"));
    accepts(&with("example x == [0.0, 1.0] && g_y == [2.0, 1.0]: g_x = [2.0, 2.718281828459045]"));
    accepts(&with("example exp([[0.0, 1.0]])"));
    accepts(&with("example take_along_axis([[1.0, 2.0], [3.0, 4.0]], [1, 0], axis=1) == [2.0, 3.0]"));
    refuses(&with("example exp(0.0) == 1.01"), &["E0906", "1.0 is not 1.01"]);
    refuses(&with("example log(-1.0)"), &["E0906", "NaN"]);
    refuses(&with("example exp(1.0) < 2.0"), &["E0906", "not true"]);
}

#[test]
fn rewrites_are_held_to_their_class() {
    let real = |body: &str| format!("/// D.\nrewrite r [real] {{\n  {body}\n}}\n");
    let exact = |body: &str| format!("/// D.\nrewrite r [exact] {{\n  {body}\n}}\n");
    // Loses the shift: 0 instead of -0.693 for logits of 1e8.
    refuses(
        &real("log_softmax(x, axis) => x - broadcast(logsumexp(x, axis, keepdims=true), shape(x))"),
        &["E0905", "off by"],
    );
    refuses(&real("x / x => splat(1.0)"), &["E0904", "moves a NaN or an infinity"]);
    refuses(&exact("(a + b) + c => a + (b + c)"), &["E0904", "`[real]` allows"]);
    refuses(&real("(a + b) + c => a + (b + c)"), &["E0905"]);
    refuses(&real("exp(a) * exp(b) => exp(a + b)"), &["E090"]);
    refuses(&real("a * 0.0 => splat(0.0)"), &["E0904"]);
    refuses(&exact("a + 0.0 => a"), &["E0904", "-0.0"]);
    refuses(&real("sin(x) => x"), &["E0904", "is not an identity"]);
    refuses(&real("sqrt(x * x) => x"), &["E0904"]);
    refuses(&real("a / b => a * (1.0 / b)"), &["E090"]);
    accepts(&real("-(a - b) => b - a"));
    accepts(&exact("abs(-x) => abs(x)"));
    accepts(&exact("abs(x) => x\n  domain x > 0.0"));
    refuses(&exact("abs(x) => x"), &["E0904"]);
    // -0 is in that domain.
    refuses(&exact("abs(x) => x\n  domain x >= 0.0"), &["E0904", "-0.0"]);
    accepts(&real("sqrt(x * x) => x\n  domain x >= 0.0001 && x <= 1.0"));
    // What is infinite divided by itself is NaN; NaN itself is in no domain.
    refuses(&real("x / x => splat(1.0)\n  domain x > 0.0\n  where is_float(type(x))"), &["E0904", "x = inf"]);
    accepts(&real("x / x => splat(1.0)\n  domain x > 0.0 && x < inf\n  where is_float(type(x))"));
}

/// A range says nothing of NaN. A rule that would turn one into a number needs more than a range.
#[test]
fn a_domain_fires_only_where_it_is_proved() {
    let rules = "/// D.\nrewrite one [real] {\n  x / x => splat(1.0)\n  domain x >= 1.0 && x <= 100.0\n  where is_float(type(x))\n}\n";
    let program = |p: &str| format!("let x = tensor<F32, [3], @host> in let p = {p} in p / p");
    let divides = |p: &str| {
        let place = directory(&[("r.rules", rules), ("p.kina", &program(p))]);
        kina(place.path(), "emit p.kina --stage graph --rules r.rules").ok().contains("div(")
    };
    assert!(!divides("maximum(iota(shape=[3], axis=0, dtype=F32), splat(1.0, like=x))"), "proved, and no NaN");
    assert!(divides("clamp(x, lo=1.0, hi=2.0)"), "in the range, but x may be NaN");
    assert!(divides("iota(shape=[3], axis=0, dtype=F32)"), "no NaN, but 0 is not in the domain");
    // Where NaN passes through both sides a range is enough.
    let rules = "/// D.\nrewrite same [real] {\n  abs(x) => x\n  domain x >= 0.0\n}\n";
    let place = directory(&[("r.rules", rules), ("p.kina", "let x = tensor<F32, [3], @host> in x.exp().abs()")]);
    assert!(!kina(place.path(), "emit p.kina --stage graph --rules r.rules").ok().contains("abs("));
}

#[test]
fn rules_that_cannot_be_verified_are_refused() {
    refuses(
        "/// D.\nrewrite r [exact] {\n  neg(x) => -x\n  where rank(x) == 77\n}\n",
        &["E0907", "never seen to fire"],
    );
    refuses(
        "/// D.\nvjp exp {\n  y = exp(x)\n  ---\n  where rank(x) == 77\n  g_x = g_y\n}\n",
        &["E0907", "covers no instance"],
    );
}

/// `axis` is a list of axes for `mean` and one axis for `concat`.
#[test]
fn definitions_that_have_no_value_are_refused() {
    let pair = "/// D.\ndef pair(a, b, axis = -1) {\n  => mean(concat(a, b, axis=axis), axis)\n}\n";
    refuses(pair, &["E0907", "`pair`", "no call of it was found", "example"]);
    // A shape that nobody would guess is shown by an example.
    let seven = |example: &str| {
        format!("/// D.\ndef seven(x, w) {{\n  where shape(x) == [1, 7]\n  => matmul(x, w)\n{example}}}\n")
    };
    refuses(&seven(""), &["E0907", "`seven`"]);
    let row = |v: &str| [v; 7].join(", ");
    accepts(&seven(&format!("  example seven([[{}]], [{}]) == [[7.0]]\n", row("1.0"), row("[1.0]"))));
}

/// Integers are drawn within a domain too, and the first element that differs is the one shown.
#[test]
fn domains_hold_for_integers() {
    let rule = |domain: &str| format!("/// D.\nrewrite r [exact] {{\n  abs(x) => {domain}\n}}\n");
    accepts(&rule("x\n  where dtype(x) == I64\n  domain x > 2.0"));
    accepts(&rule("-x\n  where dtype(x) == I64\n  domain x < 0.5 && x > -4.5"));
    refuses(&rule("x + x\n  where dtype(x) == I64\n  domain x >= 7.0"), &["E0904", "this is ", "x = "]);
}

/// Without its attributes a point cannot be told again.
#[test]
fn counterexamples_show_attributes() {
    refuses(
        "/// D.\nvjp softmax {\n  y = softmax(x, axis)\n  ---\n  g_x = y * g_y\n}\n",
        &["E0902", "at element", ", axis = "],
    );
    refuses(
        "/// D.\nrewrite r [exact] {\n  sum(x, axis, keepdims=true) => max(x, axis, keepdims=true)\n}\n",
        &["E0904", ", axis = ["],
    );
    refuses("/// D.\ndef f(x, n = 3) {\n  => exp(x * n) / exp(x * n)\n}\n", &["E0905", ", n = "]);
}

#[test]
fn definitions_must_not_overflow_on_the_way() {
    refuses("/// D.\ndef soft(x) {\n  => log(1.0 + exp(x))\n}\n", &["E0905", "overflows on the way"]);
    accepts("/// D.\ndef soft(x) {\n  => maximum(x, 0.0) + log1p(exp(-abs(x)))\n}\n");
}

#[test]
fn definitions_have_the_derivative_of_their_value_unless_they_say_otherwise() {
    let held = |lines: &str| format!("/// D.\ndef held(x) {{\n  => x * stop_gradient(x)\n{lines}}}\n");
    refuses(&held(""), &["E0902", "the derivative of `held`", "not_a_derivative"]);
    accepts(&held("  not_a_derivative\n  example held(3.0) == 9.0\n"));
    refuses(&held("  not_a_derivative\n  example held(3.0) == 8.0\n"), &["E0906", "9.0 is not 8.0"]);
}

#[test]
fn candidates_take_the_place_of_loaded_rules() {
    let place = directory(&[("r.rules", &vjp("exp", "g_x = y * g_y"))]);
    let outcome = kina(place.path(), "rules check r.rules --no-cache");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("E0419") && outcome.stderr.contains("override"), "{outcome:?}");
    // Said with `override` it is what can be loaded, and there is nothing to say; where it replaces nothing there is.
    let overriding = directory(&[("r.rules", vjp("exp", "g_x = y * g_y").replace("vjp exp", "override vjp exp"))]);
    let outcome = kina(overriding.path(), "rules check r.rules --no-cache");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    let outcome = kina(overriding.path(), "rules check r.rules --no-cache --profile phase1");
    assert!(outcome.code == Some(0) && outcome.stderr.contains("replaces nothing"), "{outcome:?}");
    // The same text is no news.
    let outcome = kina(place.path(), "rules list");
    assert_eq!(outcome.code, Some(0));
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let outcome = kina(root, "rules check rules/phase1.rules --no-cache");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    assert_eq!(outcome.stdout.matches("verified  vjp").count(), 14, "{outcome:?}");
}

#[test]
fn verdicts_do_not_depend_on_threads_and_are_kept() {
    let place = directory(&[("r.rules", &vjp("exp", "g_x = y * g_y"))]);
    let one = kina(place.path(), "rules check r.rules --no-cache --threads 1 --json");
    let two = kina(place.path(), "rules check r.rules --no-cache --threads 2 --json");
    assert_eq!(one.stdout, two.stdout);
    let verdict: serde_json::Value = serde_json::from_str(&one.stdout).unwrap();
    assert_eq!(verdict["passed"], true);
    assert_eq!(verdict["rules"][0]["name"], "exp");
    assert!(verdict["rules"][0]["points"].as_u64().unwrap() >= 100);

    // A verdict is known by the content of what it depends on.
    let session =
        Session::new(&RuleOptions { candidates: vec![place.path().join("r.rules")], ..RuleOptions::default() })
            .unwrap();
    let file = place.path().join("verdicts.json");
    let run = || {
        let mut cache = Cache::at(&file);
        let report = session.verify(&Options::default(), &mut cache);
        cache.save();
        report
    };
    let first = run();
    assert!(!first.verdicts[0].cached);
    let second = run();
    assert!(second.verdicts[0].cached);
    assert_eq!(first.verdicts[0].line(), second.verdicts[0].line());
    assert_eq!(first.summary(), second.summary(), "what is known is told as if it were new");
    assert!(second.programs > 30 && second.nodes > 1_000);
    // A file that is no cache is one that knows nothing.
    std::fs::write(&file, "nonsense").unwrap();
    assert!(!run().verdicts[0].cached);
}

/// Measured errors differ between machines; what stands around them does not.
fn without_figures(text: &str) -> Vec<String> {
    let cells = |line: &str| {
        line.split('|')
            .map(|c| if c.contains("<= ") || c.contains("nearest") { "*" } else { c })
            .collect::<Vec<_>>()
            .join("|")
    };
    text.lines().map(|line| if line.starts_with('|') { cells(line) } else { line.to_owned() }).collect()
}

#[test]
fn the_reference_of_operators_is_current() {
    let (session, report) = embedded();
    let current = kina_ad::verify::document::operators(&session.rules, &session.sources, report);
    let file = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operators.md")).unwrap_or_default();
    let (wanted, found) = (without_figures(&current), without_figures(&file));
    if let Some(line) =
        wanted.iter().zip(&found).find(|(a, b)| a != b).map(|(a, b)| format!("{a}\nis documented as\n{b}"))
    {
        panic!("docs/operators.md is not current; `kina-ad rules coverage --format markdown` prints it:\n{line}");
    }
    assert_eq!(wanted.len(), found.len(), "`kina-ad rules coverage --format markdown` prints docs/operators.md");
}

/// Verdicts come again after every change of the file.
#[test]
fn watching_checks_again_when_a_file_changes() {
    use std::io::{BufRead, BufReader};
    let place = directory(&[("r.rules", &vjp("tanh", "g_x = g_y * (1.0 - y)"))]);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_kina-ad"))
        .args(["rules", "check", "r.rules", "--watch", "--no-cache"])
        .current_dir(place.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let first = lines.find(|l| l.contains(" tanh ")).unwrap();
    assert!(first.starts_with("REFUSED"), "{first}");
    std::fs::write(place.path().join("r.rules"), vjp("tanh", "g_x = g_y * ((1.0 - y) * (1.0 + y))")).unwrap();
    let second = lines.find(|l| l.contains(" tanh ")).unwrap();
    assert!(second.starts_with("verified"), "{second}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn coverage_says_of_every_operator_what_its_derivative_is_worth() {
    let place = directory::<&str>(&[]);
    let text = kina(place.path(), "rules coverage").ok();
    let line = |name: &str| {
        text.lines().find(|l| l.split_whitespace().next() == Some(name)).unwrap_or_else(|| panic!("{name}"))
    };
    assert!(line("tanh").contains("all orders") && line("tanh").contains("verified"), "{}", line("tanh"));
    assert!(line("argmax").contains("nothing to differentiate"));
    assert!(line("stop_gradient").contains("by intent"));
    assert!(line("nll").contains("through its definition") && line("nll").contains("verified"));
    let phase1 = kina(place.path(), "rules coverage --profile phase1").ok();
    assert!(phase1.lines().any(|l| l.starts_with("exp ") && l.contains("no VJP")), "{phase1}");
    assert!(phase1.lines().any(|l| l.starts_with("log_softmax ") && l.contains("until `exp`")), "{phase1}");
    let json: serde_json::Value = serde_json::from_str(&kina(place.path(), "rules coverage --json").ok()).unwrap();
    let operators = json["operators"].as_array().unwrap();
    assert!(operators.len() > 80, "{}", operators.len());
    assert!(operators.iter().all(|o| o["verdict"] != "refused"));
}
