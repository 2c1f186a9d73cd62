//! Why a left side does not match: the search of [`super::matching`] once more, by one that remembers where it got furthest.

use egg::{Id, Language};
use smallvec::SmallVec;

use super::language::{ENode, KinaEGraph};
use super::matching::{Fuel, MATCH, Match, calls};
use super::patterns::Variant;
use crate::ir::{AttrValue, OpId};
use crate::rules::term::VarId;
use crate::rules::{AttrPattern, Pattern};

/// Ends that are kept of one search, of those that got equally far.
const MAX_ENDS: usize = 4;

/// Where a part of a left side stands: an operand or an attribute of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub op: OpId,
    /// Among the operands, or among the attributes.
    pub index: usize,
    /// How many operands the call has.
    pub operands: usize,
}

/// What a left side asks for, and what is there instead.
#[derive(Clone, Debug, PartialEq)]
pub enum Mismatch<'p> {
    /// No form of the class is a call of that operator. There is no place for the root of the left side.
    Form {
        wanted: &'p Pattern,
        class: Id,
        place: Option<Place>,
    },
    /// A call of that operator, but with another number of operands.
    Operands {
        wanted: &'p Pattern,
        found: usize,
    },
    Attribute {
        wanted: &'p AttrValue,
        found: Id,
        place: Place,
    },
    /// A metavariable stands for one value and would have to stand for another one as well.
    Twice {
        var: VarId,
        first: Id,
        second: Id,
        place: Option<Place>,
    },
}

/// One way to match, up to where it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct End<'p> {
    /// The call at the root, if it came that far.
    pub root: Option<ENode>,
    pub mismatch: Mismatch<'p>,
}

/// What a search for a left side in one class found.
#[derive(Clone, Debug, Default)]
pub struct Closest<'p> {
    pub matches: Vec<Match>,
    /// The ends that got furthest: most calls matched, then most names and attributes. Those of them that are different, not more
    /// than a few.
    pub ends: Vec<End<'p>>,
    /// Did the fuel end before all was looked at?
    pub exhausted: bool,
    furthest: (usize, usize),
}

#[derive(Clone, Copy)]
enum Goal<'p> {
    Tensor(&'p Pattern, Id, Option<Place>),
    Attr(&'p AttrPattern, Id, Place),
}

struct Search<'p, 'e> {
    egraph: &'e KinaEGraph,
    fuel: &'e mut Fuel,
    goals: Vec<Goal<'p>>,
    bound: Match,
    calls: usize,
    names: usize,
    root: Option<&'e ENode>,
    found: Closest<'p>,
}

/// Looks for a left side, in all orders of its commutative operators, in a class of a rebuilt e-graph.
pub fn closest<'p>(
    egraph: &KinaEGraph,
    variants: &'p [Variant],
    vars: usize,
    class: Id,
    fuel: &mut Fuel,
) -> Closest<'p> {
    let bound: Match = SmallVec::from_elem(None, vars);
    let (calls, names, root) = (0, 0, None);
    let mut search = Search { egraph, fuel, goals: Vec::new(), bound, calls, names, root, found: Closest::default() };
    for variant in variants {
        search.goals.push(Goal::Tensor(&variant.pattern, egraph.find(class), None));
        search.solve();
        search.goals.clear();
    }
    search.found
}

