//! `./x bench middle`: what differentiation, rewriting and extraction take for large programs, stage by stage, and what
//! loading the rules takes.

#[path = "../common/generators.rs"]
// Each bench uses some of them.
#[allow(dead_code)]
mod generators;
#[path = "../common/memory.rs"]
mod memory;

use std::error::Error;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use clap::Parser;
use kina_ad::egraph::{Budget, Stop, extract, saturate};
use kina_ad::ir::NodeKind;
use kina_ad::{CheckOptions, Level, RuleOptions, Session};
use serde_json::{Value, json};

#[derive(Parser)]
#[command(about = "Times differentiation, rewriting and extraction of large programs")]
struct Args {
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Measure one job and print its figures as JSON.
    #[arg(long)]
    only: Option<usize>,
    /// What cargo passes.
    #[arg(long, hide = true)]
    bench: bool,
}

struct Job {
    name: &'static str,
    write: fn() -> String,
    /// Fewer for the long ones.
    rounds: usize,
    /// What is asked for: seconds of differentiation, rewriting and extraction, and bytes.
    seconds: f64,
    bytes: Option<u64>,
}

const JOBS: [Job; 3] = [
    Job {
        name: "transformer of 12 layers",
        write: || generators::transformer(12),
        rounds: usize::MAX,
        seconds: 0.025,
        bytes: None,
    },
    Job {
        name: "transformer of 200 layers",
        write: || generators::transformer(200),
        rounds: 3,
        seconds: 0.7,
        bytes: None,
    },
    Job {
        name: "chain of 100,000 operators",
        write: || generators::chain(100_000),
        rounds: 1,
        seconds: 15.0,
        bytes: Some(1 << 30),
    },
];

const STAGES: [&str; 5] = ["rules", "check", "differentiate", "rewrite", "extract"];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    if let Some(job) = args.only.and_then(|i| JOBS.get(i)) {
        println!("{}", measure(job, args.rounds.clamp(1, job.rounds))?);
        return Ok(());
    }
    let jobs: Vec<Value> = (0..JOBS.len()).map(|i| measure_apart(i, args.rounds)).collect::<Result<_, _>>()?;
    if args.json {
        println!("{:#}", json!({ "rounds": args.rounds, "middle": jobs }));
        return Ok(());
    }
    println!(
        "Large programs through differentiation, rewriting (-O2) and extraction, best of up to {} rounds",
        args.rounds
    );
    for job in jobs {
        let ms = |stage: &str| job[stage].as_f64().unwrap_or(f64::NAN) * 1e3;
        println!("{}: {} operators", job["program"].as_str().unwrap_or("?"), job["operators"]);
        let times: Vec<String> = STAGES.iter().map(|stage| format!("{stage} {:.1} ms", ms(stage))).collect();
        println!("  {}", times.join(", "));
        println!(
            "  differentiate + rewrite + extract {:.1} ms, asked for: {:.0} ms; peak memory {} MB",
            ms("middle"),
            ms("asked"),
            job["peak"].as_u64().unwrap_or(0) >> 20,
        );
        println!(
            "  {} e-nodes in {} classes, {} iterations, {} searches, {} applications, {}; cost {}",
            job["nodes"],
            job["classes"],
            job["iterations"],
            job["searches"],
            job["applications"],
            job["end"],
            job["cost"]
        );
    }
    Ok(())
}

/// In a process of its own, so that nobody's peak includes what the one before left.
fn measure_apart(index: usize, rounds: usize) -> Result<Value, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--only", &index.to_string(), "--rounds", &rounds.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn measure(job: &Job, rounds: usize) -> Result<Value, Box<dyn Error>> {
    let text = (job.write)();
    let mut best = [f64::INFINITY; STAGES.len()];
    let mut middle = f64::INFINITY;
    let mut figures = json!({});
    for _ in 0..rounds {
        let mut times = [0.0; STAGES.len()];
        let mut at = Instant::now();
        let mut lap = |time: &mut f64| {
            let now = Instant::now();
            *time = (now - std::mem::replace(&mut at, now)).as_secs_f64();
        };
        let mut session = Session::new(&RuleOptions::default())?;
        lap(&mut times[0]);
        let graph = session.check("large.kina", &text, &CheckOptions::default())?;
        lap(&mut times[1]);
        let mut program = session.differentiate(&graph)?;
        lap(&mut times[2]);
        let report =
            saturate(&mut program, &session.rules, Level::O2, Budget::default()).map_err(|bag| session.refusal(bag))?;
        lap(&mut times[3]);
        let found = extract(&program).ok_or("nothing extracted")?;
        lap(&mut times[4]);
        for (best, time) in best.iter_mut().zip(times) {
            *best = best.min(time);
        }
        middle = middle.min(times[2..].iter().sum());
        figures = json!({
            "program": job.name,
            "operators": graph.iter().filter(|(_, n)| matches!(n.kind, NodeKind::Op { .. })).count(),
            "nodes": report.nodes,
            "classes": report.classes,
            "iterations": report.iterations,
            "searches": report.searches,
            "applications": report.applications.values().sum::<usize>(),
            "end": if report.stop == Stop::Saturated && found.complete { "complete" } else { "out of budget" },
            "cost": found.cost,
        });
    }
    for (stage, time) in STAGES.iter().zip(best) {
        figures[*stage] = json!(time);
    }
    figures["middle"] = json!(middle);
    figures["asked"] = json!(job.seconds);
    figures["asked_bytes"] = json!(job.bytes);
    figures["peak"] = json!(memory::status("VmHWM:"));
    Ok(figures)
}
