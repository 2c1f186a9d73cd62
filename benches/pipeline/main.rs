//! `./x bench`: the value and gradient of the negative log-likelihood, timed against a kernel written by hand in C.
//!
//! Contestants take turns within a round, so that whatever else the machine does hits all of them; medians, extremes and
//! the median of the per-round ratios are printed.

mod problem;
mod reference;
mod timing;

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

use std::time::Instant;

use clap::Parser;
use kina_ad::exec::jit::Compiled;
use kina_ad::{CheckOptions, Level, RuleOptions, Session};
use problem::{Gradient, Problem};
use reference::Reference;
use serde_json::json;
use timing::{Contestant, compare, median};

#[derive(Parser)]
#[command(name = "./x bench", about = "Times compiled code against a C kernel written by hand")]
struct Args {
    /// Sites; the default is a batch of 4 sequences of 256.
    #[arg(long, default_value_t = 1024)]
    rows: usize,
    /// Classes; the default is the vocabulary of GPT-2.
    #[arg(long, default_value_t = 50257)]
    classes: usize,
    #[arg(long, default_value_t = 21)]
    rounds: usize,
    /// Another C file that defines nll_reference, instead of benches/pipeline/nll_reference.c.
    #[arg(long, value_name = "FILE.c")]
    reference: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// What cargo passes.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    if args.rows == 0 || args.classes == 0 || args.rounds == 0 {
        return Err("--rows, --classes and --rounds must be at least 1".into());
    }
    // Asked first: OpenMP may bind this thread to one core when it is loaded.
    let machine = machine();
    let own = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/pipeline/nll_reference.c"));
    let reference = Reference::compile(&args.reference.unwrap_or(own))?;
    let problem = Problem::new(args.rows, args.classes)?;

    let mut contestants =
        vec![Contestant { name: "C by hand", run: Box::new(|problem, out| reference.run(problem, out)) }];
    let source = source(args.rows, args.classes);
    contestants.push(compiled(&problem, &source)?);
    let times = compare(&problem, contestants, args.rounds)?;

    let stages = stages(&source, args.rounds)?;
    let compilation = [
        ("differentiate + optimise + extract", median(&stages.middle)),
        ("source to callable code", median(&stages.whole)),
        ("loading the rule files (once per session)", median(&stages.rules)),
    ];

    if args.json {
        let results: Vec<_> = times
            .iter()
            .map(|t| json!({"name": t.name, "median": t.median(), "min": t.min(), "max": t.max(), "over_first": t.over(&times[0])}))
            .collect();
        let report = json!({"machine": machine, "rows": args.rows, "classes": args.classes, "rounds": args.rounds, "seconds": results,
            "compilation_seconds": compilation.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect::<serde_json::Map<_, _>>()});
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(());
    }
    println!("{machine}");
    println!("NLL value and gradient, F32 [{}, {}], {} interleaved rounds", args.rows, args.classes, args.rounds);
    println!("{:<12} {:>12} {:>12} {:>12} {:>8}", "", "median ms", "min", "max", "ratio");
    for t in &times {
        let ms = |seconds: f64| format!("{:.4}", seconds * 1e3);
        println!(
            "{:<12} {:>12} {:>12} {:>12} {:>8.2}",
            t.name,
            ms(t.median()),
            ms(t.min()),
            ms(t.max()),
            t.over(&times[0])
        );
    }
    println!("compiling it, medians of {} rounds", args.rounds);
    for (what, seconds) in &compilation {
        println!("{what:<44} {:>10.3} ms", seconds * 1e3);
    }
    Ok(())
}

/// Compiled code as a contestant for this problem, at -O2, with the cotangent as an input.
fn compiled<'p>(problem: &'p Problem, source: &str) -> Result<Contestant<'p>, Box<dyn Error>> {
    let mut session = Session::new(&RuleOptions::default())?;
    let graph = session.check("nll.kina", source, &CheckOptions { cotangent_input: true })?;
    let mut program = session.differentiate(&graph)?;
    let optimised = session.optimise(&mut program, Level::O2)?;
    let code = Compiled::new(&optimised.graph, &session.rules.registry, Level::O2)?;
    let names = optimised.graph.inputs.iter().map(|id| optimised.graph.node(*id).name.as_deref());
    let mut inputs = Vec::new();
    for name in names {
        inputs.push(match name {
            Some("logits") => &problem.logits,
            Some("targets") => &problem.targets,
            Some("cotangent") => &problem.cotangent,
            other => return Err(format!("unexpected input {other:?}").into()),
        });
    }
    let run = move |_: &Problem, out: &mut Gradient| Ok(code.call_into(&inputs, &mut out.tensors)?);
    Ok(Contestant { name: "kina-ad -O2", run: Box::new(run) })
}

/// The program that is timed.
fn source(rows: usize, classes: usize) -> String {
    format!(
        "let nll = fn(logits: tensor<F32, [{rows}, {classes}], @host>) -> tensor<F32, [{rows}], @host> {{
           let targets = tensor<I64, [{rows}], @host> in
           let log_probs = logits.log_softmax(axis=1) in
           let picked = log_probs.take_along_axis(targets, axis=1) in
           -picked
         }} in
         let logits = tensor<F32, [{rows}, {classes}], @host> in
         handle nll(logits) with reverseMode"
    )
}

/// Seconds of the stages of one compilation.
#[derive(Default)]
struct Stages {
    /// Differentiate, optimise and extract.
    middle: Vec<f64>,
    /// From program text to code that can be called, rules loaded before.
    whole: Vec<f64>,
    /// Loading and compiling the rule files.
    rules: Vec<f64>,
}

fn stages(source: &str, rounds: usize) -> Result<Stages, Box<dyn Error>> {
    let mut stages = Stages::default();
    for _ in 0..rounds {
        let start = Instant::now();
        let mut session = Session::new(&RuleOptions::default())?;
        stages.rules.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let graph = session.check("nll.kina", source, &CheckOptions::default())?;
        let middle = Instant::now();
        let mut program = session.differentiate(&graph)?;
        let optimised = session.optimise(&mut program, Level::O2)?;
        stages.middle.push(middle.elapsed().as_secs_f64());
        let code = Compiled::new(&optimised.graph, &session.rules.registry, Level::O2)?;
        stages.whole.push(start.elapsed().as_secs_f64());
        drop(code);
    }
    Ok(stages)
}

/// Processor, cores and compiler, in a line.
fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown CPU", |(_, m)| m.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let clang = Command::new("clang-19").arg("--version").output().ok();
    let clang = clang.map(|o| String::from_utf8_lossy(&o.stdout).lines().next().unwrap_or_default().to_owned());
    format!("{model}, {cores} threads, {}, {}", std::env::consts::ARCH, clang.unwrap_or_default())
}
