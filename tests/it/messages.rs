//! How messages leave the program: as JSON on request, and not at all into a pipe that nobody reads.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bad_input::NLL;
use crate::support::{Outcome, directory, kina, npy, npy_f32, npy_i64};

fn json(outcome: &Outcome) -> Value {
    match serde_json::from_str(&outcome.stderr) {
        Ok(value) => value,
        Err(error) => panic!("{error}: {}", outcome.stderr),
    }
}

#[test]
fn diagnostics_are_json_on_request() {
    let over = npy_i64(&[1, 4], &[9; 4]);
    let files: &[(&str, &[u8])] =
        &[("p.kina", NLL), ("over.npy", &over), ("bad.kina", b"let x = tensor<F32, [2], @host> in\nx.rleu()")];
    let place = directory(files);
    let refused = kina(place.path(), "grad bad.kina --json");
    refused.refusal(1, &[]).unwrap();
    let value = json(&refused);
    assert_eq!(value["version"], 1);
    let first = &value["diagnostics"][0];
    assert_eq!((&first["code"], &first["severity"]), (&"E0202".into(), &"error".into()));
    assert_eq!(first["help"][0], "did you mean `relu`?");
    let place_of = &first["primary"];
    assert_eq!(
        (&place_of["file"], &place_of["line"], &place_of["column"], &place_of["start"], &place_of["end"]),
        (&"bad.kina".into(), &2.into(), &3.into(), &37.into(), &41.into())
    );
}

/// The keys of the object in the documentation, and of each place in it.
fn documented_keys() -> [BTreeSet<String>; 3] {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/diagnostics.md")).unwrap();
    let example = text.split_once("```json\n").unwrap().1.split_once("```").unwrap().0;
    let value: Value = serde_json::from_str(example).unwrap();
    let diagnostic = &value["diagnostics"][0];
    [keys(&value), keys(diagnostic), keys(&diagnostic["primary"])]
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().map(|o| o.keys().cloned().collect()).unwrap_or_default()
}

/// Every way to fail but wrong usage, each as JSON of the documented form.
#[test]
fn every_failure_is_json_on_request() {
    let over = npy_i64(&[1, 4], &[9; 4]);
    let short = npy_f32(&[2], &[1.0, 2.0]);
    let complex = npy("<c8", &[1, 4, 8], &[0; 256]);
    let exp = b"let f = fn(x: tensor<F32, [2], @host>) { x.exp() } in\nlet x = tensor<F32, [2], @host> in\n\
                handle f(x) with reverseMode";
    let wrong_rule = b"/// d\noverride vjp exp {\n  y = exp(x)\n  ---\n  g_x = g_y\n}\n";
    let files: &[(&str, &[u8])] = &[
        ("p.kina", NLL),
        ("exp.kina", exp),
        ("syntax.kina", b"let x = in\nlet y = + in x"),
        ("list.kina", b"(program (+ 1))"),
        ("types.kina", b"let x = tensor<F32, [2], @host> in x.sum(axis=7)"),
        ("utf16.kina", b"\xFF\xFEl\0e\0t\0"),
        ("over.npy", &over),
        ("short.npy", &short),
        ("complex.npy", &complex),
        ("damaged.npz", b"PK\x03\x04"),
        ("wrong.rules", wrong_rule),
        ("syntax.rules", b"/// d\nvjp {\n"),
        ("latin1.rules", b"/// \xE9\n"),
        ("names.rules", b"/// d\noverride vjp exp {\n  y = exp(x)\n  ---\n  g_x = g_z\n}\n"),
        ("imports.rules", b"import \"absent.rules\""),
        ("duplicate.rules", b"/// d\nvjp exp {\n  y = exp(x)\n  ---\n  g_x = g_y\n}\n"),
    ];
    let place = directory(files);
    let [top, each, label] = documented_keys();
    for (command, exit, code) in [
        ("run p.kina --interpret --input targets=over.npy", 3, "E0801"),
        ("run exp.kina --interpret --check --rules wrong.rules", 1, "E0901"),
        ("run absent.kina", 4, "E0701"),
        ("grad .", 4, "E0701"),
        ("run p.kina --input logits=absent.npy", 4, "E0701"),
        ("run p.kina --inputs absent.npz", 4, "E0701"),
        ("run p.kina --inputs damaged.npz", 1, "E0707"),
        ("run p.kina --input logits=short.npy", 1, "E0708"),
        ("run p.kina --input logits=complex.npy", 1, "E0704"),
        ("run p.kina --input nothing=short.npy", 1, "E0709"),
        ("run p.kina --interpret --output absent/x.npz", 4, "E0702"),
        ("emit p.kina --stage graph -o absent/graph.txt", 4, "E0702"),
        ("emit p.kina --stage schedule --format sexpr", 1, "E0603"),
        ("grad syntax.kina", 1, "E0101"),
        ("grad list.kina", 1, "E0111"),
        ("grad types.kina", 1, "E0304"),
        ("emit utf16.kina --stage program", 1, "E0110"),
        ("grad exp.kina --profile phase1", 1, "E0501"),
        ("grad p.kina --rules absent.rules", 4, "E0701"),
        ("grad p.kina --rules syntax.rules", 1, "E0101"),
        ("grad p.kina --rules latin1.rules", 1, "E0110"),
        ("grad p.kina --rules names.rules", 1, "E0401"),
        ("grad p.kina --rules imports.rules", 4, "E0701"),
        ("grad p.kina --rules duplicate.rules", 1, "E0406"),
        ("rules show nothing_like_it", 1, "E0402"),
        ("rules list --rules absent.rules", 4, "E0701"),
    ] {
        let outcome = kina(place.path(), &format!("{command} --json"));
        assert_eq!(outcome.code, Some(exit), "{command}: {outcome:?}");
        let value = json(&outcome);
        assert_eq!((keys(&value), &value["version"]), (top.clone(), &1.into()), "{command}");
        let diagnostics = value["diagnostics"].as_array().unwrap();
        assert_eq!(diagnostics[0]["code"], code, "{command}: {value:#}");
        for diagnostic in diagnostics {
            assert_eq!(keys(diagnostic), each, "{command}");
            let secondary = diagnostic["secondary"].as_array().unwrap();
            for place in std::iter::once(&diagnostic["primary"]).filter(|p| !p.is_null()).chain(secondary) {
                assert_eq!(keys(place), label, "{command}");
            }
            assert!(!diagnostic["help"].as_array().unwrap().is_empty(), "no way out: {command}: {diagnostic:#}");
        }
        // The same as text, and on stdout nothing but data.
        let text = kina(place.path(), command);
        assert_eq!(text.code, Some(exit), "{command}");
        assert!(text.stderr.starts_with(&format!("error[{code}]")), "{command}: {}", text.stderr);
        if code != "E0901" {
            assert!(outcome.stdout.is_empty() && text.stdout.is_empty(), "{command}: {outcome:?}");
        }
    }
}

