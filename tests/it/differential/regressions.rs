//! Programs that once showed a difference, at all levels.

use std::path::{Path, PathBuf};

use kina_ad::Session;

use super::case::input_lists;
use super::compare::{Program, WAYS};
use super::session;

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions")
}

/// Names and texts, in the order of the names.
fn programs() -> Vec<(String, String)> {
    let mut programs = Vec::new();
    for entry in std::fs::read_dir(folder()).expect("the folder of regressions") {
        let path = entry.expect("an entry of the folder").path();
        if path.extension().is_some_and(|e| e == "kina") {
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            programs.push((name, std::fs::read_to_string(path).expect("a program in UTF-8")));
        }
    }
    programs.sort();
    programs
}

fn run(session: &mut Session, text: &str) -> Result<(), String> {
    let program = Program::new(session, text).map_err(|e| e.to_string())?;
    program.agree(WAYS).map_err(|e| e.to_string())?;
    program.gradients().map(|_| ()).map_err(|e| e.to_string())
}

#[test]
fn programs_that_once_failed_agree() {
    let mut session = session(&[]);
    let programs = programs();
    assert!(programs.len() >= 2, "the regressions are not where they are looked for");
    let failures: Vec<String> = programs
        .iter()
        .filter_map(|(name, text)| run(&mut session, text).err().map(|error| format!("{name}: {error}")))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The head of a file says what the program once showed, before its inputs.
#[test]
fn every_regression_says_what_it_showed() {
    for (name, text) in programs() {
        let first = text.lines().next().and_then(|line| line.strip_prefix("// ")).unwrap_or_default();
        assert!(first.len() > 20 && !first.starts_with("input "), "{name} begins with `{first}`");
        assert!(!name.starts_with("found_"), "{name} is still to be looked into and named");
    }
}

#[test]
fn input_lists_go_on_in_indented_lines() {
    let text =
        "// says something\n// input a: 1.0, -0.0,\n//   NaN\n// input b: true\n// a remark\n//   no list\nlet a";
    assert_eq!(input_lists(text), [("a", vec!["1.0", "-0.0", "NaN"]), ("b", vec!["true"])]);
}
