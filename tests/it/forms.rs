//! The two written forms of programs: converting, and graphs written as programs.

use std::path::{Path, PathBuf};

use kina_ad::check::graph_text;
use kina_ad::exec::Tensor;
use kina_ad::exec::inputs::gather;
use kina_ad::ir::print::{PrintOptions, Printer};
use kina_ad::ir::{Graph, Precision};
use kina_ad::run::{Engine, RunError, run};
use kina_ad::syntax::{Form, comments};
use kina_ad::{CheckOptions, Level, RuleOptions, Session};

use crate::bad_input::NLL;
use crate::support::{directory, kina, npy_i64};

const FORMS: [Form; 2] = [Form::Kina, Form::Sexpr];
const LEVELS: [Level; 3] = [Level::O0, Level::O1, Level::O2];

fn session() -> Session {
    Session::new(&RuleOptions::default()).unwrap()
}

/// Every program of `examples/`.
fn examples() -> Vec<PathBuf> {
    fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|e| e == "kina") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"), &mut found);
    assert!(found.len() >= 4, "{found:?}");
    found
}

fn typed(session: &mut Session, text: &str) -> String {
    let graph = session.check("p", text, &CheckOptions::default()).unwrap();
    Printer::new(&graph, &session.rules.registry, &session.sources).text(PrintOptions { origins: false })
}

#[test]
fn examples_read_back_from_both_forms_with_their_comments() {
    for path in examples() {
        let source = std::fs::read_to_string(&path).unwrap();
        let mut session = session();
        let program = session.parse("p", &source).unwrap();
        let texts = FORMS.map(|form| session.print(&program, form));
        for (text, form) in texts.iter().zip(FORMS) {
            assert_eq!(Form::of(text), form);
            let again = session.parse("p", text).unwrap();
            assert_eq!(FORMS.map(|form| session.print(&again, form)), texts, "{path:?}");
            assert_eq!(typed(&mut session, text), typed(&mut session, &source), "{path:?}");
            let said = |text: &str| comments(text).into_iter().map(|c| c.text).collect::<Vec<_>>();
            assert_eq!(said(text), said(&source), "{path:?}");
        }
    }
}

#[test]
fn comments_keep_their_places() {
    let kina_text = "\u{FEFF}// head\r\n\r\n// of f\r\nlet f = fn(x: tensor<F32, [2], @host>) { // inside\n  // y\n  \
                     let y = x in // beside y\n  y // last\n} in\n\n// the end\nlet x = tensor<F32, [2], @host> in\nf(x) // tail\n// rest";
    let expected = "; head\n\n; of f\n(program\n  (let\n    ((f\n       (fn ((x (tensor F32 [2] @host)))  ; inside\n         \
                    ; y\n         (let\n           ((y x))  ; beside y\n           y)))  ; last\n     ; the end\n     \
                    (x (tensor F32 [2] @host)))\n    (f x)))  ; tail\n; rest\n";
    let mut session = session();
    let program = session.parse("p", kina_text).unwrap();
    assert_eq!(session.print(&program, Form::Sexpr), expected);
    let back = session.parse("p", expected).unwrap();
    let kina_again = "// head\n\n// of f\nlet f = fn(x: tensor<F32, [2], @host>) {  // inside\n  // y\n  let y = x in  // \
                      beside y\n  y\n} in  // last\n// the end\nlet x = tensor<F32, [2], @host> in\nf(x)  // tail\n// rest\n";
    assert_eq!(session.print(&back, Form::Kina), kina_again);
}

