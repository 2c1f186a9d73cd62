//! The VJPs that a program uses, each at the values it is used at. All of them together are one step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::diagnostics::Diagnostic;
use crate::egraph::Differentiated;
use crate::interp::{Evaluator, InterpError};
use crate::ir::print::Printer;
use crate::ir::{Array, Graph, NodeId, NodeKind, Precision, RuleRef, Values, memory};
use crate::rules::{Conclusion, Vjp};
use crate::run::RunError;
use crate::verify::{Fault, point};

use super::Question;

/// Elements of tensors that all comparisons together may compute, roughly. At least one call of every rule is compared.
const WORK: u64 = 4_000_000_000;
/// And one conclusion.
const WORK_OF_ONE: u64 = 20_000_000;
/// Evaluations that a comparison takes where there is little time.
const EVALUATIONS: u64 = 40;

/// An operator call in the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The name of its value, and the call.
    pub value: String,
    pub call: String,
    /// `nll.kina:3`, or a rule's place if the call stands in a definition or in the gradient of an inner handler.
    pub place: Option<String>,
}

/// A VJP that is wrong at a call.
#[derive(Clone, Debug)]
pub struct WrongVjp {
    pub vjp: Arc<Vjp>,
    pub site: Site,
    /// The name of the operand.
    pub operand: String,
    pub fault: Fault,
    /// Calls at which it is wrong, this one included.
    pub calls: usize,
}

/// What the comparison of all calls found.
#[derive(Clone, Debug, Default)]
pub struct VjpFindings {
    /// Operator calls that a cotangent reaches, and how many of them were compared.
    pub calls: usize,
    pub compared: usize,
    /// Elements whose slope is known.
    pub elements: usize,
    /// By the place of the first call.
    pub wrong: Vec<WrongVjp>,
    /// Rules that say that they are by intent no derivatives.
    pub policies: Vec<Arc<Vjp>>,
    /// Those of them that do not do what they state.
    pub broken: Vec<(Arc<Vjp>, Diagnostic)>,
}

/// The conclusions of one rule at one call.
struct Job {
    node: NodeId,
    vjp: Arc<Vjp>,
    /// Ones if `None`: the rule lets none through, so that it is not known what would come in.
    cotangent: Option<NodeId>,
    operands: Vec<usize>,
}

/// Compares every VJP that was applied with its operator, at the values of this program.
///
/// # Errors
/// Memory that does not suffice.
pub fn check(question: &Question<'_>, program: &Differentiated) -> Result<VjpFindings, RunError> {
    compare(question, program, jobs(question, program))
}

/// The same of one alternative VJP.
///
/// # Errors
/// As [`check`].
pub fn check_alternative(
    question: &Question<'_>,
    program: &Differentiated,
    rule: &RuleRef,
) -> Result<VjpFindings, RunError> {
    let mut jobs = applied(program, |vjp| vjp.head.rule == *rule);
    jobs.sort_by_key(|job| job.node);
    compare(question, program, jobs)
}

fn compare(question: &Question<'_>, program: &Differentiated, jobs: Vec<Job>) -> Result<VjpFindings, RunError> {
    let rules = &question.session.rules;
    let tape = &program.tape;
    let inputs: Vec<Array> = question.inputs.iter().map(|t| t.to_array()).collect::<Result<_, _>>()?;
    let mut evaluator = Evaluator::new(tape, &rules.registry, inputs, Precision::Double)?;
    let mut findings = VjpFindings { calls: jobs.len(), ..VjpFindings::default() };
    let share = (WORK / jobs.len().max(1) as u64).min(WORK_OF_ONE);
    let mut spent = 0u64;
    let mut seen: BTreeSet<&RuleRef> = BTreeSet::new();
    let mut wrong: BTreeMap<&RuleRef, (NodeId, &Job, Fault, usize)> = BTreeMap::new();
    // One call of every rule comes first.
    for (_, job) in in_turns(&jobs) {
        let rule = &job.vjp.head.rule;
        if job.vjp.not_a_derivative.is_some() {
            findings.compared += 1;
            if seen.insert(rule) {
                findings.policies.push(job.vjp.clone());
                let refusal = point::stated(&job.vjp, rules, question.seed);
                findings.broken.extend(refusal.map(|refusal| (job.vjp.clone(), refusal)));
            }
            continue;
        }
        if spent > WORK && !seen.insert(rule) {
            continue;
        }
        seen.insert(rule);
        let NodeKind::Op { operands, attrs, .. } = &tape.node(job.node).kind else { continue };
        let mut values = Vec::with_capacity(operands.len());
        for operand in operands {
            values.push(evaluator.require(*operand)?.copy().map_err(InterpError::from)?);
        }
        let result = tape.ty(job.node);
        let cotangent = match job.cotangent {
            Some(node) => evaluator.require(node)?.copy().map_err(InterpError::from)?,
            None => {
                let ones = memory::filled(result.shape.elements(), 1.0).map_err(InterpError::from)?;
                Array::new(result.shape.clone(), Values::Float(ones))
            }
        };
        let elements = values.iter().map(|v| v.values.len() as u64).sum::<u64>() + result.shape.elements();
        spent = spent.saturating_add(elements.saturating_mul(EVALUATIONS));
        let types = operands.iter().map(|o| tape.ty(*o).clone()).collect();
        let call = point::Call { types, attrs, operands: values, cotangent };
        let Some(compared) = point::compare(&job.vjp, rules, call, &job.operands, share, question.seed)? else {
            continue;
        };
        findings.compared += 1;
        findings.elements += compared.elements;
        if let Some(fault) = compared.fault {
            let entry = wrong.entry(rule).or_insert_with(|| (job.node, job, fault.clone(), 0));
            if job.node < entry.0 {
                (entry.0, entry.1, entry.2) = (job.node, job, fault);
            }
            entry.3 += 1;
        }
    }
    let mut wrong: Vec<_> = wrong.into_values().collect();
    wrong.sort_by_key(|(node, ..)| *node);
    if !wrong.is_empty() {
        let shown = shown(tape);
        let sites = Sites::new(question, &shown);
        for (node, job, fault, calls) in wrong {
            let NodeKind::Op { op, operands, .. } = &tape.node(node).kind else { continue };
            let operand = rules.registry.op(*op).signature().operand_label(fault.operand, operands.len());
            findings.wrong.push(WrongVjp { vjp: job.vjp.clone(), site: sites.of(node), operand, fault, calls });
        }
    }
    Ok(findings)
}

