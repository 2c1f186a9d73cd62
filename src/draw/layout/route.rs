//! Heights of rows, and the paths of edges.

use super::{Laid, Level, Rows};

/// Between two rows at least.
const GAP: f64 = 30.0;
/// What a gap has besides for each unit that its longest slanted edge goes sideways, and the most of that.
const SLOPE: f64 = 0.07;
const MOST_SLOPE: f64 = 60.0;
/// Between two edges that end at one box.
const PORTS: f64 = 13.0;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

/// The way of an edge: from each point to the next one straight down inside a row, and in a curve between rows.
#[derive(Clone, Debug, Default)]
pub struct Path {
    pub points: Vec<Point>,
}

impl Path {
    /// As the attribute `d` of an SVG path.
    pub fn data(&self) -> String {
        use std::fmt::Write as _;
        let mut out = String::new();
        let mut last: Option<Point> = None;
        for p in &self.points {
            let _ = match last {
                None => write!(out, "M{:.1} {:.1}", p.x, p.y),
                Some(q) if (q.x - p.x).abs() < 0.05 => write!(out, " L{:.1} {:.1}", p.x, p.y),
                Some(q) => {
                    let middle = (q.y + p.y) / 2.0;
                    write!(out, " C{:.1} {middle:.1} {:.1} {middle:.1} {:.1} {:.1}", q.x, p.x, p.x, p.y)
                }
            };
            last = Some(*p);
        }
        out
    }

    pub fn moved(&mut self, by: Point) {
        for p in &mut self.points {
            (p.x, p.y) = (p.x + by.x, p.y + by.y);
        }
    }
}

/// Turns ranks and centres into corners and paths.
pub fn route(level: &Level, rows: &Rows, centres: &[f64], chains: &[Vec<usize>], turned: &[bool]) -> Laid {
    let left = centres.iter().zip(&rows.width).map(|(x, w)| x - w / 2.0).fold(f64::INFINITY, f64::min);
    let left = if left.is_finite() { left } else { 0.0 };
    let centre = |v: usize| centres[v] - left;
    let width = (0..centres.len()).map(|v| centre(v) + rows.width[v] / 2.0).fold(0.0, f64::max);
    let ends = ends(level, rows, &centre, chains);
    // Each row is as high as its highest box; below it is room for the most slanted edge.
    let (mut tops, mut bottoms) = (Vec::new(), Vec::new());
    let mut y = 0.0;
    let mut slant = vec![0.0f64; rows.layers.len()];
    for (chain, ends) in chains.iter().zip(&ends) {
        for (i, pair) in chain.windows(2).enumerate() {
            let [a, b] = pair else { continue };
            let from = if i == 0 { ends.0 } else { centre(*a) };
            let to = if i + 2 == chain.len() { ends.1 } else { centre(*b) };
            let rank = rows.rank[*a];
            slant[rank] = slant[rank].max((from - to).abs());
        }
    }
    for (rank, layer) in rows.layers.iter().enumerate() {
        let height = layer.iter().filter(|v| !rows.is_bend(**v)).map(|v| level.boxes[*v].height).fold(0.0, f64::max);
        tops.push(y);
        bottoms.push(y + height);
        y += height + GAP + (slant[rank] * SLOPE).min(MOST_SLOPE);
    }
    let height = bottoms.last().copied().unwrap_or(0.0);
    let corner = |v: usize| Point { x: centre(v) - rows.width[v] / 2.0, y: tops[rows.rank[v]] };
    let corners: Vec<Point> = (0..level.boxes.len()).map(corner).collect();
    let mut paths = Vec::with_capacity(chains.len());
    for ((chain, ends), turned) in chains.iter().zip(&ends).zip(turned) {
        let mut points: Vec<Point> = Vec::new();
        for (i, v) in chain.iter().enumerate() {
            let (top, bottom) = (tops[rows.rank[*v]], bottoms[rows.rank[*v]]);
            if i == 0 {
                points.push(Point { x: ends.0, y: corners[*v].y + level.boxes[*v].height });
                points.push(Point { x: ends.0, y: bottom });
            } else if i + 1 == chain.len() {
                points.push(Point { x: ends.1, y: top });
            } else {
                points.push(Point { x: centre(*v), y: top });
                points.push(Point { x: centre(*v), y: bottom });
            }
        }
        points.dedup();
        if *turned {
            points.reverse();
        }
        paths.push(Path { points });
    }
    Laid { corners, paths, width, height }
}

/// Where each edge leaves its upper box and meets its lower one.
fn ends(level: &Level, rows: &Rows, centre: &dyn Fn(usize) -> f64, chains: &[Vec<usize>]) -> Vec<(f64, f64)> {
    let mut ends = vec![(0.0, 0.0); chains.len()];
    let (mut out, mut into) = (vec![Vec::new(); level.boxes.len()], vec![Vec::new(); level.boxes.len()]);
    for (e, chain) in chains.iter().enumerate() {
        if let [first, second, ..] = chain.as_slice()
            && let [.., before, last] = chain.as_slice()
        {
            out[*first].push((centre(*second), e));
            into[*last].push((centre(*before), e));
        }
    }
    for (v, size) in level.boxes.iter().enumerate() {
        if size.wide {
            spread(&mut out[v], centre(v), rows.width[v], true).iter().for_each(|(x, e)| ends[*e].0 = *x);
        } else {
            // A value leaves its box at one place, whoever reads it.
            out[v].iter().for_each(|(_, e)| ends[*e].0 = centre(v));
        }
        spread(&mut into[v], centre(v), rows.width[v], size.wide).iter().for_each(|(x, e)| ends[*e].1 = *x);
    }
    ends
}

/// Places along the side of a box for edges that come from (or go to) the given places: in their order, so that none cross.
fn spread(edges: &mut [(f64, usize)], centre: f64, width: f64, wide: bool) -> Vec<(f64, usize)> {
    edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let reach = if wide { width / 2.0 - 16.0 } else { width / 4.0 };
    let count = edges.len();
    let step = if count > 1 { PORTS.min(2.0 * reach / (count - 1) as f64) } else { 0.0 };
    let mut placed: Vec<(f64, usize)> = Vec::with_capacity(count);
    for (i, (wanted, e)) in edges.iter().enumerate() {
        // Room for those before and after it.
        let (low, high) = (centre - reach + step * i as f64, centre + reach - step * (count - 1 - i) as f64);
        let after = placed.last().map_or(f64::NEG_INFINITY, |(x, _)| x + step);
        placed.push((wanted.max(low).max(after).min(high), *e));
    }
    placed
}
