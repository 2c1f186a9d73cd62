//! Integration tests: the program `kina-ad` as its users run it. One binary, because linking MLIR is slow.

mod arrays;
mod bad_input;
mod bad_rules;
mod bench;
mod bisect;
mod conformance;
mod determinism;
mod diff;
mod differential;
mod docs;
mod drawings;
mod explore;
mod forms;
mod functions;
mod fusion;
mod fuzz_seeds;
mod hostile_text;
mod language;
mod library;
#[cfg(feature = "codegen")]
mod long_rows;
mod losses;
mod masks;
mod memory;
mod messages;
mod mutation;
mod notation;
mod numerics;
mod operators;
mod optimiser;
mod orders;
#[cfg(feature = "codegen")]
mod plan;
mod programs;
mod review;
mod rule_tools;
mod scale;
mod snapshots;
mod suggestions;
mod support;
mod ui;
mod verify;
mod why;
mod why_not;
