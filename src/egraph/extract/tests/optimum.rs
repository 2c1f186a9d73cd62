//! What extraction costs beside the exact optimum, which an integer linear programme knows.

use std::fmt::Write as _;

use microlp::{ComparisonOp, LinearExpr, OptimizationDirection, SolutionStatus, SolveOptions, SolveOutcome, Variable};

use super::*;
use crate::egraph::{Budget, result, saturate};
use crate::{CheckOptions, Level, RuleOptions, Session};

/// Branches that the solver may look at for one graph.
const MAX_BRANCHES: u64 = 20_000;
/// Times that cycles are excluded and the rest is solved again.
const MAX_CUTS: usize = 200;

/// The least cost of the roots, or `None` if it was not proved.
///
/// A variable of 0 or 1 for each candidate says whether it is chosen: one for each root, and one for each operand of a chosen
/// candidate. Solutions with a cycle are found by solving without regard to them; each one then is excluded.
pub fn exact(problem: &Problem) -> Option<Cost> {
    let order = Order::new(problem);
    let terms = problem.terms(&order);
    let usable = |candidate: &Candidate| candidate.children.iter().all(|child| terms[*child].is_some());
    let mut program = microlp::Problem::new(OptimizationDirection::Minimize);
    // Costs in units that keep them near 1.
    let all = problem.candidates.iter().flatten();
    let unit = all.map(|c| c.cost).max()?.max(1) as f64 / 1000.0;
    let chosen: Vec<Vec<Option<Variable>>> = problem
        .candidates
        .iter()
        .map(|list| list.iter().map(|c| usable(c).then(|| program.add_binary_var(c.cost as f64 / unit))).collect())
        .collect();
    let one_of = |class: ClassIndex, factor: f64, sum: &mut LinearExpr| {
        chosen[class].iter().flatten().for_each(|variable| sum.add(*variable, factor));
    };
    for root in &problem.roots {
        let mut sum = LinearExpr::empty();
        one_of(*root, 1.0, &mut sum);
        program.add_constraint(sum, ComparisonOp::Eq, 1.0);
    }
    // The candidates of a class that need a child: at most one of them is chosen, and then one of the child's.
    let needing = |class: ClassIndex, child: ClassIndex| {
        let list = problem.candidates[class].iter().zip(&chosen[class]);
        list.filter_map(move |(candidate, variable)| variable.filter(|_| candidate.children.contains(&child)))
    };
    for class in 0..problem.classes.len() {
        let mut children: Vec<ClassIndex> =
            problem.candidates[class].iter().flat_map(|c| &c.children).copied().collect();
        children.sort_unstable();
        children.dedup();
        for child in children {
            let mut sum = LinearExpr::empty();
            needing(class, child).for_each(|variable| sum.add(variable, -1.0));
            // What needs its own class is thereby never chosen.
            if child != class {
                one_of(child, 1.0, &mut sum);
            }
            program.add_constraint(sum, ComparisonOp::Ge, 0.0);
        }
    }
    for _ in 0..MAX_CUTS {
        let mut options = SolveOptions::default();
        options.node_limit = Some(MAX_BRANCHES);
        let SolveOutcome::Solution(solution) = program.solve_with(options).ok()? else { return None };
        if solution.status() != SolutionStatus::Optimal {
            return None;
        }
        let is_chosen = |variable: &Option<Variable>| variable.is_some_and(|v| solution.var_value(v) > 0.5);
        let choice: Vec<usize> =
            chosen.iter().map(|list| list.iter().position(is_chosen).unwrap_or(usize::MAX)).collect();
        let Some(cycle) = cycle(problem, &choice) else { return Some(cost_of(problem, &choice)) };
        let mut sum = LinearExpr::empty();
        for (class, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
            needing(*class, *next).for_each(|variable| sum.add(variable, 1.0));
        }
        program.add_constraint(sum, ComparisonOp::Le, cycle.len() as f64 - 1.0);
    }
    None
}