#[test]
fn every_command_takes_either_form() {
    let place = directory(&[("p.kina", NLL)]);
    let sexpr = kina(place.path(), "emit p.kina --stage program --format sexpr").ok();
    assert!(sexpr.contains("\n(program\n"), "{sexpr}");
    std::fs::write(place.path().join("s.kina"), &sexpr).unwrap();
    let back = kina(place.path(), "emit s.kina --stage program --format kina").ok();
    assert_eq!(back.as_bytes(), NLL);
    kina(place.path(), "emit s.kina --stage program --format sexpr -o again.kina").ok();
    assert_eq!(std::fs::read_to_string(place.path().join("again.kina")).unwrap(), sexpr);
    for command in [
        "run FILE --interpret --check",
        "run FILE --interpret --json",
        "emit FILE --stage program",
        "emit FILE --stage schedule",
        "grad FILE --format dot -O1 --cotangent input",
        "grad FILE -O0",
    ] {
        let outcome = |file: &str| kina(place.path(), &command.replace("FILE", file)).ok();
        // The program's lines are other lines.
        let lines = |text: String| {
            let text = text.replace("s.kina", "p.kina");
            text.split("p.kina:")
                .map(|t| t.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(outcome("p.kina")), lines(outcome("s.kina")), "{command}");
    }
}

#[test]
fn the_checker_speaks_about_either_form() {
    let program = "(program\n  (let ((x (tensor F32 [2] @host)))\n    (.rleu x)))";
    let place = directory(&[("p.kina", program)]);
    let words = ["E0202", "p.kina:3:7", "unknown operator `rleu`", "did you mean `relu`?"];
    kina(place.path(), "grad p.kina").refusal(1, &words).unwrap();
    let json = kina(place.path(), "run p.kina --json");
    json.refusal(1, &["\"line\": 3", "\"column\": 7"]).unwrap();
}

#[test]
fn a_stage_without_a_written_form_says_which_have_one() {
    let place = directory(&[("p.kina", NLL)]);
    for format in ["kina", "sexpr"] {
        let command = format!("emit p.kina --stage schedule --format {format}");
        kina(place.path(), &command).refusal(1, &["E0603", "`program`, `graph`"]).unwrap();
    }
    kina(place.path(), "emit p.kina --stage linalg --format dot").refusal(1, &["E0603", "`schedule`"]).unwrap();
}

/// Results of a graph on inputs that are generated, the same for graphs with the same inputs.
fn results(session: &Session, graph: &Graph, tape: &Graph) -> Vec<Tensor> {
    let inputs = gather(tape, Vec::new(), 7).unwrap();
    let tensors: Vec<&Tensor> = inputs.iter().map(|i| &i.tensor).collect();
    let engine = Engine::Interpreted(Precision::Typed);
    run(graph, &session.rules.registry, Level::O0, engine, &tensors).unwrap().into_iter().map(|(_, t)| t).collect()
}

/// The graph of a program at a level, as a program of a form.
fn written(session: &mut Session, program: &str, level: Level, form: Form) -> (Graph, Graph, String) {
    let graph = session.check("p.kina", program, &CheckOptions::default()).unwrap();
    let mut differentiated = session.differentiate(&graph).unwrap();
    let optimised = session.optimise(&mut differentiated, level).unwrap().graph;
    let printer = Printer::new(&optimised, &session.rules.registry, &session.sources);
    let text = graph_text(&printer, form, PrintOptions { origins: true });
    (optimised, differentiated.tape, text)
}

const PROGRAMS: [(&str, &str); 8] = [
    (
        "a mean squared error",
        "let f = fn(w: tensor<F32, [3, 2], @host>, b: tensor<F32, [2], @host>) {
           let x = tensor<F32, [4, 3], @host> in let y = tensor<F32, [4, 2], @host> in
           let d = x.matmul(w).tanh() + b.broadcast(shape=[4, 2]) - y in
           (d * d).mean()
         } in
         let w = tensor<F32, [3, 2], @host> in let b = tensor<F32, [2], @host> in
         handle f(w, b) with reverseMode",
    ),
    (
        "second order",
        "let f = fn(x: tensor<F64, [3], @host>) { x * x.exp() } in
         let df = fn(x: tensor<F64, [3], @host>) { let (y, g) = handle f(x) with reverseMode in g } in
         let x = tensor<F64, [3], @host> in
         handle df(x) with reverseMode",
    ),
    (
        "values named like operators and results",
        "let f = fn(splat: tensor<F32, [2, 3], @host>) {
           let sum = splat.exp() in let exp = sum.sum(axis=1) in let primal = exp * 2.0 in let mul = primal.log() in mul
         } in
         let splat = tensor<F32, [2, 3], @host> in
         handle f(splat) with reverseMode",
    ),
    (
        "constants of all kinds",
        "let x = tensor<F64, [2], @host> in let i = tensor<I64, [2], @host> in let b = tensor<Bool, [2], @host> in
         (x * -0.0, x + nan, x.minimum(-inf), x - 1e-300, i * -3, b.logical_and(true), cast(i, dtype=F32) / 3.0,
          x + 123456789.125, splat(-2.5, type=tensor<F32, [], @host>))",
    ),
    (
        "rank 0",
        "let f = fn(x: tensor<F32, [], @host>) { x.sum() * x.max() } in
                let x = tensor<F32, [], @host> in handle f(x) with reverseMode",
    ),
    (
        "no element",
        "let f = fn(x: tensor<F32, [2, 0], @host>) { x.sum(axis=1) } in
                    let x = tensor<F32, [2, 0], @host> in handle f(x) with reverseMode",
    ),
    ("an unnamed input and a single result", "tensor<F32, [2], @host>.relu()"),
    (
        "a check whose value nothing needs",
        "let f = fn(x: tensor<F32, [2, 3], @host>) {
           let i = tensor<I64, [2], @host> in let unused = x.take_along_axis(i, axis=1) in x * x
         } in
         let x = tensor<F32, [2, 3], @host> in handle f(x) with reverseMode",
    ),
];

