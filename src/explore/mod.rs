//! The rewrite explorer: questions about a gradient, each answered by one call.

pub mod bisect;
pub mod tour;
pub mod why;
pub mod why_not;
