//! `./x bench pipeline`: the value and gradient of the negative log-likelihood, of any size, timed against a kernel written by hand
//! in C; and what compiling it takes. `./x bench` has this among its jobs.

#[path = "../common/contest.rs"]
mod contest;
#[path = "../common/job.rs"]
mod job;
#[path = "../common/reference.rs"]
mod reference;

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use contest::{Contestant, Turns, compare, quantile};
use job::{Job, nll};
use kina_ad::{CheckOptions, Level, RuleOptions, Session};
use reference::Reference;
use serde_json::json;

#[derive(Parser)]
#[command(name = "./x bench pipeline", about = "Times compiled code against a C kernel written by hand")]
struct Args {
    /// Sites; the default is a batch of 4 sequences of 256.
    #[arg(long, default_value_t = 1024)]
    rows: u64,
    /// Classes; the default is the vocabulary of GPT-2.
    #[arg(long, default_value_t = 50257)]
    classes: u64,
    #[arg(long, default_value_t = 21)]
    rounds: usize,
    /// Another C file that defines nll_reference, instead of benches/common/nll_reference.c.
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
    let reference = Reference::compile(&args.reference.unwrap_or_else(Reference::source))?;
    let source = nll(&[args.rows, args.classes]);
    let job = Job::new(&source)?;
    let mut contestants: Vec<Box<dyn Contestant>> =
        vec![Box::new(reference.contestant(&job)?), Box::new(job.contestant()?)];
    let times = compare(&mut contestants, &Turns::new(args.rounds))?;

    let stages = stages(&source, args.rounds)?;
    let compilation = [
        ("differentiate + optimise + extract", quantile(&stages.middle, 0.5)),
        ("source to callable code", quantile(&stages.whole, 0.5)),
        ("loading the rule files (once per session)", quantile(&stages.rules, 0.5)),
    ];
    // Median, least, most, and the median of the ratios to the first.
    let figures = times
        .iter()
        .map(|t| (&t.name, [0.5, 0.0, 1.0].map(|part| quantile(&t.rounds, part)), quantile(&t.over(&times[0]), 0.5)));

    if args.json {
        let results: Vec<_> = figures
            .map(|(name, [median, min, max], ratio)| {
                json!({"name": name, "median": median, "min": min, "max": max, "over_first": ratio})
            })
            .collect();
        let report = json!({"rows": args.rows, "classes": args.classes, "rounds": args.rounds, "seconds": results,
            "compilation_seconds": compilation.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect::<serde_json::Map<_, _>>()});
        println!("{report:#}");
        return Ok(());
    }
    println!("NLL value and gradient, F32 [{}, {}], {} interleaved rounds", args.rows, args.classes, args.rounds);
    println!("{:<12} {:>12} {:>12} {:>12} {:>8}", "", "median ms", "min", "max", "ratio");
    for (name, seconds, ratio) in figures {
        let [median, min, max] = seconds.map(|s| format!("{:.4}", s * 1e3));
        println!("{name:<12} {median:>12} {min:>12} {max:>12} {ratio:>8.2}");
    }
    println!("compiling it, medians of {} rounds", args.rounds);
    for (what, seconds) in &compilation {
        println!("{what:<44} {:>10.3} ms", seconds * 1e3);
    }
    Ok(())
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
        let graph = session.check("nll.kina", source, &CheckOptions { cotangent_input: true })?;
        let middle = Instant::now();
        let mut program = session.differentiate(&graph)?;
        let optimised = session.optimise(&mut program, Level::O2)?;
        stages.middle.push(middle.elapsed().as_secs_f64());
        let code = session.compile(&optimised)?;
        stages.whole.push(start.elapsed().as_secs_f64());
        drop(code);
    }
    Ok(stages)
}
