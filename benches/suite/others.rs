//! The benches that are programs of their own, and what a test measures: run, and read.

use std::error::Error;
use std::process::Command;

use serde_json::Value;

use crate::report::{Goal, Report, Section, Spread, Table, Unit};

/// Runs cargo in the repository; what it prints.
fn cargo(arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().rfind(|l| !l.trim().is_empty()).unwrap_or("no reason given");
        return Err(format!("cargo {} fails: {last}", arguments.join(" ")).into());
    }
    Ok(said)
}

fn bench(name: &str, rounds: usize) -> Result<Value, Box<dyn Error>> {
    let rounds = rounds.to_string();
    let said = cargo(&["bench", "--quiet", "--locked", "--bench", name, "--", "--json", "--rounds", &rounds])?;
    Ok(serde_json::from_str(&said)?)
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

/// How far extractions are from the exact optimum, on graphs that are small enough to know it.
///
/// The oracle is a test's: the test `extraction_optimum` prints a line of these words and the worst ratio that it found.
/// This is the only thing that the suite knows of it.
pub fn optimum(report: &mut Report) {
    const TEST: &str = "extraction_optimum";
    const LINE: &str = "extraction cost / exact optimum: worst";
    let said = cargo(&["test", "--quiet", "--locked", "--no-default-features", "--lib", TEST, "--", "--nocapture"]);
    let ratio = said.map_err(|e| e.to_string()).and_then(|said| {
        let found = said.lines().find_map(|l| l.split_once(LINE)?.1.split_whitespace().next()?.parse::<f64>().ok());
        found.ok_or_else(|| format!("no test {TEST} prints a line \"{LINE} RATIO\""))
    });
    if let Err(error) = &ratio {
        report.missing.push(format!("extraction against the exact optimum. {error}."));
    }
    report.goals.push(Goal {
        job: "extraction cost / exact optimum, worst of the test's graphs".to_owned(),
        unit: Unit::Ratio,
        asked: ("1.005", 1.005),
        measured: ratio.ok().map(|r| Spread::of(&[r])),
    });
}
