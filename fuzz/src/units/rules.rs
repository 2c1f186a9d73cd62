//! Rule text: loaded as a user's file, alone and on top of the default rules, listed, and used on small programs.

use std::path::Path;

use kina_ad::diagnostics::{Diagnostics, SourceMap};
use kina_ad::rules::listing::entries;
use kina_ad::syntax::parse_rules;
use kina_ad::{CheckOptions, RuleOptions, Session};

use super::{program, shown};

/// What loaded rules are used on. Together the programs call every operator that has a VJP or a rewrite.
const PROGRAMS: [&str; 3] = [
    include_str!("../../../examples/storylm0_nll.kina"),
    include_str!("../../../examples/mlp.kina"),
    include_str!("elementwise.kina"),
];

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("user.rules");
    std::fs::write(&file, text).expect("a file in a temporary directory");
    load(&file, true);
    // What is not understood is refused before the default rules come into it, and to parse those takes long.
    if parses(text) {
        load(&file, false);
    }
}

fn parses(text: &str) -> bool {
    let (mut sources, mut bag) = (SourceMap::new(), Diagnostics::new());
    let file = sources.add("user.rules", text);
    parse_rules(&sources, file, &mut bag);
    !bag.has_errors()
}

fn load(file: &Path, no_default_rules: bool) {
    let options = RuleOptions { no_default_rules, files: vec![file.to_path_buf()], ..RuleOptions::default() };
    let session = match Session::new(&options) {
        Ok(session) => session,
        Err(refusal) => return shown::refusal(&refusal),
    };
    shown::diagnostics(&session.warnings, &session.sources);
    for entry in entries(&session.rules) {
        entry.line();
        entry.show(&session.sources);
    }
    for text in PROGRAMS {
        let mut session = session.clone();
        match session.check("program.kina", text, &CheckOptions::default()) {
            Ok(graph) => program::compile(&session, &graph, false),
            Err(refusal) => shown::refusal(&refusal),
        }
    }
}
