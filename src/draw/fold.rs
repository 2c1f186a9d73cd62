//! What repeats: stretches of a linear order that are copies of each other, such as the layers of a network.
//!
//! Items stand in a linear order, operands first. A stretch of it is a block of copies if each item of a copy has the same key
//! (operator, attributes, type) as the item at its place in the next copy, and operands of the same kind: an item at the same place of
//! its own or of an earlier copy, the same item outside for all copies, or one item of one key outside for each. Blocks are
//! stretches of a topological order, so that drawing each as one thing closes no cycle.

mod absorb;
mod runs;

/// Fewest copies of a block; of large ones two will do.
const FEWEST: usize = 3;
/// Fewest items that are worth hiding.
const WORTH: usize = 6;
/// From so many items on two copies are a block.
const LARGE: usize = 16;

/// One thing in the linear order.
#[derive(Clone, Debug)]
pub struct Item {
    /// Equal for items that do the same, whatever they do it to.
    pub key: u32,
    pub operands: Vec<Operand>,
    /// It has no place of its own in the order, but stands where it is first used: inputs, constants, and what is made of one of them.
    pub floats: bool,
}

/// A result of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operand {
    pub item: usize,
    pub result: u32,
}

/// Copies, each a list of items: those at one place do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub copies: Vec<Vec<usize>>,
}

/// The blocks of a list of items, in their order. `order` are those that do not float.
pub fn blocks(items: &[Item], order: &[usize]) -> Vec<Block> {
    let stretches = runs::stretches(items, order);
    let mut blocks: Vec<Block> = stretches
        .iter()
        .map(|s| Block {
            copies: (0..s.copies)
                .map(|c| order[s.start + c * s.period..s.start + (c + 1) * s.period].to_vec())
                .collect(),
        })
        .collect();
    absorb::absorb(items, order, &stretches, &mut blocks);
    blocks
}

/// Is it worth drawing one copy in the place of all?
fn pays(copies: usize, period: usize) -> bool {
    let hidden = copies.saturating_sub(1) * period;
    hidden >= WORTH && (copies >= FEWEST || copies >= 2 && period >= LARGE)
}

#[cfg(test)]
mod tests;
