//! The mutation score of the rule checker: every rule is changed in all the ways that slips of the pen change it, and
//! the checker must refuse what then means something else.
//!
//! `./x mutate` runs it; docs/mutation.md has what it found.

#[path = "harness.rs"]
mod harness;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::report::{ByHand, Outcome, WANTED, document};

const HELP: &str = "mutate [--rules FILE].. [--only TEXT] [--every N] [--verbose]

  --rules FILE  mutate the rules of FILE instead of those of rules/
  --only TEXT   only mutants whose name has TEXT in it
  --every N     only every Nth mutant
  --verbose     say what came of every mutant

Without options docs/mutation.md is written anew. Exit 1 if less than 99 % are refused of what means something else.";

fn main() -> ExitCode {
    let mut files = Vec::new();
    let (mut only, mut every, mut verbose) = (String::new(), 1, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rules" => files.extend(args.next().map(PathBuf::from)),
            "--only" => only = args.next().unwrap_or_default(),
            "--every" => every = args.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0).unwrap_or(1),
            "--verbose" => verbose = true,
            _ => {
                eprintln!("{HELP}");
                return ExitCode::FAILURE;
            }
        }
    }
    let whole = files.is_empty() && only.is_empty() && every == 1;
    match run(&files, &only, every, verbose, whole) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("mutate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(files: &[PathBuf], only: &str, every: usize, verbose: bool, whole: bool) -> Result<bool, String> {
    let choose = |i: usize, m: &harness::mutants::Mutant| i.is_multiple_of(every) && m.name().contains(only);
    let (corpus, mutants) = harness::collect(files, &choose)?;
    eprintln!("{} mutants: {:?}", mutants.len(), harness::mutants::census(&mutants));
    let by_hand = ByHand::read(&std::fs::read_to_string(harness::document_path()).unwrap_or_default());
    let done = AtomicUsize::new(0);
    let told = |_: usize, outcome: &Outcome| {
        let done = 1 + done.fetch_add(1, Ordering::Relaxed);
        if outcome.survived() && !by_hand.has(&outcome.mutant) {
            eprintln!("ACCEPTED {} ({:?})", outcome.mutant.name(), outcome.meaning);
        } else if verbose {
            eprintln!("{} ({:?}, {:?})", outcome.mutant.name(), outcome.meaning, outcome.judgement);
        }
        if done.is_multiple_of(100) {
            eprintln!("{done} of {}", mutants.len());
        }
    };
    let outcomes = harness::run(&corpus, &mutants, &told)?;
    let (score, text) = document(&outcomes, &by_hand);
    if whole {
        std::fs::write(harness::document_path(), text).map_err(|e| e.to_string())?;
    }
    let survivors = outcomes.iter().filter(|o| o.survived() && !by_hand.has(&o.mutant)).count();
    println!("{:.2} % of what means something else is refused; {survivors} accepted", 100.0 * score);
    Ok(score >= WANTED)
}
