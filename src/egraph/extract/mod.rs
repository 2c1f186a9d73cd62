//! Extraction: the cheapest graph, shared values paid once.
//!
//! Candidates that no solution needs are dropped first (`reduce`). A tree solution (cheapest term of every class, sharing
//! ignored) is the start, from which a local search (`search`) minimises the true cost of the DAG.

mod order;
mod reduce;
pub mod restricted;
mod search;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use egg::Id;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cost::{Cost, cost};
use super::language::{ENode, split_call};
use super::matching::Fuel;
use super::space::Space;
use crate::ir::{OpId, TensorType};
use order::Order;
use reduce::reduce;
use search::Search;

/// Classes that the search may look at, in all and for each class. A walk below a candidate can meet the whole graph, and
/// there is one for every candidate.
const STEPS: usize = 20_000_000;
const STEPS_PER_CLASS: usize = 1_000;

/// A class of the extraction problem, numbered densely.
pub type ClassIndex = usize;

/// One way to compute a class.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub node: ENode,
    pub cost: Cost,
    /// Operand classes without repetition, ascending.
    pub children: Vec<ClassIndex>,
}

/// Which classes can be computed how.
#[derive(Clone, Debug)]
pub struct Problem {
    pub classes: Vec<Id>,
    /// Cheapest first; ties by operator name, then attributes.
    pub candidates: Vec<Vec<Candidate>>,
    pub roots: Vec<ClassIndex>,
}

/// A problem's candidates that are worth a thought, and one of them for each class.
#[derive(Clone, Debug)]
pub struct Solution {
    problem: Problem,
    order: Order,
    chosen: Vec<usize>,
    /// Cost of everything reachable from the roots.
    pub cost: Cost,
    /// Did the search end by itself, and not because it ran out of steps?
    pub complete: bool,
}

impl Solution {
    /// The e-nodes to compute and their classes, operands first.
    pub fn nodes(&self) -> impl Iterator<Item = (Id, &ENode)> {
        let order = self.problem.order(&self.chosen);
        order
            .into_iter()
            .map(|class| (self.problem.classes[class], &self.problem.candidates[class][self.chosen[class]].node))
    }
}

impl Solution {
    /// Those classes that the problem has, by their number in it.
    pub fn classes(&self) -> &[Id] {
        &self.problem.classes
    }

    /// What a class is computed by; `None` if it cannot be computed.
    pub fn choice(&self, class: ClassIndex) -> Option<&Candidate> {
        self.problem.candidates.get(class)?.get(*self.chosen.get(class)?)
    }
}

impl Problem {
    /// The problem of computing `roots`: all classes that some form of a root can need.
    pub fn new(space: &Space, roots: &[Id]) -> Problem {
        let egraph = &space.egraph;
        let mut prices = Prices::default();
        // Looked up only, never iterated.
        let mut index: FxHashMap<Id, ClassIndex> = FxHashMap::default();
        let mut classes: Vec<Id> = Vec::new();
        let mut queue: VecDeque<Id> = VecDeque::new();
        let mut enter = |id: Id, queue: &mut VecDeque<Id>| -> ClassIndex {
            let id = egraph.find(id);
            *index.entry(id).or_insert_with(|| {
                classes.push(id);
                queue.push_back(id);
                classes.len() - 1
            })
        };
        let roots: Vec<ClassIndex> = roots.iter().map(|r| enter(*r, &mut queue)).collect();
        let mut candidates: Vec<Vec<Candidate>> = Vec::new();
        while let Some(id) = queue.pop_front() {
            let mut list: Vec<Candidate> = Vec::new();
            for node in &egraph[id].nodes {
                let Some(own) = prices.of(space, id, node) else { continue };
                let mut children = Vec::new();
                if let ENode::Op(_, all) = node {
                    let operands = all.iter().filter(|child| space.ty(**child).is_some());
                    children = operands.map(|o| enter(*o, &mut queue)).collect();
                    children.sort_unstable();
                    children.dedup();
                }
                list.push(Candidate { node: node.clone(), cost: own, children });
            }
            list.sort_by(|a, b| a.cost.cmp(&b.cost).then_with(|| a.node.cmp(&b.node)));
            candidates.push(list);
        }
        Problem { classes, candidates, roots }
    }

