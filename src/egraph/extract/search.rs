//! Local search over a solution of an extraction problem, by exact marginal costs from reference counts.
//!
//! Three moves: another candidate for one class; the same followed by a round of repairs in its neighbourhood, kept only if
//! all together gain; and banning a class and re-routing its users. After the first round only the neighbourhood of what
//! has changed is looked at again. Everything is ordered by numbers of classes, which follow the program and the names of
//! rules, so ties never depend on hashes.

use std::collections::VecDeque;

use super::order::Order;
use super::{Candidate, ClassIndex, Problem};
use crate::egraph::cost::Cost;
use crate::egraph::matching::Fuel;

/// Undo information of one trial.
enum Change {
    Chosen(ClassIndex, usize),
    Refs(ClassIndex, u32),
}

pub(super) struct Search<'p> {
    problem: &'p Problem,
    order: &'p Order,
    chosen: Vec<usize>,
    /// How many chosen users and root entries each class has; 0 means not part of the solution.
    refs: Vec<u32>,
    cost: Cost,
    journal: Vec<Change>,
    /// For each class, the last walk that came by, and the number of walks.
    seen: Vec<u32>,
    walks: u32,
    /// Classes that kept moves of this round have changed.
    touched: Vec<ClassIndex>,
    fuel: Fuel,
}

/// Rounds over the classes that can have become worth a look; each round only goes on if the last one gained.
const MAX_ROUNDS: usize = 12;
/// Moves after a forced one that try to make it pay.
const MAX_REPAIRS: usize = 64;
/// How far around a change a class is looked at again.
const NEIGHBOURHOOD: usize = 2;

impl<'p> Search<'p> {
    /// A search that starts at `chosen`, a candidate for every class without a cycle among them.
    pub fn new(problem: &'p Problem, order: &'p Order, chosen: Vec<usize>, fuel: Fuel) -> Self {
        let n = problem.classes.len();
        let mut search = Search {
            problem,
            order,
            chosen,
            refs: vec![0; n],
            cost: 0,
            journal: Vec::new(),
            seen: vec![0; n],
            walks: 0,
            touched: Vec::new(),
            fuel,
        };
        for root in &problem.roots {
            search.acquire(*root);
        }
        search.journal.clear();
        search
    }

    /// A candidate for every class, what all that the roots need costs, and whether the search ended by itself.
    pub fn run(mut self) -> (Vec<usize>, Cost, bool) {
        self.rounds((0..self.refs.len()).collect());
        (self.chosen, self.cost, self.fuel.0 > 0)
    }

    /// Searches around classes in which the start differs from a solution. The cost, whether `class` is part of what was found, and the
    /// fuel that is left.
    pub fn run_around(mut self, changed: Vec<ClassIndex>, class: ClassIndex) -> (Cost, bool, Fuel) {
        self.touched = changed;
        let near = self.neighbourhood();
        self.rounds(near);
        (self.cost, self.is_live(class), self.fuel)
    }

    fn rounds(&mut self, mut look_at: Vec<ClassIndex>) {
        for _ in 0..MAX_ROUNDS {
            for class in &look_at {
                self.improve(*class);
                self.keep();
            }
            for class in &look_at {
                self.force(*class);
            }
            for class in &look_at {
                self.ban(*class);
                self.keep();
            }
            if self.touched.is_empty() || self.fuel.0 == 0 {
                break;
            }
            look_at = self.neighbourhood();
        }
    }

    /// What has changed stays so.
    fn keep(&mut self) {
        self.touched.extend(self.journal.drain(..).map(|change| match change {
            Change::Chosen(class, _) | Change::Refs(class, _) => class,
        }));
    }

    /// The classes around those that have changed, which are thereby forgotten.
    fn neighbourhood(&mut self) -> Vec<ClassIndex> {
        let mut all = std::mem::take(&mut self.touched);
        all.sort_unstable();
        all.dedup();
        for _ in 0..NEIGHBOURHOOD {
            let users: Vec<ClassIndex> = all.iter().flat_map(|class| self.order.users(*class)).copied().collect();
            all.extend(users);
            all.sort_unstable();
            all.dedup();
        }
        all
    }

