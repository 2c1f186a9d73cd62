//! The order within each row: as few crossings as barycentres and exchanges of neighbours find in a bounded number of sweeps.

use super::Rows;

/// What all sweeps together may look at: edges and boxes.
const WORK: usize = 20_000_000;
/// Most sweeps.
const SWEEPS: usize = 32;
/// Sweeps without improvement after which no more are made.
const PATIENCE: usize = 6;

/// Orders the rows.
pub fn reduce(rows: &mut Rows) {
    let size = rows.up.iter().map(Vec::len).sum::<usize>() + rows.up.len();
    let sweeps = (WORK / size.max(1)).clamp(2, SWEEPS);
    let mut best = rows.layers.clone();
    let mut fewest = crossings(rows);
    let mut idle = 0;
    for sweep in 0..sweeps {
        if fewest == 0 || idle > PATIENCE {
            break;
        }
        let down = sweep % 2 == 0;
        let count = rows.layers.len();
        for i in 0..count {
            let layer = if down { i } else { count - 1 - i };
            by_barycentre(rows, layer, down, sweep % 4 >= 2);
        }
        exchange(rows);
        let now = crossings(rows);
        if now < fewest {
            fewest = now;
            best.clone_from(&rows.layers);
            idle = 0;
        } else {
            idle += 1;
        }
    }
    rows.layers = best;
    rows.number();
}

/// Sorts a row by where its neighbours in the row above (or below) stand, which is kept. `late`: of equals the later first.
fn by_barycentre(rows: &mut Rows, layer: usize, down: bool, late: bool) {
    let sides = if down { &rows.up } else { &rows.down };
    let at = &rows.at;
    let mut keyed: Vec<(f64, usize)> = rows.layers[layer]
        .iter()
        .map(|v| {
            let near = &sides[*v];
            if near.is_empty() {
                return (-1.0, *v);
            }
            (near.iter().map(|u| at[*u] as f64).sum::<f64>() / near.len() as f64, *v)
        })
        .collect();
    // What has no neighbours there stays where it is: the others are sorted among the rest of the places.
    let mut movable: Vec<(f64, usize)> = keyed.iter().copied().filter(|(k, _)| *k >= 0.0).collect();
    if late {
        movable.reverse();
    }
    movable.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut movable = movable.into_iter();
    for slot in &mut keyed {
        if slot.0 >= 0.0
            && let Some(next) = movable.next()
        {
            *slot = next;
        }
    }
    rows.layers[layer] = keyed.into_iter().map(|(_, v)| v).collect();
    rows.number_layer(layer);
}

/// Exchanges neighbours in a row as long as this removes crossings, one pass over all rows.
fn exchange(rows: &mut Rows) {
    for layer in 0..rows.layers.len() {
        for i in 1..rows.layers[layer].len() {
            let (a, b) = (rows.layers[layer][i - 1], rows.layers[layer][i]);
            let (mut kept, mut exchanged) = (0i64, 0i64);
            for sides in [&rows.up, &rows.down] {
                let (k, e) = pair(&rows.at, &sides[a], &sides[b]);
                kept += k;
                exchanged += e;
            }
            if exchanged < kept {
                rows.layers[layer].swap(i - 1, i);
                rows.at.swap(a, b);
            }
        }
    }
}

/// Crossings among the edges of two neighbours: as they stand, and exchanged.
fn pair(at: &[usize], a: &[usize], b: &[usize]) -> (i64, i64) {
    // Where one of them has very many edges, an exchange is not worth its price.
    if a.len().saturating_mul(b.len()) > 4096 {
        return (0, 0);
    }
    let (mut kept, mut exchanged) = (0, 0);
    for u in a {
        for w in b {
            match at[*u].cmp(&at[*w]) {
                std::cmp::Ordering::Greater => kept += 1,
                std::cmp::Ordering::Less => exchanged += 1,
                std::cmp::Ordering::Equal => {}
            }
        }
    }
    (kept, exchanged)
}

/// All crossings between neighbouring rows, in time `edges * log(edges)`.
fn crossings(rows: &Rows) -> u64 {
    let mut total = 0;
    for pair in rows.layers.windows(2) {
        let [above, below] = pair else { continue };
        let mut ends: Vec<usize> = Vec::new();
        for v in above {
            let mut targets: Vec<usize> = rows.down[*v].iter().map(|w| rows.at[*w]).collect();
            targets.sort_unstable();
            ends.extend(targets);
        }
        // Inversions, counted by a tree of sums.
        let mut tree = vec![0u64; below.len() + 1];
        for (seen, end) in ends.iter().enumerate() {
            let (mut i, mut smaller_or_equal) = (end + 1, 0);
            while i > 0 {
                smaller_or_equal += tree[i];
                i &= i - 1;
            }
            total += seen as u64 - smaller_or_equal;
            let mut i = end + 1;
            while i <= below.len() {
                tree[i] += 1;
                i += i & i.wrapping_neg();
            }
        }
    }
    total
}
