//! Why an extracted value equals what differentiation made: proofs from the record of a saturation.
//!
//! egg is not asked. Every recorded application is written out again from the rule's text as an equation between ground terms
//! ([`ground`]); a congruence closure of our own ([`closure`]) over these equations finds a way from the value on the tape to the extracted
//! one ([`proof`]); and [`check`] replays each step of it: the sides of the rule, its conditions, the attributes that it computes, the facts of its
//! domain.
//!
//! A metavariable that stood for a class is given the class's extracted term, where it has one. Any term would do, since rules hold for all
//! that their metavariables can stand for, but this one has a name that the reader knows. Where a proof is
//! not found so, the class's oldest term is used besides, which makes sure that whatever egg found equal is found equal here.

pub mod bank;
pub mod check;
pub mod closure;
pub mod facts;
pub mod ground;
pub mod proof;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use egg::Id;
use rustc_hash::FxHashMap;

use super::Differentiated;
use super::language::ENode;
use super::record::{Application, Cause};
use super::space::Space;
use crate::ir::{AttrValue, Graph, NodeId, NodeKind, OpId};
use crate::rules::RuleSet;
use bank::{Bank, Head, Operands, Originals, TermId};
use closure::{Closure, EquationId};
use ground::Ground;
use proof::{LemmaId, Prover};

/// An instance of a rule as an equation.
#[derive(Clone, Debug)]
pub struct Equation {
    pub left: TermId,
    pub right: TermId,
    pub by: Ground,
    /// The application of the record that it is, if it is none of differentiation.
    pub application: Option<usize>,
}

/// A program with all that is needed to explain its extracted graph.
pub struct Explainer<'a> {
    pub program: &'a Differentiated,
    pub rules: &'a RuleSet,
    pub bank: Bank,
    pub equations: Vec<Equation>,
    /// The term of each node of the tape, and of each node of the extracted graph.
    pub tape: Vec<TermId>,
    pub extracted: Vec<TermId>,
    /// The class of each node of the extracted graph.
    pub classes: Vec<Option<Id>>,
    /// The extracted term of each class that has one.
    chosen: FxHashMap<Id, TermId>,
    /// Equations of what differentiation concluded, as far as somebody asked.
    concluded: FxHashMap<usize, Option<EquationId>>,
    closure: Closure,
    /// Equations that the closure has.
    stated: usize,
    is_complete: bool,
    originals: Originals,
    prover: Prover,
}

