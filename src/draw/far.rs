//! Edges that would lead past many others: the reader names what it reads instead.

use std::collections::BTreeMap;

use super::layout::{Level, Size, spans};
use super::picture::{Edge, End, Kind, Line, Node, Picture, Pin, Style};
use super::text::shorten;

/// Rows that an edge may lead over.
const FAR: usize = 6;
/// Most names in one box, and cells of a name.
const TOGETHER: usize = 4;
const MOST: usize = 30;

/// Takes long edges out of a picture that is not small, and puts a box with the names of their values above their reader. Frames name
/// what they read in any case.
pub fn cut(picture: &mut Picture) {
    if picture.is_small() {
        return;
    }
    let outside: Vec<usize> = (0..picture.nodes.len()).filter(|n| picture.nodes[*n].frame.is_none()).collect();
    let mut place = vec![None; picture.nodes.len()];
    outside.iter().enumerate().for_each(|(i, n)| place[*n] = Some(i));
    let at = |end: End| match end {
        End::Node(n) => place[n],
        End::Frame(f) => Some(outside.len() + f),
    };
    let ends: Vec<Option<(usize, usize)>> = picture.edges.iter().map(|e| at(e.from).zip(at(e.to))).collect();
    let size = Size { width: 1.0, height: 1.0, pin: Pin::Free, wide: false };
    let boxes = vec![size; outside.len() + picture.frames.len()];
    let mut spans = spans(&Level { boxes, edges: ends.iter().flatten().copied().collect() }).into_iter();
    let mut kept = Vec::with_capacity(picture.edges.len());
    // By reader and frame, if it is one: the names, and whether the reader is there for a gradient.
    let mut named: BTreeMap<(usize, Option<usize>), (Vec<String>, bool)> = BTreeMap::new();
    for (edge, ends) in std::mem::take(&mut picture.edges).into_iter().zip(&ends) {
        let span = if ends.is_some() { spans.next().unwrap_or(0) } else { 0 };
        match (edge.from, edge.to) {
            _ if span <= FAR => kept.push(edge),
            (End::Frame(_), End::Frame(_)) => kept.push(edge),
            (End::Node(_), End::Frame(_)) => {}
            (from, End::Node(to)) => {
                let frame = match from {
                    End::Frame(f) => Some(f),
                    End::Node(_) => None,
                };
                let (names, backward) = named.entry((to, frame)).or_default();
                names.extend(edge.values);
                *backward |= edge.backward;
            }
        }
    }
    picture.edges = kept;
    for ((to, frame), (names, backward)) in named {
        let mut lines: Vec<Line> =
            names.iter().take(TOGETHER).map(|n| Line::new(Style::Plain, shorten(n, MOST))).collect();
        if names.len() > TOGETHER {
            lines.push(Line::new(Style::Plain, format!("and {} more", names.len() - TOGETHER)));
        }
        let from = frame.map_or_else(|| "from above".to_owned(), |f| format!("of frame {}", f + 1));
        lines.push(Line::new(Style::Note, from));
        let reference = picture.add(Node {
            kind: Kind::Reference,
            lines,
            parts: Vec::new(),
            tooltip: names.join(", "),
            pin: Pin::Free,
            frame: None,
            data: Vec::new(),
        });
        picture.edges.push(Edge { from: End::Node(reference), to: End::Node(to), values: names, backward });
    }
}
