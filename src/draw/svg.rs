//! A picture with places as SVG: no scripts, no references to anything outside, text of a fixed width.

use std::fmt::Write as _;

use super::layout::{Laid, Level, Path, Point, Size, lay_out};
use super::picture::{Edge, End, Kind, Line, Node, Picture, Pin, Style};
use super::text::{cells, escape};

/// Between the side of a box and its text.
const SIDE: f64 = 9.0;
const ABOVE: f64 = 5.0;
/// Around everything, and within frames.
const MARGIN: f64 = 24.0;
/// Up to how many inputs (or results) stand in a row of their own at the top (or the bottom).
const ROW: usize = 8;

const STYLE: &str = "
text { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 12px; fill: #1a1a1a; }
.name { font-weight: bold; }
.note { font-size: 10px; fill: #4a4a4a; }
.title { font-size: 16px; font-weight: bold; }
.edge { fill: none; stroke: #555555; stroke-width: 1.1; marker-end: url(#arrow); }
.edge.backward { stroke: #35558c; marker-end: url(#arrow-backward); }
.edge.many { stroke-width: 3; }
.box { fill: #ffffff; stroke: #333333; stroke-width: 1; }
.input .box { fill: #f0efe6; }
.backward .box, .part.backward rect { fill: #dce6f4; }
.result .box { stroke-width: 2.5; }
.check .box { stroke-dasharray: 6 3; }
.reference .box { fill: none; stroke: #777777; stroke-dasharray: 2 2; }
.part rect { fill: #ffffff; stroke: #999999; stroke-width: 0.7; }
.step .box { fill: #f6f6f3; }
.frame .border { fill: #fbfaf5; stroke: #333333; stroke-width: 1.6; }
.mark { fill: #35558c; }
";

/// A drawing. `None` if its edges pass more than `most` rows.
pub fn svg(picture: &Picture, most: usize) -> Option<String> {
    let sizes: Vec<Size> = picture.nodes.iter().map(size).collect();
    let mut sheet = Sheet {
        corners: vec![Point::default(); picture.nodes.len()],
        frames: Vec::new(),
        paths: vec![Path::default(); picture.edges.len()],
        width: 0.0,
        height: 0.0,
    };
    // The frames, each by itself.
    let mut inside = Vec::with_capacity(picture.frames.len());
    for (f, frame) in picture.frames.iter().enumerate() {
        let members: Vec<usize> = (0..picture.nodes.len()).filter(|n| picture.nodes[*n].frame == Some(f)).collect();
        let level = level(picture, &sizes, &members, &[]);
        let laid = lay_out(&level.0, most)?;
        let (text, head) = extent(&heading(&frame.title, &frame.notes, Style::Note));
        let head = head + ABOVE;
        let width = laid.width.max(text) + 2.0 * MARGIN;
        let size = Size { width, height: laid.height + head + 2.0 * MARGIN, pin: Pin::Free, wide: true };
        inside.push((members, level.1, laid, size, head));
    }
    let outside: Vec<usize> = (0..picture.nodes.len()).filter(|n| picture.nodes[*n].frame.is_none()).collect();
    let frames: Vec<Size> = inside.iter().map(|i| i.3).collect();
    let (level, edges) = level(picture, &sizes, &outside, &frames);
    let laid = lay_out(&level, most)?;
    let head = head(picture);
    let origin = Point { x: MARGIN, y: MARGIN + head.1 };
    sheet.put(&outside, &edges, &laid, origin);
    for (i, (members, edges, within, size, head)) in inside.iter().enumerate() {
        let corner = laid.corners.get(outside.len() + i).copied().unwrap_or_default();
        let corner = Point { x: corner.x + origin.x, y: corner.y + origin.y };
        sheet.frames.push((corner, *size));
        let room = (size.width - within.width) / 2.0;
        sheet.put(members, edges, within, Point { x: corner.x + room, y: corner.y + head + MARGIN });
    }
    sheet.width = laid.width.max(head.0) + 2.0 * MARGIN;
    sheet.height = laid.height + 2.0 * MARGIN + head.1;
    Some(sheet.write(picture, &sizes))
}

/// The boxes of one frame, or those outside of all with the frames behind them, and the edges among them with their places
/// in the picture.
fn level(picture: &Picture, sizes: &[Size], members: &[usize], frames: &[Size]) -> (Level, Vec<usize>) {
    let mut place = vec![None; picture.nodes.len()];
    members.iter().enumerate().for_each(|(i, n)| place[*n] = Some(i));
    let place = |end: End| match end {
        End::Node(n) => place.get(n).copied().flatten(),
        End::Frame(f) => (f < frames.len()).then_some(members.len() + f),
    };
    let mut boxes: Vec<Size> = members.iter().map(|n| sizes[*n]).collect();
    for (kind, pin) in [(Kind::Input, Pin::Top), (Kind::Result, Pin::Bottom)] {
        let of_kind: Vec<usize> = (0..members.len()).filter(|i| picture.nodes[members[*i]].kind == kind).collect();
        // Where there is much, they stand where they are used: their edges would be all that one sees.
        if of_kind.len() <= ROW && picture.is_small() {
            of_kind.into_iter().for_each(|i| boxes[i].pin = pin);
        }
    }
    boxes.extend(frames);
    let mut places = Vec::new();
    let mut edges = Vec::new();
    for (e, edge) in picture.edges.iter().enumerate() {
        if let (Some(from), Some(to)) = (place(edge.from), place(edge.to)) {
            edges.push((from, to));
            places.push(e);
        }
    }
    (Level { boxes, edges }, places)
}

/// Of one line: the width of a cell, the height, and how far its base line is from its upper end.
fn metrics(style: Style) -> (f64, f64, f64) {
    match style {
        Style::Title => (9.8, 21.0, 16.0),
        Style::Name | Style::Plain => (7.3, 15.0, 11.5),
        Style::Note => (6.1, 12.5, 9.5),
    }
}

/// Width and height of lines.
fn extent(lines: &[Line]) -> (f64, f64) {
    lines.iter().fold((0.0, 0.0), |(width, height), line| {
        let (cell, line_height, _) = metrics(line.style);
        (f64::max(width, cells(&line.text) as f64 * cell), height + line_height)
    })
}

fn size(node: &Node) -> Size {
    let (mut width, mut height) = extent(&node.lines);
    if node.kind == Kind::Backward {
        // The mark in the corner.
        width += 10.0;
    }
    for part in &node.parts {
        let (w, h) = extent(&part.lines);
        width = width.max(w + 2.0 * SIDE + 10.0);
        height += h + 3.0 * ABOVE;
    }
    Size {
        width: (width + 2.0 * SIDE).max(40.0),
        height: height + 2.0 * ABOVE,
        pin: node.pin,
        wide: node.kind == Kind::Step,
    }
}

/// A title with notes below it.
fn heading(title: &str, notes: &[String], style: Style) -> Vec<Line> {
    let title = std::iter::once(Line::new(Style::Title, title));
    title.chain(notes.iter().map(|n| Line::new(style, n.as_str()))).collect()
}

/// Width and height of title, notes and legend.
fn head(picture: &Picture) -> (f64, f64) {
    let (width, height) = extent(&heading(&picture.title, &picture.notes, Style::Plain));
    let legend: f64 = picture.legend.iter().map(|(_, text)| legend_width(text)).sum();
    (width.max(legend), height + 52.0)
}

fn legend_width(text: &str) -> f64 {
    cells(text) as f64 * metrics(Style::Note).0 + 2.0 * SIDE + 24.0
}

struct Sheet {
    corners: Vec<Point>,
    frames: Vec<(Point, Size)>,
    paths: Vec<Path>,
    width: f64,
    height: f64,
}

impl Sheet {
    fn put(&mut self, members: &[usize], edges: &[usize], laid: &Laid, origin: Point) {
        for (n, corner) in members.iter().zip(&laid.corners) {
            self.corners[*n] = Point { x: corner.x + origin.x, y: corner.y + origin.y };
        }
        for (e, path) in edges.iter().zip(&laid.paths) {
            let mut path = path.clone();
            path.moved(origin);
            self.paths[*e] = path;
        }
    }

    fn write(&self, picture: &Picture, sizes: &[Size]) -> String {
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0}\" height=\"{1:.0}\" viewBox=\"0 0 {0:.0} {1:.0}\">\n",
            self.width.ceil(),
            self.height.ceil()
        );
        let _ = writeln!(out, "<title>{}</title>\n<style>{STYLE}</style>\n<defs>", escape(&picture.title));
        for (id, colour) in [("arrow", "#555555"), ("arrow-backward", "#35558c")] {
            let _ = writeln!(
                out,
                "<marker id=\"{id}\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
                 markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0.8 L8 4 L0 7.2 z\" fill=\"{colour}\"/></marker>"
            );
        }
        out.push_str("</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
        self.head(&mut out, picture);
        self.edges(&mut out, picture, false);
        for (f, frame) in picture.frames.iter().enumerate() {
            let (corner, size) = self.frames[f];
            let _ = write!(out, "<g class=\"frame\" id=\"f{f}\"");
            attributes(&mut out, &frame.data);
            let _ = writeln!(out, ">\n<title>{}</title>", escape(&frame.tooltip));
            rect(&mut out, "border", corner, size.width, size.height, 6.0);
            let mut y = corner.y + ABOVE;
            for line in heading(&frame.title, &frame.notes, Style::Note) {
                text(&mut out, &line, corner.x + SIDE, &mut y);
            }
            out.push_str("</g>\n");
        }
        self.edges(&mut out, picture, true);
        for (n, node) in picture.nodes.iter().enumerate() {
            self.node(&mut out, n, node, sizes[n]);
        }
        out.push_str("</svg>\n");
        out
    }

    fn head(&self, out: &mut String, picture: &Picture) {
        let mut y = MARGIN;
        for line in heading(&picture.title, &picture.notes, Style::Plain) {
            text(out, &line, MARGIN, &mut y);
        }
        y += 8.0;
        let mut x = MARGIN;
        for (kind, meaning) in &picture.legend {
            let width = legend_width(meaning) - 10.0;
            let _ = writeln!(out, "<g class=\"legend {}\">", kind.class());
            rect(out, "box", Point { x, y }, width, 20.0, radius(*kind));
            if *kind == Kind::Backward {
                mark(out, x + width, y);
            }
            text(out, &Line::new(Style::Note, *meaning), x + SIDE, &mut (y + 3.5));
            out.push_str("</g>\n");
            x += legend_width(meaning);
        }
    }

    /// The edges in frames, or those outside of them.
    fn edges(&self, out: &mut String, picture: &Picture, inside: bool) {
        let is_inside = |edge: &Edge| matches!(edge.from, End::Node(n) if picture.nodes[n].frame.is_some());
        for (edge, path) in picture.edges.iter().zip(&self.paths) {
            if is_inside(edge) != inside || path.points.is_empty() {
                continue;
            }
            let id = |end: End| match end {
                End::Node(n) => format!("n{n}"),
                End::Frame(f) => format!("f{f}"),
            };
            let mut class = String::from("edge");
            if edge.backward {
                class.push_str(" backward");
            }
            if edge.values.len() > 3 {
                class.push_str(" many");
            }
            let _ = writeln!(
                out,
                "<path class=\"{class}\" data-from=\"{}\" data-to=\"{}\" d=\"{}\"><title>{}</title></path>",
                id(edge.from),
                id(edge.to),
                path.data(),
                escape(&super::assemble::some(&edge.values))
            );
        }
    }

    fn node(&self, out: &mut String, n: usize, node: &Node, size: Size) {
        let corner = self.corners[n];
        let _ = write!(out, "<g class=\"node {}\" id=\"n{n}\"", node.kind.class());
        if let Some(f) = node.frame {
            let _ = write!(out, " data-frame=\"f{f}\"");
        }
        attributes(out, &node.data);
        let _ = writeln!(out, ">\n<title>{}</title>", escape(&node.tooltip));
        rect(out, "box", corner, size.width, size.height, radius(node.kind));
        if node.kind == Kind::Backward {
            mark(out, corner.x + size.width, corner.y);
        }
        let mut y = corner.y + ABOVE;
        for line in &node.lines {
            text(out, line, corner.x + SIDE, &mut y);
        }
        for part in &node.parts {
            let height = extent(&part.lines).1 + 2.0 * ABOVE;
            let class = if part.backward { "part backward" } else { "part" };
            let _ = writeln!(out, "<g class=\"{class}\">");
            rect(out, "nest", Point { x: corner.x + SIDE, y }, size.width - 2.0 * SIDE, height, 0.0);
            if part.backward {
                mark(out, corner.x + size.width - SIDE, y);
            }
            let mut line_y = y + ABOVE;
            for line in &part.lines {
                text(out, line, corner.x + 2.0 * SIDE, &mut line_y);
            }
            out.push_str("</g>\n");
            y += height + ABOVE;
        }
        out.push_str("</g>\n");
    }
}

fn radius(kind: Kind) -> f64 {
    if matches!(kind, Kind::Input | Kind::Result) { 9.0 } else { 2.0 }
}

fn rect(out: &mut String, class: &str, corner: Point, width: f64, height: f64, radius: f64) {
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{radius}\"/>",
        corner.x, corner.y
    );
}

/// The mark of what is there for a gradient: a triangle that points down, in the right corner.
fn mark(out: &mut String, right: f64, top: f64) {
    let (left, right, top) = (right - 13.0, right - 4.0, top + 5.0);
    let (middle, bottom) = ((left + right) / 2.0, top + 8.0);
    let _ = writeln!(
        out,
        "<path class=\"mark\" d=\"M{left:.1} {top:.1} L{right:.1} {top:.1} L{middle:.1} {bottom:.1} z\"/>"
    );
}

/// One line, whose upper end is `y`; moves `y` below it.
fn text(out: &mut String, line: &Line, x: f64, y: &mut f64) {
    let class = match line.style {
        Style::Title => " class=\"title\"",
        Style::Name => " class=\"name\"",
        Style::Plain => "",
        Style::Note => " class=\"note\"",
    };
    let (_, height, base) = metrics(line.style);
    let _ = writeln!(out, "<text{class} x=\"{x:.1}\" y=\"{:.1}\">{}</text>", *y + base, escape(&line.text));
    *y += height;
}

fn attributes(out: &mut String, data: &[(&'static str, String)]) {
    for (name, value) in data {
        let _ = write!(out, " data-{name}=\"{}\"", escape(value));
    }
}
