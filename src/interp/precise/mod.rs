//! Graphs over the real numbers, nearly: floats of 256 bits with exponents that do not run out.
//!
//! This is the oracle for what the reals say. Where two terms are equal over the reals, their values here agree to some 200
//! bits; where one loses digits in f32 or f64, the value here has them. No value is rounded to its dtype. Comparisons, and
//! selections with them, are decided on these values.

mod big;
mod constants;
mod elementary;
mod error_function;
mod operations;
mod trigonometry;

use std::cmp::Ordering;

pub use big::Big;

use super::arithmetic::Arithmetic;
use super::kernel::{self, KernelError};
use crate::ir::kernel::{BinaryFn, UnaryFn};
use crate::ir::{Array, DType, Graph, NodeId, NodeKind, OutOfMemory, Registry, TensorType, Trap, Values, memory};

/// An array whose floats have 256 bits.
pub type PreciseArray = Array<Big>;

/// The arithmetic of [`Big`].
#[derive(Clone, Copy, Debug)]
pub struct Precise;

impl Arithmetic for Precise {
    type Float = Big;

    fn constant(&self, value: f64, _: DType) -> Big {
        Big::from_f64(value)
    }

    fn round(&self, value: Big, _: DType) -> Big {
        value
    }

    fn of_i64(&self, value: i64, _: DType) -> Big {
        Big::from_i64(value)
    }

    fn to_i64(&self, value: Big) -> i64 {
        value.to_i64()
    }

    fn unary(&self, f: UnaryFn, x: Big, _: DType) -> Big {
        match f {
            UnaryFn::Neg => -x,
            UnaryFn::Abs => x.abs(),
            UnaryFn::Sqrt => x.sqrt(),
            UnaryFn::Rsqrt => x.rsqrt(),
            UnaryFn::Floor => x.floor(),
            UnaryFn::Ceil => x.ceil(),
            UnaryFn::Round => x.round(),
            UnaryFn::Exp => x.exp(),
            UnaryFn::Exp2 => x.exp2(),
            UnaryFn::Expm1 => x.expm1(),
            UnaryFn::Log => x.ln(),
            UnaryFn::Log1p => x.ln_1p(),
            UnaryFn::Cbrt => x.cbrt(),
            UnaryFn::Sin => x.sin(),
            UnaryFn::Cos => x.cos(),
            UnaryFn::Tan => x.tan(),
            UnaryFn::Asin => x.asin(),
            UnaryFn::Acos => x.acos(),
            UnaryFn::Atan => x.atan(),
            UnaryFn::Sinh => x.sinh(),
            UnaryFn::Cosh => x.cosh(),
            UnaryFn::Tanh => x.tanh(),
            UnaryFn::Sigmoid => x.sigmoid(),
            UnaryFn::Erf => x.erf(),
            UnaryFn::Erfc => x.erfc(),
            UnaryFn::Not => Big::NAN,
        }
    }

    fn binary(&self, f: BinaryFn, a: Big, b: Big, _: DType) -> Big {
        match f {
            BinaryFn::Add => a + b,
            BinaryFn::Sub => a - b,
            BinaryFn::Mul => a * b,
            BinaryFn::Div => a / b,
            BinaryFn::Max => -least(-a, -b),
            BinaryFn::Min => least(a, b),
            BinaryFn::Pow => a.pow(b),
            BinaryFn::Atan2 => a.atan2(b),
            BinaryFn::And | BinaryFn::Or => Big::NAN,
        }
    }
}

/// NaN if one is, -0 before +0.
fn least(a: Big, b: Big) -> Big {
    match a.partial_cmp(&b) {
        None => Big::NAN,
        Some(Ordering::Equal) if a.is_negative() => a,
        Some(Ordering::Less) => a,
        Some(_) => b,
    }
}

