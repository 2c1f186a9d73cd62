//! The rewrite explorer: questions about a gradient, and their answers.
//!
//! | question | answer |
//! |---|---|
