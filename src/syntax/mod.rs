//! Text to syntax trees, and back.
//!
//! The grammars are pest files (`grammar/`); programs and rule files share one expression grammar. A program has a
//! second form, S-expressions; its content tells which one a text is ([`Form::of`]). Parsing never
//! fails: it reports to the bag, leaves [`ast::ExprKind::Error`] where it had to give up, and goes on behind the
//! fault. Later stages must not run on a text with errors.
//!
//! # Limits
//! Texts are untrusted, so all recursion is bounded: [`MAX_NESTING`] and [`MAX_BRACKETS`] for brackets and other nesting
//! (the parser's recursion), [`MAX_HEIGHT`] for syntax trees (everybody else's). Chains of `let` are flat and have no
//! limit. Every tree within the limit can be written, and read again, in both forms.

mod advice;
pub mod ast;
mod comments;
mod depth;
mod error;
mod expr;
mod form;
#[cfg(test)]
mod formatting;
mod grammar;
mod print;
mod program;
mod read;
#[cfg(test)]
mod roundtrip;
mod rules;
mod scan;
mod sexpr;
mod statements;
mod strange;

pub use comments::{Comment, comments};
pub use depth::{MAX_BRACKETS, MAX_NAME, MAX_NESTING, MAX_TEXT, on_big_stack};
pub use expr::MAX_HEIGHT;
pub use form::{Form, PROGRAM_HEAD};
pub use print::{Remarks, format_rules, print_expr, print_program};
pub use program::parse_program;
pub use read::{read_text, text_of};
pub use rules::{parse_rule_files, parse_rules};
pub use strange::utf8;
