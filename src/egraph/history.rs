//! What a saturation did, apart from its e-graph: e-nodes as they were added and merges in order. No question to it builds an
//! e-graph, so that one about any moment of a large program takes milliseconds.

use std::collections::BTreeSet;
use std::sync::Arc;

use egg::Id;

use super::Differentiated;
use super::language::ENode;
use super::record::{Application, Cause, Moment, Record};
use crate::ir::{AttrValue, NodeKind, OpId, Origin, Param, Registry, RuleRef};
use crate::rules::Pattern;
use crate::rules::term::VarId;

/// The log of a saturation, and how its values are called.
#[derive(Clone, Debug)]
pub struct History {
    pub record: Record,
    registry: Arc<Registry>,
    nodes: Vec<ENode>,
    unions: Vec<(Id, Id)>,
    /// Who made each e-node, as a place in `origins`.
    made: Vec<u32>,
    origins: Vec<Origin>,
    /// E-nodes that the program has a name for, in its order.
    names: Vec<(Id, Arc<str>)>,
    /// What stands before the number of a class without a name: no value of the program is called so.
    prefix: String,
}

/// Which e-nodes are one class at a moment. Congruences that the run had not merged yet are not merged here.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Towards the first e-node of the class.
    parent: Vec<u32>,
    /// By first e-node: the place of its name in [`History::names`], or [`NAMELESS`].
    named: Vec<u32>,
    unions: usize,
}

const NAMELESS: u32 = u32::MAX;

/// Levels of calls that one side of an application is written in; what lies deeper is called by its class.
const MAX_LEVELS: usize = 24;

/// The two sides of an application, as calls of values that have names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sides {
    pub left: String,
    pub right: String,
}

impl Partition {
    fn root(&self, id: Id) -> u32 {
        let mut at = usize::from(id) as u32;
        while self.parent[at as usize] != at {
            at = self.parent[at as usize];
        }
        at
    }

    /// The same, and the way there is shorter afterwards.
    fn shorten(&mut self, id: Id) -> u32 {
        let mut at = usize::from(id) as u32;
        while self.parent[at as usize] != at {
            self.parent[at as usize] = self.parent[self.parent[at as usize] as usize];
            at = self.parent[at as usize];
        }
        at
    }

    fn merge(&mut self, a: Id, b: Id) {
        let (a, b) = (self.shorten(a), self.shorten(b));
        let (first, other) = (a.min(b), a.max(b));
        self.parent[other as usize] = first;
        self.named[first as usize] = self.named[first as usize].min(self.named[other as usize]);
    }

    /// The first e-node of a class.
    pub fn first(&self, id: Id) -> Id {
        Id::from(self.root(id) as usize)
    }
}

impl History {
    /// The log of a program; empty if no record of its saturation was kept.
    pub fn new(program: &Differentiated) -> History {
        let egraph = &program.space.egraph;
        let names: Vec<(Id, Arc<str>)> = program
            .tape
            .iter()
            .zip(&program.classes)
            .filter(|((_, node), _)| !matches!(node.kind, NodeKind::Param { .. }))
            .filter_map(|((_, node), class)| Some((*class, node.name.clone()?)))
            .collect();
        let (made, origins) = program.space.makers();
        let mut prefix = String::from("c");
        let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
        while names.iter().any(|(_, name)| name.strip_prefix(&*prefix).is_some_and(is_number)) {
            prefix.push('c');
        }
        History {
            record: program.record().cloned().unwrap_or_default(),
            registry: program.space.registry().clone(),
            nodes: egraph.nodes().to_vec(),
            unions: egraph.analysis.unions.borrow().clone(),
            made: made.to_vec(),
            origins: origins.to_vec(),
            names,
            prefix,
        }
    }

    /// E-nodes in all.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Every e-node a class of its own.
    pub fn partition(&self) -> Partition {
        let mut named = vec![NAMELESS; self.nodes.len()];
        for (place, (id, _)) in self.names.iter().enumerate().rev() {
            named[usize::from(*id)] = place as u32;
        }
        Partition { parent: (0..self.nodes.len() as u32).collect(), named, unions: 0 }
    }

    /// Goes on to a later moment.
    pub fn advance(&self, partition: &mut Partition, to: Moment) {
        let to = to.unions.min(self.unions.len());
        while partition.unions < to {
            let (a, b) = self.unions[partition.unions];
            partition.merge(a, b);
            partition.unions += 1;
        }
    }

