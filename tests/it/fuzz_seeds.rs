//! The seeds of the fuzz targets, through what the targets do with an input: a fault that the fuzzer once found stays found.

#[path = "../../fuzz/src/units/mod.rs"]
mod units;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kina_ad::ir::Registry;

/// What a target does with one input.
type Unit = fn(&[u8]);

const TARGETS: [(&str, Unit); 4] = [
    ("program", units::program::run),
    ("rules", units::rules::run),
    ("arrays", units::arrays::run),
    ("execute", units::execute::run),
];

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

#[test]
fn fuzz_seeds_do_not_panic() {
    for (target, unit) in TARGETS {
        let folder = fuzz().join("seeds").join(target);
        let entries = std::fs::read_dir(&folder).expect("a folder of seeds");
        let mut seeds: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
        seeds.sort();
        assert!(!seeds.is_empty(), "{target} has no seeds");
        for seed in seeds {
            let data = std::fs::read(&seed).expect("a seed");
            let outcome = std::panic::catch_unwind(|| unit(&data));
            assert!(outcome.is_ok(), "{} is a fault again", seed.display());
        }
    }
}

#[test]
fn every_fuzz_target_has_its_seeds_run() {
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).expect("the manifest");
    let paths = manifest.lines().filter_map(|l| l.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""));
    assert_eq!(paths.collect::<BTreeSet<_>>(), TARGETS.iter().map(|(name, _)| *name).collect());
}

/// The dictionaries have every word of the languages: the operators, and the literals of the grammars.
#[test]
fn dictionaries_are_complete() {
    let root = fuzz().join("..");
    let registry = Registry::builtin();
    for (dictionary, grammars) in [("program", &["expr", "kina"][..]), ("rules", &["expr", "rules"])] {
        let text =
            std::fs::read_to_string(fuzz().join(format!("dictionaries/{dictionary}.dict"))).expect("a dictionary");
        let words: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"')).collect();
        let mut wanted: BTreeSet<String> = registry.iter().map(|(_, op)| op.name().to_owned()).collect();
        for grammar in grammars {
            let grammar = std::fs::read_to_string(root.join(format!("grammar/{grammar}.pest"))).expect("a grammar");
            let code = grammar.lines().filter(|line| !line.starts_with("//"));
            let literals = code.flat_map(|line| line.split('"').skip(1).step_by(2));
            let is_word = |l: &&str| l.len() > 1 && l.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_');
            wanted.extend(literals.filter(is_word).map(str::to_owned));
        }
        let missing: Vec<&String> = wanted.iter().filter(|w| !words.contains(w.as_str())).collect();
        assert!(missing.is_empty(), "{dictionary}.dict lacks {missing:?}");
    }
}
