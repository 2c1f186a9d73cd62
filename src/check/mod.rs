//! Syntax trees of programs to typed graphs.