    /// The cheapest terms. Classes that cannot be computed (nothing but `vjp:` e-nodes) keep `None`.
    fn terms(&self, order: &Order) -> Vec<Option<(Cost, usize)>> {
        let n = self.classes.len();
        let mut best: Vec<Option<(Cost, usize)>> = vec![None; n];
        let mut queue: VecDeque<ClassIndex> = order.classes.iter().copied().collect();
        let mut queued = vec![true; n];
        while let Some(class) = queue.pop_front() {
            queued[class] = false;
            let mut found: Option<(Cost, usize)> = None;
            for (i, candidate) in self.candidates[class].iter().enumerate() {
                let total = candidate
                    .children
                    .iter()
                    .try_fold(candidate.cost, |sum, child| best[*child].map(|(cost, _)| sum.saturating_add(cost)));
                if let Some(total) = total
                    && found.is_none_or(|(cost, _)| total < cost)
                {
                    found = Some((total, i));
                }
            }
            if let Some(found) = found
                && best[class].is_none_or(|(cost, _)| found.0 < cost)
            {
                best[class] = Some(found);
                for user in order.users(class) {
                    if !queued[*user] {
                        queued[*user] = true;
                        queue.push_back(*user);
                    }
                }
            }
        }
        best
    }

    /// The cheapest DAG that the local search finds; `None` if a root cannot be computed.
    pub fn solve(self) -> Option<Solution> {
        let fuel = Fuel(STEPS + STEPS_PER_CLASS * self.classes.len());
        self.solve_within(fuel)
    }

    /// The same by no more steps than `fuel` allows.
    fn solve_within(mut self, fuel: Fuel) -> Option<Solution> {
        let order = Order::new(&self);
        let terms = self.terms(&order);
        if self.roots.iter().any(|root| terms[*root].is_none()) {
            return None;
        }
        for list in &mut self.candidates {
            list.retain(|candidate| candidate.children.iter().all(|child| terms[*child].is_some()));
        }
        reduce(&mut self, &order);
        // Nobody's operand is left that cannot be computed.
        let chosen = self.terms(&order).iter().map(|term| term.map_or(0, |(_, i)| i)).collect();
        let (chosen, cost, complete) = Search::new(&self, &order, chosen, fuel).run();
        Some(Solution { problem: self, order, chosen, cost, complete })
    }

    /// Everything that the roots need, operands first; roots in their order.
    fn order(&self, chosen: &[usize]) -> Vec<ClassIndex> {
        let mut order = Vec::new();
        let mut state = vec![0u8; self.classes.len()];
        let mut stack: Vec<ClassIndex> = Vec::new();
        for root in &self.roots {
            stack.push(*root);
            while let Some(class) = stack.last().copied() {
                if state[class] == 0 {
                    state[class] = 1;
                    let children = &self.candidates[class][chosen[class]].children;
                    stack.extend(children.iter().rev().filter(|c| state[**c] == 0));
                } else {
                    stack.pop();
                    if state[class] == 1 {
                        state[class] = 2;
                        order.push(class);
                    }
                }
            }
        }
        order
    }
}

/// What the e-nodes of a program cost. Large programs have few kinds of calls.
#[derive(Default)]
pub(super) struct Prices {
    known: FxHashMap<(OpId, SmallVec<[usize; 6]>), Option<Cost>>,
}

impl Prices {
    /// The cost of an e-node; `None` for what cannot be computed.
    pub fn of(&mut self, space: &Space, class: Id, node: &ENode) -> Option<Cost> {
        let ENode::Op(op, children) = node else { return matches!(node, ENode::Input(_)).then_some(0) };
        let ty = space.ty(class)?;
        // Types by their address, which is one for each type and even; attributes by their class.
        let key =
            std::iter::once(Arc::as_ptr(ty) as usize).chain(children.iter().map(|child| match space.ty(*child) {
                Some(ty) => Arc::as_ptr(ty) as usize,
                None => 2 * usize::from(space.egraph.find(*child)) + 1,
            }));
        *self.known.entry((*op, key.collect())).or_insert_with(|| {
            let (operands, attrs) = split_call(&space.egraph, *op, children);
            let types: Option<Vec<&TensorType>> = operands.iter().map(|o| space.ty(*o).map(|t| &**t)).collect();
            cost(space.registry(), *op, &types?, &attrs, ty)
        })
    }
}
