//! Section 10, sentence by sentence; `docs/conformance.md` says which test shows which sentence.

use std::path::PathBuf;

use kina_ad::egraph::Differentiated;
use kina_ad::exec::{Data, Tensor};
use kina_ad::ir::print::Printer;
use kina_ad::ir::{AttrValue, DType, Graph, NodeId, NodeKind, Placement, Precision, Shape, TensorType};
use kina_ad::run::{Engine, RunError, check_program, run};
use kina_ad::{CheckOptions, Level, Profile, Refusal, RuleOptions, Session};

/// The program of §3, at a placement.
fn nll(placement: &str) -> String {
    format!(
        "let nll = fn(logits: tensor<F32, [1, 4, 8], {placement}>) -> tensor<F32, [1, 4], {placement}> {{
           let targets = tensor<I64, [1, 4], {placement}> in
           let log_probs = logits.log_softmax(axis=2) in
           let picked = log_probs.take_along_axis(targets, axis=2) in
           let loss = -picked in
           loss
         }} in
         let logits = tensor<F32, [1, 4, 8], {placement}> in
         handle nll(logits) with reverseMode"
    )
}

fn phase1() -> Session {
    Session::new(&RuleOptions { profile: Profile::Phase1, ..RuleOptions::default() }).unwrap()
}

fn with_rules(text: &str) -> (tempfile::TempDir, Session) {
    let directory = tempfile::tempdir().unwrap();
    let file: PathBuf = directory.path().join("user.rules");
    std::fs::write(&file, text).unwrap();
    let options = RuleOptions { profile: Profile::Phase1, files: vec![file], ..RuleOptions::default() };
    let session = Session::new(&options).unwrap();
    (directory, session)
}

fn differentiate(session: &mut Session, program: &str) -> Result<Differentiated, Refusal> {
    let graph = session.check("program.kina", program, &CheckOptions::default())?;
    session.differentiate(&graph)
}

/// The nodes that are calls of the operator.
fn calls(session: &Session, graph: &Graph, name: &str) -> Vec<NodeId> {
    let op = session.rules.registry.id(name);
    graph
        .iter()
        .filter(|(_, n)| matches!(&n.kind, NodeKind::Op { op: o, .. } if Some(*o) == op))
        .map(|(id, _)| id)
        .collect()
}

fn operands(graph: &Graph, id: NodeId) -> Vec<NodeId> {
    graph.node(id).operands().collect()
}

fn named(graph: &Graph, name: &str) -> NodeId {
    graph.iter().find(|(_, n)| n.name.as_deref() == Some(name)).unwrap().0
}

fn f32s(dims: &[u64], values: Vec<f32>) -> Tensor {
    Tensor::new(Shape::new(dims.to_vec()).unwrap(), Data::F32(values)).unwrap()
}

fn i64s(dims: &[u64], values: Vec<i64>) -> Tensor {
    Tensor::new(Shape::new(dims.to_vec()).unwrap(), Data::I64(values)).unwrap()
}

fn floats(tensor: &Tensor) -> Vec<f64> {
    tensor.to_array().unwrap().floats().to_vec()
}

const INTERPRETED: Engine = Engine::Interpreted(Precision::Double);

/// Every engine and level that this build has.
fn engines() -> Vec<(Level, Engine)> {
    let mut all = vec![(Level::O0, INTERPRETED), (Level::O2, INTERPRETED)];
    if cfg!(feature = "codegen") {
        all.extend(Level::ALL.map(|l| (l, Engine::Compiled { threads: None })));
    }
    all
}

#[test]
fn the_restricted_pass_has_its_rules_and_no_others() {
    let session = phase1();
    let ops: Vec<&str> = session.rules.all_vjps().map(|v| session.rules.registry.op(v.op).name()).collect();
    let expected = [
        "add",
        "broadcast",
        "div",
        "log_softmax",
        "matmul",
        "mean",
        "mul",
        "neg",
        "relu",
        "reshape",
        "sub",
        "sum",
        "take_along_axis",
        "transpose",
    ];
    assert_eq!(ops, expected);
}

