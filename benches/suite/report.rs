//! What was measured, as Markdown and as JSON. It knows no jobs and measures nothing.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::contest::{Times, quantile};

/// Everything that a run found.
#[derive(Default)]
pub struct Report {
    /// The machine, the peers' versions: names and values.
    pub about: Vec<(String, String)>,
    /// What could not be measured, and why.
    pub missing: Vec<String>,
    pub goals: Vec<Goal>,
    pub sections: Vec<Section>,
}

/// A figure that is asked for.
pub struct Goal {
    pub job: String,
    pub unit: Unit,
    /// As it is asked, and the most that it may be.
    pub asked: (&'static str, f64),
    /// `None` if it could not be measured.
    pub measured: Option<Spread>,
}

/// What a figure counts.
#[derive(Clone, Copy)]
pub enum Unit {
    Ratio,
    Seconds,
    Bytes,
}

/// What the rounds say about one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    /// Between these lies the middle half.
    pub quartiles: (f64, f64),
    pub least: f64,
    pub most: f64,
}

/// One part of the report.
pub struct Section {
    pub title: String,
    /// How it was measured, and what is to be known about it.
    pub text: String,
    pub tables: Vec<Table>,
    /// The same for programs.
    pub data: Value,
}

/// Cells as text. The first column is words, the others are figures.
pub struct Table {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Spread {
    pub fn of(values: &[f64]) -> Spread {
        let at = |part| quantile(values, part);
        Spread { median: at(0.5), quartiles: (at(0.25), at(0.75)), least: at(0.0), most: at(1.0) }
    }

    pub fn json(&self) -> Value {
        let (low, high) = self.quartiles;
        json!({"median": self.median, "quartiles": [low, high], "least": self.least, "most": self.most})
    }
}

impl Unit {
    /// A figure, to three digits or so.
    pub fn show(self, value: f64) -> String {
        let scaled = |scales: &[(f64, &str)]| {
            let fits = scales.iter().find(|(scale, _)| value.abs() >= *scale).or(scales.last());
            fits.map_or(String::new(), |(scale, name)| format!("{} {name}", digits(value / scale)))
        };
        match self {
            Unit::Ratio => digits(value),
            Unit::Seconds => scaled(&[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]),
            Unit::Bytes => {
                scaled(&[(f64::from(1 << 30), "GiB"), (f64::from(1 << 20), "MiB"), (1024.0, "KiB"), (1.0, "B")])
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Unit::Ratio => "ratio",
            Unit::Seconds => "seconds",
            Unit::Bytes => "bytes",
        }
    }
}

/// Three significant digits, without an exponent.
fn digits(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return value.to_string();
    }
    let before = value.abs().log10().floor() as i32 + 1;
    format!("{value:.*}", usize::try_from((3 - before).clamp(0, 5)).unwrap_or(0))
}

impl Goal {
    /// Is it reached? `None` if it was not measured.
    pub fn reached(&self) -> Option<bool> {
        self.measured.map(|m| m.median <= self.asked.1)
    }

    fn json(&self) -> Value {
        json!({"job": self.job, "unit": self.unit.name(), "asked": self.asked.1,
            "measured": self.measured.map(|m| m.json()), "reached": self.reached()})
    }
}

impl Table {
    pub fn new(head: &[&str]) -> Table {
        Table { head: head.iter().map(|h| (*h).to_owned()).collect(), rows: Vec::new() }
    }

