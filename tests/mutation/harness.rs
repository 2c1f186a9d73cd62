//! Mutants of all rules, what they mean and what the checker says of them.

pub mod build;
pub mod corpus;
pub mod instances;
pub mod judge;
pub mod meaning;
pub mod mutants;
pub mod operators;
pub mod points;
pub mod report;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use corpus::{Corpus, Loader};
use judge::{Baseline, Judgement, judge};
use meaning::{Known, Meaning};
use mutants::Mutant;
use report::Outcome;

/// Where people write which mutants are equal.
pub fn document_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/mutation.md")
}

/// The rules of some files, or of all, and their mutants that `choose` wants by number and name.
pub fn collect(files: &[PathBuf], choose: &dyn Fn(usize, &Mutant) -> bool) -> Result<(Corpus, Vec<Mutant>), String> {
    let corpus = Corpus::read(files)?;
    let mut all = Vec::new();
    for (i, file) in corpus.files.iter().enumerate().filter(|(_, f)| f.mutated) {
        all.extend(mutants::of_file(i, file, &corpus.rules));
    }
    let mut index = 0;
    all.retain(|mutant| {
        index += 1;
        choose(index - 1, mutant)
    });
    Ok((corpus, all))
}

/// Decides on every mutant, on two threads; `told` hears of each.
pub fn run(
    corpus: &Corpus,
    mutants: &[Mutant],
    told: &(dyn Fn(usize, &Outcome) + Sync),
) -> Result<Vec<Outcome>, String> {
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    let baseline = Baseline::new(corpus, directory.path());
    baseline.complaints().iter().for_each(|complaint| eprintln!("{complaint}"));
    let known = Known::default();
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<(usize, Outcome)>> = Mutex::new(Vec::new());
    let faults: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let work = || {
        let loader = match Loader::new(&corpus.files) {
            Ok(loader) => loader,
            Err(error) => return faults.lock().unwrap_or_else(PoisonError::into_inner).push(error),
        };
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(mutant) = mutants.get(i) else { return };
            if !baseline.knows(&mutant.rule) {
                continue;
            }
            let mutant = mutant.clone();
            let outcome = match loader.load(Some((mutant.file, &mutant.text))) {
                Err(why) => Outcome { mutant, meaning: None, judgement: Some(Judgement::NotLoaded(why)) },
                Ok((rules, sources)) => {
                    let meaning = meaning::of(&mutant, &corpus.rules, &rules, &known);
                    let judgement = match meaning {
                        Meaning::Same(_) => None,
                        Meaning::Changed { .. } => Some(judge(&mutant, &rules, &sources, &baseline)),
                    };
                    Outcome { mutant, meaning: Some(meaning), judgement }
                }
            };
            told(i, &outcome);
            outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((i, outcome));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    if let Some(fault) = faults.into_inner().unwrap_or_else(PoisonError::into_inner).pop() {
        return Err(fault);
    }
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_by_key(|(i, _)| *i);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}
