//! Everything that can be shown is shown, to find what cannot.

use kina_ad::diagnostics::{Diagnostic, Diagnostics, SourceMap, Style, render, to_json};
use kina_ad::egraph::Optimised;
use kina_ad::ir::print::{PrintOptions, Printer};
use kina_ad::{Refusal, Session};

/// Renders a refusal in every form. Each error of a text must have a place in it and a way out.
pub fn refusal(refusal: &Refusal) {
    assert!(refusal.diagnostics.has_errors(), "a refusal without an error");
    diagnostics(&refusal.diagnostics, &refusal.sources);
}

/// Renders diagnostics in every form.
pub fn diagnostics(bag: &Diagnostics, sources: &SourceMap) {
    for diagnostic in bag.iter() {
        well_formed(diagnostic, sources);
    }
    for style in [Style::Plain, Style::Colour] {
        let text = render(bag, sources, style);
        assert_eq!(text.is_empty(), bag.is_empty());
    }
    to_json(bag, sources).to_string();
}

fn well_formed(diagnostic: &Diagnostic, sources: &SourceMap) {
    let labels = diagnostic.primary.iter().chain(&diagnostic.secondary);
    for label in labels {
        // Panics where a span is no range of characters of its file.
        sources.text(label.span);
    }
    // A file that cannot be read has no text to point into.
    let of_a_text = !matches!(diagnostic.code, "E0701" | "E0702");
    assert!(diagnostic.primary.is_some() || !of_a_text, "no place: {diagnostic:?}");
    assert!(!diagnostic.message.is_empty(), "no message: {diagnostic:?}");
    // A syntax error says what was expected, which is the way out.
    let syntax = diagnostic.code.starts_with("E01");
    assert!(syntax || !diagnostic.help.is_empty(), "no way out: {diagnostic:?}");
}

/// Prints an optimised program in every form, and its schedule.
pub fn optimised(optimised: &Optimised, session: &Session) -> String {
    let printer = Printer::new(&optimised.graph, &session.rules.registry, &session.sources);
    printer.json().to_string();
    printer.dot();
    session.locations(&optimised.graph);
    match session.schedule(optimised) {
        Ok(schedule) => {
            schedule.to_text(printer.names());
            schedule.to_dot(printer.names());
        }
        // A value that is too large has no address; everything else is a fault of an earlier stage.
        Err(refusal) => {
            diagnostics(&refusal.diagnostics, &refusal.sources);
            assert!(refusal.diagnostics.iter().all(|d| d.code == "E0605"), "{refusal}");
        }
    }
    printer.text(PrintOptions { origins: true }) + &optimised.summary()
}
