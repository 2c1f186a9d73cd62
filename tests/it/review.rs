//! `kina-ad snapshot`: what is accepted, what is refused, and what a changed snapshot says.

use std::path::Path;

use kina_ad::diagnostics::SourceMap;
use kina_ad::ir::print::{PrintOptions, Printer};
use kina_ad::review::parse::{Reader, record};
use kina_ad::review::record::Record;
use kina_ad::review::snapshot::Snapshot;
use kina_ad::{CheckOptions, Level, RuleOptions, Session};

use crate::support::{directory, kina};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

const WAVE: &str = "let f = fn(x: tensor<F32, [4], @host>) -> tensor<F32, [], @host> {
  let a = x.exp() in
  let b = a.tanh() in
  b.sum()
} in
let x = tensor<F32, [4], @host> in
handle f(x) with reverseMode
";

const WRONG_EXP: &str = "/// The sign is wrong.
override vjp exp {
  y = exp(x)
  ----------
  g_x = -(g_y * y)
}
";

fn read(place: &tempfile::TempDir, name: &str) -> String {
    std::fs::read_to_string(place.path().join(name)).unwrap()
}

#[test]
fn a_snapshot_is_missing_then_accepted_then_the_same() {
    let place = directory(&[("b.kina", WAVE), ("a.kina", "let x = tensor<F32, [2], @host> in\nx.exp()\n")]);
    let missing = kina(place.path(), "snapshot check");
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert_eq!(missing.stdout, "missing    ./a.kina\nmissing    ./b.kina\n2 programs: 2 missing\n");
    assert!(missing.stderr.contains("error[E0913]: there is no snapshot of `./a.kina`, `./b.kina`"), "{missing:?}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2, "a check writes nothing");

    let said = kina(place.path(), "snapshot accept a.kina b.kina").ok();
    assert!(said.starts_with("accepted   a.kina\n") && said.ends_with("2 programs: 2 accepted\n"), "{said}");
    let text = read(&place, "b.snap");
    let hash = kina(place.path(), "rules list").ok();
    for line in [
        "kina-ad snapshot 1",
        "program    b.kina",
        "level      -O2",
        "cotangent  ones",
        "seed       0",
        "inputs",
        "  primal     = sum_",
        "gradient check",
        "  g_x: worst relative error <= 1e-6 (4 of 4 compared): passed",
        "rewriting check",
        "  g_x: worst relative difference <= 1e-6 (4 elements): passed",
    ] {
        assert!(text.lines().any(|l| l.starts_with(line)), "{line} in\n{text}");
    }
    assert!(text.contains(&format!("rules      {}\n", hash.trim_end().rsplit(' ').next().unwrap())), "{text}");
    // The graph, cost and bytes are what `grad` prints.
    let grad = kina(place.path(), "grad b.kina").ok();
    let graph = grad.split_once("e-graph ").unwrap().0;
    assert!(text.contains(graph), "{text}\n{grad}");
    let peak = kina(place.path(), "emit b.kina --stage schedule").ok();
    let peak = peak.split_once("\npeak ").unwrap().1.split(' ').next().unwrap();
    assert!(text.contains(&format!("\npeak   {peak}\n")), "{text}");
    assert!(
        read(&place, "a.snap").contains("gradient check\n  the program has no gradient\nrewriting check\n  result: ")
    );

    assert_eq!(
        kina(place.path(), "snapshot check").ok(),
        "same       ./a.kina\nsame       ./b.kina\n2 programs: 2 same\n"
    );
    let again = kina(place.path(), "snapshot accept b.kina").ok();
    assert_eq!(again, "unchanged  b.kina\n1 program: 1 unchanged\n");
    // Wherever it is called from.
    let parent = place.path().parent().unwrap();
    let name = place.path().file_name().unwrap().to_str().unwrap();
    assert!(kina(parent, &format!("snapshot check {name}")).ok().ends_with("2 programs: 2 same\n"));
}

#[test]
fn names_lines_and_rules_that_do_nothing_here_leave_a_snapshot_as_it_is() {
    let place = directory(&[("w.kina", WAVE)]);
    kina(place.path(), "snapshot accept w.kina").ok();
    let renamed = WAVE.replace("let a = ", "\n\n// the first\nlet grown = ").replace("a.tanh()", "grown.tanh()");
    std::fs::write(place.path().join("w.kina"), renamed).unwrap();
    assert_eq!(kina(place.path(), "snapshot check w.kina").ok(), "same       w.kina\n1 program: 1 same\n");
    let unused =
        "/// Over the reals.\nrewrite circle [real] {\n  sin(x) * sin(x) + cos(x) * cos(x) => splat(1.0, type(x))\n}\n";
    std::fs::write(place.path().join("more.rules"), unused).unwrap();
    let said = kina(place.path(), "snapshot check w.kina --rules more.rules").ok();
    assert!(said.starts_with("same       w.kina\n  rule set: ") && said.contains(" -> "), "{said}");
}

#[test]
fn a_changed_rule_is_shown_by_meaning() {
    let place = directory(&[("w.kina", WAVE)]);
    kina(place.path(), "snapshot accept w.kina").ok();
    let before = read(&place, "w.snap");
    let other = "/// In other words.\noverride vjp exp {\n  y = exp(x)\n  ----------\n  g_x = sin(g_y) * y\n}\n";
    std::fs::write(place.path().join("other.rules"), other).unwrap();
    let outcome = kina(place.path(), "snapshot check w.kina --rules other.rules");
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("error[E0914]: not as in the snapshot: `w.kina`"), "{outcome:?}");
    let said = &outcome.stdout;
    assert!(said.starts_with("different  w.kina\n  rule set: "), "{said}");
    assert!(said.contains("// other.rules:2 vjp exp, for a\n"), "{said}");
    assert!(said.contains(" -> ") && said.contains("%)\n"), "{said}");
    assert!(said.contains("  - g_x: worst relative error <= 1e-6 (4 of 4 compared): passed\n"), "{said}");
    assert!(said.contains("  + g_x: worst relative error > 1e-1"), "{said}");
    assert_eq!(read(&place, "w.snap"), before, "a check writes nothing");
}

