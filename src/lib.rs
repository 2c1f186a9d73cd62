//! Reverse-mode AD for the Kina tensor language as a declarative rule engine.
//!
//! **Rust knows operators, rule files know mathematics.** Data flows one way:
//!
//! | stage | from | to |
//! |---|---|---|
//! | [`syntax`] | text | syntax trees of programs and rule files |
//! | [`rules`] | rule trees | compiled rules, each conclusion typed: a [`RuleSet`](rules::RuleSet) |
//! | [`check`] | program trees | the typed [`Graph`], handlers noted in it |
//! | [`egraph`] | graph and rules | the graph with its gradients: differentiated, optimised, extracted |
//! | [`schedule`] | graph | order, fusion groups, buffer plan |
//! | `lower` | graph and schedule | MLIR, LLVM IR, object files (feature `codegen`) |
//! | [`exec`] | all of that and tensors | results; array files |
//!
//! [`ir`] and [`diagnostics`] are the vocabulary of all stages; [`interp`] is the oracle that results are compared with.
//! [`Session`] is the pipeline as calls, [`run`](mod@run) runs what comes out of it, [`cli`] is the command line.
//!
//! ```
//! use kina_ad::exec::inputs::gather;
//! use kina_ad::ir::Precision;
//! use kina_ad::run::{Engine, run};
//! use kina_ad::{CheckOptions, Level, RuleOptions, Session};
//!
//! let program = "let loss = fn(x: tensor<F32, [2, 3], @host>) -> tensor<F32, [], @host> {
//!                  let y = x.relu() in (y * y).sum()
//!                } in
//!                let x = tensor<F32, [2, 3], @host> in
//!                handle loss(x) with reverseMode";
//! let mut session = Session::new(&RuleOptions::default())?;
//! let graph = session.check("loss.kina", program, &CheckOptions::default())?;
//! let mut differentiated = session.differentiate(&graph)?;
//! let optimised = session.optimise(&mut differentiated, Level::O2)?;
//!
//! let inputs = gather(&differentiated.tape, Vec::new(), 0)?;
//! let tensors: Vec<_> = inputs.iter().map(|i| &i.tensor).collect();
//! let engine = Engine::Interpreted(Precision::Typed);
//! let results = run(&optimised.graph, &session.rules.registry, Level::O2, engine, &tensors)?;
//! assert_eq!(&*results[0].0, "primal");
//! assert_eq!(&*results[1].0, "g_x");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
