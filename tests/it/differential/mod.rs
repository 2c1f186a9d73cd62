//! Differential tests: generated programs, and all ways to run them against each other.
//!
//! - [`script`] is what proptest draws and shrinks; [`build`] makes a program of any script, with calls by [`call`],
//!   functions and handlers by [`functions`], left sides of rewrites by [`redex`] and inputs by [`values`];
//! - [`case`] is the program as text with its inputs in the head: a file of `tests/regressions`;
//! - [`oracle`] says what is asked of every way to run it, and `interp::noise` how far rounding may take it;
//! - [`compare`] runs it in all ways.
//!
//! Every run draws the same programs. `PROPTEST_CASES=5000` draws more of them, `PROPTEST_RNG_SEED=7` others.

mod build;
mod call;
mod case;
mod compare;
mod coverage;
mod functions;
mod oracle;
#[cfg(test)]
mod proofs;
mod redex;
#[cfg(test)]
mod regressions;
mod script;
#[cfg(test)]
mod sensitivity;
mod values;
mod vocabulary;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use kina_ad::{RuleOptions, Session};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

use case::Case;
use compare::Disagreement;
use script::scripts;

// What the fuzz target `execute` needs as well.
pub use build::build;
pub use compare::{INTERPRETED, Program, WAYS};
pub use script::Script;
pub use vocabulary::Vocabulary;

/// Steps of the longest scripts.
const STEPS: usize = 20;

/// The default rules, `def`s with and without a VJP of their own, and more files.
pub fn session(more: &[PathBuf]) -> Session {
    let composites = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/differential/composites.rules");
    let files = [&[composites], more].concat();
    Session::new(&RuleOptions { files, ..RuleOptions::default() }).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// The same cases in every run, `cases` of them, unless the environment asks for others.
pub fn config(cases: u32, seed: u64) -> Config {
    let asked = |name: &str| std::env::var_os(name).is_some();
    // Failures are kept as programs, not as seeds.
    let mut config = Config { failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    if !asked("PROPTEST_CASES") {
        config.cases = cases;
    }
    if !asked("PROPTEST_RNG_SEED") {
        config.rng_seed = RngSeed::Fixed(seed);
    }
    config
}

/// Does the property hold of generated programs? If not, the smallest program found and what it shows.
pub fn counterexample(
    config: Config,
    session: Session,
    smooth: bool,
    property: impl Fn(&mut Session, &Case) -> Result<(), Disagreement>,
) -> Option<(Case, String)> {
    let session = RefCell::new(session);
    let rules = session.borrow().rules.clone();
    let vocabulary = Vocabulary::new(&rules);
    let outcome = TestRunner::new(config).run(&scripts(vocabulary.verbs.len(), STEPS), |script: Script| {
        let case = build(&vocabulary, &script, smooth);
        property(&mut session.borrow_mut(), &case).map_err(|disagreement| TestCaseError::fail(disagreement.to_string()))
    });
    match outcome {
        Ok(()) => None,
        Err(TestError::Abort(reason)) => panic!("{reason}"),
        Err(TestError::Fail(reason, script)) => {
            Some((build(&vocabulary, &script, smooth), reason.message().to_owned()))
        }
    }
}

/// A failure is printed, and kept among the regressions.
#[cfg(test)]
fn keep(failure: Option<(Case, String)>) {
    let Some((case, reason)) = failure else { return };
    let text = format!("// {}\n{case}", reason.lines().next().unwrap_or_default());
    let hash = text.bytes().fold(7u32, |hash, byte| hash.wrapping_mul(31) ^ u32::from(byte));
    let path = regressions::folder().join(format!("found_{hash:08x}.kina"));
    std::fs::write(&path, &text).expect("a file among the regressions");
    panic!("{reason}\nkept as {}:\n{text}", path.display());
}

#[test]
fn optimised_programs_agree_with_literal_ones() {
    keep(counterexample(config(500, 1), session(&[]), false, |session, case| {
        Program::new(session, &case.to_string())?.agree(INTERPRETED).map(|_| ())
    }));
}

#[cfg(feature = "codegen")]
#[test]
fn compiled_programs_agree_with_interpreted_ones() {
    keep(counterexample(config(80, 2), session(&[]), false, |session, case| {
        Program::new(session, &case.to_string())?.agree(compare::COMPILED).map(|_| ())
    }));
}

#[test]
fn gradients_agree_with_differences() {
    let compared = std::cell::Cell::new(0);
    let (config, wanted) = (config(400, 3), std::env::var_os("PROPTEST_CASES").is_none());
    keep(counterexample(config, session(&[]), true, |session, case| {
        compared.set(compared.get() + Program::new(session, &case.to_string())?.gradients()?);
        Ok(())
    }));
    assert!(!wanted || compared.get() > 200, "only {} gradients could be compared", compared.get());
}
