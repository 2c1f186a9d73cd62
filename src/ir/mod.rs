//! Types, operators and the typed graph: the vocabulary that every stage shares.
//!
//! This module imports nothing but `diagnostics` (for spans).

pub mod array;
pub mod attr;
pub mod checks;
pub mod elementary;
pub mod graph;
pub mod kernel;
pub mod level;
pub mod memory;
pub mod names;
pub mod operator;
pub mod ops;
pub mod print;
pub mod range;
pub mod target;
pub mod types;

pub use array::{Array, Precision, Values};
pub use attr::{AttrKind, AttrValue, F64Bits};
pub use checks::{Check, Checks};
pub use graph::{Graph, Handler, HandlerParam, Node, NodeId, NodeKind, Origin, Output, RuleRef};
pub use kernel::{Kernel, Loop};
pub use level::Level;
pub use memory::OutOfMemory;
pub use operator::{
    BindError, Bound, Call, EvalError, OpId, Operator, Param, Registry, Signature, Trap, TypeError, TypeErrorKind,
    Where,
};
pub use range::Range;
pub use types::{DType, Placement, Shape, ShapeOverflow, TensorType, volume};
