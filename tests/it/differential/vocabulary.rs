//! What programs may call: the operators of the registry that have a surface form, and the `def`s of the rule files.

use std::sync::Arc;

use kina_ad::ir::operator::Visibility;
use kina_ad::ir::{AttrValue, OpId, Signature, TensorType};
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
    /// Begins a function.
    Open,
    /// Ends the innermost function and differentiates it.
    Close,
    /// Declares an input.
    Input,
}

/// Open and close: so many times as likely as a call of one operator.
const HANDLERS: usize = 4;

pub struct Vocabulary<'r> {
    pub rules: &'r RuleSet,
    pub callees: Vec<Callee>,
    pub verbs: Vec<Verb>,
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
        let mut verbs: Vec<Verb> = (0..callees.len()).map(Verb::Call).collect();
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
    pub fn bound(&self, callee: &Callee, operands: &[TensorType], attrs: &[AttrValue]) -> Option<kina_ad::ir::Bound> {
        let Kind::Operator(id) = callee.kind else { return None };
        let operands: Vec<&TensorType> = operands.iter().collect();
        self.rules.registry.op(id).bound(kina_ad::ir::Call { operands: &operands, attrs })
    }

    /// Well-typed calls that the operator itself names.
    pub fn instances(&self, callee: &Callee) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        match callee.kind {
            Kind::Operator(id) => self.rules.registry.op(id).instances(),
            Kind::Def(_) => Vec::new(),
        }
    }
}
