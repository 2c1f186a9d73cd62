//! The program after so many applications: its e-graph and what is extracted from it. Making one takes as long as a rewrite of the
//! whole program, so that they are made on request, by another thread if there is one, and few are kept.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use egg::Id;
use rustc_hash::FxHashMap;

use super::change::{Change, change, rows};
use super::linalg;
use crate::diagnostics::SourceMap;
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
    pub sources: SourceMap,
    pub level: Level,
    /// What -O0 runs: nothing is rewritten or extracted there.
    literal: Option<Arc<Graph>>,
}

/// An extracted graph, ready to be shown.
#[derive(Debug)]
pub struct Drawn {
    pub graph: Graph,
    /// The names of its values.
    pub names: Vec<String>,
    /// The class of each value; none at -O0, where there is no extraction.
    pub classes: Vec<Id>,
}

/// The program after so many applications.
pub struct State {
    pub at: usize,
    pub program: Differentiated,
    /// What is extracted; `None` where a composite has no definition yet, so that nothing can be computed.
    pub drawn: Option<Arc<Drawn>>,
    pub cost: Option<Cost>,
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
        drawn: Arc<Drawn>,
    },
    /// The lines of the graph.
    Graph {
        at: usize,
        all: bool,
        drawn: Arc<Drawn>,
    },
    /// What the application `at` changed in the graph, and for each value before it the one that it is now.
    Change {
        at: usize,
        all: bool,
        before: Arc<Drawn>,
        after: Arc<Drawn>,
        same: Vec<Option<NodeId>>,
    },
}

/// What is made from states, and kept for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    Linalg(usize, NodeId),
    Graph(usize, bool),
    Change(usize, bool),
}

/// A finished task.
pub enum Done {
    State(Box<State>),
    Cost(usize, Option<Cost>),
    Product(Product, Change),
}

impl Source {
    pub fn new(program: Differentiated, rules: &RuleSet, sources: SourceMap, level: Level) -> Source {
        let history = History::new(&program);
        let literal = if level == Level::O0 { program.program(rules).ok().map(Arc::new) } else { None };
        Source { program: Mutex::new(program), history, registry: rules.registry.clone(), sources, level, literal }
    }

    /// Does a task.
    pub fn run(&self, task: &Task) -> Done {
        match task {
            Task::State(at) => Done::State(Box::new(self.state(*at))),
            Task::Cost(at) => Done::Cost(*at, self.state(*at).cost),
            Task::Linalg { at, node, drawn } => {
                let lines = linalg::lines(&drawn.graph, &self.registry, self.level, *node);
                Done::Product(Product::Linalg(*at, *node), Change::alone(lines))
            }
            Task::Graph { at, all, drawn } => {
                let lines = rows(drawn, drawn.names.clone(), &self.registry, &self.sources, *all);
                Done::Product(Product::Graph(*at, *all), Change::alone(lines))
            }
            Task::Change { at, all, before, after, same } => {
                let change = change(before, after, same, &self.registry, &self.sources, *all);
                Done::Product(Product::Change(*at, *all), change)
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
                (Some(found.graph), Some(found.cost), found.classes, Some(Choices::new(solution)))
            }
            None => (self.literal.as_deref().cloned(), None, Vec::new(), None),
        };
        let drawn = graph.map(|graph| {
            let names = value_names(&graph, &self.registry);
            Arc::new(Drawn { graph, names, classes })
        });
        let mut values = FxHashMap::default();
        for (index, class) in drawn.iter().flat_map(|d| &d.classes).enumerate() {
            values.entry(*class).or_insert(NodeId(index as u32));
        }
        let first = program.first_of_classes();
        State { at, program, drawn, cost, choices, values, first }
    }
}

impl State {
    /// The value of the extracted graph that a class is.
    pub fn value(&self, id: Id) -> Option<NodeId> {
        self.values.get(&self.program.class_of(id)?).copied()
    }

    /// What a class is called: as in the extracted graph, or by its number.
    pub fn name(&self, history: &History, id: Id) -> String {
        self.value_name(id).map_or_else(|| self.number(history, id), str::to_owned)
    }

    /// The name of the value of the extracted graph that a class is.
    pub fn value_name(&self, id: Id) -> Option<&str> {
        let drawn = self.drawn.as_ref()?;
        drawn.names.get(self.value(id)?.index()).map(String::as_str)
    }

    /// `c57`: the number of the first e-node of a class.
    pub fn number(&self, history: &History, id: Id) -> String {
        let class = self.program.class_of(id).unwrap_or(id);
        history.number(self.first.get(usize::from(class)).copied().unwrap_or(id))
    }

    /// The value of that name in the extracted graph, and its class.
    pub fn named(&self, name: &str) -> Option<Id> {
        let drawn = self.drawn.as_ref()?;
        let named = drawn.names.iter().position(|n| n == name);
        let index = named.or_else(|| drawn.graph.output(name).map(NodeId::index))?;
        drawn.classes.get(index).copied()
    }
}

/// States that were made, the last ones kept; costs are kept of all.
pub struct States {
    kept: VecDeque<Rc<State>>,
    capacity: usize,
    pub costs: BTreeMap<usize, Option<Cost>>,
    products: VecDeque<(Product, Rc<Change>)>,
}

impl States {
    /// For a program of so many e-nodes.
    pub fn new(nodes: usize) -> States {
        let capacity = if nodes > 50_000 { 3 } else { 12 };
        States { kept: VecDeque::new(), capacity, costs: BTreeMap::new(), products: VecDeque::new() }
    }

    pub fn get(&self, at: usize) -> Option<&Rc<State>> {
        self.kept.iter().find(|s| s.at == at)
    }

    pub fn product(&self, product: Product) -> Option<&Rc<Change>> {
        self.products.iter().find(|(p, _)| *p == product).map(|(_, lines)| lines)
    }

    /// Takes what a task made.
    pub fn take(&mut self, done: Done) {
        match done {
            Done::Cost(at, cost) => {
                self.costs.insert(at, cost);
            }
            Done::Product(product, lines) => {
                self.products.push_back((product, Rc::new(lines)));
                if self.products.len() > self.capacity {
                    self.products.pop_front();
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
