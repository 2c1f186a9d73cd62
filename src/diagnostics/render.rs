//! Diagnostics for people.

use std::borrow::Cow;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Diagnostic, Diagnostics, Severity, SourceMap, Span};

/// Colour or none. Colour is for terminals only (DESIGN §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Colour,
}

/// Renders the whole bag, one blank line between diagnostics, and says that some were not kept.
pub fn render(bag: &Diagnostics, sources: &SourceMap, style: Style) -> String {
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Colour => Renderer::styled(),
    };
    let mut out = String::new();
    for diagnostic in bag.iter() {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&render_one(diagnostic, sources, &renderer));
        out.push('\n');
    }
    if bag.omitted() > 0 {
        out.push_str(&format!("\n{} or more beyond these are not shown\n", bag.omitted()));
    }
    out
}

fn render_one(diagnostic: &Diagnostic, sources: &SourceMap, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(visible(&diagnostic.message)).id(diagnostic.code);
    let mut group = Group::with_title(title);
    for part in parts(diagnostic, sources) {
        let window = window(part.span, sources);
        let name = visible(&sources.file(part.span.file).name);
        let mut snippet = Snippet::source(shown_text(window.text)).line_start(window.number).fold(true);
        if window.is_cut {
            // The renderer counts columns in what it is given.
            let first = part.labels.iter().min_by_key(|(kind, span, _)| (*kind != AnnotationKind::Primary, *span));
            let position = sources.position(first.map_or(part.span, |(_, span, _)| *span));
            let (line, column) = (position.line as usize, position.column as usize);
            group = group.element(Origin::path(name).line(line).char_column(column));
        } else {
            snippet = snippet.path(name);
        }
        for (kind, span, text) in part.labels {
            let range = span.start as usize - window.start..span.end as usize - window.start;
            snippet = snippet.annotation(kind.span(range).label(visible(text)));
        }
        group = group.element(snippet);
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(visible(note)));
    }
    for help in &diagnostic.help {
        group = group.element(Level::HELP.message(visible(help)));
    }
    renderer.render(&[group]).to_string()
}

/// Characters that show nothing, or that change how others are shown.
pub fn is_unseen(c: char) -> bool {
    let formats = ['\u{AD}', '\u{180E}', '\u{FEFF}'];
    c.is_control()
        || c.is_whitespace() && c != ' '
        || formats.contains(&c)
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}')
}

/// A message whose characters can all be seen. Messages quote names and texts that may hold any, and a terminal would obey
/// some of them. Ends of lines stay: a help may hold a whole rule.
fn visible(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| c != '\n' && is_unseen(c);
    if !text.contains(is_bad) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_bad(c) => out.push_str(&format!("U+{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.into()
}

/// What is shown of the lines around a place.
struct Window<'a> {
    /// Of the first line.
    number: usize,
    /// Offset of `text` in the file.
    start: usize,
    text: &'a str,
    /// Does `text` begin inside a line?
    is_cut: bool,
}

/// The lines of a place, without what is far to the left or to the right of it: the renderer takes time for all that it
/// is given, of which a screen shows little.
fn window(span: Span, sources: &SourceMap) -> Window<'_> {
    /// Bytes before and after a place that are left as they are, and that are kept of more.
    const WHOLE: usize = 2000;
    const KEPT: usize = 400;
    let lines = sources.lines(span);
    let (first, last) = (span.start as usize - lines.start, span.end as usize - lines.start);
    let is_cut = first > WHOLE;
    let mut from = if is_cut { first - KEPT } else { 0 };
    let mut to = if lines.text.len() - last > WHOLE { last + KEPT } else { lines.text.len() };
    while !lines.text.is_char_boundary(from) {
        from -= 1;
    }
    while !lines.text.is_char_boundary(to) {
        to += 1;
    }
    Window { number: lines.number, start: lines.start + from, text: &lines.text[from..to], is_cut }
}

/// The text as it is shown. Lone carriage returns become newlines, which end lines for the renderer too, and what it would
/// pass on although a terminal may obey it becomes something of as many bytes: offsets stay what they are.
fn shown_text(text: &str) -> String {
    let mut following = text.chars().skip(1);
    text.chars()
        .map(|c| match (c, following.next()) {
            ('\r', next) if next != Some('\n') => '\n',
            ('\0'..='\u{7F}' | '\u{FEFF}', _) => c,
            _ if !is_unseen(c) || c.is_whitespace() && !c.is_control() => c,
            _ if c.len_utf8() == 2 => '¿',
            _ if c.len_utf8() == 3 => char::REPLACEMENT_CHARACTER,
            _ => c,
        })
        .collect()
}

/// Labels that are shown in one piece of text.
struct Part<'a> {
    /// Covers the labels.
    span: Span,
    labels: Vec<(AnnotationKind, Span, &'a str)>,
}