impl<'p> Search<'p, '_> {
    fn spend(&mut self, steps: usize) -> bool {
        let left = self.fuel.spend(steps);
        self.found.exhausted |= !left;
        left
    }

    /// Reaches all goals in every possible way. The goals are afterwards as they were before.
    fn solve(&mut self) {
        let Some(goal) = self.goals.pop() else {
            if self.spend(MATCH) {
                self.found.matches.push(self.bound.clone());
            }
            return;
        };
        match goal {
            Goal::Tensor(Pattern::Var(var), class, place) => self.bind(*var, class, place),
            Goal::Tensor(pattern @ Pattern::Op { op, operands, attrs }, class, place) => {
                let egraph = self.egraph;
                let forms = calls(&egraph[class].nodes, *op);
                if forms.is_empty() && self.spend(1) {
                    self.end(Mismatch::Form { wanted: pattern, class: egraph.find(class), place });
                }
                for node in forms {
                    if !self.spend(1) {
                        break;
                    }
                    if place.is_none() {
                        self.root = Some(node);
                    }
                    let ENode::Op(_, children) = node else { continue };
                    if children.len() != operands.len() + attrs.len() {
                        let found = children.len().saturating_sub(attrs.len());
                        self.end(Mismatch::Operands { wanted: pattern, found });
                        continue;
                    }
                    let mark = self.goals.len();
                    let at = |index| Place { op: *op, index, operands: operands.len() };
                    let tensors = operands.iter().zip(children).enumerate();
                    let tensors = tensors.map(|(i, (p, c))| Goal::Tensor(p, *c, Some(at(i))));
                    let attrs = attrs.iter().zip(&node.children()[operands.len()..]).enumerate();
                    let attrs = attrs.map(|(i, (p, c))| Goal::Attr(p, *c, at(i)));
                    // The same order as in `matching`: names before calls.
                    let is_call = |g: &Goal<'_>| matches!(g, Goal::Tensor(Pattern::Op { .. }, ..));
                    let (calls, names): (SmallVec<[Goal<'p>; 4]>, SmallVec<[Goal<'p>; 4]>) =
                        tensors.chain(attrs).rev().partition(is_call);
                    self.goals.extend(calls.into_iter().chain(names));
                    self.calls += 1;
                    self.solve();
                    self.calls -= 1;
                    self.goals.truncate(mark);
                }
                if place.is_none() {
                    self.root = None;
                }
            }
            Goal::Attr(AttrPattern::Var(var), class, place) => self.bind(*var, class, Some(place)),
            Goal::Attr(AttrPattern::Const(value), class, place) => {
                if self.egraph[class].data.attr() == Some(value) {
                    self.names += 1;
                    self.solve();
                    self.names -= 1;
                } else {
                    self.end(Mismatch::Attribute { wanted: value, found: class, place });
                }
            }
        }
        self.goals.push(goal);
    }

    /// Binds a metavariable, or compares with what it is bound to, and goes on.
    fn bind(&mut self, var: VarId, class: Id, place: Option<Place>) {
        let (index, class) = (var.0 as usize, self.egraph.find(class));
        match self.bound[index] {
            Some(bound) if bound != class => {
                self.end(Mismatch::Twice { var, first: bound, second: class, place });
            }
            bound => {
                self.bound[index] = Some(class);
                self.names += 1;
                self.solve();
                self.names -= 1;
                self.bound[index] = bound;
            }
        }
    }

    /// It goes no further on this way.
    fn end(&mut self, mismatch: Mismatch<'p>) {
        let reached = (self.calls, self.names);
        if reached < self.found.furthest {
            return;
        }
        let found = &mut self.found;
        if reached > found.furthest {
            found.furthest = reached;
            found.ends.clear();
        }
        if found.ends.len() < MAX_ENDS && found.ends.iter().all(|e| e.mismatch != mismatch) {
            found.ends.push(End { root: self.root.cloned(), mismatch });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::egraph::matching::matches;
    use crate::egraph::patterns::{commutes, variants};
    use crate::{CheckOptions, Level, RuleOptions, Session};

    /// Both searches find the same, so that what one says of the other's failures is true.
    #[test]
    fn it_matches_what_matching_matches() {
        let mut session = Session::new(&RuleOptions::default()).unwrap();
        let text = include_str!("../../examples/mlp.kina");
        let graph = session.check("mlp.kina", text, &CheckOptions::default()).unwrap();
        let mut program = session.differentiate(&graph).unwrap();
        session.optimise(&mut program, Level::O2).unwrap();
        let egraph = &program.space().egraph;
        let commutative: BTreeSet<OpId> = session.rules.rewrites().iter().filter_map(|r| commutes(r)).collect();
        let (mut matched, mut ended) = (0, 0);
        for rule in session.rules.rewrites() {
            let (variants, vars) = (variants(&rule.left, &commutative), rule.head.vars.len());
            for class in egraph.classes().filter(|c| c.data.ty().is_some()) {
                let found = closest(egraph, &variants, vars, class.id, &mut Fuel(100_000));
                let mut fuel = Fuel(100_000);
                let expected: Vec<Match> =
                    variants.iter().flat_map(|v| matches(egraph, &v.pattern, vars, class.id, &mut fuel)).collect();
                assert_eq!(found.matches, expected, "{}", rule.head.rule);
                assert!(!found.exhausted && (!found.matches.is_empty() || !found.ends.is_empty()));
                matched += found.matches.len();
                ended += found.ends.len();
            }
        }
        assert!(matched > 20 && ended > 1000, "{matched} matches, {ended} ends");
    }
}
