//! One rewrite of differentiation: a `vjp:op:operand(..)` e-node to what the operator's rule concludes.

use super::differentiate::{Concluded, Walk};
use super::language::ENode;
use super::ranges;
use super::tape::TapeBuilder;
use crate::diagnostics::Diagnostic;
use crate::ir::{NodeId, NodeKind, OpId, Origin};
use crate::rules::term::{Bindings, TermError};
use crate::rules::{AttrPattern, Conclusion, Vjp};

/// What came of it.
pub(super) enum Applied {
    Cotangent(NodeId),
    /// The rule says that none flows.
    Nothing,
    /// Reported.
    Refused,
    Missing,
}

enum Conclude {
    Nothing,
    Value(NodeId),
}

impl Walk<'_> {
    /// Adds the node `vjp:op:i` and rewrites it to the conclusion of the operator's rule.
    pub(super) fn apply(&mut self, id: NodeId, op: OpId, operand: usize, cotangent: NodeId) -> Applied {
        let rules = self.rules;
        let mut result = Applied::Missing;
        for vjp in rules.vjps(op) {
            // The primary rule decides; alternatives only add forms for the optimiser to choose from.
            if vjp.alternative.is_some() && !matches!(result, Applied::Cotangent(_)) {
                break;
            }
            let first = self.tape.graph.len();
            match self.conclude(id, vjp, operand, cotangent) {
                Ok(None) => {}
                Ok(Some(Conclude::Nothing)) if vjp.alternative.is_none() => return Applied::Nothing,
                Ok(Some(Conclude::Nothing)) => {}
                Ok(Some(Conclude::Value(value))) => {
                    if let Some(refused) = self.mismatch(id, op, operand, value, vjp) {
                        self.bag.push(refused);
                        return Applied::Refused;
                    }
                    self.concluded.push(Concluded {
                        rule: vjp.clone(),
                        call: id,
                        cotangent,
                        value,
                        operand,
                        added: (first, self.tape.graph.len()),
                    });
                    match result {
                        Applied::Cotangent(primary) => {
                            self.alternatives.push((self.tape.class(primary), self.tape.class(value)));
                        }
                        _ => {
                            self.unite(id, op, operand, cotangent, value, vjp);
                            result = Applied::Cotangent(value);
                        }
                    }
                }
                Err(error) => {
                    let shown = self.shown(id);
                    self.bag.push(
                        Diagnostic::error("E0503", format!("`{}` is ill-typed here: {error}", vjp.head.rule.name))
                            .at(error.span, format!("while differentiating `{shown}`"))
                            .help("restrict the rule with `where`, or mend its conclusion"),
                    );
                    return Applied::Refused;
                }
            }
        }
        result
    }

    /// Instantiates the conclusion of `vjp` for one operand. `None` if the rule does not cover this call.
    fn conclude(
        &mut self,
        id: NodeId,
        vjp: &Vjp,
        operand: usize,
        cotangent: NodeId,
    ) -> Result<Option<Conclude>, TermError> {
        let NodeKind::Op { operands, attrs, .. } = self.tape.graph.node(id).kind.clone() else { return Ok(None) };
        let mut bindings = Bindings::new(vjp.head.vars.len(), &vjp.head.locals);
        let signature = self.rules.registry.op(vjp.op).signature();
        vjp.bind_operands(signature, &operands, &mut bindings);
        let stated = vjp.conclusion(signature, operand, operands.len(), &mut bindings);
        for (pattern, value) in vjp.attrs.iter().zip(&attrs) {
            match pattern {
                AttrPattern::Const(wanted) if wanted != value => return Ok(None),
                AttrPattern::Const(_) => {}
                AttrPattern::Var(var) => bindings.bind_attr(*var, value.clone()),
            }
        }
        bindings.bind_tensor(vjp.primal, id);
        bindings.bind_tensor(vjp.cotangent, cotangent);
        let wanted = self.tape.graph.ty(operands[operand]).clone();
        bindings.expected = Some(wanted.clone());
        let serves = vec![self.shown(id)];
        let origin = self.space.origin(Origin::Rule { rule: vjp.head.rule.clone(), serves });
        // For the one rule that there is, a domain says where it is true; one of several must be true here.
        if vjp.alternative.is_some() {
            for fact in &vjp.head.domain {
                let bound = bindings.attr(&fact.bound, &mut self.builder(origin))?.as_float();
                let tensor = bindings.tensors[fact.tensor.0 as usize].map(|node| self.tape.class(node));
                let proved = tensor.zip(bound).is_some_and(|(t, b)| ranges::holds(&self.space, t, fact.compare, b));
                if !proved {
                    return Ok(None);
                }
            }
        }
        let mut builder = self.builder(origin);
        let concluded = conclusion(vjp, stated, &mut bindings, &mut builder);
        self.fuel.spend(bindings.steps());
        concluded
    }

    /// The refusal of a conclusion that has another type than its operand.
    fn mismatch(&self, id: NodeId, op: OpId, operand: usize, value: NodeId, vjp: &Vjp) -> Option<Diagnostic> {
        let NodeKind::Op { operands, .. } = &self.tape.graph.node(id).kind else { return None };
        let wanted = self.tape.graph.ty(operands[operand]);
        let found = self.tape.graph.ty(value);
        if wanted != found {
            let (param, _) = self.rules.registry.op(op).signature().param_of(operand, operands.len());
            let span = match vjp.conclusions.get(param) {
                Some(Conclusion::Cotangent(term)) => term.span,
                Some(Conclusion::NoCotangent(span)) => *span,
                None => vjp.head.span,
            };
            let shown = self.shown(id);
            return Some(
                Diagnostic::error(
                    "E0503",
                    format!("`{}` concludes {found}, but {wanted} is wanted", vjp.head.rule.name),
                )
                .at(span, format!("while differentiating `{shown}`"))
                .help("a cotangent has dtype, shape and placement of its operand"),
            );
        }
        None
    }

    /// Merges the VJP's e-node with its conclusion.
    fn unite(&mut self, id: NodeId, op: OpId, operand: usize, cotangent: NodeId, value: NodeId, vjp: &Vjp) {
        let NodeKind::Op { operands, attrs, .. } = self.tape.graph.node(id).kind.clone() else { return };
        let ty = self.space.intern(self.tape.graph.ty(operands[operand]).clone());
        let origin = self.space.origin(Origin::Rule { rule: vjp.head.rule.clone(), serves: vec![self.shown(id)] });
        let mut children: smallvec::SmallVec<[egg::Id; 4]> = operands.iter().map(|o| self.tape.class(*o)).collect();
        for value in attrs {
            children.push(self.space.attr(value, origin));
        }
        children.push(self.tape.class(id));
        children.push(self.tape.class(cotangent));
        let node = self.space.add(ENode::Vjp(op, operand as u32, children), Some(ty), origin);
        let conclusion = self.tape.class(value);
        self.space.egraph.union(conclusion, node);
    }
}

/// Builds what `vjp` states for one operand; `None` if the rule's conditions do not hold.
fn conclusion(
    vjp: &Vjp,
    stated: Option<&Conclusion>,
    bindings: &mut Bindings<'_, NodeId>,
    builder: &mut TapeBuilder<'_>,
) -> Result<Option<Conclude>, TermError> {
    for condition in &vjp.head.conditions {
        if !bindings.condition(condition, builder)? {
            return Ok(None);
        }
    }
    match stated {
        None | Some(Conclusion::NoCotangent(_)) => Ok(Some(Conclude::Nothing)),
        Some(Conclusion::Cotangent(term)) => bindings.build(term, builder).map(|v| Some(Conclude::Value(v))),
    }
}