/// The part of a place that is shown: a place of many lines, or in a text without lines, only at its start.
fn shown(span: Span, sources: &SourceMap) -> Span {
    /// Bytes of a place that is shown whole, and of the start of a longer one.
    const WHOLE: u32 = 4096;
    const START: usize = 100;
    if span.end - span.start <= WHOLE {
        return span;
    }
    let text = sources.text(span);
    let line = text.find(['\n', '\r']).unwrap_or(text.len());
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= START.min(line)).unwrap_or(line);
    Span { end: span.start + end as u32, ..span }
}

/// The primary label with its neighbours, then the others: one piece of text per file where the labels lie close
/// together. What is shown must not take time in proportion to the file.
fn parts<'a>(diagnostic: &'a Diagnostic, sources: &SourceMap) -> Vec<Part<'a>> {
    /// Lines between the first and the last label of one piece.
    const NEAR: usize = 200;
    /// Bytes of one piece with several labels; the renderer shortens long lines for one label only.
    const SMALL: usize = 20_000;
    let primary = diagnostic.primary.iter().map(|l| (AnnotationKind::Primary, l));
    let secondary = diagnostic.secondary.iter().map(|l| (AnnotationKind::Context, l));
    let mut parts: Vec<Part<'a>> = Vec::new();
    for (kind, label) in primary.chain(secondary) {
        let span = shown(label.span, sources);
        let labelled = (kind, span, label.text.as_str());
        let near = |part: &&mut Part<'a>| {
            let lines = || sources.lines(part.span.to(span));
            part.span.file == span.file && lines().count <= NEAR && lines().text.len() <= SMALL
        };
        match parts.iter_mut().find(near) {
            Some(part) => {
                part.span = part.span.to(span);
                part.labels.push(labelled);
            }
            None => parts.push(Part { span, labels: vec![labelled] }),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many faults on one long line take no time in proportion to the line, and keep their columns.
    #[test]
    fn long_lines_are_cut_around_places() {
        let word = "wörd + ";
        let text = word.repeat(100_000);
        let mut sources = SourceMap::new();
        let file = sources.add("t", &text);
        let mut bag = Diagnostics::new();
        for i in 0..100 {
            let start = (900 * i + 7) * word.len();
            let diagnostic = Diagnostic::error("E0201", format!("number {i}"))
                .at(sources.span(file, start, start + "wörd".len()), "here")
                .also(sources.span(file, start + word.len(), start + word.len() + 1), "and here");
            bag.push(diagnostic);
        }
        let before = std::time::Instant::now();
        let shown = render(&bag, &sources, Style::Plain);
        assert!(before.elapsed().as_secs() < 10, "{:?}", before.elapsed());
        for i in 0..100 {
            assert!(shown.contains(&format!("--> t:1:{}\n", (900 * i + 7) * 7 + 1)), "{i}: {}", &shown[..2000]);
        }
        assert!(shown.lines().all(|line| line.chars().count() < 200) && shown.contains("wörd + wörd"));
        assert_eq!(shown.matches("^^^^ here").count() + shown.matches("and here").count(), 200, "{}", &shown[..2000]);
    }

    /// Whatever a message quotes, a terminal gets no character that it would obey.
    #[test]
    fn every_part_of_a_message_can_be_seen() {
        let bad = "a\u{1B}[31m\0\u{202E}\u{7F}\r\t\u{9B}\u{200B}b";
        let mut sources = SourceMap::new();
        let file = sources.add(bad, bad);
        let place = sources.span(file, 0, 1);
        let diagnostic = Diagnostic::error("E0201", bad)
            .at(place, bad)
            .also(place, bad)
            .note(bad)
            .help(format!("{bad}\nsecond line"));
        let shown = render(&diagnostic.into(), &sources, Style::Plain);
        assert!(shown.chars().all(|c| c == '\n' || !is_unseen(c)), "{shown:?}");
        assert!(shown.matches("aU+001B[31mU+0000U+202EU+007FU+000DU+0009U+009BU+200Bb").count() >= 5, "{shown}");
        assert!(shown.contains("\n          second line"), "{shown}");
    }

    #[test]
    fn long_places_are_shown_at_their_start() {
        for text in ["é".repeat(100_000), "some words\n".repeat(100_000), "\r".repeat(100_000)] {
            let mut sources = SourceMap::new();
            let file = sources.add("t", &text);
            let place = sources.span(file, 0, text.len());
            let bag =
                Diagnostics::from(Diagnostic::error("E0101", "m").at(place, "all of this").also(place, "and this"));
            let shown = render(&bag, &sources, Style::Plain);
            assert!(shown.contains("t:1:1") && shown.contains("all of this"), "{shown}");
            assert!(shown.len() < 2000, "{} bytes", shown.len());
        }
    }
}
