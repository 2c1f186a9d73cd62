//! Reverse-mode AD for the Kina tensor language as a declarative rule engine.
//!
//! Data flows one way: text -> [`syntax`] -> [`check`] -> [`egraph`] -> [`schedule`] -> [`lower`] -> [`exec`].

pub mod check;
pub mod cli;
pub mod diagnostics;
pub mod egraph;
pub mod exec;
pub mod interp;
pub mod ir;
#[cfg(feature = "codegen")]
pub mod lower;
pub mod rules;
pub mod run;
pub mod schedule;
mod session;
pub mod syntax;

pub use check::CheckOptions;
pub use diagnostics::{Diagnostic, Diagnostics};
pub use ir::{Graph, Level, TensorType};
pub use rules::{Profile, RuleOptions};
pub use session::{Refusal, Session};
