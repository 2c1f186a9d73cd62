//! Large programs: nothing recurses over the depth of a graph, and nothing takes quadratic time. Timing is the
//! benchmark's; what would take minutes here if it were quadratic fails by never ending.

use crate::support::{directory, kina};

const OPERATORS: usize = 20_000;

fn function(parameters: &str, result: &str, body: &str) -> String {
    format!("let f = fn({parameters}) -> {result} {{\n{body}\n}} in\n")
}

fn lines(line: impl Fn(usize) -> String) -> String {
    (1..OPERATORS).map(|i| line(i) + "\n").collect()
}

/// `run` through the whole pipeline but compiled code.
#[track_caller]
fn runs(what: &str, program: &str) {
    let place = directory(&[("p.kina", program)]);
    for level in ["-O0", "-O2"] {
        let outcome = kina(place.path(), &format!("run p.kina {level} --interpret"));
        assert_eq!(outcome.code, Some(0), "{what} {level}: {}", outcome.stderr);
    }
}

#[test]
fn a_deep_chain_runs() {
    let ty = "tensor<F64, [2], @host>";
    let body = lines(|i| match i % 3 {
        0 => format!("let v{i} = v{} * w in", i - 1),
        1 => format!("let v{i} = v{}.tanh() in", i - 1),
        _ => format!("let v{i} = v{} + w in", i - 1),
    });
    let f = function(&format!("v0: {ty}, w: {ty}"), ty, &format!("{body}v{}", OPERATORS - 1));
    runs("a chain", &format!("{f}let x = {ty} in let w = {ty} in handle f(x, w) with reverseMode"));
}

#[test]
fn a_value_of_many_uses_runs() {
    let ty = "tensor<F64, [2], @host>";
    let body = lines(|i| format!("let v{i} = v{} + e in", i - 1));
    let f = function(&format!("v0: {ty}"), ty, &format!("let e = v0.tanh() in\n{body}v{}", OPERATORS - 1));
    runs("many uses", &format!("{f}let x = {ty} in handle f(x) with reverseMode"));
}

/// The cotangent of all the sums is one value, whose class holds them all: looking for its forms must not pass each of them.
#[test]
fn a_value_of_many_uses_is_optimised_within_the_budget_of_steps() {
    let ty = "tensor<F64, [2], @host>";
    let sums: String = (1..10_000).map(|i| format!("let v{i} = v{} + e in\n", i - 1)).collect();
    let f = function(&format!("v0: {ty}"), ty, &format!("let e = v0.tanh() in\n{sums}v9999"));
    let place = directory(&[("p.kina", format!("{f}let x = {ty} in handle f(x) with reverseMode"))]);
    let printed = kina(place.path(), "grad p.kina").ok();
    let summary = printed.lines().last().expect("a summary");
    assert!(summary.starts_with("e-graph") && !summary.contains("budget of steps"), "{summary}");
}

#[test]
fn many_bounds_checks_run() {
    let (table, row) = ("tensor<F64, [2, 3], @host>", "tensor<F64, [2], @host>");
    let body =
        lines(|i| format!("let i{i} = i{} + 0 in let v{i} = v{} + t.take_along_axis(i{i}, axis=1) in", i - 1, i - 1));
    let body = format!(
        "let i0 = tensor<I64, [2], @host> in let v0 = t.take_along_axis(i0, axis=1) in\n{body}v{}",
        OPERATORS - 1
    );
    let f = function(&format!("t: {table}"), row, &body);
    runs("many checks", &format!("{f}let t = {table} in handle f(t) with reverseMode"));
}

#[test]
fn many_parameters_run() {
    let ty = "tensor<F64, [2], @host>";
    let count = OPERATORS / 10;
    let list =
        |separator: &str, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(separator);
    let body: String = (1..count).map(|i| format!("let v{i} = v{} * p{i} in\n", i - 1)).collect();
    let f = function(&list(", ", &|i| format!("p{i}: {ty}")), ty, &format!("let v0 = p0 in\n{body}v{}", count - 1));
    let inputs = list("\n", &|i| format!("let p{i} = {ty} in"));
    let arguments = list(", ", &|i| format!("p{i}"));
    runs("many parameters", &format!("{f}{inputs}\nhandle f({arguments}) with reverseMode"));
}

#[test]
fn many_results_run() {
    let results = vec!["x.exp()"; OPERATORS].join(", ");
    runs("many results", &format!("let x = tensor<F64, [2], @host> in ({results})"));
}

#[test]
fn many_faults_end_soon() {
    let body = lines(|i| format!("let v{i} = x + nowhere{i} in"));
    let place = directory(&[("p.kina", format!("let x = tensor<F64, [2], @host> in\n{body}x"))]);
    let outcome = kina(place.path(), "run p.kina");
    assert_eq!(outcome.code, Some(1));
    assert_eq!(outcome.stderr.matches("error[E0201]").count(), 100, "{}", &outcome.stderr[..2000]);
    assert!(outcome.stderr.ends_with("1 or more beyond these are not shown\n"));
}
