//! Names of classes: what `grad` prints where the result has them, the source name, or operator and hash.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use egg::{Id, Language};
use rustc_hash::FxHashMap;

use crate::egraph::Differentiated;
use crate::egraph::language::{ENode, split_call};
use crate::egraph::space::Space;
use crate::ir::names::{Fnv, value_names};
use crate::ir::{AttrValue, Graph, NodeKind, OpId, Param, Registry};

/// Digits of a hash that stands in another one, as in [`value_names`], and of one that is shown: a saturated e-graph has many classes.
const SHORT: usize = 4;
const LONG: usize = 8;

/// Operands of calls that are not there, within calls that are not there.
const MAX_NESTED: usize = 3;

pub(super) struct Names<'a> {
    program: &'a Differentiated,
    registry: &'a Registry,
    /// Of the values of the result.
    result: FxHashMap<Id, String>,
    by_result: BTreeMap<String, Id>,
    /// The source name of each class that has one.
    source: FxHashMap<Id, String>,
    /// All that the tape calls a class, results included.
    by_source: BTreeMap<String, BTreeSet<Id>>,
    /// The oldest e-node of each class.
    oldest: Vec<usize>,
    /// Operator and hash of classes that were asked for.
    hashed: RefCell<FxHashMap<Id, (String, u64)>>,
}

