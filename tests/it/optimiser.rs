//! What rules alone make of the NLL, and what budgets do.

use kina_ad::egraph::{Budget, Stop, optimise};
use kina_ad::exec::inputs::gather;
use kina_ad::ir::{Graph, NodeId, NodeKind, Precision};
use kina_ad::run::{Engine, run};
use kina_ad::{CheckOptions, Level, RuleOptions, Session};

use crate::support::{directory, kina};

fn session() -> Session {
    Session::new(&RuleOptions::default()).unwrap()
}

/// Calls of an operator.
fn calls(session: &Session, graph: &Graph, name: &str) -> Vec<NodeId> {
    let op = session.rules.registry.id(name).unwrap();
    let is_call = |kind: &NodeKind| matches!(kind, NodeKind::Op { op: o, .. } if *o == op);
    graph.iter().filter(|(_, n)| is_call(&n.kind)).map(|(id, _)| id).collect()
}

/// The NLL at an axis of a shape, with or without a mean.
fn nll(dims: &[u64], axis: usize, mean: bool) -> String {
    let rows: Vec<u64> = (0..dims.len()).filter(|d| *d != axis).map(|d| dims[d]).collect();
    let (result, end) = if mean { (vec![], "(-picked).mean()") } else { (rows.clone(), "-picked") };
    format!(
        "let nll = fn(logits: tensor<F32, {dims:?}, @host>) -> tensor<F32, {result:?}, @host> {{
           let targets = tensor<I64, {rows:?}, @host> in
           let picked = logits.log_softmax(axis={axis}).take_along_axis(targets, axis={axis}) in
           {end}
         }} in
         let logits = tensor<F32, {dims:?}, @host> in
         handle nll(logits) with reverseMode"
    )
}

#[test]
fn loss_and_gradient_share_one_exponential() {
    for (dims, axis) in [(&[1, 4, 8][..], 2), (&[3, 5], 1), (&[3, 5], 0), (&[2, 3, 4, 5], 1), (&[4, 256, 50257], 2)] {
        for mean in [false, true] {
            for cotangent_input in [false, true] {
                let mut session = session();
                let graph =
                    session.check("nll.kina", &nll(dims, axis, mean), &CheckOptions { cotangent_input }).unwrap();
                let mut program = session.differentiate(&graph).unwrap();
                let optimised = session.optimise(&mut program, Level::O2).unwrap();
                let graph = &optimised.graph;
                let what = format!("{dims:?} axis {axis}, mean {mean}, cotangent input {cotangent_input}");
                assert_eq!(optimised.report.as_ref().unwrap().stop, Stop::Saturated, "{what}");
                let [exp] = calls(&session, graph, "exp")[..] else { panic!("{what}: one exponential") };
                assert!(calls(&session, graph, "log_softmax").is_empty(), "{what}");
                assert!(calls(&session, graph, "softmax").is_empty(), "{what}");
                // The shift by the maximum is kept.
                let [shifted] = graph.node(exp).operands().collect::<Vec<_>>()[..] else { panic!("{what}") };
                assert!(calls(&session, graph, "sub").contains(&shifted), "{what}");
                assert_eq!(calls(&session, graph, "max").len(), 1, "{what}");
                // The scatter is there, and nothing reduces it.
                let [scatter] = calls(&session, graph, "scatter_along_axis")[..] else { panic!("{what}: one scatter") };
                for sum in calls(&session, graph, "sum") {
                    assert!(!graph.node(sum).operands().any(|o| o == scatter), "{what}: the scatter is summed up");
                }
                let sums: Vec<NodeId> = calls(&session, graph, "sum");
                assert_eq!(sums.iter().filter(|s| graph.node(**s).operands().any(|o| o == exp)).count(), 1, "{what}");
            }
        }
    }
}

#[test]
fn a_level_uses_the_rewrites_it_promises() {
    let mut session = session();
    let graph = session.check("nll.kina", &nll(&[2, 3], 1, false), &CheckOptions::default()).unwrap();
    // -O0: the tape, literally. -O1: nothing that holds over the reals only.
    for (level, opaque) in [(Level::O0, true), (Level::O1, true), (Level::O2, false)] {
        let mut program = session.differentiate(&graph).unwrap();
        let optimised = session.optimise(&mut program, level).unwrap();
        assert_eq!(!calls(&session, &optimised.graph, "log_softmax").is_empty(), opaque, "{level}");
    }
}

#[test]
fn running_out_of_budget_is_reported_and_the_result_is_right() {
    let mut session = session();
    let graph = session.check("nll.kina", &nll(&[2, 3], 1, false), &CheckOptions::default()).unwrap();
    let full = Budget::default();
    let limits = [
        (Budget { nodes: 0, nodes_per_node: 1, ..full }, Stop::Nodes),
        (Budget { iterations: 1, ..full }, Stop::Iterations),
        (Budget { applications: 2, ..full }, Stop::Applications),
        // The search for left sides ends before it has found any.
        (Budget { steps: 1, steps_per_node: 0, ..full }, Stop::Steps),
        (Budget { steps: 60, steps_per_node: 0, ..full }, Stop::Steps),
        (Budget { steps: 400, steps_per_node: 0, ..full }, Stop::Steps),
        (full, Stop::Saturated),
    ];
    let mut results = Vec::new();
    for (budget, stop) in limits {
        let mut program = session.differentiate(&graph).unwrap();
        let inputs = gather(&program.tape, Vec::new(), 7).unwrap();
        let optimised = optimise(&mut program, &session.rules, Level::O2, budget).unwrap();
        assert_eq!(optimised.report.as_ref().unwrap().stop, stop);
        assert_eq!(optimised.summary().contains("out of its budget"), stop != Stop::Saturated);
        let tensors: Vec<_> = inputs.iter().map(|i| &i.tensor).collect();
        let engine = Engine::Interpreted(Precision::Double);
        results.push(run(&optimised.graph, &session.rules.registry, Level::O2, engine, &tensors).unwrap());
    }
    for result in &results[1..] {
        for ((name, a), (_, b)) in result.iter().zip(&results[0]) {
            let (a, b) = (a.to_array().unwrap(), b.to_array().unwrap());
            for (x, y) in a.floats().iter().zip(b.floats()) {
                assert!((x - y).abs() <= 1e-6 * y.abs().max(1.0), "{name}: {x} and {y}");
            }
        }
    }
}

