//! Commands in the documentation are run, and what they print is compared.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use kina_ad::ir::Registry;
use kina_ad::ir::operator::Visibility;
use kina_ad::rules::attributes::AttrFunction;
use kina_ad::syntax::Form;
use kina_ad::{CheckOptions, RuleOptions, Session};
use tempfile::TempDir;

use crate::support::{directory, kina};

/// A `$ ..` line of a Markdown text, and the lines below it that are what it prints.
struct Shown {
    command: String,
    output: Range<usize>,
}

/// The commands in the `console` blocks of a text.
fn commands(lines: &[&str]) -> Vec<Shown> {
    let mut out: Vec<Shown> = Vec::new();
    let mut inside = false;
    let mut begun = false;
    for (i, line) in lines.iter().enumerate() {
        if line.starts_with("```") {
            inside = *line == "```console";
            begun = false;
        } else if inside {
            match (line.strip_prefix("$ "), out.last_mut()) {
                (Some(command), _) => {
                    out.push(Shown { command: command.to_owned(), output: i + 1..i + 1 });
                    begun = true;
                }
                (None, Some(shown)) if begun => shown.output.end = i + 1,
                (None, _) => panic!("output without a command: {line}"),
            }
        }
    }
    out
}

/// Is that what a line shows? `...` in it stands for one number that differs between machines, or with every new operator.
fn shows(shown: &str, printed: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b"+-.e".contains(&b));
    let parts: Vec<&str> = shown.split("...").collect();
    let [first, rest @ ..] = parts.as_slice() else { return false };
    let Some(mut printed) = printed.strip_prefix(first) else { return false };
    for (i, part) in rest.iter().enumerate() {
        let end = if i + 1 == rest.len() { printed.len().checked_sub(part.len()) } else { printed.find(part) };
        match end {
            Some(end) if is_number(&printed[..end]) && printed[end..].starts_with(part) => {
                printed = &printed[end + part.len()..];
            }
            _ => return false,
        }
    }
    printed.is_empty()
}

/// What the commands of a text are run in.
struct Shell {
    /// Files that the text shows by `cat`, which its later commands work on.
    shown: TempDir,
    directory: PathBuf,
    status: i32,
}

impl Shell {
    /// Runs a command of the documentation: what it prints, stdout before stderr. `None` for what is not compared.
    fn run(&mut self, command: &str, shown: &str) -> Option<String> {
        if let Some(name) = command.strip_prefix("cat ") {
            std::fs::write(self.shown.path().join(name), shown).unwrap();
            self.directory = self.shown.path().to_owned();
            return None;
        }
        // `./x test` is what runs this test.
        if command == "./x test" {
            return None;
        }
        if command == "echo $?" {
            return Some(format!("{}\n", self.status));
        }
        let (command, wanted) = command.split_once(" | grep ").map_or((command, None), |(c, word)| (c, Some(word)));
        let arguments = command.strip_prefix("kina-ad ").or_else(|| command.strip_prefix("./x "));
        let arguments = arguments.unwrap_or_else(|| panic!("only kina-ad and ./x are run: {command}"));
        let mut arguments: Vec<&str> = arguments.split_whitespace().collect();
        if cfg!(not(feature = "codegen")) && arguments[0] == "run" {
            arguments.push("--interpret");
        }
        let output = Command::new(env!("CARGO_BIN_EXE_kina-ad"))
            .args(&arguments)
            .current_dir(&self.directory)
            // Verdicts of earlier runs are none of the reader's.
            .env("XDG_CACHE_HOME", self.shown.path().join(".cache"))
            .output()
            .unwrap();
        self.status = output.status.code().unwrap();
        let (data, messages) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        let kept = data.lines().filter(|line| wanted.is_none_or(|word| line.contains(word)));
        Some(kept.map(|line| format!("{line}\n")).collect::<String>() + &messages)
    }
}

/// With UPDATE_DOCS in the environment the files are written anew where they are not true; look at the difference.
#[test]
fn what_the_documentation_shows_is_what_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = [
        ("README.md", 3),
        ("docs/syntax.md", 2),
        ("docs/rules.md", 20),
        ("docs/explorer.md", 4),
        ("docs/review.md", 9),
    ];
    for (file, least) in files {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let mut shell = Shell { shown: tempfile::tempdir().unwrap(), directory: root.to_owned(), status: 0 };
        let mut checked = 0;
        let mut current: Vec<String> = Vec::new();
        let mut copied = 0;
        let mut wrong = Vec::new();
        for Shown { command, output } in commands(&lines) {
            let shown = &lines[output.clone()];
            let Some(printed) = shell.run(&command, &(shown.join("\n") + "\n")) else { continue };
            let printed: Vec<&str> = printed.trim_end().lines().collect();
            checked += 1;
            let agrees = printed.len() == shown.len() && shown.iter().zip(&printed).all(|(s, p)| s == p || shows(s, p));
            if !agrees {
                wrong.push(format!("{file}: $ {command}\n{}\nis shown as\n{}", printed.join("\n"), shown.join("\n")));
                current.extend(lines[copied..output.start].iter().map(|l| l.to_string()));
                // Elisions stay where they are still right.
                let kept = |p: &&str| shown.iter().find(|s| shows(s, p)).unwrap_or(p).to_string();
                current.extend(printed.iter().map(kept));
                copied = output.end;
            }
        }
        assert!(checked >= least, "{file}: only {checked} commands were found");
        if std::env::var_os("UPDATE_DOCS").is_some() && !wrong.is_empty() {
            current.extend(lines[copied..].iter().map(|l| l.to_string()));
            std::fs::write(root.join(file), current.join("\n") + "\n").unwrap();
        }
        assert!(wrong.is_empty(), "{}\nUPDATE_DOCS=1 writes what is printed", wrong.join("\n\n"));
    }
}