#[test]
fn a_failing_gradient_check_is_accepted_only_on_request_and_recorded() {
    let place = directory(&[("w.kina", WAVE), ("wrong.rules", WRONG_EXP)]);
    let refused = kina(place.path(), "snapshot accept w.kina --rules wrong.rules");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("error[E0916]: `w.kina` may not be accepted: a check fails"), "{refused:?}");
    assert!(
        refused.stderr.contains("g_x: worst relative error > 1e-1 (4 of 4 compared, worst at element "),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("--even-if-wrong"), "{refused:?}");
    assert!(refused.stdout.starts_with("refused    w.kina\n"), "{refused:?}");
    assert!(!place.path().join("w.snap").exists());
    // What was accepted before stays.
    kina(place.path(), "snapshot accept w.kina").ok();
    let right = read(&place, "w.snap");
    assert_eq!(kina(place.path(), "snapshot accept w.kina --rules wrong.rules").code, Some(1));
    assert_eq!(read(&place, "w.snap"), right);

    let accepted = kina(place.path(), "snapshot accept w.kina --rules wrong.rules --even-if-wrong").ok();
    assert!(accepted.starts_with("accepted   w.kina\n"), "{accepted}");
    let wrong = read(&place, "w.snap");
    assert!(wrong.contains(": FAILED\n") && wrong.contains("\naccepted although a check failed\n"), "{wrong}");
    let check = kina(place.path(), "snapshot check w.kina --rules wrong.rules");
    assert_eq!(check.code, Some(0), "{check:?}");
    assert!(check.stderr.contains("warning[E0919]: `w.snap` was accepted although a check failed"), "{check:?}");
    assert!(check.stderr.contains("FAILED"), "{check:?}");
    // The mended rule is a difference, and accepting it takes the mark away.
    assert_eq!(kina(place.path(), "snapshot check w.kina").code, Some(1));
    kina(place.path(), "snapshot accept w.kina").ok();
    assert_eq!(read(&place, "w.snap"), right);
}

