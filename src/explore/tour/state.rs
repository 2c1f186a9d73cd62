//! The program after so many applications: its e-graph and what is extracted from it. Making one takes as long as a rewrite of the
//! whole program, so that they are made on request, by another thread if there is one, and few are kept.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use egg::Id;
use rustc_hash::FxHashMap;

use super::linalg;
use super::page::Line;
use crate::egraph::cost::Cost;
use crate::egraph::forms::Choices;
use crate::egraph::history::History;
use crate::egraph::{Differentiated, extract_with};
use crate::ir::names::value_names;
use crate::ir::{Graph, Level, NodeId, Registry};
use crate::rules::RuleSet;

/// What states are made from. It may be asked by any thread.
pub struct Source {
    program: Mutex<Differentiated>,
    pub history: History,
    pub registry: Arc<Registry>,
    pub level: Level,
    /// What -O0 runs: nothing is rewritten or extracted there.
    literal: Option<Arc<Graph>>,
}

/// The program after so many applications.
pub struct State {
    pub at: usize,
    pub program: Differentiated,
    /// What is extracted; `None` where a composite has no definition yet, so that nothing can be computed.
    pub graph: Option<Arc<Graph>>,
    pub cost: Option<Cost>,
    /// The names of the graph's values.
    pub names: Vec<String>,
    /// The class of each value.
    pub classes: Vec<Id>,
    pub choices: Option<Choices>,
    /// The value that a class is.
    values: FxHashMap<Id, NodeId>,
    /// The first e-node of each class.
    first: Vec<Id>,
}

/// What a state is needed for, or something that is made from one.
#[derive(Clone, Debug)]
pub enum Task {
    State(usize),
    /// The cost alone.
    Cost(usize),
    Linalg {
        at: usize,
        node: NodeId,
        graph: Arc<Graph>,
    },
}

/// A finished task.
pub enum Done {
    State(Box<State>),
    Cost(usize, Option<Cost>),
    Linalg(usize, NodeId, Vec<Line>),
}

impl Source {
    pub fn new(program: Differentiated, rules: &RuleSet, level: Level) -> Source {
        let history = History::new(&program);
        let literal = if level == Level::O0 { program.program(rules).ok().map(Arc::new) } else { None };
        Source { program: Mutex::new(program), history, registry: rules.registry.clone(), level, literal }
    }

    /// Does a task.
    pub fn run(&self, task: &Task) -> Done {
        match task {
            Task::State(at) => Done::State(Box::new(self.state(*at))),
            Task::Cost(at) => Done::Cost(*at, self.state(*at).cost),
            Task::Linalg { at, node, graph } => {
                Done::Linalg(*at, *node, linalg::lines(graph, &self.registry, self.level, *node))
            }
        }
    }

    /// The program after so many applications.
    pub fn state(&self, at: usize) -> State {
        // Nothing is left half done by a thread that panics: the program is only read.
        let program = self.program.lock().unwrap_or_else(PoisonError::into_inner).at(at);
        let extracted = if self.level == Level::O0 { None } else { extract_with(&program) };
        let (graph, cost, classes, choices) = match extracted {
            Some((found, solution)) => {
                (Some(Arc::new(found.graph)), Some(found.cost), found.classes, Some(Choices::new(solution)))
            }
            None => (self.literal.clone(), None, Vec::new(), None),
        };
        let names = graph.as_ref().map_or_else(Vec::new, |g| value_names(g, &self.registry));
        let mut values = FxHashMap::default();
        for (index, class) in classes.iter().enumerate() {
            values.entry(*class).or_insert(NodeId(index as u32));
        }
        let first = program.first_of_classes();
        State { at, program, graph, cost, names, classes, choices, values, first }
    }
}

impl State {
    /// The value of the extracted graph that a class is.
    pub fn value(&self, id: Id) -> Option<NodeId> {
        self.values.get(&self.program.class_of(id)?).copied()
    }

    /// What a class is called: as in the extracted graph, or by its number.
    pub fn name(&self, history: &History, id: Id) -> String {
        let value = self.value(id).and_then(|v| self.names.get(v.index()));
        value.map_or_else(|| self.number(history, id), Clone::clone)
    }

    /// `c57`: the number of the first e-node of a class.
    pub fn number(&self, history: &History, id: Id) -> String {
        let class = self.program.class_of(id).unwrap_or(id);
        history.number(self.first.get(usize::from(class)).copied().unwrap_or(id))
    }

    /// The value of that name in the extracted graph, and its class.
    pub fn named(&self, name: &str) -> Option<Id> {
        let index = self.names.iter().position(|n| n == name)?;
        self.classes.get(index).copied()
    }
}

/// States that were made, the last ones kept; costs are kept of all.
pub struct States {
    kept: VecDeque<Rc<State>>,
    capacity: usize,
    pub costs: BTreeMap<usize, Option<Cost>>,
    linalg: VecDeque<(usize, NodeId, Rc<Vec<Line>>)>,
}

impl States {
    /// For a program of so many e-nodes.
    pub fn new(nodes: usize) -> States {
        let capacity = if nodes > 50_000 { 3 } else { 12 };
        States { kept: VecDeque::new(), capacity, costs: BTreeMap::new(), linalg: VecDeque::new() }
    }

    pub fn get(&self, at: usize) -> Option<&Rc<State>> {
        self.kept.iter().find(|s| s.at == at)
    }

    pub fn linalg(&self, at: usize, node: NodeId) -> Option<&Rc<Vec<Line>>> {
        self.linalg.iter().find(|(a, n, _)| (*a, *n) == (at, node)).map(|(.., lines)| lines)
    }

    /// Takes what a task made.
    pub fn take(&mut self, done: Done) {
        match done {
            Done::Cost(at, cost) => {
                self.costs.insert(at, cost);
            }
            Done::Linalg(at, node, lines) => {
                self.linalg.push_back((at, node, Rc::new(lines)));
                if self.linalg.len() > self.capacity {
                    self.linalg.pop_front();
                }
            }
            Done::State(state) => {
                self.costs.insert(state.at, state.cost);
                self.kept.retain(|s| s.at != state.at);
                self.kept.push_back(Rc::new(*state));
                if self.kept.len() > self.capacity {
                    self.kept.pop_front();
                }
            }
        }
    }
}
