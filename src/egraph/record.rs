//! The record of a saturation: every application that changed something, in order.
//!
//! E-nodes are numbered in order of creation and merges are logged, so that the e-graph after any number of applications can be had
//! again ([`Differentiated::at`]) without searching for anything. Whoever explains a result ([`super::explain`]) starts from here too.

use std::sync::Arc;

use egg::{Id, Language};

use super::Differentiated;
use super::language::ENode;
use super::matching::Match;
use super::space::Space;
use crate::ir::{OpId, RuleRef};
use crate::rules::{Def, Rewrite};

/// What a saturation did, step by step.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Those that changed something, in order.
    pub applications: Vec<Application>,
    pub iterations: Vec<Iteration>,
    /// The program before any rewriting.
    pub start: Moment,
    /// After the last application and the congruences that follow from it.
    pub end: Moment,
}

/// A state of the e-graph: how many e-nodes were made, and how many merges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    pub nodes: usize,
    pub unions: usize,
}

/// One round of a saturation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Iteration {
    /// The first of its applications, and the first after them.
    pub applications: (usize, usize),
    /// Left sides that matched somewhere, those included that had been applied there before or whose conditions failed.
    pub matches: usize,
    /// When all its applications were done and congruent e-nodes merged.
    pub end: Moment,
}

/// One step: a class got another form.
#[derive(Clone, Debug)]
pub struct Application {
    pub cause: Cause,
    /// Numbered from 1.
    pub iteration: usize,
    /// The class that the left side matched, by the number it had then.
    pub class: Id,
    /// The right side.
    pub value: Id,
    /// When it was done. Congruences that follow from it are merged at the end of the iteration.
    pub after: Moment,
}

/// What an application applied.
#[derive(Clone, Debug)]
pub enum Cause {
    Rewrite {
        rule: Arc<Rewrite>,
        /// The class of each metavariable, by the numbers they had then.
        bindings: Match,
        /// For each call of the left side in the order in which it is written, whether its two operands were found the other way
        /// round, as the rule set says that its operator commutes.
        swapped: Arc<[bool]>,
    },
    /// `a + b` and `b + a` were both there.
    Commutes { rule: Arc<Rewrite>, op: OpId, operands: [Id; 2] },
    /// A composite became available as its definition.
    Definition { def: Arc<Def>, operands: Vec<Id>, attrs: Vec<Id> },
    /// What an alternative VJP concludes, beside the primary one.
    Alternative,
}

impl Cause {
    /// The rule and its place.
    pub fn rule(&self) -> Option<&RuleRef> {
        match self {
            Cause::Rewrite { rule, .. } | Cause::Commutes { rule, .. } => Some(&rule.head.rule),
            Cause::Definition { def, .. } => Some(&def.head.rule),
            Cause::Alternative => None,
        }
    }
}

impl Differentiated {
    /// From now on saturations are recorded.
    pub fn keep_record(&mut self) {
        self.space.record = Some(Record { start: self.space.moment(), ..Record::default() });
    }

    /// The record of the saturations since [`keep_record`](Self::keep_record); `None` without it.
    pub fn record(&self) -> Option<&Record> {
        self.space.record.as_ref()
    }

    /// The program with the e-graph as it was after so many applications of its record, congruences included. Classes may have other
    /// numbers than they had then, e-nodes have the same.
    pub fn at(&self, applications: usize) -> Differentiated {
        let moment = match self.record() {
            None => self.space.moment(),
            Some(record) if applications >= record.applications.len() => record.end,
            Some(record) => match applications.checked_sub(1).and_then(|last| record.applications.get(last)) {
                Some(application) => application.after,
                None => record.start,
            },
        };
        Differentiated {
            tape: self.tape.clone(),
            gradients: self.gradients.clone(),
            concluded: self.concluded.clone(),
            space: self.space.at(moment),
            classes: self.classes.clone(),
            alternatives: self.alternatives.clone(),
        }
    }
}

