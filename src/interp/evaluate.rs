//! Evaluation of a graph, on demand and in the order of its nodes.

use std::sync::Arc;

use crate::ir::operator::Eval;
use crate::ir::{
    Array, Check, DType, EvalError, Graph, NodeId, NodeKind, OutOfMemory, Precision, Registry, TensorType, Trap, Values,
};

/// The most elements the interpreter keeps in one tensor (2 GiB of `f64`), so that a program with a huge constant is
/// refused instead of exhausting the machine.
pub const MAX_ELEMENTS: u64 = 1 << 28;

/// Why a graph has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterpError {
    /// An index out of its bound: a stop the specification asks for.
    #[error(transparent)]
    Trap(#[from] Trap),
    #[error("the program has {wanted} input(s), not {given}")]
    InputCount { wanted: usize, given: usize },
    /// `given` describes shape and kind of the array.
    #[error("input `{name}` must be {wanted}, not {given}")]
    WrongInput { name: String, wanted: TensorType, given: String },
    /// A value that replaces a node's has another shape or kind than the node.
    #[error("a value of {wanted} cannot be replaced by {given}")]
    WrongReplacement { wanted: TensorType, given: String },
    /// Handlers are for `egraph::differentiate`.
    #[error("the graph is not differentiated")]
    NotDifferentiated,
    #[error("a value of {ty} is too large to interpret: more than {MAX_ELEMENTS} elements")]
    TooLarge { ty: TensorType },
    /// Memory does not suffice for a value of the program.
    #[error("a value of {ty} cannot be computed: {error}")]
    ValueOutOfMemory { ty: TensorType, error: OutOfMemory },
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// Values of a graph's nodes.
///
/// Inputs are taken as they are: with [`Precision::Typed`] the values of an F32 input must be representable.
pub struct Evaluator<'a> {
    graph: &'a Graph,
    registry: &'a Registry,
    precision: Precision,
    /// By node index; `None` if not evaluated (yet).
    values: Vec<Option<Arc<Array>>>,
}

/// What must be computed again when the value of one node changes: see [`Evaluator::dependents`].
#[derive(Clone, Debug)]
pub struct Dependents {
    node: NodeId,
    target: NodeId,
    /// In evaluation order.
    nodes: Vec<NodeId>,
    /// Position in `nodes` by node index.
    slots: Vec<Option<usize>>,
}

impl Dependents {
    /// The node that varies.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Elements of the tensors that must be computed again: what one evaluation costs, roughly.
    pub fn elements(&self, evaluator: &Evaluator<'_>) -> u64 {
        self.nodes.iter().map(|id| evaluator.graph.ty(*id).shape.elements()).fold(0, u64::saturating_add)
    }
}

