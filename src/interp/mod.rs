//! The reference interpreter: one operator at a time, in f64 or in the precision of each dtype.
//!
//! It is the oracle of the project. Compiled code must agree with it on values, NaN positions and traps, and
//! gradients must agree with its finite differences. [`precise`] computes over the reals, nearly.

pub mod arithmetic;
#[cfg(test)]
mod build;
mod evaluate;
pub mod expected;
mod gradcheck;
pub mod kernel;
pub mod noise;
pub mod precise;
mod quotient;
mod report;

pub use evaluate::{Dependents, Evaluator, InterpError, MAX_ELEMENTS, run};
pub use gradcheck::{Demand, check_gradients, check_gradients_to, unit_of};
pub use quotient::{Slope, slope};
pub use report::{GradReport, GradientProbe, GradientResult, TOLERANCE, Verdict, bucket};
