//! What programs may call: the operators of the registry that have a surface form, and the `def`s of the rule files.

use std::sync::Arc;

use kina_ad::ir::operator::Visibility;
use kina_ad::ir::{AttrValue, Bound, Call, OpId, Operator, Signature, TensorType};
use kina_ad::rules::term::{Builder as _, expand};
use kina_ad::rules::{Def, RuleSet, TypeBuilder};

/// One of them.
pub struct Callee {
    pub name: String,
    pub signature: Signature,
    kind: Kind,
}

enum Kind {
    Operator(OpId),
    Def(Arc<Def>),
}

/// What a step does.
#[derive(Clone, Copy)]
pub enum Verb {
    /// Calls `callees[i]`.
    Call(usize),
    /// Writes the left side of a rewrite.
    Redex(usize),
    /// Begins a function.
    Open,
    /// Ends the innermost function and differentiates it.
    Close,
    /// Declares an input.
    Input,
}

/// So many times as likely as a call of one operator are the beginning of a function, its end, and a call of an operator
/// that may trap.
const HANDLERS: usize = 8;
const TRAPS: usize = 4;

pub struct Vocabulary<'r> {
    pub rules: &'r RuleSet,
    pub callees: Vec<Callee>,
    pub verbs: Vec<Verb>,
}

fn may_trap(op: &dyn Operator) -> bool {
    op.instances().iter().any(|(operands, attrs)| {
        let operands: Vec<&TensorType> = operands.iter().collect();
        op.bound(Call { operands: &operands, attrs }).is_some()
    })
}

impl<'r> Vocabulary<'r> {
    pub fn new(rules: &'r RuleSet) -> Self {
        let mut callees = Vec::new();
        for (id, op) in rules.registry.iter().filter(|(_, op)| op.visibility() == Visibility::Surface) {
            let kind = Kind::Operator(id);
            callees.push(Callee { name: op.name().to_owned(), signature: op.signature().clone(), kind });
        }
        // A `def` with a `vjp` is an operator already.
        for def in rules.defs().filter(|d| rules.registry.id(&d.name).is_none()) {
            let (name, signature) = (def.name.to_string(), def.signature.clone());
            callees.push(Callee { name, signature, kind: Kind::Def(def.clone()) });
        }
        let mut verbs = Vec::new();
        for (i, callee) in callees.iter().enumerate() {
            let traps = match callee.kind {
                Kind::Operator(id) => may_trap(rules.registry.op(id)),
                Kind::Def(_) => false,
            };
            verbs.extend(std::iter::repeat_n(Verb::Call(i), if traps { TRAPS } else { 1 }));
        }
        let writable = |i: &usize| super::redex::is_writable(rules, &rules.rewrites()[*i].left);
        verbs.extend((0..rules.rewrites().len()).filter(writable).map(Verb::Redex));
        verbs.extend([Verb::Open, Verb::Close].repeat(HANDLERS));
        verbs.push(Verb::Input);
        Vocabulary { rules, callees, verbs }
    }

    /// The type of a call's result, `None` if it is ill-typed.
    pub fn result(&self, callee: &Callee, operands: &[TensorType], attrs: &[AttrValue]) -> Option<TensorType> {
        match &callee.kind {
            Kind::Operator(id) => {
                let operands: Vec<&TensorType> = operands.iter().collect();
                self.rules.registry.infer(*id, &operands, attrs).ok()
            }
            Kind::Def(def) => {
                if operands.len() != callee.signature.operand_count() {
                    return None;
                }
                let mut builder = TypeBuilder::new(&self.rules.registry);
                let operands: Vec<usize> = operands.iter().map(|t| builder.given(t.clone())).collect();
                let result = expand(def, &operands, attrs, &mut builder).ok()?;
                Some(builder.ty(result))
            }
        }
    }

    /// Can calls of this name be differentiated? A `def` is, by the rules of what it consists of.
    pub fn has_vjp(&self, name: &str) -> bool {
        self.rules.registry.id(name).is_none_or(|id| !self.rules.vjps(id).is_empty())
    }

    /// The bound on the elements of an operand, if the call has one.
    pub fn bound(&self, callee: &Callee, operands: &[TensorType], attrs: &[AttrValue]) -> Option<Bound> {
        // What a definition indexes with, only its name tells.
        let loss = matches!(callee.name.as_str(), "nll" | "cross_entropy" | "weighted_cross_entropy");
        if let (true, Some(AttrValue::Int(axis))) = (loss, attrs.first()) {
            let size = operands.first()?.shape.get(usize::try_from(*axis).ok()?).copied()?;
            return Some(Bound { operand: 1, size });
        }
        let Kind::Operator(id) = callee.kind else { return None };
        let operands: Vec<&TensorType> = operands.iter().collect();
        self.rules.registry.op(id).bound(Call { operands: &operands, attrs })
    }

    /// Well-typed calls that the operator itself names.
    pub fn instances(&self, callee: &Callee) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        match callee.kind {
            Kind::Operator(id) => self.rules.registry.op(id).instances(),
            Kind::Def(_) => Vec::new(),
        }
    }
}
