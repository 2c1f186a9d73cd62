//! Terms as lines of text in which the changed part is marked.

use std::collections::BTreeSet;

use super::names::{Names, Piece, constant, pieces};
use crate::egraph::explain::Explainer;
use crate::egraph::explain::bank::{Head, TermId};

/// Longer expressions are broken, an operand on a line.
const WIDTH: usize = 96;
/// How many calls around the changed part are shown.
const AROUND: usize = 3;
/// How many calls of a rule's side are shown; rules may be large.
const CALLS: usize = 60;

/// A line of text; the characters of these ranges are marked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub marks: Vec<(usize, usize)>,
}

/// An expression on its way to lines.
enum Doc {
    Leaf { text: String, marked: bool },
    Call { name: String, parts: Vec<Doc>, marked: bool },
}

/// A whole term with the part at `path` marked. Of that part the calls that are `open` are written out, of what is around it only the last few
/// calls.
pub(super) fn state(
    explainer: &Explainer<'_>,
    names: &Names,
    whole: TermId,
    path: &[usize],
    open: &BTreeSet<TermId>,
) -> Vec<Line> {
    let (above, shown) = path.split_at(path.len().saturating_sub(AROUND));
    let mut term = whole;
    for place in above {
        term = explainer.bank.operands(term).get(*place).copied().unwrap_or(term);
    }
    let mut view = View { explainer, names, open, marked: None, calls: CALLS, written: BTreeSet::new() };
    layout(&view.around(term, shown))
}

/// The right side of a rule instance with one part marked.
pub(super) fn side(
    explainer: &Explainer<'_>,
    names: &Names,
    side: TermId,
    marked: TermId,
    open: &BTreeSet<TermId>,
) -> Vec<Line> {
    let mut view = View { explainer, names, open, marked: Some(marked), calls: CALLS, written: BTreeSet::new() };
    let doc = view.open(side);
    layout(&doc)
}

/// What a VJP concludes, with one part marked.
pub(super) fn conclusion(
    explainer: &Explainer<'_>,
    names: &Names,
    right: TermId,
    marked: TermId,
    bound: &[TermId],
) -> Vec<Line> {
    side(explainer, names, right, marked, &written_by(explainer, right, bound))
}

/// The calls of an instance's side that the rule itself writes: those above what its metavariables stand for.
pub(super) fn written_by(explainer: &Explainer<'_>, side: TermId, bound: &[TermId]) -> BTreeSet<TermId> {
    let mut open = BTreeSet::new();
    let mut stack = vec![side];
    while let Some(term) = stack.pop() {
        if bound.contains(&term) || matches!(explainer.bank.head(term), Head::Input(_)) || !open.insert(term) {
            continue;
        }
        stack.extend(explainer.bank.operands(term));
    }
    open
}

struct View<'a> {
    explainer: &'a Explainer<'a>,
    names: &'a Names,
    open: &'a BTreeSet<TermId>,
    marked: Option<TermId>,
    /// Calls that may still be written out.
    calls: usize,
    /// Those that are, so that a second time their name will do.
    written: BTreeSet<TermId>,
}

impl View<'_> {
    fn leaf(&self, term: TermId) -> Doc {
        Doc::Leaf { text: self.names.label(self.explainer, term), marked: self.marked == Some(term) }
    }

    /// The part at `path` and what is around it.
    fn around(&mut self, term: TermId, path: &[usize]) -> Doc {
        let Some((place, below)) = path.split_first() else {
            let mut doc = self.open(term);
            match &mut doc {
                Doc::Leaf { marked, .. } | Doc::Call { marked, .. } => *marked = true,
            }
            return doc;
        };
        let (name, pieces) = pieces(self.explainer, term);
        let operands = self.explainer.bank.operands(term);
        let parts = pieces.into_iter().map(|piece| match piece {
            Piece::Attr(text) => Doc::Leaf { text, marked: false },
            Piece::Operand(i) if i == *place => self.around(operands[i], below),
            Piece::Operand(i) => self.leaf(operands[i]),
        });
        let parts = parts.collect();
        Doc::Call { name, parts, marked: false }
    }

    /// A term whose open calls are written out.
    fn open(&mut self, term: TermId) -> Doc {
        let closed = !self.open.contains(&term) || constant(self.explainer, term).is_some() || self.calls == 0;
        if closed || (self.names.get(term).is_some() && !self.written.insert(term)) {
            return self.leaf(term);
        }
        self.calls -= 1;
        let (name, pieces) = pieces(self.explainer, term);
        let operands = self.explainer.bank.operands(term);
        let mut parts = Vec::with_capacity(pieces.len());
        for piece in pieces {
            parts.push(match piece {
                Piece::Attr(text) => Doc::Leaf { text, marked: false },
                Piece::Operand(i) => self.open(operands[i]),
            });
        }
        Doc::Call { name, parts, marked: self.marked == Some(term) }
    }
}

/// Characters with their marks.
#[derive(Default)]
struct Page {
    lines: Vec<Vec<(char, bool)>>,
}

impl Page {
    fn put(&mut self, text: &str, marked: bool) {
        if self.lines.is_empty() {
            self.lines.push(Vec::new());
        }
        if let Some(line) = self.lines.last_mut() {
            line.extend(text.chars().map(|c| (c, marked)));
        }
    }

    fn new_line(&mut self, indent: usize) {
        self.lines.push(vec![(' ', false); indent]);
    }
}

fn width(doc: &Doc) -> usize {
    match doc {
        Doc::Leaf { text, .. } => text.chars().count(),
        Doc::Call { name, parts, .. } => {
            name.chars().count() + 2 + parts.iter().map(|p| width(p) + 2).sum::<usize>().saturating_sub(2)
        }
    }
}

fn layout(doc: &Doc) -> Vec<Line> {
    let mut page = Page::default();
    write(doc, 0, false, &mut page);
    page.lines.into_iter().map(line).collect()
}

fn write(doc: &Doc, indent: usize, within: bool, page: &mut Page) {
    match doc {
        Doc::Leaf { text, marked } => page.put(text, within || *marked),
        Doc::Call { name, parts, marked } => {
            let marked = within || *marked;
            let broken = indent + width(doc) > WIDTH && !parts.is_empty();
            page.put(name, marked);
            page.put("(", marked);
            for (i, part) in parts.iter().enumerate() {
                if i > 0 {
                    page.put(if broken { "," } else { ", " }, marked);
                }
                if broken {
                    page.new_line(indent + 2);
                }
                write(part, indent + 2, marked, page);
            }
            page.put(")", marked);
        }
    }
}

fn line(characters: Vec<(char, bool)>) -> Line {
    let mut marks: Vec<(usize, usize)> = Vec::new();
    for (i, (_, marked)) in characters.iter().enumerate() {
        if !marked {
            continue;
        }
        match marks.last_mut() {
            Some((_, end)) if *end == i => *end = i + 1,
            _ => marks.push((i, i + 1)),
        }
    }
    Line { text: characters.into_iter().map(|(c, _)| c).collect(), marks }
}
