//! From items and their blocks to a picture: a box for each item outside of blocks, a frame with the items of one copy for each block,
//! and references in the frames for what each copy gets from outside.

mod ends;

use std::collections::{BTreeMap, BTreeSet};

use super::fold::{Block, Item, Operand};
use super::picture::{Edge, End, Frame, Kind, Line, Node, Picture, Pin, Style};
use super::text::{list, shorten};

/// Most cells of a reference.
const MOST: usize = 30;
/// Most references in one box.
const TOGETHER: usize = 4;
/// Most names in a tooltip.
const NAMES: usize = 100;

/// What is drawn.
pub trait Subject {
    /// The box of an item that stands for `copies`, the first of which it shows.
    fn node(&self, copies: &[usize]) -> Node;
    /// What an operand is called.
    fn name(&self, operand: Operand) -> String;
    /// Is the item drawn in the boxes of its readers?
    fn is_within(&self, item: usize) -> bool;
    fn is_backward(&self, item: usize) -> bool;
    /// What items are, in the plural.
    fn plural(&self) -> &'static str;
}

/// Something that is made of a value and has a box of its own: a result, a check.
pub struct Mark {
    pub of: Operand,
    pub kind: Kind,
    pub name: String,
    pub tooltip: String,
    pub data: Vec<(&'static str, String)>,
}

/// A box that reads something, and whether it is there for a gradient.
type Reader = (usize, bool);

/// Where an item is: block, copy, place in the copy.
type Home = Option<(usize, usize, usize)>;

/// Makes the picture.
pub fn assemble(subject: &dyn Subject, items: &[Item], blocks: &[Block], marks: &[Mark]) -> Picture {
    let mut home: Vec<Home> = vec![None; items.len()];
    for (b, block) in blocks.iter().enumerate() {
        for (c, copy) in block.copies.iter().enumerate() {
            copy.iter().enumerate().for_each(|(m, item)| home[*item] = Some((b, c, m)));
        }
    }
    let mut work = Work {
        subject,
        items,
        blocks,
        home,
        picture: Picture::default(),
        boxes: vec![None; items.len()],
        references: BTreeMap::new(),
        readers: BTreeMap::new(),
    };
    work.frames();
    work.boxes();
    work.edges();
    work.references();
    work.marks(marks);
    work.readers();
    work.picture.join_edges();
    work.picture
}

/// What the copies of a block get from outside.
struct Reference {
    name: String,
    /// Where it comes from.
    note: String,
    pin: Pin,
    tooltip: String,
}

/// Who reads a place of a block from outside of its copy.
#[derive(Default)]
struct Readers {
    next: bool,
    frames: BTreeSet<usize>,
    /// Copies with what reads them.
    others: BTreeSet<(usize, String)>,
}

struct Work<'a> {
    subject: &'a dyn Subject,
    items: &'a [Item],
    blocks: &'a [Block],
    home: Vec<Home>,
    picture: Picture,
    /// The box of each item that has one.
    boxes: Vec<Option<usize>>,
    /// What each copy of a block gets from outside, with the boxes that read it.
    references: BTreeMap<(usize, Vec<Operand>), Vec<Reader>>,
    readers: BTreeMap<(usize, usize), Readers>,
}

