//! Builders that need no e-graph: types alone, the typed graph, and arrays.

use std::sync::Arc;

use super::term::Builder;
use crate::ir::operator::{Call, Eval};
use crate::ir::{
    Array, AttrValue, EvalError, Graph, NodeId, OpId, Origin, Precision, Registry, RuleRef, TensorType, TypeError,
    TypeErrorKind, Where,
};

/// Computes types and nothing else.
pub struct TypeBuilder<'a> {
    pub registry: &'a Registry,
    types: Vec<TensorType>,
}

impl<'a> TypeBuilder<'a> {
    pub fn new(registry: &'a Registry) -> Self {
        Self { registry, types: Vec::new() }
    }

    /// A value of the given type.
    pub fn given(&mut self, ty: TensorType) -> usize {
        self.types.push(ty);
        self.types.len() - 1
    }
}

impl Builder for TypeBuilder<'_> {
    type Value = usize;

    fn ty(&self, value: usize) -> TensorType {
        self.types[value].clone()
    }

    fn op(&mut self, op: OpId, operands: &[usize], attrs: Vec<AttrValue>) -> Result<usize, TypeError> {
        let types: Vec<&TensorType> = operands.iter().map(|o| &self.types[*o]).collect();
        let ty = self.registry.infer(op, &types, &attrs)?;
        Ok(self.given(ty))
    }

    fn splat(&mut self, value: f64, ty: TensorType) -> Result<usize, TypeError> {
        let (op, attrs) = self.registry.splat(value, ty)?;
        self.op(op, &[], attrs)
    }

    fn accepts(&self, op: OpId, operands: &[&TensorType], attrs: &[AttrValue]) -> bool {
        self.registry.infer(op, operands, attrs).is_ok()
    }
}

/// Asks of everything that is built whether it works point by point.
pub struct PointwiseBuilder<'a> {
    pub types: TypeBuilder<'a>,
    /// Has every operator been elementwise so far?
    pub pointwise: bool,
}

impl<'a> PointwiseBuilder<'a> {
    pub fn new(registry: &'a Registry) -> Self {
        Self { types: TypeBuilder::new(registry), pointwise: true }
    }
}

impl Builder for PointwiseBuilder<'_> {
    type Value = usize;

    fn ty(&self, value: usize) -> TensorType {
        self.types.ty(value)
    }

    fn op(&mut self, op: OpId, operands: &[usize], attrs: Vec<AttrValue>) -> Result<usize, TypeError> {
        let value = self.types.op(op, operands, attrs.clone())?;
        let operands: Vec<&TensorType> = operands.iter().map(|o| &self.types.types[*o]).collect();
        let call = Call { operands: &operands, attrs: &attrs };
        self.pointwise &= self.types.registry.op(op).is_elementwise(call, &self.types.types[value]);
        Ok(value)
    }

    fn splat(&mut self, value: f64, ty: TensorType) -> Result<usize, TypeError> {
        self.types.splat(value, ty)
    }

    fn accepts(&self, op: OpId, operands: &[&TensorType], attrs: &[AttrValue]) -> bool {
        self.types.accepts(op, operands, attrs)
    }
}

/// Adds nodes to a graph, all of one origin.
pub struct GraphBuilder<'a> {
    pub registry: &'a Registry,
    pub graph: &'a mut Graph,
    pub rule: RuleRef,
    pub serves: Vec<Arc<str>>,
}

impl Builder for GraphBuilder<'_> {
    type Value = NodeId;

    fn ty(&self, value: NodeId) -> TensorType {
        self.graph.ty(value).clone()
    }

    fn op(&mut self, op: OpId, operands: &[NodeId], attrs: Vec<AttrValue>) -> Result<NodeId, TypeError> {
        let origin = Origin::Rule { rule: self.rule.clone(), serves: self.serves.clone() };
        let id = self.graph.add(self.registry, op, operands.to_vec(), attrs, origin)?;
        // A trap that a definition brings belongs to the program that calls it.
        if let Some(check) = self.graph.check_of(self.registry, id) {
            self.graph.checks.add(check);
        }
        Ok(id)
    }

    fn splat(&mut self, value: f64, ty: TensorType) -> Result<NodeId, TypeError> {
        let (op, attrs) = self.registry.splat(value, ty)?;
        self.op(op, &[], attrs)
    }

    fn accepts(&self, op: OpId, operands: &[&TensorType], attrs: &[AttrValue]) -> bool {
        self.registry.infer(op, operands, attrs).is_ok()
    }
}

/// Computes arrays by the reference semantics.
pub struct ArrayBuilder<'a> {
    pub registry: &'a Registry,
    pub precision: Precision,
    values: Vec<(TensorType, Array)>,
    /// The first operator that had no result; values computed after it mean nothing.
    pub failure: Option<EvalError>,
}

impl<'a> ArrayBuilder<'a> {
    pub fn new(registry: &'a Registry, precision: Precision) -> Self {
        Self { registry, precision, values: Vec::new(), failure: None }
    }

    pub fn given(&mut self, ty: TensorType, array: Array) -> usize {
        self.values.push((ty, array));
        self.values.len() - 1
    }

    pub fn array(&self, id: usize) -> &Array {
        &self.values[id].1
    }

    /// The value of `id`.
    pub fn into_array(mut self, id: usize) -> Array {
        self.values.swap_remove(id).1
    }
}

impl Builder for ArrayBuilder<'_> {
    type Value = usize;

    fn ty(&self, value: usize) -> TensorType {
        self.values[value].0.clone()
    }

    fn op(&mut self, op: OpId, operands: &[usize], attrs: Vec<AttrValue>) -> Result<usize, TypeError> {
        let types: Vec<&TensorType> = operands.iter().map(|o| &self.values[*o].0).collect();
        let result = self.registry.infer(op, &types, &attrs)?;
        let args: Vec<&Array> = operands.iter().map(|o| &self.values[*o].1).collect();
        let call = Call { operands: &types, attrs: &attrs };
        let eval = Eval { call, args: &args, result: &result, precision: self.precision };
        match self.registry.op(op).reference(&eval) {
            Ok(array) => Ok(self.given(result, array)),
            Err(error) => {
                let message = error.to_string();
                self.failure.get_or_insert(error);
                Err(TypeError::new(TypeErrorKind::Attribute, Where::Call, message))
            }
        }
    }

    fn splat(&mut self, value: f64, ty: TensorType) -> Result<usize, TypeError> {
        let (op, attrs) = self.registry.splat(value, ty)?;
        self.op(op, &[], attrs)
    }

    fn accepts(&self, op: OpId, operands: &[&TensorType], attrs: &[AttrValue]) -> bool {
        self.registry.infer(op, operands, attrs).is_ok()
    }
}