/// The check of gradients alone would let these pass.
#[test]
fn a_wrong_rewrite_may_not_be_accepted() {
    let wrong = "/// Off.\nrewrite tanh_is_near_x [real] {\n  tanh(x) => x * 1.0\n}\n";
    let place = directory(&[("w.kina", WAVE), ("wrong.rules", wrong)]);
    let refused = kina(place.path(), "snapshot accept w.kina --rules wrong.rules");
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("E0916") && refused.stderr.contains("primal: worst relative difference > 1e-"),
        "{refused:?}"
    );
    // At -O0 nothing is rewritten.
    kina(place.path(), "snapshot accept w.kina --rules wrong.rules -O0").ok();
}

#[test]
fn what_is_not_checked_says_so() {
    let place = directory(&[("w.kina", WAVE), ("wrong.rules", WRONG_EXP)]);
    kina(place.path(), "snapshot accept w.kina --no-check --rules wrong.rules").ok();
    let text = read(&place, "w.snap");
    assert!(text.contains("gradient check\n  not checked, as was asked for\n"), "{text}");
    assert!(!text.contains("although"), "{text}");
    let check = kina(place.path(), "snapshot check w.kina --rules wrong.rules");
    assert_eq!(check.code, Some(0), "{check:?}");
    assert!(check.stderr.contains("warning[E0919]: `w.snap` was accepted unchecked"), "{check:?}");
    // Accepting again checks, unless asked not to.
    assert_eq!(kina(place.path(), "snapshot accept w.kina --rules wrong.rules").code, Some(1));
    // A check without numbers of a snapshot with them.
    kina(place.path(), "snapshot accept w.kina").ok();
    assert_eq!(kina(place.path(), "snapshot check w.kina --no-check").ok(), "same       w.kina\n1 program: 1 same\n");

    // Nothing to compare is no pass: the inputs make every element NaN.
    let nan = "let f = fn(x: tensor<F32, [4], @host>) { (-(x * x)).log().sum() } in\n\
               let x = tensor<F32, [4], @host> in\nhandle f(x) with reverseMode\n";
    std::fs::write(place.path().join("nan.kina"), nan).unwrap();
    let refused = kina(place.path(), "snapshot accept nan.kina");
    assert!(refused.code == Some(1) && refused.stderr.contains("not checked: the "), "{refused:?}");
    let trap = "let v = tensor<F32, [1, 4], @host> in\nlet i = tensor<I64, [1], @host> in\nlet j = i + 100 in\n\
                v.take_along_axis(j, axis=1)\n";
    std::fs::write(place.path().join("trap.kina"), trap).unwrap();
    let refused = kina(place.path(), "snapshot accept trap.kina");
    assert!(refused.code == Some(1) && refused.stderr.contains("a trap at the generated inputs"), "{refused:?}");
    kina(place.path(), "snapshot accept trap.kina --even-if-wrong").ok();
    assert_eq!(kina(place.path(), "snapshot check trap.kina").code, Some(0));
}

#[test]
fn settings_are_those_of_the_snapshot() {
    let place = directory(&[("w.kina", WAVE)]);
    kina(place.path(), "snapshot accept w.kina -O0 --cotangent input --seed 7").ok();
    let text = read(&place, "w.snap");
    assert!(text.contains("level      -O0\ncotangent  input\nseed       7\n") && !text.contains("cost "), "{text}");
    kina(place.path(), "snapshot check w.kina").ok();
    kina(place.path(), "snapshot accept w.kina").ok();
    assert_eq!(read(&place, "w.snap"), text);
    let said = kina(place.path(), "snapshot check w.kina -O2");
    assert!(said.code == Some(1) && said.stdout.contains("  level: -O0 -> -O2\n"), "{said:?}");
    let said = kina(place.path(), "snapshot check w.kina --seed 8").ok();
    assert!(said.contains("  seed: 7 -> 8\n"), "{said}");
}

