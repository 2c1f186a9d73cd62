//! All ways to run a program, compared: the interpreter in f64 and in the precision of each dtype, optimised and not,
//! and compiled code at every level.

use std::fmt;

use kina_ad::exec::Tensor;
use kina_ad::interp::Evaluator;
use kina_ad::ir::{Array, DType, Graph, Level, Precision, Registry, Values};
use kina_ad::run::{Engine, RunError, check_program, run};
use kina_ad::{CheckOptions, Session};

use super::case::inputs_of;
use super::noise::{Noise, Spread, Zeros, evaluate, spread};

/// A way to run a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// Every float in f64.
    Double,
    /// The graph of the level, one operator at a time.
    Interpreted(Level),
    #[cfg(feature = "codegen")]
    Compiled(Level),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Double => f.write_str("interpreted in f64"),
            Way::Interpreted(level) => write!(f, "{level} interpreted"),
            #[cfg(feature = "codegen")]
            Way::Compiled(level) => write!(f, "{level} compiled"),
        }
    }
}

/// The ways that need no LLVM. The graph of -O0, interpreted in the precision of each dtype, is what all are compared
/// with.
pub const INTERPRETED: &[Way] = &[Way::Double, Way::Interpreted(Level::O1), Way::Interpreted(Level::O2)];

#[cfg(feature = "codegen")]
pub const COMPILED: &[Way] = &[Way::Compiled(Level::O0), Way::Compiled(Level::O1), Way::Compiled(Level::O2)];

/// What a comparison saw.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The message with which all ways trapped.
    pub trap: Option<String>,
    /// Elements of results: compared bit by bit, compared within a radius, left open because rounding decides.
    pub exact: usize,
    pub near: usize,
    pub open: usize,
    pub nans: usize,
    pub infinities: usize,
}

