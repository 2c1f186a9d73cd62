//! Answers for people and as JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{Answer, Detail, Fired, Instead, Outcome, Place, RuleAnswer, Unmatched};
use crate::egraph::Stop;
use crate::ir::RuleRef;

impl Answer {
    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (index, rule) in self.rules.iter().enumerate() {
            if index > 0 {
                out.push('\n');
            }
            self.rule(rule, &mut out);
        }
        out
    }

    fn rule(&self, answer: &RuleAnswer, out: &mut String) {
        let name = match answer.kind {
            "def" => format!("def {}", answer.rule.name),
            "vjp" => answer.rule.name.to_string(),
            kind => format!("{} [{kind}]", answer.rule.name),
        };
        let _ = writeln!(out, "{name}  {}", answer.rule.location);
        if !answer.doc.is_empty() {
            let _ = writeln!(out, "  {}", answer.doc);
        }
        for remark in &answer.remarks {
            let _ = writeln!(out, "  {remark}");
        }
        if answer.outcomes.is_empty() {
            return;
        }
        let counts = answer.outcomes.iter().map(|(outcome, n)| format!("{n} {}", outcome.title()));
        let places = if answer.count() == 1 { "place" } else { "places" };
        let _ = writeln!(out, "{} {places}: {}", answer.count(), counts.collect::<Vec<_>>().join(", "));
        for (outcome, count) in &answer.outcomes {
            let _ = writeln!(out, "{}", outcome.title());
            let told: Vec<&Place> = answer.places.iter().filter(|p| p.outcome == *outcome).collect();
            for place in &told {
                self.place(place, out);
            }
            if told.len() < *count {
                let _ = writeln!(out, "  and {} more: `--all` shows them", count - told.len());
            }
        }
    }

    fn place(&self, place: &Place, out: &mut String) {
        let operand = place.operand.as_ref().map(|o| format!(", operand {o}")).unwrap_or_default();
        let origin = match (place.origin.as_str(), place.in_program) {
            ("", _) => String::new(),
            (origin, true) => format!("  // {origin}"),
            (origin, false) => format!("  // made by {origin}"),
        };
        let _ = writeln!(out, "  {} = {}{operand}{origin}", place.value, place.form);
        for line in self.lines(place) {
            let _ = writeln!(out, "    {line}");
        }
    }

    /// What is said of a place.
    fn lines(&self, place: &Place) -> Vec<String> {
        let mut lines = Vec::new();
        match &place.detail {
            Detail::Nothing => {}
            Detail::Mismatches(ends) => lines.extend(ends.iter().map(unmatched)),
            Detail::Condition { line, location, values } => {
                let values: Vec<String> = values.iter().map(|(part, value)| format!("{part} = {value}")).collect();
                let values = if values.is_empty() { "it is false".to_owned() } else { values.join(", ") };
                lines.push(format!("{line} ({location}): {values}"));
            }
            Detail::Domain { line, location, value, range: (lo, hi), may_be_nan } => {
                let known = match (lo.is_finite(), hi.is_finite()) {
                    (false, false) => format!("nothing is known of the elements of {value}"),
                    _ => format!("the elements of {value} are known to lie in [{lo}, {hi}]"),
                };
                let nan = if *may_be_nan { ", and one may be NaN" } else { "" };
                lines.push(format!("{line} ({location}): {known}{nan}"));
            }
            Detail::Would { made, why } => {
                lines.extend(made.iter().map(|made| match place.outcome {
                    Outcome::AlreadyEqual => format!("it is {made} already"),
                    _ => format!("it would make {made}"),
                }));
                lines.extend(why.clone());
            }
            Detail::Constants { left, right } => lines.push(format!("{left} and {right} are never made one value")),
            Detail::Fired(fired) => fired_lines(fired, &mut lines),
        }
        match (place.outcome, self.stop) {
            (Outcome::Budget, Some(stop)) => lines.push(format!("the saturation {}", ended(stop))),
            (Outcome::Late, _) => {
                lines.push("what it needs was found when the rule was no longer looked for here".to_owned());
            }
            (Outcome::Fuel, _) => {
                lines.push("the left side matches in more ways than there are steps to look at".to_owned());
            }
            _ => {}
        }
        lines
    }

    /// As a JSON value: `version`, `level`, `cost`, `saturation`, `at` and `rules`.
    pub fn json(&self) -> Value {
        let rules: Vec<Value> = self
            .rules
            .iter()
            .map(|answer| {
                let outcomes: Map<String, Value> =
                    answer.outcomes.iter().map(|(outcome, n)| (outcome.name().to_owned(), json!(n))).collect();
                let places: Vec<Value> = answer.places.iter().map(|p| self.place_json(p)).collect();
                json!({
                    "kind": answer.kind, "name": &*answer.rule.name, "location": &*answer.rule.location,
                    "doc": answer.doc, "remarks": answer.remarks, "count": answer.count(), "outcomes": outcomes,
                    "places": places,
                })
            })
            .collect();
        json!({
            "version": 1, "level": self.level.to_string(), "cost": self.cost, "saturation": self.stop.map(stop_name),
            "at": self.at, "rules": rules,
        })
    }

    fn place_json(&self, place: &Place) -> Value {
        let mut value = json!({
            "value": place.value, "class": place.class, "form": place.form, "operand": place.operand, "in_program": place.in_program,
            "in_result": place.in_result, "origin": place.origin, "outcome": place.outcome.name(),
            "fired": place.outcome.fired(), "says": self.lines(place),
        });
        match &place.detail {
            Detail::Nothing => {}
            Detail::Mismatches(ends) => {
                let ends = ends.iter().map(|e| {
                    json!({
"wanted": e.wanted, "place": e.place, "is_attribute": e.is_attribute, "found": e.found, "more": e.more })
                });
                value["mismatches"] = ends.collect();
            }
            Detail::Condition { line, location, values } => {
                let values: Map<String, Value> = values.iter().map(|(p, v)| (p.clone(), json!(v))).collect();
                value["condition"] = json!({ "line": line, "location": location, "values": values });
            }
            Detail::Domain { line, location, value: of, range: (lo, hi), may_be_nan } => {
                // JSON has no infinities: a bound that is not there is null.
                let bound = |b: &f64| if b.is_finite() { json!(b) } else { Value::Null };
                value["domain"] = json!({
                    "line": line, "location": location, "value": of, "range": [bound(lo), bound(hi)],
                    "may_be_nan": may_be_nan,
                });
            }
            Detail::Would { made, why } => {
                value["made"] = json!(made);
                value["why"] = json!(why);
            }
            Detail::Constants { left, right } => value["constants"] = json!([left, right]),
            Detail::Fired(fired) => {
                value["made"] = json!(fired.made);
                if let Some((form, origin)) = &fired.chosen {
                    value["chosen"] = json!({ "form": form, "origin": origin, "rule": rule_json(&fired.chosen_rule) });
                }
                value["cost"] = json!(fired.cost);
                value["cost_instead"] = match fired.restricted {
                    Some(Instead::Cost { cost, unused, complete }) => {
                        json!({ "cost": cost, "without_value": unused, "complete": complete })
                    }
                    Some(Instead::Impossible) | None => Value::Null,
                };
                if let Some(user) = &fired.user {
                    value["user"] = json!({
                        "value": user.value, "form": user.form, "origin": user.origin, "rule": rule_json(&user.rule),
                    });
                }
            }
        }
        value
    }
}

