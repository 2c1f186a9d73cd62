//! `./x bench front`: what the front takes for large programs. Parsing, checking and differentiating must stay in proportion to
//! the program, in time and in memory.

#[path = "../common/generators.rs"]
mod generators;
#[path = "../common/memory.rs"]
mod memory;

use std::error::Error;
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Parser;
use kina_ad::{CheckOptions, RuleOptions, Session};
use serde_json::{Value, json};

#[derive(Parser)]
#[command(about = "Times parsing, checking and differentiating of large programs")]
struct Args {
    /// Operators of the largest program; the others have a tenth and a hundredth.
    #[arg(long, default_value_t = 100_000)]
    operators: usize,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Measure one program of this family and print its figures as JSON.
    #[arg(long, hide = true)]
    only: Option<usize>,
    /// What cargo passes.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A way to write a program of any number of operators.
struct Family {
    name: &'static str,
    write: fn(usize) -> String,
}

const FAMILIES: [Family; 3] = [
    Family { name: "chain with a shared weight", write: generators::chain },
    Family {
        name: "transformer with its loss",
        write: |operators| generators::transformer((operators / LAYER).max(1)),
    },
    Family { name: "masked chain", write: masked },
];

/// Operators of a transformer's layer, about.
const LAYER: usize = 100;

/// Measured for one program.
struct Figures {
    family: &'static str,
    operators: usize,
    values: u64,
    check: f64,
    differentiate: f64,
    peak: Option<u64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    if args.operators < 100 || args.rounds == 0 {
        return Err("--operators must be at least 100, --rounds at least 1".into());
    }
    if let Some(family) = args.only.and_then(|i| FAMILIES.get(i)) {
        println!("{}", measure(family, args.operators, args.rounds)?);
        return Ok(());
    }
    let mut figures = Vec::new();
    for (i, family) in FAMILIES.iter().enumerate() {
        for operators in [args.operators / 100, args.operators / 10, args.operators] {
            figures.push(measure_apart(i, family, operators, args.rounds)?);
        }
    }
    if args.json {
        let list: Vec<_> = figures
            .iter()
            .map(|f| {
                json!({ "program": f.family, "operators": f.operators, "values": f.values,
                    "parse_and_check_seconds": f.check, "differentiate_seconds": f.differentiate, "peak_bytes": f.peak })
            })
            .collect();
        println!("{:#}", json!({ "rounds": args.rounds, "front": list }));
        return Ok(());
    }
    println!("Large programs, best of {} rounds; `values` counts the backward graph too", args.rounds);
    println!(
        "{:<28} {:>9} {:>9} {:>14} {:>14} {:>12} {:>12}",
        "", "operators", "values", "parse+check", "differentiate", "us per op", "peak memory"
    );
    for f in &figures {
        println!(
            "{:<28} {:>9} {:>9} {:>11.1} ms {:>11.1} ms {:>12.1} {:>12}",
            f.family,
            f.operators,
            f.values,
            f.check * 1e3,
            f.differentiate * 1e3,
            (f.check + f.differentiate) * 1e6 / f.operators as f64,
            f.peak.map_or("?".to_owned(), |bytes| format!("{} MB", bytes >> 20)),
        );
    }
    Ok(())
}

/// In a process of its own, so that nobody's peak includes what the one before left.
fn measure_apart(index: usize, family: &Family, operators: usize, rounds: usize) -> Result<Figures, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--only", &index.to_string(), "--operators", &operators.to_string(), "--rounds", &rounds.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    let figures: Value = serde_json::from_slice(&output.stdout)?;
    Ok(Figures {
        family: family.name,
        operators,
        values: figures["values"].as_u64().ok_or("no count of values")?,
        check: figures["check"].as_f64().ok_or("no time")?,
        differentiate: figures["differentiate"].as_f64().ok_or("no time")?,
        peak: figures["peak"].as_u64(),
    })
}

fn measure(family: &Family, operators: usize, rounds: usize) -> Result<Value, Box<dyn Error>> {
    let text = (family.write)(operators);
    let mut best = (f64::INFINITY, f64::INFINITY);
    let mut values = 0;
    for _ in 0..rounds {
        let mut session = Session::new(&RuleOptions::default())?;
        let start = Instant::now();
        let graph = session.check("large.kina", &text, &CheckOptions::default())?;
        let middle = Instant::now();
        let program = session.differentiate(&graph)?;
        best.1 = best.1.min(middle.elapsed().as_secs_f64());
        best.0 = best.0.min((middle - start).as_secs_f64());
        values = program.tape.len();
    }
    Ok(json!({ "values": values, "check": best.0, "differentiate": best.1, "peak": memory::status("VmHWM:") }))
}

/// Every step is a masked arm within the one before.
fn masked(operators: usize) -> String {
    generators::steps(operators / 3, |i| format!("select(v{i} > 0.0, v{i}.log(), w)"))
}
