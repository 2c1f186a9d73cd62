//! What is drawn, before it has places: boxes, edges, and frames around the parts that stand for several copies.

/// What a box is, which decides how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value of the program, or of a rewrite of it.
    Forward,
    /// A value that is there for a gradient.
    Backward,
    /// An input of the program.
    Input,
    /// A result of the program, under its name.
    Result,
    /// A bounds check.
    Check,
    /// A value that a frame gets from outside, or hands on: a reference, not a value of its own.
    Reference,
    /// A step of a schedule.
    Step,
}

impl Kind {
    /// The class of its box in the SVG.
    pub fn class(self) -> &'static str {
        match self {
            Kind::Forward => "forward",
            Kind::Backward => "backward",
            Kind::Input => "input",
            Kind::Result => "result",
            Kind::Check => "check",
            Kind::Reference => "reference",
            Kind::Step => "step",
        }
    }
}

/// How a line of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Of the drawing, or of a frame.
    Title,
    /// The name of what the box is.
    Name,
    Plain,
    /// Small: where it comes from.
    Note,
}

/// One line of a box.
#[derive(Clone, Debug)]
pub struct Line {
    pub text: String,
    pub style: Style,
}

impl Line {
    pub fn new(style: Style, text: impl Into<String>) -> Line {
        Line { text: text.into(), style }
    }
}

/// Lines of a box that belong together, with a ground of their own: a nest of a fusion group.
#[derive(Clone, Debug)]
pub struct Part {
    pub lines: Vec<Line>,
    pub backward: bool,
}

/// Where a box wants to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    Free,
    Top,
    Bottom,
}

/// A box.
#[derive(Clone, Debug)]
pub struct Node {
    pub kind: Kind,
    /// At the top of the box.
    pub lines: Vec<Line>,
    /// Below the lines.
    pub parts: Vec<Part>,
    pub tooltip: String,
    pub pin: Pin,
    /// The frame it stands in, by its place in [`Picture::frames`].
    pub frame: Option<usize>,
    /// Attributes `data-..` of the box: what a program reads.
    pub data: Vec<(&'static str, String)>,
}

/// What an edge ends at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Node(usize),
    Frame(usize),
}

/// An edge between two boxes of one frame, or outside of all frames between boxes and frames.
#[derive(Clone, Debug)]
pub struct Edge {
    pub from: End,
    pub to: End,
    /// The values that go along it.
    pub values: Vec<String>,
    /// Does it end at a value that is there for a gradient?
    pub backward: bool,
}

/// One copy of what repeats, drawn for all of them.
#[derive(Clone, Debug)]
pub struct Frame {
    pub title: String,
    /// Below the title.
    pub notes: Vec<String>,
    pub tooltip: String,
    pub data: Vec<(&'static str, String)>,
}

/// Up to how many boxes all edges can be followed with the eye.
const SMALL: usize = 120;

/// A drawing without places.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    pub title: String,
    /// Below the title.
    pub notes: Vec<String>,
    /// What boxes and marks mean: a kind with its meaning.
    pub legend: Vec<(Kind, &'static str)>,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    pub frames: Vec<Frame>,
}

impl Picture {
    /// Adds a box and gives its place in the list.
    pub fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Can all edges be drawn, however long they are?
    pub fn is_small(&self) -> bool {
        self.frames.is_empty() && self.nodes.len() <= SMALL
    }

    /// Joins the edges that have the same ends: values in the order of their first edge.
    pub fn join_edges(&mut self) {
        let mut place: std::collections::BTreeMap<(End, End), usize> = std::collections::BTreeMap::new();
        let mut joined: Vec<Edge> = Vec::with_capacity(self.edges.len());
        let mut known: std::collections::BTreeSet<(usize, String)> = std::collections::BTreeSet::new();
        for edge in std::mem::take(&mut self.edges) {
            let at = *place.entry((edge.from, edge.to)).or_insert(joined.len());
            match joined.get_mut(at) {
                Some(old) => {
                    for value in edge.values {
                        if known.insert((at, value.clone())) {
                            old.values.push(value);
                        }
                    }
                    old.backward |= edge.backward;
                }
                None => {
                    known.extend(edge.values.iter().map(|v| (at, v.clone())));
                    joined.push(edge);
                }
            }
        }
        self.edges = joined;
    }
}
