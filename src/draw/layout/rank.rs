//! The rank of each box: the row it stands in. Edges lead from lower ranks to higher ones.

use super::Level;
use crate::draw::picture::Pin;

/// How often boxes are moved towards what they are connected with.
const ROUNDS: usize = 8;

/// Gives each box a rank, ranks being numbered from 0 without gaps, and says which edges had to be turned round for
/// that: those that would close a cycle.
pub fn ranks(level: &Level) -> (Vec<usize>, Vec<bool>) {
    let count = level.boxes.len();
    let order = order(level);
    let mut place = vec![0; count];
    order.iter().enumerate().for_each(|(i, v)| place[*v] = i);
    let turned: Vec<bool> = level.edges.iter().map(|(a, b)| place[*a] > place[*b]).collect();
    let (mut before, mut after) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for ((a, b), turned) in level.edges.iter().zip(&turned) {
        let (a, b) = if *turned { (*b, *a) } else { (*a, *b) };
        if a != b {
            after[a].push(b);
            before[b].push(a);
        }
    }
    // As high as possible.
    let mut rank = vec![0usize; count];
    for v in &order {
        rank[*v] = before[*v].iter().map(|u| rank[*u] + 1).max().unwrap_or(0);
    }
    // Then down to what reads it, where that makes more edges shorter than longer.
    for _ in 0..ROUNDS {
        let mut moved = false;
        for v in order.iter().rev() {
            let Some(last) = after[*v].iter().map(|w| rank[*w] - 1).min() else { continue };
            if last > rank[*v] && before[*v].len() <= after[*v].len() {
                rank[*v] = last;
                moved = true;
            }
        }
        // And up again, what has more above it.
        for v in &order {
            let first = before[*v].iter().map(|u| rank[*u] + 1).max().unwrap_or(0);
            if first < rank[*v] && before[*v].len() > after[*v].len() {
                rank[*v] = first;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let last = rank.iter().copied().max().unwrap_or(0);
    for (v, b) in level.boxes.iter().enumerate() {
        match b.pin {
            Pin::Top if before[v].is_empty() => rank[v] = 0,
            Pin::Bottom if after[v].is_empty() => rank[v] = last,
            _ => {}
        }
    }
    // Rows that nothing stands in are left out.
    let mut used = vec![false; last + 1];
    rank.iter().for_each(|r| used[*r] = true);
    let mut renamed = vec![0; last + 1];
    let mut next = 0;
    for (r, used) in used.iter().enumerate() {
        renamed[r] = next;
        next += usize::from(*used);
    }
    (rank.iter().map(|r| renamed[*r]).collect(), turned)
}

/// The boxes, sources first. Where there is a cycle, the first of its boxes goes ahead.
fn order(level: &Level) -> Vec<usize> {
    let count = level.boxes.len();
    let mut waits = vec![0usize; count];
    let mut after = vec![Vec::new(); count];
    for (a, b) in &level.edges {
        if a != b {
            waits[*b] += 1;
            after[*a].push(*b);
        }
    }
    let mut done = vec![false; count];
    let mut order = Vec::with_capacity(count);
    let mut ready: std::collections::VecDeque<usize> = (0..count).filter(|v| waits[*v] == 0).collect();
    let mut next = 0;
    while order.len() < count {
        let Some(v) = ready.pop_front() else {
            while done[next] {
                next += 1;
            }
            ready.push_back(next);
            continue;
        };
        if std::mem::replace(&mut done[v], true) {
            continue;
        }
        order.push(v);
        for w in &after[v] {
            waits[*w] = waits[*w].saturating_sub(1);
            if waits[*w] == 0 && !done[*w] {
                ready.push_back(*w);
            }
        }
    }
    order
}
