//! Differentiation and optimisation as e-graph rewrites, and extraction.
//!
//! 1. [`differentiate`](fn@differentiate) puts the forward graph onto a tape and into the e-graph, walks the tape backwards, and
//!    rewrites each `vjp:op:operand(..)` e-node once, by the operator's VJP rule.
//! 2. [`optimise`](fn@optimise) saturates the e-graph with the rewrites of the level, under counted budgets, and
//! 3. extracts the cheapest DAG under the documented [cost model](mod@cost).
//!
//! No derivative and no identity is known here: both come from rule files, and every e-node says which rule made it.

mod conclude;
pub mod cost;
mod differentiate;
mod expand;
pub mod explain;
pub mod extract;
pub mod forms;
pub mod history;
pub mod language;
pub(crate) mod lookup;
mod masks;
pub(crate) mod matching;
pub mod mirror;
pub(crate) mod mismatch;
mod missing;
mod optimise;
pub(crate) mod patterns;
pub(crate) mod ranges;
pub mod record;
pub(crate) mod result;
pub(crate) mod space;
mod tape;
pub mod view;

pub(crate) use differentiate::stops;
pub use differentiate::{Concluded, Differentiated, Gradient, differentiate};
pub use expand::resolve;
pub use optimise::{Budget, Report, Stop, saturate};
pub use patterns::commutes;
pub use result::{Extracted, extract, extract_with};

use std::fmt::Write as _;

use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::ir::{Graph, Level, NodeKind};
use crate::rules::RuleSet;

/// A program ready to be scheduled.
#[derive(Clone, Debug)]
pub struct Optimised {
    pub graph: Graph,
    /// The level it was rewritten at, and is to be compiled at.
    pub level: Level,
    /// Cost of the extracted graph; `None` at -O0, where nothing is extracted.
    pub cost: Option<cost::Cost>,
    /// What the saturation did; `None` at -O0.
    pub report: Option<Report>,
}

impl Optimised {
    /// Bytes of all values that the graph computes, inputs aside; fusion will keep most of them from existing.
    pub fn bytes(&self) -> u64 {
        let computed = self.graph.iter().filter(|(_, n)| n.kind != NodeKind::Input);
        computed.map(|(_, n)| n.ty.bytes()).fold(0, u64::saturating_add)
    }

    /// Cost, bytes and what the saturation did, one line each.
    pub fn summary(&self) -> String {
        let mut out = String::new();
        if let Some(cost) = self.cost {
            let _ = writeln!(out, "cost   {cost}");
        }
        let _ = writeln!(out, "bytes  {}", self.bytes());
        if let Some(report) = &self.report {
            let end = match report.stop {
                Stop::Saturated => "saturated",
                Stop::Nodes => "out of its budget of e-nodes; the result is right, but may not be the cheapest",
                Stop::Steps => "out of its budget of steps; the result is right, but may not be the cheapest",
                Stop::Iterations => "out of its budget of iterations; the result is right, but may not be the cheapest",
                Stop::Applications => {
                    "out of its budget of applications; the result is right, but may not be the cheapest"
                }
            };
            let _ = writeln!(
                out,
                "e-graph  {} e-nodes in {} classes after {} iterations, {end}",
                report.nodes, report.classes, report.iterations
            );
            if !report.extracted {
                let _ = writeln!(
                    out,
                    "extraction  out of its budget of steps; the result is right, but may not be the cheapest"
                );
            }
        }
        out
    }
}

/// Rewrites and extracts at a level. At -O0 the graph is that of the tape, literally.
///
/// # Errors
/// A rule that is ill-typed where it fired.
pub fn optimise(
    program: &mut Differentiated,
    rules: &RuleSet,
    level: Level,
    budget: Budget,
) -> Result<Optimised, Diagnostics> {
    if level == Level::O0 {
        let graph =
            program.program(rules).map_err(|e| Diagnostics::from(Diagnostic::error(e.kind.code(), e.message)))?;
        return Ok(Optimised { graph, level, cost: None, report: None });
    }
    let report = optimise::saturate(program, rules, level, budget)?;
    match result::extract(program) {
        Some(found) => {
            let report = Report { extracted: found.complete, ..report };
            Ok(Optimised { graph: found.graph, level, cost: Some(found.cost), report: Some(report) })
        }
        None => Err(no_form().into()),
    }
}

/// What is said where a root of the program has no form that can be computed.
pub(crate) fn no_form() -> Diagnostic {
    Diagnostic::error("E0505", "no form of the program can be computed")
        .help("this is a fault of kina-ad: please report it with the program and the rule files")
}