/// Why a graph has no precise value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PreciseError {
    /// An index out of its bound.
    #[error(transparent)]
    Trap(#[from] Trap),
    #[error("the graph has {wanted} input(s), not {given}")]
    InputCount { wanted: usize, given: usize },
    #[error("input {index} must be {wanted}")]
    WrongInput { index: usize, wanted: TensorType },
    /// Handlers are for `egraph::differentiate`.
    #[error("the graph is not differentiated")]
    NotDifferentiated,
    /// A composite that was not expanded, or a defect of an operator.
    #[error("`{operator}`: {error}")]
    Kernel { operator: String, error: KernelError },
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// The values of all nodes of a graph, by node index, from f64 inputs in the order of `graph.inputs`. Composites must have
/// been expanded ([`RuleSet::expand`](crate::rules::RuleSet::expand)); run-time bounds are checked where they occur, checks
/// of the graph itself are not run.
///
/// # Errors
/// Inputs that do not fit; a trap; a composite operator; memory that does not suffice.
pub fn evaluate(graph: &Graph, registry: &Registry, inputs: &[Array]) -> Result<Vec<PreciseArray>, PreciseError> {
    let inputs: Result<Vec<PreciseArray>, OutOfMemory> = inputs.iter().map(exact).collect();
    evaluate_precise(graph, registry, &inputs?)
}

/// As [`evaluate`], from precise inputs.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_precise(
    graph: &Graph,
    registry: &Registry,
    inputs: &[PreciseArray],
) -> Result<Vec<PreciseArray>, PreciseError> {
    if inputs.len() != graph.inputs.len() {
        return Err(PreciseError::InputCount { wanted: graph.inputs.len(), given: inputs.len() });
    }
    let mut values: Vec<PreciseArray> = Vec::with_capacity(graph.len());
    for (id, node) in graph.iter() {
        let value = match &node.kind {
            NodeKind::Input => {
                let index = graph.inputs.iter().position(|i| *i == id).ok_or(PreciseError::NotDifferentiated)?;
                let input = &inputs[index];
                if !fits(input, &node.ty) {
                    return Err(PreciseError::WrongInput { index, wanted: node.ty.clone() });
                }
                input.copy()?
            }
            NodeKind::Op { operands, .. } => operation(graph, registry, id, operands, &node.ty, &values)?,
            NodeKind::Param { .. } | NodeKind::Gradient { .. } => return Err(PreciseError::NotDifferentiated),
        };
        values.push(value);
    }
    Ok(values)
}

fn operation(
    graph: &Graph,
    registry: &Registry,
    id: NodeId,
    operands: &[NodeId],
    ty: &TensorType,
    values: &[PreciseArray],
) -> Result<PreciseArray, PreciseError> {
    let args: Vec<&PreciseArray> = operands.iter().filter_map(|o| values.get(o.index())).collect();
    let computed = graph.with_call(id, |op, call| {
        let operator = registry.op(op);
        if let Some(bound) = operator.bound(call) {
            let indices = args.get(bound.operand).map_or(&[][..], |a| a.ints());
            if !indices.iter().all(|i| u64::try_from(*i).is_ok_and(|i| i < bound.size)) {
                return Err(Trap { operator: operator.name().into() }.into());
            }
        }
        kernel::run(&operator.kernel(call, ty), call, &args, ty, Precise)
            .map_err(|error| PreciseError::Kernel { operator: operator.name().into(), error })
    });
    computed.ok_or(PreciseError::NotDifferentiated)?
}

/// The same elements.
///
/// # Errors
/// [`OutOfMemory`]
pub fn exact(array: &Array) -> Result<PreciseArray, OutOfMemory> {
    let values = match &array.values {
        Values::Float(v) => Values::Float(memory::map(v, |x| Big::from_f64(*x))?),
        Values::Int(v) => Values::Int(memory::copy(v)?),
        Values::Bool(v) => Values::Bool(memory::copy(v)?),
    };
    Ok(Array { shape: array.shape.clone(), values })
}

fn fits(array: &PreciseArray, ty: &TensorType) -> bool {
    let kind = match array.values {
        Values::Float(_) => ty.dtype.is_float(),
        Values::Int(_) => ty.dtype.is_int(),
        Values::Bool(_) => ty.dtype == DType::Bool,
    };
    kind && array.shape == ty.shape && array.values.len() as u64 == ty.shape.elements()
}

#[cfg(test)]
mod tests;
