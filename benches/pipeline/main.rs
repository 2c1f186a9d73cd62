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

use clap::Parser;
use problem::Problem;
use reference::Reference;
use serde_json::json;
use timing::{Contestant, compare};

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
    contestants.extend(compiled(&problem)?);
    let alone = contestants.len() == 1;
    let times = compare(&problem, contestants, args.rounds)?;

    if args.json {
        let results: Vec<_> = times
            .iter()
            .map(|t| json!({"name": t.name, "median": t.median(), "min": t.min(), "max": t.max(), "over_first": t.over(&times[0])}))
            .collect();
        let report = json!({"machine": machine, "rows": args.rows, "classes": args.classes, "rounds": args.rounds, "seconds": results});
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
    if alone {
        println!("only the C kernel was timed: compiled code is not connected to this benchmark yet");
    }
    Ok(())
}

/// Compiled code as a contestant for this problem.
fn compiled(_problem: &Problem) -> Result<Option<Contestant<'static>>, Box<dyn Error>> {
    Ok(None)
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
