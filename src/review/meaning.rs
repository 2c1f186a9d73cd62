//! Two graphs compared by what they compute: names, numbers and the order of values are no difference.
//!
//! Values are alike if their operators, attributes and operands are, down to inputs of one name and type; that is found bottom-up
//! in one pass. What is left is aligned from the results down, by names, and by what reads the same, so that a value of another
//! form is told from one that only reads such a value. Time and memory are in proportion to the graphs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::FxHashMap;

use super::record::{Arg, Maker, Record};
use crate::rules::term::{Term, TermKind};
use crate::rules::{Pattern, RewriteClass, RuleSet};

/// How two values that stand for each other differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Index in the first graph, and in the second.
    pub left: usize,
    pub right: usize,
}

/// A named part that one of two graphs lacks or that has another type in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interface {
    Removed {
        what: &'static str,
        text: String,
    },
    Added {
        what: &'static str,
        text: String,
    },
    Retyped {
        what: &'static str,
        name: String,
        left: String,
        right: String,
    },
    /// A result that is another value of the graph.
    Rebound {
        name: String,
        left: String,
        right: String,
    },
}

/// What differs between two graphs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Values of the first graph that nothing in the second stands for.
    pub removed: Vec<usize>,
    /// Values of the second graph that nothing in the first stands for.
    pub added: Vec<usize>,
    /// Values of another operator, other attributes or other operands.
    pub changed: Vec<Changed>,
    /// How many values are of the same form, and differ only through what they read.
    pub followed: usize,
    /// Inputs, checks and results.
    pub interface: Vec<Interface>,
    /// Equal values whose operands stand in another order, which the rules say does not matter.
    pub reordered: usize,
    /// Equal values that another rule made.
    pub remade: usize,
    /// Equal values whose rule has the same name and stands elsewhere.
    pub moved: usize,
}

impl Difference {
    /// Do the graphs compute the same, in the same way?
    pub fn is_none(&self) -> bool {
        self.removed.is_empty()
            && self.added.is_empty()
            && self.changed.is_empty()
            && self.followed == 0
            && self.interface.is_empty()
    }
}

/// The operators of which a rule of class `exact` says, without a condition, that their two operands may be exchanged.
pub fn commutative(rules: &RuleSet) -> BTreeSet<String> {
    let variable = |term: &Term| match &term.kind {
        TermKind::Var(var) => Some(*var),
        _ => None,
    };
    let declared = rules.rewrites().iter().filter_map(|rule| {
        let head = &rule.head;
        if !(head.conditions.is_empty() && head.worth.is_empty() && head.domain.is_empty()) {
            return None;
        }
        let Pattern::Op { op, operands, attrs } = &rule.left else { return None };
        let TermKind::Op { op: right, operands: exchanged, attrs: others } = &rule.right.kind else { return None };
        let ([Pattern::Var(a), Pattern::Var(b)], [c, d]) = (&operands[..], &exchanged[..]) else { return None };
        let is_swap = a != b && (variable(c), variable(d)) == (Some(*b), Some(*a));
        let is_plain = op == right && attrs.is_empty() && others.is_empty();
        (is_swap && is_plain && rule.class == RewriteClass::Exact).then(|| rules.registry.op(*op).name().to_owned())
    });
    declared.collect()
}

/// Compares two graphs. Operands of the operators in `commutative` may stand in any order.
pub fn compare(left: &Record, right: &Record, commutative: &BTreeSet<String>) -> Difference {
    let mut classes = Classes { commutative, known: FxHashMap::default() };
    let sides = [classes.number(left), classes.number(right)];
    let mut alignment = Alignment::new([left, right], commutative);
    alignment.equal(&sides);
    alignment.results();
    alignment.names();
    alignment.readers();
    let mut difference = alignment.difference(&sides);
    interface(left, right, &sides, &mut difference);
    alignment.rebound(&sides, &mut difference);
    difference
}

/// What a value is: an input by name and type, or a call of an operator by type, attributes and the numbers of its operands.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key<'a> {
    op: Option<&'a str>,
    ty: &'a str,
    args: Vec<Part<'a>>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part<'a> {
    Text(&'a str),
    Number(usize),
}

/// Equal values have one number, in both graphs.
struct Classes<'a> {
    commutative: &'a BTreeSet<String>,
    known: FxHashMap<Key<'a>, usize>,
}

impl<'a> Classes<'a> {
    fn number(&mut self, record: &'a Record) -> Vec<usize> {
        let mut numbers: Vec<usize> = Vec::with_capacity(record.values.len());
        for value in &record.values {
            let args = match &value.call {
                None => vec![Part::Text(&value.name)],
                Some(call) => {
                    let part = |arg: &'a Arg| match arg {
                        Arg::Attr(text) => Part::Text(text),
                        Arg::Value(operand) => Part::Number(numbers[*operand]),
                    };
                    let mut args: Vec<Part<'a>> = call.args.iter().map(part).collect();
                    if self.commutative.contains(&call.op) {
                        args.sort();
                    }
                    args
                }
            };
            let key = Key { op: value.call.as_ref().map(|call| &*call.op), ty: &value.ty, args };
            let next = self.known.len();
            numbers.push(*self.known.entry(key).or_insert(next));
        }
        numbers
    }
}

