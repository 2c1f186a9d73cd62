//! The inputs of a run: given by name, generated otherwise.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::arrays::{Archive, ArrayError, Mismatch, Wanted, read_input, shown};
use super::generate::{GenerateError, bounds, generate};
use super::tensor::Tensor;
use crate::diagnostics::Diagnostic;
use crate::ir::{Graph, NodeId, TensorType};

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
    #[error("the program has no input `{}`", shown(.name))]
    Unknown { name: String, inputs: Vec<String> },
    #[error("input `{0}` is given twice")]
    Twice(String),
    #[error(transparent)]
    Array(#[from] ArrayError),
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    #[error("input `{name}` cannot be generated: {error}")]
    Generate { name: String, error: GenerateError },
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
            InputError::Generate { name, error } => match error {
                GenerateError::Tensor(_) => Diagnostic::error("E0706", self.to_string())
                    .help("use smaller shapes, or a machine with more memory"),
                GenerateError::NoValidIndex => Diagnostic::error("E0710", self.to_string())
                    .help(format!("give `{name}` by `--input`, or make the dimension that it indexes larger")),
            },
        }
    }
}

/// Reads the inputs of a program that are given as files: by the names in an archive, and one by one. Elements are read
/// only of arrays that the program takes and whose dtype and shape are its own.
///
/// # Errors
/// A name that the program does not have or that is given twice; a file that cannot be read, is malformed, or holds
/// something else than the input asks for.
pub fn read(
    graph: &Graph,
    archive: Option<&Path>,
    files: &[(String, PathBuf)],
) -> Result<Vec<(String, Tensor)>, InputError> {
    let types: BTreeMap<&str, &TensorType> =
        graph.inputs.iter().map(|id| (name_of(graph, *id), graph.ty(*id))).collect();
    let mut given: Vec<(String, Tensor)> = Vec::new();
    let mut take = |name: &str, read: &mut dyn FnMut(Wanted<'_>) -> Result<Tensor, ArrayError>| {
        let ty = types.get(name).ok_or_else(|| unknown(graph, name))?;
        if given.iter().any(|(other, _)| other == name) {
            return Err(InputError::Twice(name.to_owned()));
        }
        given.push((name.to_owned(), read(Wanted { name, ty })?));
        Ok(())
    };
    if let Some(path) = archive {
        let mut archive = Archive::open(path)?;
        for name in archive.names() {
            take(&name, &mut |wanted| archive.read(&name, Some(wanted)))?;
        }
    }
    for (name, path) in files {
        take(name, &mut |wanted| read_input(path, wanted))?;
    }
    Ok(given)
}

fn name_of(graph: &Graph, input: NodeId) -> &str {
    graph.node(input).name.as_deref().unwrap_or("input")
}

fn unknown(graph: &Graph, name: &str) -> InputError {
    let inputs = graph.inputs.iter().map(|id| name_of(graph, *id).to_owned()).collect();
    InputError::Unknown { name: name.to_owned(), inputs }
}

/// All inputs of a program in its order: those of `given`, and the others generated from `seed`.
///
/// # Errors
/// A name that the program does not have or that is given twice; an array of another dtype or shape; an input that
/// cannot be generated.
pub fn gather(graph: &Graph, given: Vec<(String, Tensor)>, seed: u64) -> Result<Vec<Input>, InputError> {
    let names: Vec<String> = graph.inputs.iter().map(|id| name_of(graph, *id).to_owned()).collect();
    let mut by_name: BTreeMap<String, Tensor> = BTreeMap::new();
    for (name, tensor) in given {
        if !names.contains(&name) {
            return Err(unknown(graph, &name));
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
                Wanted { name: &name, ty: &ty }.check(tensor.dtype(), tensor.shape())?;
                (tensor, InputSource::Given)
            }
            None => {
                let bound = bounds.get(id).copied();
                let source = match bound.filter(|_| ty.dtype.is_int()) {
                    Some(bound) => InputSource::GeneratedIndices(bound),
                    None => InputSource::Generated,
                };
                let tensor = generate(&name, &ty, bound, seed);
                (tensor.map_err(|error| InputError::Generate { name: name.clone(), error })?, source)
            }
        };
        inputs.push(Input { name, ty, source, tensor });
    }
    Ok(inputs)
}
