//! What each fuzz target does with one input: nothing, or a panic.
//!
//! These modules use the public interface of the library only. The fuzz targets run them under the fuzzer, and
//! `tests/it/fuzz_seeds.rs` includes them by path and runs every file of `fuzz/seeds` through them.

pub mod arrays;
pub mod execute;
pub mod program;
pub mod rules;
mod shown;

use std::sync::OnceLock;

use kina_ad::{RuleOptions, Session};

/// A session with the default rules, which are loaded once.
fn default_session() -> Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    let load = || Session::new(&RuleOptions::default()).expect("the embedded rules load");
    SESSION.get_or_init(load).clone()
}
