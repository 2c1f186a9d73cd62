//! Is anything wrong at all?

use std::sync::Arc;

use crate::diagnostics::Diagnostics;
use crate::egraph::{self, Budget, Differentiated, Optimised};
use crate::interp::expected::{Difference, Expectation, Spread, expectation, outcome};
use crate::interp::{GradReport, InterpError};
use crate::ir::{Array, DType, Graph, Level, Precision, Registry};
use crate::rules::RuleSet;
use crate::run::{RunError, check_program};
use crate::verify::number;

use super::Question;

/// What the check of gradients says of the program as differentiation alone made it.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// There is no gradient.
    Nothing,
    Passed(GradReport),
    Failed(GradReport),
    /// There are no values to check: the message of the trap.
    Trap(String),
}

/// How the program at its level compares with -O0.
#[derive(Clone, Debug, PartialEq)]
pub enum Agreement {
    /// It is -O0.
    Literal,
    /// Both have the same results, but for rounding, or trap alike.
    Agrees,
    /// Rounding decides whether -O0 traps.
    Open,
    Differs(Seen),
    /// The rules make of it what cannot be.
    Refused(Diagnostics),
}

/// A difference between the results of -O0 and those of a level.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The result, and the element in it. `None` for traps.
    pub result: Option<(Arc<str>, usize)>,
    pub literal: String,
    pub found: String,
    /// The same as numbers, if they are floats.
    pub numbers: Option<[f64; 2]>,
    /// How far from -O0 rounding may take the element.
    pub radius: Option<f64>,
}

impl Seen {
    /// Of a difference between graphs with these results.
    pub fn new(difference: &Difference, graph: &Graph) -> Seen {
        let place = |output: usize, element| Some((graph.outputs.get(output)?.name.clone(), element));
        let dtype = |output: usize| graph.outputs.get(output).map(|o| graph.ty(o.node).dtype);
        let trap = |message: &Option<String>| message.as_ref().map_or("results".to_owned(), |m| format!("trap `{m}`"));
        match difference {
            Difference::Trap { found, wanted } => {
                Seen { result: None, literal: trap(wanted), found: trap(found), numbers: None, radius: None }
            }
            Difference::Results { found, wanted } => Seen {
                result: None,
                literal: format!("{wanted} results"),
                found: format!("{found} results"),
                numbers: None,
                radius: None,
            },
            Difference::Kind { output } => Seen {
                result: place(*output, 0),
                literal: "elements of one kind".to_owned(),
                found: "elements of another".to_owned(),
                numbers: None,
                radius: None,
            },
            Difference::Float { output, element, found, wanted } => {
                let (value, radius) = match *wanted {
                    Spread::Exactly(value) | Spread::Equal(value) => (value, Some(0.0)),
                    Spread::Within { value, radius } => (value, Some(radius)),
                    Spread::Open => (f64::NAN, None),
                };
                let same = number(value) == number(*found);
                let text = |v: f64| if same { format!("{v:?}") } else { number(v) };
                let numbers = Some([value, *found]);
                Seen { result: place(*output, *element), literal: text(value), found: text(*found), numbers, radius }
            }
            Difference::Discrete { output, element, found, wanted } => {
                let text = |v: i64| match dtype(*output) {
                    Some(DType::Bool) => (v != 0).to_string(),
                    _ => v.to_string(),
                };
                let (literal, found) = (text(*wanted), text(*found));
                Seen { result: place(*output, *element), literal, found, numbers: None, radius: None }
            }
        }
    }
}

/// What one run of the pipeline with some of the rules gave.
pub enum Ran {
    Agrees,
    Differs(Difference),
    Refused(Diagnostics),
}

/// A program, its inputs and what is expected of it, to be compiled with one set of rules after another.
pub struct Bench<'a> {
    pub question: &'a Question<'a>,
    pub inputs: Vec<Array>,
    pub expectation: Expectation,
}

impl<'a> Bench<'a> {
    /// Computes what -O0 gives.
    ///
    /// # Errors
    /// As [`crate::run::run`].
    pub fn new(question: &'a Question<'a>, literal: &Graph) -> Result<Bench<'a>, RunError> {
        let inputs: Vec<Array> = question.inputs.iter().map(|t| t.to_array()).collect::<Result<_, _>>()?;
        let registry = &question.session.rules.registry;
        let expectation = expectation(literal, registry, &inputs, question.level)?;
        Ok(Bench { question, inputs, expectation })
    }

    /// The operators.
    pub fn registry(&self) -> &Registry {
        &self.question.session.rules.registry
    }

    /// The program, rewritten by some of the rules, with the record of it.
    ///
    /// # Errors
    /// What the rules make of it cannot be.
    pub fn optimised(&self, rules: &RuleSet) -> Result<(Differentiated, Optimised), Diagnostics> {
        let mut program = egraph::differentiate(self.question.graph, rules)?;
        program.keep_record();
        let optimised = egraph::optimise(&mut program, rules, self.question.level, Budget::default())?;
        Ok((program, optimised))
    }

    /// Compares a graph's results with those of -O0.
    ///
    /// # Errors
    /// Memory that does not suffice.
    pub fn compare(&self, graph: &Graph) -> Result<Option<Difference>, InterpError> {
        let Some(expected) = &self.expectation.expected else { return Ok(None) };
        let outcome = outcome(graph, self.registry(), &self.inputs, Precision::Typed)?;
        Ok(expected.admits(&outcome).err())
    }

    /// The program with some of the rules, compared with -O0.
    ///
    /// # Errors
    /// As [`compare`](Self::compare).
    pub fn run(&self, rules: &RuleSet) -> Result<Ran, InterpError> {
        match self.optimised(rules) {
            Err(diagnostics) => Ok(Ran::Refused(diagnostics)),
            Ok((_, optimised)) => Ok(match self.compare(&optimised.graph)? {
                None => Ran::Agrees,
                Some(difference) => Ran::Differs(difference),
            }),
        }
    }
}

/// Checks the gradients as differentiation made them.
///
/// # Errors
/// As [`check_program`], but for traps.
pub fn check(question: &Question<'_>, program: &Differentiated) -> Result<Check, RunError> {
    if program.gradients.is_empty() {
        return Ok(Check::Nothing);
    }
    match check_program(program, &question.session.rules.registry, question.inputs, question.seed) {
        Ok(report) if report.passed() => Ok(Check::Passed(report)),
        Ok(report) => Ok(Check::Failed(report)),
        Err(RunError::Trap(message)) => Ok(Check::Trap(message)),
        Err(error) => Err(error),
    }
}

/// How the level compares with -O0, and the program that it made, if it made one.
pub type Compared = (Agreement, Option<(Differentiated, Optimised)>);

/// Compares the level with all rules.
///
/// # Errors
/// Memory that does not suffice.
pub fn agreement(bench: &Bench<'_>) -> Result<Compared, RunError> {
    if bench.question.level == Level::O0 {
        return Ok((Agreement::Literal, None));
    }
    match bench.optimised(&bench.question.session.rules) {
        Err(diagnostics) => Ok((Agreement::Refused(diagnostics), None)),
        Ok((program, optimised)) => {
            let agreement = match (&bench.expectation.expected, bench.compare(&optimised.graph)?) {
                (None, _) => Agreement::Open,
                (_, None) => Agreement::Agrees,
                (_, Some(difference)) => Agreement::Differs(Seen::new(&difference, &optimised.graph)),
            };
            Ok((agreement, Some((program, optimised))))
        }
    }
}