/// Which value of one graph stands for which of the other.
struct Alignment<'a> {
    records: [&'a Record; 2],
    commutative: &'a BTreeSet<String>,
    /// By index of the value: the other one.
    partners: [Vec<Option<usize>>; 2],
    /// Pairs whose operands were not looked at.
    open: VecDeque<(usize, usize)>,
}

impl<'a> Alignment<'a> {
    fn new(records: [&'a Record; 2], commutative: &'a BTreeSet<String>) -> Alignment<'a> {
        let partners = records.map(|record| vec![None; record.values.len()]);
        Alignment { records, commutative, partners, open: VecDeque::new() }
    }

    fn are_free(&self, left: usize, right: usize) -> bool {
        let [lefts, rights] = &self.partners;
        let is_input = |side: usize, index: usize| self.records[side].values[index].call.is_none();
        lefts[left].is_none() && rights[right].is_none() && is_input(0, left) == is_input(1, right)
    }

    fn pair(&mut self, left: usize, right: usize) {
        self.partners[0][left] = Some(right);
        self.partners[1][right] = Some(left);
    }

    /// Pairs two values if both are free, then what stands at the same places below them as long as the operators are the same.
    fn propose(&mut self, left: usize, right: usize) {
        if !self.are_free(left, right) {
            return;
        }
        self.pair(left, right);
        self.open.push_back((left, right));
        while let Some((left, right)) = self.open.pop_front() {
            for (a, b) in self.places(left, right) {
                if self.are_free(a, b) {
                    self.pair(a, b);
                    self.open.push_back((a, b));
                }
            }
        }
    }

    /// The operands at the same places of two calls of one operator. Where order does not matter, those that are not paired already.
    fn places(&self, left: usize, right: usize) -> Vec<(usize, usize)> {
        let (a, b) = (&self.records[0].values[left], &self.records[1].values[right]);
        let (Some(first), Some(second)) = (&a.call, &b.call) else { return Vec::new() };
        if first.op != second.op || first.args.len() != second.args.len() {
            return Vec::new();
        }
        if self.commutative.contains(&first.op) {
            let free = |side: usize, index: &usize| self.partners[side][*index].is_none();
            let lefts: Vec<usize> = a.operands().filter(|i| free(0, i)).collect();
            return lefts.into_iter().zip(b.operands().filter(|i| free(1, i))).collect();
        }
        a.operands().zip(b.operands()).collect()
    }

    /// Equal values, the first with the first.
    fn equal(&mut self, sides: &[Vec<usize>; 2]) {
        let mut waiting: FxHashMap<usize, VecDeque<usize>> = FxHashMap::default();
        for (right, number) in sides[1].iter().enumerate() {
            waiting.entry(*number).or_default().push_back(right);
        }
        for (left, number) in sides[0].iter().enumerate() {
            if let Some(right) = waiting.get_mut(number).and_then(VecDeque::pop_front) {
                self.pair(left, right);
            }
        }
    }

    /// Results of one name, and what they are computed from.
    fn results(&mut self) {
        let [first, second] = self.records;
        let rights: BTreeMap<&str, usize> = second.results.iter().map(|r| (&*r.name, r.value)).collect();
        for result in &first.results {
            if let Some(right) = rights.get(&*result.name) {
                self.propose(result.value, *right);
            }
        }
    }

    /// Values of one name.
    fn names(&mut self) {
        let [first, second] = self.records;
        let rights: BTreeMap<&str, usize> = second.values.iter().enumerate().map(|(i, v)| (&*v.name, i)).collect();
        for (left, value) in first.values.iter().enumerate() {
            if let Some(right) = rights.get(&*value.name) {
                self.propose(left, *right);
            }
        }
    }

    /// Calls of the same form, of operands that stand for each other.
    fn readers(&mut self) {
        let mut waiting: BTreeMap<Key<'a>, VecDeque<usize>> = BTreeMap::new();
        let [first, second] = self.records;
        for (right, _) in second.values.iter().enumerate().filter(|(i, _)| self.partners[1][*i].is_none()) {
            if let Some(key) = reader(second, right, Some) {
                waiting.entry(key).or_default().push_back(right);
            }
        }
        for left in 0..first.values.len() {
            if self.partners[0][left].is_some() {
                continue;
            }
            let lefts = &self.partners[0];
            let key = reader(first, left, |operand| lefts[operand]);
            if let Some(right) = key.and_then(|key| waiting.get_mut(&key)).and_then(VecDeque::pop_front) {
                self.pair(left, right);
            }
        }
    }