#[test]
fn the_program_of_section_3_differentiates_to_the_flat_tuple() {
    let mut session = phase1();
    let program = differentiate(&mut session, &nll("@host")).unwrap();
    let outputs: Vec<(&str, String)> =
        program.tape.outputs.iter().map(|o| (&*o.name, program.tape.ty(o.node).to_string())).collect();
    assert_eq!(
        outputs,
        [("primal", "tensor<F32, [1, 4], @host>".to_owned()), ("g_logits", "tensor<F32, [1, 4, 8], @host>".to_owned())]
    );
}

#[test]
fn neg_keeps_dtype_and_placement_and_is_the_unary_neg() {
    for dtype in ["F32", "F64"] {
        for placement in ["@host", "@device"] {
            let ty = format!("tensor<{dtype}, [2, 3], {placement}>");
            let text = format!("let f = fn(a: {ty}) -> {ty} {{ -a }} in let a = {ty} in handle f(a) with reverseMode");
            let mut session = phase1();
            let program = differentiate(&mut session, &text).unwrap();
            let gradient = program.tape.output("g_a").unwrap();
            assert_eq!(program.tape.ty(gradient).to_string(), ty);
            // The backward node is neg of the cotangent, a second call beside the forward one.
            let negs = calls(&session, &program.tape, "neg");
            assert_eq!(negs.len(), 2);
            assert_eq!(negs[1], gradient);
        }
    }
}

#[test]
fn log_softmax_goes_through_exp_of_the_primal() {
    let mut session = phase1();
    let mut program = differentiate(&mut session, &nll("@host")).unwrap();
    let graph = session.optimise(&mut program, Level::O0).unwrap().graph;
    let log_probs = named(&graph, "log_probs");
    let exps = calls(&session, &graph, "exp");
    assert_eq!(exps.len(), 1);
    assert_eq!(operands(&graph, exps[0]), [log_probs], "s = exp(y), y the primal");
    // g - broadcast(sum(g, axis, keepdims=true), shape(x)) * s, and no second max shift.
    let gradient = graph.output("g_logits").unwrap();
    let [sub] = calls(&session, &graph, "sub")[..] else { panic!("one subtraction") };
    assert_eq!(sub, gradient);
    let [cotangent, product] = operands(&graph, sub)[..] else { panic!("two operands") };
    assert_eq!(calls(&session, &graph, "scatter_along_axis"), [cotangent]);
    let [stretched, s] = operands(&graph, product)[..] else { panic!("two operands") };
    assert_eq!(s, exps[0]);
    let [sum] = operands(&graph, stretched)[..] else { panic!("one operand") };
    assert_eq!(operands(&graph, sum), [cotangent]);
    assert_eq!(graph.ty(sum).shape.to_vec(), [1, 4, 1], "keepdims");
    assert!(calls(&session, &graph, "max").is_empty());
    assert!(calls(&session, &graph, "softmax").is_empty());
}

#[test]
fn every_backward_node_names_its_rule_and_line() {
    let mut session = phase1();
    let mut program = differentiate(&mut session, &nll("@host")).unwrap();
    for level in Level::ALL {
        let graph = session.optimise(&mut program, level).unwrap().graph;
        let printer = Printer::new(&graph, &session.rules.registry, &session.sources);
        for (id, node) in graph.iter() {
            let origin = printer.origin(&node.origin);
            let known = origin.contains(".rules:") || origin.contains("program.kina:");
            assert!(known, "{level}: {} has no origin: {origin}", printer.names()[id.index()]);
        }
    }
}

#[test]
fn placement_follows_x() {
    let mut session = phase1();
    let program = differentiate(&mut session, &nll("@device")).unwrap();
    let gradient = program.tape.output("g_logits").unwrap();
    assert_eq!(program.tape.ty(gradient).placement, Placement::Device);
    for (_, node) in program.tape.iter() {
        assert_eq!(node.ty.placement, Placement::Device);
    }
}

