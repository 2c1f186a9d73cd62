//! Differences as text for people and as JSON.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::gate::{Entry, Status};
use super::meaning::{Changed, Difference, Interface};
use super::measure::{Measure, Verdict};
use super::record::{Maker, Record};
use super::snapshot::Snapshot;

/// How many values and lines are shown unless all are asked for.
pub const MOST_SHOWN: usize = 20;

/// Before what is told and no difference.
const NO_DIFFERENCE: &str = "no difference: ";

/// `1 value`, `2 values`
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Two graphs and what differs between them.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    pub left: &'a Record,
    pub right: &'a Record,
    pub difference: &'a Difference,
}

/// Shows the first of a list, and says how many are not shown.
pub(super) fn limited<T>(
    out: &mut String,
    list: impl ExactSizeIterator<Item = T>,
    all: bool,
    mut show: impl FnMut(&mut String, T),
) {
    let count = list.len();
    let most = if all { count } else { MOST_SHOWN };
    list.take(most).for_each(|item| show(out, item));
    if count > most {
        let _ = writeln!(out, "  .. and {} more, which `--all` shows", count - most);
    }
}

impl Pair<'_> {
    /// `-` stands before what only the first graph has, `+` before what only the second has, `~` before a name that both have.
    pub fn text(&self, all: bool) -> String {
        let difference = self.difference;
        let mut out = String::new();
        if difference.is_none() {
            out.push_str("graph: no difference\n");
        } else {
            let counts = [
                (difference.removed.len(), "only in -"),
                (difference.added.len(), "only in +"),
                (difference.changed.len(), "of another form"),
                (difference.followed, "that only read those"),
            ];
            let counts: Vec<String> =
                counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
            let counts = if counts.is_empty() { "no difference".to_owned() } else { counts.join(", ") };
            let _ = writeln!(out, "values: {counts}");
        }
        limited(&mut out, difference.interface.iter(), all, |out, part| {
            let _ = match part {
                Interface::Removed { what, text } => writeln!(out, "  - {what} {text}"),
                Interface::Added { what, text } => writeln!(out, "  + {what} {text}"),
                Interface::Retyped { what, name, left, right } => {
                    writeln!(out, "  ~ {what} {name} : {left} -> {right}")
                }
                Interface::Rebound { name, left, right } => writeln!(out, "  ~ result {name} = {left} -> {right}"),
            };
        });
        limited(&mut out, difference.changed.iter(), all, |out, changed| {
            let name = &self.right.values[changed.right].name;
            let was = &self.left.values[changed.left].name;
            let was = if was == name { String::new() } else { format!(", in - {was}") };
            let _ = writeln!(out, "  ~ {name}{was}");
            for (sign, record, index) in [("-", self.left, changed.left), ("+", self.right, changed.right)] {
                let _ = writeln!(out, "    {sign} {} : {}", record.call(index), record.values[index].ty);
                made(out, record, index, "        ");
            }
        });
        for (sign, record, list) in [("-", self.left, &difference.removed), ("+", self.right, &difference.added)] {
            limited(&mut out, list.iter(), all, |out, index| {
                let value = &record.values[*index];
                let _ = writeln!(out, "  {sign} {} = {} : {}", value.name, record.call(*index), value.ty);
                made(out, record, *index, "      ");
            });
        }
        for (n, what) in [
            (difference.reordered, "with operands in another order, which the rules say does not matter"),
            (difference.remade, "made by another rule"),
            (difference.moved, "made by a rule that stands elsewhere now"),
        ] {
            if n > 0 {
                let _ = writeln!(out, "  {NO_DIFFERENCE}{} {what}", count(n, "value"));
            }
        }
        out
    }

    pub fn json(&self) -> Json {
        let difference = self.difference;
        let values = |record: &Record, list: &[usize]| list.iter().map(|i| value(record, *i)).collect::<Vec<_>>();
        let interface = |part: &Interface| match part {
            Interface::Removed { what, text } => json!({ "change": "removed", "what": what, "text": text }),
            Interface::Added { what, text } => json!({ "change": "added", "what": what, "text": text }),
            Interface::Retyped { what, name, left, right } => {
                json!({ "change": "type", "what": what, "name": name, "left": left, "right": right })
            }
            Interface::Rebound { name, left, right } => {
                json!({ "change": "value", "what": "result", "name": name, "left": left, "right": right })
            }
        };
        let changed = |c: &Changed| json!({ "left": value(self.left, c.left), "right": value(self.right, c.right) });
        json!({
            "same": difference.is_none(),
            "removed": values(self.left, &difference.removed),
            "added": values(self.right, &difference.added),
            "changed": difference.changed.iter().map(changed).collect::<Vec<_>>(),
            "followed": difference.followed,
            "interface": difference.interface.iter().map(interface).collect::<Vec<_>>(),
            "reordered": difference.reordered, "remade": difference.remade, "moved": difference.moved,
        })
    }
}

fn made(out: &mut String, record: &Record, index: usize, indent: &str) {
    if let Some(maker) = &record.values[index].maker {
        let _ = writeln!(out, "{indent}// {maker}");
    }
}

