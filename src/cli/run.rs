//! `kina-ad run`

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::output::{Messages, write_data};
use super::{Failure, GivenArgs, ProgramArgs};
use crate::diagnostics::Diagnostic;
use crate::exec::arrays::ArchiveFormat;
use crate::exec::inputs::{Input, InputSource, gather};
use crate::exec::{Tensor, summary};
use crate::interp::{GradReport, Verdict};
use crate::review::measure::lines;
use crate::run::{Engine, RunError, check_program, run as run_program};

/// Run a program and print (or write) its results.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: kina-ad run examples/storylm0_nll.kina --input logits=logits.npy --output results.npz --check"
)]
pub struct RunArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    #[command(flatten)]
    given: GivenArgs,
    /// Write the results to an archive, in the format that its name ends with.
    #[arg(long, value_name = "FILE.npz|FILE.safetensors", value_parser = archive)]
    output: Option<(PathBuf, ArchiveFormat)>,
    /// Compare every gradient with finite differences of the f64 interpreter; exit 1 if one fails.
    #[arg(long)]
    check: bool,
    /// Use the reference interpreter instead of compiled code.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "typed")]
    interpret: Option<Interpret>,
    /// Threads that share the rows of large tensors; as many as there are processors by default. Results do not depend on
    /// it.
    #[arg(long, value_name = "N", value_parser = threads, conflicts_with = "interpret")]
    threads: Option<NonZero<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Interpret {
    /// Every float of the precision of its dtype.
    Typed,
    /// Every float in f64.
    Double,
}

fn threads(text: &str) -> Result<NonZero<usize>, String> {
    const MOST: usize = 256;
    match text.parse() {
        Ok(n) if n <= MOST => NonZero::new(n),
        _ => None,
    }
    .ok_or_else(|| format!("expected a number from 1 to {MOST}"))
}

fn archive(text: &str) -> Result<(PathBuf, ArchiveFormat), String> {
    let path = PathBuf::from(text);
    match ArchiveFormat::of(&path) {
        Some(format) => Ok((path, format)),
        None => {
            let known = ArchiveFormat::ALL.map(|format| format!(".{}", format.extension()));
            Err(format!("the name must end with {}", known.join(" or ")))
        }
    }
}

pub fn run(args: &RunArgs, messages: &mut Messages) -> Result<(), Failure> {
    let (session, graph) = args.program.load(messages)?;
    let mut program = session.differentiate(&graph)?;
    let seed = args.program.rules.seed;
    let given = args.given.read(&program.tape)?;
    let inputs = gather(&program.tape, given, seed).map_err(|e| Failure::from(e.diagnostic()))?;
    let tensors: Vec<&Tensor> = inputs.iter().map(|i| &i.tensor).collect();
    let optimised = session.optimise(&mut program, args.program.level())?;
    let engine = match args.interpret {
        None => Engine::Compiled { threads: args.threads },
        Some(Interpret::Typed) => Engine::Interpreted(crate::ir::Precision::Typed),
        Some(Interpret::Double) => Engine::Interpreted(crate::ir::Precision::Double),
    };
    let results = run_program(&optimised.graph, &session.rules.registry, args.program.level(), engine, &tensors)
        .map_err(failure)?;
    let report = match args.check {
        true => Some(check_program(&program, &session.rules.registry, &tensors, seed).map_err(failure)?),
        false => None,
    };
    if let Some((path, format)) = &args.output {
        format
            .write(path, results.iter().map(|(name, tensor)| (&**name, tensor)))
            .map_err(|e| Failure::from(e.diagnostic()))?;
    }
    let text = if args.program.rules.json {
        format!("{:#}\n", as_json(&inputs, &results, report.as_ref(), &session.rules.hash()))
    } else {
        as_text(&inputs, &results, report.as_ref(), seed)
    };
    write_data(text.as_bytes(), None)?;
    match report {
        Some(report) if !report.passed() => {
            let failed = report.gradients.iter().filter(|g| g.verdict != Verdict::Passed);
            Err(Failure::CheckFailed(failed.map(|g| format!("`g_{}`", g.name)).collect()))
        }
        _ => Ok(()),
    }
}

pub(super) fn failure(error: RunError) -> Failure {
    match error {
        RunError::Trap(message) => Failure::Trap(message),
        error => Diagnostic::error(error.code(), error.to_string()).help(error.help()).into(),
    }
}

fn as_text(
    inputs: &[Input],
    results: &[(std::sync::Arc<str>, Tensor)],
    report: Option<&GradReport>,
    seed: u64,
) -> String {
    let mut out = String::from("inputs\n");
    for input in inputs {
        out.push_str("  ");
        out.push_str(&summary::input_line(input, seed));
    }
    out.push_str("results\n");
    for (name, tensor) in results {
        out.push_str("  ");
        out.push_str(&summary::result_line(name, tensor));
    }
    if let Some(report) = report {
        out.push_str("gradient check\n");
        for line in lines(report) {
            out.push_str("  ");
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}

fn as_json(
    inputs: &[Input],
    results: &[(std::sync::Arc<str>, Tensor)],
    report: Option<&GradReport>,
    rules: &str,
) -> Value {
    let inputs: Vec<Value> = inputs
        .iter()
        .map(|i| {
            let source = if i.source == InputSource::Given { "given" } else { "generated" };
            json!({ "name": i.name, "type": i.ty.to_string(), "source": source })
        })
        .collect();
    let results: Vec<Value> = results
        .iter()
        .map(|(name, t)| {
            json!({ "name": &**name, "dtype": t.dtype().name(), "shape": t.shape().to_vec(), "values": summary::values(t, 64) })
        })
        .collect();
    let check = report.map(|r| json!({ "passed": r.passed(), "gradients": lines(r) }));
    json!({ "version": 1, "rules": rules, "inputs": inputs, "results": results, "check": check })
}
