//! A derivation for programs.

use serde_json::{Value, json};

use super::phrase::Line;
use super::steps::{Entry, Flat, Kind};
use super::{Answer, Start};
use crate::rules::RewriteClass;

pub(super) fn json(answer: &Answer) -> Value {
    let parts = answer
        .parts
        .iter()
        .map(|part| json!({ "start": start(&part.start), "steps": flat(&part.flat), "hidden": part.flat.hidden }));
    let lemmas = answer.lemmas.iter().map(|lemma| {
        json!({ "lemma": lemma.lemma, "title": lemma.title, "steps": flat(&lemma.flat), "hidden": lemma.flat.hidden })
    });
    let proof = answer.checked.as_ref().map(|checked| {
        let rules = checked
            .rules
            .iter()
            .map(|(rule, count)| json!({ "name": &*rule.name, "location": &*rule.location, "instances": count }));
        json!({
            "holds": true,
            "instances": checked.steps,
            "lemmas": checked.lemmas,
            "conditions": checked.conditions,
            "facts": checked.facts,
            "rules": rules.collect::<Vec<_>>(),
        })
    });
    json!({
        "version": 1,
        "value": answer.value,
        "call": answer.call,
        "type": answer.ty,
        "parts": parts.collect::<Vec<_>>(),
        "lemmas": lemmas.collect::<Vec<_>>(),
        "size": { "instances": answer.size.1, "lemmas": answer.size.0 },
        "proof": proof,
    })
}

fn start(start: &Start) -> Value {
    match start {
        Start::Program { what, place } => json!({ "kind": "program", "value": what, "location": place }),
        Start::Walk { what, place } => json!({ "kind": "differentiation", "value": what, "location": place }),
        Start::Vjp { rule, place, forward, forward_place, operand, lines, whole } => json!({
            "kind": "vjp",
            "rule": rule,
            "location": place,
            "forward": forward,
            "forward_location": forward_place,
            "operand": operand,
            "conclusion": joined(lines),
            "marked": marked(lines),
            "whole": whole,
        }),
        Start::Inside { name } => json!({ "kind": "part", "value": name }),
    }
}

fn flat(flat: &Flat) -> Vec<Value> {
    flat.entries
        .iter()
        .map(|entry| match entry {
            Entry::Rule { number, rule, place, kind, reversed, before, after, swapped, made } => json!({
                "kind": match kind {
                    Kind::Rewrite(_) => "rewrite",
                    Kind::Definition => "def",
                    Kind::Vjp => "vjp",
                },
                "number": number,
                "rule": rule,
                "location": place,
                "class": match kind {
                    Kind::Rewrite(RewriteClass::Exact) => Some("exact"),
                    Kind::Rewrite(RewriteClass::Real) => Some("real"),
                    Kind::Definition | Kind::Vjp => None,
                },
                "reversed": reversed,
                "operands_swapped": swapped,
                "before": joined(before),
                "before_marked": marked(before),
                "after": joined(after),
                "after_marked": marked(after),
                "made": made,
            }),
            Entry::Operand { from, to, lemma, steps } => {
                json!({ "kind": "operand", "from": from, "to": to, "lemma": lemma, "steps": steps })
            }
            Entry::Again { from, to, lemma, steps } => {
                json!({ "kind": "again", "from": from, "to": to, "lemma": lemma, "steps": steps })
            }
        })
        .collect()
}

/// The expression on one line.
fn joined(lines: &[Line]) -> String {
    let mut out = String::new();
    for line in lines {
        if out.ends_with(',') {
            out.push(' ');
        }
        out.push_str(line.text.trim_start());
    }
    out
}

/// The marked parts, each on one line.
fn marked(lines: &[Line]) -> String {
    let mut out = String::new();
    for line in lines {
        for (from, to) in &line.marks {
            if out.ends_with(',') {
                out.push(' ');
            }
            out.extend(line.text.chars().take(*to).skip(*from));
        }
    }
    out
}
