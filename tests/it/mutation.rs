//! A sample of what `./x mutate` does with all rules: mutants mean what their values say, and those that mean something else
//! are refused.

// `./x mutate` uses all of it.
#[allow(dead_code)]
#[path = "../mutation/harness.rs"]
mod harness;

use harness::corpus::Loader;
use harness::meaning::{At, Known, Meaning};
use harness::report::{ByHand, Outcome};

/// What the mutants whose names begin so mean.
fn meanings(name: &str) -> Vec<Meaning> {
    let (corpus, mutants) = harness::collect(&[], &|_, mutant| mutant.name().starts_with(name)).unwrap();
    assert!(!mutants.is_empty(), "no mutant {name}");
    let loader = Loader::new(&corpus.files).unwrap();
    let mean = |mutant: &harness::mutants::Mutant| {
        let (rules, _) = loader.load(Some((mutant.file, &mutant.text))).unwrap();
        harness::meaning::of(mutant, &corpus.rules, &rules, &Known::default())
    };
    mutants.iter().map(mean).collect()
}

#[test]
fn meaning_is_decided_by_values() {
    let at = |name: &str| match meanings(name).remove(0) {
        Meaning::Changed { at, .. } => Some(at),
        Meaning::Same(points) => {
            assert!(points >= harness::meaning::POINTS);
            None
        }
    };
    assert_eq!(at("vjp sin: flip a sign: `g_x = g_y * cos(x)`"), Some(At::Ordinary));
    assert_eq!(at("vjp add: swap operands"), None);
    assert_eq!(at("vjp maximum: flip a sign: `half = "), Some(At::Ties));
    assert_eq!(
        at(
            "vjp relu: drop an arm: `g_x = select(x <= 0.0, 0.0, select(x > 0.0, g_y, x))` -> `g_x = select(x <= 0.0, 0.0, g_y)"
        ),
        Some(At::Special)
    );
    // The same identity, or another that is true.
    assert_eq!(at("rewrite mul_by_one: exchange an operator"), None);
    assert_eq!(at("rewrite add_zero: promise more"), Some(At::Bits));
    assert_eq!(at("def silu: exchange an operator"), Some(At::Ordinary));
}

#[test]
fn a_sample_of_wrong_rules_is_refused() {
    let (corpus, mutants) =
        harness::collect(&[], &|i, mutant| i.is_multiple_of(97) && mutant.operator != "replace a name").unwrap();
    assert!(mutants.len() >= 15, "only {} mutants", mutants.len());
    let outcomes = harness::run(&corpus, &mutants, &|_, _| {}).unwrap();
    let by_hand = ByHand::read(&std::fs::read_to_string(harness::document_path()).unwrap());
    let changed = |o: &&Outcome| matches!(&o.meaning, Some(Meaning::Changed { at, .. }) if *at != At::Types);
    assert!(outcomes.iter().filter(changed).count() >= 5);
    let accepted: Vec<String> = outcomes
        .iter()
        .filter(|o| o.survived() && !by_hand.has(&o.mutant))
        .map(|o| format!("{} ({:?})", o.mutant.name(), o.meaning))
        .collect();
    assert!(accepted.is_empty(), "accepted: {}", accepted.join("\n"));
}