    /// The moment before application `index`, counted from 0, was done.
    pub fn moment_of(&self, index: usize) -> Moment {
        match index.checked_sub(1).and_then(|i| self.record.applications.get(i)) {
            Some(previous) => previous.after,
            None => self.record.start,
        }
    }

    /// What a class is called: as in the program, or `c` and the number of its first e-node.
    pub fn name(&self, partition: &Partition, id: Id) -> String {
        let root = partition.root(id);
        match self.names.get(partition.named[root as usize] as usize) {
            Some((_, name)) => name.to_string(),
            None => self.number(Id::from(root as usize)),
        }
    }

    /// `c57`, unless the program has values of such names.
    pub fn number(&self, id: Id) -> String {
        format!("{}{id}", self.prefix)
    }

    /// The e-node that is meant by a name of the program or by a number such as `c57`.
    pub fn find(&self, text: &str) -> Option<Id> {
        if let Some((id, _)) = self.names.iter().find(|(_, name)| &**name == text) {
            return Some(*id);
        }
        let index: usize = text.strip_prefix(&*self.prefix)?.parse().ok()?;
        let is_tensor = matches!(self.nodes.get(index)?, ENode::Input(_) | ENode::Op(..) | ENode::Vjp(..));
        is_tensor.then(|| Id::from(index))
    }

    /// The names that the program has for values.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|(_, name)| &**name)
    }

    /// Who made an e-node.
    pub fn origin(&self, id: Id) -> Option<&Origin> {
        self.origins.get(*self.made.get(usize::from(id))? as usize)
    }

    /// The rule that an application applied.
    pub fn rule<'h>(&'h self, application: &'h Application) -> Option<&'h RuleRef> {
        application.cause.rule().or_else(|| match self.origin(application.value) {
            Some(Origin::Rule { rule, .. }) => Some(rule),
            _ => None,
        })
    }

    /// The e-nodes that application `index`, counted from 0, added.
    fn added(&self, index: usize) -> std::ops::Range<usize> {
        let before = self.moment_of(index).nodes;
        let after = self.record.applications.get(index).map_or(before, |a| a.after.nodes);
        before..after.clamp(before, self.nodes.len())
    }

    /// The operators that stand in the sides of application `index`, counted from 0.
    pub fn operators(&self, index: usize) -> BTreeSet<OpId> {
        let mut found = BTreeSet::new();
        let Some(application) = self.record.applications.get(index) else { return found };
        match &application.cause {
            Cause::Rewrite { rule, .. } => calls(&rule.left, &mut found),
            Cause::Commutes { op, .. } => {
                found.insert(*op);
            }
            Cause::Definition { def, .. } => found.extend(self.registry.id(&def.name)),
            Cause::Alternative => {}
        }
        // A right side may be one of the values that the left side names, whatever that is computed by.
        let is_bound = match &application.cause {
            Cause::Rewrite { bindings, .. } => bindings.contains(&Some(application.value)),
            _ => false,
        };
        let value = (!is_bound).then_some(usize::from(application.value));
        for node in value.into_iter().chain(self.added(index)) {
            if let Some(ENode::Op(op, _)) = self.nodes.get(node) {
                found.insert(*op);
            }
        }
        found
    }

    /// The two sides of application `index`, counted from 0. `partition` is of the moment before it, and says how values are called.
    pub fn sides(&self, index: usize, partition: &Partition) -> Option<Sides> {
        let application = self.record.applications.get(index)?;
        let writer = Writer { history: self, partition, added: self.added(index) };
        let right = || writer.term(application.value, 0);
        Some(match &application.cause {
            Cause::Rewrite { rule, bindings, swapped } => {
                let mut turned = swapped.iter().copied();
                let left = writer.pattern(&rule.left, bindings, &mut turned);
                // A right side may be one of the values that the left side names.
                let value = partition.first(application.value);
                let bound = bindings.iter().flatten().any(|id| partition.first(*id) == value);
                Sides { left, right: if bound { self.name(partition, application.value) } else { right() } }
            }
            Cause::Commutes { op, operands, .. } => {
                let [a, b] = operands;
                Sides { left: writer.call(*op, &[*a, *b], 0), right: writer.call(*op, &[*b, *a], 0) }
            }
            Cause::Definition { def, operands, attrs } => {
                let children: Vec<Id> = operands.iter().chain(attrs).copied().collect();
                let left = match self.registry.id(&def.name) {
                    Some(op) => writer.call(op, &children, 0),
                    None => def.name.to_string(),
                };
                Sides { left, right: right() }
            }
            Cause::Alternative => Sides { left: writer.term(application.class, 0), right: right() },
        })
    }

    /// A call as text, its operands called as `name` says.
    pub fn call(&self, node: &ENode, name: &mut dyn FnMut(Id) -> String) -> String {
        let (head, op, children) = match node {
            ENode::Attr(value) => return value.to_string(),
            ENode::Input(_) => return "input".to_owned(),
            ENode::Op(op, children) => (self.registry.op(*op).name().to_owned(), op, children),
            ENode::Vjp(op, operand, children) => {
                (format!("vjp:{}:{operand}", self.registry.op(*op).name()), op, children)
            }
        };
        let signature = self.registry.op(*op).signature();
        // A cotangent in waiting has two children more: the value and what comes in.
        let extra = if matches!(node, ENode::Vjp(..)) { 2 } else { 0 };
        let attrs = signature.attrs().count().min(children.len().saturating_sub(extra));
        let operands = children.len() - attrs - extra;
        let mut parts: Vec<String> = children[..operands].iter().map(|id| name(*id)).collect();
        let given = children[operands..operands + attrs].iter().map(|id| self.attr(*id));
        let params = signature.params().iter().filter_map(|p| match p {
            Param::Attr { name, .. } => Some(name),
            _ => None,
        });
        parts.extend(params.zip(given).map(|(name, value)| format!("{name}={value}")));
        parts.extend(children[operands + attrs..].iter().map(|id| name(*id)));
        format!("{head}({})", parts.join(", "))
    }

    fn attr(&self, id: Id) -> String {
        match self.nodes.get(usize::from(id)) {
            Some(ENode::Attr(value)) => AttrValue::to_string(value),
            _ => "?".to_owned(),
        }
    }
}