/// Classes of which each needs the next one, and the last one the first.
fn cycle(problem: &Problem, chosen: &[usize]) -> Option<Vec<ClassIndex>> {
    let mut done = vec![false; chosen.len()];
    for root in &problem.roots {
        // The way from the root, with the children still to be looked at.
        let mut way: Vec<(ClassIndex, usize)> = vec![(*root, 0)];
        while let Some((class, next)) = way.last_mut() {
            let child = problem.candidates[*class][chosen[*class]].children.get(*next).copied();
            *next += 1;
            match child {
                Some(child) => {
                    if let Some(start) = way.iter().position(|(c, _)| *c == child) {
                        return Some(way[start..].iter().map(|(c, _)| *c).collect());
                    }
                    if !done[child] {
                        way.push((child, 0));
                    }
                }
                None => {
                    done[*class] = true;
                    way.pop();
                }
            }
        }
    }
    None
}

/// `body` is a function of `x: [4, 6]`, `u: [4, 6]` and `w: [6, 6]`, whose `result` is differentiated.
fn program(body: &str, result: &str) -> String {
    let ty = |shape: &str| format!("tensor<F32, {shape}, @host>");
    let (x, w, t) = (ty("[4, 6]"), ty("[6, 6]"), "tensor<I64, [4], @host>");
    format!(
        "let f = fn(x: {x}, u: {x}, w: {w}) {{\n  let t = {t} in\n{body}  {result}\n}} in
         let x = {x} in let u = {x} in let w = {w} in handle f(x, u, w) with reverseMode"
    )
}

const ATTENTION: &str = "
  let n = x.layer_norm() in
  let q = n.matmul(w).reshape([4, 2, 3]).transpose([1, 0, 2]) in
  let k = n.matmul(w * 2.0).reshape([4, 2, 3]).transpose([1, 0, 2]) in
  let v = n.matmul(w + 1.0).reshape([4, 2, 3]).transpose([1, 0, 2]) in
  let mask = tensor<Bool, [2, 4, 4], @host> in
  let s = matmul(q, k.transpose([0, 2, 1])) * 0.577 in
  let p = select(mask, s, -1000000000.0).softmax(axis=2) in
  let y = x + p.matmul(v).transpose([1, 0, 2]).reshape([4, 6]).matmul(w) in
";

/// Programs whose optimum is wanted: what people write.
fn written() -> Vec<(String, String)> {
    let results = [
        "x.log_softmax(axis=1)",
        "x.softmax(axis=1)",
        "x.softmax(axis=0).log()",
        "-x.log_softmax(axis=1).take_along_axis(t, axis=1)",
        "(-x.log_softmax(axis=1).take_along_axis(t, axis=1)).mean()",
        "(-x.softmax(axis=1).take_along_axis(t, axis=1).log()).mean()",
        "x.nll(t, axis=1)",
        "x.nll(t, axis=1, ignore_index=0, reduction=mean)",
        "x.cross_entropy(t, axis=1, label_smoothing=0.1, reduction=mean)",
        "x.cross_entropy(t, axis=1, label_smoothing=0.1, z_loss=0.01)",
        "x.layer_norm()",
        "x.layer_norm() * u + x",
        "x.rms_norm() * u",
        "x.logsumexp(axis=1)",
        "x.gelu() * u",
        "x.gelu_tanh()",
        "x.sigmoid() * x.silu() + x.softplus()",
        "(x - u).square().mean()",
        "(x - u).abs().mean()",
        "x.matmul(w).relu().matmul(w).softmax(axis=1)",
        "(-(x.matmul(w).tanh().matmul(w) + u).log_softmax(axis=1).take_along_axis(t, axis=1)).mean()",
    ];
    let mut list: Vec<(String, String)> =
        results.iter().map(|result| ((*result).to_owned(), program("", result))).collect();
    let layer_norm = "  let d = x - x.mean(axis=1, keepdims=true).broadcast([4, 6]) in
  let r = ((d * d).mean(axis=1, keepdims=true) + 0.00001).rsqrt().broadcast([4, 6]) in\n";
    list.push(("layer norm, written out".into(), program(layer_norm, "d * r * u")));
    list.push(("attention".into(), program(ATTENTION, "y")));
    let network = "(y + y.rms_norm().matmul(w).gelu().matmul(w)).log_softmax(axis=1).take_along_axis(t, axis=1).mean()";
    list.push(("transformer block".into(), program(ATTENTION, network)));
    for file in ["mlp.kina", "story/story.kina"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(file);
        list.push((file.into(), std::fs::read_to_string(path).unwrap()));
    }
    list
}

