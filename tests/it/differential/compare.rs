//! All ways to run a program, compared: the interpreter in f64 and in the precision of each dtype, optimised and not,
//! and compiled code at every level.

use std::fmt;

use kina_ad::exec::Tensor;
use kina_ad::interp::expected::{Elements, Expected, Outcome, Spread};
use kina_ad::ir::{Array, Graph, Level, Precision, Registry};
use kina_ad::run::{Engine, RunError, check_program, run};
use kina_ad::{CheckOptions, Session};

use super::case::inputs_of;
use super::oracle::Oracle;

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

/// The ways that need no LLVM.
pub const INTERPRETED: &[Way] = &[Way::Double, Way::Interpreted(Level::O1), Way::Interpreted(Level::O2)];

#[cfg(feature = "codegen")]
pub const COMPILED: &[Way] = &[Way::Compiled(Level::O0), Way::Compiled(Level::O1), Way::Compiled(Level::O2)];

/// All ways of this build.
pub const WAYS: &[Way] = &[
    Way::Double,
    Way::Interpreted(Level::O1),
    Way::Interpreted(Level::O2),
    #[cfg(feature = "codegen")]
    Way::Compiled(Level::O0),
    #[cfg(feature = "codegen")]
    Way::Compiled(Level::O1),
    #[cfg(feature = "codegen")]
    Way::Compiled(Level::O2),
];

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
            Ok(results) => {
                Ok(Ok(results.iter().map(|(_, tensor)| (tensor.dtype(), tensor.to_array().expect("small"))).collect()))
            }
            Err(RunError::Trap(message)) => Ok(Err(message)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Runs the program in all of the ways and compares each with the interpreted graph of -O0.
    pub fn agree(&self, ways: &[Way]) -> Result<Seen, Disagreement> {
        let literal = self.graph_at(Level::O0)?;
        let interpreted = |precision| self.run(&literal, Level::O0, Engine::Interpreted(precision)).map_err(refused);
        let (typed, double) = (interpreted(Precision::Typed)?, interpreted(Precision::Double)?);
        let oracle = Oracle::new(&literal, self.registry(), &self.arrays, &typed, &double);
        let mut seen = Seen::default();
        seen.count(&typed, oracle.strict.as_ref());
        for way in ways {
            let disagrees = |what: String| Disagreement { way: Some(*way), what };
            let typed = Engine::Interpreted(Precision::Typed);
            let (level, outcome) = match *way {
                Way::Double => (Level::O0, double.clone()),
                Way::Interpreted(level) => (level, self.run(&self.graph_at(level)?, level, typed).map_err(disagrees)?),
                #[cfg(feature = "codegen")]
                Way::Compiled(level) => (
                    level,
                    self.run(&self.graph_at(level)?, level, Engine::Compiled { threads: None }).map_err(disagrees)?,
                ),
            };
            let expected = match (way, level) {
                (Way::Double, _) => &oracle.double,
                (_, Level::O0 | Level::O1) => &oracle.strict,
                // Rewrites that are equal over the reals may change the sign of a zero.
                (_, Level::O2) => &oracle.loose,
            };
            if let Some(expected) = expected {
                expected.admits(&outcome).map_err(|difference| disagrees(difference.to_string()))?;
            }
        }
        Ok(seen)
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

impl Seen {
    fn count(&mut self, outcome: &Outcome, expected: Option<&Expected>) {
        let (results, all) = match (outcome, expected) {
            (_, None) => return,
            (Err(message), _) => return self.trap = Some(message.clone()),
            (Ok(results), Some(Expected::Results(all))) => (results, all),
            (Ok(_), Some(Expected::Trap(_))) => return,
        };
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
