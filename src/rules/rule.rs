//! Compiled rules.

use std::sync::Arc;

use super::example::Example;
use super::extent::Extent;
use super::term::{AttrTerm, Bindings, Local, Term, VarId};
use crate::diagnostics::Span;
use crate::ir::{AttrKind, AttrValue, OpId, RuleRef, Signature};

/// What a metavariable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarKind {
    Tensor,
    /// The tensors that a variadic parameter stands for.
    Tensors,
    /// The kind is known where the variable stands for an attribute of an operator.
    Attr(Option<AttrKind>),
}

/// A metavariable of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    pub name: String,
    pub kind: VarKind,
}

/// The parts that every rule has.
#[derive(Clone, Debug)]
pub struct RuleHead {
    /// Name and file:line, as everything the rule makes carries them.
    pub rule: RuleRef,
    pub doc: String,
    pub span: Span,
    pub vars: Vec<Var>,
    pub locals: Vec<Local>,
    /// `where` lines: the rule applies only if all are true.
    pub conditions: Vec<AttrTerm>,
    /// `when` lines of a rewrite: it is tried only if all are true, and what it promises holds without them.
    pub worth: Vec<AttrTerm>,
    /// `domain` lines: facts about values that must be proved.
    pub domain: Vec<DomainFact>,
    pub examples: Vec<Example>,
    /// Its size when it is instantiated.
    pub extent: Extent,
}

/// `x >= 0` and its like: every element of a tensor compares so with a number. NaN elements are outside the claim.
#[derive(Clone, Debug)]
pub struct DomainFact {
    pub tensor: VarId,
    pub compare: DomainCompare,
    pub bound: AttrTerm,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainCompare {
    Lt,
    Le,
    Gt,
    Ge,
}

/// The VJP of one operator.
#[derive(Clone, Debug)]
pub struct Vjp {
    pub head: RuleHead,
    pub op: OpId,
    /// `as NAME`
    pub alternative: Option<String>,
    /// The metavariable of each parameter that stands for tensors.
    pub operands: Vec<VarId>,
    /// What the premise says of each attribute.
    pub attrs: Vec<AttrPattern>,
    /// The primal result.
    pub primal: VarId,
    /// The incoming cotangent.
    pub cotangent: VarId,
    /// One for each of `operands`.
    pub conclusions: Vec<Conclusion>,
    /// The metavariable of `i` in `g_xs[i] = ..`, if an operand is variadic.
    pub index: Option<VarId>,
    /// Policies where the derivative does not exist.
    pub kinks: Vec<Kink>,
    /// Where the rule says that its conclusions are by intent not the derivative.
    pub not_a_derivative: Option<Span>,
}

/// `kink x == 0.0: g_x = 0.0`: at elements where the condition holds, which have no derivative or where it is a matter of policy,
/// the conclusion of an operand has the stated value.
#[derive(Clone, Debug)]
pub struct Kink {
    /// Bool, of the operand's shape.
    pub condition: Term,
    pub operand: usize,
    /// Of the operand's type.
    pub value: Term,
    pub span: Span,
}

impl Vjp {
    /// Binds the operands of a call of `op`, whose signature is given.
    pub fn bind_operands<V: Copy>(&self, signature: &Signature, operands: &[V], bindings: &mut Bindings<'_, V>) {
        for (var, part) in self.operands.iter().zip(signature.split(operands)) {
            match (self.head.vars[var.0 as usize].kind, part) {
                (VarKind::Tensors, list) => bindings.bind_tensors(*var, list.to_vec()),
                (_, [one]) => bindings.bind_tensor(*var, *one),
                _ => {}
            }
        }
    }

    /// What the rule concludes for operand `index` of a call with `count` of them. The name that the rule has for the place
    /// of a variadic operand is bound.
    pub fn conclusion<V: Copy>(
        &self,
        signature: &Signature,
        index: usize,
        count: usize,
        bindings: &mut Bindings<'_, V>,
    ) -> Option<&Conclusion> {
        let (param, element) = signature.param_of(index, count);
        if let (Some(var), Some(element)) = (self.index, element) {
            bindings.bind_attr(var, AttrValue::Int(element as i64));
        }
        self.conclusions.get(param)
    }
}

/// What a VJP says of one operand.
#[derive(Clone, Debug)]
pub enum Conclusion {
    /// `none`: no cotangent flows to it.
    NoCotangent(Span),
    Cotangent(Term),
}

/// The promise of a rewrite (DESIGN §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RewriteClass {
    /// Equal on every float.
    Exact,
    /// Equal over the reals, finite stays finite, no accuracy lost.
    Real,
}

/// A directed rewrite. `a <=> b` compiles to two.
#[derive(Clone, Debug)]
pub struct Rewrite {
    pub head: RuleHead,
    pub class: RewriteClass,
    pub left: Pattern,
    pub right: Term,
    /// Do the sides differ where a tensor of its `domain` is NaN? A range says nothing of NaN, so that the rule then fires only where
    /// it is proved that there is none.
    pub needs_numbers: bool,
}

/// A left side.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    Var(VarId),
    Op { op: OpId, operands: Vec<Pattern>, attrs: Vec<AttrPattern> },
}

#[derive(Clone, Debug, PartialEq)]
pub enum AttrPattern {
    Var(VarId),
    Const(AttrValue),
}

impl Pattern {
    /// Levels of operators.
    pub fn depth(&self) -> usize {
        match self {
            Pattern::Var(_) => 0,
            Pattern::Op { operands, .. } => 1 + operands.iter().map(Pattern::depth).max().unwrap_or(0),
        }
    }

    /// Operators in all.
    pub fn calls(&self) -> usize {
        match self {
            Pattern::Var(_) => 0,
            Pattern::Op { operands, .. } => 1 + operands.iter().map(Pattern::calls).sum::<usize>(),
        }
    }

    /// The operator at the root; `None` for a bare variable, which the compiler refuses as a left side.
    pub fn root(&self) -> Option<OpId> {
        match self {
            Pattern::Var(_) => None,
            Pattern::Op { op, .. } => Some(*op),
        }
    }
}

/// A composite operator.
#[derive(Clone, Debug)]
pub struct Def {
    pub head: RuleHead,
    pub name: Arc<str>,
    pub signature: Signature,
    /// The metavariable of each parameter, in order.
    pub params: Vec<VarId>,
    pub result: Term,
    /// Where it says that what is differentiated through it is by intent not its derivative.
    pub not_a_derivative: Option<Span>,
}
