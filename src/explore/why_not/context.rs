//! A compiled program as questions look at it: classes by name, and what the result uses of them.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use egg::Id;
use rustc_hash::FxHashMap;

use super::names::Names;
use crate::Session;
use crate::egraph::cost::Cost;
use crate::egraph::extract::restricted::{Restricted, Restrictions};
use crate::egraph::language::ENode;
use crate::egraph::matching::Fuel;
use crate::egraph::record::Application;
use crate::egraph::space::Space;
use crate::egraph::{Differentiated, Stop};
use crate::ir::{Graph, Level, NodeId, NodeKind, OpId, Origin, Registry};
use crate::rules::RuleSet;

/// Steps of all searches for cheaper graphs of one answer.
const COST_STEPS: usize = 20_000_000;

/// A program as it runs.
pub(super) struct Compiled {
    pub level: Level,
    pub result: Graph,
    pub cost: Option<Cost>,
    pub stop: Option<Stop>,
}

pub(super) struct Context<'a> {
    pub session: &'a Session,
    pub program: &'a Differentiated,
    /// The program as it was checked.
    pub checked: &'a Graph,
    pub level: Level,
    /// Why the saturation ended, and what the result costs; `None` at -O0.
    pub stop: Option<Stop>,
    pub cost: Option<Cost>,
    /// What runs: the extracted graph, or the tape.
    pub result: &'a Graph,
    pub names: Names<'a>,
    /// The nodes of the result by class.
    pub chosen: FxHashMap<Id, NodeId>,
    /// The class of each node of the result, if it has one.
    pub classes: Vec<Option<Id>>,
    /// The calls of the tape by class, in order.
    pub tape: FxHashMap<Id, Vec<NodeId>>,
    restrictions: Option<Restrictions>,
    fuel: Fuel,
    /// The number of the oldest e-node that is each of those that there are now.
    first: OnceCell<FxHashMap<ENode, usize>>,
}

