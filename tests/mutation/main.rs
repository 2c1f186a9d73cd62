//! The mutation score of the rule checker: every rule is changed in all the ways that slips of the pen change it, and
//! the checker must refuse what then means something else.
//!
//! `./x mutate` runs it; see docs/mutation.md for what it found.

mod build;
mod corpus;
mod instances;
mod meaning;
mod mutants;
mod operators;
mod points;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use corpus::{Corpus, Loader};
use meaning::{Known, Meaning};

fn main() -> ExitCode {
    let mut files = Vec::new();
    let mut filter = String::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--rules" => files.extend(args.next().map(PathBuf::from)),
            "--filter" => filter = args.next().unwrap_or_default(),
            other => {
                eprintln!("mutate: unknown argument `{other}`; it takes --rules FILE, --filter TEXT");
                return ExitCode::FAILURE;
            }
        }
    }
    match run(&files, &filter) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(files: &[PathBuf], filter: &str) -> Result<(), String> {
    let corpus = Corpus::read(files)?;
    let mut all = Vec::new();
    for (i, file) in corpus.files.iter().enumerate().filter(|(_, f)| f.mutated) {
        all.extend(mutants::of_file(i, file, &corpus.rules));
    }
    all.retain(|m| m.name().contains(filter));
    eprintln!("{} mutants: {:?}", all.len(), mutants::census(&all));
    let known = Known::default();
    let next = AtomicUsize::new(0);
    let out = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let loader = Loader::new(&corpus.files).expect("a temporary directory");
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(mutant) = all.get(i) else { return };
                    let start = std::time::Instant::now();
                    let loaded = loader.load(Some((mutant.file, &mutant.text)));
                    let at = start.elapsed();
                    let line = match loaded {
                        Err(why) => format!("REFUSED {} ({why})", mutant.name()),
                        Ok(rules) => match meaning::of(mutant, &corpus.rules, &rules, &known) {
                            Meaning::Changed { shown, at } => format!("CHANGED {at:?} {}: {shown}", mutant.name()),
                            Meaning::Same(n) => format!("SAME {n} {}", mutant.name()),
                        },
                    };
                    out.lock().expect("no panic").push((i, format!("{line} [{at:?} {:?}]", start.elapsed())));
                }
            });
        }
    });
    let mut out = out.into_inner().expect("no panic");
    out.sort();
    for (_, line) in out {
        println!("{line}");
    }
    Ok(())
}
