//! Extraction: the cheapest graph, shared values paid once.
//!
//! A tree solution (cheapest term of every class, sharing ignored) is the start. A local search then minimises the
//! true cost of the DAG, by exact marginal costs from reference counts. Three moves: another e-node for one class;
//! the same followed by a round of repairs in its neighbourhood, kept only if all together gain; and banning a class
//! and re-routing its users. Everything is ordered by ids, which follow rule names, so ties never depend on hashes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use egg::Id;

use super::cost::{Cost, cost};
use super::language::{ENode, split_call};
use super::matching::Fuel;
use super::space::Space;
use crate::ir::TensorType;

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
pub struct Problem {
    pub classes: Vec<Id>,
    /// Cheapest first; ties by operator name, then attributes.
    pub candidates: Vec<Vec<Candidate>>,
    pub roots: Vec<ClassIndex>,
}

/// A candidate for each class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub chosen: Vec<usize>,
    /// Cost of everything reachable from the roots.
    pub cost: Cost,
    /// Did the search end by itself, and not because it ran out of steps?
    pub complete: bool,
}

impl Problem {
    /// The problem of computing `roots`: all classes that some form of a root can need.
    pub fn new(space: &Space, roots: &[Id]) -> Problem {
        let egraph = &space.egraph;
        let mut index: BTreeMap<Id, ClassIndex> = BTreeMap::new();
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
                let Some(own) = node_cost(space, id, node) else { continue };
                let mut children = Vec::new();
                if let ENode::Op(op, all) = node {
                    let (operands, _) = split_call(egraph, *op, all);
                    children = operands.iter().map(|o| enter(*o, &mut queue)).collect();
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
    pub fn tree(&self, banned: Option<ClassIndex>) -> Vec<Option<(Cost, usize)>> {
        let n = self.classes.len();
        let mut users: Vec<Vec<ClassIndex>> = vec![Vec::new(); n];
        for (class, list) in self.candidates.iter().enumerate() {
            for candidate in list {
                for child in &candidate.children {
                    if users[*child].last() != Some(&class) {
                        users[*child].push(class);
                    }
                }
            }
        }
        let mut best: Vec<Option<(Cost, usize)>> = vec![None; n];
        let mut queue: VecDeque<ClassIndex> = (0..n).rev().collect();
        let mut queued = vec![true; n];
        while let Some(class) = queue.pop_front() {
            queued[class] = false;
            if Some(class) == banned {
                continue;
            }
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
                for user in &users[class] {
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
    pub fn solve(&self) -> Option<Choice> {
        self.solve_within(Fuel(STEPS + STEPS_PER_CLASS * self.classes.len()))
    }

    /// The same by no more steps than `fuel` allows.
    fn solve_within(&self, fuel: Fuel) -> Option<Choice> {
        let tree = self.tree(None);
        if self.roots.iter().any(|r| tree[*r].is_none()) {
            return None;
        }
        let mut search = Search::new(self, &tree, fuel);
        search.run();
        Some(Choice { cost: search.cost, chosen: search.chosen, complete: search.fuel.0 > 0 })
    }

    /// The cost of a choice, counted afresh.
    pub fn cost_of(&self, chosen: &[usize]) -> Cost {
        let order = self.order(chosen);
        order.iter().fold(0, |sum, c| sum.saturating_add(self.candidates[*c][chosen[*c]].cost))
    }

    /// Everything that the roots need, operands first; roots in their order.
    pub fn order(&self, chosen: &[usize]) -> Vec<ClassIndex> {
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

fn node_cost(space: &Space, class: Id, node: &ENode) -> Option<Cost> {
    match node {
        ENode::Input(_) => Some(0),
        ENode::Attr(_) | ENode::Vjp(..) => None,
        ENode::Op(op, children) => {
            let (operands, attrs) = split_call(&space.egraph, *op, children);
            let types: Option<Vec<&TensorType>> = operands.iter().map(|o| space.ty(*o).map(|t| &**t)).collect();
            cost(space.registry(), *op, &types?, &attrs, space.ty(class)?)
        }
    }
}

/// Undo information of one trial.
enum Change {
    Chosen(ClassIndex, usize),
    Refs(ClassIndex, u32),
}

struct Search<'p> {
    problem: &'p Problem,
    chosen: Vec<usize>,
    /// How many chosen users and root entries each class has; 0 means not part of the solution.
    refs: Vec<u32>,
    cost: Cost,
    journal: Vec<Change>,
    /// For each class, the classes with a candidate that needs it.
    users: Vec<Vec<ClassIndex>>,
    /// For each class, the last walk that came by, and the number of walks.
    seen: Vec<u32>,
    walks: u32,
    fuel: Fuel,
}

/// Classes that the search may look at, in all and for each class. A walk below a candidate can meet the whole graph, and
/// there is one for every candidate.
const STEPS: usize = 20_000_000;
const STEPS_PER_CLASS: usize = 1_000;
/// Rounds over all classes; each round only goes on if the last one gained, so this is rarely met.
const MAX_ROUNDS: usize = 12;
/// Moves after a forced one that try to make it pay.
const MAX_REPAIRS: usize = 64;

impl<'p> Search<'p> {
    fn new(problem: &'p Problem, tree: &[Option<(Cost, usize)>], fuel: Fuel) -> Self {
        let n = problem.classes.len();
        let mut users: Vec<Vec<ClassIndex>> = vec![Vec::new(); n];
        for (class, list) in problem.candidates.iter().enumerate() {
            for child in list.iter().flat_map(|c| &c.children) {
                if users[*child].last() != Some(&class) {
                    users[*child].push(class);
                }
            }
        }
        let mut search = Search {
            problem,
            chosen: tree.iter().map(|t| t.map_or(usize::MAX, |(_, i)| i)).collect(),
            refs: vec![0; n],
            cost: 0,
            journal: Vec::new(),
            users,
            seen: vec![0; n],
            walks: 0,
            fuel,
        };
        for root in &problem.roots {
            search.acquire(*root);
        }
        search.journal.clear();
        search
    }

    fn run(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let before = self.cost;
            for class in 0..self.refs.len() {
                self.improve(class);
            }
            for class in 0..self.refs.len() {
                self.force(class);
            }
            for class in 0..self.refs.len() {
                self.ban(class);
            }
            if self.cost >= before || self.fuel.0 == 0 {
                break;
            }
        }
    }

    fn children(&self, class: ClassIndex) -> &'p [ClassIndex] {
        &self.problem.candidates[class][self.chosen[class]].children
    }

    /// Adds one use of a class, and with the first its cost and the uses it makes.
    fn acquire(&mut self, class: ClassIndex) {
        let mut stack = vec![class];
        while let Some(class) = stack.pop() {
            self.journal.push(Change::Refs(class, self.refs[class]));
            self.refs[class] += 1;
            if self.refs[class] == 1 {
                self.cost = self.cost.saturating_add(self.problem.candidates[class][self.chosen[class]].cost);
                stack.extend(self.children(class));
            }
        }
    }

    /// Takes one use away, and with the last the cost and the uses it makes.
    fn release(&mut self, class: ClassIndex) {
        let mut stack = vec![class];
        while let Some(class) = stack.pop() {
            self.journal.push(Change::Refs(class, self.refs[class]));
            self.refs[class] -= 1;
            if self.refs[class] == 0 {
                self.cost = self.cost.saturating_sub(self.problem.candidates[class][self.chosen[class]].cost);
                stack.extend(self.children(class));
            }
        }
    }

    /// Switches a class of the solution to another candidate.
    fn switch(&mut self, class: ClassIndex, to: usize) {
        let problem = self.problem;
        let (old, new) = (&problem.candidates[class][self.chosen[class]], &problem.candidates[class][to]);
        self.journal.push(Change::Chosen(class, self.chosen[class]));
        self.chosen[class] = to;
        self.cost = self.cost.saturating_sub(old.cost).saturating_add(new.cost);
        // New uses first, so that what both need is not dropped and added again.
        for child in &new.children {
            self.acquire(*child);
        }
        for child in &old.children {
            self.release(*child);
        }
    }

    /// Back to where the journal had `mark` entries, at cost `cost`.
    fn undo(&mut self, mark: usize, cost: Cost) {
        while self.journal.len() > mark {
            match self.journal.pop() {
                Some(Change::Chosen(class, chosen)) => self.chosen[class] = chosen,
                Some(Change::Refs(class, refs)) => self.refs[class] = refs,
                None => break,
            }
        }
        self.cost = cost;
    }

    /// Would the chosen graph below `class` come back to it? Where that is no longer to be found out, yes.
    fn cyclic(&mut self, class: ClassIndex, candidate: usize) -> bool {
        self.walks += 1;
        let mut stack: Vec<ClassIndex> = self.problem.candidates[class][candidate].children.clone();
        while let Some(at) = stack.pop() {
            if at == class || self.chosen[at] == usize::MAX || !self.fuel.spend(1) {
                return true;
            }
            if self.seen[at] != self.walks {
                self.seen[at] = self.walks;
                stack.extend(self.children(at));
            }
        }
        false
    }

    /// Tries every other candidate of a class of the solution; keeps the best if it gains.
    fn improve(&mut self, class: ClassIndex) -> bool {
        if self.refs[class] == 0 || self.problem.candidates[class].len() < 2 {
            return false;
        }
        let mut gained = false;
        for candidate in 0..self.problem.candidates[class].len() {
            if candidate == self.chosen[class] || self.cyclic(class, candidate) {
                continue;
            }
            let (mark, before) = (self.journal.len(), self.cost);
            self.switch(class, candidate);
            if self.cost < before {
                gained = true;
            } else {
                self.undo(mark, before);
            }
        }
        gained
    }

    /// Switches a class against its cost, then lets the neighbourhood profit; keeps it only if all together gain.
    fn force(&mut self, class: ClassIndex) {
        if self.refs[class] == 0 {
            return;
        }
        for candidate in 0..self.problem.candidates[class].len() {
            if self.refs[class] == 0 || candidate == self.chosen[class] || self.cyclic(class, candidate) {
                continue;
            }
            let (mark, before) = (self.journal.len(), self.cost);
            self.switch(class, candidate);
            // Classes that newly entered the solution may now be cheap for others.
            let entered = self.entered(mark);
            self.repair(entered, class);
            if self.cost >= before {
                self.undo(mark, before);
            }
        }
    }

    fn entered(&self, mark: usize) -> BTreeSet<ClassIndex> {
        let mut entered = BTreeSet::new();
        for change in &self.journal[mark..] {
            if let Change::Refs(class, 0) = change
                && self.refs[*class] > 0
            {
                entered.insert(*class);
            }
        }
        entered
    }

    /// Improves the classes that have a candidate needing one of `entered`, but not `fixed`.
    fn repair(&mut self, entered: BTreeSet<ClassIndex>, fixed: ClassIndex) {
        let mut queue: VecDeque<ClassIndex> = VecDeque::new();
        let mut queued: BTreeSet<ClassIndex> = BTreeSet::new();
        for class in entered {
            for user in std::iter::once(&class).chain(&self.users[class]) {
                if queued.insert(*user) {
                    queue.push_back(*user);
                }
            }
        }
        let mut left = MAX_REPAIRS;
        while let Some(class) = queue.pop_front() {
            if left == 0 {
                break;
            }
            left -= 1;
            queued.remove(&class);
            if class == fixed {
                continue;
            }
            let mark = self.journal.len();
            if self.improve(class) {
                for entered in self.entered(mark) {
                    for user in &self.users[entered] {
                        if queued.insert(*user) {
                            queue.push_back(*user);
                        }
                    }
                }
            }
        }
    }

    /// Moves every user of a class to a form without it; keeps it only if all together gain.
    fn ban(&mut self, class: ClassIndex) {
        if self.refs[class] < 2 || self.problem.roots.contains(&class) {
            return;
        }
        let (mark, before) = (self.journal.len(), self.cost);
        let users: Vec<ClassIndex> = self.users[class].clone();
        for user in users {
            if self.refs[user] == 0 || !self.children(user).contains(&class) {
                continue;
            }
            let mut best: Option<(Cost, usize)> = None;
            for candidate in 0..self.problem.candidates[user].len() {
                let has = self.problem.candidates[user][candidate].children.contains(&class);
                if has || self.cyclic(user, candidate) {
                    continue;
                }
                let (mark, before) = (self.journal.len(), self.cost);
                self.switch(user, candidate);
                if best.is_none_or(|(cost, _)| self.cost < cost) {
                    best = Some((self.cost, candidate));
                }
                self.undo(mark, before);
            }
            let Some((_, candidate)) = best else {
                self.undo(mark, before);
                return;
            };
            self.switch(user, candidate);
        }
        let entered = self.entered(mark);
        self.repair(entered, class);
        if self.cost >= before {
            self.undo(mark, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::AttrValue;

    /// A problem from rows of (class, cost, children).
    fn problem(classes: usize, rows: &[(usize, Cost, &[usize])], roots: &[usize]) -> Problem {
        let mut candidates: Vec<Vec<Candidate>> = vec![Vec::new(); classes];
        for (i, (class, cost, children)) in rows.iter().enumerate() {
            candidates[*class].push(Candidate {
                node: ENode::Attr(AttrValue::Int(i as i64)),
                cost: *cost,
                children: children.to_vec(),
            });
        }
        Problem { classes: (0..classes).map(Id::from).collect(), candidates, roots: roots.to_vec() }
    }

    /// All combinations.
    fn optimum(problem: &Problem) -> Cost {
        let mut best = Cost::MAX;
        let sizes: Vec<usize> = problem.candidates.iter().map(Vec::len).collect();
        let total: usize = sizes.iter().product();
        for mut code in 0..total {
            let mut chosen = Vec::new();
            for size in &sizes {
                chosen.push(code % size);
                code /= size;
            }
            if acyclic(problem, &chosen) {
                best = best.min(problem.cost_of(&chosen));
            }
        }
        best
    }

    fn acyclic(problem: &Problem, chosen: &[usize]) -> bool {
        let order = problem.order(chosen);
        let place: BTreeMap<usize, usize> = order.iter().enumerate().map(|(i, c)| (*c, i)).collect();
        order.iter().all(|c| problem.candidates[*c][chosen[*c]].children.iter().all(|k| place[k] < place[c]))
    }

    #[test]
    fn sharing_beats_the_tree_solution() {
        // Two roots, each cheaper alone (7 and 6.6); through a shared class 4 both cost 0.5 beyond 10.
        let p = problem(
            5,
            &[(0, 70, &[2]), (0, 5, &[4]), (1, 66, &[2]), (1, 5, &[4]), (2, 0, &[]), (3, 0, &[]), (4, 100, &[2])],
            &[0, 1],
        );
        let found = p.solve().unwrap();
        assert_eq!(found.cost, 110);
        assert_eq!(found.cost, optimum(&p));
        assert_eq!(found.cost, p.cost_of(&found.chosen));
    }

    #[test]
    fn random_problems_stay_close_to_the_optimum() {
        // A linear congruential sequence: the same problems on every machine.
        let mut state: u64 = 12345;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let (mut sum, mut best) = (0, 0);
        for _ in 0..60 {
            let mut rows: Vec<(usize, Cost, Vec<usize>)> = Vec::new();
            for class in 0..9usize {
                for _ in 0..=next(2) {
                    let mut children: Vec<usize> = Vec::new();
                    for _ in 0..next(3) {
                        if class < 8 {
                            children.push(class + 1 + next(8 - class as u64) as usize);
                        }
                    }
                    children.sort_unstable();
                    children.dedup();
                    rows.push((class, 1 + next(50), children));
                }
            }
            let rows: Vec<(usize, Cost, &[usize])> = rows.iter().map(|(a, b, c)| (*a, *b, c.as_slice())).collect();
            let p = problem(9, &rows, &[0, 1]);
            let found = p.solve().unwrap();
            assert_eq!(found.cost, p.cost_of(&found.chosen));
            assert!(acyclic(&p, &found.chosen));
            sum += found.cost;
            best += optimum(&p);
        }
        assert!(sum as f64 <= best as f64 * 1.005, "{sum} against the optimum {best}");
    }

    #[test]
    fn cycles_are_never_chosen() {
        // 0 and 1 can each be had from the other for 1, or from 2 for 50.
        let p = problem(3, &[(0, 1, &[1]), (0, 50, &[2]), (1, 1, &[0]), (1, 50, &[2]), (2, 1, &[])], &[0, 1]);
        let found = p.solve().unwrap();
        assert!(acyclic(&p, &found.chosen));
        assert_eq!(found.cost, 52);
    }

    #[test]
    fn out_of_steps_the_choice_is_right_and_says_so() {
        let rows: [(usize, Cost, &[usize]); 7] =
            [(0, 70, &[2]), (0, 5, &[4]), (1, 66, &[2]), (1, 5, &[4]), (2, 0, &[]), (3, 0, &[]), (4, 100, &[2])];
        let p = problem(5, &rows, &[0, 1]);
        for fuel in 0..20 {
            let found = p.solve_within(Fuel(fuel)).unwrap();
            assert!(acyclic(&p, &found.chosen) && found.cost == p.cost_of(&found.chosen));
            assert!(found.cost <= 136 && (found.complete || fuel < 19), "{fuel}: {found:?}");
        }
        assert!(!p.solve_within(Fuel(0)).unwrap().complete && p.solve().unwrap().complete);
    }

    #[test]
    fn a_class_without_candidates_has_no_solution() {
        assert!(problem(2, &[(0, 1, &[1])], &[0]).solve().is_none());
    }
}