/// Statements picked by a linear congruential sequence: the same programs on every machine.
fn random(seed: u64) -> (String, String) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 12345;
    let mut next = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let mut body = String::new();
    for i in 0..9 {
        let mut name = || match next(i + 2) {
            0 => "x".to_owned(),
            1 => "u".to_owned(),
            k => format!("v{}", k - 2),
        };
        let (a, b) = (name(), name());
        let value = match next(20) {
            0 => format!("{a} + {b}"),
            1 => format!("{a} - {b}"),
            2 | 3 => format!("{a} * {b}"),
            4 => format!("{a} / ({b} * {b} + 1.0)"),
            5 => format!("{a}.exp() * {b}"),
            6 => format!("{a}.tanh()"),
            7 => format!("{a}.softmax(axis=1) * {b}"),
            8 => format!("{a}.log_softmax(axis=1) + {b}"),
            9 => format!("{a} - {a}.mean(axis=1, keepdims=true).broadcast([4, 6])"),
            10 => format!("{a} * {b}.sum(axis=1, keepdims=true).broadcast([4, 6])"),
            11 => format!("({a}.transpose([1, 0]) * {b}.transpose([1, 0])).transpose([1, 0])"),
            12 => format!("({a}.reshape([24]) + {b}.reshape([24])).reshape([4, 6])"),
            13 => format!("{a}.matmul(w)"),
            14 => format!("select({a} > {b}, {a}, {b} * 2.0)"),
            15 => format!("-{a} * 3.0 + {b}"),
            16 => format!("{a}.sigmoid()"),
            17 => format!("{a}.softmax(axis=1).log()"),
            18 => format!("concat({a}, {b}, axis=0).slice([2, 0], [6, 6])"),
            _ => format!("{a}.layer_norm()"),
        };
        let _ = writeln!(body, "  let v{i} = {value} in");
    }
    (format!("random program {seed}"), program(&body, "v8 + v7"))
}

#[test]
fn extraction_optimum() {
    let (mut worst, mut proved, mut unproved) = ((1.0, String::from("all")), 0, Vec::new());
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    for (name, text) in written().into_iter().chain((0..100).map(random)) {
        let graph =
            session.check("p.kina", &text, &CheckOptions::default()).map_err(|e| format!("{name}\n{text}\n{e}"));
        let mut differentiated = session.differentiate(&graph.unwrap()).unwrap();
        saturate(&mut differentiated, &session.rules, Level::O2, Budget::default()).unwrap();
        let problem = result::problem(&differentiated);
        let found = problem.clone().solve().unwrap();
        match exact(&problem) {
            Some(optimum) => {
                proved += 1;
                let ratio = found.cost as f64 / optimum as f64;
                assert!(found.cost >= optimum, "{name}: {} beats the optimum {optimum}", found.cost);
                if ratio > 1.0 {
                    println!("{ratio:.5} {name}");
                }
                if ratio > worst.0 {
                    worst = (ratio, name);
                }
            }
            None => unproved.push(name),
        }
    }
    println!("extraction cost / exact optimum: worst {:.5} over {proved} graphs", worst.0);
    assert!(unproved.is_empty(), "without a proved optimum: {unproved:?}");
    assert!(worst.0 <= 1.005, "{:.5}: {}", worst.0, worst.1);
}

#[test]
fn the_exact_optimum_is_that_of_all_combinations() {
    for problem in small_problems(40) {
        assert_eq!(exact(&problem), Some(optimum(&problem)));
    }
    // 0 and 1 can each be had from the other for 1, or from 2 for 50.
    let rows: [(usize, Cost, &[usize]); 5] = [(0, 1, &[1]), (0, 50, &[2]), (1, 1, &[0]), (1, 50, &[2]), (2, 1, &[])];
    assert_eq!(exact(&problem(3, &rows, &[0, 1])), Some(52));
}