    fn difference(&self, sides: &[Vec<usize>; 2]) -> Difference {
        let mut difference = Difference::default();
        let [first, second] = self.records;
        for (left, value) in first.values.iter().enumerate() {
            let Some(right) = self.partners[0][left] else {
                if value.call.is_some() {
                    difference.removed.push(left);
                }
                continue;
            };
            let other = &second.values[right];
            if value.call.is_none() {
                continue;
            }
            if sides[0][left] == sides[1][right] {
                let numbers = |side: usize, record: &Record, index: usize| {
                    record.values[index].operands().map(|o| sides[side][o]).collect::<Vec<_>>()
                };
                difference.reordered += usize::from(numbers(0, first, left) != numbers(1, second, right));
                match (&value.maker, &other.maker) {
                    (
                        Some(Maker::Rule { name, location, .. }),
                        Some(Maker::Rule { name: other, location: place, .. }),
                    ) if name == other => difference.moved += usize::from(location != place),
                    (Some(Maker::Rule { .. }), _) | (_, Some(Maker::Rule { .. })) => difference.remade += 1,
                    _ => {}
                }
            } else if self.is_followed(left, right) {
                difference.followed += 1;
            } else {
                difference.changed.push(Changed { left, right });
            }
        }
        let added =
            second.values.iter().enumerate().filter(|(i, v)| v.call.is_some() && self.partners[1][*i].is_none());
        difference.added = added.map(|(i, _)| i).collect();
        difference
    }

    /// Results that are neither equal nor aligned with each other.
    fn rebound(&self, sides: &[Vec<usize>; 2], difference: &mut Difference) {
        let [first, second] = self.records;
        let rights: BTreeMap<&str, usize> = second.results.iter().map(|r| (&*r.name, r.value)).collect();
        for result in &first.results {
            let Some(right) = rights.get(&*result.name) else { continue };
            let is_same = sides[0][result.value] == sides[1][*right];
            if !is_same && self.partners[0][result.value] != Some(*right) {
                difference.interface.push(Interface::Rebound {
                    name: result.name.clone(),
                    left: first.values[result.value].name.clone(),
                    right: second.values[*right].name.clone(),
                });
            }
        }
    }

    /// Do two calls have one form, and operands that stand for each other?
    fn is_followed(&self, left: usize, right: usize) -> bool {
        let [first, second] = self.records;
        let lefts = &self.partners[0];
        let (a, b) = (reader(first, left, |operand| lefts[operand]), reader(second, right, Some));
        let (Some(mut a), Some(mut b)) = (a, b) else { return false };
        if a.op.is_some_and(|op| self.commutative.contains(op)) {
            a.args.sort();
            b.args.sort();
        }
        a == b
    }
}

/// A call by operator, attributes, and the values of the second graph that stand for its operands; types aside. `None` if an
/// operand has no partner.
fn reader<'a>(record: &'a Record, index: usize, partner: impl Fn(usize) -> Option<usize>) -> Option<Key<'a>> {
    let call = record.values[index].call.as_ref()?;
    let args = call.args.iter().map(|arg| match arg {
        Arg::Attr(text) => Some(Part::Text(text)),
        Arg::Value(operand) => partner(*operand).map(Part::Number),
    });
    Some(Key { op: Some(&call.op), ty: "", args: args.collect::<Option<_>>()? })
}

/// Inputs, checks and results, each by what it is known by.
fn interface(left: &Record, right: &Record, sides: &[Vec<usize>; 2], difference: &mut Difference) {
    let inputs = |record: &Record| -> BTreeMap<String, String> {
        let inputs = record.values.iter().filter(|v| v.call.is_none());
        inputs.map(|v| (v.name.clone(), v.ty.clone())).collect()
    };
    let results = |record: &Record| -> BTreeMap<String, String> {
        record.results.iter().map(|r| (r.name.clone(), record.values[r.value].ty.clone())).collect()
    };
    for (what, lefts, rights) in [("input", inputs(left), inputs(right)), ("result", results(left), results(right))] {
        for (name, ty) in &lefts {
            match rights.get(name) {
                None => difference.interface.push(Interface::Removed { what, text: format!("{name} : {ty}") }),
                Some(other) if other != ty => difference.interface.push(Interface::Retyped {
                    what,
                    name: name.clone(),
                    left: ty.clone(),
                    right: other.clone(),
                }),
                Some(_) => {}
            }
        }
        for (name, ty) in rights.iter().filter(|(name, _)| !lefts.contains_key(*name)) {
            difference.interface.push(Interface::Added { what, text: format!("{name} : {ty}") });
        }
    }
    // A check by what its indices are: which value has them may have another name. One whose indices differ only through what
    // they read is reported too, since what it guards is something else.
    let checks = |record: &Record, numbers: &[usize]| -> BTreeMap<(usize, u64, String), String> {
        let key = |c: &super::record::Guard| ((numbers[c.indices], c.size, c.message.clone()), record.check(c));
        record.checks.iter().map(key).collect()
    };
    let (lefts, rights) = (checks(left, &sides[0]), checks(right, &sides[1]));
    for (_, text) in lefts.iter().filter(|(key, _)| !rights.contains_key(*key)) {
        difference.interface.push(Interface::Removed { what: "check", text: text.clone() });
    }
    for (_, text) in rights.iter().filter(|(key, _)| !lefts.contains_key(*key)) {
        difference.interface.push(Interface::Added { what: "check", text: text.clone() });
    }
}