/// take_along_axis and its gradient on given values, at an axis.
fn take(axis: usize, dims: [u64; 3], values: Vec<f32>, indices: Vec<i64>) -> Vec<(String, Vec<(String, Tensor)>)> {
    let rows: Vec<u64> = (0..3).filter(|d| *d != axis).map(|d| dims[d]).collect();
    let text = format!(
        "let f = fn(x: tensor<F32, {dims:?}, @host>) -> tensor<F32, {rows:?}, @host> {{
           x.take_along_axis(tensor<I64, {rows:?}, @host>, axis={axis})
         }} in
         let x = tensor<F32, {dims:?}, @host> in
         handle f(x) with reverseMode"
    );
    let mut session = phase1();
    let graph = session.check("take.kina", &text, &CheckOptions { cotangent_input: true }).unwrap();
    let count: usize = rows.iter().product::<u64>() as usize;
    // Distinct cotangents, so that every destination shows its source.
    let cotangent = f32s(&rows, (1..=count).map(|i| i as f32).collect());
    let (x, indices) = (f32s(&dims, values), i64s(&rows, indices));
    let mut out = Vec::new();
    for (level, engine) in engines() {
        let mut program = session.differentiate(&graph).unwrap();
        let optimised = session.optimise(&mut program, level).unwrap();
        let inputs: Vec<&Tensor> = optimised
            .graph
            .inputs
            .iter()
            .map(|id| match optimised.graph.node(*id).name.as_deref() {
                Some("x") => &x,
                Some("cotangent") => &cotangent,
                _ => &indices,
            })
            .collect();
        let results = run(&optimised.graph, &session.rules.registry, level, engine, &inputs).unwrap();
        let results = results.into_iter().map(|(name, t)| (name.to_string(), t)).collect();
        out.push((format!("{level} {engine:?}"), results));
    }
    out
}

#[test]
fn scatter_writes_each_destination_at_most_once() {
    // The same class id in every row: all updates land, at different (a, b).
    let (a, c, b) = (2, 3, 2);
    for (mode, results) in take(1, [a, c, b], vec![0.5; 12], vec![1; 4]) {
        let gradient = floats(&results[1].1);
        let mut sources = [0; 4];
        for (place, value) in gradient.iter().enumerate() {
            let class = place / 2 % 3;
            if class == 1 {
                sources[(*value as usize) - 1] += 1;
            } else {
                assert_eq!(*value, 0.0, "{mode}: destination {place}");
            }
        }
        assert_eq!(sources, [1; 4], "{mode}: every cotangent arrives exactly once");
    }
}

#[test]
fn scatter_means_what_7_2_says_on_every_axis() {
    for axis in 0..3 {
        let dims = [2u64, 3, 4];
        let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
        let rows: Vec<u64> = (0..3).filter(|d| *d != axis).map(|d| dims[d]).collect();
        let count = rows.iter().product::<u64>() as usize;
        let indices: Vec<i64> = (0..count).map(|i| (i * 5 % dims[axis] as usize) as i64).collect();
        for (mode, results) in take(axis, dims, values.clone(), indices.clone()) {
            let gradient = floats(&results[1].1);
            for (place, value) in gradient.iter().enumerate() {
                let point = [place / 12, place / 4 % 3, place % 4];
                let row: Vec<usize> = (0..3).filter(|d| *d != axis).map(|d| point[d]).collect();
                let source = row[0] * rows[1] as usize + row[1];
                let expected = if indices[source] == point[axis] as i64 { (source + 1) as f64 } else { 0.0 };
                assert_eq!(*value, expected, "{mode}: axis {axis}, destination {point:?}");
            }
        }
    }
}

