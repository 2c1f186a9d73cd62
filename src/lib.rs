//! Reverse-mode AD for the Kina tensor language as a declarative rule engine.
//!
//! **Rust knows operators, rule files know mathematics.** Data flows one way, and a [`Session`] has each step as a call:
//!
//! | call | from | to |
//! |---|---|---|
//! | [`Session::new`] | rule files | compiled rules, each conclusion typed |
//! | [`Session::verify`] | compiled rules | a verdict on each, with the point at which it is wrong |
//! | [`Session::parse`], [`Session::check`] | text | the typed [`Graph`], handlers noted in it |
//! | [`Session::differentiate`] | graph and rules | [`Differentiated`]: the graph with its gradients |
//! | [`Session::optimise`] | that and a [`Level`] | [`Optimised`]: rewritten, the cheapest form extracted |
//! | [`Session::schedule`] | the optimised graph | [`Schedule`]: order, fusion groups, buffer plan |
//! | [`Session::draw_graph`], [`Session::draw_schedule`] | any of these graphs | a drawing (SVG) |
//! | `Session::compile` | the optimised graph | `Compiled`: code for this machine (feature `codegen`) |
//! | `Compiled::call`, [`Session::interpret`] | tensors | tensors, or a trap as an error |
//!
//! Whatever is wrong with a text comes back as a [`Refusal`] with diagnostics, whatever goes wrong in a run as an error
//! value; nothing prints, and nothing ends the process. All types are [`Send`] and [`Sync`].
//!
//! ```
//! use kina_ad::exec::{Data, Tensor, inputs::gather};
//! use kina_ad::ir::Precision;
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
//! let names: Vec<&str> = optimised.graph.outputs.iter().map(|o| &*o.name).collect();
//! assert_eq!(names, ["primal", "g_x"]);
//!
//! let x = Tensor::new(optimised.graph.ty(optimised.graph.inputs[0]).shape.clone(), Data::F32(vec![1., -2., 3., 0., 5., -6.]))?;
//! let results = session.interpret(&optimised, &[&x], Precision::Typed)?;
//! assert_eq!(results[0].data(), &Data::F32(vec![35.0]));
//! assert_eq!(results[1].data(), &Data::F32(vec![2., 0., 6., 0., 10., 0.]));
//! # #[cfg(feature = "codegen")]
//! assert_eq!(session.compile(&optimised)?.call(&[&x])?, results);
//!
//! // Inputs that are not given are generated; gradients are compared with finite differences.
//! let generated = gather(&differentiated.tape, Vec::new(), 0)?;
//! let inputs: Vec<_> = generated.iter().map(|i| &i.tensor).collect();
//! assert!(session.check_gradients(&differentiated, &inputs, 0)?.passed());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The interface
//! What this page shows: the items below, [`diagnostics`], [`ir`] (types, operators, graphs) and [`exec`] (tensors, array files,
//! compiled code). The stages themselves are modules that this documentation leaves out: they are there for the tests, the benchmarks and the
//! command line of this repository, and may change.

#[doc(hidden)]
pub mod check;
#[doc(hidden)]
pub mod cli;
pub mod diagnostics;
#[doc(hidden)]
pub mod draw;
#[doc(hidden)]
pub mod egraph;
pub mod exec;
#[doc(hidden)]
pub mod explore;
#[doc(hidden)]
pub mod interp;
pub mod ir;
#[cfg(feature = "codegen")]
#[doc(hidden)]
pub mod lower;
#[doc(hidden)]
pub mod review;
#[doc(hidden)]
pub mod rules;
#[doc(hidden)]
pub mod run;
#[doc(hidden)]
pub mod schedule;
mod session;
#[doc(hidden)]
pub mod syntax;
pub mod verify;

pub use check::CheckOptions;
pub use diagnostics::{Diagnostic, Diagnostics};
pub use draw::Options as DrawOptions;
pub use egraph::{Differentiated, Gradient, Optimised};
#[cfg(feature = "codegen")]
pub use exec::jit::{CallError, Compiled};
pub use exec::{Data, Tensor};
pub use interp::GradReport;
pub use ir::{Graph, Level, TensorType};
pub use rules::{Profile, RuleOptions, RuleSet};
pub use run::RunError;
pub use schedule::Schedule;
pub use session::{Refusal, Session};
pub use syntax::Form;
pub use syntax::ast::Program;
