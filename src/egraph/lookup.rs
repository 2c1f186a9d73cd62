//! Terms of rules looked up in the e-graph, which stays as it is.

use egg::Id;
use smallvec::SmallVec;

use super::language::ENode;
use super::space::Space;
use crate::ir::{AttrValue, DType, OpId, Placement, Shape, TensorType, TypeError};
use crate::rules::term::Builder;

/// A call that a term asks for. Operands are values of the builder.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    pub op: OpId,
    pub operands: SmallVec<[usize; 4]>,
    pub attrs: Vec<AttrValue>,
}

/// A value that a term asks for.
#[derive(Clone, Debug)]
pub struct Found {
    pub ty: TensorType,
    /// The call, unless it is a value that was given.
    pub call: Option<Called>,
    /// The e-node with classes as they are now, if it is one.
    pub node: Option<ENode>,
    /// Its class, if it has one.
    pub class: Option<Id>,
}

/// Computes types, and finds what there is.
pub struct LookupBuilder<'a> {
    space: &'a Space,
    values: Vec<Found>,
}

impl<'a> LookupBuilder<'a> {
    pub fn new(space: &'a Space) -> Self {
        Self { space, values: Vec::new() }
    }

    /// A value that a class is.
    pub fn given(&mut self, class: Id) -> usize {
        let class = self.space.egraph.find(class);
        let ty = match self.space.ty(class) {
            Some(ty) => (**ty).clone(),
            // Only tensor classes are ever given.
            None => TensorType::new(DType::Bool, Shape::scalar(), Placement::Host),
        };
        self.push(Found { ty, call: None, node: None, class: Some(class) })
    }

    pub fn value(&self, value: usize) -> &Found {
        &self.values[value]
    }

    fn push(&mut self, found: Found) -> usize {
        self.values.push(found);
        self.values.len() - 1
    }

    /// The e-node of a call, if its operands and attributes are there.
    fn node(&self, call: &Called) -> Option<ENode> {
        let egraph = &self.space.egraph;
        let mut children: SmallVec<[Id; 4]> =
            call.operands.iter().map(|o| self.values[*o].class).collect::<Option<_>>()?;
        for attr in &call.attrs {
            children.push(egraph.lookup(ENode::Attr(attr.clone()))?);
        }
        Some(ENode::Op(call.op, children))
    }
}

impl Builder for LookupBuilder<'_> {
    type Value = usize;

    fn ty(&self, value: usize) -> TensorType {
        self.values[value].ty.clone()
    }

    fn op(&mut self, op: OpId, operands: &[usize], attrs: Vec<AttrValue>) -> Result<usize, TypeError> {
        let registry = self.space.registry();
        let ty = {
            let types: SmallVec<[&TensorType; 4]> = operands.iter().map(|o| &self.values[*o].ty).collect();
            registry.infer(op, &types, &attrs)?
        };
        let attrs = registry.op(op).canonical(&attrs).unwrap_or(attrs);
        let call = Called { op, operands: operands.iter().copied().collect(), attrs };
        let node = self.node(&call);
        let class = node.clone().and_then(|node| self.space.egraph.lookup(node));
        Ok(self.push(Found { ty, call: Some(call), node, class }))
    }

    fn splat(&mut self, value: f64, ty: TensorType) -> Result<usize, TypeError> {
        let (op, attrs) = self.space.registry().splat(value, ty)?;
        self.op(op, &[], attrs)
    }

    fn accepts(&self, op: OpId, operands: &[&TensorType], attrs: &[AttrValue]) -> bool {
        self.space.registry().infer(op, operands, attrs).is_ok()
    }
}
