//! A layered layout: ranks, long edges cut into bends, few crossings, places, and edges that run through no box.
//!
//! An edge passes a row at a bend, which has a width and a place of its own among the boxes, and changes its place only between rows,
//! where no box is. So it cannot run through one.

mod order;
mod place;
mod rank;
mod route;

pub use route::{Path, Point};

use super::picture::Pin;

/// Width of a bend.
const BEND: f64 = 10.0;
/// Distance between two boxes of a row.
const BETWEEN: f64 = 22.0;

/// A box to be placed.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub width: f64,
    pub height: f64,
    pub pin: Pin,
    /// Edges end anywhere along it, not near its middle only.
    pub wide: bool,
}

/// Boxes and edges to be laid out.
#[derive(Clone, Debug, Default)]
pub struct Level {
    pub boxes: Vec<Size>,
    pub edges: Vec<(usize, usize)>,
}

/// Boxes with places and edges with paths.
#[derive(Clone, Debug, Default)]
pub struct Laid {
    /// The upper left corner of each box.
    pub corners: Vec<Point>,
    pub paths: Vec<Path>,
    pub width: f64,
    pub height: f64,
}

/// Vertices (boxes, then bends) in rows.
pub struct Rows {
    pub layers: Vec<Vec<usize>>,
    /// The place of each vertex in its row.
    pub at: Vec<usize>,
    pub rank: Vec<usize>,
    pub up: Vec<Vec<usize>>,
    pub down: Vec<Vec<usize>>,
    pub width: Vec<f64>,
    boxes: usize,
}

impl Rows {
    pub fn is_bend(&self, v: usize) -> bool {
        v >= self.boxes
    }

    /// Between the centres of two neighbours.
    pub fn distance(&self, a: usize, b: usize) -> f64 {
        let between = if self.is_bend(a) && self.is_bend(b) { BEND } else { BETWEEN };
        (self.width[a] + self.width[b]) / 2.0 + between
    }

    fn number(&mut self) {
        (0..self.layers.len()).for_each(|layer| self.number_layer(layer));
    }

    fn number_layer(&mut self, layer: usize) {
        for (i, v) in self.layers[layer].iter().enumerate() {
            self.at[*v] = i;
        }
    }
}

/// How many rows each edge of a level leads over.
pub fn spans(level: &Level) -> Vec<usize> {
    let (rank, _) = rank::ranks(level);
    level.edges.iter().map(|(a, b)| rank[*a].abs_diff(rank[*b])).collect()
}

/// Lays out a level. `None` if its edges would have more than `most` bends.
pub fn lay_out(level: &Level, most: usize) -> Option<Laid> {
    let (rank, turned) = rank::ranks(level);
    let spans = level.edges.iter().map(|(a, b)| rank[*a].abs_diff(rank[*b]).saturating_sub(1));
    if spans.fold(0usize, usize::saturating_add) > most {
        return None;
    }
    let (mut rows, chains) = rows(level, rank, &turned);
    order::reduce(&mut rows);
    let centres = place::centres(&rows);
    Some(route::route(level, &rows, &centres, &chains, &turned))
}

/// Cuts long edges at every row they pass; gives the vertices of each edge too, from its upper end to its lower one.
fn rows(level: &Level, rank: Vec<usize>, turned: &[bool]) -> (Rows, Vec<Vec<usize>>) {
    let boxes = level.boxes.len();
    let mut rows = Rows {
        layers: vec![Vec::new(); rank.iter().max().map_or(0, |r| r + 1)],
        at: vec![0; boxes],
        rank,
        up: vec![Vec::new(); boxes],
        down: vec![Vec::new(); boxes],
        width: level.boxes.iter().map(|b| b.width).collect(),
        boxes,
    };
    let mut chains = Vec::with_capacity(level.edges.len());
    for ((a, b), turned) in level.edges.iter().zip(turned) {
        let (a, b) = if *turned { (*b, *a) } else { (*a, *b) };
        let mut chain = vec![a];
        for r in rows.rank[a] + 1..rows.rank[b] {
            let bend = rows.rank.len();
            rows.rank.push(r);
            rows.at.push(0);
            rows.up.push(Vec::new());
            rows.down.push(Vec::new());
            rows.width.push(BEND);
            chain.push(bend);
        }
        chain.push(b);
        if a == b {
            chain.clear();
        }
        for pair in chain.windows(2) {
            let [above, below] = pair else { continue };
            rows.down[*above].push(*below);
            rows.up[*below].push(*above);
        }
        chains.push(chain);
    }
    // To begin with in the order of a walk down from each source: what belongs together stands together.
    let mut seen = vec![false; rows.rank.len()];
    let sources: Vec<usize> = (0..boxes).filter(|v| rows.up[*v].is_empty()).collect();
    for source in sources.into_iter().chain(0..boxes) {
        let mut stack = vec![source];
        while let Some(v) = stack.pop() {
            if rows.up[v].iter().any(|u| !seen[*u]) && v != source || std::mem::replace(&mut seen[v], true) {
                continue;
            }
            rows.layers[rows.rank[v]].push(v);
            stack.extend(rows.down[v].iter().rev().copied());
        }
    }
    rows.number();
    (rows, chains)
}
