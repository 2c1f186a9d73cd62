//! Commands in the documentation are run, and what they print is compared.

use std::path::Path;
use std::process::Command;

use kina_ad::ir::Registry;
use kina_ad::ir::operator::Visibility;
use kina_ad::syntax::Form;
use kina_ad::{CheckOptions, RuleOptions, Session};

/// The `$ ..` commands of a Markdown text with the output that stands below each.
fn sessions(text: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside {
            match (line.strip_prefix("$ "), out.last_mut()) {
                (Some(command), _) => out.push((command.to_owned(), String::new())),
                (None, Some((_, output))) => {
                    output.push_str(line);
                    output.push('\n');
                }
                (None, None) => panic!("output without a command: {line}"),
            }
        }
    }
    out
}

#[test]
fn what_the_documentation_shows_is_what_happens() {
    let root = env!("CARGO_MANIFEST_DIR");
    for (file, least) in [("README.md", 2), ("docs/syntax.md", 2)] {
        let text = std::fs::read_to_string(format!("{root}/{file}")).unwrap();
        let mut checked = 0;
        // Files that the text shows by `cat` are the ones its commands then work on.
        let shown = tempfile::tempdir().unwrap();
        let mut directory = Path::new(root);
        for (command, expected) in sessions(&text) {
            if let Some(name) = command.strip_prefix("cat ") {
                std::fs::write(shown.path().join(name), expected).unwrap();
                directory = shown.path();
                continue;
            }
            let Some(arguments) = command.strip_prefix("kina-ad ").or_else(|| command.strip_prefix("./x ")) else {
                panic!("{file}: only kina-ad and ./x are run: {command}");
            };
            // `./x test` is what runs this test.
            if command == "./x test" {
                continue;
            }
            let mut arguments: Vec<&str> = arguments.split_whitespace().collect();
            if cfg!(not(feature = "codegen")) && arguments[0] == "run" {
                arguments.push("--interpret");
            }
            let output =
                Command::new(env!("CARGO_BIN_EXE_kina-ad")).args(&arguments).current_dir(directory).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
            assert_eq!(printed.trim_end(), expected.trim_end(), "{file}: {command}");
            checked += 1;
        }
        assert!(checked >= least, "{file}: only {checked} commands were found");
    }
}

/// The fenced blocks of a Markdown text, with the language of each.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(_) if inside => inside = false,
            Some(language) => {
                inside = true;
                out.push((language.to_owned(), String::new()));
            }
            None if inside => {
                let (_, block) = out.last_mut().unwrap();
                block.push_str(line);
                block.push('\n');
            }
            None => {}
        }
    }
    assert!(!inside);
    out
}

#[test]
fn examples_of_the_syntax_check_and_turn_into_each_other() {
    let text = std::fs::read_to_string(format!("{}/docs/syntax.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let examples: Vec<(String, String)> =
        blocks(&text).into_iter().filter(|(language, _)| language != "console").collect();
    assert!(examples.len() >= 8 && examples.len().is_multiple_of(2));
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    for pair in examples.chunks(2) {
        let [(first, kina), (second, sexpr)] = pair else { panic!("{pair:?}") };
        assert_eq!((first.as_str(), second.as_str()), ("kina", "lisp"));
        for text in [kina, sexpr] {
            let program = session.parse("example", text).unwrap();
            session.check_tree(&program, &CheckOptions::default()).unwrap();
            assert_eq!(&session.print(&program, Form::Kina), kina);
            assert_eq!(&session.print(&program, Form::Sexpr), sexpr);
        }
    }
}

/// The rows `| first | second | ..` of the tables in a Markdown text.
fn rows(text: &str) -> Vec<Vec<String>> {
    let rows = text.lines().filter_map(|l| l.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|r| r.replace("\\|", "\u{0}").split(" | ").map(|c| c.replace('\u{0}', "|")).collect()).collect()
}

#[test]
fn every_operator_is_documented() {
    let text = std::fs::read_to_string(format!("{}/docs/syntax.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let documented = rows(text.split_once("## Operators").unwrap().1.split_once("\n## ").unwrap().0);
    let registry = Registry::builtin();
    let surface = registry.iter().filter(|(_, op)| op.visibility() == Visibility::Surface);
    let operators = surface.map(|(_, op)| vec![format!("`{}{}`", op.name(), op.signature()), op.doc().to_owned()]);
    let expected: Vec<Vec<String>> =
        [vec!["operator".to_owned(), "value".to_owned()]].into_iter().chain(operators).collect();
    assert_eq!(documented, expected, "the table of operators in docs/syntax.md");
}

/// The two columns of the table of forms say the same.
#[test]
fn the_table_of_forms_is_true() {
    let text = std::fs::read_to_string(format!("{}/docs/syntax.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let table = rows(text.split_once("form by form").unwrap().1.split_once("\n## ").unwrap().0);
    let ty = |text: &str, real: &str| text.replace(" type", &format!(" {real}"));
    let mut checked = 0;
    for row in &table[2..] {
        let [sexprs, kinas] = row.as_slice() else { panic!("{row:?}") };
        let codes = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        // The first row of operators has one for all of them.
        for (sexpr, kina) in codes(sexprs).iter().zip(&codes(kinas)) {
            if kina == "// comment" {
                continue;
            }
            let sexpr = format!("(program {})", ty(sexpr, "(tensor F32 [2] @host)"));
            let kina = ty(kina, "tensor<F32, [2], @host>");
            let mut session = Session::new(&RuleOptions::default()).unwrap();
            let a = session.parse("s", &sexpr).unwrap();
            let b = session.parse("k", &kina).unwrap();
            assert_eq!(session.print(&a, Form::Kina), session.print(&b, Form::Kina), "{sexpr}");
            checked += 1;
        }
    }
    assert!(checked >= 12, "{checked}");
}