#[test]
fn snapshots_that_were_tampered_with_are_refused_and_stay() {
    let place = directory(&[("w.kina", WAVE)]);
    kina(place.path(), "snapshot accept w.kina").ok();
    let right = read(&place, "w.snap");
    let damages: Vec<(String, &str)> = vec![
        (right.replace("<= 1e-6 (4 of 4", "<= 1e-3 (4 of 4"), "it was edited or merged"),
        (right.replace("exp(x)", "sin(x)"), "it was edited or merged"),
        (right.replace("exp(x)", "exp(y)"), "there is no value `y` above"),
        (right.replace("kina-ad snapshot 1", "kina-ad snapshot 2"), "this kina-ad reads version 1"),
        (right.replace("inputs\n", "<<<<<<< HEAD\ninputs\n"), "a line that begins with `inputs` is missing here"),
        (right[..right.len() / 2].to_owned(), "w.snap:"),
        (format!("{right}more\n"), "nothing stands after the last line"),
        (right.replace("bytes  ", "bytes  x"), "is not a number"),
        ("kina-ad snapshot 1\n".to_owned(), "a line that begins with `program` is missing here"),
    ];
    for (text, said) in damages {
        assert_ne!(text, right);
        std::fs::write(place.path().join("w.snap"), &text).unwrap();
        let refused = kina(place.path(), "snapshot check w.kina");
        assert_eq!(refused.code, Some(1), "{refused:?}");
        for words in ["error[E0915]: `w.snap` cannot be used", "w.snap:", said, "kina-ad snapshot accept"] {
            assert!(refused.stderr.contains(words), "{words}: {refused:?}");
        }
        assert_eq!(refused.stdout, "refused    w.kina\n1 program: 1 refused\n");
        assert_eq!(read(&place, "w.snap"), text, "a check writes nothing");
    }
    // Accepting mends it.
    assert!(kina(place.path(), "snapshot accept w.kina").ok().contains("could not be read"));
    assert_eq!(read(&place, "w.snap"), right);
    // Line ends are a matter of the version control.
    std::fs::write(place.path().join("w.snap"), right.replace('\n', "\r\n")).unwrap();
    kina(place.path(), "snapshot check w.kina").ok();

    // Somebody else's files are left alone by both.
    let foreign: [&[u8]; 3] = [b"---\nsource: tests/it/snapshots.rs\n---\n", b"", b"\xFF\xFE\x00"];
    for (text, code) in foreign.iter().zip(["E0915", "E0915", "E0110"]) {
        std::fs::write(place.path().join("w.snap"), text).unwrap();
        for command in ["check", "accept", "accept --even-if-wrong"] {
            let refused = kina(place.path(), &format!("snapshot {command} w.kina"));
            assert!(refused.code == Some(1) && refused.stderr.contains(code), "{refused:?}");
        }
        assert_eq!(std::fs::read(place.path().join("w.snap")).unwrap(), *text);
    }
}