/// A difference between two ways, or a refusal.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// `None` if the program does not get as far as running.
    pub way: Option<Way>,
    pub what: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.way {
            Some(way) => write!(f, "{way}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

fn refused(what: impl fmt::Display) -> Disagreement {
    Disagreement { way: None, what: what.to_string() }
}

/// A checked program and its inputs.
pub struct Program<'s> {
    session: &'s Session,
    pub graph: Graph,
    pub inputs: Vec<Tensor>,
    arrays: Vec<Array>,
}

/// Results, or the message of a trap.
type Outcome = Result<Vec<(DType, Array)>, String>;

impl<'s> Program<'s> {
    /// Checks a text and reads its inputs.
    pub fn new(session: &'s mut Session, text: &str) -> Result<Program<'s>, Disagreement> {
        let graph = session.check("generated.kina", text, &CheckOptions::default()).map_err(refused)?;
        let inputs = inputs_of(text, &graph).map_err(refused)?;
        let arrays = inputs.iter().map(|t| t.to_array().expect("small")).collect();
        Ok(Program { session, graph, inputs, arrays })
    }

    fn registry(&self) -> &Registry {
        &self.session.rules.registry
    }

    /// The graph that a level runs.
    fn graph_at(&self, level: Level) -> Result<Graph, Disagreement> {
        let mut program = self.session.differentiate(&self.graph).map_err(refused)?;
        Ok(self.session.optimise(&mut program, level).map_err(refused)?.graph)
    }

    fn run(&self, graph: &Graph, level: Level, engine: Engine) -> Result<Outcome, String> {
        let inputs: Vec<&Tensor> = self.inputs.iter().collect();
        match run(graph, self.registry(), level, engine, &inputs) {
            Ok(results) => Ok(Ok(results
                .iter()
                .map(|(_, tensor)| (tensor.dtype(), tensor.to_array().expect("small")))
                .collect())),
            Err(RunError::Trap(message)) => Ok(Err(message)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Runs the program in all of the ways and compares each with the first.
    pub fn agree(&self, ways: &[Way]) -> Result<Seen, Disagreement> {
        let literal = self.graph_at(Level::O0)?;
        let reference = self.run(&literal, Level::O0, Engine::Interpreted(Precision::Typed)).map_err(refused)?;
        let noisy = |zeros: &[Zeros]| -> Vec<Result<Vec<Array>, String>> {
            let noise = |(seed, zeros): (usize, &Zeros)| Noise { seed: seed as u64, zeros: *zeros };
            let runs = zeros.iter().enumerate().map(noise);
            runs.map(|noise| evaluate(&literal, self.registry(), &self.arrays, noise)).collect()
        };
        let exact_zeros = noisy(&[Zeros::Computed; 3]);
        let any_zeros = noisy(&[Zeros::Positive, Zeros::Negative, Zeros::Random, Zeros::Random]);
        let mut seen = Seen::default();
        let Some(strict) = expected(&reference, exact_zeros.iter()) else { return Ok(seen) };
        let loose = expected(&reference, exact_zeros.iter().chain(&any_zeros));
        if let Ok(results) = &reference {
            seen.count(results, &strict);
        } else {
            seen.trap = reference.clone().err();
        }
        for way in ways {
            let disagrees = |what: String| Disagreement { way: Some(*way), what };
            let (level, outcome) = match *way {
                Way::Double => match self.in_double(&literal).map_err(disagrees)? {
                    Some(outcome) => (Level::O0, outcome),
                    None => continue,
                },
                Way::Interpreted(level) => {
                    let engine = Engine::Interpreted(Precision::Typed);
                    (level, self.run(&self.graph_at(level)?, level, engine).map_err(disagrees)?)
                }
                #[cfg(feature = "codegen")]
                Way::Compiled(level) => {
                    (level, self.run(&self.graph_at(level)?, level, Engine::Compiled).map_err(disagrees)?)
                }
            };
            // Rewrites that are equal over the reals may change the sign of a zero.
            let (expected, signs) = match (level, &loose) {
                (Level::O0 | Level::O1, _) => (&strict, true),
                (Level::O2, Some(loose)) => (loose, false),
                (Level::O2, None) => continue,
            };
            compare(expected, &outcome, signs).map_err(disagrees)?;
        }
        Ok(seen)
    }

    /// The results of the f64 interpreter, unless a value leaves the range of its dtype somewhere: then it has no bearing
    /// on the others.
    fn in_double(&self, graph: &Graph) -> Result<Option<Outcome>, String> {
        let mut evaluator = Evaluator::new(graph, self.registry(), self.arrays.clone(), Precision::Double)
            .map_err(|e| e.to_string())?;
        if let Err(error) = evaluator.evaluate() {
            return Ok(Some(Err(error.to_string())));
        }
        let leaves = |v: &f64| {
            let size = v.abs();
            size.is_finite() && size > f64::from(f32::MAX) || size > 0.0 && size < f64::from(f32::MIN_POSITIVE)
        };
        let left = graph.iter().any(|(id, node)| {
            node.ty.dtype == DType::F32 && evaluator.value(id).is_some_and(|a| a.floats().iter().any(leaves))
        });
        if left {
            return Ok(None);
        }
        let mut results = Vec::new();
        for output in &graph.outputs {
            let array = evaluator.require(output.node).map_err(|e| e.to_string())?.clone();
            results.push((graph.ty(output.node).dtype, array));
        }
        Ok(Some(Ok(results)))
    }

    /// Compares every gradient with finite differences. The number of gradients that were compared.
    pub fn gradients(&self) -> Result<usize, Disagreement> {
        let program = self.session.differentiate(&self.graph).map_err(refused)?;
        let inputs: Vec<&Tensor> = self.inputs.iter().collect();
        match check_program(&program, self.registry(), &inputs, 0) {
            Ok(report) => {
                use kina_ad::interp::Verdict;
                if report.gradients.iter().any(|g| g.verdict == Verdict::Failed) {
                    return Err(refused(format!("gradients and differences disagree:\n{report}")));
                }
                Ok(report.gradients.iter().filter(|g| g.verdict == Verdict::Passed).count())
            }
            Err(RunError::Trap(_)) => Ok(0),
            Err(error) => Err(refused(error)),
        }
    }
}

/// What may be asked of each element.
enum Expected {
    Trap(String),
    Results(Vec<Elements>),
}

enum Elements {
    Floats(Vec<Spread>),
    /// `None` where rounding decides.
    Discrete(Vec<Option<i64>>),
}

/// What a reference and runs with errors say together. `None` if rounding decides whether there are results at all.
fn expected<'r>(
    reference: &Outcome,
    runs: impl Iterator<Item = &'r Result<Vec<Array>, String>> + Clone,
) -> Option<Expected> {
    match reference {
        Err(message) => {
            let same = runs.clone().all(|run| run.as_ref().err() == Some(message));
            same.then(|| Expected::Trap(message.clone()))
        }
        Ok(results) => {
            let runs: Vec<&Vec<Array>> = runs.map(|run| run.as_ref().ok()).collect::<Option<_>>()?;
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

fn compare(expected: &Expected, outcome: &Outcome, signs: bool) -> Result<(), String> {
    let (expected, results) = match (expected, outcome) {
        (Expected::Trap(wanted), Err(message)) if wanted == message => return Ok(()),
        (Expected::Trap(wanted), Err(message)) => return Err(format!("trap `{message}`, not `{wanted}`")),
        (Expected::Trap(wanted), Ok(_)) => return Err(format!("no trap `{wanted}`")),
        (Expected::Results(_), Err(message)) => return Err(format!("trap `{message}`")),
        (Expected::Results(expected), Ok(results)) => (expected, results),
    };
    for (i, (expected, (_, array))) in expected.iter().zip(results).enumerate() {
        match expected {
            Elements::Floats(spreads) => {
                if spreads.len() != array.floats().len() {
                    return Err(format!("result {i} has another number of elements"));
                }
                for (k, (wanted, v)) in spreads.iter().zip(array.floats()).enumerate() {
                    let wanted = match wanted {
                        Spread::Exactly(value) if !signs => &Spread::Equal(*value),
                        other => other,
                    };
                    if !wanted.admits(*v) {
                        return Err(format!("result {i}, element {k} is {v:e}, not {wanted}"));
                    }
                }
            }
            Elements::Discrete(values) => {
                let found = discrete(array);
                if values.len() != found.len() {
                    return Err(format!("result {i} has another number of elements"));
                }
                for (k, (wanted, v)) in values.iter().zip(found).enumerate() {
                    if wanted.is_some_and(|wanted| wanted != v) {
                        return Err(format!("result {i}, element {k} is {v}, not {}", wanted.unwrap_or_default()));
                    }
                }
            }
        }
    }
    Ok(())
}

impl Seen {
    fn count(&mut self, results: &[(DType, Array)], expected: &Expected) {
        let Expected::Results(all) = expected else { return };
        for elements in all {
            match elements {
                Elements::Floats(spreads) => {
                    for spread in spreads {
                        match spread {
                            Spread::Exactly(_) | Spread::Equal(_) => self.exact += 1,
                            Spread::Within { .. } => self.near += 1,
                            Spread::Open => self.open += 1,
                        }
                    }
                }
                Elements::Discrete(values) => {
                    self.exact += values.iter().flatten().count();
                    self.open += values.iter().filter(|v| v.is_none()).count();
                }
            }
        }
        let floats = || results.iter().flat_map(|(_, array)| array.floats());
        self.nans += floats().filter(|v| v.is_nan()).count();
        self.infinities += floats().filter(|v| v.is_infinite()).count();
    }
}
