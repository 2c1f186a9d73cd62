//! `rules fmt`, `rules stub`, and the hash of a rule set.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use kina_ad::diagnostics::{Style, render};
use kina_ad::rules::{Stub, stub_of};
use kina_ad::{RuleOptions, Session};

use crate::support::{directory, kina};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

const UGLY: &str = "/// d\noverride vjp tanh{ y=tanh( x ) // c\n---\n g_x=g_y\n}";
const PRETTY: &str = "/// d\noverride vjp tanh {\n  y = tanh(x)  // c\n  -----------\n  g_x = g_y\n}\n";

#[test]
fn files_are_formatted_in_place_and_only_if_all_are_without_fault() {
    let place = directory(&[("a.rules", UGLY), ("b.rules", PRETTY), ("c.txt", UGLY), ("bad.rules", "hello")]);
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    kina(place.path(), "rules fmt .").refusal(1, &["E0101", "bad.rules:1:1"]).unwrap();
    assert_eq!(read("a.rules"), UGLY, "nothing is touched where one file has a fault");
    std::fs::remove_file(place.path().join("bad.rules")).unwrap();

    let check = kina(place.path(), "rules fmt --check .");
    assert_eq!(check.code, Some(1), "{check:?}");
    assert!(check.stderr.contains("error[E0912]: not formatted: `./a.rules`"), "{check:?}");
    assert!(check.stdout.starts_with("--- ./a.rules\n+++ formatted\n"), "{check:?}");
    assert!(check.stdout.contains("\n- g_x=g_y\n") && check.stdout.contains("\n+  g_x = g_y\n"), "{check:?}");
    assert_eq!(read("a.rules"), UGLY, "a check writes nothing");

    assert_eq!(kina(place.path(), "rules fmt .").ok(), "");
    assert_eq!((read("a.rules"), read("b.rules"), read("c.txt")), (PRETTY.into(), PRETTY.into(), UGLY.into()));
    assert_eq!(kina(place.path(), "rules fmt --check . c.txt").code, Some(1));
    assert_eq!(kina(place.path(), "rules fmt --check a.rules b.rules").ok(), "");
    kina(place.path(), "rules fmt absent.rules").refusal(4, &["E0701", "absent.rules"]).unwrap();
    let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
    assert_eq!(left.len(), 3, "no temporary file is left: {left:?}");
}

#[test]
fn without_files_stdin_goes_to_stdout() {
    let run = |arguments: &[&str], text: &[u8]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kina-ad"))
            .args(["rules", "fmt"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    assert_eq!(run(&[], UGLY.as_bytes()), (Some(0), PRETTY.into(), String::new()));
    assert_eq!(run(&["--check"], PRETTY.as_bytes()), (Some(0), String::new(), String::new()));
    let (code, out, err) = run(&["--check"], UGLY.as_bytes());
    assert!(code == Some(1) && out.contains("--- stdin") && err.contains("`stdin`"), "{out} {err}");
    let (code, out, err) = run(&["--json"], b"vjp {");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&err).unwrap()["diagnostics"][0]["code"], "E0101");
    let (code, _, err) = run(&[], b"\xFF\xFE");
    assert!(code == Some(1) && err.contains("E0110"), "{err}");
}

/// Loads rules from a text beside the default ones.
fn load(text: &str) -> Result<Session, String> {
    let place = directory(&[("r.rules", text)]);
    let options = RuleOptions { files: vec![place.path().join("r.rules")], ..RuleOptions::default() };
    Session::new(&options).map_err(|refusal| refusal.render(Style::Plain))
}

/// A stub with something of the right type in every place that is to be filled in.
fn filled(stub: &Stub, operand: &[&str]) -> String {
    let mut text = stub.text.replace("TODO: say", "Said").replace("g_y * TODO", "g_y * 1.0");
    for name in operand {
        let lines = text.lines().map(|line| match line.trim_start().strip_prefix(&format!("g_{name} ")) {
            Some(_) => line.replace("= TODO", &format!("= splat(0.0, type({name}))")),
            // A variadic operand is concluded element by element.
            None => line.replace(&format!("g_{name}[i] = TODO"), &format!("g_{name}[i] = splat(0.0, type({name}[i]))")),
        });
        text = lines.map(|line| line + "\n").collect();
    }
    text
}

#[test]
fn every_stub_is_a_rule_once_it_is_filled_in() {
    let session = Session::new(&RuleOptions::default()).unwrap();
    let rules = &session.rules;
    let operators = rules.registry.iter().map(|(_, op)| op.name());
    let names: BTreeSet<&str> = operators.chain(rules.defs().map(|d| &*d.name)).collect();
    assert!(names.len() > 60, "{names:?}");
    let mut all = String::new();
    let mut to_fill = 0;
    for name in names {
        let stub = stub_of(name, rules).unwrap();
        let signature = match rules.registry.by_name(name) {
            Some((_, op)) => op.signature(),
            None => &rules.def(name).unwrap().signature,
        };
        let operands: Vec<&str> = signature.operand_names().collect();
        let text = filled(&stub, &operands);
        assert!(!text.contains("TODO"), "{text}");
        if !all.is_empty() {
            all.push('\n');
        }
        all.push_str(&text);
        let concluded = stub.text.lines().filter(|l| l.starts_with("  g_") && l.ends_with(" = none")).count();
        to_fill += operands.len() - concluded;
        assert!(stub.is_needed || concluded == operands.len(), "{}", stub.text);
        assert_eq!(stub.replaces.is_some(), stub.text.contains("\noverride vjp "), "{}", stub.text);
        // As it is, it is refused in words that say what to do.
        if concluded < operands.len() {
            let refused = load(&stub.text).unwrap_err();
            assert!(
                refused.starts_with("error[E0401]: `TODO` stands where this rule is still to be written"),
                "{refused}"
            );
            assert_eq!(refused.matches("error[").count(), operands.len() - concluded, "{refused}");
        }
    }
    assert!(to_fill > 60, "{to_fill}");
    let place = directory(&[("all.rules", &all)]);
    let session = load(&all).unwrap_or_else(|refusal| panic!("{refusal}\n{all}"));
    // Those whose results carry no cotangent cannot fire, and nothing else is said.
    for warning in session.warnings.iter() {
        assert_eq!(warning.code, "E0413", "{}", render(&session.warnings, &session.sources, Style::Plain));
    }
    assert_eq!(kina(place.path(), "rules fmt --check all.rules").ok(), "");
}