impl<'a> Explainer<'a> {
    /// Takes in a differentiated program with the record of its saturation, and the graph that was extracted from it.
    pub fn new(program: &'a Differentiated, rules: &'a RuleSet, extracted: &Graph) -> Explainer<'a> {
        let mut bank = Bank::new(rules.registry.clone());
        let tape = terms(&mut bank, &program.tape);
        let extracted_terms = terms(&mut bank, extracted);
        let classes = classes(&program.space, extracted);
        let mut explainer = Explainer {
            program,
            rules,
            bank,
            equations: Vec::new(),
            tape,
            extracted: extracted_terms,
            classes,
            chosen: FxHashMap::default(),
            concluded: FxHashMap::default(),
            closure: Closure::default(),
            stated: 0,
            is_complete: false,
            originals: Originals::default(),
            prover: Prover::default(),
        };
        explainer.state();
        explainer
    }

    /// Puts in every application, with the terms that readers know: the way that is found goes over them.
    fn state(&mut self) {
        for (class, term) in self.classes.iter().zip(&self.extracted) {
            if let Some(class) = class {
                self.chosen.entry(*class).or_insert(*term);
            }
        }
        if self.program.record().is_none() {
            self.definitions();
        }
        self.applications(true);
        self.equate();
    }

    /// Puts in what [`state`](Self::state) left out: every application with the oldest term of each class, and what differentiation concluded.
    /// Seldom needed.
    fn complete(&mut self) {
        self.is_complete = true;
        for index in 0..self.program.concluded.len() {
            self.conclusion(index);
        }
        self.applications(false);
        self.equate();
    }

    fn applications(&mut self, known: bool) {
        let applications: &[Application] = self.program.record().map_or(&[], |r| &r.applications);
        for (index, application) in applications.iter().enumerate() {
            // What is known of the oldest term when a rule fires need not be known of the extracted one then.
            let facts = matches!(&application.cause, Cause::Rewrite { rule, .. } if !rule.head.domain.is_empty());
            if let Some(by) = self.ground(&application.cause, known && !facts) {
                self.put(by, Some(index));
            }
        }
    }

    fn equate(&mut self) {
        self.closure.extend(&self.bank);
        for id in self.stated..self.equations.len() {
            let equation = &self.equations[id];
            self.closure.equate(&self.bank, equation.left, equation.right, id as EquationId);
        }
        self.stated = self.equations.len();
    }

    /// The equation of a rule that differentiation used, by number in [`Differentiated::concluded`].
    pub fn conclusion(&mut self, index: usize) -> Option<EquationId> {
        if let Some(known) = self.concluded.get(&index) {
            return *known;
        }
        let concluded = self.program.concluded.get(index)?;
        let equation = match &self.program.tape.node(concluded.call).kind {
            NodeKind::Op { operands, attrs, .. } => {
                let by = Ground::Vjp {
                    rule: concluded.rule.clone(),
                    operands: operands.iter().map(|o| self.tape[o.index()]).collect(),
                    attrs: attrs.clone(),
                    primal: self.tape[concluded.call.index()],
                    cotangent: self.tape[concluded.cotangent.index()],
                    operand: concluded.operand,
                };
                self.put(by, None)
            }
            _ => None,
        };
        self.concluded.insert(index, equation);
        equation
    }

    /// Without a saturation (-O0) composites stand for their definitions all the same.
    fn definitions(&mut self) {
        for (_, node) in self.program.tape.iter() {
            let NodeKind::Op { op, operands, attrs } = &node.kind else { continue };
            if let Some(def) = self.rules.def(self.rules.registry.op(*op).name()) {
                let operands = operands.iter().map(|o| self.tape[o.index()]).collect();
                let by = Ground::Definition { def: def.clone(), op: *op, operands, attrs: attrs.clone() };
                self.put(by, None);
            }
        }
    }

    /// What the run could build can be built again: `None` would be a fault, and leaves something without a proof.
    fn put(&mut self, by: Ground, application: Option<usize>) -> Option<EquationId> {
        let (left, right) = by.sides(&mut self.bank).ok()?;
        self.equations.push(Equation { left, right, by, application });
        Some(self.equations.len() as EquationId - 1)
    }

    /// An application with terms for its classes: those that readers know, if `known`, otherwise the oldest of each class.
    fn ground(&mut self, cause: &Cause, known: bool) -> Option<Ground> {
        let space = &self.program.space;
        let mut term = |id: Id| {
            let chosen = if known { self.chosen.get(&space.egraph.find(id)).copied() } else { None };
            chosen.or_else(|| self.originals.term(&mut self.bank, space, id))
        };
        let attr = |id: Id| space.egraph[id].data.attr().cloned();
        Some(match cause {
            Cause::Rewrite { rule, bindings, swapped } => {
                let (mut tensors, mut attrs): (Vec<Option<TermId>>, Vec<Option<AttrValue>>) = (Vec::new(), Vec::new());
                for id in bindings {
                    let value = id.and_then(attr);
                    tensors.push(if value.is_some() { None } else { id.and_then(&mut term) });
                    attrs.push(value);
                }
                Ground::Rewrite { rule: rule.clone(), swapped: swapped.clone(), tensors, attrs }
            }
            Cause::Commutes { rule, op, operands: [a, b] } => {
                Ground::Commutes { rule: rule.clone(), op: *op, operands: [term(*a)?, term(*b)?] }
            }
            Cause::Definition { def, operands, attrs } => Ground::Definition {
                op: self.rules.registry.id(&def.name)?,
                def: def.clone(),
                operands: operands.iter().map(|o| term(*o)).collect::<Option<_>>()?,
                attrs: attrs.iter().filter_map(|a| attr(*a)).collect(),
            },
            // Both conclusions are equal to the cotangent that they conclude.
            Cause::Alternative => return None,
        })
    }

    /// Are two terms equal by the equations?
    pub fn equal(&self, a: TermId, b: TermId) -> bool {
        self.closure.equal(a, b)
    }

    /// Proves that two terms are equal. Lemmas are those of all proofs so far.
    pub fn prove(&mut self, left: TermId, right: TermId) -> Option<LemmaId> {
        let proved = self.prover.prove(&self.bank, &self.closure, left, right);
        if proved.is_some() || self.is_complete {
            return proved;
        }
        self.complete();
        self.prover.prove(&self.bank, &self.closure, left, right)
    }

    /// The first part of a term that is equal to another, outermost first.
    pub fn part(&mut self, whole: TermId, term: TermId) -> Option<TermId> {
        let part = self.known_part(whole, term);
        if part.is_some() || self.is_complete {
            return part;
        }
        self.complete();
        self.known_part(whole, term)
    }

    fn known_part(&self, whole: TermId, term: TermId) -> Option<TermId> {
        let mut queue = VecDeque::from([whole]);
        let mut seen = BTreeSet::new();
        while let Some(part) = queue.pop_front() {
            if !seen.insert(part) {
                continue;
            }
            if self.closure.equal(part, term) {
                return Some(part);
            }
            queue.extend(self.bank.operands(part));
        }
        None
    }

    /// All lemmas proved so far.
    pub fn proof(&self) -> &proof::Proof {
        &self.prover.proof
    }

    /// The class of an e-node or class now.
    pub fn find(&self, id: Id) -> Id {
        self.program.space.egraph.find(id)
    }

    /// The class of a node of the tape.
    pub fn class_of_tape(&self, node: NodeId) -> Id {
        self.find(self.program.classes[node.index()])
    }

    /// The first application after which a class had an e-node that was not there before the saturation; with the e-node. `None` for a class
    /// that the tape has.
    pub fn first_made(&self, class: Id) -> Option<(usize, Id)> {
        let record = self.program.record()?;
        let class = self.find(class);
        let nodes = self.program.space.egraph.nodes().len();
        let first = (0..nodes).map(Id::from).find(|id| self.find(*id) == class)?;
        if usize::from(first) < record.start.nodes {
            return None;
        }
        let index = record.applications.partition_point(|a| a.after.nodes <= usize::from(first));
        (index < record.applications.len()).then_some((index, first))
    }

    /// The first equation of an application: the one in terms that readers know, where there is one.
    pub fn equation_of(&self, application: usize) -> Option<EquationId> {
        let found = self.equations.iter().position(|e| e.application == Some(application))?;
        Some(found as EquationId)
    }
}