#[test]
fn scatter_has_no_surface_form() {
    for call in ["scatter_along_axis(0, x, i, x)", "x.scatter_along_axis(i)"] {
        let text = format!("let x = tensor<F32, [2, 3], @host> in let i = tensor<I64, [2], @host> in {call}");
        let refusal = phase1().check("surface.kina", &text, &CheckOptions::default()).unwrap_err();
        assert!(refusal.to_string().contains("IR-internal"), "{refusal}");
    }
    for call in ["(scatter_along_axis 0 x i x)", "(.scatter_along_axis x i)"] {
        let text = format!("(program (let ((x (tensor F32 [2 3] @host)) (i (tensor I64 [2] @host))) {call}))");
        let refusal = phase1().check("surface.kina", &text, &CheckOptions::default()).unwrap_err();
        assert!(refusal.to_string().contains("IR-internal"), "{refusal}");
    }
}

#[test]
fn the_result_type_is_read_from_dest_ty() {
    let session = phase1();
    let registry = &session.rules.registry;
    let ty = |dtype, dims: &[u64]| TensorType::new(dtype, Shape::new(dims.to_vec()).unwrap(), Placement::Host);
    let (u, i, dest) = (ty(DType::F32, &[1, 4]), ty(DType::I64, &[1, 4]), ty(DType::F32, &[1, 4, 8]));
    let attrs = [AttrValue::Int(2), AttrValue::Type(dest.clone())];
    assert_eq!(registry.infer(registry.id("scatter_along_axis").unwrap(), &[&u, &i], &attrs), Ok(dest));
    // Constructor order: axis, updates, indices, dest_ty.
    let signature = registry.by_name("scatter_along_axis").unwrap().1.signature().to_string();
    assert_eq!(signature, "(axis, updates, indices, dest_ty)");
}

#[test]
fn out_of_range_indices_trap_by_name() {
    for index in [-1, 8, i64::MIN, i64::MAX] {
        let mut session = phase1();
        let graph = session.check("nll.kina", &nll("@host"), &CheckOptions::default()).unwrap();
        for (level, engine) in engines() {
            let mut program = session.differentiate(&graph).unwrap();
            let optimised = session.optimise(&mut program, level).unwrap();
            let (logits, targets) = (f32s(&[1, 4, 8], vec![0.0; 32]), i64s(&[1, 4], vec![0, 7, index, 3]));
            let inputs: Vec<&Tensor> = optimised
                .graph
                .inputs
                .iter()
                .map(|id| if optimised.graph.node(*id).name.as_deref() == Some("logits") { &logits } else { &targets })
                .collect();
            match run(&optimised.graph, &session.rules.registry, level, engine, &inputs) {
                Err(RunError::Trap(message)) => assert_eq!(message, "take_along_axis index out of bounds"),
                other => panic!("{level} {engine:?}: {other:?}"),
            }
        }
    }
}

#[cfg(feature = "codegen")]
mod emitted {
    use super::*;
    use kina_ad::lower::{LowerError, Stage, emit};

    fn text(session: &mut Session, program: &str, level: Level, stage: Stage) -> Result<String, LowerError> {
        let mut program = differentiate(session, program).unwrap();
        let graph = session.optimise(&mut program, level).unwrap().graph;
        emit(&graph, &session.rules.registry, level, stage, session.locations(&graph), false)
    }

    #[test]
    fn main_returns_all_results() {
        for level in Level::ALL {
            let linalg = text(&mut phase1(), &nll("@host"), level, Stage::Linalg).unwrap();
            let main = linalg.lines().find(|l| l.contains("func.func @main(")).unwrap();
            let results = main.rsplit_once("->").unwrap().1;
            assert!(results.contains("tensor<1x4xf32>") && results.contains("tensor<1x4x8xf32>"), "{main}");
            assert!(results.contains("primal") && results.contains("g_logits"), "{main}");
        }
    }

