//! The reference interpreter: one operator at a time, in f64 or in the precision of each dtype.
//!
//! It is the oracle of the project. Compiled code must agree with it on values, NaN positions and traps, and
//! gradients must agree with its finite differences.

mod evaluate;
mod gradcheck;
pub mod kernel;

pub use evaluate::{Evaluator, InterpError, run};
pub use gradcheck::{GradReport, GradientProbe, GradientResult, TOLERANCE, Verdict, bucket, check_gradients};
