//! What a reviewer weighs beside the graph: cost, bytes, peak memory, and whether the numbers are right.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::numbers::Agreement;
use super::parse::{Fault, Reader};
use crate::egraph::cost::Cost;
use crate::egraph::{Differentiated, Optimised};
use crate::exec::Tensor;
use crate::exec::inputs::{Input, gather};
use crate::interp::{self, GradReport};
use crate::ir::{Array, Precision};
use crate::run::RunError;
use crate::schedule::Schedule;
use crate::{Refusal, Session};

/// What a program takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// In the units of the cost model; `None` at -O0, where nothing is extracted.
    pub cost: Option<Cost>,
    /// Of all values that are computed.
    pub bytes: u64,
    /// Inputs, outputs and temporaries of a run with one thread.
    pub peak: u64,
}

impl Measure {
    /// # Errors
    /// A program without a schedule.
    pub fn of(session: &Session, program: &Optimised) -> Result<Measure, Refusal> {
        let schedule: Schedule = session.schedule(program)?;
        Ok(Measure { cost: program.cost, bytes: program.bytes(), peak: schedule.peak() })
    }

    /// `cost`, `bytes` and `peak` with their numbers.
    pub fn rows(&self) -> [(&'static str, Option<u64>); 3] {
        [("cost", self.cost), ("bytes", Some(self.bytes)), ("peak", Some(self.peak))]
    }

    pub fn text(&self) -> String {
        let rows = self.rows().into_iter().filter_map(|(name, value)| Some(format!("{name:6} {}\n", value?)));
        rows.collect()
    }

    pub fn read(reader: &mut Reader<'_>) -> Result<Measure, Fault> {
        let number = |text: &str, reader: &Reader<'_>| {
            text.parse().map_err(|_| reader.fault_before(format!("`{text}` is not a number of units or bytes")))
        };
        let cost = reader.take("cost ").map(|text| number(text, reader)).transpose()?;
        let bytes = reader.expect("bytes ")?;
        let bytes = number(bytes, reader)?;
        let peak = reader.expect("peak ")?;
        Ok(Measure { cost, bytes, peak: number(peak, reader)? })
    }
}

/// How one line of a verdict ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    NotChecked,
    /// The program has no gradient.
    Nothing,
}

impl Outcome {
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::NotChecked => "not checked",
            Outcome::Nothing => "nothing to check",
        }
    }
}

const NO_GRADIENT: &str = "the program has no gradient";
const NOT_CHECKED: &str = "not checked";
/// What is written where nobody wanted a check.
const UNWANTED: &str = "not checked, as was asked for";

/// What is known of the numbers of a program, line by line: each gradient against finite differences, as `run --check` prints it,
/// and each result of the rewritten program against the program as it was differentiated. The lines hold nothing that depends on
/// the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub gradients: Vec<String>,
    pub rewriting: Vec<String>,
}

impl Verdict {
    /// Nobody looked.
    pub fn unwanted() -> Verdict {
        Verdict { gradients: vec![UNWANTED.to_owned()], rewriting: vec![UNWANTED.to_owned()] }
    }

    /// Checks a program at generated inputs.
    pub fn of(session: &Session, program: &Differentiated, optimised: &Optimised, seed: u64) -> Verdict {
        let inputs = match gather(&program.tape, Vec::new(), seed) {
            Ok(inputs) => inputs,
            Err(error) => return Verdict::unchecked(&error.to_string()),
        };
        let tensors: Vec<&Tensor> = inputs.iter().map(|i| &i.tensor).collect();
        let gradients = if program.gradients.is_empty() {
            vec![NO_GRADIENT.to_owned()]
        } else {
            match session.check_gradients(program, &tensors, seed) {
                Ok(report) => lines(&report),
                Err(error) => return Verdict::unchecked(&why(&error)),
            }
        };
        let rewriting =
            rewriting(session, program, optimised, &inputs).unwrap_or_else(|error| vec![unchecked(&why(&error))]);
        Verdict { gradients, rewriting }
    }

