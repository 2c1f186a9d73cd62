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

/// Is it proved that no element of the class is NaN?
pub fn never_nan(space: &Space, class: Id) -> bool {
    NumberProver { space, known: FxHashMap::default() }.is_number(class, DEPTH)
}

struct NumberProver<'a> {
    space: &'a Space,
    /// Looked up only, never iterated.
    known: FxHashMap<Id, bool>,
}

impl NumberProver<'_> {
    /// All e-nodes of a class are equal: one that is never NaN is enough.
    fn is_number(&mut self, class: Id, depth: usize) -> bool {
        let class = self.space.egraph.find(class);
        let Some(ty) = self.space.ty(class) else { return true };
        if !ty.dtype.is_float() {
            return true;
        }
        if let Some(known) = self.known.get(&class) {
            return *known;
        }
        if depth == 0 || self.known.len() >= CLASSES {
            return false;
        }
        // On the way back to itself a class proves nothing.
        self.known.insert(class, false);
        let space = self.space;
        let proved = space.egraph[class].nodes.iter().any(|node| match node {
            ENode::Op(op, children) => {
                let attrs: Vec<AttrValue> =
                    children.iter().filter_map(|c| space.egraph[*c].data.attr().cloned()).collect();
                let operands: Vec<Id> =
                    children.iter().copied().filter(|c| space.egraph[*c].data.ty().is_some()).collect();
                let types: Vec<&TensorType> =
                    operands.iter().filter_map(|c| space.egraph[*c].data.ty()).map(|ty| &**ty).collect();
                let call = Call { operands: &types, attrs: &attrs };
                space.registry().op(*op).keeps_numbers(call) && operands.iter().all(|o| self.is_number(*o, depth - 1))
            }
            _ => false,
        });
        self.known.insert(class, proved);
        proved
    }
}

/// Is `class <compare> bound` proved for every element that is not NaN?
pub fn holds(space: &Space, class: Id, compare: DomainCompare, bound: f64) -> bool {
    let range = known(space, class);
    match compare {
        DomainCompare::Lt => range.hi < bound,
        DomainCompare::Le => range.hi <= bound,
        DomainCompare::Gt => range.lo > bound,
        DomainCompare::Ge => range.lo >= bound,
    }
}

/// Where every element that is not NaN is proved to lie.
pub fn known(space: &Space, class: Id) -> Range {
    Prover { space, known: FxHashMap::default() }.range(class, DEPTH)
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
        let call = Call { operands: &types, attrs: &attrs };
        let operator = space.registry().op(op);
        let one = |a: &Id| space.egraph.find(*a) == space.egraph.find(children[0]);
        match &ranges[..] {
            [first, _, ..] if children[..ranges.len()].iter().all(one) => operator.range_of_one(*first, call, ty),
            _ => operator.range(&ranges, call, ty),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ir::{DType, Origin, Placement, Registry, Shape};

    #[test]
    fn facts_come_from_operators_and_hold_for_the_class() {
        let mut space = Space::new(Arc::new(Registry::builtin()));
        let origin = space.origin(Origin::Accumulate { serves: vec![] });
        let ty = Arc::new(TensorType::new(DType::F32, Shape::new(vec![2, 3]).unwrap(), Placement::Host));
        let x = space.add(ENode::Input(0), Some(ty), origin);
        let op = |space: &mut Space, name: &str, operands: &[Id], attrs: &[AttrValue]| {
            let id = space.registry().id(name).unwrap();
            space.op(id, operands, attrs, origin).unwrap()
        };
        let p = op(&mut space, "softmax", &[x], &[AttrValue::Int(1)]);
        let sum = op(&mut space, "sum", &[p], &[AttrValue::Ints(vec![1]), AttrValue::Bool(false)]);
        let doubled = op(&mut space, "add", &[p, p], &[]);
        use DomainCompare::{Ge, Gt, Le, Lt};
        assert!(holds(&space, p, Ge, 0.0) && holds(&space, p, Le, 1.0));
        assert!(!holds(&space, p, Gt, 0.0) && !holds(&space, p, Lt, 1.0));
        assert!(holds(&space, sum, Ge, 0.0) && holds(&space, doubled, Le, 2.0) && !holds(&space, doubled, Le, 1.0));
        assert!(!holds(&space, x, Ge, 0.0));

        // A square is one, whatever is squared.
        let square = op(&mut space, "mul", &[x, x], &[]);
        let other = op(&mut space, "mul", &[x, p], &[]);
        let nothing = op(&mut space, "sub", &[x, x], &[]);
        assert!(holds(&space, square, Ge, 0.0) && !holds(&space, other, Ge, 0.0) && holds(&space, nothing, Le, 0.0));
        // e^x for an x with bounds.
        let e = op(&mut space, "exp", &[p], &[]);
        let free = op(&mut space, "exp", &[x], &[]);
        assert!(holds(&space, e, Gt, 0.9) && holds(&space, e, Lt, 2.72) && !holds(&space, free, Gt, 0.0));
        let chosen = op(&mut space, "greater", &[x, p], &[]);
        let chosen = op(&mut space, "select", &[chosen, p, e], &[]);
        let joined = op(&mut space, "concat", &[chosen, p, e], &[AttrValue::Int(0)]);
        assert!(holds(&space, joined, Ge, 0.0) && holds(&space, joined, Le, 2.72) && !holds(&space, joined, Le, 1.0));

        // x is equal to its own absolute value: a cycle, and a fact about x.
        let abs = op(&mut space, "abs", &[x], &[]);
        space.egraph.union(x, abs);
        space.egraph.rebuild();
        assert!(holds(&space, x, Ge, 0.0) && !holds(&space, x, Le, 1.0));
    }
}
