//! What a reviewer reads when a rule changes: typed program, extracted graph with its numeric verdict, schedule and
//! linalg of every example, under `snapshots/`.
//!
//! The text does not depend on the machine: paths are relative, and errors are printed as powers of ten. A run never
//! accepts a change by itself when `CI` or `INSTA_UPDATE=no` is set; `cargo insta review` shows and accepts.

use std::path::Path;

use crate::support::{directory, kina};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(Path::new(ROOT).join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn command(arguments: &str) -> String {
    kina(Path::new(ROOT), arguments).ok()
}

/// `rules HASH`: which rules they were. The last line of the list.
fn rules() -> String {
    let list = command("rules list");
    format!("{}\n", list.lines().last().expect("a hash"))
}

/// What a command prints, and the hash of the rules.
fn with_rules(arguments: &str) -> String {
    command(arguments) + &rules()
}

fn program(name: &str, file: &str) {
    snapshot(&format!("{name}.program"), &with_rules(&format!("emit {file} --stage program")));
}

/// The verdict on an example, in the lines of `kina-ad snapshot`, which accepts nothing that is wrong.
fn verdict_of(file: &str, check: bool) -> String {
    let program = std::fs::read(Path::new(ROOT).join(file)).expect("an example");
    let place = directory(&[("p.kina", program)]);
    let unchecked = if check { "" } else { "--no-check" };
    kina(place.path(), &format!("snapshot accept p.kina {unchecked}")).ok();
    let text = std::fs::read_to_string(place.path().join("p.snap")).expect("a snapshot");
    let verdict = text.find("gradient check\n").zip(text.rfind("end "));
    verdict.and_then(|(start, end)| text.get(start..end)).expect("a verdict").to_owned()
}

/// The graph with rules, cost and bytes, and the verdict behind it.
fn graph(name: &str, file: &str, verdict: bool) {
    let mut text = with_rules(&format!("grad {file}"));
    text.push_str(&verdict_of(file, verdict));
    snapshot(&format!("{name}.graph"), &text);
}

fn schedule(name: &str, file: &str) {
    snapshot(&format!("{name}.schedule"), &with_rules(&format!("emit {file} --stage schedule")));
}

#[cfg(feature = "codegen")]
fn linalg(name: &str, file: &str) {
    for level in ["O0", "O2"] {
        let text = with_rules(&format!("emit {file} --stage linalg -{level}"));
        snapshot(&format!("{name}.linalg_{level}"), &text);
    }
}

/// The tests of one example. Finite differences of a program of the size of the story take minutes:
/// `programs::story` compares its gradient with the closed form instead.
macro_rules! example {
    ($name:ident, $file:literal, verdict: $verdict:literal) => {
        mod $name {
            const NAME: &str = stringify!($name);

            #[test]
            fn program() {
                super::program(NAME, $file);
            }

            #[test]
            fn graph() {
                super::graph(NAME, $file, $verdict);
            }

            #[test]
            fn schedule() {
                super::schedule(NAME, $file);
            }

            #[cfg(feature = "codegen")]
            #[test]
            fn linalg() {
                super::linalg(NAME, $file);
            }
        }
    };
}

example!(storylm0_nll, "examples/storylm0_nll.kina", verdict: true);
example!(storylm0_nll_mean, "examples/storylm0_nll_mean.kina", verdict: true);
example!(mlp, "examples/mlp.kina", verdict: true);
example!(story, "examples/story/story.kina", verdict: false);
