//! What cannot be done on a tour.

use super::Tour;
use super::command::{self, CommandError};
use crate::diagnostics::Diagnostic;

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TourError {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error("there are no applications: {0}")]
    Nothing(&'static str),
    #[error("nothing was applied yet")]
    NothingApplied,
    #[error("this is the start")]
    AtTheStart,
    #[error("this was the last application")]
    AtTheEnd,
    #[error("there is fuel for {0} applications only")]
    OutOfFuel(usize),
    #[error("no further application with filter {0}")]
    NoneFurther(String),
    #[error("there is no application {wanted}, the last is {last}")]
    NoSuchPlace { wanted: usize, last: usize },
    #[error("there is no iteration {wanted}, the last is {last}")]
    NoIteration { wanted: usize, last: usize },
    #[error("there is no rule `{0}`")]
    UnknownRule(String),
    #[error("there is no operator `{0}`")]
    UnknownOp(String),
    #[error("there is no value `{0}` here")]
    UnknownValue(String),
    #[error("`{0}` is not to be found in this view")]
    NotFound(String),
    #[error("there is no text to search for")]
    NoText,
}

impl TourError {
    /// The same with a way out.
    pub fn diagnostic(&self, tour: &Tour) -> Diagnostic {
        let code = if matches!(self, TourError::Command(_)) { "E0930" } else { "E0931" };
        let error = Diagnostic::error(code, self.to_string());
        match self {
            TourError::Command(CommandError::Unknown(name)) => {
                let all: Vec<&str> = command::names().collect();
                let error =
                    error.did_you_mean_or(name, all.iter().copied(), "`help` lists the commands with their arguments");
                error.note(format!("the commands are {}", all.join(", ")))
            }
            TourError::Command(CommandError::Arguments(name, _)) => {
                error.help(command::entry_of(name).map_or("see `help`", |e| e.help))
            }
            TourError::Nothing(_) => error.help("look at `graph`; rewriting takes -O1 or -O2 and rules that match"),
            TourError::NothingApplied => error.help("`next` applies the first; `class VALUE` looks at any value"),
            TourError::AtTheStart => error.help("`next` goes on"),
            TourError::AtTheEnd => error.help("`back` goes back; `first` goes to the start"),
            TourError::OutOfFuel(_) => error.help("`fuel off` allows all of them"),
            TourError::NoneFurther(_) => error.help("`filter none` lets all pass; `first` goes to the start"),
            TourError::NoSuchPlace { .. } => error.help("`goto 0` is the program before any rewriting, `last` the end"),
            TourError::NoIteration { .. } => error.help("`applications` lists them"),
            TourError::UnknownRule(name) => {
                let rules = crate::rules::listing::entries(&tour.rules);
                error.did_you_mean_or(
                    name,
                    rules.iter().map(crate::rules::listing::Entry::subject),
                    "`kina-ad rules list` prints the rules that are loaded",
                )
            }
            TourError::UnknownOp(name) => {
                let ops = tour.rules.registry.iter().map(|(_, op)| op.name());
                error.did_you_mean_or(name, ops, crate::diagnostics::UNKNOWN_OPERATOR)
            }
            TourError::UnknownValue(name) => {
                let here = tour.state().map(|s| s.names.clone()).unwrap_or_default();
                let names = tour.history().names().chain(here.iter().map(String::as_str));
                error.did_you_mean_or(
                    name,
                    names,
                    "`graph` shows the values there are here; classes are called as in `c57`",
                )
            }
            TourError::NotFound(_) => error.help("`applications`, `graph` and `class` are other views to search"),
            TourError::NoText => error.help("say what to search for, as in `search exp`"),
        }
    }
}