impl Work<'_> {
    fn name(&self, item: usize) -> String {
        self.subject.name(Operand { item, result: 0 })
    }

    fn frames(&mut self) {
        for (b, block) in self.blocks.iter().enumerate() {
            let (copies, each) = (block.copies.len(), block.copies[0].len());
            let plural = self.subject.plural();
            let names: Vec<String> = block.copies[0].iter().map(|i| self.name(*i)).collect();
            self.picture.frames.push(Frame {
                title: format!("frame {} x {copies}", b + 1),
                notes: vec![format!(
                    "copies 1..{copies} of {each} {plural}; copy 1 is drawn, {} {plural} are hidden",
                    (copies - 1) * each
                )],
                tooltip: format!("copy 1: {}", some(&names)),
                data: vec![("copies", copies.to_string()), ("members", names.join(" "))],
            });
        }
    }

    fn boxes(&mut self) {
        for item in 0..self.items.len() {
            if self.subject.is_within(item) {
                continue;
            }
            let (copies, frame) = match self.home[item] {
                None => (vec![item], None),
                Some((b, 0, m)) => (self.blocks[b].copies.iter().map(|copy| copy[m]).collect(), Some(b)),
                Some(_) => continue,
            };
            let mut node = self.subject.node(&copies);
            node.frame = frame;
            self.boxes[item] = Some(self.picture.add(node));
        }
    }

    fn edges(&mut self) {
        for item in 0..self.items.len() {
            let Some(to) = self.boxes[item] else { continue };
            for o in 0..self.items[item].operands.len() {
                match self.home[item] {
                    None => self.edge_outside(
                        self.items[item].operands[o],
                        to,
                        self.subject.is_backward(item),
                        &self.name(item),
                    ),
                    Some((b, _, m)) => self.edge_inside(b, m, o, to),
                }
            }
        }
    }

    /// An edge to a box outside of all frames; `reader` is what the box is called.
    fn edge_outside(&mut self, operand: Operand, to: usize, backward: bool, reader: &str) {
        let from = match self.home[operand.item] {
            Some((b, c, m)) => {
                if self.subject.is_within(operand.item) {
                    return;
                }
                self.readers.entry((b, m)).or_default().others.insert((c, reader.to_owned()));
                End::Frame(b)
            }
            None => match self.boxes[operand.item] {
                Some(from) => End::Node(from),
                None => return,
            },
        };
        let values = vec![self.subject.name(operand)];
        self.picture.edges.push(Edge { from, to: End::Node(to), values, backward });
    }

    /// The edge of operand `o` of place `m` in block `b`, whose box is `to`.
    fn edge_inside(&mut self, b: usize, m: usize, o: usize, to: usize) {
        let block = &self.blocks[b];
        let sources: Vec<Operand> = block.copies.iter().map(|copy| self.items[copy[m]].operands[o]).collect();
        let Some(first) = sources.first().copied() else { return };
        let backward = self.subject.is_backward(block.copies[0][m]);
        let own = sources.iter().enumerate().all(|(c, s)| {
            matches!((self.home[s.item], self.home[first.item]), (Some((b2, c2, m2)), Some((b1, 0, m1))) if b2 == b && b1 == b && c2 == c && m1 == m2)
        });
        if sources.iter().all(|s| self.subject.is_within(s.item)) {
            return;
        }
        let values = vec![self.subject.name(first)];
        if own {
            if let Some(from) = self.boxes[first.item] {
                self.picture.edges.push(Edge { from: End::Node(from), to: End::Node(to), values, backward });
            }
            return;
        }
        if !self.references.contains_key(&(b, sources.clone())) {
            self.enter(b, &sources, backward);
        }
        self.references.entry((b, sources)).or_default().push((to, backward));
    }

    /// The edges into a frame for what its copies get from outside.
    fn enter(&mut self, b: usize, sources: &[Operand], backward: bool) {
        let distinct: BTreeSet<Operand> = sources.iter().copied().collect();
        for source in distinct {
            let from = match self.home[source.item] {
                Some((other, _, m)) if other == b => {
                    self.readers.entry((b, m)).or_default().next = true;
                    continue;
                }
                Some((other, _, m)) => {
                    self.readers.entry((other, m)).or_default().frames.insert(b);
                    End::Frame(other)
                }
                None => match self.boxes[source.item] {
                    Some(from) => End::Node(from),
                    None => continue,
                },
            };
            let values = vec![self.subject.name(source)];
            self.picture.edges.push(Edge { from, to: End::Frame(b), values, backward });
        }
    }

    /// The boxes for what copies get from outside. What the same boxes read of the same origin is one reference.
    fn references(&mut self) {
        type Group = (usize, Vec<Reader>, String);
        let mut groups: BTreeMap<Group, Vec<Reference>> = BTreeMap::new();
        for ((b, sources), mut readers) in std::mem::take(&mut self.references) {
            readers.sort_unstable();
            readers.dedup();
            let reference = self.reference(b, &sources);
            groups.entry((b, readers, reference.note.clone())).or_default().push(reference);
        }
        for ((b, readers, note), references) in groups {
            let mut lines: Vec<Line> =
                references.iter().take(TOGETHER).map(|r| Line::new(Style::Plain, r.name.as_str())).collect();
            if references.len() > TOGETHER {
                lines.push(Line::new(Style::Plain, format!("and {} more", references.len() - TOGETHER)));
            }
            lines.push(Line::new(Style::Note, note));
            let tooltips: Vec<&str> = references.iter().map(|r| r.tooltip.as_str()).collect();
            let from = self.picture.add(Node {
                kind: Kind::Reference,
                lines,
                parts: Vec::new(),
                tooltip: format!("copy by copy: {}", tooltips.join("; ")),
                pin: references.first().map_or(Pin::Free, |r| r.pin),
                frame: Some(b),
                data: Vec::new(),
            });
            for (to, backward) in readers {
                let values = references.iter().map(|r| r.name.clone()).collect();
                self.picture.edges.push(Edge { from: End::Node(from), to: End::Node(to), values, backward });
            }
        }
    }

    /// What the copies of a block get from outside.
    fn reference(&self, b: usize, sources: &[Operand]) -> Reference {
        let names: Vec<String> = sources.iter().map(|s| self.subject.name(*s)).collect();
        let first = names.first().cloned().unwrap_or_default();
        let shared = sources.iter().all(|s| Some(s) == sources.first());
        let (name, note, pin) = if shared {
            (shorten(&first, MOST), "the same for all copies".to_owned(), Pin::Free)
        } else if let Some((distance, own)) = self.earlier(b, sources) {
            let from = shorten(&self.subject.name(own), MOST);
            let start = shorten(&names[..distance].join(", "), MOST);
            let (whose, copies) = match distance {
                1 => ("of the previous copy".to_owned(), "copy 1".to_owned()),
                _ => (format!("of {distance} copies before"), format!("copies 1..{distance}")),
            };
            (format!("{from} {whose}"), format!("{copies}: {start}"), Pin::Top)
        } else if let Some((frame, copies)) = self.elsewhere(sources) {
            (shorten(&first, MOST), format!("of frame {}, copies {copies}", frame + 1), Pin::Free)
        } else {
            (list(&names, MOST), "one for each copy".to_owned(), Pin::Free)
        };
        Reference { name, note, pin, tooltip: some(&names) }
    }

    /// Does each copy get what an earlier copy has at one place, and only the first ones something from outside?
    fn earlier(&self, b: usize, sources: &[Operand]) -> Option<(usize, Operand)> {
        let inside = |s: &Operand| matches!(self.home[s.item], Some((other, ..)) if other == b);
        let distance = sources.iter().position(inside)?;
        let Some((_, 0, m)) = self.home[sources[distance].item] else { return None };
        let result = sources[distance].result;
        let regular = sources
            .iter()
            .enumerate()
            .skip(distance)
            .all(|(c, s)| self.home[s.item] == Some((b, c - distance, m)) && s.result == result);
        (regular && distance > 0).then_some((distance, sources[distance]))
    }

    /// Does each copy get what a copy of one other block has at one place? Says which copies.
    fn elsewhere(&self, sources: &[Operand]) -> Option<(usize, String)> {
        let homes: Vec<(usize, usize, usize)> = sources.iter().map(|s| self.home[s.item]).collect::<Option<_>>()?;
        let ([(b, first, m), ..], [.., (_, last, _)]) = (homes.as_slice(), homes.as_slice()) else { return None };
        let step = if first <= last { 1 } else { -1 };
        let regular = homes
            .iter()
            .enumerate()
            .all(|(c, home)| (home.0, home.2) == (*b, *m) && home.1 as i64 == *first as i64 + step * c as i64);
        regular.then(|| (*b, format!("{}..{}", first + 1, last + 1)))
    }
}

/// Names for a tooltip, not all of very many.
pub fn some(names: &[String]) -> String {
    match names.get(..NAMES) {
        Some(first) if names.len() > NAMES => format!("{}, and {} more", first.join(", "), names.len() - NAMES),
        _ => names.join(", "),
    }
}
