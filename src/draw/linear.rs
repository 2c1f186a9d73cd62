//! A linear order of a graph in which layers are stretches, each like the next one.
//!
//! Values are taken depth first: what has just been computed is used at once, along the shortest way to a result first (a gradient),
//! then along longer ones. The forward part comes first. What a gradient takes from it (a transposed activation, the derivative of a
//! nonlinearity) stands where it is needed. Inputs, constants, and what is made of one of them alone float: they have no place.

use crate::ir::{Graph, NodeId, NodeKind};

/// Longest chain from an input that floats.
const FLOATING: u32 = 3;
/// How far from the forward part a backward value stands where it is needed.
const NEAR: u32 = 3;

/// The order of the nodes that do not float, and which ones do.
pub struct Linear {
    pub order: Vec<usize>,
    pub floats: Vec<bool>,
}

/// Orders a graph. `backward`: values that are there for a gradient; `keys`: equal for values that are computed alike;
/// `more`: reads that are no operands.
pub fn linear(graph: &Graph, backward: &[bool], keys: &[u32], reads: &[Vec<usize>]) -> Linear {
    let count = graph.len();
    let floats = floating(graph, reads);
    // What depends on a backward value comes with them.
    let mut late = vec![false; count];
    for v in 0..count {
        late[v] = !floats[v] && (backward[v] || reads[v].iter().any(|u| late[*u]));
    }
    let near = near(reads, &late, &floats);
    let mut users = vec![Vec::new(); count];
    for (v, reads) in reads.iter().enumerate() {
        reads.iter().for_each(|u| users[*u].push(v));
    }
    let mut height = vec![0u32; count];
    for v in (0..count).rev() {
        for u in &reads[v] {
            height[*u] = height[*u].max(height[v] + 1);
        }
    }
    let mut walk = Walk {
        reads,
        users: &users,
        height: &height,
        keys,
        floats: &floats,
        late: &late,
        near: &near,
        done: floats.clone(),
        order: Vec::with_capacity(count),
    };
    for part in [false, true] {
        walk.part(part);
    }
    Linear { order: walk.order, floats }
}

/// Inputs, constants, and short chains from one of them.
fn floating(graph: &Graph, reads: &[Vec<usize>]) -> Vec<bool> {
    let mut far: Vec<Option<u32>> = Vec::with_capacity(graph.len());
    // Constants are no reason to have a place.
    let mut constant = vec![false; graph.len()];
    for (v, reads) in reads.iter().enumerate() {
        let kind = &graph.node(NodeId(v as u32)).kind;
        let mut others = reads.iter().filter(|u| !constant[**u]);
        far.push(match (kind, others.next(), others.next()) {
            (NodeKind::Input, ..) => Some(0),
            (NodeKind::Op { .. }, None, _) => {
                constant[v] = reads.is_empty();
                reads.is_empty().then_some(0)
            }
            (NodeKind::Op { .. } | NodeKind::Param { .. }, Some(u), None) => {
                far[*u].filter(|_| !constant[*u]).map(|f| f + 1).filter(|f| *f <= FLOATING)
            }
            _ => None,
        });
    }
    far.iter().map(Option::is_some).collect()
}

/// Backward values that are few steps from the forward part, and that others read.
fn near(reads: &[Vec<usize>], late: &[bool], floats: &[bool]) -> Vec<bool> {
    let mut steps = vec![0u32; reads.len()];
    for v in 0..reads.len() {
        if late[v] {
            steps[v] = reads[v].iter().map(|u| steps[*u] + 1).max().unwrap_or(1);
        }
    }
    let mut read = vec![false; reads.len()];
    reads.iter().flatten().for_each(|u| read[*u] = true);
    (0..reads.len()).map(|v| late[v] && !floats[v] && read[v] && steps[v] <= NEAR).collect()
}

struct Walk<'a> {
    reads: &'a [Vec<usize>],
    users: &'a [Vec<usize>],
    height: &'a [u32],
    keys: &'a [u32],
    floats: &'a [bool],
    late: &'a [bool],
    near: &'a [bool],
    done: Vec<bool>,
    order: Vec<usize>,
}

impl Walk<'_> {
    /// Orders the forward part, or the backward one.
    fn part(&mut self, late: bool) {
        let mine: Vec<usize> = (0..self.reads.len()).filter(|v| !self.floats[*v] && self.late[*v] == late).collect();
        let waits_for =
            |walk: &Self, v: usize| walk.reads[v].iter().filter(|u| !walk.done[**u] && !walk.near[**u]).count();
        let mut waits = vec![0usize; self.reads.len()];
        for v in &mine {
            waits[*v] = waits_for(self, *v);
        }
        let ready = |walk: &Self, v: usize| !walk.near[v] && walk.late[v] == late && !walk.done[v];
        let mut stack: Vec<usize> = mine.iter().copied().filter(|v| waits[*v] == 0 && ready(self, *v)).collect();
        // The last one is taken first. To begin with that is the start of the longest way: what else waits for nothing is needed later.
        stack.sort_by_key(|v| (self.height[*v], std::cmp::Reverse(*v)));
        while let Some(v) = stack.pop() {
            if self.done[v] {
                continue;
            }
            // Near values that it reads come first. Others may have waited for them too, and take their turn with it.
            let first = self.order.len();
            for u in &self.reads[v] {
                self.emit(*u);
            }
            let near = self.order.len();
            let mut next: Vec<usize> = self.order[first..near].iter().flat_map(|w| &self.users[*w]).copied().collect();
            next.retain(|u| waits[*u] == 0 && ready(self, *u) && *u != v);
            if next.is_empty() {
                self.emit(v);
                for u in &self.users[v] {
                    waits[*u] = waits[*u].saturating_sub(1);
                    if waits[*u] == 0 && ready(self, *u) {
                        next.push(*u);
                    }
                }
            } else {
                next.push(v);
            }
            // That from which the way to a result is shortest comes first, so that what ends here is not left behind.
            next.sort_by_key(|v| std::cmp::Reverse((self.height[*v], self.keys[*v], *v)));
            stack.extend(next);
        }
        // Near values that nothing reads, such as results.
        for v in mine {
            if !self.done[v] {
                self.emit(v);
            }
        }
    }

    /// Puts a value into the order, behind the near values that it reads.
    fn emit(&mut self, v: usize) {
        let mut stack = vec![(v, 0)];
        while let Some((v, i)) = stack.pop() {
            if self.done[v] {
                continue;
            }
            match self.reads[v].get(i) {
                Some(u) => {
                    stack.push((v, i + 1));
                    if !self.done[*u] {
                        stack.push((*u, 0));
                    }
                }
                None => {
                    self.done[v] = true;
                    self.order.push(v);
                }
            }
        }
    }
}
