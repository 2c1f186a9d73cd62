//! The benches that are programs of their own, and what a test measures: run, and read.

use std::error::Error;

use serde_json::Value;

use crate::machine;
use crate::report::{Goal, Report, Section, Spread, Table, Unit};

/// Runs cargo in the repository: what it prints, and why it failed, if it did.
fn cargo(arguments: &[&str]) -> std::io::Result<(String, Option<String>)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = machine::unbound(cargo).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let failure = (!output.status.success()).then(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().rfind(|l| !l.trim().is_empty()).unwrap_or("no reason given");
        format!("`cargo {}` fails: {last}", arguments.join(" "))
    });
    Ok((said, failure))
}

fn bench(name: &str, rounds: usize) -> Result<Value, Box<dyn Error>> {
    let rounds = rounds.to_string();
    let (said, failure) =
        cargo(&["bench", "--quiet", "--locked", "--bench", name, "--", "--json", "--rounds", &rounds])?;
    match failure {
        Some(failure) => Err(failure.into()),
        None => Ok(serde_json::from_str(&said)?),
    }
}

/// The entries of a list in what a bench prints.
fn list<'v>(value: &'v Value, name: &str) -> Result<&'v [Value], Box<dyn Error>> {
    Ok(value[name].as_array().ok_or_else(|| format!("no list {name}"))?)
}

fn show(value: &Value, unit: Unit) -> String {
    value.as_f64().map_or("?".to_owned(), |v| unit.show(v))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What the stages before optimisation take, for programs of many sizes.
///
/// # Errors
/// A bench that fails or prints something else.
pub fn front(report: &mut Report) -> Result<(), Box<dyn Error>> {
    let data = bench("front", 2)?;
    let mut table = Table::new(&["", "operators", "parse + check", "differentiate", "peak memory"]);
    for entry in list(&data, "front")? {
        table.rows.push(vec![
            text(&entry["program"]),
            text(&entry["operators"]),
            show(&entry["parse_and_check_seconds"], Unit::Seconds),
            show(&entry["differentiate_seconds"], Unit::Seconds),
            show(&entry["peak_bytes"], Unit::Bytes),
        ]);
    }
    report.sections.push(Section {
        title: "Large programs in the front".to_owned(),
        text: "Best of 2; each program in a process of its own. More: `./x bench front`.".to_owned(),
        tables: vec![table],
        data,
    });
    Ok(())
}

/// What checking rules takes.
///
/// # Errors
/// A bench that fails or prints something else.
pub fn rules(report: &mut Report) -> Result<(), Box<dyn Error>> {
    let data = bench("rules", 3)?;
    let mut table = Table::new(&["", "median", "least", "most", "asked"]);
    for entry in list(&data, "rules_check")? {
        let mut row = vec![text(&entry["job"])];
        row.extend(["median_seconds", "least", "most"].map(|key| show(&entry[key], Unit::Seconds)));
        row.push(format!("<= {}", show(&entry["asked"], Unit::Seconds)));
        table.rows.push(row);
    }
    report.sections.push(Section {
        title: "Checking rules after an edit".to_owned(),
        text: "Whole processes of `kina-ad rules check`, 3 of each. More: `./x bench rules`.".to_owned(),
        tables: vec![table],
        data,
    });
    Ok(())
}

/// How far extractions are from the exact optimum, on graphs that are small enough to know it. The oracle is a test's,
/// which prints the worst ratio that it found: this line is all that the suite knows of it.
pub fn optimum(report: &mut Report) {
    const TEST: &str = "extraction_optimum";
    const LINE: &str = "extraction cost / exact optimum: worst ";
    let said = cargo(&["test", "--quiet", "--locked", "--no-default-features", "--lib", TEST, "--", "--nocapture"]);
    let worst = said.map_err(|e| e.to_string()).and_then(|(said, failure)| {
        // A ratio for which the test fails is a figure too.
        let line = said.lines().find_map(|l| l.split_once(LINE)).map(|(_, rest)| rest.to_owned());
        let worst = line.as_ref().and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok());
        let none = || failure.unwrap_or_else(|| format!("no test {TEST} prints \"{LINE}RATIO\""));
        line.zip(worst).ok_or_else(none)
    });
    if let Err(error) = &worst {
        report.missing.push(format!("extraction against the exact optimum. {error}."));
    }
    let graphs = worst.as_ref().map_or("the test's graphs", |(line, _)| line.split_once(" over ").map_or("?", |l| l.1));
    report.goals.push(Goal {
        job: format!("extraction cost / exact optimum, worst of {graphs}"),
        unit: Unit::Ratio,
        asked: ("1.005", 1.005),
        measured: worst.as_ref().ok().map(|(_, ratio)| Spread::of(&[*ratio])),
    });
}
