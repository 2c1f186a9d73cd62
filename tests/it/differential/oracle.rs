//! What is asked of every way to run a program: its results in the precision of each dtype, one operator at a time, and
//! how far from them rounding may take another way.

use kina_ad::ir::{Array, DType, Graph, Precision, Registry, Values};

use super::noise::{Noise, Run, Spread, Zeros, evaluate, spread};

/// Evaluations with errors. In each of them the errors that reach an element may happen to cancel.
const RUNS: usize = 8;

/// Results, or the message of a trap.
pub type Outcome = Result<Vec<(DType, Array)>, String>;

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
            zeros.iter().enumerate().map(|z| evaluate(literal, registry, inputs, noise(z))).collect()
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

/// What may be asked of each element.
pub enum Expected {
    Trap(String),
    Results(Vec<Elements>),
}

pub enum Elements {
    Floats(Vec<Spread>),
    /// `None` where rounding decides.
    Discrete(Vec<Option<i64>>),
}

/// What a reference and runs with errors say together. `None` if rounding decides whether there are results at all.
fn expected<'r>(reference: &Outcome, runs: impl Iterator<Item = &'r Run> + Clone) -> Option<Expected> {
    match reference {
        Err(message) => {
            let same = runs.clone().all(|run| run.outcome.as_ref().err() == Some(message));
            same.then(|| Expected::Trap(message.clone()))
        }
        Ok(results) => {
            let runs: Vec<&Vec<Array>> = runs.map(|run| run.outcome.as_ref().ok()).collect::<Option<_>>()?;
            let elements = |(i, (dtype, array)): (usize, &(DType, Array))| match &array.values {
                Values::Float(values) => {
                    let of = |(k, v): (usize, &f64)| spread(*dtype, *v, runs.iter().map(|run| run[i].floats()[k]));
                    Elements::Floats(values.iter().enumerate().map(of).collect())
                }
                _ => {
                    let all: Vec<Vec<i64>> = runs.iter().map(|run| discrete(&run[i])).collect();
                    let of = |(k, v): (usize, i64)| all.iter().all(|run| run[k] == v).then_some(v);
                    Elements::Discrete(discrete(array).into_iter().enumerate().map(of).collect())
                }
            };
            Some(Expected::Results(results.iter().enumerate().map(elements).collect()))
        }
    }
}

/// The elements of an integer or Bool array.
fn discrete(array: &Array) -> Vec<i64> {
    match &array.values {
        Values::Int(v) => v.clone(),
        Values::Bool(v) => v.iter().map(|b| i64::from(*b)).collect(),
        Values::Float(_) => Vec::new(),
    }
}

impl Expected {
    /// Without the elements that are open in the other.
    fn where_decided(mut self, other: &Expected) -> Expected {
        let (Expected::Results(own), Expected::Results(others)) = (&mut self, other) else { return self };
        for pair in own.iter_mut().zip(others) {
            match pair {
                (Elements::Floats(own), Elements::Floats(others)) => {
                    let open = own.iter_mut().zip(others).filter(|(_, other)| **other == Spread::Open);
                    open.for_each(|(own, _)| *own = Spread::Open);
                }
                (Elements::Discrete(own), Elements::Discrete(others)) => {
                    let open = own.iter_mut().zip(others).filter(|(_, other)| other.is_none());
                    open.for_each(|(own, _)| *own = None);
                }
                _ => {}
            }
        }
        self
    }

    /// With zeros of any sign.
    fn of_any_sign(mut self) -> Expected {
        let Expected::Results(all) = &mut self else { return self };
        for elements in all {
            let Elements::Floats(spreads) = elements else { continue };
            for spread in spreads {
                if let Spread::Exactly(value) = spread {
                    *spread = Spread::Equal(*value);
                }
            }
        }
        self
    }

    /// Is an outcome what is asked?
    ///
    /// # Errors
    /// The first difference.
    pub fn admits(&self, outcome: &Outcome) -> Result<(), String> {
        let (expected, results) = match (self, outcome) {
            (Expected::Trap(wanted), Err(message)) if wanted == message => return Ok(()),
            (Expected::Trap(wanted), Err(message)) => return Err(format!("trap `{message}`, not `{wanted}`")),
            (Expected::Trap(wanted), Ok(_)) => return Err(format!("no trap `{wanted}`")),
            (Expected::Results(_), Err(message)) => return Err(format!("trap `{message}`")),
            (Expected::Results(expected), Ok(results)) => (expected, results),
        };
        if expected.len() != results.len() {
            return Err(format!("{} results, not {}", results.len(), expected.len()));
        }
        for (i, (expected, (_, array))) in expected.iter().zip(results).enumerate() {
            let wrong = match expected {
                Elements::Floats(spreads) if spreads.len() == array.floats().len() => spreads
                    .iter()
                    .zip(array.floats())
                    .position(|(wanted, v)| !wanted.admits(*v))
                    .map(|k| format!("element {k} is {:e}, not {}", array.floats()[k], spreads[k])),
                Elements::Discrete(values) if values.len() == discrete(array).len() => values
                    .iter()
                    .zip(discrete(array))
                    .find(|(wanted, v)| wanted.is_some_and(|wanted| wanted != *v))
                    .map(|(wanted, v)| format!("an element is {v}, not {}", wanted.unwrap_or_default())),
                _ => Some("another number or kind of elements".into()),
            };
            if let Some(what) = wrong {
                return Err(format!("result {i}: {what}"));
            }
        }
        Ok(())
    }
}