    #[test]
    fn scatter_lowers_literally() {
        let linalg = text(&mut phase1(), &nll("@host"), Level::O0, Stage::Linalg).unwrap();
        let at = linalg.find("cf.assert %").expect("an assertion");
        assert!(linalg[at..].contains("\"take_along_axis index out of bounds\""));
        let at = linalg.find("\"scatter_along_axis index out of bounds\"").expect("the scatter's own check");
        // Before it, a generic over the indices that compares with 0 and with C.
        let check = &linalg[linalg[..at].rfind("linalg.generic").unwrap()..at];
        assert!(check.contains("tensor<1x4xi64>"), "{check}");
        assert!(check.contains("arith.cmpi slt") && check.contains("arith.cmpi sge"), "{check}");
        assert!(check.contains("arith.constant 8 : i64"), "{check}");
        // Behind it, a generic over the destination: index of the axis, compare, select a typed zero.
        let rest = &linalg[at..];
        let scatter = &rest[rest.find("linalg.generic").unwrap()..];
        let scatter = &scatter[..scatter.find("} -> ").unwrap() + 30];
        assert!(scatter.contains("tensor<1x4x8xf32>"), "{scatter}");
        let order = [
            "linalg.index 2",
            "arith.index_cast",
            "arith.cmpi eq",
            "arith.constant 0.000000e+00 : f32",
            "arith.select",
        ];
        let mut from = 0;
        for op in order {
            from += scatter[from..].find(op).unwrap_or_else(|| panic!("{op} missing or out of order in {scatter}"));
        }
        // Its maps project the axis away for updates and indices.
        assert!(linalg.contains("affine_map<(d0, d1, d2) -> (d0, d1)>"), "{linalg}");
    }

    #[test]
    fn both_messages_reach_llvm_ir() {
        let ir = text(&mut phase1(), &nll("@host"), Level::O0, Stage::LlvmIr).unwrap();
        assert!(ir.contains("take_along_axis index out of bounds"));
        assert!(ir.contains("scatter_along_axis index out of bounds"));
    }

    #[test]
    fn device_operands_are_rejected_at_emit() {
        for level in Level::ALL {
            let error = text(&mut phase1(), &nll("@device"), level, Stage::Linalg).unwrap_err();
            let LowerError::Device(lines) = &error else { panic!("{error:?}") };
            for op in ["take_along_axis", "scatter_along_axis"] {
                let wanted = format!("{op}: checked device lowering is not available");
                assert!(lines.contains(&wanted), "{level}: {lines:?}");
            }
            assert!(lines.iter().any(|l| l.ends_with(": device lowering is not available")), "{lines:?}");
        }
    }
}

/// The gradient of the NLL as an operand: `sum(g_logits * w)`, differentiated for `w` or for the logits.
fn outer(parameter: &str) -> String {
    let inner = "let nll = fn(z: tensor<F32, [2, 3], @host>) -> tensor<F32, [2], @host> {
           -(z.log_softmax(axis=1).take_along_axis(targets, axis=1))
         } in
         let (l, g) = handle nll(x) with reverseMode in
         (g * w).sum()";
    let (fixed, varied) = if parameter == "w" { ("x", "w") } else { ("w", "x") };
    format!(
        "let targets = tensor<I64, [2], @host> in
         let {fixed} = tensor<F32, [2, 3], @host> in
         let f = fn({varied}: tensor<F32, [2, 3], @host>) -> tensor<F32, [], @host> {{ {inner} }} in
         let p = tensor<F32, [2, 3], @host> in
         handle f(p) with reverseMode"
    )
}

#[test]
fn the_forward_walk_rewrites_children_of_a_scatter() {
    // A ScatterAlongAxis stands in the outer forward graph, inactive: its children are carried over, nothing is refused.
    let mut session = phase1();
    let program = differentiate(&mut session, &outer("w")).unwrap();
    let scatters = calls(&session, &program.tape, "scatter_along_axis");
    assert_eq!(scatters.len(), 1);
    let live = program.tape.live();
    assert!(live[scatters[0].index()], "the gradient for w is the inner gradient, which has the scatter");
    for child in operands(&program.tape, scatters[0]) {
        assert!(live[child.index()], "children are nodes of the same graph");
    }
    let x = f32s(&[2, 3], vec![0.3, -1.2, 0.8, 1.5, -0.4, 0.2]);
    let i = i64s(&[2], vec![2, 0]);
    let inputs: Vec<&Tensor> =
        program.tape.inputs.iter().map(|id| if program.tape.ty(*id).dtype == DType::I64 { &i } else { &x }).collect();
    let report = check_program(&program, &session.rules.registry, &inputs, 0).unwrap();
    assert!(report.passed(), "{report}");
}

