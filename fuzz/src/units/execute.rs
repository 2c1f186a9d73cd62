//! Bytes to a program, by the generator of the differential tests, which must give the same results in all ways to run it:
//! interpreted in f64 and typed, optimised and not, compiled at every level.

use std::sync::OnceLock;

use kina_ad::{RuleOptions, Session};

use crate::differential::{INTERPRETED, Program, Script, Vocabulary, WAYS, build};

/// Inputs that begin with a multiple of it are also compiled: LLVM takes longer than everything else together.
const COMPILED: u8 = 8;
/// Larger programs are only interpreted.
const MAX_COMPILED: usize = 150;

pub fn run(data: &[u8]) {
    let Some((first, script)) = data.split_first() else { return };
    let mut session = session();
    let rules = session.rules.clone();
    let vocabulary = Vocabulary::new(&rules);
    let case = build(&vocabulary, &Script::from_bytes(script), false);
    let text = case.to_string();
    let outcome = Program::new(&mut session, &text).and_then(|program| {
        let compiled = first.is_multiple_of(COMPILED) && program.graph.len() <= MAX_COMPILED;
        program.agree(if compiled { WAYS } else { INTERPRETED })
    });
    if let Err(disagreement) = outcome {
        panic!("{disagreement}\n{text}");
    }
}

/// The default rules, and `def`s with and without a VJP of their own; loaded once.
fn session() -> Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    let load = || {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("composites.rules");
        std::fs::write(&file, include_str!("../../../tests/it/differential/composites.rules")).expect("a file in it");
        let options = RuleOptions { files: vec![file], ..RuleOptions::default() };
        Session::new(&options).unwrap_or_else(|refusal| panic!("{refusal}"))
    };
    SESSION.get_or_init(load).clone()
}