impl<'a> Evaluator<'a> {
    /// Takes the values of `graph.inputs`, in that order.
    ///
    /// # Errors
    /// Too few or too many inputs, or one of another shape or kind than its type.
    pub fn new(
        graph: &'a Graph,
        registry: &'a Registry,
        inputs: Vec<Array>,
        precision: Precision,
    ) -> Result<Evaluator<'a>, InterpError> {
        if inputs.len() != graph.inputs.len() {
            return Err(InterpError::InputCount { wanted: graph.inputs.len(), given: inputs.len() });
        }
        let mut values = vec![None; graph.len()];
        for (id, array) in graph.inputs.iter().zip(inputs) {
            let wanted = graph.ty(*id);
            if !fits(&array, wanted) {
                let given = describe(&array);
                let name = graph.node(*id).name.as_deref().unwrap_or("input").to_owned();
                return Err(InterpError::WrongInput { name, wanted: wanted.clone(), given });
            }
            values[id.index()] = Some(Arc::new(array));
        }
        Ok(Evaluator { graph, registry, precision, values })
    }

    /// Runs the checks in program order, then computes every live node. A check's indices are computed just before it
    /// runs, so the first check of the program that fails is the one that speaks.
    ///
    /// # Errors
    /// A trap; a handler that was not differentiated; a tensor too large to keep, or more than memory suffices for.
    pub fn evaluate(&mut self) -> Result<(), InterpError> {
        for check in &self.graph.checks {
            self.require(check.indices)?;
            self.run_check(check)?;
        }
        let live = self.graph.live();
        self.compute(&live)
    }

    /// Computes `node` and what it needs, unless it has its value already. Runs no check but the bounds that operators
    /// themselves have.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn require(&mut self, node: NodeId) -> Result<&Array, InterpError> {
        let mut needed = vec![false; self.graph.len()];
        needed[node.index()] = true;
        for i in (0..=node.index()).rev() {
            let id = NodeId(i as u32);
            if needed[i] && self.values[i].is_none() {
                for operand in self.graph.node(id).operands() {
                    needed[operand.index()] = true;
                }
            }
        }
        self.compute(&needed)?;
        self.value(node).ok_or(InterpError::NotDifferentiated)
    }

    /// The value of a node that was evaluated.
    pub fn value(&self, node: NodeId) -> Option<&Array> {
        self.values.get(node.index())?.as_deref()
    }

    /// The nodes between `node` and `target`, which change with the value of `node`. Nodes for which `frozen` holds keep
    /// their value, and with them what depends on `node` only through them.
    pub fn dependents(&self, target: NodeId, node: NodeId, frozen: impl Fn(NodeId) -> bool) -> Dependents {
        let mut depends = vec![false; self.graph.len()];
        depends[node.index()] = true;
        for (id, n) in self.graph.iter().skip(node.index() + 1) {
            depends[id.index()] = n.operands().any(|o| depends[o.index()]) && !frozen(id);
        }
        let mut needed = vec![false; self.graph.len()];
        needed[target.index()] = true;
        for (id, n) in self.graph.iter().rev() {
            if needed[id.index()] && depends[id.index()] {
                n.operands().for_each(|o| needed[o.index()] = true);
            }
        }
        let mut slots = vec![None; self.graph.len()];
        let mut nodes = Vec::new();
        for i in node.index() + 1..self.graph.len() {
            if depends[i] && needed[i] {
                slots[i] = Some(nodes.len());
                nodes.push(NodeId(i as u32));
            }
        }
        Dependents { node, target, nodes, slots }
    }

    /// The value of the target if the node had the value `replacement`. What does not depend on it must have been
    /// evaluated; the evaluator's own values stay.
    ///
    /// # Errors
    /// A replacement of another shape or kind; a trap; memory that does not suffice.
    pub fn value_at(&self, dependents: &Dependents, replacement: Array) -> Result<Arc<Array>, InterpError> {
        let wanted = self.graph.ty(dependents.node);
        if !fits(&replacement, wanted) {
            return Err(InterpError::WrongReplacement { wanted: wanted.clone(), given: describe(&replacement) });
        }
        let replacement = Arc::new(replacement);
        let mut changed: Vec<Arc<Array>> = Vec::with_capacity(dependents.nodes.len());
        let get = |changed: &[Arc<Array>], id: NodeId| match dependents.slots[id.index()] {
            _ if id == dependents.node => Some(replacement.clone()),
            Some(slot) => changed.get(slot).cloned(),
            None => self.values[id.index()].clone(),
        };
        for id in &dependents.nodes {
            let value = self.compute_node(*id, |operand| get(&changed, operand))?;
            changed.push(value);
        }
        get(&changed, dependents.target).ok_or(InterpError::NotDifferentiated)
    }

    /// The value of `target` if `node` had the value `replacement`: [`dependents`](Self::dependents) and
    /// [`value_at`](Self::value_at) in one.
    ///
    /// # Errors
    /// As [`value_at`](Self::value_at).
    pub fn value_with(&self, target: NodeId, node: NodeId, replacement: Array) -> Result<Arc<Array>, InterpError> {
        self.value_at(&self.dependents(target, node, |_| false), replacement)
    }

    /// Computes the nodes of a mask, which must hold the operands of what it holds.
    fn compute(&mut self, mask: &[bool]) -> Result<(), InterpError> {
        for (i, needed) in mask.iter().enumerate() {
            if *needed && self.values[i].is_none() {
                let value = self.compute_node(NodeId(i as u32), |operand| self.values[operand.index()].clone())?;
                self.values[i] = Some(value);
            }
        }
        Ok(())
    }

    fn compute_node(&self, id: NodeId, get: impl Fn(NodeId) -> Option<Arc<Array>>) -> Result<Arc<Array>, InterpError> {
        let node = self.graph.node(id);
        match &node.kind {
            NodeKind::Param { argument, .. } => get(*argument).ok_or(InterpError::NotDifferentiated),
            NodeKind::Input | NodeKind::Gradient { .. } => Err(InterpError::NotDifferentiated),
            NodeKind::Op { operands, .. } => {
                if node.ty.shape.elements() > MAX_ELEMENTS {
                    return Err(InterpError::TooLarge { ty: node.ty.clone() });
                }
                let args: Option<Vec<Arc<Array>>> = operands.iter().map(|o| get(*o)).collect();
                let args = args.ok_or(InterpError::NotDifferentiated)?;
                let args: Vec<&Array> = args.iter().map(|a| &**a).collect();
                let value = self.graph.with_call(id, |op, call| {
                    let eval = Eval { call, args: &args, result: &node.ty, precision: self.precision };
                    self.registry.op(op).reference(&eval)
                });
                match value.ok_or(InterpError::NotDifferentiated)? {
                    Ok(value) => Ok(Arc::new(value)),
                    Err(EvalError::Trap(trap)) => Err(InterpError::Trap(trap)),
                    Err(EvalError::OutOfMemory(error)) => {
                        Err(InterpError::ValueOutOfMemory { ty: node.ty.clone(), error })
                    }
                }
            }
        }
    }

    fn run_check(&self, check: &Check) -> Result<(), InterpError> {
        let indices = self.value(check.indices).map_or(&[][..], Array::ints);
        if indices.iter().all(|i| u64::try_from(*i).is_ok_and(|i| i < check.size)) {
            Ok(())
        } else {
            Err(InterpError::Trap(Trap { operator: check.operator.to_string() }))
        }
    }
}

/// The outputs of a program by name, in its order.
///
/// # Errors
/// As [`Evaluator::new`] and [`Evaluator::evaluate`].
pub fn run(
    graph: &Graph,
    registry: &Registry,
    inputs: Vec<Array>,
    precision: Precision,
) -> Result<Vec<(Arc<str>, Array)>, InterpError> {
    let mut evaluator = Evaluator::new(graph, registry, inputs, precision)?;
    evaluator.evaluate()?;
    graph.outputs.iter().map(|o| Ok((o.name.clone(), evaluator.require(o.node)?.copy()?))).collect()
}

/// Has the array the type's shape, its kind of elements and as many as the shape says?
fn fits(array: &Array, ty: &TensorType) -> bool {
    let kind = match array.values {
        Values::Float(_) => ty.dtype.is_float(),
        Values::Int(_) => ty.dtype.is_int(),
        Values::Bool(_) => ty.dtype == DType::Bool,
    };
    kind && array.shape == ty.shape && array.values.len() as u64 == ty.shape.elements()
}

fn describe(array: &Array) -> String {
    let kind = match array.values {
        Values::Float(_) => "floats",
        Values::Int(_) => "integers",
        Values::Bool(_) => "Bools",
    };
    format!("{} {kind} of shape {}", array.values.len(), array.shape)
}

#[cfg(test)]
mod tests;
