//! Diagnostics for people.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

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
    let title = level.primary_title(&diagnostic.message).id(diagnostic.code);
    let mut group = Group::with_title(title);
    for part in parts(diagnostic, sources) {
        let lines = sources.lines(part.span);
        let mut snippet = Snippet::source(newlines(lines.text))
            .path(&*sources.file(part.span.file).name)
            .line_start(lines.number)
            .fold(true);
        for (kind, span, text) in part.labels {
            let range = span.start as usize - lines.start..span.end as usize - lines.start;
            snippet = snippet.annotation(kind.span(range).label(text));
        }
        group = group.element(snippet);
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note));
    }
    for help in &diagnostic.help {
        group = group.element(Level::HELP.message(help));
    }
    renderer.render(&[group]).to_string()
}

/// The text with lone carriage returns as newlines, which end lines for the renderer too. Offsets stay what they are.
fn newlines(text: &str) -> String {
    let mut following = text.chars().skip(1);
    text.chars().map(|c| if following.next() != Some('\n') && c == '\r' { '\n' } else { c }).collect()
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
