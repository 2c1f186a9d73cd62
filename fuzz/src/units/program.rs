//! Program text: parsed, checked, printed and parsed again, differentiated, optimised, scheduled.

use kina_ad::diagnostics::{Diagnostics, SourceMap};
use kina_ad::ir::print::{PrintOptions, Printer};
use kina_ad::syntax::{parse_program, print_expr};
use kina_ad::{CheckOptions, Graph, Level, Session};

use super::{default_session, shown};

/// Larger graphs are checked but not differentiated: their size is the program's own, and here time is short.
const MAX_NODES: usize = 2_000;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    round_trip(text);
    let mut session = default_session();
    let options = CheckOptions { cotangent_input: text.len() % 2 == 1 };
    match session.check("program.kina", text, &options) {
        Ok(graph) => compile(&session, &graph, text.len().is_multiple_of(8)),
        Err(refusal) => shown::refusal(&refusal),
    }
}

/// A program that parses is printed as a text that parses to the same program.
fn round_trip(text: &str) {
    let Some(printed) = reprint(text) else { return };
    let again = reprint(&printed);
    assert_eq!(again.as_ref(), Some(&printed), "printing is not stable for {text:?}");
    let graph_of = |text: &str| {
        let mut session = default_session();
        let graph = session.check("program.kina", text, &CheckOptions::default()).ok()?;
        Some(graph_text(&session, &graph))
    };
    assert_eq!(graph_of(text), graph_of(&printed), "{text:?} means something else when it is printed: {printed:?}");
}

/// The program printed; `None` if it has syntax errors.
fn reprint(text: &str) -> Option<String> {
    let (mut sources, mut bag) = (SourceMap::new(), Diagnostics::new());
    let file = sources.add("program.kina", text);
    let program = parse_program(&sources, file, &mut bag);
    (!bag.has_errors()).then(|| print_expr(&program.body))
}

fn graph_text(session: &Session, graph: &Graph) -> String {
    let printer = Printer::new(graph, &session.rules.registry, &session.sources);
    printer.text(PrintOptions { origins: false })
}

/// Differentiates and optimises. `twice`: again from the start, which must give the same bytes.
pub fn compile(session: &Session, graph: &Graph, twice: bool) {
    graph_text(session, graph);
    if graph.len() > MAX_NODES {
        return;
    }
    for level in Level::ALL {
        let first = optimised(session, graph, level);
        if twice {
            assert_eq!(first, optimised(session, graph, level), "not the same graph twice at {level}");
        }
    }
}

/// The optimised graph as a text, if the program can be differentiated.
fn optimised(session: &Session, graph: &Graph, level: Level) -> Option<String> {
    let result = session.differentiate(graph).and_then(|mut program| session.optimise(&mut program, level));
    match result {
        Ok(optimised) => Some(shown::graph(&optimised.graph, session, level) + &optimised.summary()),
        Err(refusal) => {
            shown::refusal(&refusal);
            None
        }
    }
}
