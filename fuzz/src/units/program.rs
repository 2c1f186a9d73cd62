//! Program text: parsed, printed in both forms and parsed again, checked, differentiated, optimised, scheduled.

use kina_ad::ir::print::{PrintOptions, Printer};
use kina_ad::syntax::Form;
use kina_ad::{CheckOptions, Graph, Level, Session};

use super::{default_session, shown};

/// Larger graphs are checked but not differentiated: their size is the program's own, and here time is short.
const MAX_NODES: usize = 2_000;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut session = default_session();
    let options = CheckOptions { cotangent_input: text.len() % 2 == 1 };
    let graph = session.parse("program.kina", text).and_then(|program| {
        let graph = session.check_tree(&program, &options);
        let shown = graph.as_ref().map_or(String::new(), |graph| graph_text(&session, graph));
        for form in [Form::Kina, Form::Sexpr] {
            let printed = session.print(&program, form);
            round_trip(&printed, form, &shown, &options);
        }
        graph
    });
    match graph {
        Ok(graph) => compile(&session, &graph, text.len().is_multiple_of(8)),
        Err(refusal) => shown::refusal(&refusal),
    }
}

/// What was printed reads as it prints, and means the same. `graph` is empty if the program is refused.
fn round_trip(printed: &str, form: Form, graph: &str, options: &CheckOptions) {
    let mut session = default_session();
    let program = match session.parse("printed.kina", printed) {
        Ok(program) => program,
        Err(refusal) => panic!("the printed program has syntax errors: {refusal}\n{printed}"),
    };
    assert_eq!(session.print(&program, form), printed, "printing is not stable");
    let again = session.check_tree(&program, options).map_or(String::new(), |graph| graph_text(&session, &graph));
    assert_eq!(again, graph, "the program means something else when it is printed:\n{printed}");
}

fn graph_text(session: &Session, graph: &Graph) -> String {
    let printer = Printer::new(graph, &session.rules.registry, &session.sources);
    printer.text(PrintOptions { origins: false })
}

/// Differentiates and optimises. `twice`: again from the start, which must give the same bytes.
pub fn compile(session: &Session, graph: &Graph, twice: bool) {
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
        Ok(optimised) => Some(shown::optimised(&optimised, session)),
        Err(refusal) => {
            shown::refusal(&refusal);
            None
        }
    }
}
