//! What changed, and whether it is right: programs and rule sets compared by meaning, and snapshots of extracted graphs for review.
//!
//! - [`record`] is a graph as a reader sees it, made of a graph or [read back](parse) from its text;
//! - [`meaning`] compares two of them, so that names, numbering and order are no difference;
//! - [`measure`] is what a program takes, and the verdict on its numbers;
//! - [`diff`] compares two programs, or one under two rule sets, and [`edits`] finds the rule edits that make the difference;
//! - [`snapshot`] is a text for reviewers with all of this, beside its program; [`files`] finds programs and snapshots, and [`gate`]
//!   says which of them may pass.
//!
//! Only the command line uses this module.

pub mod diff;
pub mod edits;
pub mod files;
pub mod gate;
pub mod meaning;
pub mod measure;
pub mod numbers;
pub mod parse;
pub mod record;
pub mod report;
pub mod show;
pub mod snapshot;

use crate::check::CheckOptions;
use crate::egraph::{Differentiated, Optimised};
use crate::ir::{Graph, Level};
use crate::syntax::ast::Program;
use crate::{Refusal, Session};

use measure::{Measure, Verdict};
use record::Record;

/// How a program is compiled and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub level: Level,
    /// The cotangent is an input, and not ones.
    pub cotangent_input: bool,
    /// Of generated inputs and sampled checks.
    pub seed: u64,
    /// Are numbers looked at?
    pub check: bool,
}

/// A program on its way to a comparison.
pub struct Subject {
    /// What it is called in messages: its path.
    pub name: String,
    pub graph: Graph,
    pub tape: Differentiated,
    pub optimised: Optimised,
    /// The extracted graph.
    pub record: Record,
}

impl Subject {
    /// Compiles a program that the session has parsed, down to the extracted graph.
    ///
    /// # Errors
    /// A program that is refused.
    pub fn new(session: &Session, name: &str, program: &Program, settings: &Settings) -> Result<Subject, Refusal> {
        let options = CheckOptions { cotangent_input: settings.cotangent_input };
        let graph = session.check_tree(program, &options)?;
        let mut tape = session.differentiate(&graph)?;
        let optimised = session.optimise(&mut tape, settings.level)?;
        let record = Record::new(&optimised.graph, &session.rules.registry, &session.sources, name);
        Ok(Subject { name: name.to_owned(), graph, tape, optimised, record })
    }

    /// # Errors
    /// A program without a schedule.
    pub fn measure(&self, session: &Session) -> Result<Measure, Refusal> {
        Measure::of(session, &self.optimised)
    }

    /// What is known of its numbers.
    pub fn verdict(&self, session: &Session, settings: &Settings) -> Verdict {
        match settings.check {
            true => Verdict::of(session, &self.tape, &self.optimised, settings.seed),
            false => Verdict::unwanted(),
        }
    }
}
