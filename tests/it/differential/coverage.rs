//! What generated programs contain. An operator, `def` or rule that the generator does not reach is named here.

use std::collections::BTreeSet;

use kina_ad::ir::{AttrKind, AttrValue, DType, Graph, Level, NodeKind, Origin};
use kina_ad::rules::term::TermKind;
use kina_ad::rules::{Conclusion, Pattern, Rewrite};
use kina_ad::{CheckOptions, Session};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::build::build;
use super::call::operand_dtypes;
use super::compare::{Program, Seen};
use super::script::scripts;
use super::vocabulary::Vocabulary;
use super::{STEPS, config, session};

/// Rewrites whose left side no program can write, and which gradients meet too seldom to be sure of.
const RARE: &[&str] = &["sum_of_scatter"];

/// Everything that must occur.
fn wanted(vocabulary: &Vocabulary<'_>) -> BTreeSet<String> {
    let rules = vocabulary.rules;
    let mut wanted = BTreeSet::new();
    for callee in &vocabulary.callees {
        for dtypes in operand_dtypes(vocabulary, callee) {
            wanted.insert(call(&callee.name, &dtypes));
        }
        for (name, kind, _) in callee.signature.attrs() {
            match kind {
                AttrKind::Axis | AttrKind::Axes => {
                    wanted.insert(format!("`{}` along another axis than the last", callee.name));
                }
                AttrKind::Bool => {
                    wanted.extend([false, true].map(|value| format!("`{}` with {name}={value}", callee.name)))
                }
                _ => {}
            }
        }
    }
    for vjp in rules.all_vjps() {
        // Rules that pass the cotangent on, or none, leave no trace.
        let leaves_trace = |c: &Conclusion| match c {
            Conclusion::NoCotangent(_) => false,
            Conclusion::Cotangent(term) => !matches!(term.kind, TermKind::Var(v) if v == vjp.cotangent),
        };
        let writable = vocabulary.callees.iter().any(|c| c.name == rules.registry.op(vjp.op).name());
        if writable && vjp.conclusions.iter().any(leaves_trace) {
            wanted.insert(format!("`{}` applied", vjp.head.rule.name));
        }
    }
    // What is worth trying for large tensors only has tests of its own.
    let rewrites = rules.rewrites().iter().filter(|r| r.head.worth.is_empty());
    let rewrites = rewrites.filter(|r| !commutes(r) && !RARE.contains(&&*r.head.rule.name));
    wanted.extend(rewrites.map(|r| format!("`{}` applied", r.head.rule.name)));
    wanted.extend((0..=super::build::MAX_RANK).map(|rank| format!("a value of rank {rank}")));
    wanted.extend([0, 1, 17, 67].map(|size| format!("a dimension of size {size}")));
    let others = [
        "a trap",
        "a NaN in a result",
        "an infinity in a result",
        "an element that rounding moves",
        "an element that rounding decides",
        "second order",
        "a handler of several parameters",
        "a gradient that is computed with",
        "a value used twice",
        "several results",
        "a negative axis",
    ];
    wanted.extend(others.map(str::to_owned));
    wanted
}

/// `op(a, b) => op(b, a)`, which is not run.
fn commutes(rewrite: &Rewrite) -> bool {
    match (&rewrite.left, &rewrite.right.kind) {
        (Pattern::Op { op, operands, .. }, TermKind::Op { op: right, .. }) => {
            op == right && operands.iter().all(|o| matches!(o, Pattern::Var(_)))
        }
        _ => false,
    }
}

/// A call, by the dtypes of its operands.
pub fn call(name: &str, operands: &[DType]) -> String {
    let operands: Vec<&str> = operands.iter().map(|d| d.name()).collect();
    format!("a call `{name}({})`", operands.join(", "))
}

/// What the attributes of a call show. `rank` is that of the first operand.
pub fn attribute(callee: &str, name: &str, kind: AttrKind, value: &AttrValue, rank: usize) -> Option<String> {
    let last = rank as i64 - 1;
    let before_last = match (kind, value) {
        (AttrKind::Axis, AttrValue::Int(axis)) => *axis < last,
        (AttrKind::Axes, AttrValue::Ints(axes)) => !axes.is_empty() && axes.iter().all(|a| *a < last),
        (AttrKind::Bool, AttrValue::Bool(b)) => return Some(format!("`{callee}` with {name}={b}")),
        _ => false,
    };
    before_last.then(|| format!("`{callee}` along another axis than the last"))
}

