//! What is asked of an evaluation: the results of another one, and how far from them rounding may take it.

use std::fmt;

use super::evaluate::{self, InterpError};
use super::noise::{Noise, Run, Zeros, evaluate};
use crate::ir::kernel::Loop;
use crate::ir::{Array, DType, Graph, Kernel, Level, Precision, Registry, Values};

/// Results, or the message of a trap.
pub type Outcome = Result<Vec<(DType, Array)>, String>;

/// What may be asked of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// This value, the sign of a zero included.
    Exactly(f64),
    /// This value, but a zero of any sign.
    Equal(f64),
    /// About this value.
    Within { value: f64, radius: f64 },
    /// Rounding decides.
    Open,
}

/// How far an engine may be from the reference, in multiples of what the runs differ by.
const FACTOR: f64 = 8.0;
/// Evaluations with errors that this is for. In each of them the errors that reach an element may happen to cancel.
const RUNS: usize = 8;
/// Units in the last place that rewrites of a program may lose together. Each promises not to lose more than four.
const ULPS_OF_REWRITES: f64 = 16.0;
/// Points that all of them together may compute, but for two.
const WORK: u64 = 100_000_000;

/// What may be asked of an element that is `reference` without errors and one of `runs` with errors.
pub fn spread(dtype: DType, reference: f64, runs: impl Iterator<Item = f64>) -> Spread {
    let kind = |v: f64| if v.is_finite() { 0.0 } else { v };
    let (mut radius, mut signs_differ) = (0.0, false);
    for v in runs {
        if kind(v).to_bits() != kind(reference).to_bits() && !(v.is_nan() && reference.is_nan()) {
            return Spread::Open;
        }
        if v.is_finite() {
            radius = f64::max(radius, (v - reference).abs());
            signs_differ |= v.is_sign_negative() != reference.is_sign_negative();
        }
    }
    if radius > 0.0 {
        return Spread::Within { value: reference, radius: FACTOR * radius + 4.0 * least(dtype) };
    }
    if signs_differ { Spread::Equal(reference) } else { Spread::Exactly(reference) }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spread::Exactly(value) | Spread::Equal(value) => write!(f, "{value:e}"),
            Spread::Within { value, radius } => write!(f, "{value:e} +- {radius:e}"),
            Spread::Open => f.write_str("anything"),
        }
    }
}

impl Spread {
    /// Does an engine's element satisfy it?
    pub fn admits(self, v: f64) -> bool {
        match self {
            Spread::Exactly(value) => v.to_bits() == value.to_bits() || v.is_nan() && value.is_nan(),
            Spread::Equal(value) => v == value || v.is_nan() && value.is_nan(),
            Spread::Within { value, radius } => (v - value).abs() <= radius,
            Spread::Open => true,
        }
    }
}

/// What may be asked of each element.
#[derive(Clone, Debug)]
pub enum Expected {
    Trap(String),
    Results(Vec<Elements>),
}

#[derive(Clone, Debug)]
pub enum Elements {
    Floats(Vec<Spread>),
    /// `None` where rounding decides.
    Discrete(Vec<Option<i64>>),
}

