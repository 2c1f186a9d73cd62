//! `kina-ad rules check` and `kina-ad rules coverage`

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::output::{Messages, say, write_data};
use super::{Failure, RuleArgs};
use crate::Session;
use crate::rules::RuleOptions;
use crate::verify::cache::Cache;
use crate::verify::{Options, Report, coverage as coverage_of, document};

/// How often watched files are looked at. Polling sees every way in which editors replace a file.
const POLL: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Rule files, or directories of .rules files, whose rules are checked. Without any, all loaded rules are.
    #[arg(value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// Check again whenever a file changes, until interrupted.
    #[arg(long)]
    watch: bool,
    /// Forget the verdicts of earlier runs, and keep none of this one.
    #[arg(long)]
    no_cache: bool,
    /// Threads that share the rules; as many as there are processors by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    #[command(flatten)]
    pub rules: RuleArgs,
}

pub fn check(args: &CheckArgs, messages: &mut Messages) -> Result<(), Failure> {
    if !args.watch {
        return once(args, messages);
    }
    loop {
        let seen = stamps(args);
        // What is wrong now may be mended by the next change.
        let mut this_time = Messages::new(args.rules.json);
        match once(args, &mut this_time) {
            Err(Failure::Io(error)) => return Err(Failure::Io(error)),
            result => drop(this_time.finish(result)),
        }
        say("watching for changes; interrupt to end\n");
        while stamps(args) == seen {
            std::thread::sleep(POLL);
        }
    }
}

/// When the watched files were last written, and how long they are.
fn stamps(args: &CheckArgs) -> Vec<(PathBuf, Option<(SystemTime, u64)>)> {
    let mut files: Vec<PathBuf> = Vec::new();
    for path in args.files.iter().chain(&args.rules.loaded.rules) {
        match std::fs::read_dir(path) {
            Ok(entries) => {
                files.extend(
                    entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "rules")),
                );
            }
            Err(_) => files.push(path.clone()),
        }
    }
    files.sort();
    let stamp = |path: &Path| {
        let data = std::fs::metadata(path).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    files.into_iter().map(|path| (path.clone(), stamp(&path))).collect()
}

fn once(args: &CheckArgs, messages: &mut Messages) -> Result<(), Failure> {
    let options = RuleOptions { candidates: args.files.clone(), ..args.rules.options() };
    let session = Session::new(&options)?;
    messages.warn(&session);
    let report = run(&session, args.rules.seed, args.threads, args.no_cache);
    if args.rules.json {
        write_data(format!("{:#}\n", as_json(&report)).as_bytes(), None)?;
    } else {
        let mut out = String::new();
        report.verdicts.iter().for_each(|v| out.push_str(&format!("{}\n", v.line())));
        out.push_str(&report.summary());
        write_data(out.as_bytes(), None)?;
    }
    let found = report.diagnostics();
    if report.passed() {
        if !found.is_empty() {
            messages.remark(session.refusal(found));
        }
        return Ok(());
    }
    Err(session.refusal(found).into())
}

/// Checks with progress shown on a terminal.
fn run(session: &Session, seed: u64, threads: Option<u16>, no_cache: bool) -> Report {
    let mut cache = match cache_file() {
        Some(file) if !no_cache => Cache::at(&file),
        _ => Cache::none(),
    };
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new(1) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("verifying {bar:30} {pos}/{len}") {
        bar.set_style(style);
    }
    let progress = |done: usize, of: usize| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    };
    let threads = threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let options = Options { seed, threads, progress: &progress };
    let report = session.verify(&options, &mut cache);
    bar.finish_and_clear();
    cache.save();
    report
}

/// Where verdicts are kept: in the user's cache directory.
fn cache_file() -> Option<PathBuf> {
    let directory = match std::env::var_os("XDG_CACHE_HOME") {
        Some(directory) if !directory.is_empty() => PathBuf::from(directory),
        _ => PathBuf::from(std::env::var_os("HOME")?).join(".cache"),
    };
    Some(directory.join("kina-ad").join("verdicts.json"))
}

fn as_json(report: &Report) -> Value {
    let rules: Vec<Value> = report
        .verdicts
        .iter()
        .map(|v| {
            let f = &v.findings;
            json!({
                "kind": v.kind.name(), "name": v.subject(), "location": &*v.rule.location,
                "verdict": if v.passed() { "verified" } else { "refused" },
                "code": f.refusal.as_ref().map(|d| d.code),
                "points": f.points, "worst": f.worst, "kinks": f.kinks, "examples": f.examples,
                "second_order": { "points": f.second_points, "worst": f.second, "not_compared": f.not_second },
                "not_a_derivative": f.policy,
            })
        })
        .collect();
    json!({
        "version": 1, "passed": report.passed(), "rules": rules,
        "together": { "programs": report.programs, "nodes": report.nodes, "passed": !report.together.has_errors() },
    })
}

/// How coverage is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CoverageFormat {
    Text,
    Markdown,
}

pub fn coverage(format: CoverageFormat, rules: &RuleArgs, messages: &mut Messages) -> Result<(), Failure> {
    let session = rules.session()?;
    messages.warn(&session);
    let report = run(&session, rules.seed, None, false);
    if format == CoverageFormat::Markdown && !rules.json {
        let text = document::operators(&session.rules, &session.sources, &report);
        return write_data(text.as_bytes(), None);
    }
    let rows = coverage_of::rows(&session.rules, &report);
    if rules.json {
        let list: Vec<Value> = rows
            .iter()
            .map(|r| {
                json!({
                    "operator": r.operator, "vjp": r.rule.as_ref().map(|rule| &*rule.location), "orders": r.orders,
                    "verdict": r.verdict, "worst": r.worst,
                })
            })
            .collect();
        let text = format!("{:#}\n", json!({ "version": 1, "operators": list }));
        return write_data(text.as_bytes(), None);
    }
    let mut out = String::new();
    rows.iter().for_each(|r| out.push_str(&r.line()));
    write_data(out.as_bytes(), None)?;
    Ok(())
}
