//! What is provable about the values of an e-class, for `domain` conditions.

use egg::Id;
use rustc_hash::FxHashMap;

use super::language::ENode;
use super::space::Space;
use crate::ir::{AttrValue, Call, OpId, Range, TensorType};
use crate::rules::DomainCompare;

/// How far below a class its e-nodes are looked at.
const DEPTH: usize = 8;
/// How many classes are looked at for one condition.
const CLASSES: usize = 256;

/// Is `class <compare> bound` proved for every element that is not NaN?
pub fn holds(space: &Space, class: Id, compare: DomainCompare, bound: f64) -> bool {
    let range = Prover { space, known: FxHashMap::default() }.range(class, DEPTH);
    match compare {
        DomainCompare::Lt => range.hi < bound,
        DomainCompare::Le => range.hi <= bound,
        DomainCompare::Gt => range.lo > bound,
        DomainCompare::Ge => range.lo >= bound,
    }
}

struct Prover<'a> {
    space: &'a Space,
    /// Looked up only, never iterated.
    known: FxHashMap<Id, Range>,
}

impl Prover<'_> {
    /// All e-nodes of a class are equal, so what each of them promises holds for all.
    fn range(&mut self, class: Id, depth: usize) -> Range {
        let class = self.space.egraph.find(class);
        let Some(ty) = self.space.ty(class).cloned() else { return Range::UNBOUNDED };
        if let Some(range) = self.known.get(&class) {
            return *range;
        }
        let mut range = Range::of_type(&ty);
        if depth == 0 || self.known.len() >= CLASSES {
            return range;
        }
        // A class may reach itself; on the way back only its type is known.
        self.known.insert(class, range);
        let space = self.space;
        for node in &space.egraph[class].nodes {
            if let ENode::Op(op, children) = node {
                range = range.intersect(self.call(*op, children, &ty, depth));
            }
        }
        self.known.insert(class, range);
        range
    }

    fn call(&mut self, op: OpId, children: &[Id], ty: &TensorType, depth: usize) -> Range {
        let space = self.space;
        let (mut types, mut ranges, mut attrs) = (Vec::new(), Vec::new(), Vec::<AttrValue>::new());
        for child in children {
            let data = &space.egraph[*child].data;
            match (data.ty(), data.attr()) {
                (Some(ty), _) => {
                    types.push(&**ty);
                    ranges.push(self.range(*child, depth - 1));
                }
                (None, Some(value)) => attrs.push(value.clone()),
                (None, None) => return Range::of_type(ty),
            }
        }
        space.registry().op(op).range(&ranges, Call { operands: &types, attrs: &attrs }, ty)
    }
}
