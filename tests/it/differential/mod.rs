//! Differential tests: generated programs, all ways to run them against each other.

mod build;
mod call;
mod case;
mod compare;
mod functions;
mod noise;
mod oracle;
mod redex;
mod script;
mod values;
mod vocabulary;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use kina_ad::{RuleOptions, Session};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

use build::build;
use case::Case;
use compare::{Disagreement, INTERPRETED, Program, Way};
use script::{Script, scripts};
use vocabulary::Vocabulary;

/// Steps of the longest scripts.
const STEPS: usize = 20;

/// The default rules, and `def`s with and without a VJP of their own.
fn session() -> Session {
    let files = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/differential/composites.rules")];
    Session::new(&RuleOptions { files, ..RuleOptions::default() }).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// The same cases in every run, `cases` of them. `PROPTEST_CASES` and `PROPTEST_RNG_SEED` ask for others.
fn config(cases: u32, seed: u64) -> Config {
    let set = |name: &str| std::env::var_os(name).is_some();
    let mut config = Config { failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    if !set("PROPTEST_CASES") {
        config.cases = cases;
    }
    if !set("PROPTEST_RNG_SEED") {
        config.rng_seed = RngSeed::Fixed(seed);
    }
    config
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions")
}

/// Runs a property over generated programs. A failure is shrunk, printed, and kept in `tests/regressions`.
fn for_programs(config: Config, smooth: bool, holds: impl Fn(&mut Session, &Case) -> Result<(), Disagreement>) {
    let session = RefCell::new(session());
    let rules = session.borrow().rules.clone();
    let vocabulary = Vocabulary::new(&rules);
    let last: RefCell<Option<Disagreement>> = RefCell::default();
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&scripts(vocabulary.verbs.len(), STEPS), |script: Script| {
        let case = build(&vocabulary, &script, smooth);
        holds(&mut session.borrow_mut(), &case).map_err(|disagreement| {
            let text = disagreement.to_string();
            *last.borrow_mut() = Some(disagreement);
            TestCaseError::fail(text)
        })
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Abort(reason)) => panic!("{reason}"),
        Err(TestError::Fail(reason, script)) => {
            let case = build(&vocabulary, &script, smooth);
            let text = format!("// {}\n{case}", reason.message().lines().next().unwrap_or_default());
            let name = format!("found_{:08x}.kina", text.bytes().fold(7u32, |h, b| h.wrapping_mul(31) ^ u32::from(b)));
            std::fs::write(folder().join(&name), &text).expect("a regression file");
            panic!("{reason}\nkept as tests/regressions/{name}:\n{text}");
        }
    }
}

#[test]
fn optimised_programs_agree_with_literal_ones() {
    for_programs(config(500, 1), false, |session, case| {
        Program::new(session, &case.to_string())?.agree(INTERPRETED).map(|_| ())
    });
}

#[cfg(feature = "codegen")]
#[test]
fn compiled_programs_agree_with_interpreted_ones() {
    for_programs(config(100, 2), false, |session, case| {
        Program::new(session, &case.to_string())?.agree(compare::COMPILED).map(|_| ())
    });
}

#[test]
fn gradients_agree_with_differences() {
    let compared = RefCell::new(0);
    for_programs(config(400, 3), std::env::var_os("SMOOTH").is_some(), |session, case| {
        *compared.borrow_mut() += Program::new(session, &case.to_string())?.gradients()?;
        Ok(())
    });
    println!("{compared:?}");
}

#[test]
#[ignore]
fn statistics() {
    let mut session = session();
    let rules = session.rules.clone();
    let vocabulary = Vocabulary::new(&rules);
    let mut runner = TestRunner::new(config(5, 5));
    use proptest::strategy::{Strategy, ValueTree};
    let mut all = compare::Seen::default();
    let (mut traps, mut allopen, mut ops, mut handlers, mut nodes) = (0, 0, 0, 0, 0);
    let mut fired: std::collections::BTreeMap<String, usize> = Default::default();
    for r in rules.rewrites() { fired.insert(r.head.rule.name.to_string(), 0); }
    for r in rules.all_vjps() { fired.insert(r.head.rule.name.to_string(), 0); }
    let n: usize = std::env::var("N").unwrap().parse().unwrap();
    for _ in 0..n {
        let s = scripts(vocabulary.verbs.len(), STEPS).new_tree(&mut runner).unwrap().current();
        let case = build(&vocabulary, &s, false);
        ops += case.calls.len();
        let text = case.to_string();
        let graph = session.check("x", &text, &kina_ad::CheckOptions::default()).unwrap();
        let mut d = session.differentiate(&graph).unwrap();
        for (_, n) in d.tape.iter() { if let kina_ad::ir::Origin::Rule{rule,..} = &n.origin { *fired.entry(rule.name.to_string()).or_default() += 1; } }
        let o = session.optimise(&mut d, kina_ad::Level::O2).unwrap();
        for (k,v) in o.report.unwrap().applications { *fired.entry(k.to_string()).or_default() += v; }
        let program = Program::new(&mut session, &text).unwrap();
        handlers += program.graph.handlers.len();
        nodes += program.graph.len();
        let seen = program.agree(&[]).unwrap();
        traps += usize::from(seen.trap.is_some());
        allopen += usize::from(seen.exact + seen.near + seen.open == 0 && seen.trap.is_none());
        all.exact += seen.exact;
        all.near += seen.near;
        all.open += seen.open;
        all.nans += seen.nans;
        all.infinities += seen.infinities;
    }
    println!("{all:?} traps {traps} nothing {allopen} ops {ops} handlers {handlers} nodes {nodes}\n{fired:#?}");
}
