//! `./x bench rules`: what an edit of a rule file costs, as whole processes: one edited rule, all rules, and all rules with the verdicts
//! known.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Parser;
use serde_json::json;

#[derive(Parser)]
#[command(about = "Times `kina-ad rules check`")]
struct Args {
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// What cargo passes.
    #[arg(long, hide = true)]
    bench: bool,
}

const EDITED: &str = "/// D.\noverride vjp tanh {\n  y = tanh(x)\n  -----------\n  g_x = g_y * (1.0 - y * y)\n}\n";

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let place = tempfile::tempdir()?;
    std::fs::write(place.path().join("edited.rules"), EDITED)?;
    let jobs = [
        ("one edited rule, nothing known", &["edited.rules", "--no-cache"][..], 0.2),
        ("one edited rule, the rest known", &["edited.rules"][..], 0.2),
        ("all rules, nothing known", &["--no-cache"][..], 10.0),
        ("all rules, all known", &[][..], 0.2),
    ];
    let mut figures = Vec::new();
    for (name, arguments, limit) in jobs {
        let mut times = Vec::new();
        for _ in 0..args.rounds.max(1) {
            times.push(time(place.path(), arguments)?);
        }
        times.sort_by(f64::total_cmp);
        figures.push((name, times[times.len() / 2], times[0], times[times.len() - 1], limit));
    }
    if args.json {
        let list: Vec<_> = figures
            .iter()
            .map(|(name, median, least, most, limit)| {
                json!({ "job": name, "median_seconds": median, "least": least, "most": most, "asked": limit })
            })
            .collect();
        println!("{:#}", json!({ "rounds": args.rounds, "rules_check": list }));
        return Ok(());
    }
    println!("kina-ad rules check, whole processes, median of {} (least to most)", args.rounds);
    for (name, median, least, most, limit) in figures {
        println!("{name:<34} {median:>7.3} s ({least:.3} to {most:.3}), asked for: below {limit} s");
    }
    Ok(())
}

fn time(place: &Path, arguments: &[&str]) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_kina-ad"))
        .args(["rules", "check"])
        .args(arguments)
        .current_dir(place)
        .env("XDG_CACHE_HOME", place)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if !status.success() {
        return Err("a rule is refused".into());
    }
    Ok(start.elapsed().as_secs_f64())
}
