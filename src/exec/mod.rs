//! Running: compiled code, array files, generated inputs.

pub mod arrays;
pub mod files;
pub mod generate;
pub mod inputs;
#[cfg(feature = "codegen")]
pub mod jit;
pub mod summary;
#[cfg(feature = "codegen")]
mod team;
mod tensor;

pub use tensor::{Data, Tensor, TensorError};