    fn unchecked(why: &str) -> Verdict {
        Verdict { gradients: vec![unchecked(why)], rewriting: vec![unchecked(why)] }
    }

    /// Every line, of what it speaks, and how it ends.
    pub fn outcomes(&self) -> Vec<(&'static str, &str, Outcome)> {
        let of = |what: &'static str, line: &'_ str| -> (&'static str, Outcome) { (what, outcome(line)) };
        let gradients = self.gradients.iter().map(|line| (of("gradient", line), &**line));
        let rewriting = self.rewriting.iter().map(|line| (of("rewriting", line), &**line));
        let subject = |line: &'_ str| line.split_once(": ").map_or("", |(name, _)| name).len();
        gradients.chain(rewriting).map(|((what, outcome), line)| (what, &line[..subject(line)], outcome)).collect()
    }

    /// Is there nothing against the program? What was not checked, for whatever reason, counts against it.
    pub fn passed(&self) -> bool {
        self.outcomes().iter().all(|(_, _, outcome)| matches!(outcome, Outcome::Passed | Outcome::Nothing))
    }

    /// Was it asked for that nothing be checked?
    pub fn is_unwanted(&self) -> bool {
        self.gradients.iter().chain(&self.rewriting).all(|line| line == UNWANTED)
    }

    /// The lines that are against the program.
    pub fn complaints(&self) -> Vec<&str> {
        let all = self.gradients.iter().chain(&self.rewriting);
        all.filter(|line| !matches!(outcome(line), Outcome::Passed | Outcome::Nothing)).map(|line| &**line).collect()
    }

    /// The titles of its sections, and their lines.
    pub fn sections(&self) -> [(&'static str, &[String]); 2] {
        [(GRADIENTS, &self.gradients), (REWRITING, &self.rewriting)]
    }

    pub fn text(&self) -> String {
        let mut out = String::new();
        for (title, lines) in self.sections() {
            let _ = writeln!(out, "{title}");
            for line in lines {
                let _ = writeln!(out, "  {line}");
            }
        }
        out
    }

    pub fn read(reader: &mut Reader<'_>) -> Result<Verdict, Fault> {
        let mut section = |title: &str| -> Result<Vec<String>, Fault> {
            reader.expect(title)?;
            let lines: Vec<String> = std::iter::from_fn(|| reader.entry()).map(str::to_owned).collect();
            if lines.is_empty() { Err(reader.fault("a verdict is missing here")) } else { Ok(lines) }
        };
        Ok(Verdict { gradients: section(GRADIENTS)?, rewriting: section(REWRITING)? })
    }
}

const GRADIENTS: &str = "gradient check";
const REWRITING: &str = "rewriting check";

/// The lines of a gradient check, as every command prints them.
pub fn lines(report: &GradReport) -> Vec<String> {
    report.to_string().lines().map(str::to_owned).collect()
}

fn unchecked(why: &str) -> String {
    format!("{NOT_CHECKED}: {}", why.lines().next().unwrap_or(""))
}

fn why(error: &RunError) -> String {
    match error {
        RunError::Trap(message) => format!("a trap at the generated inputs, {message}"),
        error => error.to_string(),
    }
}

fn outcome(line: &str) -> Outcome {
    let verdict = line.split_once(": ").map_or(line, |(_, rest)| rest);
    if line == NO_GRADIENT {
        Outcome::Nothing
    } else if line.starts_with(NOT_CHECKED) || verdict.starts_with(NOT_CHECKED) {
        Outcome::NotChecked
    } else if line.ends_with(": passed") {
        Outcome::Passed
    } else {
        Outcome::Failed
    }
}

/// Each result of the rewritten graph against that of the tape, in f64: what rules of rewriting have changed, which the check of
/// gradients, that looks at the tape, does not see.
fn rewriting(
    session: &Session,
    program: &Differentiated,
    optimised: &Optimised,
    inputs: &[Input],
) -> Result<Vec<String>, RunError> {
    let registry = &session.rules.registry;
    let arrays = || inputs.iter().map(|i| i.tensor.to_array()).collect::<Result<Vec<Array>, _>>();
    let before = interp::run(&program.tape, registry, arrays()?, Precision::Double)?;
    let after = interp::run(&optimised.graph, registry, arrays()?, Precision::Double)?;
    let lines = before.iter().zip(&after).map(|((name, before), (_, after))| match Agreement::of(before, after) {
        Some(agreement) => {
            format!("{name}: {agreement}: {}", if agreement.holds() { "passed" } else { "FAILED" })
        }
        None => format!("{name}: of another shape: FAILED"),
    });
    Ok(lines.collect())
}

/// The results of two programs at the same inputs.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// Why they cannot be compared.
    NotCompared(String),
    /// One of them stops, or both do for different reasons.
    Stopped { left: Option<String>, right: Option<String> },
    /// By name; `None` where the shapes differ. Results of one program only are left out.
    Compared(Vec<(String, Option<Agreement>)>),
}

impl Numbers {
    /// Are they known to differ by more than rounding?
    pub fn differ(&self) -> bool {
        match self {
            Numbers::NotCompared(_) => false,
            Numbers::Stopped { .. } => true,
            Numbers::Compared(list) => list.iter().any(|(_, agreement)| agreement.is_none_or(|a| !a.holds())),
        }
    }
}

/// One side of a comparison of numbers.
pub struct Side<'a> {
    pub session: &'a Session,
    pub tape: &'a Differentiated,
    pub optimised: &'a Optimised,
}

