//! The inputs of a run: given by name, generated otherwise.

use std::collections::BTreeMap;

use super::arrays::{ArrayError, Mismatch, expect};
use super::generate::{GenerateError, bounds, generate};
use super::tensor::Tensor;
use crate::diagnostics::Diagnostic;
use crate::ir::{Graph, TensorType};

/// Where an input came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputSource {
    Given,
    /// Standard normal floats, fair-coin Bools, integers in `0..10`.
    Generated,
    /// Integers uniform in `0..bound`, the bound of their use.
    GeneratedIndices(u64),
}

/// One program input.
#[derive(Clone, Debug)]
pub struct Input {
    pub name: String,
    pub ty: TensorType,
    pub source: InputSource,
    pub tensor: Tensor,
}

/// Why the inputs do not fit the program.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error("the program has no input `{name}`")]
    Unknown { name: String, inputs: Vec<String> },
    #[error("input `{0}` is given twice")]
    Twice(String),
    #[error(transparent)]
    Array(#[from] ArrayError),
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    #[error(transparent)]
    Generate(#[from] GenerateError),
}

impl InputError {
    /// The error with its code and the way out.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            InputError::Unknown { name, inputs } => {
                let diagnostic =
                    Diagnostic::error("E0709", self.to_string()).note(format!("its inputs are: {}", inputs.join(", ")));
                let otherwise = "leave it out, or name an input of the program";
                diagnostic.did_you_mean_or(name, inputs.iter().map(String::as_str), otherwise)
            }
            InputError::Twice(_) => {
                Diagnostic::error("E0709", self.to_string()).help("give each input once, by `--input` or in `--inputs`")
            }
            InputError::Array(error) => error.diagnostic(),
            InputError::Mismatch(error) => error.diagnostic(),
            InputError::Generate(error) => Diagnostic::error("E0710", error.to_string()).help(match error {
                GenerateError::Tensor(_) => "use smaller shapes, or a machine with more memory",
                GenerateError::NoValidIndex { .. } => "index a dimension that has elements",
            }),
        }
    }
}

/// All inputs of a program in its order: those of `given`, and the others generated from `seed`.
///
/// # Errors
/// A name that the program does not have or that is given twice; an array of another dtype or shape; an input that
/// cannot be generated.
pub fn gather(graph: &Graph, given: Vec<(String, Tensor)>, seed: u64) -> Result<Vec<Input>, InputError> {
    let name_of = |id| graph.node(id).name.as_deref().unwrap_or("input").to_owned();
    let names: Vec<String> = graph.inputs.iter().map(|id| name_of(*id)).collect();
    let mut by_name: BTreeMap<String, Tensor> = BTreeMap::new();
    for (name, tensor) in given {
        if !names.contains(&name) {
            return Err(InputError::Unknown { name, inputs: names });
        }
        if by_name.insert(name.clone(), tensor).is_some() {
            return Err(InputError::Twice(name));
        }
    }
    let bounds = bounds(graph);
    let mut inputs = Vec::with_capacity(names.len());
    for (id, name) in graph.inputs.iter().zip(names) {
        let ty = graph.ty(*id).clone();
        let (tensor, source) = match by_name.remove(&name) {
            Some(tensor) => {
                expect(&name, &tensor, &ty)?;
                (tensor, InputSource::Given)
            }
            None => {
                let bound = bounds.get(id).copied();
                let source = match bound.filter(|_| ty.dtype.is_int()) {
                    Some(bound) => InputSource::GeneratedIndices(bound),
                    None => InputSource::Generated,
                };
                (generate(&name, &ty, bound, seed)?, source)
            }
        };
        inputs.push(Input { name, ty, source, tensor });
    }
    Ok(inputs)
}
