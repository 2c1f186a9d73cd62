//! Whole programs through the checker: what the graph looks like, and what is refused how.

use super::{CheckOptions, NoComposites, check_program};
use crate::diagnostics::{Diagnostics, SourceMap};
use crate::ir::attr::AttrValue;
use crate::ir::{Graph, NodeId, NodeKind, Registry};
use crate::syntax::parse_program;

fn check_with(text: &str, options: &CheckOptions) -> (Option<Graph>, Diagnostics) {
    let mut sources = SourceMap::new();
    let file = sources.add("t.kina", text);
    let mut bag = Diagnostics::new();
    let program = parse_program(&sources, file, &mut bag);
    assert!(bag.is_empty(), "{text}: {:?}", bag.iter().next());
    let graph = check_program(&program, &sources, &Registry::builtin(), &NoComposites, options, &mut bag);
    (graph, bag)
}

fn graph(text: &str) -> Graph {
    let (graph, bag) = check_with(text, &CheckOptions::default());
    graph.unwrap_or_else(|| panic!("{text}: {:?}", bag.iter().next()))
}

/// Name and type of each output.
fn outputs(graph: &Graph) -> Vec<(String, String)> {
    graph.outputs.iter().map(|o| (o.name.to_string(), graph.ty(o.node).to_string())).collect()
}

fn output_names(graph: &Graph) -> Vec<&str> {
    graph.outputs.iter().map(|o| &*o.name).collect()
}

fn input_names(graph: &Graph) -> Vec<&str> {
    graph.inputs.iter().filter_map(|id| graph.node(*id).name.as_deref()).collect()
}