#[test]
fn graphs_without_internal_operators_are_programs_that_compute_the_same() {
    for (name, program) in PROGRAMS {
        for (level, form) in LEVELS.into_iter().flat_map(|level| FORMS.map(|form| (level, form))) {
            let mut session = session();
            let (graph, tape, text) = written(&mut session, program, level, form);
            assert_eq!(Form::of(&text), form, "{text}");
            let again = match session.check("again", &text, &CheckOptions::default()) {
                Ok(graph) => graph,
                Err(refusal) => panic!("{name}, {level:?}: {refusal}\n{text}"),
            };
            let types = |graph: &Graph| -> Vec<String> {
                graph.inputs.iter().map(|i| format!("{:?} {}", graph.node(*i).name, graph.ty(*i))).collect()
            };
            assert_eq!(types(&again), types(&graph), "{name}");
            let bits = |t: &Tensor| (t.dtype(), t.shape().clone(), t.as_bytes().to_vec());
            let expected: Vec<_> = results(&session, &graph, &tape).iter().map(bits).collect();
            let got: Vec<_> = results(&session, &again, &again).iter().map(bits).collect();
            assert_eq!(got, expected, "{name}, {level:?}: {text}");
        }
    }
}

/// A rewrite may leave no operator that needs the check; the written form says it all the same.
#[test]
fn a_written_graph_traps_where_the_program_does() {
    let (name, program) = PROGRAMS[7];
    for (level, form) in LEVELS.into_iter().flat_map(|level| FORMS.map(|form| (level, form))) {
        let mut session = session();
        let (.., text) = written(&mut session, program, level, form);
        let graph = session.check("again", &text, &CheckOptions::default()).unwrap();
        assert_eq!(graph.checks.len(), 1, "{name}: {text}");
        let place = directory(&[("i.npy", npy_i64(&[2], &[0, 3]))]);
        let index = kina_ad::exec::arrays::read_npy(&place.path().join("i.npy")).unwrap();
        let inputs = gather(&graph, vec![("i".to_owned(), index)], 0).unwrap();
        let tensors: Vec<&Tensor> = inputs.iter().map(|i| &i.tensor).collect();
        let engine = Engine::Interpreted(Precision::Typed);
        match run(&graph, &session.rules.registry, Level::O0, engine, &tensors) {
            Err(RunError::Trap(message)) => assert_eq!(message, "take_along_axis index out of bounds"),
            other => panic!("{level:?}: {other:?}"),
        }
    }
}

/// Every value with its operator, attributes and type; operators that no program may write by their names.
#[test]
fn a_graph_with_an_internal_operator_is_refused_where_it_is_read() {
    let place = directory(&[("p.kina", NLL)]);
    let text = kina(place.path(), "grad p.kina --format sexpr -O0 --profile phase1").ok();
    for words in [
        "(log_probs (log_softmax logits :axis 2))  ; (tensor F32 [1 4 8] @host)  p.kina:8",
        "(scatter_along_axis 2 ",
        ":dest_ty (tensor F32 [1 4 8] @host)))  ; (tensor F32 [1 4 8] @host)  rules/phase1.rules:20 vjp take_along_axis",
        "(, primal g_logits)",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    std::fs::write(place.path().join("g.kina"), &text).unwrap();
    kina(place.path(), "run g.kina").refusal(1, &["E0202", "internal", "scatter_along_axis"]).unwrap();
    assert_eq!(kina(place.path(), "emit p.kina --stage graph --format sexpr -O0 --profile phase1").ok(), text);
}

/// What a rule may form and a program may not write: docs/syntax.md says so.
#[test]
fn a_graph_with_a_reduction_over_no_axis_is_refused_where_it_is_read() {
    let program = "let f = fn(x: tensor<F32, [2], @host>) { x.broadcast(shape=[2]) } in
                   let x = tensor<F32, [2], @host> in handle f(x) with reverseMode";
    let mut session = session();
    let (.., text) = written(&mut session, program, Level::O0, Form::Sexpr);
    assert!(text.contains(":axis []"), "{text}");
    let refusal = session.check("again", &text, &CheckOptions::default()).unwrap_err();
    assert!(refusal.to_string().contains("E0304"), "{refusal}");
}
