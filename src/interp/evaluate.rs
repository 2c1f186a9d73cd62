//! Evaluating a graph by the reference semantics of its operators.

use std::sync::Arc;

use crate::ir::operator::{Eval, Trap};
use crate::ir::{Array, DType, Graph, NodeId, NodeKind, Precision, Registry, TensorType, Values};

/// Why a graph has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterpError {
    /// An index out of its bound.
    #[error(transparent)]
    Trap(#[from] Trap),
    #[error("the program has {wanted} input(s), not {given}")]
    InputCount { wanted: usize, given: usize },
    #[error("input `{name}` must be {wanted}")]
    WrongInput { name: String, wanted: TensorType },
    /// Handlers are for `egraph::differentiate`.
    #[error("the graph is not differentiated")]
    NotDifferentiated,
}

/// The values of a graph for given inputs.
pub struct Evaluator<'a> {
    graph: &'a Graph,
    registry: &'a Registry,
    precision: Precision,
    /// By node; only what outputs, checks and requested nodes need.
    values: Vec<Option<Arc<Array>>>,
}

impl<'a> Evaluator<'a> {
    /// Takes inputs in the order of `graph.inputs`.
    ///
    /// # Errors
    /// The wrong number of inputs, or one of the wrong shape or kind of elements.
    pub fn new(
        graph: &'a Graph,
        registry: &'a Registry,
        inputs: Vec<Array>,
        precision: Precision,
    ) -> Result<Self, InterpError> {
        if inputs.len() != graph.inputs.len() {
            return Err(InterpError::InputCount { wanted: graph.inputs.len(), given: inputs.len() });
        }
        let mut values: Vec<Option<Arc<Array>>> = vec![None; graph.len()];
        for (id, array) in graph.inputs.iter().zip(inputs) {
            let ty = graph.ty(*id);
            let kind = match array.values {
                Values::Float(_) => ty.dtype.is_float(),
                Values::Int(_) => ty.dtype.is_int(),
                Values::Bool(_) => ty.dtype == DType::Bool,
            };
            if !kind || array.shape != ty.shape {
                let name = graph.node(*id).name.as_deref().unwrap_or("input").to_owned();
                return Err(InterpError::WrongInput { name, wanted: ty.clone() });
            }
            values[id.index()] = Some(Arc::new(array));
        }
        Ok(Self { graph, registry, precision, values })
    }

    /// Evaluates the program: what the checks need, the checks in program order, then everything else.
    ///
    /// # Errors
    /// The first check in program order that fails.
    pub fn evaluate(&mut self) -> Result<(), InterpError> {
        for check in &self.graph.checks {
            self.require(check.indices)?;
            let Some(indices) = &self.values[check.indices.index()] else { continue };
            let bad = indices.ints().iter().any(|i| u64::try_from(*i).map_or(true, |i| i >= check.size));
            if bad {
                return Err(Trap { operator: check.operator.to_string() }.into());
            }
        }
        for output in &self.graph.outputs {
            self.require(output.node)?;
        }
        Ok(())
    }

    /// The value of a node, once evaluated.
    pub fn value(&self, id: NodeId) -> Option<&Array> {
        self.values[id.index()].as_deref()
    }

    /// Evaluates what `id` needs, and `id`.
    ///
    /// # Errors
    /// A trap on the way.
    pub fn require(&mut self, id: NodeId) -> Result<(), InterpError> {
        let mut needed = vec![false; id.index() + 1];
        needed[id.index()] = true;
        for i in (0..=id.index()).rev() {
            if needed[i] && self.values[i].is_none() {
                for operand in self.graph.node(NodeId(i as u32)).operands() {
                    needed[operand.index()] = true;
                }
            }
        }
        for (i, needed) in needed.iter().enumerate() {
            if *needed && self.values[i].is_none() {
                let value = self.compute(NodeId(i as u32), &self.values)?;
                self.values[i] = Some(value);
            }
        }
        Ok(())
    }

    /// The value that `target` has when `node` has another one. Only what depends on `node` is computed again.
    ///
    /// # Errors
    /// A trap on the way.
    pub fn value_with(&mut self, target: NodeId, node: NodeId, replacement: Array) -> Result<Arc<Array>, InterpError> {
        self.require(target)?;
        let replacement = Arc::new(replacement);
        if target <= node {
            return if target == node { Ok(replacement) } else { self.known(target) };
        }
        let mut changed: Vec<Option<Arc<Array>>> = vec![None; target.index() + 1];
        changed[node.index()] = Some(replacement);
        // What `target` needs, so that nothing else is computed.
        let mut needed = vec![false; target.index() + 1];
        needed[target.index()] = true;
        for i in (0..=target.index()).rev() {
            if needed[i] {
                for operand in self.graph.node(NodeId(i as u32)).operands() {
                    needed[operand.index()] = true;
                }
            }
        }
        for i in node.index() + 1..=target.index() {
            let id = NodeId(i as u32);
            if !needed[i] || !self.graph.node(id).operands().any(|o| changed[o.index()].is_some()) {
                continue;
            }
            let mut view = Vec::new();
            for operand in self.graph.node(id).operands() {
                let value = changed[operand.index()].clone().or_else(|| self.values[operand.index()].clone());
                view.push(value.ok_or(InterpError::NotDifferentiated)?);
            }
            changed[i] = Some(self.apply(id, &view)?);
        }
        match changed[target.index()].take() {
            Some(value) => Ok(value),
            None => self.known(target),
        }
    }

    fn known(&self, id: NodeId) -> Result<Arc<Array>, InterpError> {
        self.values[id.index()].clone().ok_or(InterpError::NotDifferentiated)
    }

    fn compute(&self, id: NodeId, values: &[Option<Arc<Array>>]) -> Result<Arc<Array>, InterpError> {
        let args: Option<Vec<Arc<Array>>> = self.graph.node(id).operands().map(|o| values[o.index()].clone()).collect();
        self.apply(id, &args.ok_or(InterpError::NotDifferentiated)?)
    }

    fn apply(&self, id: NodeId, args: &[Arc<Array>]) -> Result<Arc<Array>, InterpError> {
        let node = self.graph.node(id);
        match &node.kind {
            NodeKind::Op { .. } => {
                let args: Vec<&Array> = args.iter().map(|a| &**a).collect();
                let result = self.graph.with_call(id, |op, call| {
                    let eval = Eval { call, args: &args, result: &node.ty, precision: self.precision };
                    self.registry.op(op).reference(&eval)
                });
                match result {
                    Some(array) => Ok(Arc::new(array?)),
                    None => Err(InterpError::NotDifferentiated),
                }
            }
            NodeKind::Param { .. } => args.first().cloned().ok_or(InterpError::NotDifferentiated),
            NodeKind::Input | NodeKind::Gradient { .. } => Err(InterpError::NotDifferentiated),
        }
    }
}

/// Evaluates a program; results in the order of its outputs, by name.
///
/// # Errors
/// See [`InterpError`].
pub fn run(
    graph: &Graph,
    registry: &Registry,
    inputs: Vec<Array>,
    precision: Precision,
) -> Result<Vec<(Arc<str>, Array)>, InterpError> {
    let mut evaluator = Evaluator::new(graph, registry, inputs, precision)?;
    evaluator.evaluate()?;
    let mut results = Vec::with_capacity(graph.outputs.len());
    for output in &graph.outputs {
        results.push((output.name.clone(), (*evaluator.known(output.node)?).clone()));
    }
    Ok(results)
}
