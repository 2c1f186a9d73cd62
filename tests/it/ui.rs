//! Messages as their readers see them: every file of `tests/ui` is a mistake, and beside it stands what is said of it.
//!
//! `NAME.rules` is loaded beside the default rules; `NAME.kina` is checked, differentiated and optimised, with the rules of
//! `NAME.rules` if there is such a file. A program may begin with `// options: ..`, of `--no-default-rules`, `--profile=phase1`
//! and `--cotangent=input`. A new mistake is a new file; `cargo insta review` shows and accepts what is said of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kina_ad::diagnostics::{Diagnostics, Style};
use kina_ad::syntax::utf8;
use kina_ad::{CheckOptions, Level, Profile, Refusal, RuleOptions, Session};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// What is said of one file or pair of files.
struct Said {
    text: String,
    diagnostics: Diagnostics,
}

fn said(name: &str, files: &BTreeSet<String>) -> Said {
    let path = |extension: &str| format!("tests/ui/{name}.{extension}");
    let program = files.contains(&path("kina")).then(|| {
        let bytes = std::fs::read(Path::new(ROOT).join(path("kina"))).unwrap();
        utf8(&path("kina"), bytes).unwrap()
    });
    let first = program.as_deref().and_then(|p| p.lines().next()).unwrap_or_default();
    let options = first.strip_prefix("// options: ").unwrap_or_default();
    let mut rules = RuleOptions::default();
    let mut check = CheckOptions::default();
    for option in options.split_whitespace() {
        match option {
            "--no-default-rules" => rules.no_default_rules = true,
            "--profile=phase1" => rules.profile = Profile::Phase1,
            "--cotangent=input" => check.cotangent_input = true,
            other => panic!("{name}: unknown option {other}"),
        }
    }
    if files.contains(&path("rules")) {
        // Relative, as the message shows it; tests run in the root of the package.
        rules.files.push(path("rules").into());
    }
    let run = || -> Result<Session, Refusal> {
        let mut session = Session::new(&rules)?;
        if let Some(program) = &program {
            let graph = session.check(&path("kina"), program, &check)?;
            let mut differentiated = session.differentiate(&graph)?;
            session.optimise(&mut differentiated, Level::O2)?;
        }
        Ok(session)
    };
    let refusal = match run() {
        Ok(session) => session.refusal(session.warnings.clone()),
        Err(refusal) => refusal,
    };
    Said { text: refusal.render(Style::Plain), diagnostics: refusal.diagnostics }
}

/// Every mistake by name.
fn all() -> BTreeMap<String, Said> {
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(Path::new(ROOT).join("tests/ui")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".rules") || name.ends_with(".kina") {
            files.insert(format!("tests/ui/{name}"));
        }
    }
    let stems: BTreeSet<&str> =
        files.iter().filter_map(|f| f.strip_prefix("tests/ui/")?.rsplit_once('.')).map(|(stem, _)| stem).collect();
    stems.into_iter().map(|stem| (stem.to_owned(), said(stem, &files))).collect()
}

/// Codes that no file here shows, and why.
const NOT_SHOWN: &[(&str, &str)] = &[
    ("E0108", "needs a file of 64 MiB: hostile_text"),
    ("E0113", "a fault of kina-ad"),
    ("E0415", "an import in an embedded file, of which there is none"),
    ("E0418", "of `rules stub`: rule_tools"),
    ("E0419", "of `rules check`"),
    ("E0420", "takes very many rules: notation"),
    ("E0502", "a fault of kina-ad: types are compared where a rule fires"),
    ("E0504", "a fault of kina-ad: types are compared before values are merged"),
    ("E0505", "a fault of kina-ad"),
    ("E0506", "takes handlers nested so deeply that checking them is slow"),
];

#[test]
fn messages_say_what_they_said() {
    let all = all();
    assert!(all.len() >= 100, "{}", all.len());
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(Path::new(ROOT).join("tests/ui"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut changed = Vec::new();
    for (name, said) in &all {
        let compare = || settings.bind(|| insta::assert_snapshot!(name.as_str(), said.text));
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(compare)).is_err() {
            changed.push(name.as_str());
        }
    }
    let mut shown = BTreeSet::new();
    let mut poor = Vec::new();
    for (name, said) in &all {
        if said.diagnostics.is_empty() {
            poor.push(format!("{name}: nothing is said"));
        }
        for d in said.diagnostics.iter() {
            shown.insert(d.code);
            // A place, and a way out. (What cannot be read has no place in a text.)
            let is_placed = d.primary.as_ref().is_some_and(|l| !l.text.is_empty()) || matches!(d.code, "E0110");
            if !is_placed || d.help.is_empty() || d.message.is_empty() {
                poor.push(format!("{name}: {} {}", d.code, d.message));
            }
        }
    }
    assert!(poor.is_empty(), "{}", poor.join("\n"));
    assert!(changed.is_empty(), "other messages: {}", changed.join(", "));

    // Every code that a text can be refused with is shown by one of them.
    let docs = std::fs::read_to_string(Path::new(ROOT).join("docs/diagnostics.md")).unwrap();
    let codes =
        docs.lines().filter_map(|l| l.strip_prefix("| E")?.split_once(" |")).map(|(code, _)| format!("E{code}"));
    let of_texts: BTreeSet<String> = codes
        .filter(|c| {
            c[1..].bytes().all(|b| b.is_ascii_digit())
                && ["E01", "E02", "E03", "E04", "E05"].iter().any(|r| c.starts_with(r))
        })
        .collect();
    assert!(of_texts.len() > 50, "{of_texts:?}");
    let excused: BTreeSet<&str> = NOT_SHOWN.iter().map(|(code, _)| *code).collect();
    let missing: Vec<_> =
        of_texts.iter().filter(|c| !shown.contains(c.as_str()) && !excused.contains(c.as_str())).collect();
    let stale: Vec<_> = excused.iter().filter(|c| shown.contains(*c)).collect();
    assert!(missing.is_empty() && stale.is_empty(), "not shown: {missing:?}; shown though excused: {stale:?}");
}
