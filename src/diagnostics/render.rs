//! Diagnostics for people.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::{Diagnostic, Diagnostics, Label, Severity, SourceMap, Span};

/// Colour or none. Colour is for terminals only (DESIGN §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Colour,
}

/// Renders the whole bag, one blank line between diagnostics, and says how many were not kept.
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
        out.push_str(&format!("\n{} more of these are not shown\n", bag.omitted()));
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
    // One snippet per file, the primary's first.
    let mut files: Vec<Span> = Vec::new();
    for label in diagnostic.primary.iter().chain(&diagnostic.secondary) {
        if !files.iter().any(|s| s.file == label.span.file) {
            files.push(label.span);
        }
    }
    for span in files {
        let file = sources.file(span.file);
        let here = |l: &&Label| l.span.file == span.file;
        // Only the lines that the labels are on: the renderer looks at every line that it is given.
        let labels = diagnostic.primary.iter().chain(&diagnostic.secondary).filter(here);
        let whole = labels.map(|l| l.span).reduce(Span::to).unwrap_or(span);
        let lines = sources.lines(whole);
        let range = |span: Span| span.start as usize - lines.start..span.end as usize - lines.start;
        let first_line = sources.position(Span { end: whole.start, ..whole }).line;
        let mut snippet = Snippet::source(&file.text[lines.clone()]).line_start(first_line as usize).path(&*file.name);
        if let Some(label) = diagnostic.primary.as_ref().filter(here) {
            snippet = snippet.annotation(AnnotationKind::Primary.span(range(label.span)).label(&label.text));
        }
        for label in diagnostic.secondary.iter().filter(here) {
            snippet = snippet.annotation(AnnotationKind::Context.span(range(label.span)).label(&label.text));
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
