//! Integration tests: the program `kina-ad` as its users run it. One binary, because linking MLIR is slow.

mod bad_input;
mod bad_rules;
mod conformance;
mod differential;
mod docs;
mod messages;
mod optimiser;
mod programs;
mod snapshots;
mod support;