/// What a checked graph has.
fn of_graph(graph: &Graph, found: &mut impl FnMut(String)) {
    let mut uses = vec![0; graph.len()];
    let mut second_order = false;
    // Nodes that depend on a gradient.
    let mut after = vec![false; graph.len()];
    for (id, node) in graph.iter() {
        for operand in node.operands() {
            uses[operand.index()] += 1;
            after[id.index()] |= after[operand.index()];
        }
        found(format!("a value of rank {}", node.ty.rank()));
        node.ty.shape.iter().for_each(|d| found(format!("a dimension of size {d}")));
        match &node.kind {
            NodeKind::Gradient { .. } => after[id.index()] = true,
            NodeKind::Op { operands, .. } => {
                if operands.iter().any(|o| after[o.index()]) {
                    found("a gradient that is computed with".into());
                }
            }
            NodeKind::Input | NodeKind::Param { .. } => {}
        }
    }
    for handler in &graph.handlers {
        second_order |= after[handler.primal.index()];
        if handler.params.len() > 1 {
            found("a handler of several parameters".into());
        }
    }
    if second_order {
        found("second order".into());
    }
    if uses.iter().any(|n| *n > 1) {
        found("a value used twice".into());
    }
    if graph.outputs.len() > 1 {
        found("several results".into());
    }
}

fn of_run(seen: &Seen, found: &mut impl FnMut(String)) {
    let facts = [
        (seen.trap.is_some(), "a trap"),
        (seen.nans > 0, "a NaN in a result"),
        (seen.infinities > 0, "an infinity in a result"),
        (seen.near > 0, "an element that rounding moves"),
        (seen.open > 0, "an element that rounding decides"),
    ];
    facts.into_iter().filter(|(holds, _)| *holds).for_each(|(_, what)| found(what.into()));
}

/// The rules that make up the gradients and the optimised graph.
fn of_rules(session: &Session, graph: &Graph, found: &mut impl FnMut(String)) {
    let mut program = session.differentiate(graph).unwrap();
    for (_, node) in program.tape.iter() {
        if let Origin::Rule { rule, .. } = &node.origin {
            found(format!("`{}` applied", rule.name));
        }
    }
    let optimised = session.optimise(&mut program, Level::O2).unwrap();
    let applications = optimised.report.unwrap().applications;
    applications.keys().for_each(|rule| found(format!("`{rule}` applied")));
}

#[test]
fn generated_programs_contain_all_of_the_language() {
    let mut session = session(&[]);
    let rules = session.rules.clone();
    let vocabulary = Vocabulary::new(&rules);
    let mut missing = wanted(&vocabulary);
    let strategy = scripts(vocabulary.verbs.len(), STEPS);
    let mut runner = TestRunner::new(config(0, 0));
    let (mut elements, mut open, mut compared) = (0, 0, 0);
    // Enough for the statistics at the end; as many more as it takes to meet everything.
    const CASES: std::ops::Range<usize> = 500..4000;
    let mut cases = 0;
    while cases < CASES.start || (cases < CASES.end && !missing.is_empty()) {
        cases += 1;
        let case = build(&vocabulary, &strategy.new_tree(&mut runner).unwrap().current(), false);
        let mut found = |what: String| {
            missing.remove(&what);
        };
        case.features.iter().cloned().for_each(&mut found);
        let text = case.to_string();
        if text.contains("axis=-") || text.contains("axis=[-") {
            found("a negative axis".into());
        }
        let graph = session.check("generated.kina", &text, &CheckOptions::default()).unwrap();
        of_graph(&graph, &mut found);
        of_rules(&session, &graph, &mut found);
        let seen = Program::new(&mut session, &text).unwrap().agree(&[]).unwrap();
        of_run(&seen, &mut found);
        elements += seen.exact + seen.near;
        open += seen.open;
        compared += usize::from(seen.trap.is_some() || seen.exact + seen.near > 0);
    }
    assert!(missing.is_empty(), "not in {cases} programs: {missing:#?}");
    // The comparison is about nearly everything.
    assert!(
        compared * 10 > cases * 8 && open * 100 < elements,
        "{compared} programs; {open} of {elements} elements open"
    );
}
