//! A derivation for people.

use std::fmt::Write as _;

use super::phrase::Line;
use super::steps::{Entry, Flat, Kind};
use super::{Answer, Part, Start};
use crate::rules::RewriteClass;

/// Where the place of a line stands.
const COLUMN: usize = 64;

pub(super) fn text(answer: &Answer) -> String {
    let mut out = format!("{} = {} : {}\n", answer.value, answer.call, answer.ty);
    for part in &answer.parts {
        // A part that is already what it becomes says nothing that the step before did not.
        let nothing = part.flat.entries.is_empty() && part.flat.hidden == 0;
        if nothing && matches!(part.start, Start::Inside { .. }) {
            continue;
        }
        out.push('\n');
        start(&mut out, part);
        flat(&mut out, &part.flat);
    }
    let steps = answer.parts.iter().flat_map(|p| &p.flat.entries);
    if answer.parts.iter().all(|p| p.flat.entries.is_empty() && p.flat.hidden == 0) {
        out.push_str("\nno rewrite changed it\n");
    } else if answer.lemmas.is_empty() && steps.clone().any(|e| !matches!(e, Entry::Rule { .. })) {
        out.push_str("\noperands have derivations of their own: ask `why` for their names, or add `--all`\n");
    }
    for lemma in &answer.lemmas {
        let _ = writeln!(out, "\nlemma {}: {}", lemma.lemma, lemma.title);
        flat(&mut out, &lemma.flat);
    }
    let (lemmas, instances) = answer.size;
    if let Some(checked) = &answer.checked {
        let _ = writeln!(
            out,
            "\nproof: replayed {} rule instance(s) in {} lemma(s), with their attributes and types, {} condition(s) and {} fact(s) \
             of domains; every step holds",
            checked.steps, checked.lemmas, checked.conditions, checked.facts
        );
        for (rule, count) in &checked.rules {
            placed(&mut out, &format!("  {count:>5} {}", rule.name), &rule.location);
        }
    } else if instances > 0 {
        let _ = writeln!(
            out,
            "\nrests on {instances} rule instance(s) in {lemmas} lemma(s), operands included; `--proof` replays them"
        );
    }
    out
}

/// A text, and where it is from at the side.
fn placed(out: &mut String, what: &str, place: &str) {
    let width = what.chars().count().max(COLUMN);
    let _ = writeln!(out, "{what:width$}  // {place}");
}

fn start(out: &mut String, part: &Part) {
    match &part.start {
        Start::Program { what, place } | Start::Walk { what, place } => placed(out, what, place),
        Start::Vjp { rule, place, forward, forward_place, operand, lines, whole } => {
            placed(out, forward, forward_place);
            let says = if *whole { "concludes" } else { "has in what it concludes" };
            placed(out, &format!("{rule} {says} for its operand {operand}"), place);
            marked(out, "     ", lines);
        }
        Start::Inside { name } => {
            let _ = writeln!(out, "{name}, the marked part");
        }
    }
}

fn flat(out: &mut String, flat: &Flat) {
    for entry in &flat.entries {
        match entry {
            Entry::Rule { number, rule, place, kind, reversed, before, after, swapped, made } => {
                let kind = match kind {
                    Kind::Rewrite(RewriteClass::Exact) => " [exact]",
                    Kind::Rewrite(RewriteClass::Real) => " [real]",
                    Kind::Definition => ", the definition",
                    Kind::Vjp => "",
                };
                let reversed = if *reversed { ", read from right to left" } else { "" };
                let swapped = if *swapped { ", operands the other way round" } else { "" };
                placed(out, &format!("{number:>2}  {rule}{kind}{swapped}{reversed}"), place);
                marked(out, "     ", before);
                marked(out, "  => ", after);
                if let Some(made) = made {
                    let _ = writeln!(out, "     {made} is the marked part");
                }
            }
            Entry::Operand { from, to, lemma, steps } => {
                let _ = writeln!(out, "  -  operand {from} is {to}: {} (lemma {lemma})", counted(*steps));
            }
            Entry::Again { from, to, lemma, steps } => {
                let _ = writeln!(out, "  -  {from} becomes {to} as before: {} (lemma {lemma})", counted(*steps));
            }
        }
    }
    if flat.hidden > 0 {
        let _ = writeln!(out, "     .. and {} more; `--all` shows them", counted(flat.hidden));
    }
}

fn counted(steps: usize) -> String {
    if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") }
}

/// Lines with `^` below what is marked, or, if that is more than one line of several, with `>` before the lines of it.
fn marked(out: &mut String, lead: &str, lines: &[Line]) {
    // A mark below a whole expression says nothing.
    let whole = lines.iter().all(|l| {
        let text = l.text.trim_start();
        let indent = l.text.chars().count() - text.chars().count();
        l.marks == [(indent, l.text.chars().count())]
    });
    let several = lines.iter().filter(|l| !l.marks.is_empty()).count() > 1;
    for (i, line) in lines.iter().enumerate() {
        let lead = match i {
            0 => lead,
            _ if several && !whole && !line.marks.is_empty() => "   > ",
            _ => "     ",
        };
        let _ = writeln!(out, "{lead}{}", line.text);
        if whole || several || line.marks.is_empty() {
            continue;
        }
        let mut below = String::from("     ");
        for (from, to) in &line.marks {
            let at = below.chars().count() - 5;
            below.push_str(&" ".repeat(from.saturating_sub(at)));
            below.push_str(&"^".repeat(to - from));
        }
        let _ = writeln!(out, "{below}");
    }
}
