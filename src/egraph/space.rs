//! The e-graph with the provenance of everything in it.

use std::sync::Arc;

use egg::Id;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::language::{ENode, KinaEGraph, TypeAnalysis};
use super::record::Record;
use crate::ir::{AttrValue, OpId, Origin, Registry, TensorType, TypeError};
use crate::rules::term::Builder;

/// An e-graph that remembers who added each e-node first.
pub struct Space {
    pub egraph: KinaEGraph,
    /// One copy of every type that occurs.
    types: FxHashSet<Arc<TensorType>>,
    origins: Vec<Origin>,
    /// The origin of each e-node, in order of creation, which is the order of their ids.
    made: Vec<u32>,
    /// What a saturation did, if somebody asked for that.
    pub(super) record: Option<Record>,
}

/// An origin registered with a [`Space`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OriginId(u32);

impl Space {
    pub fn new(registry: Arc<Registry>) -> Self {
        Self {
            egraph: KinaEGraph::new(TypeAnalysis::new(registry)),
            types: FxHashSet::default(),
            origins: Vec::new(),
            made: Vec::new(),
            record: None,
        }
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.egraph.analysis.registry
    }

    /// Registers an origin for the e-nodes to come.
    pub fn origin(&mut self, origin: Origin) -> OriginId {
        self.origins.push(origin);
        OriginId(self.origins.len() as u32 - 1)
    }

    pub fn origin_of(&self, id: OriginId) -> &Origin {
        &self.origins[id.0 as usize]
    }

    /// The origin of the e-node that a class was created for.
    pub fn class_origin(&self, id: Id) -> Option<&Origin> {
        self.made.get(usize::from(id)).map(|origin| &self.origins[*origin as usize])
    }

    /// For each e-node, in order of creation, the place of its origin in the list of origins.
    pub(super) fn makers(&self) -> (&[u32], &[Origin]) {
        (&self.made, &self.origins)
    }

    /// Takes over the registered origins of another space.
    pub(super) fn copy_origins(&mut self, other: &Space) {
        self.origins.clone_from(&other.origins);
    }

    /// Who made the e-node of that number.
    pub(super) fn made_by(&self, index: usize) -> OriginId {
        OriginId(self.made.get(index).copied().unwrap_or(0))
    }

    /// All e-nodes in order of creation, with their origins. They are as they were when added; their children may have
    /// been merged since.
    pub fn log(&self) -> impl Iterator<Item = (&ENode, &Origin)> {
        self.egraph.nodes().iter().zip(&self.made).map(|(node, origin)| (node, &self.origins[*origin as usize]))
    }

    /// The type of a tensor class.
    pub fn ty(&self, id: Id) -> Option<&Arc<TensorType>> {
        self.egraph[id].data.ty()
    }

    /// The one copy of a type. A program has few types and many values.
    pub fn intern(&mut self, ty: TensorType) -> Arc<TensorType> {
        if let Some(known) = self.types.get(&ty) {
            return known.clone();
        }
        let ty = Arc::new(ty);
        self.types.insert(ty.clone());
        ty
    }

    /// Adds an e-node whose type is already known, if it is not there.
    pub fn add(&mut self, node: ENode, ty: Option<Arc<TensorType>>, origin: OriginId) -> Id {
        self.egraph.analysis.pending = ty;
        let id = self.egraph.add(node);
        self.egraph.analysis.pending = None;
        // An id more, if it was not there.
        self.made.resize(self.egraph.nodes().len(), origin.0);
        id
    }

    pub fn attr(&mut self, value: AttrValue, origin: OriginId) -> Id {
        self.add(ENode::Attr(value), None, origin)
    }

    /// Types and adds an operator call.
    ///
    /// # Errors
    /// The violated premise of the operator's typing rule.
    pub fn op(&mut self, op: OpId, operands: &[Id], attrs: &[AttrValue], origin: OriginId) -> Result<Id, TypeError> {
        let ty = {
            let types: SmallVec<[&TensorType; 4]> =
                operands.iter().filter_map(|o| self.egraph[*o].data.ty()).map(|t| &**t).collect();
            self.registry().infer(op, &types, attrs)?
        };
        let canonical = self.registry().op(op).canonical(attrs);
        let attrs = canonical.as_deref().unwrap_or(attrs);
        let mut children: SmallVec<[Id; 4]> = operands.iter().copied().collect();
        for value in attrs {
            children.push(self.attr(value.clone(), origin));
        }
        let ty = self.intern(ty);
        Ok(self.add(ENode::Op(op, children), Some(ty), origin))
    }
}

/// Builds rule conclusions into the e-graph.
pub struct SpaceBuilder<'a> {
    pub space: &'a mut Space,
    pub origin: OriginId,
}

impl Builder for SpaceBuilder<'_> {
    type Value = Id;

    fn ty(&self, value: Id) -> TensorType {
        match self.space.ty(value) {
            Some(ty) => (**ty).clone(),
            // Only tensor classes are ever bound to tensor metavariables.
            None => TensorType::new(crate::ir::DType::Bool, crate::ir::Shape::scalar(), crate::ir::Placement::Host),
        }
    }

    fn op(&mut self, op: OpId, operands: &[Id], attrs: Vec<AttrValue>) -> Result<Id, TypeError> {
        self.space.op(op, operands, &attrs, self.origin)
    }

    fn splat(&mut self, value: f64, ty: TensorType) -> Result<Id, TypeError> {
        let (op, attrs) = self.space.registry().splat(value, ty)?;
        self.space.op(op, &[], &attrs, self.origin)
    }

    fn accepts(&self, op: OpId, operands: &[&TensorType], attrs: &[AttrValue]) -> bool {
        self.space.registry().infer(op, operands, attrs).is_ok()
    }
}
