//! From syntax trees to the typed graph, and from a graph back to a program's text.
//!
//! The checker evaluates the program symbolically: functions are inlined where they are called, names become nodes,
//! literals take the type of the tensor they meet, attributes are normalised (axes become non-negative and sorted), and
//! `handle` leaves a [`Handler`](crate::ir::Handler) for the differentiator. It reports every fault it finds
//! (E02xx: names, arguments, literals; E03xx: types) and goes on with a poison value that causes no further report.
//!
//! # Limits
//! Inlining can make a short program huge, so work ([`MAX_STEPS`]), size ([`MAX_NODES`]) and depth are bounded. It stops
//! when there are more faults than a bag of diagnostics keeps.

mod arithmetic;
mod attribute;
mod broadcast;
mod call;
mod eval;
mod function;
mod handler;
mod literal;
mod result;
mod source;
mod value;

#[cfg(test)]
mod tests;

pub use source::graph_text;

use crate::diagnostics::{Diagnostics, SourceMap};
use crate::ir::{AttrValue, Graph, NodeId, Origin, Registry, Signature, TypeError};
use crate::syntax::{ast, on_big_stack};

/// Most expressions evaluated, inlined ones counted each time.
pub const MAX_STEPS: usize = 4_000_000;

/// Largest graph.
pub const MAX_NODES: usize = 1_000_000;

/// The `def`s that expand where they are used: those without a `vjp` of their own. (One with a `vjp` is an operator
/// of the registry.)
pub trait Composites: Sync {
    /// All names, for suggestions.
    fn names(&self) -> Vec<&str>;

    /// The parameters of a `def`, `None` if there is none of that name. An operand's index counts operands only.
    fn signature(&self, name: &str) -> Option<&Signature>;

    /// Adds the definition's nodes to the graph. `operands` and `attrs` are in the order of the signature, axes
    /// normalised.
    ///
    /// # Errors
    /// The first violated premise of an operator inside; its place refers to the call of the `def`.
    fn expand(
        &self,
        name: &str,
        graph: &mut Graph,
        operands: Vec<NodeId>,
        attrs: Vec<AttrValue>,
        origin: Origin,
    ) -> Result<NodeId, TypeError>;
}

/// No `def`s.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoComposites;

impl Composites for NoComposites {
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn signature(&self, _name: &str) -> Option<&Signature> {
        None
    }

    fn expand(
        &self,
        name: &str,
        _graph: &mut Graph,
        _operands: Vec<NodeId>,
        _attrs: Vec<AttrValue>,
        _origin: Origin,
    ) -> Result<NodeId, TypeError> {
        Err(TypeError::new(
            crate::ir::TypeErrorKind::Attribute,
            crate::ir::Where::Call,
            format!("there is no definition of `{name}`"),
        ))
    }
}

/// What the command line may ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckOptions {
    /// Adds a program input `cotangent`, of the type of the last handler's primal, as that handler's seed.
    pub cotangent_input: bool,
}

/// Checks a program that was parsed without errors.
///
/// The graph has one node per operator call, inputs in the order of their first evaluation, outputs named `primal` and
/// `g_NAME` (the value is a handler's tuple), `result` (one tensor) or `result_0`, .. (a tuple built by hand), and the
/// bounds checks in program order, those of unused operators included. `None` if anything was reported as an error.
pub fn check_program(
    program: &ast::Program,
    sources: &SourceMap,
    registry: &Registry,
    composites: &dyn Composites,
    options: &CheckOptions,
    bag: &mut Diagnostics,
) -> Option<Graph> {
    on_big_stack(|| {
        let mut checker = eval::Checker::new(sources, registry, composites);
        checker.program(&program.body, options);
        let (graph, found) = checker.finish();
        let failed = found.has_errors();
        bag.extend(found);
        (!failed).then_some(graph)
    })
}
