//! Running an optimised program, compiled or interpreted.

use std::num::NonZero;
use std::sync::Arc;

use crate::egraph::{Differentiated, Gradient};
use crate::exec::{Tensor, TensorError};
use crate::interp::{self, GradReport, GradientProbe, InterpError};
use crate::ir::{Array, Graph, Level, Precision, Registry};

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Code compiled for this machine, on that many threads; on all of its processors if that is `None`.
    Compiled { threads: Option<NonZero<usize>> },
    /// The reference interpreter, one operator at a time.
    Interpreted(Precision),
}

/// Why a run gave no results.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An index out of its bound; the specification's message.
    #[error("{0}")]
    Trap(String),
    /// Memory does not suffice for a value of the program.
    #[error("{0}")]
    OutOfMemory(String),
    #[error("{0}")]
    Interpreter(String),
    /// The program cannot be compiled: one line per operator that the host cannot run, or a fault of kina-ad.
    #[error("{message}")]
    Compile { code: &'static str, message: String, help: &'static str },
    #[error("this kina-ad was built without code generation")]
    NoCodegen,
}

impl RunError {
    /// The diagnostic code.
    pub fn code(&self) -> &'static str {
        match self {
            RunError::Trap(_) => "E0801",
            RunError::OutOfMemory(_) => "E0802",
            RunError::Interpreter(_) => "E0803",
            RunError::Compile { code, .. } => code,
            RunError::NoCodegen => "E0602",
        }
    }

    /// The way out.
    pub fn help(&self) -> &'static str {
        match self {
            RunError::Trap(_) => "an index must lie between 0 and the size of the dimension that it indexes",
            RunError::OutOfMemory(_) => "use smaller shapes, or a machine with more memory",
            RunError::Interpreter(_) => "give every input the type that the program declares",
            RunError::Compile { help, .. } => help,
            RunError::NoCodegen => "add `--interpret`, or build with the feature `codegen`",
        }
    }
}

impl From<InterpError> for RunError {
    fn from(error: InterpError) -> Self {
        match error {
            InterpError::Trap(trap) => RunError::Trap(trap.to_string()),
            error @ (InterpError::OutOfMemory(_)
            | InterpError::ValueOutOfMemory { .. }
            | InterpError::TooLarge { .. }) => RunError::OutOfMemory(error.to_string()),
            error => RunError::Interpreter(error.to_string()),
        }
    }
}

impl From<TensorError> for RunError {
    fn from(error: TensorError) -> Self {
        match error {
            TensorError::OutOfMemory { .. } => RunError::OutOfMemory(error.to_string()),
            error => RunError::Interpreter(error.to_string()),
        }
    }
}

/// Runs a graph on inputs in the order of its own; results in the order of its outputs.
///
/// # Errors
/// See [`RunError`].
pub fn run(
    graph: &Graph,
    registry: &Registry,
    level: Level,
    engine: Engine,
    inputs: &[&Tensor],
) -> Result<Vec<(Arc<str>, Tensor)>, RunError> {
    match engine {
        Engine::Compiled { threads } => compiled(graph, registry, level, threads, inputs),
        Engine::Interpreted(precision) => {
            let arrays: Vec<Array> = inputs.iter().map(|t| t.to_array()).collect::<Result<_, _>>()?;
            let results = interp::run(graph, registry, arrays, precision)?;
            let mut out = Vec::with_capacity(results.len());
            for ((name, array), output) in results.into_iter().zip(&graph.outputs) {
                out.push((name, Tensor::from_array(&array, graph.ty(output.node).dtype)?));
            }
            Ok(out)
        }
    }
}

/// What a numeric check of every gradient needs.
pub fn probes(program: &Differentiated) -> Vec<GradientProbe> {
    let probe = |g: &Gradient| GradientProbe {
        name: g.name.clone(),
        primal: g.primal,
        param: g.param,
        gradient: g.gradient,
        cotangent: g.cotangent,
    };
    program.gradients.iter().map(probe).collect()
}

/// Compares every gradient of a differentiated program with finite differences at the given inputs.
///
/// # Errors
/// See [`RunError`].
pub fn check_program(
    program: &Differentiated,
    registry: &Registry,
    inputs: &[&Tensor],
    seed: u64,
) -> Result<GradReport, RunError> {
    let arrays: Vec<Array> = inputs.iter().map(|t| t.to_array()).collect::<Result<_, _>>()?;
    let probes = probes(program);
    Ok(interp::check_gradients(&program.tape, registry, arrays, &probes, seed)?)
}

#[cfg(feature = "codegen")]
fn compiled(
    graph: &Graph,
    registry: &Registry,
    level: Level,
    threads: Option<NonZero<usize>>,
    inputs: &[&Tensor],
) -> Result<Vec<(Arc<str>, Tensor)>, RunError> {
    use crate::exec::jit::{CallError, Compiled};
    use crate::schedule::ScheduleError;

    let code = Compiled::new(graph, registry, level).map_err(|e| match e.schedule() {
        Some(ScheduleError::TooLarge) => RunError::OutOfMemory(e.to_string()),
        _ => RunError::Compile { code: e.code(), message: e.to_string(), help: e.help() },
    })?;
    let code = match threads {
        Some(threads) => code.with_threads(threads),
        None => code,
    };
    match code.call(inputs) {
        Ok(results) => Ok(graph.outputs.iter().map(|o| o.name.clone()).zip(results).collect()),
        Err(CallError::Trap { message }) => Err(RunError::Trap(message)),
        Err(CallError::Tensor(error)) => Err(error.into()),
        Err(error @ CallError::OutOfMemory { .. }) => Err(RunError::OutOfMemory(error.to_string())),
        Err(error) => Err(RunError::Interpreter(error.to_string())),
    }
}

#[cfg(not(feature = "codegen"))]
fn compiled(
    _: &Graph,
    _: &Registry,
    _: Level,
    _: Option<NonZero<usize>>,
    _: &[&Tensor],
) -> Result<Vec<(Arc<str>, Tensor)>, RunError> {
    Err(RunError::NoCodegen)
}
