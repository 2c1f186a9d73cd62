//! What floats joins the copy that it is used in first: the weights of a layer, and what is made of them.

use std::collections::BTreeSet;

use super::runs::Stretch;
use super::{Block, Item};

/// How long a chain of what floats may be to join whole.
const PASSES: usize = 4;

/// Where an item belongs: block, copy, place in the copy.
type Home = Option<(usize, usize, usize)>;

/// Adds to each block what floats and is used, before anything else needs it, by each copy in the same way.
pub fn absorb(items: &[Item], order: &[usize], stretches: &[Stretch], blocks: &mut [Block]) {
    let mut users: Vec<Vec<(usize, usize)>> = vec![Vec::new(); items.len()];
    for (u, item) in items.iter().enumerate() {
        for (o, operand) in item.operands.iter().enumerate() {
            users[operand.item].push((u, o));
        }
    }
    let first = first_uses(items, order, &users);
    let mut home: Vec<Home> = vec![None; items.len()];
    for (b, block) in blocks.iter().enumerate() {
        for (c, copy) in block.copies.iter().enumerate() {
            copy.iter().enumerate().for_each(|(m, item)| home[*item] = Some((b, c, m)));
        }
    }
    for (b, block) in blocks.iter_mut().enumerate() {
        let end = stretches[b].end();
        // What is made of a weight joins before the weight, which may take a pass for each.
        for _ in 0..PASSES {
            let before = block.copies[0].len();
            // Members are added while they are walked over.
            let mut seen = BTreeSet::new();
            let mut m = 0;
            while m < block.copies[0].len() {
                for o in 0..items[block.copies[0][m]].operands.len() {
                    if !seen.insert(items[block.copies[0][m]].operands[o].item) {
                        continue;
                    }
                    let group: Vec<usize> = block.copies.iter().map(|copy| items[copy[m]].operands[o].item).collect();
                    if joins(items, &group, (b, end), &home, &users, &first) {
                        for (c, item) in group.into_iter().enumerate() {
                            home[item] = Some((b, c, block.copies[c].len()));
                            block.copies[c].push(item);
                        }
                    }
                }
                m += 1;
            }
            if block.copies[0].len() == before {
                break;
            }
        }
    }
}

/// Does one item for each copy of a block, which ends at `end`, belong into it?
fn joins(
    items: &[Item],
    group: &[usize],
    (block, end): (usize, usize),
    home: &[Home],
    users: &[Vec<(usize, usize)>],
    first: &[usize],
) -> bool {
    let Some(head) = group.first().and_then(|i| items.get(*i)) else { return false };
    let mut sorted = group.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let fits = |item: &usize| items[*item].floats && home[*item].is_none() && items[*item].key == head.key;
    if sorted.len() != group.len() || !group.iter().all(fits) {
        return false;
    }
    // Who uses it within the copy, which must be the same for all copies; nobody else before the block has ended.
    let uses = |(c, item): (usize, &usize)| -> Option<Vec<(usize, usize)>> {
        let mut here = Vec::new();
        for (u, o) in &users[*item] {
            match home[*u] {
                Some((b, copy, m)) if b == block && copy == c => here.push((m, *o)),
                Some((b, ..)) if b == block => return None,
                _ if first[*u] >= end => {}
                _ => return None,
            }
        }
        here.sort_unstable();
        Some(here)
    };
    let mut all = group.iter().enumerate().map(uses);
    let pattern = all.next().flatten();
    pattern.is_some() && all.all(|uses| uses == pattern)
}

/// Where in the order each item stands, or is used first if it floats.
fn first_uses(items: &[Item], order: &[usize], users: &[Vec<(usize, usize)>]) -> Vec<usize> {
    let mut first = vec![usize::MAX; items.len()];
    order.iter().enumerate().for_each(|(i, item)| first[*item] = i);
    // Users that float are few between an item and the order; users have larger numbers than what they use.
    for item in (0..items.len()).rev() {
        if items[item].floats {
            first[item] = users[item].iter().map(|(u, _)| first[*u]).min().unwrap_or(usize::MAX);
        }
    }
    first
}
