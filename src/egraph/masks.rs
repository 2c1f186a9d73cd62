//! Cotangents that are zero outside a condition stay so (DESIGN §8, select).
//!
//! A VJP is linear in its cotangent, and that of an elementwise operator works point by point, so
//! `L(select(c, g, 0)) = select(c, L(g), 0)`. Differentiation uses the right side: where the condition fails, 0 times
//! an infinite derivative would be NaN, although nothing there influences the result. Masks meet in two ways:
//! one within another is their conjunction, and a sum of masked cotangents is zero outside their disjunction. So every
//! cotangent has at most one mask, and a chain of operators costs work in proportion to its length.
//!
//! Nothing here knows a derivative. Any rule may conclude a masked cotangent; that of `select` does by its nature.

use super::space::Space;
use super::tape::{Tape, TapeBuilder};
use crate::ir::{AttrValue, Graph, NodeId, NodeKind, OpId, Registry, TypeError};
use crate::rules::term::Builder;

/// The operators that masks are made of.
#[derive(Clone, Copy, Debug)]
struct MaskOps {
    select: OpId,
    splat: OpId,
    and: OpId,
    or: OpId,
    not: OpId,
}

/// Takes masks off cotangents and puts them on.
#[derive(Clone, Copy, Debug)]
pub struct Masks {
    /// `None` where the registry lacks one of them (a registry of a test): nothing is masked there.
    ops: Option<MaskOps>,
}

/// Where a cotangent may differ from zero: where `condition` is `holds`.
#[derive(Clone, Copy, Debug)]
pub struct Mask {
    condition: NodeId,
    holds: bool,
    /// The select that it was read off: who made it, the mask's provenance.
    select: NodeId,
}

/// A cotangent, taken out of its mask.
#[derive(Clone, Copy, Debug)]
pub struct Masked {
    pub mask: Mask,
    pub cotangent: NodeId,
}

impl Mask {
    /// Do both let through the same points?
    pub fn same(&self, other: &Mask) -> bool {
        (self.condition, self.holds) == (other.condition, other.holds)
    }
}

impl Masks {
    pub fn new(registry: &Registry) -> Masks {
        let ops = || {
            Some(MaskOps {
                select: registry.id("select")?,
                splat: registry.id("splat")?,
                and: registry.id("logical_and")?,
                or: registry.id("logical_or")?,
                not: registry.id("logical_not")?,
            })
        };
        Masks { ops: ops() }
    }

    /// Is it of the form `select(c, g, 0)` or `select(c, 0, g)`?
    pub fn is_masked(self, graph: &Graph, cotangent: NodeId) -> bool {
        self.ops.is_some_and(|ops| ops.outermost(graph, cotangent).is_some())
    }

    /// Takes a cotangent out of its mask, if it has one.
    ///
    /// # Errors
    /// Masks of different shapes, which a rule may have made.
    pub fn unmask(self, tape: &mut Tape, space: &mut Space, cotangent: NodeId) -> Result<Option<Masked>, TypeError> {
        let Some(ops) = self.ops else { return Ok(None) };
        let Some(mut outer) = ops.outermost(&tape.graph, cotangent) else { return Ok(None) };
        while let Some(inner) = ops.outermost(&tape.graph, outer.cotangent) {
            let mask = ops.meet(ops.and, outer.mask, inner.mask, tape, space)?;
            outer = Masked { mask, cotangent: inner.cotangent };
        }
        Ok(Some(outer))
    }

    /// `select(c, g, 0)`. Masks that `cotangent` has itself are taken into this one.
    ///
    /// # Errors
    /// A mask of another shape than the cotangent.
    pub fn mask(self, tape: &mut Tape, space: &mut Space, mask: Mask, cotangent: NodeId) -> Result<NodeId, TypeError> {
        let Some(ops) = self.ops else { return Ok(cotangent) };
        if ops.is_zero(&tape.graph, cotangent) {
            return Ok(cotangent);
        }
        let (mask, cotangent) = match self.unmask(tape, space, cotangent)? {
            Some(inner) => (ops.meet(ops.and, mask, inner.mask, tape, space)?, inner.cotangent),
            None => (mask, cotangent),
        };
        let mut builder = builder(mask, tape, space);
        let ty = builder.ty(cotangent);
        let zero = builder.splat(0.0, ty)?;
        let [a, b] = if mask.holds { [cotangent, zero] } else { [zero, cotangent] };
        builder.op(ops.select, &[mask.condition, a, b], Vec::new())
    }

    /// The mask of a sum of masked cotangents: where one of them may differ from zero.
    ///
    /// # Errors
    /// Masks of different shapes.
    pub fn of_sum(self, tape: &mut Tape, space: &mut Space, summands: &[Masked]) -> Result<Option<Mask>, TypeError> {
        let (Some(ops), Some((first, rest))) = (self.ops, summands.split_first()) else { return Ok(None) };
        let mut mask = first.mask;
        for summand in rest {
            mask = ops.meet(ops.or, mask, summand.mask, tape, space)?;
        }
        Ok(Some(mask))
    }
}

impl MaskOps {
    /// `select(c, g, 0)` and `select(c, 0, g)`; a constant zero is no mask.
    fn outermost(self, graph: &Graph, id: NodeId) -> Option<Masked> {
        let NodeKind::Op { op, operands, .. } = &graph.node(id).kind else { return None };
        let [condition, a, b] = operands[..] else { return None };
        if *op != self.select {
            return None;
        }
        match (self.is_zero(graph, a), self.is_zero(graph, b)) {
            (false, true) => Some(Masked { mask: Mask { condition, holds: true, select: id }, cotangent: a }),
            (true, false) => Some(Masked { mask: Mask { condition, holds: false, select: id }, cotangent: b }),
            _ => None,
        }
    }

    fn is_zero(self, graph: &Graph, id: NodeId) -> bool {
        match &graph.node(id).kind {
            NodeKind::Op { op, attrs, .. } if *op == self.splat => {
                attrs.first().and_then(AttrValue::as_float).is_some_and(|v| v == 0.0)
            }
            _ => false,
        }
    }

    /// Both masks, or either, as one.
    fn meet(self, op: OpId, a: Mask, b: Mask, tape: &mut Tape, space: &mut Space) -> Result<Mask, TypeError> {
        if a.same(&b) {
            return Ok(a);
        }
        let [x, y] = [self.condition(a, tape, space)?, self.condition(b, tape, space)?];
        let condition = builder(b, tape, space).op(op, &[x, y], Vec::new())?;
        Ok(Mask { condition, holds: true, select: b.select })
    }

    /// A node that is true where the mask lets through.
    fn condition(self, mask: Mask, tape: &mut Tape, space: &mut Space) -> Result<NodeId, TypeError> {
        if mask.holds {
            return Ok(mask.condition);
        }
        builder(mask, tape, space).op(self.not, &[mask.condition], Vec::new())
    }
}

/// What a mask becomes was made by the rule that made the mask.
fn builder<'a>(mask: Mask, tape: &'a mut Tape, space: &'a mut Space) -> TapeBuilder<'a> {
    let origin = space.origin(tape.graph.node(mask.select).origin.clone());
    TapeBuilder { tape, space, origin }
}