/// The attributes of the node that computes output 0.
fn attrs(graph: &Graph) -> Vec<String> {
    match &graph.node(graph.outputs[0].node).kind {
        NodeKind::Op { attrs, .. } => attrs.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

fn count(graph: &Graph, op: &str) -> usize {
    let id = Registry::builtin().id(op).unwrap();
    graph.iter().filter(|(_, n)| matches!(&n.kind, NodeKind::Op { op, .. } if *op == id)).count()
}

const NLL: &str = "let nll = fn(logits: tensor<F32, [1, 4, 8], @host>) -> tensor<F32, [1, 4], @host> {
  let targets = tensor<I64, [1, 4], @host> in
  let log_probs = logits.log_softmax(axis=2) in
  let picked = log_probs.take_along_axis(targets, axis=2) in
  let loss = -picked in
  loss
} in
let logits = tensor<F32, [1, 4, 8], @host> in
handle nll(logits) with reverseMode";

#[test]
fn the_specification_example() {
    let graph = graph(NLL);
    let host = |dims: &str| format!("tensor<F32, {dims}, @host>");
    assert_eq!(outputs(&graph), [("primal".to_string(), host("[1, 4]")), ("g_logits".to_string(), host("[1, 4, 8]"))]);
    assert_eq!(input_names(&graph), ["logits", "targets"]);
    assert_eq!(graph.handlers.len(), 1);
    let handler = &graph.handlers[0];
    assert_eq!(graph.node(handler.primal).name.as_deref(), Some("loss"));
    let NodeKind::Param { handler: 0, index: 0, argument } = graph.node(handler.params[0].node).kind else { panic!() };
    assert_eq!(argument, graph.inputs[0]);
    assert_eq!(graph.node(graph.outputs[1].node).kind, NodeKind::Gradient { handler: 0, index: 0 });
    let check = &graph.checks[0];
    assert_eq!((check.size, graph.node(check.indices).name.as_deref()), (8, Some("targets")));
    assert_eq!(check.message(), "take_along_axis index out of bounds");
}

#[test]
fn axes_are_normalised() {
    let x = "let x = tensor<F32, [2, 3, 4], @host> in ";
    for (call, expected) in [
        ("x.sum(axis=-1)", "[2] false"),
        ("x.sum(axis=[-1, 0])", "[0, 2] false"),
        ("x.sum(keepdims=true)", "[0, 1, 2] true"),
        ("let a = 1 in sum(x, 1 + a)", "[2] false"),
        ("x.log_softmax(axis=-3)", "0"),
        ("x.transpose([0, -1, 1])", "[0, 2, 1]"),
        ("let s = [6, 4] in x.reshape(shape=s)", "[6, 4]"),
    ] {
        assert_eq!(attrs(&graph(&format!("{x}{call}"))).join(" "), expected, "{call}");
    }
}

#[test]
fn literals_take_the_type_of_what_they_meet() {
    let prelude = "let x = tensor<F32, [2], @host> in let n = tensor<I32, [3], @host> in
        let b = tensor<Bool, [2], @host> in ";
    for (body, value, ty) in [
        ("1 / 4 * x", 0.25, "tensor<F32, [2], @host>"),
        ("x - -2", -2.0, "tensor<F32, [2], @host>"),
        ("x + inf", f64::INFINITY, "tensor<F32, [2], @host>"),
        ("n * 3", 3.0, "tensor<I32, [3], @host>"),
        ("b == true", 1.0, "tensor<Bool, [2], @host>"),
        ("select(b, x, 0)", 0.0, "tensor<F32, [2], @host>"),
        ("maximum(0.5, x)", 0.5, "tensor<F32, [2], @host>"),
        ("splat(2.0, like=n)", 2.0, "tensor<I32, [3], @host>"),
    ] {
        let graph = graph(&format!("{prelude}{body}"));
        let splat = Registry::builtin().id("splat").unwrap();
        let found = graph.iter().find_map(|(_, n)| match &n.kind {
            NodeKind::Op { op, attrs, .. } if *op == splat => Some((attrs[0].as_float(), n.ty.to_string())),
            _ => None,
        });
        assert_eq!(found, Some((Some(value), ty.to_string())), "{body}");
    }
}

#[test]
fn a_type_attribute_is_no_input() {
    let graph = graph("splat(1.0, type=tensor<F64, [2], @host>)");
    assert!(graph.inputs.is_empty());
    assert!(matches!(&graph.node(NodeId(0)).kind, NodeKind::Op { attrs, .. } if attrs[1].as_type().is_some()));
}

#[test]
fn inputs_are_named_by_their_let_and_counted_once() {
    let text = "let input_0 = tensor<F32, [2], @host> in
        let f = fn(x: tensor<F32, [2], @host>) { let w = tensor<F32, [2], @host> in x * w } in
        let same = input_0 in
        f(f(same)) + tensor<F32, [2], @host> + tensor<F32, [2], @host>";
    let graph = graph(text);
    assert_eq!(input_names(&graph), ["input_0", "w", "input_1", "input_2"]);
    assert_eq!(count(&graph, "mul"), 2);
}

#[test]
fn functions_capture_and_shadow() {
    // `y` inside `f` is the one at its definition; local names win over operators, methods are operators.
    let text = "let y = tensor<F32, [2], @host> in
        let exp = fn(x: tensor<F32, [2], @host>) { x + y } in
        let y = y * y in
        exp(y).exp()";
    let graph = graph(text);
    assert_eq!((count(&graph, "exp"), count(&graph, "add")), (1, 1));
    let add = Registry::builtin().id("add").unwrap();
    let (_, node) = graph.iter().find(|(_, n)| matches!(&n.kind, NodeKind::Op { op, .. } if *op == add)).unwrap();
    let operands: Vec<NodeId> = node.operands().collect();
    assert_eq!(operands[1], graph.inputs[0]);
    assert_ne!(operands[0], operands[1]);
}

#[test]
fn results_are_named_by_what_the_value_is() {
    let f = "let x = tensor<F32, [2], @host> in let n = tensor<I64, [2], @host> in
        let f = fn(a: tensor<F32, [2], @host>, k: tensor<I64, [2], @host>, b: tensor<F32, [2], @host>) { a * b } in ";
    for (body, expected) in [
        ("x + x", vec!["result"]),
        ("(x, n)", vec!["result_0", "result_1"]),
        ("handle f(x, n, x) with reverseMode", vec!["primal", "g_a", "g_b"]),
        ("let r = handle f(x, n, b=x) with reverseMode in let s = r in s", vec!["primal", "g_a", "g_b"]),
        ("let (l, g, h) = handle f(x, n, x) with reverseMode in (l, g)", vec!["result_0", "result_1"]),
        ("let (_, g, _) = handle f(x, n, x) with reverseMode in g", vec!["result"]),
    ] {
        assert_eq!(output_names(&graph(&format!("{f}{body}"))), expected, "{body}");
    }
}

#[test]
fn handlers_are_numbered_innermost_first() {
    let text = "let x = tensor<F32, [2], @host> in
        let f = fn(x: tensor<F32, [2], @host>) { x * x } in
        let df = fn(x: tensor<F32, [2], @host>) { let (_, g) = handle f(x) with reverseMode in g } in
        handle df(x) with reverseMode";
    let graph = graph(text);
    assert_eq!(graph.handlers.len(), 2);
    // The outer primal is the inner gradient.
    assert_eq!(graph.node(graph.handlers[1].primal).kind, NodeKind::Gradient { handler: 0, index: 0 });
    for (number, handler) in graph.handlers.iter().enumerate() {
        let NodeKind::Param { handler, .. } = graph.node(handler.params[0].node).kind else { panic!() };
        assert_eq!(handler, number);
    }
    assert_eq!(graph.outputs[0].node, graph.handlers[1].primal);
}

#[test]
fn checks_belong_to_the_program() {
    let text = "let x = tensor<F32, [2, 3], @host> in let i = tensor<I64, [2], @host> in
        let unused = x.take_along_axis(i, axis=1) in
        let again = x.exp().take_along_axis(i, axis=1) in
        let f = fn(y: tensor<F32, [3, 5], @host>, i: tensor<I64, [3], @host>) { y.take_along_axis(i, axis=1) } in
        x";
    let graph = graph(text);
    let checks: Vec<(NodeId, u64)> = graph.checks.iter().map(|c| (c.indices, c.size)).collect();
    // Once for the equal pair, and none for a function that is never called.
    assert_eq!(checks, [(graph.inputs[1], 3)]);
}

#[test]
fn a_cotangent_input_on_request() {
    let options = CheckOptions { cotangent_input: true };
    let (graph, _) = check_with(NLL, &options);
    let graph = graph.unwrap();
    assert_eq!(input_names(&graph), ["logits", "targets", "cotangent"]);
    let handler = &graph.handlers[0];
    assert_eq!(handler.cotangent, Some(graph.inputs[2]));
    assert_eq!(graph.ty(graph.inputs[2]), graph.ty(handler.primal));
    for text in [
        "tensor<F32, [2], @host>",
        &NLL.replace("let logits =", "let cotangent =").replace("nll(logits)", "nll(cotangent)"),
    ] {
        let (graph, bag) = check_with(text, &options);
        assert!(graph.is_none() && bag.error_count() == 1, "{text}");
    }
}

/// Bindings for the rows below.
const PRELUDE: &str = "let x = tensor<F32, [2, 3], @host> in
let v = tensor<F32, [3], @host> in
let n = tensor<I64, [2, 3], @host> in
let d = tensor<F32, [2, 3], @device> in
let f = fn(a: tensor<F32, [2, 3], @host>) -> tensor<F32, [2, 3], @host> { a * a } in
";

#[test]
fn refusals() {
    let mut failures = Vec::new();
    // What is wrong, the code, words of message, label, note or help.
    for (body, code, words) in [
        ("y", "E0201", "unknown name `y`"),
        ("exp", "E0201", "call it"),
        ("x.exq()", "E0202", "did you mean `exp`?"),
        ("log_sofmax(x, axis=1)", "E0202", "did you mean `log_softmax`?"),
        ("x.f()", "E0202", "call it as `f"),
        ("x.scatter_along_axis(x, n)", "E0202", "internal"),
        ("tensor<F16, [2], @host>", "E0203", "unknown dtype `F16`"),
        ("tensor<F32, [2], @gpu>", "E0203", "unknown placement"),
        ("cast(x, dtype=F16)", "E0203", "the dtypes are"),
        ("tensor<F32, [4294967296, 4294967296], @host>", "E0307", "too large"),
        ("tensor<F32, [99999999999999999999], @host>", "E0307", "too large"),
        ("let x = tensor<F32, [2], @host> in x", "E0204", "two inputs are named `x`"),
        ("x.sum(axes=1)", "E0205", "did you mean `axis`?"),
        ("x.sum(1, axis=1)", "E0205", "twice"),
        ("x.sum(1, false, 3)", "E0205", "takes 3"),
        ("x.log_softmax()", "E0205", "`axis`"),
        ("x.sum(axis=1, x)", "E0205", "unnamed arguments come first"),
        ("f()", "E0205", "`a`"),
        ("f(x, x)", "E0205", "takes 1"),
        ("n + 0.5", "E0206", "not an integer"),
        ("n + inf", "E0206", "not an integer"),
        ("n + 1e19", "E0206", "overflows I64"),
        ("x + 1e39", "E0207", "does not fit F32"),
        ("tensor<I32, [1], @host> + 2147483648", "E0206", "overflows I32"),
        ("x + true", "E0206", "`true` cannot be a F32"),
        ("-true", "E0208", "truth value"),
        ("exp(1.0)", "E0208", "splat"),
        ("1.0", "E0219", "splat"),
        ("(x, 1.0)", "E0219", "splat"),
        ("f", "E0219", "call the function"),
        ("(x, (x, x))", "E0219", "inner tuple"),
        ("x.sum(axis=n)", "E0306", "must be"),
        ("x.sum(axis=1.5)", "E0306", "must be"),
        ("x.sum(axis=[1, 0.5])", "E0208", "constant integers"),
        ("x(v)", "E0209", "not a function"),
        ("x + f", "E0208", "expected a tensor, found a function"),
        ("x + (x, x)", "E0208", "take it apart"),
        ("let (a, b) = x in a", "E0210", "2 names"),
        ("let (a, b, c) = (x, x) in a", "E0210", "3 names for a tuple of 2"),
        ("let (a, a) = (x, x) in a", "E0218", "bound twice"),
        ("let g = fn(a: tensor<F32, [2], @host>, a: tensor<F32, [2], @host>) { a } in x", "E0218", "two parameters"),
        ("let g = fn(a: tensor<F32, [2, 3], @host>) { g(a) } in g(x)", "E0211", "uses itself"),
        ("let g = fn(a: tensor<F32, [2, 3], @host>) { h(a) } in x", "E0202", "`h`"),
        ("x && x", "E0214", "logical_and"),
        ("x[0]", "E0214", "indexing"),
        ("[i for i in [1]]", "E0214", "comprehension"),
        ("f(*x)", "E0214", "list the arguments"),
        ("handle f(x) with forwardMode", "E0212", "only handler is `reverseMode`"),
        ("handle exp(x) with reverseMode", "E0201", "wrap"),
        ("let g = fn(k: tensor<I64, [2, 3], @host>) { k } in handle g(n) with reverseMode", "E0215", "float"),
        ("let g = fn(a: tensor<F32, [2, 3], @host>) { n } in handle g(x) with reverseMode", "E0216", "I64"),
        ("let g = fn(a: tensor<F32, [2, 3], @host>) { (a, a) } in handle g(x) with reverseMode", "E0216", "tuple"),
        ("f(v)", "E0301", "`a` of `f`"),
        ("f(n)", "E0302", "`a` of `f`"),
        ("f(d)", "E0305", "`a` of `f`"),
        ("let g = fn(a: tensor<F32, [3], @host>) -> tensor<F32, [2], @host> { a } in g(v)", "E0303", "returns"),
        ("x + n", "E0302", ""),
        ("x + d", "E0305", ""),
        ("x + v", "E0303", "`broadcast(v, shape=[2, 3])`"),
        ("v * x", "E0303", "`broadcast(v, shape=[2, 3])`"),
        ("x + x.sum(axis=1)", "E0303", "broadcast(reshape(x.sum(axis=1), shape=[2, 1]), shape=[2, 3])"),
        ("reshape(v, [3, 1]) + reshape(x, [1, 6])", "E0303", "shape=[3, 6]"),
        ("x.sum(axis=2)", "E0304", "0 to 1, or -2 to -1"),
        ("x.sum(axis=[0, -2])", "E0304", "0 and -2 are the same axis"),
        ("x.sum(axis=[-2, -2])", "E0304", "axis -2 stands twice"),
        ("x.sum(axis=[])", "E0304", "leave `axis` out"),
        ("x.sum().sum(axis=0)", "E0304", "no axes"),
        ("x.reshape(shape=[-1])", "E0306", "-1"),
        ("x.take_along_axis(n, axis=1)", "E0303", "shape of `values` without axis 1"),
    ] {
        if let Err(complaint) = refused(body, code, words) {
            failures.push(format!("{body}: {complaint}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Is the program refused with exactly one diagnostic, of the code, that says the words and points into the body?
fn refused(body: &str, code: &str, words: &str) -> Result<(), String> {
    let (graph, bag) = check_with(&format!("{PRELUDE}{body}"), &CheckOptions::default());
    let all: Vec<String> = bag.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
    let (Some(d), 1, None) = (bag.iter().next(), all.len(), graph) else {
        return Err(format!("not refused once: {all:?}"));
    };
    let place = d.primary.as_ref().ok_or("no place")?;
    let said = format!("{} {} {} {}", d.message, place.text, d.notes.join(" "), d.help.join(" "));
    if d.code != code || !said.contains(words) {
        return Err(format!("{} {said}", d.code));
    }
    let span = place.span;
    if (span.start as usize) < PRELUDE.len() || span.start >= span.end {
        return Err(format!("points at {span:?}"));
    }
    Ok(())
}

#[test]
fn several_faults_are_reported_without_consequences() {
    let text = "let x = tensor<F32, [2], @host> in
        let f = fn(a: tensor<F32, [2], @host>) { a.exq() } in
        let a = f(x) in
        let b = f(a) + y in
        let c = b.sum(axis=0) + x.sum(axis=4) in
        (a, b, c)";
    let (graph, bag) = check_with(text, &CheckOptions::default());
    assert!(graph.is_none());
    let codes: Vec<&str> = bag.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["E0202", "E0201", "E0304"]);
}

#[test]
fn size_is_bounded_and_long_programs_work() {
    let lets: String = (0..50_000).map(|_| "let x = x + x in\n").collect();
    let long = graph(&format!("let x = tensor<F32, [2], @host> in {lets} x"));
    assert_eq!(count(&long, "add"), 50_000);
    let names = crate::ir::names::value_names(&long, &Registry::builtin());
    assert_eq!(names.last().map(String::as_str), Some("x_50001"));

    let ty = "tensor<F32, [2], @host>";
    let doubling: String =
        (1..60).map(|i| format!("let f{i} = fn(x: {ty}) {{ f{}(f{}(x)) }} in\n", i - 1, i - 1)).collect();
    let nested: String = (1..20_000).map(|i| format!("let f{i} = fn(x: {ty}) {{ f{}(x) }} in\n", i - 1)).collect();
    for (chain, last) in [(doubling, 59), (nested, 19_999)] {
        let text = format!("let f0 = fn(x: {ty}) {{ x }} in\n{chain} let x = {ty} in f{last}(x)");
        let (graph, bag) = check_with(&text, &CheckOptions::default());
        let codes: Vec<&str> = bag.iter().map(|d| d.code).collect();
        assert!(graph.is_none() && codes == ["E0213"], "{codes:?}");
    }
}

#[test]
fn attributes_keep_the_order_of_the_signature() {
    let graph = graph("let x = tensor<F32, [2, 3], @host> in sum(keepdims=true, axis=0, x=x)");
    let NodeKind::Op { attrs, .. } = &graph.node(graph.outputs[0].node).kind else { panic!() };
    assert_eq!(attrs, &[AttrValue::Ints(vec![0]), AttrValue::Bool(true)]);
}