#[test]
fn directories_are_walked_by_name_and_what_is_amiss_is_said() {
    let place = directory(&[("z.kina", WAVE), ("bad.kina", "let x = "), ("note.txt", "")]);
    let path = |name: &str| place.path().join(name);
    for name in ["sub", "sub/deep", "sub/empty", ".hidden"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    for name in ["sub/b.kina", "sub/deep/a.kina", ".hidden/no.kina"] {
        std::fs::write(path(name), WAVE).unwrap();
    }
    std::os::unix::fs::symlink("..", path("sub/deep/up")).unwrap();
    let outcome = kina(place.path(), "snapshot accept .");
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let programs: Vec<&str> = outcome.stdout.lines().filter(|l| !l.starts_with(' ')).collect();
    let wanted = [
        "refused    ./bad.kina",
        "accepted   ./sub/b.kina",
        "accepted   ./sub/deep/a.kina",
        "accepted   ./z.kina",
        "4 programs: 1 refused, 3 accepted",
    ];
    assert_eq!(programs, wanted);
    assert!(outcome.stderr.contains("bad.kina:1"), "{outcome:?}");
    std::fs::remove_file(path("bad.kina")).unwrap();
    assert!(kina(place.path(), "snapshot check . sub z.kina").ok().ends_with("\n3 programs: 3 same\n"));

    kina(place.path(), "snapshot check sub/empty").stderr.contains("error[E0917]: there is no program in `sub/empty`");
    assert_eq!(kina(place.path(), "snapshot check sub/empty").code, Some(1));
    let named = kina(place.path(), "snapshot accept z.snap");
    assert!(named.code == Some(1) && named.stderr.contains("name the program instead: `z.kina`"), "{named:?}");
    // A program went, its snapshot stayed.
    std::fs::remove_file(path("sub/b.kina")).unwrap();
    let check = kina(place.path(), "snapshot check");
    assert!(
        check.code == Some(0) && check.stderr.contains("warning[E0918]: `./sub/b.snap` is the snapshot of a"),
        "{check:?}"
    );
    // Unreadable files are exit 4, and the others are looked at all the same.
    std::os::unix::fs::symlink("nowhere.kina", path("m.kina")).unwrap();
    let check = kina(place.path(), "snapshot check");
    assert!(
        check.code == Some(4) && check.stderr.contains("E0701") && check.stdout.contains("same       ./z.kina"),
        "{check:?}"
    );
    kina(place.path(), "snapshot check absent.kina --json");
    assert_eq!(kina(place.path(), "snapshot check absent.kina").code, Some(4));
    std::fs::remove_file(path("m.kina")).unwrap();
    std::fs::write(path("latin.kina"), b"let x = \xE9").unwrap();
    let check = kina(place.path(), "snapshot check latin.kina");
    assert!(check.code == Some(1) && check.stderr.contains("E0110"), "{check:?}");
    // Nothing can be written where a directory stands.
    std::fs::write(path("d.kina"), WAVE).unwrap();
    std::fs::create_dir(path("d.snap")).unwrap();
    let refused = kina(place.path(), "snapshot accept d.kina");
    assert!(refused.code == Some(1) && refused.stderr.contains("`d.snap` is not a regular file"), "{refused:?}");
}

#[test]
fn both_are_json_on_request() {
    let place = directory(&[("w.kina", WAVE), ("wrong.rules", WRONG_EXP)]);
    let accepted: serde_json::Value = serde_json::from_str(&kina(place.path(), "snapshot accept --json").ok()).unwrap();
    let first = &accepted["programs"][0];
    assert_eq!((&accepted["version"], &first["status"]), (&1.into(), &"accepted".into()));
    assert_eq!((&first["program"], &first["snapshot"]), (&"./w.kina".into(), &"./w.snap".into()));
    assert_eq!(first["now"]["rules"], accepted["rules"]);
    assert!(first["accepted"].is_null() && first["graph"].is_null());
    let outcome = kina(place.path(), "snapshot check --rules wrong.rules --json");
    assert_eq!(outcome.code, Some(1));
    let value: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let first = &value["programs"][0];
    assert_eq!((&first["status"], &first["graph"]["same"]), (&"different".into(), &false.into()));
    assert_eq!(first["accepted"]["verdict"]["passed"], true);
    assert_eq!(first["now"]["verdict"]["passed"], false);
    let messages: serde_json::Value = serde_json::from_str(&outcome.stderr).unwrap();
    assert_eq!(messages["diagnostics"][0]["code"], "E0914");
}

/// `snapshot`, `run --check` and the snapshots of this repository have the same lines.
#[test]
fn one_verdict_everywhere() {
    let root = Path::new(ROOT);
    for name in ["storylm0_nll", "storylm0_nll_mean", "mlp"] {
        let text = std::fs::read_to_string(root.join(format!("examples/{name}.kina"))).unwrap();
        let place = directory(&[("p.kina", text)]);
        kina(place.path(), "snapshot accept p.kina").ok();
        let snapshot = read(&place, "p.snap");
        let verdict = &snapshot[snapshot.find("gradient check\n").unwrap()..snapshot.find("end ").unwrap()];
        let run = kina(place.path(), "run p.kina --interpret --check").ok();
        let gradients = &run[run.find("gradient check\n").unwrap()..];
        assert!(verdict.starts_with(gradients), "{verdict}\n{gradients}");
        let kept = std::fs::read_to_string(root.join(format!("snapshots/{name}.graph.snap"))).unwrap();
        assert!(kept.contains(verdict), "{kept}\n{verdict}");
    }
}

/// The snapshot that docs/review.md shows.
#[test]
fn the_documentation_shows_a_snapshot_as_it_is() {
    let path = Path::new(ROOT).join("docs/review.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let block = |after: &str| text.split_once(after).unwrap().1.split_once("$ cat my.rules").unwrap().0;
    let place = directory(&[("wave.kina", block("$ cat wave.kina\n"))]);
    kina(place.path(), "snapshot accept wave.kina").ok();
    let snapshot = read(&place, "wave.snap");
    let (before, rest) = text.split_once("```text\n").unwrap();
    let (shown, after) = rest.split_once("```\n").unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() && shown != snapshot {
        std::fs::write(&path, format!("{before}```text\n{snapshot}```\n{after}")).unwrap();
    }
    assert_eq!(shown, snapshot, "UPDATE_DOCS=1 writes what is written");
}

/// What is printed of a graph can be read back, for every program of the examples and the regressions, at every level.
#[test]
fn graphs_survive_their_text() {
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    let mut read_back = 0;
    for directory in ["examples", "tests/regressions"] {
        for entry in std::fs::read_dir(Path::new(ROOT).join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "kina") {
                continue;
            }
            let name = path.display().to_string();
            let text = std::fs::read_to_string(&path).unwrap();
            let graph = session.check(&name, &text, &CheckOptions::default()).unwrap();
            for level in Level::ALL {
                let mut program = session.differentiate(&graph).unwrap();
                let graph = session.optimise(&mut program, level).unwrap().graph;
                let made = Record::new(&graph, &session.rules.registry, &session.sources, "");
                let printer = Printer::new(&graph, &session.rules.registry, &session.sources);
                let text = made.text();
                assert_eq!(text, printer.text(PrintOptions { origins: true }));
                let mut reader = Reader::new(&text);
                assert_eq!(record(&mut reader).unwrap(), made);
                assert!(reader.peek().is_none());
                read_back += 1;
            }
        }
    }
    assert!(read_back >= 18, "{read_back}");
}

/// Whatever stands in the place of a snapshot is refused or read, and nothing else.
#[test]
fn no_text_is_too_strange_to_be_refused() {
    let place = directory(&[("w.kina", WAVE)]);
    kina(place.path(), "snapshot accept w.kina").ok();
    let right = read(&place, "w.snap");
    let mut sources = SourceMap::new();
    assert!(Snapshot::read(&mut sources, "w.snap", &right).is_ok());
    let mut texts: Vec<String> = Vec::new();
    let lines: Vec<&str> = right.lines().collect();
    for i in 0..lines.len() {
        let without: Vec<&str> = lines.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, l)| *l).collect();
        texts.push(without.join("\n"));
        let twice: Vec<&str> = lines.iter().enumerate().flat_map(|(j, l)| vec![*l; 1 + usize::from(i == j)]).collect();
        texts.push(twice.join("\n"));
    }
    for (at, c) in right.char_indices() {
        texts.push(right[..at].to_owned());
        for other in ["", "(", "]", " = ", "é", "99999999999999999999999"] {
            texts.push(format!("{}{other}{}", &right[..at], &right[at + c.len_utf8()..]));
        }
    }
    for text in &texts {
        // The digest is of lines: a last line end more or less is none.
        if text.lines().eq(right.lines()) {
            continue;
        }
        let refused =
            Snapshot::read(&mut sources, "w.snap", text).map_err(|d| (d.code, d.primary.is_some(), d.help.len()));
        assert_eq!(refused, Err(("E0915", true, 1)), "{text}");
    }
}
