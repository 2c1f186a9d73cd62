//! `./x bench`: everything that is asked of speed and memory, measured in one run and written to docs/benchmarks.md.

mod answers;
mod apart;
mod contests;
mod environment;
mod jobs;
mod machine;
mod others;
mod peers;
mod report;

#[path = "../common/contest.rs"]
mod contest;
#[path = "../common/generators.rs"]
mod generators;
#[path = "../common/job.rs"]
mod job;
#[path = "../common/memory.rs"]
mod memory;
#[path = "../common/reference.rs"]
mod reference;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Parser, ValueEnum};
use contests::Peers;
use report::Report;

#[derive(Parser)]
#[command(
    name = "./x bench",
    about = "Measures everything in one run and writes docs/benchmarks.md",
    after_help = "./x bench pipeline, ./x bench front and ./x bench rules measure one thing at any size; each has a --help."
)]
struct Args {
    /// Times that contestants take turns.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Measure these parts only. The report then goes to standard output, and docs/benchmarks.md stays.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
    /// Leave PyTorch and JAX out, and make no virtual environment. As --only in what becomes of the report.
    #[arg(long)]
    no_peers: bool,
    /// Write all figures here too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure this in this process.
    #[arg(long, hide = true)]
    apart: Option<String>,
    /// What cargo passes.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Value and gradient of NLL in three sizes.
    Nll,
    /// What a call costs.
    Tiny,
    /// Softmax, layer norm and RMS norm.
    Rows,
    /// What NLL needs beyond its inputs and outputs.
    Memory,
    /// Source to callable code.
    Compile,
    /// Differentiating, optimising and extracting of large programs.
    Egraph,
    /// Questions on the command line.
    Answers,
    /// Extraction against the exact optimum.
    Optimum,
    /// Parsing, checking and differentiating of large programs.
    Front,
    /// Checking rules.
    Rules,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let rounds = usize::from(args.rounds);
    if let Some(name) = &args.apart {
        return apart::child(name, rounds);
    }
    let start = Instant::now();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut report = Report { about: machine::describe(), ..Report::default() };
    measure(&args, rounds, temporary, &mut report)?;
    report.about.push(("load average after".to_owned(), machine::load()));
    report.about.push(("the run".to_owned(), format!("{rounds} rounds, {:.0} s", start.elapsed().as_secs_f64())));
    if let Some(file) = &args.json {
        std::fs::write(file, format!("{:#}\n", report.json()))?;
    }
    if args.only.is_empty() && !args.no_peers {
        let file = root.join("docs/benchmarks.md");
        std::fs::write(&file, report.markdown())?;
        eprintln!("bench: see {}", file.display());
    } else {
        print!("{}", report.markdown());
    }
    Ok(())
}

fn measure(args: &Args, rounds: usize, temporary: &Path, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);
    let folder = tempfile::tempdir_in(temporary)?;
    let compete = [Part::Nll, Part::Tiny, Part::Rows, Part::Compile].into_iter().any(&wanted);
    let target = temporary.parent().unwrap_or(temporary);
    let mut peers = if compete && !args.no_peers { Peers::start(target, report) } else { Peers::none() };
    for timed in jobs::timed() {
        if wanted(timed.group) {
            eprintln!("bench: {}", timed.title);
            contests::run(&timed, &mut peers, folder.path(), rounds, report)?;
        }
    }
    if wanted(Part::Compile) {
        eprintln!("bench: source to callable code");
        contests::compilation(&mut peers, folder.path(), rounds, report)?;
    }
    drop(peers);
    if wanted(Part::Memory) {
        eprintln!("bench: extra memory");
        apart::extra_memory(report)?;
    }
    if wanted(Part::Egraph) {
        apart::large(rounds, report)?;
    }
    if wanted(Part::Answers) {
        eprintln!("bench: questions on the command line");
        answers::answers(rounds, folder.path(), report)?;
    }
    if wanted(Part::Optimum) {
        eprintln!("bench: extraction against the exact optimum");
        others::optimum(report);
    }
    if wanted(Part::Front) {
        eprintln!("bench: large programs in the front");
        others::front(report)?;
    }
    if wanted(Part::Rules) {
        eprintln!("bench: checking rules");
        others::rules(report)?;
    }
    Ok(())
}
