//! The report of `kina-ad diff`, as text for people and as JSON.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::diff::{Line, Report, Summary};
use super::edits::{Responsible, Without};
use super::measure::Numbers;
use super::show::{Pair, count, limited, measure_json, measures, verdict_json, verdicts};
use crate::diagnostics::Span;
use crate::rules::edits::Edit;

impl Report {
    pub fn pair(&self) -> Pair<'_> {
        Pair { left: &self.left.record, right: &self.right.record, difference: &self.difference }
    }

    /// The whole report.
    pub fn text(&self, all: bool) -> String {
        let mut out = String::new();
        for (sign, side) in [("-", &self.left), ("+", &self.right)] {
            let _ = writeln!(out, "{sign} {} {}, rules {}", side.name, self.settings.level, side.rules);
        }
        out.push_str(&self.pair().text(all));
        out.push_str(&measures(&self.left.measure, &self.right.measure));
        if self.difference.is_none() && self.left.measure.peak != self.right.measure.peak {
            out.push_str("  no difference: the values are in another order, which the peak depends on\n");
        }
        out.push_str(&verdicts(&self.left.verdict, &self.right.verdict));
        if let Some(numbers) = &self.numbers {
            let _ = writeln!(out, "results at the same inputs, seed {}", self.settings.seed);
            numbers_text(&mut out, numbers);
        }
        if let Some([lefts, rights]) = &self.lines {
            let none = if lefts.is_empty() && rights.is_empty() { ": none" } else { "" };
            let _ = writeln!(out, "lines of the programs that make the difference{none}");
            for (sign, side, lines) in [("-", &self.left, lefts), ("+", &self.right, rights)] {
                limited(&mut out, lines.iter(), all, |out, line: &Line| {
                    let _ = writeln!(out, "  {sign} {}:{}  {}", side.name, line.number, line.text);
                });
            }
        }
        if let Some(rules) = &self.rules {
            rules.describe(&mut out, all);
        }
        out.push_str(if self.differs() { "different\n" } else { "no difference\n" });
        out
    }

    pub fn json(&self) -> Json {
        let side = |side: &Summary| {
            json!({
                "program": side.name, "rules": side.rules, "measure": measure_json(&side.measure),
                "verdict": verdict_json(&side.verdict),
            })
        };
        let lines = self.lines.as_ref().map(|[lefts, rights]| {
            let list = |lines: &[Line]| -> Vec<Json> {
                lines.iter().map(|l| json!({ "line": l.number, "text": l.text })).collect()
            };
            json!({ "left": list(lefts), "right": list(rights) })
        });
        json!({
            "version": 1,
            "differs": self.differs(),
            "level": self.settings.level.to_string(),
            "seed": self.settings.seed,
            "left": side(&self.left),
            "right": side(&self.right),
            "graph": self.pair().json(),
            "numbers": self.numbers.as_ref().map(numbers_json),
            "lines": lines,
            "rule_edits": self.rules.as_ref().map(Responsible::json),
        })
    }
}

fn numbers_text(out: &mut String, numbers: &Numbers) {
    let _ = match numbers {
        Numbers::NotCompared(why) => writeln!(out, "  not compared: {why}"),
        Numbers::Stopped { left, right } => {
            for (sign, why) in [("-", left), ("+", right)] {
                let _ = writeln!(out, "{sign} {}", why.as_deref().unwrap_or("runs to its end"));
            }
            Ok(())
        }
        Numbers::Compared(list) => {
            for (name, agreement) in list {
                let _ = match agreement {
                    Some(a) => writeln!(out, "  {name}: {a}: {}", if a.holds() { "the same" } else { "DIFFERENT" }),
                    None => writeln!(out, "  {name}: of another shape: DIFFERENT"),
                };
            }
            Ok(())
        }
    };
}

fn numbers_json(numbers: &Numbers) -> Json {
    match numbers {
        Numbers::NotCompared(why) => json!({ "compared": false, "why": why }),
        Numbers::Stopped { left, right } => json!({ "compared": false, "left": left, "right": right }),
        Numbers::Compared(list) => {
            let results = list.iter().map(|(name, agreement)| {
                json!({
                    "name": name,
                    "same": agreement.is_some_and(|a| a.holds()),
                    "text": agreement.map_or_else(|| "of another shape".to_owned(), |a| a.to_string()),
                })
            });
            json!({ "compared": true, "results": results.collect::<Vec<_>>() })
        }
    }
}

/// Where a rule stands, or stood.
fn places(edit: &Edit) -> String {
    match (&edit.before, &edit.after) {
        (Some((a, _)), Some((b, _))) => format!("{a} -> {b}"),
        (Some((place, _)), None) | (None, Some((place, _))) => place.to_string(),
        (None, None) => String::new(),
    }
}

impl Without {
    fn text(&self) -> String {
        match self {
            Without::Nothing => "without this edit there is no difference".to_owned(),
            Without::Another => "without this edit the difference is another one".to_owned(),
            Without::Refused(Some(code)) => format!("without this edit the program is refused, {code}"),
            Without::Refused(None) => "without this edit the rules cannot be loaded".to_owned(),
            Without::Untried => "not tried".to_owned(),
        }
    }
}

impl Responsible {
    fn describe(&self, out: &mut String, all: bool) {
        let found = match (self.trials, self.complete) {
            (0, true) => "without them the graph is the same".to_owned(),
            (0, false) => {
                "the second program is refused under the first rules, so that no edit could be tried".to_owned()
            }
            (trials, _) => format!("found in {}", count(trials, "trial")),
        };
        let responsible = match (self.matter.len(), self.complete) {
            (0, true) => "none of them responsible".to_owned(),
            (0, false) => "nothing is known of them".to_owned(),
            (n, _) => format!("{n} of them responsible"),
        };
        let _ = writeln!(out, "rule edits: {}, {responsible} ({found})", self.edits);
        limited(out, self.matter.iter(), all, |out, (edit, without)| {
            let _ = writeln!(out, "  {} {}  {}", edit.change.word(), edit.name, places(edit));
            let _ = writeln!(out, "      {}", without.text());
        });
        let others = self.edits - self.matter.len();
        if others > 0 && !self.matter.is_empty() {
            let others = if others == 1 { "edit".to_owned() } else { format!("{others} edits") };
            let _ = writeln!(out, "  without the other {others}, the graph is the same");
        }
        if !self.complete && self.trials > 0 {
            let _ =
                writeln!(out, "  the search ended after {} trials: some of these may have no part in it", self.trials);
        }
    }

    fn json(&self) -> Json {
        let place = |place: &Option<(Arc<str>, Span)>| place.as_ref().map(|(p, _)| p.to_string());
        let edits: Vec<Json> = self
            .matter
            .iter()
            .map(|(edit, without)| {
                json!({
                    "name": edit.name, "change": edit.change.word(), "before": place(&edit.before), "after": place(&edit.after),
                    "without": match without {
                        Without::Nothing => "no difference",
                        Without::Another => "another difference",
                        Without::Refused(_) => "refused",
                        Without::Untried => "not tried",
                    },
                })
            })
            .collect();
        json!({ "edits": self.edits, "responsible": edits, "complete": self.complete, "trials": self.trials })
    }
}
