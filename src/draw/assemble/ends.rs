//! Where values end: results, checks, and readers outside of their copy.

use std::collections::{BTreeMap, BTreeSet};

use super::super::picture::{Edge, End, Kind, Line, Node, Pin, Style};
use super::super::text::{list, shorten};
use super::{MOST, Mark, Work, some};

impl Work<'_> {
    /// Boxes for results and checks: in the frame where each copy has one.
    pub fn marks(&mut self, marks: &[Mark]) {
        // Those of which each copy has one are drawn with it.
        // By block, place and kind: copies with marks.
        type Places<'k> = BTreeMap<(usize, usize, &'k str), Vec<(usize, usize)>>;
        let mut of_places: Places<'_> = BTreeMap::new();
        for (i, mark) in marks.iter().enumerate() {
            if let Some((b, c, m)) = self.home[mark.of.item]
                && self.boxes[self.blocks[b].copies[0][m]].is_some()
            {
                of_places.entry((b, m, mark.kind.class())).or_default().push((c, i));
            }
        }
        let mut inside: BTreeMap<usize, usize> = BTreeMap::new();
        for ((b, m, _), mut list) in of_places {
            list.sort_unstable();
            let copies = &self.blocks[b].copies;
            if list.len() == copies.len() && list.iter().enumerate().all(|(c, (copy, _))| c == *copy) {
                list.iter().for_each(|(copy, i)| {
                    inside.insert(*i, *copy);
                });
                let all: Vec<&Mark> = list.iter().map(|(_, i)| &marks[*i]).collect();
                let names: Vec<String> = all.iter().map(|m| m.name.clone()).collect();
                let note = format!("one for each copy, {} in all", names.len());
                let node = Node {
                    kind: all[0].kind,
                    lines: vec![Line::new(Style::Name, self::list(&names, MOST)), Line::new(Style::Note, note)],
                    parts: Vec::new(),
                    tooltip: format!("copy by copy: {}", some(&names)),
                    pin: Pin::Free,
                    frame: Some(b),
                    data: all[0].data.iter().map(|(key, _)| (*key, names.join(" "))).collect(),
                };
                let to = self.picture.add(node);
                let item = copies[0][m];
                let (backward, values) = (self.subject.is_backward(item), vec![self.name(item)]);
                if let Some(from) = self.boxes[item] {
                    self.picture.edges.push(Edge { from: End::Node(from), to: End::Node(to), values, backward });
                }
            }
        }
        for (i, mark) in marks.iter().enumerate() {
            if inside.contains_key(&i) {
                continue;
            }
            let node = Node {
                kind: mark.kind,
                lines: vec![Line::new(Style::Name, shorten(&mark.name, MOST + 8))],
                parts: Vec::new(),
                tooltip: mark.tooltip.clone(),
                pin: Pin::Free,
                frame: None,
                data: mark.data.clone(),
            };
            let to = self.picture.add(node);
            self.edge_outside(mark.of, to, self.subject.is_backward(mark.of.item), &mark.name);
        }
    }

    /// Says at the boxes of a frame who reads them outside of their copy.
    pub fn readers(&mut self) {
        for ((b, m), readers) in std::mem::take(&mut self.readers) {
            let Some(from) = self.boxes[self.blocks[b].copies[0][m]] else { continue };
            let last = self.blocks[b].copies.len() - 1;
            let of_last: Vec<String> =
                readers.others.iter().filter(|(c, _)| *c == last).map(|(_, n)| n.clone()).collect();
            let early: BTreeSet<usize> = readers.others.iter().map(|(c, _)| *c).filter(|c| *c < last).collect();
            let mut notes = Vec::new();
            for frame in &readers.frames {
                notes.push(format!("read in frame {}", frame + 1));
            }
            if !early.is_empty() {
                let copies: Vec<String> = early.iter().map(|c| (c + 1).to_string()).collect();
                notes.push(format!("read outside: copies {}", list(&copies, MOST)));
            }
            let outside = (!of_last.is_empty()).then(|| format!("copy {}: to {}", last + 1, list(&of_last, MOST)));
            if !readers.next {
                notes.extend(outside.clone());
            }
            if let Some(node) = self.picture.nodes.get_mut(from) {
                node.lines.extend(notes.into_iter().map(|n| Line::new(Style::Note, n)));
            }
            if readers.next {
                let mut lines = vec![Line::new(Style::Plain, "to the next copy")];
                lines.extend(outside.map(|n| Line::new(Style::Note, n)));
                let to = self.picture.add(Node {
                    kind: Kind::Reference,
                    lines,
                    parts: Vec::new(),
                    tooltip: format!("{} is read by the next copy", self.name(self.blocks[b].copies[0][m])),
                    pin: Pin::Bottom,
                    frame: Some(b),
                    data: Vec::new(),
                });
                let item = self.blocks[b].copies[0][m];
                let (backward, values) = (self.subject.is_backward(item), vec![self.name(item)]);
                self.picture.edges.push(Edge { from: End::Node(from), to: End::Node(to), values, backward });
            }
        }
    }
}
