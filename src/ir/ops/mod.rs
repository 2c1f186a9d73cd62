//! The operators, one file per family: name, parameters, typing rule, reference semantics and lowering together.

mod argmax;
mod axes;
mod binary;
mod concat;
mod constant;
mod indexing;
mod logic;
mod matmul;
mod movement;
mod places;
mod premises;
mod reduce;
mod scan;
mod softmax;
mod table;
#[cfg(test)]
mod tests;
mod unary;
mod window;

use std::sync::Arc;

pub use unary::sigmoid;

use super::operator::{Operator, Registry};

impl Registry {
    /// The operators that Rust knows.
    pub fn builtin() -> Registry {
        Registry::from_ops(all())
    }
}

/// All operators that Rust knows, in no particular order.
pub fn all() -> Vec<Arc<dyn Operator>> {
    [
        unary::all(),
        binary::all(),
        logic::all(),
        reduce::all(),
        argmax::all(),
        movement::all(),
        axes::all(),
        window::all(),
        places::all(),
        matmul::all(),
        softmax::all(),
        indexing::all(),
        table::all(),
        scan::all(),
        constant::all(),
        concat::all(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
