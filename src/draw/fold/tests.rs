use super::*;

/// Items in order, each with a key, and its operands by the number of items before it (0: none).
fn line(items: &[(u32, &[usize])]) -> (Vec<Item>, Vec<usize>) {
    let item = |(i, (key, back)): (usize, &(u32, &[usize]))| Item {
        key: *key,
        operands: back.iter().map(|b| Operand { item: i - b, result: 0 }).collect(),
        floats: false,
    };
    (items.iter().enumerate().map(item).collect(), (0..items.len()).collect())
}

fn shape(blocks: &[Block]) -> Vec<(usize, usize)> {
    blocks.iter().map(|b| (b.copies.len(), b.copies[0].len())).collect()
}

#[test]
fn a_chain_of_layers_is_one_block() {
    let mut items: Vec<(u32, &[usize])> = vec![(0, &[])];
    for _ in 0..5 {
        items.extend([(1, &[1usize] as &[usize]), (2, &[1]), (3, &[1, 2])]);
    }
    items.push((4, &[1]));
    let (items, order) = line(&items);
    let blocks = blocks(&items, &order);
    assert_eq!(shape(&blocks), [(5, 3)]);
    assert_eq!(blocks[0].copies[0], [1, 2, 3]);
    assert_eq!(blocks[0].copies[4], [13, 14, 15]);
}

#[test]
fn what_differs_in_one_operand_is_no_copy() {
    // Four equal layers, but the third reads its own first value twice.
    let mut items: Vec<(u32, &[usize])> = vec![(0, &[])];
    for layer in 0..4 {
        let last: &[usize] = if layer == 2 { &[2, 2] } else { &[1, 2] };
        items.extend([(1, &[1usize] as &[usize]), (2, &[1]), (3, last)]);
    }
    let (items, order) = line(&items);
    assert!(blocks(&items, &order).is_empty());
}

#[test]
fn a_value_of_the_first_copy_is_not_shared() {
    // Each layer also reads the very first layer's value: for that one it is its own.
    let mut items: Vec<(u32, Vec<usize>)> = vec![(0, vec![])];
    for layer in 0..6 {
        let at = items.len();
        items.push((1, vec![1]));
        items.push((2, vec![1, at]));
        let _ = layer;
    }
    // Operand `at` steps back from place `at + 1` is item 1 of layer 0, or item 1 itself.
    let items: Vec<(u32, &[usize])> = items.iter().map(|(k, o)| (*k, o.as_slice())).collect();
    let (items, order) = line(&items);
    for block in blocks(&items, &order) {
        assert!(!block.copies.iter().flatten().any(|i| *i == 1), "item 1 is shared by all copies: {block:?}");
    }
}

#[test]
fn weights_join_their_layer_and_shared_ones_do_not() {
    let mut items = Vec::new();
    let float = |key| Item { key, operands: Vec::new(), floats: true };
    let operand = |item| Operand { item, result: 0 };
    items.push(float(0)); // x
    items.push(float(9)); // shared
    items.extend((0..4).map(|_| float(1))); // weights 2..6
    let mut order = Vec::new();
    for layer in 0..4 {
        let before = order.last().copied().unwrap_or(0);
        order.push(items.len());
        items.push(Item { key: 2, operands: vec![operand(before), operand(2 + layer)], floats: false });
        order.push(items.len());
        items.push(Item { key: 3, operands: vec![operand(items.len() - 1), operand(1)], floats: false });
        order.push(items.len());
        items.push(Item { key: 4, operands: vec![operand(items.len() - 1), operand(before)], floats: false });
    }
    let blocks = blocks(&items, &order);
    assert_eq!(shape(&blocks), [(4, 4)]);
    for (layer, copy) in blocks[0].copies.iter().enumerate() {
        assert_eq!(copy[3], 2 + layer);
    }
}

#[test]
fn a_long_chain_takes_no_quadratic_time() {
    let mut items: Vec<(u32, &[usize])> = vec![(0, &[])];
    for i in 0..100_000u32 {
        items.push((i % 7, &[1]));
    }
    let (items, order) = line(&items);
    let blocks = blocks(&items, &order);
    assert_eq!(shape(&blocks), [(14285, 7)]);
    // And where nothing repeats.
    let distinct: Vec<(u32, &[usize])> = (0..100_000u32).map(|i| (i, &[] as &[usize])).collect();
    let (items, order) = line(&distinct);
    assert!(super::blocks(&items, &order).is_empty());
}
