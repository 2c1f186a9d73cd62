//! Running: compiled code, array files, generated inputs.

pub mod arrays;
pub mod files;
pub mod generate;
mod tensor;

pub use tensor::{Data, Tensor, TensorError};
