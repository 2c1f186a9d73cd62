//! Matching left sides in the e-graph, by backtracking.
//!
//! A class may hold many forms and a left side many operators, so that the ways to try are a product without end. egg's
//! own matcher can be told to stop after so many matches, but not after so much work; this one counts both.

use egg::{Id, Language};
use smallvec::SmallVec;

use super::language::{ENode, KinaEGraph};
use crate::ir::OpId;
use crate::rules::term::VarId;
use crate::rules::{AttrPattern, Pattern};

/// The class of each metavariable of a rule.
pub type Match = SmallVec<[Option<Id>; 4]>;

/// What a match costs beside the e-nodes that were looked at: it is kept, and the rule is tried on it.
pub(super) const MATCH: usize = 8;

/// Work that may still be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuel(pub usize);

impl Fuel {
    /// Takes `steps`; false once there is nothing left.
    pub fn spend(&mut self, steps: usize) -> bool {
        self.0 = self.0.saturating_sub(steps);
        self.0 > 0
    }
}

/// A part of a left side with the class that it must match.
#[derive(Clone, Copy)]
enum Goal<'p> {
    Tensor(&'p Pattern, Id),
    Attr(&'p AttrPattern, Id),
}

/// A search in one class.
struct Search<'p, 'e> {
    egraph: &'e KinaEGraph,
    fuel: &'e mut Fuel,
    goals: Vec<Goal<'p>>,
    bound: Match,
    found: Vec<Match>,
}

/// The calls of an operator in a class of a rebuilt e-graph, whose nodes are sorted: kinds of e-nodes in the order of
/// [`ENode`], calls by operator. A class may hold very many others, such as the cotangents that one value is.
pub fn calls(nodes: &[ENode], op: OpId) -> &[ENode] {
    let is_before = |node: &ENode, op: OpId, inclusive: bool| match node {
        ENode::Attr(_) | ENode::Input(_) => true,
        ENode::Op(found, _) => *found < op || (inclusive && *found == op),
        ENode::Vjp(..) => false,
    };
    let start = nodes.partition_point(|n| is_before(n, op, false));
    let end = nodes.partition_point(|n| is_before(n, op, true));
    &nodes[start..end]
}

/// All matches of `pattern`, a left side with `vars` metavariables, in a class; those found so far when `fuel` ran out.
pub fn matches(egraph: &KinaEGraph, pattern: &Pattern, vars: usize, class: Id, fuel: &mut Fuel) -> Vec<Match> {
    let bound = SmallVec::from_elem(None, vars);
    let goals = vec![Goal::Tensor(pattern, class)];
    let mut search = Search { egraph, fuel, goals, bound, found: Vec::new() };
    search.solve();
    search.found
}

impl<'p> Search<'p, '_> {
    /// Reaches all goals in every possible way. The goals are afterwards as they were before.
    fn solve(&mut self) {
        let Some(goal) = self.goals.pop() else {
            if self.fuel.spend(MATCH) {
                self.found.push(self.bound.clone());
            }
            return;
        };
        match goal {
            Goal::Tensor(Pattern::Var(var), class) => self.bind(*var, class),
            Goal::Tensor(Pattern::Op { op, operands, attrs }, class) => {
                let egraph = self.egraph;
                for node in calls(&egraph[class].nodes, *op) {
                    if !self.fuel.spend(1) {
                        break;
                    }
                    let ENode::Op(_, children) = node else { continue };
                    if children.len() != operands.len() + attrs.len() {
                        continue;
                    }
                    let mark = self.goals.len();
                    let tensors = operands.iter().zip(children).map(|(p, c)| Goal::Tensor(p, *c));
                    let attrs = attrs.iter().zip(&node.children()[operands.len()..]).map(|(p, c)| Goal::Attr(p, *c));
                    // The last goal comes first: names before calls, which have forms of their own to try.
                    let is_call = |g: &Goal<'_>| matches!(g, Goal::Tensor(Pattern::Op { .. }, _));
                    let (calls, names): (SmallVec<[Goal<'p>; 4]>, SmallVec<[Goal<'p>; 4]>) =
                        tensors.chain(attrs).rev().partition(is_call);
                    self.goals.extend(calls.into_iter().chain(names));
                    self.solve();
                    self.goals.truncate(mark);
                }
            }
            Goal::Attr(AttrPattern::Var(var), class) => self.bind(*var, class),
            Goal::Attr(AttrPattern::Const(value), class) => {
                if self.egraph[class].data.attr() == Some(value) {
                    self.solve();
                }
            }
        }
        self.goals.push(goal);
    }

    /// Binds a metavariable, or compares with what it is bound to, and goes on.
    fn bind(&mut self, var: VarId, class: Id) {
        let (index, class) = (var.0 as usize, self.egraph.find(class));
        match self.bound[index] {
            Some(bound) if bound == class => self.solve(),
            Some(_) => {}
            None => {
                self.bound[index] = Some(class);
                self.solve();
                self.bound[index] = None;
            }
        }
    }
}
