//! What of an extraction problem never changes while candidates are chosen: who can use what, and which classes can come
//! to depend on each other.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::{ClassIndex, Problem};

#[derive(Clone, Debug)]
pub(super) struct Order {
    /// The classes, operands before users but within a component.
    pub classes: Vec<ClassIndex>,
    /// The strongly connected component of each class, over all candidates: a cycle never leaves one.
    component: Vec<u32>,
    /// Where the users of each class begin in `all_users`.
    first_user: Vec<u32>,
    all_users: Vec<ClassIndex>,
}

impl Order {
    pub fn new(problem: &Problem) -> Order {
        let n = problem.classes.len();
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for (class, list) in problem.candidates.iter().enumerate() {
            edges.extend(list.iter().flat_map(|c| &c.children).map(|child| (*child as u32, class as u32)));
        }
        edges.sort_unstable();
        edges.dedup();
        let mut first_user = vec![0; n + 1];
        for (child, _) in &edges {
            first_user[*child as usize + 1] += 1;
        }
        for i in 0..n {
            first_user[i + 1] += first_user[i];
        }
        let all_users: Vec<ClassIndex> = edges.iter().map(|(_, user)| *user as usize).collect();
        let mut graph: DiGraph<(), (), u32> = DiGraph::with_capacity(n, edges.len());
        for _ in 0..n {
            graph.add_node(());
        }
        for (child, user) in edges {
            graph.add_edge(NodeIndex::new(user as usize), NodeIndex::new(child as usize), ());
        }
        // Components come operands first.
        let mut component = vec![0; n];
        let mut classes = Vec::with_capacity(n);
        for (i, mut members) in kosaraju_scc(&graph).into_iter().enumerate() {
            members.sort_unstable();
            for class in members {
                component[class.index()] = i as u32;
                classes.push(class.index());
            }
        }
        Order { classes, component, first_user, all_users }
    }

    /// The classes with a candidate that needs `class`, ascending.
    pub fn users(&self, class: ClassIndex) -> &[ClassIndex] {
        &self.all_users[self.first_user[class] as usize..self.first_user[class + 1] as usize]
    }

    /// Can each of two classes depend on the other?
    pub fn are_entangled(&self, a: ClassIndex, b: ClassIndex) -> bool {
        self.component[a] == self.component[b]
    }
}