#[test]
fn a_stub_says_what_it_is_about() {
    let place = directory(&[("r.rules", "/// Twice.\ndef twice(x, times = 2.0) {\n  => times * x\n}\n")]);
    let run = |arguments: &str| kina(place.path(), &format!("rules stub {arguments}"));
    let outcome = run("take_along_axis --no-default-rules");
    assert!(outcome.stderr.is_empty(), "{outcome:?}");
    let text = outcome.ok();
    for words in [
        "vjp take_along_axis {\n  y = take_along_axis(values, indices, axis)\n  -----",
        "  // take_along_axis(values, indices, axis)\n",
        "  // values: F32",
        "  // indices: I64",
        "  g_values  = TODO\n  g_indices = none\n}\n",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let outcome = run("twice --rules r.rules");
    assert!(outcome.stderr.is_empty(), "{outcome:?}");
    assert!(
        outcome.stdout.contains("y = twice(x, times)") && outcome.stdout.contains("g_x = g_y * TODO"),
        "{outcome:?}"
    );
    let outcome = run("exp less");
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.stdout.contains("override vjp exp {") && outcome.stdout.contains("}\n\n/// TODO"), "{outcome:?}");
    for words in ["warning[E0418]: `exp` has a VJP already", "rules/elementwise.rules:", "`less` needs no VJP"] {
        assert!(outcome.stderr.contains(words), "{words}: {outcome:?}");
    }
    run("exp sofmax twise --rules r.rules")
        .refusal(1, &["E0402", "`sofmax`", "did you mean `softmax`?", "`twise`", "did you mean `twice`?"])
        .unwrap();
    run("cholesky").refusal(1, &["E0402", "`kina-ad rules list`"]).unwrap();
    assert_eq!(run("").code, Some(2));
    let value: serde_json::Value = serde_json::from_str(&run("exp --json").stdout).unwrap();
    assert_eq!(value["stubs"][0]["name"], "exp");
}

#[test]
fn the_hash_is_of_what_the_rules_say() {
    let hash = |files: &[(&str, &str)], arguments: &str| {
        let place = directory(files);
        let list = kina(place.path(), &format!("rules list {arguments}")).ok();
        let hash = list.lines().last().unwrap().strip_prefix("rules ").unwrap().to_owned();
        assert!(hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{hash}");
        let json = kina(place.path(), &format!("rules list --json {arguments}")).ok();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["hash"], hash.as_str());
        hash
    };
    let one = "/// Doc.\nvjp exp {\n  y = exp(x)\n  ----------\n  g_x = g_y * y\n}\n";
    let two = "rewrite r [exact] {\n  -(-a) => a\n}\ndef half(x) {\n  => 0.5 * x\n}\n";
    let reference = hash(&[("a.rules", one), ("b.rules", two)], "--no-default-rules --rules a.rules --rules b.rules");
    let overriding = one.replace("vjp exp", "override vjp exp");
    let same = [
        // The order of files and items, imports, layout, comments, documentation.
        (vec![("z.rules", one), ("b.rules", two)], "--no-default-rules --rules b.rules --rules z.rules"),
        (vec![("a.rules", one), ("b.rules", two)], "--no-default-rules --rules ."),
        (
            vec![("a.rules", "import \"b.rules\"\nvjp exp{y=exp(x)//\n---\n\n g_x=g_y*(y)}"), ("b.rules", two)],
            "--no-default-rules --rules a.rules",
        ),
        // An override is what counts, and not what it replaces.
        (
            vec![
                ("a.rules", "vjp exp {\n y = exp(z)\n---\n g_z = z\n}"),
                ("b.rules", two),
                ("c.rules", overriding.as_str()),
            ],
            "--no-default-rules --rules .",
        ),
    ];
    for (files, arguments) in &same {
        assert_eq!(hash(files, arguments), reference, "{files:?}");
    }
    for (from, to) in [
        ("g_y * y", "g_y * x"),
        ("g_y * y", "y * g_y"),
        ("-(-a)", "-(-(a + a))"),
        ("[exact]", "[real]"),
        ("rewrite r", "rewrite s"),
        ("0.5", "0.25"),
        ("half(x)", "half(x, a = 1)"),
        ("=> a", "=> a\n  where 1 > 0"),
        ("=> a", "<=> a * 1.0"),
        ("g_y * y\n", "g_y * y\n  kink x == 0.0: g_x = 0.0\n"),
    ] {
        let (one, two) = (one.replace(from, to), two.replace(from, to));
        let changed = hash(&[("a.rules", &one), ("b.rules", &two)], "--no-default-rules --rules .");
        assert_ne!(changed, reference, "{from} -> {to}");
    }
    // That of the default profile is part of the version.
    let version = kina(Path::new(ROOT), "--version").ok();
    assert_eq!(
        version,
        format!("kina-ad {} (rules {})\n", env!("CARGO_PKG_VERSION"), hash(&[] as &[(&str, &str)], ""))
    );
    assert_ne!(hash(&[], "--profile phase1"), hash(&[], ""));
}
