//! A drawing as a program reads it: boxes, frames and edges with their places.

use std::collections::{BTreeMap, BTreeSet};

use roxmltree::{Document, Node};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Rect {
    pub fn of(node: Node<'_, '_>) -> Rect {
        let number = |name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
        let (left, top) = (number("x"), number("y"));
        Rect { left, top, right: left + number("width"), bottom: top + number("height") }
    }

    pub fn overlaps(&self, other: &Rect) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    /// Is the point farther inside than rounding of coordinates explains?
    pub fn holds(&self, (x, y): (f64, f64)) -> bool {
        const ROUNDING: f64 = 0.3;
        self.left + ROUNDING < x && x < self.right - ROUNDING && self.top + ROUNDING < y && y < self.bottom - ROUNDING
    }

    pub fn contains(&self, other: &Rect) -> bool {
        self.left <= other.left && other.right <= self.right && self.top <= other.top && other.bottom <= self.bottom
    }

    pub fn is_on_edge(&self, (x, y): (f64, f64)) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() < 0.3;
        x >= self.left - 0.3 && x <= self.right + 0.3 && (near(y, self.top) || near(y, self.bottom))
    }
}

#[derive(Debug)]
pub struct Box {
    pub class: String,
    pub rect: Rect,
    pub frame: Option<String>,
    pub value: Option<String>,
    pub result: Vec<String>,
    pub constants: Vec<String>,
    /// The names of the copies, if it stands for several.
    pub copies: Vec<String>,
    pub lines: Vec<String>,
    pub title: String,
}

#[derive(Debug)]
pub struct Frame {
    pub rect: Rect,
    pub copies: usize,
    pub members: Vec<String>,
    pub lines: Vec<String>,
}

#[derive(Debug)]
pub struct Edge {
    pub from: String,
    pub to: String,
    pub points: Vec<(f64, f64)>,
}

#[derive(Debug)]
pub struct Drawing {
    pub size: Rect,
    pub boxes: BTreeMap<String, Box>,
    pub frames: BTreeMap<String, Frame>,
    pub edges: Vec<Edge>,
}

/// Points on a path of absolute `M`, `L` and `C` commands.
pub fn points(data: &str) -> Vec<(f64, f64)> {
    let mut out: Vec<(f64, f64)> = Vec::new();
    for part in data.split_inclusive(|c: char| c.is_ascii_alphabetic()).collect::<Vec<_>>().windows(2) {
        let command = part[0].chars().last().unwrap();
        let numbers: Vec<f64> = part[1]
            .trim_end_matches(|c: char| c.is_ascii_alphabetic())
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect();
        match (command, numbers.as_slice()) {
            ('M', [x, y]) => out.push((*x, *y)),
            ('L', [x, y]) => {
                let (a, b) = *out.last().unwrap();
                out.extend((1..=20).map(|i| f64::from(i) / 20.0).map(|t| (a + (x - a) * t, b + (y - b) * t)));
            }
            ('C', [ax, ay, bx, by, x, y]) => {
                let (sx, sy) = *out.last().unwrap();
                let at = |t: f64, p: [f64; 4]| {
                    let s = 1.0 - t;
                    s * s * s * p[0] + 3.0 * s * s * t * p[1] + 3.0 * s * t * t * p[2] + t * t * t * p[3]
                };
                let ts = (1..=20).map(|i| f64::from(i) / 20.0);
                out.extend(ts.map(|t| (at(t, [sx, *ax, *bx, *x]), at(t, [sy, *ay, *by, *y]))));
            }
            other => panic!("{other:?} in {data}"),
        }
    }
    out
}

pub fn lines(node: Node<'_, '_>) -> Vec<String> {
    node.descendants().filter(|n| n.has_tag_name("text")).map(|n| n.text().unwrap_or_default().to_owned()).collect()
}