#[test]
fn composites_expand_or_are_differentiated_whole() {
    let rules = "/// Square.\ndef sq(x) {\n  => x * x\n}\n\
        /// Without scale or shift.\ndef my_norm(x, axis = -1, eps = 1e-5) {\n  d   = x - broadcast(mean(x, axis, keepdims=true), shape(x))\n  \
        var = mean(sq(d), axis, keepdims=true)\n  => d * broadcast(rsqrt(var + eps), shape(x))\n}\n\
        /// Naive.\ndef softplus1(x) {\n  => log(1.0 + exp(x))\n}\n\
        /// The logistic function.\nvjp softplus1 {\n  y = softplus1(x)\n  ---\n  g_x = g_y / (1.0 + exp(-x))\n}\n";
    let program = "let f = fn(x: tensor<F64, [2, 3], @host>) -> tensor<F64, [], @host> {
          x.my_norm().softplus1().sq().sum() + sq(x.my_norm(axis=0)).sum()
        } in
        let x = tensor<F64, [2, 3], @host> in
        handle f(x) with reverseMode";
    let place = directory(&[("d.rules", rules), ("p.kina", program)]);
    let mut results = Vec::new();
    for level in ["-O0", "-O1", "-O2"] {
        let out = kina(place.path(), &format!("run p.kina --rules d.rules --interpret --check {level}")).ok();
        assert!(out.contains("passed"), "{level}: {out}");
        results.push(out);
        let graph = kina(place.path(), &format!("grad p.kina --rules d.rules {level}")).ok();
        assert!(!graph.contains("= softplus1("), "{level}: composites expand before lowering: {graph}");
        assert!(graph.contains("vjp softplus1"), "{level}: differentiated by its own rule: {graph}");
    }
    assert!(results.windows(2).all(|r| r[0] == r[1]), "{results:?}");
    // An unknown attribute, a wrong axis: errors at the call.
    let bad = program.replace("axis=0", "axis=5");
    let place = directory(&[("d.rules", rules), ("p.kina", &bad)]);
    kina(place.path(), "grad p.kina --rules d.rules").refusal(1, &["E0304", "axis 5 is out of range"]).unwrap();
}

#[test]
fn losses_and_gradients_go_through_the_rows_once() {
    let losses = [
        ("nll(targets, axis=AXIS)", 1),
        ("nll(targets, axis=AXIS, ignore_index=0, reduction=sum)", 1),
        ("nll(targets, axis=AXIS, reduction=mean)", 1),
        ("cross_entropy(targets, axis=AXIS, label_smoothing=0.1, reduction=mean)", 1),
        ("cross_entropy(targets, axis=AXIS, label_smoothing=0.1)", 1),
    ];
    for (loss, exps) in losses {
        for (dims, axis) in [(&[2u64, 5, 1000][..], 2), (&[64, 300], 1)] {
            let rows: Vec<u64> = (0..dims.len()).filter(|d| *d != axis).map(|d| dims[d]).collect();
            let call = loss.replace("AXIS", &axis.to_string());
            let program = format!(
                "let f = fn(logits: tensor<F32, {dims:?}, @host>) {{
                   let targets = tensor<I64, {rows:?}, @host> in logits.{call} }} in
                 let logits = tensor<F32, {dims:?}, @host> in handle f(logits) with reverseMode"
            );
            let mut session = session();
            let graph = session.check("loss.kina", &program, &CheckOptions::default()).unwrap();
            let mut program = session.differentiate(&graph).unwrap();
            let optimised = session.optimise(&mut program, Level::O2).unwrap();
            let what = format!("{call} of {dims:?}");
            assert_eq!(optimised.report.as_ref().unwrap().stop, Stop::Saturated, "{what}");
            assert_eq!(calls(&session, &optimised.graph, "exp").len(), exps, "{what}");
            let schedule = session.schedule(&optimised).unwrap();
            // One group reads whole rows of logits, and it writes the gradient.
            let elements = dims.iter().product::<u64>();
            let over_all = |g: &&kina_ad::schedule::Group| g.nests.iter().any(|n| n.points() >= elements);
            let groups: Vec<_> = schedule.groups.iter().filter(over_all).collect();
            assert_eq!(groups.len(), 1, "{what}");
            assert_eq!(groups[0].rows(), &rows, "{what}");
            // Nothing of the size of the logits but the gradient itself.
            assert!(schedule.workspace < elements * 4 / 2, "{what}: {} bytes", schedule.workspace);
        }
    }
}
