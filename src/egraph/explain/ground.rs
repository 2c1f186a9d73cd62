//! Ground instances of rules: both sides, written out from the rule's text.

use std::sync::Arc;

use super::bank::{Bank, BankBuilder, Head, TermId};
use crate::diagnostics::Span;
use crate::egraph::patterns::commutes;
use crate::ir::{AttrValue, OpId, RuleRef, TypeError};
use crate::rules::term::{Bindings, TermError, TermErrorCause, expand};
use crate::rules::{AttrPattern, Conclusion, Def, Pattern, Rewrite, Vjp};

/// A rule with what its metavariables stand for.
#[derive(Clone, Debug)]
pub enum Ground {
    Rewrite {
        rule: Arc<Rewrite>,
        /// See [`Cause::Rewrite`](crate::egraph::record::Cause).
        swapped: Arc<[bool]>,
        /// One of the two for each metavariable.
        tensors: Vec<Option<TermId>>,
        attrs: Vec<Option<AttrValue>>,
    },
    Commutes {
        rule: Arc<Rewrite>,
        op: OpId,
        operands: [TermId; 2],
    },
    Definition {
        def: Arc<Def>,
        op: OpId,
        operands: Vec<TermId>,
        attrs: Vec<AttrValue>,
    },
    Vjp {
        rule: Arc<Vjp>,
        operands: Vec<TermId>,
        attrs: Vec<AttrValue>,
        primal: TermId,
        cotangent: TermId,
        operand: usize,
    },
}

/// Why an instance cannot be written out: what was recorded of it does not fit the rule.
#[derive(Clone, Debug, thiserror::Error)]
pub enum GroundError {
    #[error(transparent)]
    Term(#[from] TermError),
    #[error("a metavariable of `{0}` stands for nothing")]
    Unbound(Arc<str>),
    #[error("`{0}` does not say that the operator commutes")]
    Commutes(Arc<str>),
    #[error("a condition of `{0}` does not hold")]
    Condition(Arc<str>),
    #[error("`{0}` concludes nothing for this operand")]
    NoConclusion(Arc<str>),
}

impl Ground {
    pub fn rule(&self) -> &RuleRef {
        match self {
            Ground::Rewrite { rule, .. } | Ground::Commutes { rule, .. } => &rule.head.rule,
            Ground::Definition { def, .. } => &def.head.rule,
            Ground::Vjp { rule, .. } => &rule.head.rule,
        }
    }

    /// The terms that metavariables stand for.
    pub fn bound(&self) -> Vec<TermId> {
        match self {
            Ground::Rewrite { tensors, .. } => tensors.iter().flatten().copied().collect(),
            Ground::Commutes { operands, .. } => operands.to_vec(),
            Ground::Definition { operands, .. } => operands.clone(),
            Ground::Vjp { operands, primal, cotangent, .. } => {
                operands.iter().chain([primal, cotangent]).copied().collect()
            }
        }
    }