pub fn parse(svg: &str) -> Drawing {
    let document = Document::parse(svg).expect("well-formed XML");
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg");
    assert_eq!(root.tag_name().namespace(), Some("http://www.w3.org/2000/svg"));
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        assert!(!["script", "image", "use", "foreignObject", "a"].contains(&name), "<{name}>");
        assert!(node.attributes().all(|a| a.name() != "href" && !a.name().starts_with("on")));
    }
    assert!(!svg.contains("@import") && !svg.replace("url(#", "").contains("url("));
    let number = |name: &str| root.attribute(name).unwrap().parse::<f64>().unwrap();
    let size = Rect { left: 0.0, top: 0.0, right: number("width"), bottom: number("height") };
    let words = |node: Node<'_, '_>, name: &str| -> Vec<String> {
        node.attribute(name).into_iter().flat_map(str::split_whitespace).map(str::to_owned).collect()
    };
    let child = |node: Node<'_, '_>, name: &str| Rect::of(node.children().find(|n| n.has_tag_name(name)).unwrap());
    // The ground is white whatever the page is.
    let ground = root.children().find(|n| n.has_tag_name("rect")).unwrap();
    assert_eq!((ground.attribute("fill"), ground.attribute("width")), (Some("#ffffff"), Some("100%")));
    let mut drawing = Drawing { size, boxes: BTreeMap::new(), frames: BTreeMap::new(), edges: Vec::new() };
    for node in root.children().filter(Node::is_element) {
        let class = node.attribute("class").unwrap_or_default();
        let title = node.children().find(|n| n.has_tag_name("title")).and_then(|n| n.text()).unwrap_or_default();
        if let Some(class) = class.strip_prefix("node ") {
            let mark = node.children().any(|n| n.attribute("class") == Some("mark"));
            assert_eq!(mark, class == "backward", "shade and mark go together");
            let copies =
                title.rsplit_once(" copies: ").map(|(_, names)| names.split(", ").map(str::to_owned).collect());
            let new = Box {
                class: class.to_owned(),
                rect: child(node, "rect"),
                frame: node.attribute("data-frame").map(str::to_owned),
                value: node.attribute("data-value").map(str::to_owned),
                result: words(node, "data-result"),
                constants: words(node, "data-constants"),
                copies: copies.unwrap_or_default(),
                lines: lines(node),
                title: title.to_owned(),
            };
            assert!(drawing.boxes.insert(node.attribute("id").unwrap().to_owned(), new).is_none());
        } else if class == "frame" {
            let new = Frame {
                rect: child(node, "rect"),
                copies: node.attribute("data-copies").unwrap().parse().unwrap(),
                members: words(node, "data-members"),
                lines: lines(node),
            };
            assert!(drawing.frames.insert(node.attribute("id").unwrap().to_owned(), new).is_none());
        } else if class.split(' ').next() == Some("edge") {
            assert!(!title.is_empty(), "an edge says which values go along it");
            let end = |name: &str| node.attribute(name).unwrap().to_owned();
            let points = points(node.attribute("d").unwrap());
            drawing.edges.push(Edge { from: end("data-from"), to: end("data-to"), points });
        }
    }
    drawing
}

impl Drawing {
    pub fn rect(&self, id: &str) -> Rect {
        self.boxes.get(id).map(|b| b.rect).or_else(|| self.frames.get(id).map(|f| f.rect)).unwrap()
    }

    /// Nothing overlaps, texts fit into their boxes, edges end at their boxes and run through no others.
    #[track_caller]
    pub fn sound(&self) -> &Drawing {
        for (id, b) in &self.boxes {
            assert!(self.size.contains(&b.rect), "{id} is outside of the sheet");
            for line in &b.lines {
                // A cell of the smallest text.
                let width = line.chars().count() as f64 * 6.0;
                assert!(width <= b.rect.right - b.rect.left, "`{line}` does not fit into {id}");
            }
        }
        // What stands in one frame, or outside of all; frames stand outside.
        let mut levels: BTreeMap<Option<&str>, Vec<(&str, Rect)>> = BTreeMap::new();
        for (id, b) in &self.boxes {
            levels.entry(b.frame.as_deref()).or_default().push((id, b.rect));
        }
        for (id, frame) in &self.frames {
            assert!(self.size.contains(&frame.rect), "{id} is outside of the sheet");
            levels.entry(None).or_default().push((id, frame.rect));
        }
        for (frame, level) in &levels {
            for (i, (a, first)) in level.iter().enumerate() {
                for (b, second) in &level[i + 1..] {
                    assert!(!first.overlaps(second), "{a} and {b} overlap");
                }
                if let Some(frame) = frame {
                    assert!(self.rect(frame).contains(first), "{a} is outside of its frame");
                }
            }
        }
        for edge in &self.edges {
            let (from, to) = (self.rect(&edge.from), self.rect(&edge.to));
            assert!(from.is_on_edge(edge.points[0]), "{} -> {} does not begin at its box", edge.from, edge.to);
            assert!(
                to.is_on_edge(edge.points[edge.points.len() - 1]),
                "{} -> {} does not end there",
                edge.from,
                edge.to
            );
            let frame = self.boxes.get(&edge.from).and_then(|b| b.frame.as_deref());
            for (id, rect) in levels.get(&frame).into_iter().flatten() {
                for point in &edge.points {
                    assert!(!rect.holds(*point), "{} -> {} runs through {id} at {point:?}", edge.from, edge.to);
                }
            }
        }
        self
    }

    /// Names of the values that are drawn, and how many values the copies in frames are.
    pub fn values(&self) -> (BTreeSet<String>, usize) {
        let mut names = BTreeSet::new();
        let mut constants = BTreeSet::new();
        for b in self.boxes.values() {
            if let Some(value) = &b.value {
                assert!(names.insert(value.clone()), "{value} is drawn twice");
            }
            constants.extend(b.constants.iter().cloned());
        }
        let mut count = 0;
        let mut members = BTreeSet::new();
        for (id, frame) in &self.frames {
            count += frame.copies * frame.members.len();
            for member in &frame.members {
                let drawn = |b: &Box| {
                    b.frame.as_ref() == Some(id) && (b.value.as_ref() == Some(member) || b.constants.contains(member))
                };
                assert!(self.boxes.values().any(drawn), "{member} of {id} is not drawn there");
                assert!(members.insert(member.clone()), "{member} is in two frames");
            }
        }
        names.extend(constants);
        (names, count)
    }
}