fn rule_json(rule: &Option<RuleRef>) -> Value {
    rule.as_ref().map_or(Value::Null, |r| json!({ "name": &*r.name, "location": &*r.location }))
}

fn unmatched(end: &Unmatched) -> String {
    let word = if end.is_attribute { "of" } else { "as" };
    let place = end.place.as_ref().map(|p| format!(" {word} {p}")).unwrap_or_default();
    let more = if end.more > 0 { format!(", and {} more forms", end.more) } else { String::new() };
    format!("expects {}{place}, found {}{more}", end.wanted, end.found.join(", "))
}

fn fired_lines(fired: &Fired, lines: &mut Vec<String>) {
    lines.push(format!("made    {}", fired.made));
    if let Some((form, origin)) = &fired.chosen {
        lines.push(format!("chosen  {form}  // {origin}"));
    }
    match (fired.cost, fired.restricted) {
        (Some(cost), Some(Instead::Cost { cost: other, unused, complete })) => {
            let without = if unused { ", which then does without the value" } else { "" };
            let complete = if complete { "" } else { ", as far as there were steps to search" };
            let than = match other.cmp(&cost) {
                std::cmp::Ordering::Greater => format!("{} more", other - cost),
                std::cmp::Ordering::Equal => "the same, and the other form comes first".to_owned(),
                std::cmp::Ordering::Less => "less: extraction has missed it".to_owned(),
            };
            lines.push(format!("cost    {cost} as it is, {other} with what the rule made ({than}){without}{complete}"));
        }
        (Some(cost), Some(Instead::Impossible)) => {
            lines.push(format!(
                "cost    {cost} as it is; what the rule made cannot be computed without the value itself"
            ));
        }
        _ => {}
    }
    if let Some(user) = &fired.user {
        lines.push(format!("nothing needs it: {} is computed as {}  // {}", user.value, user.form, user.origin));
    }
}

fn ended(stop: Stop) -> &'static str {
    match stop {
        Stop::Saturated => "ended by itself",
        Stop::Nodes => "ran out of its budget of e-nodes",
        Stop::Iterations => "ran out of its budget of iterations",
        Stop::Applications => "ran out of its budget of applications",
        Stop::Steps => "ran out of its budget of steps",
    }
}

fn stop_name(stop: Stop) -> &'static str {
    match stop {
        Stop::Saturated => "saturated",
        Stop::Nodes => "nodes",
        Stop::Iterations => "iterations",
        Stop::Applications => "applications",
        Stop::Steps => "steps",
    }
}