/// What a reference and runs with errors say together. `None` if rounding decides whether there are results at all.
pub fn expected<'r>(reference: &Outcome, runs: impl Iterator<Item = &'r Run> + Clone) -> Option<Expected> {
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
    pub fn where_decided(mut self, other: &Expected) -> Expected {
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

    /// With radii that are so many times larger.
    fn widened(mut self, factor: f64) -> Expected {
        let Expected::Results(all) = &mut self else { return self };
        for elements in all {
            let Elements::Floats(spreads) = elements else { continue };
            for spread in spreads {
                if let Spread::Within { radius, .. } = spread {
                    *radius *= factor;
                }
            }
        }
        self
    }

    /// Where rewrites that are equal over the reals may round: even what the literal program computes exactly.
    fn rounded_elsewhere(mut self, dtypes: &[DType]) -> Expected {
        let Expected::Results(all) = &mut self else { return self };
        for (elements, dtype) in all.iter_mut().zip(dtypes) {
            let Elements::Floats(spreads) = elements else { continue };
            let few = ULPS_OF_REWRITES * if *dtype == DType::F32 { 2f64.powi(-23) } else { f64::EPSILON };
            for spread in spreads {
                *spread = match *spread {
                    Spread::Exactly(value) | Spread::Equal(value) if value.is_finite() && value != 0.0 => {
                        Spread::Within { value, radius: few * value.abs() }
                    }
                    Spread::Within { value, radius } => Spread::Within { value, radius: radius.max(few * value.abs()) },
                    other => other,
                };
            }
        }
        self
    }

    /// With zeros of any sign.
    pub fn of_any_sign(mut self) -> Expected {
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
    pub fn admits(&self, outcome: &Outcome) -> Result<(), Difference> {
        let (expected, results) = match (self, outcome) {
            (Expected::Trap(wanted), Err(message)) if wanted == message => return Ok(()),
            (Expected::Trap(wanted), _) => {
                return Err(Difference::Trap { found: outcome.as_ref().err().cloned(), wanted: Some(wanted.clone()) });
            }
            (Expected::Results(_), Err(message)) => {
                return Err(Difference::Trap { found: Some(message.clone()), wanted: None });
            }
            (Expected::Results(expected), Ok(results)) => (expected, results),
        };
        if expected.len() != results.len() {
            return Err(Difference::Results { found: results.len(), wanted: expected.len() });
        }
        for (output, (expected, (_, array))) in expected.iter().zip(results).enumerate() {
            let wrong = match expected {
                Elements::Floats(spreads) if spreads.len() == array.floats().len() => {
                    spreads.iter().zip(array.floats()).position(|(wanted, v)| !wanted.admits(*v)).map(|element| {
                        Difference::Float { output, element, found: array.floats()[element], wanted: spreads[element] }
                    })
                }
                Elements::Discrete(values) if values.len() == discrete(array).len() => {
                    values.iter().zip(discrete(array)).enumerate().find_map(|(element, (wanted, found))| {
                        let wanted = wanted.filter(|wanted| *wanted != found)?;
                        Some(Difference::Discrete { output, element, found, wanted })
                    })
                }
                _ => Some(Difference::Kind { output }),
            };
            if let Some(difference) = wrong {
                return Err(difference);
            }
        }
        Ok(())
    }
}

/// Where an outcome is not what is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// Of messages; `None` for results.
    Trap {
        found: Option<String>,
        wanted: Option<String>,
    },
    /// Another number of results.
    Results {
        found: usize,
        wanted: usize,
    },
    /// A result of another number or kind of elements.
    Kind {
        output: usize,
    },
    Float {
        output: usize,
        element: usize,
        found: f64,
        wanted: Spread,
    },
    /// Of integers; Bools count as 0 and 1.
    Discrete {
        output: usize,
        element: usize,
        found: i64,
        wanted: i64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Trap { found: Some(found), wanted: Some(wanted) } => {
                write!(f, "trap `{found}`, not `{wanted}`")
            }
            Difference::Trap { found: None, wanted } => {
                write!(f, "no trap `{}`", wanted.as_deref().unwrap_or_default())
            }
            Difference::Trap { found: Some(found), wanted: None } => write!(f, "trap `{found}`"),
            Difference::Results { found, wanted } => write!(f, "{found} results, not {wanted}"),
            Difference::Kind { output } => write!(f, "result {output}: another number or kind of elements"),
            Difference::Float { output, element, found, wanted } => {
                write!(f, "result {output}: element {element} is {found:e}, not {wanted}")
            }
            Difference::Discrete { output, element, found, wanted } => {
                write!(f, "result {output}: element {element} is {found}, not {wanted}")
            }
        }
    }
}