/// The jobs, the first of every rule before the second of any.
fn in_turns(jobs: &[Job]) -> Vec<(usize, &Job)> {
    let mut turns: BTreeMap<&RuleRef, usize> = BTreeMap::new();
    let mut out: Vec<(usize, &Job)> = Vec::with_capacity(jobs.len());
    for job in jobs {
        let turn = turns.entry(&job.vjp.head.rule).or_default();
        out.push((*turn, job));
        *turn += 1;
    }
    out.sort_by_key(|(turn, job)| (*turn, job.node));
    out
}

/// What was concluded, by call and cotangent.
fn applied(program: &Differentiated, wanted: impl Fn(&Vjp) -> bool) -> Vec<Job> {
    let mut jobs: BTreeMap<(NodeId, NodeId, &RuleRef), Job> = BTreeMap::new();
    for c in program.concluded.iter().filter(|c| wanted(&c.rule)) {
        let job = jobs.entry((c.call, c.cotangent, &c.rule.head.rule)).or_insert_with(|| Job {
            node: c.call,
            vjp: c.rule.clone(),
            cotangent: Some(c.cotangent),
            operands: Vec::new(),
        });
        job.operands.push(c.operand);
    }
    jobs.into_values().collect()
}

/// Everything that primary rules concluded, and the calls at which a rule says that nothing flows.
fn jobs(question: &Question<'_>, program: &Differentiated) -> Vec<Job> {
    let rules = &question.session.rules;
    let tape = &program.tape;
    let mut jobs = applied(program, |vjp| vjp.alternative.is_none());
    let mut cotangents: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    let mut known: BTreeSet<(NodeId, usize)> = BTreeSet::new();
    for c in &program.concluded {
        cotangents.entry(c.call).or_insert(c.cotangent);
        known.insert((c.call, c.operand));
    }
    let mut matters = vec![false; tape.len()];
    let mut depends = vec![false; tape.len()];
    for gradient in &program.gradients {
        matters[gradient.primal.index()] = true;
        depends[gradient.param.index()] = true;
    }
    for (id, node) in tape.iter().rev() {
        if matters[id.index()] {
            node.operands().for_each(|o| matters[o.index()] = true);
        }
    }
    for (id, node) in tape.iter() {
        depends[id.index()] |= node.ty.dtype.is_float() && node.operands().any(|o| depends[o.index()]);
        let NodeKind::Op { op, operands, .. } = &node.kind else { continue };
        if !(matters[id.index()] && depends[id.index()]) {
            continue;
        }
        let Some(vjp) = rules.vjps(*op).first() else { continue };
        let signature = rules.registry.op(*op).signature();
        let stopped = |i: &usize| {
            let (param, _) = signature.param_of(*i, operands.len());
            let none = matches!(vjp.conclusions.get(param), Some(Conclusion::NoCotangent(_)));
            none && depends[operands[*i].index()] && !known.contains(&(id, *i))
        };
        let stopped: Vec<usize> = (0..operands.len()).filter(stopped).collect();
        if !stopped.is_empty() {
            let cotangent = cotangents.get(&id).copied();
            jobs.push(Job { node: id, vjp: vjp.clone(), cotangent, operands: stopped });
        }
    }
    jobs.sort_by_key(|job| job.node);
    jobs
}

/// A tape in which parameters have the names that they share with inputs.
fn shown(tape: &Graph) -> Graph {
    let mut shown = tape.clone();
    for (_, node) in tape.iter() {
        if let NodeKind::Param { argument, .. } = node.kind
            && tape.node(argument).name == node.name
        {
            shown.node_mut(argument).name = None;
        }
    }
    shown
}

/// Where the nodes of a tape stand.
struct Sites<'a> {
    printer: Printer<'a>,
    locations: Vec<Option<(Arc<str>, u32)>>,
}

impl<'a> Sites<'a> {
    fn new(question: &'a Question<'_>, tape: &'a Graph) -> Sites<'a> {
        let session = question.session;
        let printer = Printer::new(tape, &session.rules.registry, &session.sources);
        Sites { printer, locations: session.locations(tape) }
    }

    fn of(&self, node: NodeId) -> Site {
        let place = self.locations.get(node.index()).and_then(Option::as_ref);
        Site {
            value: self.printer.names()[node.index()].clone(),
            call: self.printer.call(node),
            place: place.map(|(file, line)| format!("{file}:{line}")),
        }
    }
}