/// A failed check has its numbers on stdout, as JSON too.
#[test]
fn a_failed_check_is_data_and_a_message() {
    let program = "let f = fn(x: tensor<F32, [2], @host>) { x.exp() } in\nlet x = tensor<F32, [2], @host> in\n\
                   handle f(x) with reverseMode";
    let rules = "/// d\noverride vjp exp {\n  y = exp(x)\n  ---\n  g_x = g_y\n}\n";
    let place = directory(&[("p.kina", program), ("r.rules", rules)]);
    let command = "run p.kina --interpret --check --rules r.rules";
    let text = kina(place.path(), command);
    assert!(text.stdout.contains("g_x: worst relative error") && text.stdout.contains("FAILED"), "{text:?}");
    assert!(text.stderr.contains("error[E0901]: the gradient check failed for `g_x`"), "{text:?}");
    let outcome = kina(place.path(), &format!("{command} --json"));
    let data: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(data["check"]["passed"], false, "{outcome:?}");
}

/// Warnings and errors are one object: two would be no JSON.
#[test]
fn warnings_are_json_too() {
    let rule = "/// d\nrewrite never [exact] {\n  -(-x) => x\n  where 1 > 2\n}\n";
    let place = directory(&[
        ("p.kina", "let x = tensor<F32, [2], @host> in x"),
        ("bad.kina", "let x = tensor<F32, [2], @host> in y"),
        ("r.rules", rule),
    ]);
    let codes = |outcome: &Outcome| -> Vec<(String, String)> {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        json(outcome)["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| (text(&d["code"]), text(&d["severity"])))
            .collect()
    };
    let warned = kina(place.path(), "grad p.kina --rules r.rules --json");
    assert_eq!(warned.code, Some(0), "{warned:?}");
    assert_eq!(codes(&warned), [("E0413".into(), "warning".into())]);
    assert_eq!(json(&warned)["diagnostics"][0]["primary"]["file"], "r.rules");
    let refused = kina(place.path(), "grad p.kina --rules r.rules --json --profile phase1 -O0 --cotangent input");
    assert_eq!(codes(&refused), [("E0413".into(), "warning".into()), ("E0217".into(), "error".into())]);
    let text = kina(place.path(), "grad bad.kina --rules r.rules");
    assert!(text.stderr.contains("warning[E0413]") && text.stderr.contains("error[E0201]"), "{text:?}");
}

/// A place is the same in the text and in JSON, whatever ends the lines.
#[test]
fn places_do_not_depend_on_the_ends_of_lines() {
    let lines = ["// ünï", "let x = tensor<F32, [2], @host> in", "\tx.foo()", ""];
    for bom in ["", "\u{FEFF}"] {
        for end in ["\n", "\r\n", "\r"] {
            let place = directory(&[("p.kina", bom.to_owned() + &lines.join(end))]);
            kina(place.path(), "grad p.kina").refusal(1, &["p.kina:3:4", "x.foo()"]).unwrap();
            let value = json(&kina(place.path(), "grad p.kina --json"));
            let primary = &value["diagnostics"][0]["primary"];
            assert_eq!((&primary["line"], &primary["column"]), (&3.into(), &4.into()), "{end:?}");
        }
    }
}

/// `kina-ad .. | head -0`: the reader goes away before anything is written.
#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_quietly() {
    use std::process::{Command, Stdio};

    let place = directory(&[("p.kina", NLL)]);
    for arguments in [&["grad", "p.kina"][..], &["rules", "list"], &["run", "p.kina", "--interpret"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_kina-ad"))
            .args(arguments)
            .current_dir(place.path())
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}
