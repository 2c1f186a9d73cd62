//! Which rule makes the check of gradients fail, or a result change?
//!
//! 1. The premise: gradients as differentiation made them against finite differences, and the results of a level against those of
//!    -O0, which rounding may move so far as it is measured to ([`crate::interp::noise`]).
//! 2. A check that fails is the fault of a VJP: each is compared with its operator, at the values it is used at ([`vjps`]).
//! 3. A level that differs is the fault of a rewrite: those that fired are halved ([`search`], [`rewrites`]), and then the
//!    applications of what is left, until one makes the difference ([`application`]).

pub mod application;
mod message;
pub mod premise;
mod report;
pub mod rewrites;
pub mod search;
pub mod vjps;

use std::sync::Arc;

pub use report::as_json;

use crate::diagnostics::Span;
use crate::exec::Tensor;
use crate::ir::{Graph, Level};
use crate::run::RunError;
use crate::{Diagnostic, Refusal, Session};

use premise::{Agreement, Bench, Check};
use rewrites::RewriteFindings;
use search::Purpose;
use vjps::VjpFindings;

/// A program and the values to try it at.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    pub session: &'a Session,
    /// Checked, not differentiated.
    pub graph: &'a Graph,
    pub level: Level,
    /// In the order of the program's.
    pub inputs: &'a [&'a Tensor],
    /// Of sampled comparisons.
    pub seed: u64,
}

/// One run of the search for a rewrite, or for an application of it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepDone {
    pub purpose: Purpose,
    /// Of applications, not of rules.
    pub applications: bool,
    pub number: usize,
    pub at_most: usize,
    /// How many of how many suspects were on.
    pub tried: usize,
    pub of: usize,
    /// How many rules or applications were on in all.
    pub on: usize,
    /// The rule that the step was about, if it was one.
    pub rule: Option<Arc<str>>,
    /// Did the results differ from those of -O0?
    pub differs: bool,
}

/// What is known as soon as it is known.
pub enum Event<'a> {
    Check(&'a Check),
    Agreement(Level, &'a Agreement),
    Vjps(&'a VjpFindings),
    Step(&'a StepDone),
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Answer {
    pub level: Level,
    /// Where the first gradient is asked for.
    pub handler: Option<Span>,
    pub check: Check,
    pub agreement: Agreement,
    /// The message with which -O0 and the level trap alike.
    pub trap: Option<String>,
    /// Of the VJPs, if the check failed.
    pub vjps: Option<VjpFindings>,
    pub steps: Vec<StepDone>,
    /// Of the rewrites, if the level differs.
    pub rewrites: Option<RewriteFindings>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum BisectError {
    /// The program is refused, or a rule where it fired: the diagnostics name it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Run(#[from] RunError),
}

impl From<crate::interp::InterpError> for BisectError {
    fn from(error: crate::interp::InterpError) -> Self {
        BisectError::Run(error.into())
    }
}

impl Answer {
    /// Is nothing wrong that a rule could be the cause of?
    pub fn is_right(&self) -> bool {
        self.vjps.is_none() && self.rewrites.is_none()
    }
}

/// Finds the rule that makes the check of a program fail, or its result change. `watch` is told of every step.
///
/// # Errors
/// A program or a rule that is refused, memory that does not suffice. A trap is part of the answer.
pub fn bisect(question: &Question<'_>, watch: &mut dyn FnMut(Event<'_>)) -> Result<Answer, BisectError> {
    let session = question.session;
    let program = session.differentiate(question.graph)?;
    let literal = program
        .program(&session.rules)
        .map_err(|e| session.refusal(Diagnostic::error(e.kind.code(), e.message).into()))?;
    let bench = Bench::new(question, &literal)?;
    let check = premise::check(question, &program)?;
    watch(Event::Check(&check));
    let (agreement, full) = premise::agreement(&bench)?;
    if let Agreement::Refused(diagnostics) = &agreement
        // The rule is named already.
        && diagnostics.iter().any(|d| d.code == "E0503")
    {
        return Err(session.refusal(diagnostics.clone()).into());
    }
    watch(Event::Agreement(question.level, &agreement));
    let mut answer = Answer {
        level: question.level,
        handler: question.graph.handlers.first().map(|handler| handler.span),
        check,
        agreement,
        trap: bench.expectation.outcome.as_ref().err().cloned(),
        vjps: None,
        steps: Vec::new(),
        rewrites: None,
    };
    if let Check::Failed(_) = answer.check {
        let findings = vjps::check(question, &program)?;
        watch(Event::Vjps(&findings));
        answer.vjps = Some(findings);
    }
    if matches!(answer.agreement, Agreement::Differs(_) | Agreement::Refused(_)) {
        answer.rewrites = Some(rewrites::find(&bench, full.as_ref(), watch, &mut answer.steps)?);
    }
    if !answer.is_right() {
        answer.trap = None;
    }
    Ok(answer)
}
