//! What is measured in a process of its own, so that nobody's peak of memory includes what the one before left. Such a
//! process is this program again with `--apart NAME`, and prints one JSON object.

use std::error::Error;
use std::process::Stdio;
use std::time::Instant;

use kina_ad::ir::NodeKind;
use kina_ad::{CheckOptions, Level, RuleOptions, Session, Tensor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::contest::Contestant;
use crate::generators;
use crate::job::{Job, nll};
use crate::jobs::{LARGE, TINY};
use crate::report::{Goal, Report, Section, Spread, Table, Unit, cells};
use crate::{machine, memory};

/// A program too large for anything but time and memory to be looked at.
struct Large {
    name: &'static str,
    title: &'static str,
    write: fn() -> String,
    /// At most so many rounds: each takes seconds.
    rounds: usize,
    seconds: (&'static str, f64),
    bytes: Option<(&'static str, f64)>,
}

const LARGE_PROGRAMS: [Large; 3] = [
    Large {
        name: "layers-12",
        title: "12-layer transformer with its loss",
        write: || generators::transformer(12),
        rounds: usize::MAX,
        seconds: ("25 ms", 0.025),
        bytes: None,
    },
    Large {
        name: "layers-200",
        title: "200-layer transformer with its loss",
        write: || generators::transformer(200),
        rounds: 5,
        seconds: ("0.7 s", 0.7),
        bytes: None,
    },
    Large {
        name: "chain",
        title: "chain of 100,000 operators with a shared weight",
        write: || generators::chain(100_000),
        rounds: 3,
        seconds: ("15 s", 15.0),
        bytes: Some(("1 GiB", (1u64 << 30) as f64)),
    },
];

/// Seconds of each stage, one per round.
#[derive(Default, Deserialize, Serialize)]
struct Stages {
    /// Operators of the forward graph, composites expanded.
    operators: usize,
    nodes: usize,
    check: Vec<f64>,
    differentiate: Vec<f64>,
    /// Saturation and extraction.
    optimise: Vec<f64>,
    peak: Option<u64>,
}

/// Bytes of one call.
#[derive(Deserialize, Serialize)]
struct Extra {
    level: String,
    temporaries: u64,
    /// At most resident during the call, beyond what was before.
    measured: Option<u64>,
}

const MEMORY: &str = "memory";

/// The part of a child: prints what `name` asks for.
///
/// # Errors
/// An unknown name, a failure of the library.
pub fn child(name: &str, rounds: usize) -> Result<(), Box<dyn Error>> {
    if name == MEMORY {
        println!("{}", json!(extra()?));
        return Ok(());
    }
    let large = LARGE_PROGRAMS.iter().find(|l| l.name == name).ok_or_else(|| format!("there is no job {name}"))?;
    println!("{}", json!(stages(&(large.write)(), rounds.min(large.rounds))?));
    Ok(())
}

fn ask<A: DeserializeOwned>(name: &str, rounds: usize) -> Result<A, Box<dyn Error>> {
    let output = machine::unbound(std::env::current_exe()?)
        .args(["--apart", name, "--rounds", &rounds.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("the process for {name} failed: {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn stages(source: &str, rounds: usize) -> Result<Stages, Box<dyn Error>> {
    let mut stages = Stages::default();
    let mut session = Session::new(&RuleOptions::default())?;
    for _ in 0..rounds {
        let start = Instant::now();
        let graph = session.check("large.kina", source, &CheckOptions::default())?;
        stages.check.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let mut program = session.differentiate(&graph)?;
        stages.differentiate.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let optimised = session.optimise(&mut program, Level::O2)?;
        stages.optimise.push(start.elapsed().as_secs_f64());
        stages.operators = graph.iter().filter(|(_, node)| matches!(node.kind, NodeKind::Op { .. })).count();
        stages.nodes = optimised.report.as_ref().map_or(0, |r| r.nodes);
    }
    stages.peak = memory::status("VmHWM:");
    Ok(stages)
}

/// What differentiating, optimising and extracting of large programs takes.
///
/// # Errors
/// A failure of the library.
pub fn large(rounds: usize, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let head = [
        "",
        "operators",
        "e-nodes",
        "differentiate",
        "optimise + extract",
        "all three",
        "quartiles",
        "least",
        "most",
        "peak memory",
    ];
    let mut table = Table::new(&head);
    let mut data = Vec::new();
    for large in &LARGE_PROGRAMS {
        eprintln!("bench: {}", large.title);
        let stages: Stages = ask(large.name, rounds)?;
        let whole: Vec<f64> = stages.differentiate.iter().zip(&stages.optimise).map(|(d, o)| d + o).collect();
        let whole = Spread::of(&whole);
        let median = |times: &[f64]| Unit::Seconds.show(Spread::of(times).median);
        let mut row = vec![large.title.to_owned(), stages.operators.to_string(), stages.nodes.to_string()];
        row.extend([median(&stages.differentiate), median(&stages.optimise)]);
        row.extend(cells(Unit::Seconds, &whole));
        row.push(stages.peak.map_or("?".to_owned(), |bytes| Unit::Bytes.show(bytes as f64)));
        table.rows.push(row);
        let what = "differentiate, optimise and extract";
        report.goals.push(Goal {
            job: format!("{}: {what}", large.title),
            unit: Unit::Seconds,
            asked: large.seconds,
            measured: Some(whole),
        });
        if let Some(asked) = large.bytes {
            report.goals.push(Goal {
                job: format!("{}: peak memory", large.title),
                unit: Unit::Bytes,
                asked,
                measured: stages.peak.map(|bytes| Spread::of(&[bytes as f64])),
            });
        }
        data.push(json!({"program": large.title, "stages": stages}));
    }
    report.sections.push(Section {
        title: "Large programs in the e-graph".to_owned(),
        text: "The forward graph is checked already; operators are those of the forward graph, composites expanded. Each program has \
            a process of its own, whose peak of memory is that of everything, from loading the rules on."
            .to_owned(),
        tables: vec![table],
        data: data.into(),
    });
    Ok(())
}

/// Memory of calls of the large NLL: at -O2, and at -O0 as the control, which has temporaries that cannot be overlooked. Another
/// program has run before, so that the threads are there.
fn extra() -> Result<Vec<Extra>, Box<dyn Error>> {
    Job::new(&nll(&[64, TINY[1], 512]))?.contestant()?.time(1)?;
    let mut job = Job::new(&nll(&LARGE))?;
    let mut outputs = job.outputs()?;
    let mut found = Vec::new();
    for level in [Level::O2, Level::O0] {
        let graph = job.session.check("bench.kina", &nll(&LARGE), &CheckOptions { cotangent_input: true })?;
        let mut program = job.session.differentiate(&graph)?;
        let code = job.session.compile(&job.session.optimise(&mut program, level)?)?;
        let inputs: Vec<&Tensor> = job.inputs.iter().map(|i| &i.tensor).collect();
        outputs.iter_mut().for_each(|t| t.as_bytes_mut().fill(0)); // makes them resident
        // Linux then counts the peak from here.
        std::fs::write("/proc/self/clear_refs", "5")?;
        let before = memory::status("VmRSS:");
        code.call_into(&inputs, &mut outputs)?;
        let measured = memory::status("VmHWM:").zip(before).map(|(peak, before)| peak.saturating_sub(before));
        found.push(Extra { level: format!("{level:?}"), temporaries: code.temporaries(), measured });
    }
    Ok(found)
}

/// What the NLL needs beyond its inputs and outputs.
///
/// # Errors
/// A failure of the library.
pub fn extra_memory(report: &mut Report) -> Result<(), Box<dyn Error>> {
    let found: Vec<Extra> = ask(MEMORY, 1)?;
    let rows: u64 = LARGE.iter().rev().skip(1).product();
    let logits = LARGE.iter().product::<u64>() * 4;
    let mut table = Table::new(&["", "planned temporaries", "measured"]);
    for extra in &found {
        let measured = extra.measured.map_or("?".to_owned(), |bytes| Unit::Bytes.show(bytes as f64));
        table.rows.push(vec![format!("-{}", extra.level), Unit::Bytes.show(extra.temporaries as f64), measured]);
    }
    if let Some(ours) = found.first() {
        let goal = |what: String, asked, measured: Option<f64>| Goal {
            job: format!("extra memory of NLL {LARGE:?}, {what}"),
            unit: Unit::Bytes,
            asked,
            measured: measured.map(|bytes| Spread::of(&[bytes])),
        };
        let per_row = ours.temporaries as f64 / rows as f64;
        report.goals.push(goal(format!("planned, per row of {rows}"), ("64 B: O(B*T)", 64.0), Some(per_row)));
        let asked = ("1 MiB: O(B*T) and pages of stacks", f64::from(1 << 20));
        report.goals.push(goal("measured".to_owned(), asked, ours.measured.map(|bytes| bytes as f64)));
    }
    report.sections.push(Section {
        title: format!("Extra memory of NLL, F32 {LARGE:?}"),
        text: format!(
            "In a process of its own: inputs and outputs are resident, threads have started, and Linux counts the peak anew. The \
            logits have {}, and so has their gradient. -O0, which fuses nothing, is there as the control of the measurement.",
            Unit::Bytes.show(logits as f64)
        ),
        tables: vec![table],
        data: json!(found),
    });
    Ok(())
}