    fn candidate(&self, class: ClassIndex) -> &'p Candidate {
        &self.problem.candidates[class][self.chosen[class]]
    }

    /// Is the class part of the solution?
    pub fn is_live(&self, class: ClassIndex) -> bool {
        self.refs[class] > 0
    }

    /// Adds one use of a class, and with the first its cost and the uses it makes.
    fn acquire(&mut self, class: ClassIndex) {
        let mut stack = vec![class];
        while let Some(class) = stack.pop() {
            self.journal.push(Change::Refs(class, self.refs[class]));
            self.refs[class] += 1;
            if self.refs[class] == 1 {
                self.fuel.spend(1);
                let candidate = self.candidate(class);
                self.cost = self.cost.saturating_add(candidate.cost);
                stack.extend(&candidate.children);
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
                self.fuel.spend(1);
                let candidate = self.candidate(class);
                self.cost = self.cost.saturating_sub(candidate.cost);
                stack.extend(&candidate.children);
            }
        }
    }

    /// Switches a class of the solution to another candidate.
    fn switch(&mut self, class: ClassIndex, to: usize) {
        let (old, new) = (self.candidate(class), &self.problem.candidates[class][to]);
        self.journal.push(Change::Chosen(class, self.chosen[class]));
        self.chosen[class] = to;
        self.cost = self.cost.saturating_sub(old.cost).saturating_add(new.cost);
        // New uses first, so that what both need is not dropped and added again.
        for child in new.children.iter().filter(|c| !old.children.contains(c)) {
            self.acquire(*child);
        }
        for child in old.children.iter().filter(|c| !new.children.contains(c)) {
            self.release(*child);
        }
    }

    /// Back to where the journal had `mark` entries, at cost `cost`.
    fn undo(&mut self, mark: usize, cost: Cost) {
        for change in self.journal.drain(mark..).rev() {
            match change {
                Change::Chosen(class, chosen) => self.chosen[class] = chosen,
                Change::Refs(class, refs) => self.refs[class] = refs,
            }
        }
        self.cost = cost;
    }

    /// Would the chosen graph below `class` come back to it? Where that is no longer to be found out, yes.
    fn is_cyclic(&mut self, class: ClassIndex, candidate: usize) -> bool {
        // A way back never leaves the component.
        let (order, problem) = (self.order, self.problem);
        let near = |of: &'p [ClassIndex]| of.iter().copied().filter(move |c| order.are_entangled(class, *c));
        let mut stack: Vec<ClassIndex> = near(&problem.candidates[class][candidate].children).collect();
        if stack.is_empty() {
            return false;
        }
        self.walks += 1;
        while let Some(at) = stack.pop() {
            if at == class || !self.fuel.spend(1) {
                return true;
            }
            if self.seen[at] != self.walks {
                self.seen[at] = self.walks;
                stack.extend(near(&self.candidate(at).children));
            }
        }
        false
    }

    /// Can the switch of a class of the solution to `candidate` gain at all? Only if it pays for itself and for what would
    /// enter with it at once, or if something would leave.
    fn can_gain(&self, class: ClassIndex, candidate: usize) -> bool {
        let (old, new) = (self.candidate(class), &self.problem.candidates[class][candidate]);
        if old.children.iter().any(|c| self.refs[*c] == 1 && !new.children.contains(c)) {
            return true;
        }
        let entering = new.children.iter().filter(|c| !self.is_live(**c)).map(|c| self.candidate(*c).cost);
        entering.fold(new.cost, Cost::saturating_add) < old.cost
    }

    /// Tries every other candidate of a class of the solution; keeps the best if it gains.
    fn improve(&mut self, class: ClassIndex) -> bool {
        let mut gained = false;
        if !self.is_live(class) {
            return gained;
        }
        for candidate in 0..self.problem.candidates[class].len() {
            let is_other = candidate != self.chosen[class];
            if !is_other || !self.can_gain(class, candidate) || self.is_cyclic(class, candidate) {
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
        for candidate in 0..self.problem.candidates[class].len() {
            if !self.is_live(class) || candidate == self.chosen[class] || self.is_cyclic(class, candidate) {
                continue;
            }
            let (mark, before) = (self.journal.len(), self.cost);
            self.switch(class, candidate);
            // Classes that newly entered the solution may now be cheap for others.
            let entered = self.entered(mark);
            if !entered.is_empty() {
                self.repair(&entered, class);
            }
            if self.cost >= before {
                self.undo(mark, before);
            }
            self.keep();
        }
    }

    /// The classes that are part of the solution and were not when the journal had `mark` entries.
    fn entered(&mut self, mark: usize) -> Vec<ClassIndex> {
        self.walks += 1;
        let mut entered = Vec::new();
        for change in &self.journal[mark..] {
            if let Change::Refs(class, refs) = change
                && self.seen[*class] != self.walks
            {
                self.seen[*class] = self.walks;
                if *refs == 0 && self.refs[*class] > 0 {
                    entered.push(*class);
                }
            }
        }
        entered
    }

    /// Improves the classes that have a candidate needing one of `entered`, but not `fixed`.
    fn repair(&mut self, entered: &[ClassIndex], fixed: ClassIndex) {
        let mut queue: VecDeque<ClassIndex> = VecDeque::new();
        let mut left = MAX_REPAIRS;
        self.enqueue(entered, fixed, &mut queue);
        while let Some(class) = queue.pop_front() {
            if left == 0 {
                break;
            }
            left -= 1;
            let mark = self.journal.len();
            if self.improve(class) {
                let entered = self.entered(mark);
                self.enqueue(&entered, fixed, &mut queue);
            }
        }
    }

    fn enqueue(&self, entered: &[ClassIndex], fixed: ClassIndex, queue: &mut VecDeque<ClassIndex>) {
        for class in entered {
            for user in std::iter::once(class).chain(self.order.users(*class)) {
                let has_choice = self.is_live(*user) && self.problem.candidates[*user].len() > 1;
                if has_choice && *user != fixed && queue.len() < MAX_REPAIRS && !queue.contains(user) {
                    queue.push_back(*user);
                }
            }
        }
    }

    /// Moves every user of a class to a form without it; keeps it only if all together gain.
    fn ban(&mut self, class: ClassIndex) {
        if self.refs[class] < 2 || self.problem.roots.contains(&class) {
            return;
        }
        let (order, problem) = (self.order, self.problem);
        let users = order.users(class).iter().copied();
        let users: Vec<ClassIndex> =
            users.filter(|u| self.is_live(*u) && self.candidate(*u).children.contains(&class)).collect();
        let has_other = |user: &ClassIndex| problem.candidates[*user].iter().any(|c| !c.children.contains(&class));
        if !users.iter().all(has_other) {
            return;
        }
        let (mark, before) = (self.journal.len(), self.cost);
        for user in users {
            if !self.is_live(user) {
                continue;
            }
            let mut best: Option<(Cost, usize)> = None;
            for candidate in 0..problem.candidates[user].len() {
                let has = problem.candidates[user][candidate].children.contains(&class);
                if has || self.is_cyclic(user, candidate) {
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
        self.repair(&entered, class);
        if self.cost >= before {
            self.undo(mark, before);
        }
    }
}