fn value(record: &Record, index: usize) -> Json {
    let found = &record.values[index];
    let mut value = json!({ "name": found.name, "call": record.call(index), "type": found.ty });
    match &found.maker {
        Some(Maker::Rule { location, name, serves }) => {
            value["rule"] = json!({ "name": name, "location": location });
            value["serves"] = serves.split(", ").collect();
        }
        Some(maker) => value["origin"] = json!(maker.to_string()),
        None => {}
    }
    value
}

/// `cost   282360 -> 290000 (+2.7%)`
pub fn measures(left: &Measure, right: &Measure) -> String {
    let mut out = String::new();
    for ((name, a), (_, b)) in left.rows().into_iter().zip(right.rows()) {
        let shown = |value: Option<u64>| value.map_or_else(|| "none".to_owned(), |v| v.to_string());
        let _ = match (a, b) {
            (None, None) => continue,
            (a, b) if a == b => writeln!(out, "{name:6} {}", shown(a)),
            (Some(a @ 1..), Some(b)) => {
                let percent = (b as f64 - a as f64) / a as f64 * 100.0;
                writeln!(out, "{name:6} {a} -> {b} ({percent:+.1}%)")
            }
            (a, b) => writeln!(out, "{name:6} {} -> {}", shown(a), shown(b)),
        };
    }
    out
}

/// Two verdicts; each section once where they are the same.
pub fn verdicts(left: &Verdict, right: &Verdict) -> String {
    let mut out = String::new();
    for ((title, lefts), (_, rights)) in left.sections().into_iter().zip(right.sections()) {
        let _ = writeln!(out, "{title}");
        let signs: [(&str, &[String]); 2] =
            if lefts == rights { [("  ", lefts), ("", &[])] } else { [("- ", lefts), ("+ ", rights)] };
        for (sign, lines) in signs {
            for line in lines {
                let _ = writeln!(out, "{sign}{line}");
            }
        }
    }
    out
}

pub fn verdict_json(verdict: &Verdict) -> Json {
    let outcomes = verdict.outcomes().into_iter();
    let outcomes =
        outcomes.map(|(check, name, outcome)| json!({ "check": check, "name": name, "outcome": outcome.word() }));
    let outcomes: Vec<Json> = outcomes.collect();
    json!({
        "passed": verdict.passed(), "gradients": verdict.gradients, "rewriting": verdict.rewriting, "outcomes": outcomes,
    })
}

pub fn measure_json(measure: &Measure) -> Json {
    json!({ "cost": measure.cost, "bytes": measure.bytes, "peak": measure.peak })
}

/// What became of one program, with all that differs.
pub fn entry(entry: &Entry, all: bool) -> String {
    let mut out = format!("{:10} {}\n", entry.status.word(), entry.program);
    for remark in &entry.remarks {
        let _ = writeln!(out, "  {remark}");
    }
    let mut details = String::new();
    match (&entry.old, &entry.new, &entry.difference) {
        (Some(old), Some(new), Some(difference)) => {
            details.push_str(&Pair { left: &old.record, right: &new.record, difference }.text(all));
            if entry.status != Status::Same && entry.status != Status::Unchanged {
                details.push_str(&measures(&old.measure, &new.measure));
                details.push_str(&verdicts(&old.verdict, &new.verdict));
            }
        }
        (_, Some(new), _) if entry.status != Status::Missing => details.push_str(&new.verdict.text()),
        _ => {}
    }
    if matches!(entry.status, Status::Same | Status::Unchanged) {
        // Only what is worth a remark.
        let kept = details.lines().filter_map(|line| line.trim_start().strip_prefix(NO_DIFFERENCE));
        details = kept.map(|line| format!("{line}\n")).collect();
    }
    for line in details.lines() {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// `3 programs: 2 same, 1 different`
pub fn totals(entries: &[Entry]) -> String {
    let counts = Status::ALL.iter().filter_map(|status| {
        let count = entries.iter().filter(|e| e.status == *status).count();
        (count > 0).then(|| format!("{count} {}", status.word()))
    });
    let counts: Vec<String> = counts.collect();
    let all = count(entries.len(), "program");
    if counts.is_empty() { format!("{all}\n") } else { format!("{all}: {}\n", counts.join(", ")) }
}

pub fn entry_json(entry: &Entry) -> Json {
    let snapshot = |s: &Snapshot| {
        json!({
            "rules": s.rules, "level": s.level.to_string(), "seed": s.seed, "measure": measure_json(&s.measure),
            "verdict": verdict_json(&s.verdict), "despite": s.despite,
        })
    };
    let graph = match (&entry.old, &entry.new, &entry.difference) {
        (Some(old), Some(new), Some(difference)) => Pair { left: &old.record, right: &new.record, difference }.json(),
        _ => Json::Null,
    };
    json!({
        "program": entry.program, "snapshot": entry.snapshot.display().to_string(), "status": entry.status.word(),
        "remarks": entry.remarks, "accepted": entry.old.as_ref().map(snapshot), "now": entry.new.as_ref().map(snapshot),
        "graph": graph,
    })
}
