//! Text to syntax trees, and back.
//!
//! The grammars are pest files (`grammar/`); programs and rule files share one expression grammar. Parsing never
//! fails: it reports to the bag, leaves [`ast::ExprKind::Error`] where it had to give up, and goes on behind the
//! fault. Later stages must not run on a text with errors.
//!
//! # Limits
//! Texts are untrusted, so all recursion is bounded: [`MAX_NESTING`] for brackets and other nesting (the parser's
//! recursion), [`MAX_HEIGHT`] for syntax trees (everybody else's). Chains of `let` are flat and have no limit.

pub mod ast;
mod depth;
mod error;
mod expr;
mod grammar;
mod print;
mod program;
mod rules;
mod scan;

pub use depth::{MAX_NESTING, MAX_TEXT, on_big_stack};
pub use expr::MAX_HEIGHT;
pub use print::{print_expr, print_type};
pub use program::parse_program;
pub use rules::parse_rules;
