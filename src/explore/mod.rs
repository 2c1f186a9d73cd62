//! The rewrite explorer: questions about a gradient, each answered by one call.

pub mod why_not;
