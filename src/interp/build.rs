//! Graphs of tests, built by hand.

use crate::diagnostics::SourceMap;
use crate::ir::{
    Array, AttrValue, DType, Graph, Node, NodeId, NodeKind, Origin, Placement, Registry, Shape, TensorType, Values,
};

/// A graph under construction.
pub struct Build {
    pub graph: Graph,
    pub registry: Registry,
    origin: Origin,
}

pub fn ty(dtype: DType, dims: &[u64]) -> TensorType {
    TensorType::new(dtype, Shape::new(dims.to_vec()).unwrap(), Placement::Host)
}

pub fn floats(dims: &[u64], values: &[f64]) -> Array {
    Array::new(Shape::new(dims.to_vec()).unwrap(), Values::Float(values.to_vec()))
}

pub fn ints(dims: &[u64], values: &[i64]) -> Array {
    Array::new(Shape::new(dims.to_vec()).unwrap(), Values::Int(values.to_vec()))
}

impl Build {
    pub fn new() -> Build {
        let mut sources = SourceMap::new();
        let file = sources.add("test.kina", "x");
        let origin = Origin::Program(sources.span(file, 0, 1));
        Build { graph: Graph::new(), registry: Registry::builtin(), origin }
    }

    pub fn input(&mut self, name: &str, ty: TensorType) -> NodeId {
        let id =
            self.graph.push(Node { kind: NodeKind::Input, ty, name: Some(name.into()), origin: self.origin.clone() });
        self.graph.inputs.push(id);
        id
    }

    pub fn param(&mut self, argument: NodeId) -> NodeId {
        let kind = NodeKind::Param { handler: 0, index: 0, argument };
        let ty = self.graph.ty(argument).clone();
        self.graph.push(Node { kind, ty, name: None, origin: self.origin.clone() })
    }

    /// An operator call; its bounds check is added as the checker would.
    pub fn op(&mut self, name: &str, operands: &[NodeId], attrs: &[AttrValue]) -> NodeId {
        let op = self.registry.id(name).unwrap();
        let id = self.graph.add(&self.registry, op, operands.to_vec(), attrs.to_vec(), self.origin.clone()).unwrap();
        if let Some(check) = self.graph.check_of(&self.registry, id) {
            self.graph.checks.add(check);
        }
        id
    }

    pub fn output(&mut self, name: &str, node: NodeId) {
        self.graph.outputs.push(crate::ir::Output { name: name.into(), node });
    }
}
