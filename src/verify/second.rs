//! Second order: what a VJP concludes, differentiated by the whole rule set and compared with finite differences.

use std::collections::BTreeSet;

use super::compare::AGREEMENT;
use super::report::{Findings, describe_point, number};
use super::sample::{Draw, Limits, array};
use super::trial::{Trial, second_order_program};
use super::vjp::{TOLERANCE, Work, conclusion_span};
use crate::diagnostics::Diagnostic;
use crate::egraph::differentiate;
use crate::interp::{Demand, Verdict, check_gradients_to};
use crate::ir::{NodeId, NodeKind, OpId, Registry};
use crate::rules::{RuleSet, Vjp};
use crate::run::probes;

const DRAWS: [Draw; 3] = [Draw::Normal(1.0), Draw::Positive(1.0), Draw::Unit];
/// Instances differentiated twice, of different ranks.
const INSTANCES: usize = 4;

/// Completes the findings of first order. What goes through an operator whose VJP is `refused` is not judged.
pub fn second_order(vjp: &Vjp, rules: &RuleSet, seed: u64, refused: &BTreeSet<OpId>, findings: &mut Findings) {
    let mut work = Work::new(vjp, rules, seed, std::mem::take(findings));
    let trials = work.trials();
    let mut chosen: Vec<&Trial> = Vec::new();
    let rank = |t: &Trial| t.operands.first().map_or(0, |o| t.graph.ty(*o).rank());
    for trial in &trials {
        if chosen.len() < INSTANCES && chosen.iter().all(|c| rank(c) != rank(trial)) {
            chosen.push(trial);
        }
    }
    for trial in chosen {
        let blamed = trial.graph.iter().find_map(|(_, node)| match &node.kind {
            NodeKind::Op { op, .. } if refused.contains(op) => Some(*op),
            _ => None,
        });
        if let Some(op) = blamed {
            let name = rules.registry.op(op).name();
            work.findings.not_second = Some(format!("the VJP of `{name}` is refused"));
            break;
        }
        work.second_order(trial);
        if work.findings.is_refused() {
            break;
        }
    }
    *findings = work.findings;
}

impl Work<'_> {
    /// The conclusions, differentiated by the whole rule set.
    fn second_order(&mut self, trial: &Trial) {
        for (operand, conclusion) in trial.conclusions.iter().enumerate() {
            let Some(conclusion) = *conclusion else { continue };
            let program = second_order_program(trial, conclusion, self.vjp.head.span);
            let differentiated = match differentiate(&program, self.rules) {
                Ok(differentiated) => differentiated,
                // An operator without a VJP: the static check says so.
                Err(bag) => {
                    self.findings.not_second = bag.iter().next().map(|d| d.message.clone());
                    return;
                }
            };
            let probes = probes(&differentiated);
            let mut checked = 0;
            for draw in DRAWS {
                let mut inputs = self.draw(trial, draw);
                let ty = trial.graph.ty(conclusion);
                inputs.push(array(ty, Draw::Normal(1.0), &Limits::default(), 1, &mut self.random));
                let demand =
                    Demand { tolerance: TOLERANCE, agreement: AGREEMENT, constants: false, ..Demand::default() };
                let shown = inputs.clone();
                let report =
                    match check_gradients_to(&demand, &differentiated.tape, &self.rules.registry, inputs, &probes, 0) {
                        Ok(report) => report,
                        Err(_) => continue,
                    };
                for gradient in &report.gradients {
                    match &gradient.verdict {
                        Verdict::Passed => {
                            checked += gradient.checked - gradient.at_kinks;
                            self.findings.second = self.findings.second.max(gradient.worst);
                        }
                        Verdict::NotChecked(_) => {}
                        Verdict::Failed => {
                            let names: Vec<&str> = trial
                                .graph
                                .inputs
                                .iter()
                                .map(|i| trial.graph.node(*i).name.as_deref().unwrap_or("x"))
                                .collect();
                            return self.findings.refuse(
                                Diagnostic::error(
                                    "E0902",
                                    format!(
                                        "the derivative of what `{}` concludes is wrong for `{}`",
                                        self.vjp.head.rule.name, gradient.name
                                    ),
                                )
                                .at(conclusion_span(self.vjp, trial.params[operand]), "differentiated a second time")
                                .note(format!(
                                    "relative error {} at {}{}",
                                    number(gradient.worst),
                                    describe_point(&names, &shown, None),
                                    trial.attrs
                                ))
                                .help("the conclusion has its value but not its derivative: is a part of it held constant, or a rule of its operators wrong?"),
                            );
                        }
                    }
                }
            }
            self.findings.second_points += checked;
            if checked == 0 && !is_constant(trial, conclusion, &self.rules.registry) {
                self.findings.not_second = Some("no difference quotient settles".into());
            }
        }
    }
}

/// Does the conclusion consist of constants alone?
fn is_constant(trial: &Trial, node: NodeId, registry: &Registry) -> bool {
    match &trial.graph.node(node).kind {
        NodeKind::Op { op, operands, .. } => {
            registry.op(*op).is_constant() || operands.iter().all(|o| is_constant(trial, *o, registry))
        }
        _ => false,
    }
}
