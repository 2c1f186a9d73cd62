//! What is asked of every way to run a program: its results in the precision of each dtype, one operator at a time, and
//! how far from them rounding may take another way.

use kina_ad::interp::expected::{Expected, Outcome, expected};
use kina_ad::interp::noise::{Noise, Run, Zeros, evaluate};
use kina_ad::ir::{Array, Graph, Precision, Registry};

/// Evaluations with errors. In each of them the errors that reach an element may happen to cancel.
const RUNS: usize = 8;

pub struct Oracle {
    /// Of ways that keep the sign of every zero.
    pub strict: Option<Expected>,
    /// Of ways that may change it.
    pub loose: Option<Expected>,
    /// Of the run in f64. `None` if a value leaves the range of its dtype: then the program means something else in f64.
    pub double: Option<Expected>,
}

impl Oracle {
    /// From the outcomes of the literal graph in the precision of each dtype and in f64.
    pub fn new(literal: &Graph, registry: &Registry, inputs: &[Array], typed: &Outcome, double: &Outcome) -> Oracle {
        let runs = |precision: Precision, zeros: &[Zeros]| -> Vec<Run> {
            let noise = |(seed, zeros): (usize, &Zeros)| Noise { seed: seed as u64, precision, zeros: *zeros };
            zeros.iter().enumerate().map(|z| evaluate(literal, registry, inputs, noise(z)).expect("small")).collect()
        };
        let mut noisy = runs(Precision::Typed, &[Zeros::Computed; RUNS]);
        let mut of_double = None;
        if !noisy.iter().any(|run| run.leaves_range) {
            // What errors of f64 decide is a coincidence of exact values.
            let stable = expected(double, runs(Precision::Double, &[Zeros::Computed; RUNS / 2]).iter());
            of_double = expected(typed, noisy.iter()).zip(stable).map(|(near, stable)| near.where_decided(&stable));
            let outcome = double.clone().map(|results| results.into_iter().map(|(_, array)| array).collect());
            noisy.push(Run { outcome, leaves_range: false });
        }
        let signs = runs(Precision::Typed, &[Zeros::Positive, Zeros::Negative, Zeros::Random, Zeros::Random]);
        Oracle {
            strict: expected(typed, noisy.iter()),
            loose: expected(typed, noisy.iter().chain(&signs)).map(Expected::of_any_sign),
            double: of_double,
        }
    }
}