    /// Both sides, with all that the rule computes (attributes, types, conditions) computed anew.
    ///
    /// # Errors
    /// See [`GroundError`].
    pub fn sides(&self, bank: &mut Bank) -> Result<(TermId, TermId), GroundError> {
        match self {
            Ground::Rewrite { rule, swapped, tensors, attrs } => {
                let mut written = Written { rule, swapped, tensors, attrs, call: 0 };
                let left = written.term(&rule.left, bank)?;
                let mut bindings = Bindings::new(rule.head.vars.len(), &rule.head.locals);
                bindings.tensors.clone_from(tensors);
                bindings.attrs.clone_from(attrs);
                bindings.expected = Some((**bank.ty(left)).clone());
                let mut builder = BankBuilder { bank };
                for condition in rule.head.conditions.iter().chain(&rule.head.worth) {
                    if !bindings.condition(condition, &mut builder)? {
                        return Err(GroundError::Condition(rule.head.rule.name.clone()));
                    }
                }
                Ok((left, bindings.build(&rule.right, &mut builder)?))
            }
            Ground::Commutes { rule, op, operands: [a, b] } => {
                if commutes(rule) != Some(*op) {
                    return Err(GroundError::Commutes(rule.head.rule.name.clone()));
                }
                let error = |e: TypeError| typed(rule.head.span, e);
                let left = bank.op(*op, &[*a, *b], &[]).map_err(error)?;
                Ok((left, bank.op(*op, &[*b, *a], &[]).map_err(error)?))
            }
            Ground::Definition { def, op, operands, attrs } => {
                let left = bank.op(*op, operands, attrs).map_err(|e| typed(def.head.span, e))?;
                Ok((left, expand(def, operands, attrs, &mut BankBuilder { bank })?))
            }
            Ground::Vjp { rule, operands, attrs, primal, cotangent, operand } => {
                let signature = bank.registry().op(rule.op).signature().clone();
                let mut bindings = Bindings::new(rule.head.vars.len(), &rule.head.locals);
                rule.bind_operands(&signature, operands, &mut bindings);
                let stated = rule.conclusion(&signature, *operand, operands.len(), &mut bindings);
                for (pattern, value) in rule.attrs.iter().zip(attrs) {
                    match pattern {
                        AttrPattern::Const(wanted) if wanted != value => {
                            return Err(GroundError::NoConclusion(rule.head.rule.name.clone()));
                        }
                        AttrPattern::Const(_) => {}
                        AttrPattern::Var(var) => bindings.bind_attr(*var, value.clone()),
                    }
                }
                bindings.bind_tensor(rule.primal, *primal);
                bindings.bind_tensor(rule.cotangent, *cotangent);
                let Some(of) = operands.get(*operand) else {
                    return Err(GroundError::NoConclusion(rule.head.rule.name.clone()));
                };
                let ty = bank.ty(*of).clone();
                bindings.expected = Some((*ty).clone());
                let head = Head::Cotangent(rule.op, *operand as u32, attrs.clone());
                let left = bank.add(head, operands.iter().chain([primal, cotangent]).copied().collect(), &ty);
                let mut builder = BankBuilder { bank };
                for condition in &rule.head.conditions {
                    if !bindings.condition(condition, &mut builder)? {
                        return Err(GroundError::Condition(rule.head.rule.name.clone()));
                    }
                }
                match stated {
                    Some(Conclusion::Cotangent(term)) => Ok((left, bindings.build(term, &mut builder)?)),
                    _ => Err(GroundError::NoConclusion(rule.head.rule.name.clone())),
                }
            }
        }
    }
}

fn typed(span: Span, error: TypeError) -> GroundError {
    GroundError::Term(TermError { span, cause: TermErrorCause::Type(error) })
}

/// A left side being written out.
struct Written<'a> {
    rule: &'a Rewrite,
    swapped: &'a [bool],
    tensors: &'a [Option<TermId>],
    attrs: &'a [Option<AttrValue>],
    /// The calls met so far.
    call: usize,
}

impl Written<'_> {
    fn term(&mut self, pattern: &Pattern, bank: &mut Bank) -> Result<TermId, GroundError> {
        let unbound = || GroundError::Unbound(self.rule.head.rule.name.clone());
        match pattern {
            Pattern::Var(var) => self.tensors.get(var.0 as usize).copied().flatten().ok_or_else(unbound),
            Pattern::Op { op, operands, attrs } => {
                let swapped = self.swapped.get(self.call).copied().unwrap_or(false);
                self.call += 1;
                let attrs = attrs.iter().map(|attr| match attr {
                    AttrPattern::Const(value) => Ok(value.clone()),
                    AttrPattern::Var(var) => self.attrs.get(var.0 as usize).cloned().flatten().ok_or_else(unbound),
                });
                let attrs = attrs.collect::<Result<Vec<_>, _>>()?;
                let mut terms = Vec::with_capacity(operands.len());
                for operand in operands {
                    terms.push(self.term(operand, bank)?);
                }
                if swapped {
                    terms.reverse();
                }
                bank.op(*op, &terms, &attrs).map_err(|e| typed(self.rule.head.span, e))
            }
        }
    }
}