#[test]
fn an_elision_stands_for_one_number() {
    assert!(shows("... points, error <= 1e-9; ... more", "189 points, error <= 1e-9; 16.5e-3 more"));
    assert!(shows("at ...", "at -1.5e10"));
    for printed in ["at ", "at nan", "at 1 point", "at 1 2", "beat 1"] {
        assert!(!shows("at ...", printed), "{printed}");
    }
    assert!(!shows("... points", "189 point"));
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

/// Each `rules` block of docs/rules.md is a rule file: verified, or refused with the code that the block is marked with.
#[test]
fn every_rule_of_the_language_is_verified_or_refused_as_stated() {
    let text = std::fs::read_to_string(format!("{}/docs/rules.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (mut verified, mut refused) = (0, 0);
    for (language, block) in blocks(&text) {
        let Some(marks) = language.strip_prefix("rules") else { continue };
        let place = directory(&[("r.rules", &block)]);
        assert_eq!(kina(place.path(), "rules fmt --check r.rules").code, Some(0), "not formatted:\n{block}");
        let outcome = kina(place.path(), "rules check r.rules --no-cache");
        match marks.strip_prefix(" refused ") {
            Some(code) => {
                assert_eq!(outcome.code, Some(1), "{block}");
                let errors: Vec<&str> = outcome.stderr.lines().filter(|l| l.starts_with("error[")).collect();
                let one = matches!(errors.as_slice(), [error] if error.starts_with(&format!("error[{code}]")));
                assert!(one, "{code} is stated of\n{block}\n{}", outcome.stderr);
                refused += 1;
            }
            None => {
                assert_eq!(marks, "");
                assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{block}\n{}", outcome.stdout);
                verified += 1;
            }
        }
    }
    assert!(verified >= 12 && refused >= 11, "{verified} verified, {refused} refused");
}

/// The rules of which `where` lines say that expressions of the attribute language have values, and those that do not fire.
fn false_rows(rows: &[(String, String)]) -> Vec<usize> {
    let rule = |(i, (expression, value)): (usize, &(String, String))| {
        format!(
            "/// A row.\nrewrite row_{i} [exact] {{\n  -z => -z\n  x = splat(0.0, with_dtype(with_shape(type(z), [2, 3]), F32))\n  \
             where ({expression}) == ({value})\n}}\n"
        )
    };
    let place = directory(&[("r.rules", rows.iter().enumerate().map(rule).collect::<String>())]);
    let options = RuleOptions { files: vec![place.path().join("r.rules")], ..RuleOptions::default() };
    let session = Session::new(&options).unwrap_or_else(|refusal| panic!("{refusal}"));
    let idle = session.warnings.iter().map(|warning| {
        assert_eq!(warning.code, "E0413");
        let row = warning.message.split("`row_").nth(1).and_then(|rest| rest.split('`').next());
        row.unwrap().parse().unwrap()
    });
    idle.collect()
}

#[test]
fn the_attribute_language_is_what_its_table_shows() {
    let text = std::fs::read_to_string(format!("{}/docs/rules.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let section = text.split_once("## 3. ").unwrap().1.split_once("\n## ").unwrap().0;
    let code = |cell: &str| cell.trim_matches('`').to_owned();
    let table: Vec<(String, String)> = rows(section)
        .into_iter()
        .filter(|row| row.len() == 3 && row[0].starts_with('`'))
        .map(|row| (code(&row[0]), code(&row[1])))
        .collect();
    for (name, _, _) in AttrFunction::ALL {
        assert!(table.iter().any(|(e, _)| e.contains(&format!("{name}("))), "`{name}` is not in the table");
    }
    for name in ["shape", "type", "dtype", "rank", "dim"] {
        assert!(table.iter().any(|(e, _)| e.contains(&format!("{name}(x"))), "`{name}` is not in the table");
    }
    let wrong: Vec<_> = false_rows(&table).into_iter().map(|i| &table[i]).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    // A wrong row would be seen.
    assert_eq!(false_rows(&[("1 + 1".into(), "2".into()), ("len([7])".into(), "2".into())]), [1]);
}