    fn write(&self, out: &mut String) {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        *out += &line(&self.head);
        let rulers: Vec<String> =
            (0..self.head.len()).map(|i| if i == 0 { "---".to_owned() } else { "---:".to_owned() }).collect();
        *out += &line(&rulers);
        for row in &self.rows {
            *out += &line(row);
        }
        out.push('\n');
    }
}

/// Times of contestants, and the ratios of `ours` to each of them.
pub fn contest(title: &str, text: &str, times: &[Times], ours: &Times) -> Section {
    let mut table = Table::new(&["", "median", "quartiles", "least", "most", "kina-ad / it", "quartiles"]);
    let mut data = Vec::new();
    for one in times {
        let (time, ratio) = (Spread::of(&one.rounds), Spread::of(&ours.over(one)));
        let mut row = vec![one.name.clone()];
        row.extend(cells(Unit::Seconds, &time));
        match one.name == ours.name {
            true => row.extend(["1".to_owned(), String::new()]),
            false => row.extend([Unit::Ratio.show(ratio.median), range(Unit::Ratio, ratio.quartiles)]),
        }
        table.rows.push(row);
        data.push(
            json!({"name": one.name, "seconds": time.json(), "ours_over_it": ratio.json(), "rounds": one.rounds}),
        );
    }
    Section { title: title.to_owned(), text: text.to_owned(), tables: vec![table], data: data.into() }
}

/// Median, quartiles, least and most.
pub fn cells(unit: Unit, spread: &Spread) -> [String; 4] {
    [unit.show(spread.median), range(unit, spread.quartiles), unit.show(spread.least), unit.show(spread.most)]
}

fn range(unit: Unit, (low, high): (f64, f64)) -> String {
    format!("{} to {}", unit.show(low), unit.show(high))
}

const HEAD: &str = "# Benchmarks

Written by `./x bench`, all of it in one run on the machine below; do not edit.

";

const METHOD: &str = "## How it is measured

Contestants of a job take turns: each has one per round, and every round begins with another one. A turn is a call that is
not timed, which wakes threads and warms caches, and a measurement, which repeats the call until it takes 5 ms. A ratio is the median
over rounds of the ratio within one round, so a machine that slows down halfway favours nobody. Quartiles are those of the rounds.

All contestants get the same inputs, the cotangent among them, and compute value and gradient with respect to x. Before
anything is timed, their results are compared: elements differ by at most 1e-5, relative to the larger of 1 and the value.
All may use every core. Those of kina-ad and of the C kernel, which share one OpenMP runtime, are bound to cores
(`OMP_PROC_BIND`); PyTorch's are not, since that makes it slower. Threads that wait for work spin for a while, as is usual; after every turn all pause for 50 ms, so that nobody
still spins when the next one is timed.

Frameworks are used as their documentation shows: PyTorch by `torch.autograd.grad` with the cotangent as `grad_outputs`, JAX by `jax.jit`
of a function around `jax.vjp` with the cotangent as an argument, and `block_until_ready`. Each is a process of its own, which takes
the time around the call itself. They allocate their results in every call, as they always do; kina-ad and the C kernel
write into buffers of the caller. JAX's targets are I32, its own integers.

";

impl Report {
    pub fn markdown(&self) -> String {
        let mut out = HEAD.to_owned();
        for (name, value) in &self.about {
            let _ = writeln!(out, "- {name}: {value}");
        }
        out.push('\n');
        if !self.goals.is_empty() {
            out += "## What is asked, and what is reached\n\n";
            let mut goals = Table::new(&["", "asked", "measured", "quartiles", "reached"]);
            goals.rows = self.goals.iter().map(Goal::row).collect();
            goals.write(&mut out);
        }
        for missing in &self.missing {
            let _ = writeln!(out, "Not measured: {missing}\n");
        }
        out += METHOD;
        for section in &self.sections {
            let _ = writeln!(out, "## {}\n", section.title);
            if !section.text.is_empty() {
                let _ = writeln!(out, "{}\n", section.text);
            }
            for table in &section.tables {
                table.write(&mut out);
            }
        }
        out.trim_end().to_owned() + "\n"
    }

    pub fn json(&self) -> Value {
        let about: serde_json::Map<_, _> = self.about.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
        let sections: Vec<_> = self.sections.iter().map(|s| json!({"title": s.title, "data": s.data})).collect();
        json!({"about": about, "missing": self.missing, "goals": self.goals.iter().map(Goal::json).collect::<Vec<_>>(),
            "sections": sections})
    }
}

impl Goal {
    fn row(&self) -> Vec<String> {
        let asked = format!("<= {}", self.asked.0);
        let reached = match self.reached() {
            None => "not measured",
            Some(true) => "yes",
            Some(false) => "**no**",
        };
        let (median, quartiles) = self.measured.map_or_else(Default::default, |m| {
            let single = m.least == m.most;
            (self.unit.show(m.median), if single { String::new() } else { range(self.unit, m.quartiles) })
        });
        vec![self.job.clone(), asked, median, quartiles, reached.to_owned()]
    }
}