#[test]
fn the_vjp_of_exp_is_refused_under_phase1() {
    let mut session = phase1();
    let refusal = differentiate(&mut session, &outer("x")).err().unwrap().to_string();
    // The cotangent of the loss is a constant, so what is active is exp(y): it has no VJP either.
    assert!(refusal.contains("no VJP for `exp` with respect to its operand `x`"), "{refusal}");
    assert!(refusal.contains("it is active through"), "{refusal}");
    assert!(refusal.contains("vjp exp {"), "a stub to fill in: {refusal}");
}

/// Second order through the scatter itself: the updates depend on what is differentiated.
fn through_the_scatter() -> &'static str {
    "let i = tensor<I64, [2], @host> in
     let f = fn(x: tensor<F32, [2, 3], @host>) -> tensor<F32, [], @host> {
       let square = fn(z: tensor<F32, [2, 3], @host>) -> tensor<F32, [2], @host> {
         let t = z.take_along_axis(i, axis=1) in t * t * t
       } in
       let (l, g) = handle square(x) with reverseMode in
       (g * g).sum()
     } in
     let x = tensor<F32, [2, 3], @host> in
     handle f(x) with reverseMode"
}

#[test]
fn scatter_and_exp_get_their_vjps_from_a_users_file() {
    let refusal = differentiate(&mut phase1(), through_the_scatter()).err().unwrap().to_string();
    assert!(refusal.contains("no VJP for `scatter_along_axis` with respect to its operand `updates`"), "{refusal}");
    assert!(refusal.contains("vjp scatter_along_axis {"), "{refusal}");

    let rules = "/// Section 10 §9.3.\nvjp scatter_along_axis {\n  y = scatter_along_axis(axis, u, i, t)\n  ---\n  g_u = take_along_axis(g_y, i, axis)\n  g_i = none\n}\n\
                 /// y is exp(x).\nvjp exp {\n  y = exp(x)\n  ---\n  g_x = g_y * y\n}\n";
    let (_directory, mut session) = with_rules(rules);
    let x = f32s(&[2, 3], vec![0.3, -1.2, 0.8, 1.5, -0.4, 0.2]);
    let i = i64s(&[2], vec![2, 0]);
    for text in [through_the_scatter().to_owned(), outer("x")] {
        let program = differentiate(&mut session, &text).unwrap();
        let inputs: Vec<&Tensor> = program
            .tape
            .inputs
            .iter()
            .map(|id| if program.tape.ty(*id).dtype == DType::I64 { &i } else { &x })
            .collect();
        let report = check_program(&program, &session.rules.registry, &inputs, 0).unwrap();
        assert!(report.passed(), "{report}");
        assert_eq!(report.gradients.len(), 2, "inner and outer handler");
    }
}

#[test]
fn mean_nll_needs_nothing_beyond_the_existing_rules() {
    let text = nll("@host")
        .replace("let loss = -picked in", "let loss = (-picked).mean() in")
        .replace("[1, 4], @host> {", "[], @host> {");
    let mut session = phase1();
    let program = differentiate(&mut session, &text).unwrap();
    let (logits, targets) =
        (f32s(&[1, 4, 8], (0..32).map(|i| (i as f32 * 0.7).sin()).collect()), i64s(&[1, 4], vec![0, 7, 3, 3]));
    let inputs: Vec<&Tensor> = program
        .tape
        .inputs
        .iter()
        .map(|id| if program.tape.ty(*id).dtype == DType::I64 { &targets } else { &logits })
        .collect();
    let report = check_program(&program, &session.rules.registry, &inputs, 0).unwrap();
    assert!(report.passed(), "{report}");
}