/// Runs two programs in f64 on the same generated inputs.
pub fn numbers(left: &Side<'_>, right: &Side<'_>, seed: u64) -> Numbers {
    let generated = match gather(&left.tape.tape, Vec::new(), seed) {
        Ok(inputs) => inputs,
        Err(error) => return Numbers::NotCompared(error.to_string()),
    };
    let types = |side: &Side<'_>| {
        let tape = &side.tape.tape;
        let mut types: Vec<_> =
            tape.inputs.iter().map(|id| (tape.node(*id).name.clone(), tape.ty(*id).clone())).collect();
        types.sort_by(|a, b| a.0.cmp(&b.0));
        types
    };
    if types(left) != types(right) {
        return Numbers::NotCompared("the programs do not have the same inputs".to_owned());
    }
    let given = generated.iter().map(|i| (i.name.clone(), i.tensor.clone())).collect();
    let others = match gather(&right.tape.tape, given, seed) {
        Ok(inputs) => inputs,
        Err(error) => return Numbers::NotCompared(error.to_string()),
    };
    let run = |side: &Side<'_>, inputs: &[Input]| -> Result<Vec<_>, RunError> {
        let arrays = inputs.iter().map(|i| i.tensor.to_array()).collect::<Result<_, _>>()?;
        Ok(interp::run(&side.optimised.graph, &side.session.rules.registry, arrays, Precision::Double)?)
    };
    let (first, second) = match (run(left, &generated), run(right, &others)) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(a), Err(b)) if a.to_string() == b.to_string() => {
            return Numbers::NotCompared(format!("both: {}", why(&a)));
        }
        (Err(a), Err(b)) => return Numbers::Stopped { left: Some(why(&a)), right: Some(why(&b)) },
        (Err(a), Ok(_)) => return Numbers::Stopped { left: Some(why(&a)), right: None },
        (Ok(_), Err(b)) => return Numbers::Stopped { left: None, right: Some(why(&b)) },
    };
    let second: BTreeMap<_, _> = second.into_iter().collect();
    let compared = first.iter().filter_map(|(name, a)| Some((name.to_string(), Agreement::of(a, second.get(name)?))));
    Numbers::Compared(compared.collect())
}