impl<'a> Names<'a> {
    pub fn new(
        program: &'a Differentiated,
        result: &Graph,
        classes: &[Option<Id>],
        registry: &'a Registry,
    ) -> Names<'a> {
        let (mut names, mut by_result) = (FxHashMap::default(), BTreeMap::new());
        for (name, class) in value_names(result, registry).into_iter().zip(classes) {
            let Some(class) = class else { continue };
            names.entry(*class).or_insert_with(|| name.clone());
            by_result.insert(name, *class);
        }
        let mut source = FxHashMap::default();
        let mut by_source: BTreeMap<String, BTreeSet<Id>> = BTreeMap::new();
        for (id, node) in program.tape.iter() {
            let Some(name) = &node.name else { continue };
            let class = program.class_of_node(id);
            by_source.entry(name.to_string()).or_default().insert(class);
            if !matches!(node.kind, NodeKind::Param { .. }) {
                source.entry(class).or_insert_with(|| name.to_string());
            }
        }
        for output in &program.tape.outputs {
            by_source.entry(output.name.to_string()).or_default().insert(program.class_of_node(output.node));
        }
        let egraph = &program.space().egraph;
        let mut oldest = vec![usize::MAX; egraph.nodes().len()];
        for index in 0..egraph.nodes().len() {
            let class = usize::from(egraph.find(Id::from(index)));
            oldest[class] = oldest[class].min(index);
        }
        let hashed = RefCell::default();
        Names { program, registry, result: names, by_result, source, by_source, oldest, hashed }
    }

    fn space(&self) -> &'a Space {
        self.program.space()
    }

    /// What a class is called.
    pub fn of(&self, class: Id) -> String {
        let class = self.space().egraph.find(class);
        if let Some(name) = self.result.get(&class).or_else(|| self.source.get(&class)) {
            return name.clone();
        }
        if let Some(value) = self.space().egraph[class].data.attr() {
            return value.to_string();
        }
        let (base, hash) = self.hash(class);
        format!("{base}_{}", &format!("{hash:016x}")[..LONG])
    }

    /// The order in which classes are spoken of: by their oldest e-node.
    pub fn age(&self, class: Id) -> usize {
        self.oldest[usize::from(self.space().egraph.find(class))]
    }

    /// The name that stands in hashes.
    fn short(&self, class: Id) -> Option<String> {
        if let Some(name) = self.source.get(&class) {
            return Some(name.clone());
        }
        let hashed = self.hashed.borrow();
        let (base, hash) = hashed.get(&class)?;
        Some(format!("{base}_{}", &format!("{hash:016x}")[..SHORT]))
    }

    /// Operator and hash of the oldest e-node. Its operands are older, whatever they were merged with.
    fn hash(&self, class: Id) -> (String, u64) {
        let space = self.space();
        let egraph = &space.egraph;
        let mut stack = vec![egraph.find(class)];
        while let Some(at) = stack.last().copied() {
            if self.hashed.borrow().contains_key(&at) {
                stack.pop();
                continue;
            }
            let oldest = self.oldest[usize::from(at)];
            let node = space.original(Id::from(oldest));
            let children = || node.iter().flat_map(|n| n.children()).map(|c| egraph.find(*c));
            let tensors = || children().filter(|c| egraph[*c].data.ty().is_some());
            let waiting = stack.len();
            stack.extend(tensors().filter(|c| *c != at && self.short(*c).is_none()));
            if stack.len() > waiting {
                continue;
            }
            let base = match node {
                Some(ENode::Op(op, _) | ENode::Vjp(op, ..)) => self.registry.op(*op).name(),
                _ => "input",
            };
            let mut hash = Fnv::new();
            hash.text(base);
            tensors().filter_map(|c| self.short(c)).for_each(|name| hash.text(&name));
            children().filter_map(|c| egraph[c].data.attr()).for_each(|value| hash.text(&value.to_string()));
            self.hashed.borrow_mut().insert(at, (base.to_owned(), hash.0));
            stack.pop();
        }
        self.hashed.borrow().get(&egraph.find(class)).cloned().unwrap_or_default()
    }

    /// `sum(x, axis=[1], keepdims=true)`.
    pub fn node(&self, node: &ENode) -> String {
        match node {
            ENode::Op(op, children) => {
                let (operands, attrs) = split_call(&self.space().egraph, *op, children);
                let operands: Vec<String> = operands.iter().map(|o| self.of(*o)).collect();
                self.call(*op, &operands, &attrs)
            }
            ENode::Input(number) => {
                let id = self.program.tape.inputs.get(*number as usize);
                let name = id.and_then(|id| self.program.tape.node(*id).name.as_deref());
                name.map_or_else(|| "an input".to_owned(), |name| format!("input {name}"))
            }
            ENode::Vjp(op, ..) => format!("a cotangent of {}", self.registry.op(*op).name()),
            ENode::Attr(value) => value.to_string(),
        }
    }

    /// A call with its operands in words.
    pub fn call(&self, op: OpId, operands: &[String], attrs: &[AttrValue]) -> String {
        let operator = self.registry.op(op);
        let (mut operands, mut attrs) = (operator.signature().split(operands).into_iter(), attrs.iter());
        let mut parts = Vec::new();
        for param in operator.signature().params() {
            match param {
                Param::Operand(_) | Param::Variadic(_) => parts.extend(operands.next().into_iter().flatten().cloned()),
                Param::Attr { name, .. } => parts.extend(attrs.next().map(|a| format!("{name}={a}"))),
            }
        }
        format!("{}({})", operator.name(), parts.join(", "))
    }

    /// A value that a rule asks for: its name if it is there, otherwise the call.
    pub fn found(&self, builder: &crate::egraph::lookup::LookupBuilder<'_>, value: usize) -> String {
        self.nested(builder, value, true, MAX_NESTED)
    }

    fn nested(
        &self,
        builder: &crate::egraph::lookup::LookupBuilder<'_>,
        value: usize,
        outermost: bool,
        depth: usize,
    ) -> String {
        let found = builder.value(value);
        match (&found.call, found.class) {
            (_, Some(class)) if !outermost => self.of(class),
            (None, Some(class)) => self.of(class),
            (Some(_), _) if depth == 0 => "..".to_owned(),
            (Some(call), _) => {
                let operands = call.operands.iter().map(|o| self.nested(builder, *o, false, depth - 1));
                self.call(call.op, &operands.collect::<Vec<_>>(), &call.attrs)
            }
            (None, None) => "..".to_owned(),
        }
    }

    /// The classes that a name can mean.
    pub fn classes(&self, name: &str) -> BTreeSet<Id> {
        let mut classes: BTreeSet<Id> = self.by_source.get(name).cloned().unwrap_or_default();
        classes.extend(self.by_result.get(name));
        if !classes.is_empty() {
            return classes;
        }
        let Some((base, digits)) = name.rsplit_once('_') else { return classes };
        let is_hash = (SHORT..=16).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let Some(op) = self.registry.id(base).filter(|_| is_hash) else { return classes };
        for class in self.space().egraph.classes().filter(|c| c.data.ty().is_some()) {
            let oldest = self.space().original(Id::from(self.age(class.id)));
            if matches!(oldest, Some(ENode::Op(o, _)) if *o == op) {
                let (_, hash) = self.hash(class.id);
                if format!("{hash:016x}").starts_with(&digits.to_ascii_lowercase()) {
                    classes.insert(class.id);
                }
            }
        }
        classes
    }

    /// All names that need no e-graph to be known.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.by_source.keys().chain(self.by_result.keys()).map(String::as_str)
    }
}