/// The operators of a left side.
fn calls(pattern: &Pattern, found: &mut BTreeSet<OpId>) {
    if let Pattern::Op { op, operands, .. } = pattern {
        found.insert(*op);
        operands.iter().for_each(|o| calls(o, found));
    }
}

/// Writes the sides of an application.
struct Writer<'h> {
    history: &'h History,
    partition: &'h Partition,
    /// The e-nodes that it added: a right side is written out down to what was there before.
    added: std::ops::Range<usize>,
}

impl Writer<'_> {
    fn pattern(&self, pattern: &Pattern, bindings: &[Option<Id>], turned: &mut dyn Iterator<Item = bool>) -> String {
        let (op, operands, attrs) = match pattern {
            Pattern::Var(var) => return self.bound(*var, bindings),
            Pattern::Op { op, operands, attrs } => (op, operands, attrs),
        };
        let is_turned = turned.next().unwrap_or(false);
        let mut parts: Vec<String> = operands.iter().map(|o| self.pattern(o, bindings, turned)).collect();
        if is_turned {
            parts.reverse();
        }
        let operator = self.history.registry.op(*op);
        parts.extend(operator.signature().attrs().zip(attrs).map(|((name, ..), attr)| match attr {
            crate::rules::AttrPattern::Const(value) => format!("{name}={value}"),
            crate::rules::AttrPattern::Var(var) => format!("{name}={}", self.bound(*var, bindings)),
        }));
        format!("{}({})", operator.name(), parts.join(", "))
    }

    fn bound(&self, var: VarId, bindings: &[Option<Id>]) -> String {
        match bindings.get(var.0 as usize).copied().flatten() {
            Some(id) => match self.history.nodes.get(usize::from(id)) {
                Some(ENode::Attr(value)) => value.to_string(),
                _ => self.history.name(self.partition, id),
            },
            None => "_".to_owned(),
        }
    }

    /// An e-node written out; what it needs as well, if that is new.
    fn term(&self, id: Id, level: usize) -> String {
        match self.history.nodes.get(usize::from(id)) {
            Some(ENode::Op(op, children)) => self.call(*op, children, level),
            Some(node) => self.history.call(node, &mut |id| self.history.name(self.partition, id)),
            None => "?".to_owned(),
        }
    }

    fn call(&self, op: OpId, children: &[Id], level: usize) -> String {
        let node = ENode::Op(op, children.iter().copied().collect());
        self.history.call(&node, &mut |id| {
            if level < MAX_LEVELS && self.added.contains(&usize::from(id)) {
                self.term(id, level + 1)
            } else {
                self.history.name(self.partition, id)
            }
        })
    }
}