#[cfg(test)]
mod tests;

/// The term of each node; a parameter is its argument.
fn terms(bank: &mut Bank, graph: &Graph) -> Vec<TermId> {
    let mut terms: Vec<TermId> = Vec::with_capacity(graph.len());
    let mut inputs = 0;
    for (_, node) in graph.iter() {
        let ty = Arc::new(node.ty.clone());
        let term = match &node.kind {
            NodeKind::Op { op, operands, attrs } => {
                let operands: Operands = operands.iter().map(|o| terms[o.index()]).collect();
                match bank.op(*op, &operands, attrs) {
                    Ok(term) => term,
                    Err(_) => bank.add(Head::Op(*op, attrs.clone()), operands, &ty),
                }
            }
            NodeKind::Param { argument, .. } => terms[argument.index()],
            NodeKind::Input | NodeKind::Gradient { .. } => {
                inputs += 1;
                bank.add(Head::Input(inputs - 1), Operands::new(), &ty)
            }
        };
        terms.push(term);
    }
    terms
}

/// The class of each node of an extracted graph.
fn classes(space: &Space, graph: &Graph) -> Vec<Option<Id>> {
    let mut classes: Vec<Option<Id>> = Vec::with_capacity(graph.len());
    let mut inputs = 0;
    for (_, node) in graph.iter() {
        let class = match &node.kind {
            NodeKind::Op { op, operands, attrs } => {
                let operands = operands.iter().map(|o| classes[o.index()]).collect::<Option<Vec<Id>>>();
                operands.and_then(|operands| lookup(space, *op, operands, attrs))
            }
            NodeKind::Input => {
                inputs += 1;
                space.egraph.lookup(ENode::Input(inputs - 1))
            }
            NodeKind::Param { .. } | NodeKind::Gradient { .. } => None,
        };
        classes.push(class);
    }
    classes
}

fn lookup(space: &Space, op: OpId, operands: Vec<Id>, attrs: &[AttrValue]) -> Option<Id> {
    let mut children: smallvec::SmallVec<[Id; 4]> = operands.into_iter().collect();
    for attr in attrs {
        children.push(space.egraph.lookup(ENode::Attr(attr.clone()))?);
    }
    space.egraph.lookup(ENode::Op(op, children))
}
