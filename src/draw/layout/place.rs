//! Where in its row each box stands, by Brandes and Köpf: long edges are straight, and boxes stand below the median of what
//! they read. Four layouts, each pushed into one corner, are averaged.

use rustc_hash::FxHashSet;

use super::Rows;

/// The centre of each vertex; the order of every row and the distances between neighbours are kept.
pub fn centres(rows: &Rows) -> Vec<f64> {
    let conflicts = conflicts(rows);
    let mut all: Vec<Vec<f64>> = Vec::with_capacity(4);
    for upwards in [false, true] {
        for mirrored in [false, true] {
            all.push(corner(rows, &conflicts, upwards, mirrored));
        }
    }
    // Aligned with the narrowest of them, then the mean of the two in the middle.
    let extent = |xs: &[f64]| {
        let ends = xs.iter().zip(&rows.width);
        ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (x, w)| {
            (low.min(x - w / 2.0), high.max(x + w / 2.0))
        })
    };
    let extents: Vec<(f64, f64)> = all.iter().map(|xs| extent(xs)).collect();
    let narrowest = extents.iter().copied().min_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)));
    let (low, high) = narrowest.unwrap_or((0.0, 0.0));
    for (i, xs) in all.iter_mut().enumerate() {
        let shift = if i % 2 == 0 { low - extents[i].0 } else { high - extents[i].1 };
        xs.iter_mut().for_each(|x| *x += shift);
    }
    (0..rows.width.len())
        .map(|v| {
            let mut four: Vec<f64> = all.iter().map(|xs| xs[v]).collect();
            four.sort_by(f64::total_cmp);
            (four[1] + four[2]) / 2.0
        })
        .collect()
}

/// Edges that cross an inner part of a long edge: they give way.
fn conflicts(rows: &Rows) -> FxHashSet<(usize, usize)> {
    let mut found = FxHashSet::default();
    for pair in rows.layers.windows(2) {
        let [above, below] = pair else { continue };
        let (mut left, mut scanned) = (0, 0);
        for (i, v) in below.iter().enumerate() {
            let inner = rows.up[*v].iter().copied().find(|u| rows.is_bend(*u) && rows.is_bend(*v));
            if inner.is_none() && i + 1 != below.len() {
                continue;
            }
            let right = inner.map_or(above.len(), |u| rows.at[u]);
            for w in &below[scanned..=i] {
                for u in &rows.up[*w] {
                    let at = rows.at[*u];
                    if (at < left || right < at) && !(rows.is_bend(*u) && rows.is_bend(*w)) {
                        found.insert((*u, *w));
                    }
                }
            }
            scanned = i + 1;
            left = right;
        }
    }
    found
}

/// One of the four layouts. `upwards`: aligned with what is below, from the last row up. `mirrored`: pushed to the right.
fn corner(rows: &Rows, conflicts: &FxHashSet<(usize, usize)>, upwards: bool, mirrored: bool) -> Vec<f64> {
    let count = rows.width.len();
    let mut root: Vec<usize> = (0..count).collect();
    let mut next = root.clone();
    let layers = rows.layers.len();
    for i in 0..layers {
        let layer = &rows.layers[if upwards { layers - 1 - i } else { i }];
        let place = |v: usize| if mirrored { -(rows.at[v] as i64) } else { rows.at[v] as i64 };
        let mut last = i64::MIN;
        for j in 0..layer.len() {
            let v = layer[if mirrored { layer.len() - 1 - j } else { j }];
            let mut near: Vec<usize> = if upwards { rows.down[v].clone() } else { rows.up[v].clone() };
            near.sort_by_key(|u| place(*u));
            if near.is_empty() {
                continue;
            }
            for m in [(near.len() - 1) / 2, near.len() / 2] {
                let u = near[m];
                let edge = if upwards { (v, u) } else { (u, v) };
                if next[v] == v && last < place(u) && !conflicts.contains(&edge) {
                    next[u] = v;
                    root[v] = root[u];
                    next[v] = root[v];
                    last = place(u);
                }
            }
        }
    }
    let xs = compact(rows, &root, mirrored);
    root.iter().map(|r| if mirrored { -xs[*r] } else { xs[*r] }).collect()
}

/// Places blocks of aligned vertices as far to the left as the distances allow, then to the right as far as nothing is pushed.
fn compact(rows: &Rows, root: &[usize], mirrored: bool) -> Vec<f64> {
    let count = root.len();
    let mut after: Vec<Vec<(usize, f64)>> = vec![Vec::new(); count];
    let mut waits = vec![0usize; count];
    for layer in &rows.layers {
        for pair in layer.windows(2) {
            let [a, b] = pair else { continue };
            let (a, b) = if mirrored { (*b, *a) } else { (*a, *b) };
            after[root[a]].push((root[b], rows.distance(a, b)));
            waits[root[b]] += 1;
        }
    }
    let mut order: Vec<usize> = (0..count).filter(|v| root[*v] == *v && waits[*v] == 0).collect();
    let mut x = vec![0.0f64; count];
    let mut done = 0;
    while done < order.len() {
        let v = order[done];
        done += 1;
        for (w, distance) in &after[v] {
            x[*w] = x[*w].max(x[v] + distance);
            waits[*w] -= 1;
            if waits[*w] == 0 {
                order.push(*w);
            }
        }
    }
    for v in order.iter().rev() {
        let room = after[*v].iter().map(|(w, distance)| x[*w] - distance).fold(f64::INFINITY, f64::min);
        if room.is_finite() {
            x[*v] = x[*v].max(room);
        }
    }
    x
}