/// A program's results, one operator at a time in the precision of each dtype, and what is asked of other ways to compute them.
#[derive(Debug)]
pub struct Expectation {
    pub outcome: Outcome,
    /// `None` if rounding decides whether there are results at all.
    pub expected: Option<Expected>,
}

/// Evaluates the literal graph of a program, of which composites are expanded, for a comparison with what `level` makes of it. At
/// -O0 nothing is expected: that is the literal graph.
///
/// # Errors
/// As [`evaluate::run`]. A trap is an outcome.
pub fn expectation(
    literal: &Graph,
    registry: &Registry,
    inputs: &[Array],
    level: Level,
) -> Result<Expectation, InterpError> {
    let reference = outcome(literal, registry, inputs, Precision::Typed)?;
    if level == Level::O0 {
        // Nothing is to be compared.
        return Ok(Expectation { outcome: reference, expected: None });
    }
    let points = points(literal, registry).max(1);
    let count = usize::try_from(WORK / points).unwrap_or(RUNS).clamp(2, RUNS);
    let run = |seed: usize, zeros: Zeros| {
        evaluate(literal, registry, inputs, Noise { seed: seed as u64, precision: Precision::Typed, zeros })
    };
    let mut noisy = Vec::with_capacity(count + 5);
    for seed in 0..count {
        noisy.push(run(seed, Zeros::Computed)?);
    }
    // Errors break what is equal by a coincidence of exact values, and rounding may keep it.
    if !noisy.iter().any(|run| run.leaves_range) {
        let double = outcome(literal, registry, inputs, Precision::Double)?;
        let outcome = double.map(|results| results.into_iter().map(|(_, array)| array).collect());
        noisy.push(Run { outcome, leaves_range: false });
    }
    // Rewrites that are equal over the reals may change the sign of a zero.
    let any_sign = level == Level::O2;
    if any_sign {
        for (seed, zeros) in [Zeros::Positive, Zeros::Negative, Zeros::Random, Zeros::Random].into_iter().enumerate() {
            noisy.push(run(seed, zeros)?);
        }
    }
    // Fewer runs show less of what may happen.
    let factor = (RUNS / count) as f64;
    let mut expected = expected(&reference, noisy.iter()).map(|e| e.widened(factor));
    if any_sign {
        let dtypes: Vec<DType> = literal.outputs.iter().map(|o| literal.ty(o.node).dtype).collect();
        expected = expected.map(|e| e.of_any_sign().rounded_elsewhere(&dtypes));
    }
    Ok(Expectation { outcome: reference, expected })
}

/// The results of a graph, or the message of its trap.
///
/// # Errors
/// As [`evaluate::run`].
pub fn outcome(
    graph: &Graph,
    registry: &Registry,
    inputs: &[Array],
    precision: Precision,
) -> Result<Outcome, InterpError> {
    let copies = inputs.iter().map(Array::copy).collect::<Result<Vec<_>, _>>()?;
    match evaluate::run(graph, registry, copies, precision) {
        Ok(results) => {
            let dtypes = graph.outputs.iter().map(|o| graph.ty(o.node).dtype);
            Ok(Ok(dtypes.zip(results).map(|(dtype, (_, array))| (dtype, array)).collect()))
        }
        Err(InterpError::Trap(trap)) => Ok(Err(trap.to_string())),
        Err(error) => Err(error),
    }
}

/// Points of all loops of a graph: what one evaluation costs, roughly.
fn points(graph: &Graph, registry: &Registry) -> u64 {
    let of = |id| {
        graph.with_call(id, |op, call| match registry.op(op).kernel(call, graph.ty(id)) {
            Kernel::Loops(loops) => loops.iter().map(Loop::points).fold(0, u64::saturating_add),
            Kernel::Reshape | Kernel::Composite => graph.ty(id).shape.elements(),
        })
    };
    graph.iter().filter_map(|(id, _)| of(id)).fold(0, u64::saturating_add)
}

/// The least positive number of a dtype.
fn least(dtype: DType) -> f64 {
    2f64.powi(if dtype == DType::F32 { -149 } else { -1074 })
}
