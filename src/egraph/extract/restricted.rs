//! What a solution would cost if one class had to be computed in a certain way.

use std::collections::VecDeque;

use egg::Id;
use rustc_hash::FxHashMap;

use super::search::Search;
use super::{Candidate, ClassIndex, Prices, Solution};
use crate::egraph::cost::Cost;
use crate::egraph::language::ENode;
use crate::egraph::matching::Fuel;
use crate::egraph::space::Space;

/// The cheapest graph that was found under a restriction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restricted {
    pub cost: Cost,
    /// Does that graph compute the class at all?
    pub used: bool,
    /// Did the search end by itself?
    pub complete: bool,
}

/// A solution that can be asked what others would cost.
#[derive(Clone, Debug)]
pub struct Restrictions {
    pub solution: Solution,
    index: FxHashMap<Id, ClassIndex>,
    live: Vec<bool>,
}

impl Restrictions {
    pub fn new(solution: Solution) -> Restrictions {
        let classes = solution.problem.classes.iter().enumerate();
        let index = classes.map(|(i, id)| (*id, i)).collect();
        let mut live = vec![false; solution.problem.classes.len()];
        for class in solution.problem.order(&solution.chosen) {
            live[class] = true;
        }
        Restrictions { solution, index, live }
    }

    /// Is the class part of the solution?
    pub fn is_live(&self, space: &Space, class: Id) -> bool {
        self.index.get(&space.egraph.find(class)).is_some_and(|i| self.live[*i])
    }

    /// The solution if `class` is computed by one of `nodes` or not at all; `None` if no graph is left. Everything else may be chosen anew.
    pub fn restricted(&mut self, space: &Space, class: Id, nodes: &[ENode], fuel: &mut Fuel) -> Option<Restricted> {
        let at = *self.index.get(&space.egraph.find(class))?;
        let mut prices = Prices::default();
        let mut list: Vec<Candidate> = Vec::new();
        for node in nodes {
            let Some(cost) = prices.of(space, self.solution.problem.classes[at], node) else { continue };
            let children = match node {
                ENode::Op(_, all) => {
                    let operands = all.iter().filter(|child| space.ty(**child).is_some());
                    let indices = operands.map(|o| self.index.get(&space.egraph.find(*o)).copied());
                    let Some(mut children) = indices.collect::<Option<Vec<ClassIndex>>>() else { continue };
                    children.sort_unstable();
                    children.dedup();
                    children
                }
                _ => Vec::new(),
            };
            list.push(Candidate { node: node.clone(), cost, children });
        }
        list.sort_by(|a, b| a.cost.cmp(&b.cost).then_with(|| a.node.cmp(&b.node)));
        self.restrict(at, list, fuel)
    }

    /// The same for candidates.
    pub(super) fn restrict(
        &mut self,
        class: ClassIndex,
        mut list: Vec<Candidate>,
        fuel: &mut Fuel,
    ) -> Option<Restricted> {
        let problem = &mut self.solution.problem;
        // What cannot be computed has no candidates left.
        list.retain(|c| c.children.iter().all(|child| !problem.candidates[*child].is_empty()));
        if list.is_empty() {
            return None;
        }
        let before = std::mem::replace(&mut problem.candidates[class], list);
        let found = self.solve(class, fuel);
        self.solution.problem.candidates[class] = before;
        found
    }

    /// Searches on from the solution, with the class switched to its first candidate that makes no cycle with the rest.
    fn solve(&self, class: ClassIndex, fuel: &mut Fuel) -> Option<Restricted> {
        let Solution { problem, order, chosen, .. } = &self.solution;
        let mut chosen = chosen.clone();
        let count = problem.candidates[class].len();
        let possible = (0..count).find(|candidate| {
            chosen[class] = *candidate;
            !self.is_cyclic(class, &chosen, fuel)
        });
        if possible.is_some() {
            let search = Search::new(problem, order, chosen, *fuel);
            let is_other = |c: &ClassIndex| *c == class || search.is_live(*c) != self.live[*c];
            let changed = (0..problem.classes.len()).filter(is_other).collect();
            return Some(finish(search, changed, class, fuel));
        }
        // The cheapest terms never make one. What can only be computed by way of the class itself is out.
        let mut problem = problem.clone();
        let terms = problem.terms(order);
        if problem.roots.iter().any(|root| terms[*root].is_none()) {
            return None;
        }
        for list in &mut problem.candidates {
            list.retain(|candidate| candidate.children.iter().all(|child| terms[*child].is_some()));
        }
        let chosen = problem.terms(order).iter().map(|term| term.map_or(0, |(_, i)| i)).collect();
        let all = (0..problem.classes.len()).collect();
        Some(finish(Search::new(&problem, order, chosen, *fuel), all, class, fuel))
    }

    /// Does the chosen graph below `class` come back to it? Where there is no fuel to find out, yes.
    fn is_cyclic(&self, class: ClassIndex, chosen: &[usize], fuel: &mut Fuel) -> bool {
        let Solution { problem, order, .. } = &self.solution;
        let mut seen = vec![false; problem.classes.len()];
        let mut queue = VecDeque::from([class]);
        while let Some(at) = queue.pop_front() {
            for child in &problem.candidates[at][chosen[at]].children {
                if *child == class {
                    return true;
                }
                if order.are_entangled(class, *child) && !seen[*child] {
                    seen[*child] = true;
                    if !fuel.spend(1) {
                        return true;
                    }
                    queue.push_back(*child);
                }
            }
        }
        false
    }
}

fn finish(search: Search<'_>, changed: Vec<ClassIndex>, class: ClassIndex, fuel: &mut Fuel) -> Restricted {
    let (cost, used, left) = search.run_around(changed, class);
    *fuel = left;
    Restricted { cost, used, complete: left.0 > 0 }
}