impl Space {
    pub(super) fn moment(&self) -> Moment {
        Moment { nodes: self.egraph.nodes().len(), unions: self.egraph.analysis.unions.borrow().len() }
    }

    /// The space as it was, rebuilt.
    fn at(&self, moment: Moment) -> Space {
        let mut space = Space::new(self.registry().clone());
        space.egraph.analysis.inputs.clone_from(&self.egraph.analysis.inputs);
        space.copy_origins(self);
        for (index, node) in self.egraph.nodes()[..moment.nodes].iter().enumerate() {
            // Added in order and before any merge, each is new and gets the number it has here.
            let ty = self.ty(Id::from(index)).cloned();
            space.add(node.clone(), ty, self.made_by(index));
        }
        for (a, b) in &self.egraph.analysis.unions.borrow()[..moment.unions] {
            space.egraph.union(*a, *b);
        }
        space.egraph.rebuild();
        space
    }

    /// An e-node as it was added, before any of its operands was merged with anything.
    pub fn original(&self, id: Id) -> Option<&ENode> {
        self.egraph.nodes().get(usize::from(id))
    }

    /// The e-node with its operands as the classes that they are now.
    pub fn canonical(&self, node: &ENode) -> ENode {
        node.clone().map_children(|child| self.egraph.find(child))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use egg::Id;

    use super::*;
    use crate::egraph::{Budget, extract};
    use crate::{CheckOptions, Level, RuleOptions, Session};

    const NLL: &str = include_str!("../../examples/storylm0_nll.kina");

    /// The classes as lists of the numbers of their e-nodes.
    fn partition(space: &Space) -> Vec<Vec<usize>> {
        let mut classes: BTreeMap<Id, Vec<usize>> = BTreeMap::new();
        for index in 0..space.egraph.nodes().len() {
            classes.entry(space.egraph.find(Id::from(index))).or_default().push(index);
        }
        let mut classes: Vec<Vec<usize>> = classes.into_values().collect();
        classes.sort();
        classes
    }

    #[test]
    fn the_e_graph_can_be_had_as_it_was_after_any_application() {
        let mut session = Session::new(&RuleOptions::default()).unwrap();
        let graph = session.check("nll.kina", NLL, &CheckOptions::default()).unwrap();
        let mut program = session.differentiate(&graph).unwrap();
        program.keep_record();
        let optimised = session.optimise(&mut program, Level::O2).unwrap();
        let count = program.record().unwrap().applications.len();
        assert!(count > 20, "{count}");
        assert_eq!(partition(&program.at(count).space), partition(&program.space));
        assert_eq!(extract(&program.at(count)).unwrap().graph, optimised.graph);

        // After each application its two sides are one class, and before it they were not.
        let record = program.record().unwrap();
        for (i, application) in record.applications.iter().enumerate() {
            let after = program.at(i + 1);
            assert_eq!(after.space.egraph.find(application.class), after.space.egraph.find(application.value));
            let before = program.at(i);
            let exists = usize::from(application.value) < before.space.egraph.nodes().len();
            let find = |id| before.space.egraph.find(id);
            assert!(!exists || find(application.class) != find(application.value) || i > 0);
            assert!(extract(&after).is_some());
        }

        // The end of an iteration is where a saturation that ends there stands.
        for (i, iteration) in record.iterations.iter().enumerate() {
            let mut again = session.differentiate(&graph).unwrap();
            let budget = Budget { iterations: i + 1, ..Budget::default() };
            crate::egraph::saturate(&mut again, &session.rules, Level::O2, budget).unwrap();
            assert_eq!(again.space.moment(), iteration.end);
            assert_eq!(partition(&program.at(iteration.applications.1).space), partition(&again.space));
        }
    }

    #[test]
    fn nothing_is_recorded_unless_somebody_asks() {
        let mut session = Session::new(&RuleOptions::default()).unwrap();
        let graph = session.check("nll.kina", NLL, &CheckOptions::default()).unwrap();
        let mut program = session.differentiate(&graph).unwrap();
        session.optimise(&mut program, Level::O2).unwrap();
        assert!(program.record().is_none());
    }
}