impl<'a> Context<'a> {
    pub fn new(
        session: &'a Session,
        program: &'a Differentiated,
        checked: &'a Graph,
        compiled: &'a Compiled,
        restrictions: Option<Restrictions>,
    ) -> Context<'a> {
        let Compiled { level, result, cost, stop } = compiled;
        let of_result = classes(program.space(), result);
        let names = Names::new(program, result, &of_result, &session.rules.registry);
        // Without rewriting, what runs is the tape, but for composites, of whose insides the e-graph knows nothing.
        let (result, classes) = match level {
            Level::O0 => (&program.tape, program.tape.iter().map(|(id, _)| Some(program.class_of_node(id))).collect()),
            _ => (result, of_result),
        };
        let live = result.live();
        let mut chosen = FxHashMap::default();
        for ((id, node), class) in result.iter().zip(&classes) {
            let is_value = matches!(node.kind, NodeKind::Op { .. } | NodeKind::Input);
            if let (Some(class), true, true) = (class, live[id.index()], is_value) {
                chosen.entry(*class).or_insert(id);
            }
        }
        let mut tape: FxHashMap<Id, Vec<NodeId>> = FxHashMap::default();
        for (id, node) in program.tape.iter() {
            if matches!(node.kind, NodeKind::Op { .. }) {
                tape.entry(program.class_of_node(id)).or_default().push(id);
            }
        }
        let fuel = Fuel(COST_STEPS);
        let first = OnceCell::new();
        Context {
            session,
            program,
            checked,
            level: *level,
            stop: *stop,
            cost: *cost,
            result,
            names,
            chosen,
            classes,
            tape,
            restrictions,
            fuel,
            first,
        }
    }

    pub fn rules(&self) -> &'a RuleSet {
        &self.session.rules
    }

    pub fn registry(&self) -> &'a Registry {
        &self.session.rules.registry
    }

    pub fn space(&self) -> &'a Space {
        self.program.space()
    }

    pub fn find(&self, class: Id) -> Id {
        self.space().egraph.find(class)
    }

    /// Does the result compute the class?
    pub fn is_live(&self, class: Id) -> bool {
        self.chosen.contains_key(&self.find(class))
    }

    /// The form that the result has of a class, with classes as they are now.
    pub fn form(&self, class: Id) -> Option<ENode> {
        let id = *self.chosen.get(&self.find(class))?;
        match &self.result.node(id).kind {
            NodeKind::Op { op, operands, attrs } => {
                let operands: Option<Vec<Id>> = operands.iter().map(|o| self.classes[o.index()]).collect();
                node(self.space(), *op, &operands?, attrs)
            }
            NodeKind::Input => {
                let number = self.result.inputs.iter().position(|i| *i == id)?;
                Some(ENode::Input(u32::try_from(number).ok()?))
            }
            _ => None,
        }
    }

    /// Who made the form that the result has of a class.
    pub fn origin(&self, class: Id) -> Option<&'a Origin> {
        let id = *self.chosen.get(&self.find(class))?;
        Some(&self.result.node(id).origin)
    }

    /// Who made an e-node first, in words.
    pub fn place_of(&self, origin: &Origin) -> String {
        match origin {
            Origin::Program(span) => self.session.sources.file_line(*span),
            Origin::Handler(span) => format!("{}, the handler", self.session.sources.file_line(*span)),
            Origin::Accumulate { serves } => format!("sum of the cotangents of {}", serves.join(", ")),
            Origin::Rule { rule, serves } => format!("{} {}, for {}", rule.location, rule.name, serves.join(", ")),
        }
    }

    /// What the result would cost with a class computed by some of its forms only.
    pub fn restricted(&mut self, class: Id, nodes: &[ENode]) -> Option<Restricted> {
        let space = self.program.space();
        self.restrictions.as_mut()?.restricted(space, class, nodes, &mut self.fuel)
    }

    /// Can costs still be asked for?
    pub fn has_fuel(&self) -> bool {
        self.fuel.0 > 0
    }

    /// The applications of a rule, by the class that they belong to now.
    pub fn applications(&self, mut is_it: impl FnMut(&Application) -> bool) -> BTreeMap<Id, Vec<usize>> {
        let mut by_class: BTreeMap<Id, Vec<usize>> = BTreeMap::new();
        let all: &[Application] = self.program.record().map_or(&[], |r| &r.applications);
        for (index, application) in all.iter().enumerate().filter(|(_, a)| is_it(a)) {
            by_class.entry(self.find(application.class)).or_default().push(index);
        }
        by_class
    }

    /// The number of the oldest e-node that is this one now.
    pub fn first_made(&self, node: &ENode) -> Option<usize> {
        let space = self.space();
        let first = self.first.get_or_init(|| {
            let mut first = FxHashMap::default();
            for (index, node) in space.egraph.nodes().iter().enumerate() {
                first.entry(space.canonical(node)).or_insert(index);
            }
            first
        });
        first.get(node).copied()
    }

    pub fn application(&self, index: usize) -> Option<&'a Application> {
        self.program.record().and_then(|r| r.applications.get(index))
    }
}

/// An e-node of classes as they are now, if its attributes are there.
pub(super) fn node(space: &Space, op: OpId, operands: &[Id], attrs: &[crate::ir::AttrValue]) -> Option<ENode> {
    let mut children: crate::egraph::language::Children = operands.iter().map(|o| space.egraph.find(*o)).collect();
    for attr in attrs {
        children.push(space.egraph.lookup(ENode::Attr(attr.clone()))?);
    }
    Some(ENode::Op(op, children))
}

/// The class of each node of a graph.
fn classes(space: &Space, graph: &Graph) -> Vec<Option<Id>> {
    let mut classes: Vec<Option<Id>> = Vec::with_capacity(graph.len());
    let mut inputs = 0;
    for (_, n) in graph.iter() {
        classes.push(match &n.kind {
            NodeKind::Op { op, operands, attrs } => {
                let operands: Option<Vec<Id>> = operands.iter().map(|o| classes[o.index()]).collect();
                operands.and_then(|o| node(space, *op, &o, attrs)).and_then(|n| space.egraph.lookup(n))
            }
            NodeKind::Input => {
                inputs += 1;
                space.egraph.lookup(ENode::Input(inputs - 1))
            }
            NodeKind::Param { .. } | NodeKind::Gradient { .. } => None,
        });
    }
    classes
}
