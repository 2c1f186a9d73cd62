//! Commands from a text: one a line, each answered before the next is read.
//!
//! Empty lines and lines that begin with `#` say nothing. A command that is refused leaves everything as it was, and the others are
//! done; what was refused is told at the end.

use std::io::{self, BufRead, Write};

use serde_json::{Map, Value, json};

use super::command::{Command, TABLE};
use super::list::Row;
use super::model::{Reply, Tour, View};
use super::page::{count, visible};
use super::views;
use super::{Page, TourError};
use crate::Refusal;
use crate::diagnostics::{Diagnostic, Diagnostics, SourceMap};
use crate::ir::print::Printer;

/// Runs the commands of a text called `name`. The answers go to `out`, as text or as one JSON value a line; what was refused is
/// returned.
///
/// # Errors
/// If the text cannot be read or the answers cannot be written.
pub fn run(
    tour: &mut Tour,
    name: &str,
    mut text: impl BufRead,
    out: &mut dyn Write,
    as_json: bool,
) -> io::Result<Option<Refusal>> {
    let mut read = String::new();
    let mut refused: Vec<(usize, usize, TourError)> = Vec::new();
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if text.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&bytes).into_owned();
        let start = read.len();
        read.push_str(&line);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let done = Command::parse(line).map_err(TourError::from).and_then(|c| Ok((tour.run_settled(&c)?, c)));
        match done {
            Ok((Reply::Quit, _)) => break,
            Ok((reply, command)) => {
                let answer = match as_json {
                    true => format!("{}\n", answer_json(tour, line, &command, reply)),
                    false => answer_text(tour, line, &command, reply),
                };
                out.write_all(answer.as_bytes())?;
            }
            Err(error) => {
                if as_json {
                    let help = error.diagnostic(tour).help;
                    let value = json!({ "command": line, "error": error.to_string(), "help": help });
                    writeln!(out, "{value}")?;
                }
                refused.push((start, start + line.len(), error));
            }
        }
        out.flush()?;
    }
    if refused.is_empty() {
        return Ok(None);
    }
    let mut sources = SourceMap::new();
    let file = sources.add(name, &read);
    let diagnostics: Vec<Diagnostic> = refused
        .iter()
        .map(|(start, end, error)| error.diagnostic(tour).at(sources.span(file, *start, *end), "this command"))
        .collect();
    let mut bag = Diagnostics::new();
    diagnostics.into_iter().for_each(|d| bag.push(d));
    Ok(Some(Refusal { diagnostics: bag, sources }))
}

/// `> next`, and what there is to say.
fn answer_text(tour: &mut Tour, line: &str, command: &Command, reply: Reply) -> String {
    let mut out = format!("> {}\n", visible(line));
    match (command, reply) {
        (Command::Applications(rows), _) => {
            let (rows, more) = some_rows(tour, *rows);
            for row in rows {
                let sign = if is_here(tour, row) { '>' } else { ' ' };
                out.push_str(&format!("{sign} {}\n", visible(&views::row_text(tour, row))));
            }
            if more > 0 {
                out.push_str(&format!("  {} more\n", count(more, "row")));
            }
        }
        (_, Reply::Cost) => {
            for (what, at) in cost_places(tour) {
                let cost =
                    if what == "here" { views::cost_with_gain(tour, at) } else { views::cost_text(tour.cost_at(at)) };
                out.push_str(&format!("  {what:<8} {cost}\n"));
            }
        }
        (_, Reply::Found(at)) if tour.view() != View::Applications => {
            let page = tour.page();
            let text = page.one_column().get(at).map(|l| l.marked()).unwrap_or_default();
            out.push_str(&format!("  line {}: {}\n", at + 1, text.trim()));
        }
        (Command::Forms(_), _) => out.push_str(if tour.shows_all() { "  all\n" } else { "  few\n" }),
        (Command::Fuel(_), _) => {
            out.push_str(&format!("  {}\n", tour.fuel.map_or("no limit".to_owned(), |f| format!("fuel {f}"))));
            out.push_str(&moved(tour));
        }
        (_, Reply::Set) => {
            let settings = tour.settings();
            out.push_str(&format!("  {}\n", if settings.is_empty() { "everything is shown" } else { &settings }));
        }
        (_, Reply::Shown) => out.push_str(&indented(&tour.page())),
        _ => out.push_str(&moved(tour)),
    }
    out
}

fn indented(page: &Page) -> String {
    page.text().lines().map(|l| format!("  {l}").trim_end().to_owned() + "\n").collect()
}

/// Where one stands, and what was applied there.
fn moved(tour: &Tour) -> String {
    let iterations = tour.history().record.iterations.len();
    let mut out =
        format!("  {} of {}, iteration {} of {iterations}\n", tour.position(), tour.limit(), tour.iteration());
    for line in views::detail(tour) {
        out.push_str(&format!("  {}\n", line.marked()));
    }
    out
}

fn is_here(tour: &Tour, row: Row) -> bool {
    match row {
        Row::Start => tour.position() == 0,
        Row::Application(at) => tour.position() == at,
        Row::Iteration(_) | Row::Spent(_) => false,
    }
}

/// So many rows around the position, their costs known, and how many others there are.
fn some_rows(tour: &mut Tour, wanted: usize) -> (Vec<Row>, usize) {
    let all = tour.rows().len();
    let from = tour.row().saturating_sub(wanted / 2).min(all.saturating_sub(wanted));
    let rows: Vec<Row> = tour.rows()[from..all.min(from.saturating_add(wanted))].to_vec();
    let places = rows.iter().filter_map(|row| match row {
        Row::Start => Some(0),
        Row::Application(at) => Some(*at),
        _ => None,
    });
    tour.settle_costs(&places.collect::<Vec<_>>());
    let more = all - rows.len();
    (rows, more)
}

/// The places whose costs `cost` tells.
fn cost_places(tour: &mut Tour) -> [(&'static str, usize); 3] {
    let places = [("here", tour.position()), ("start", 0), ("end", tour.limit())];
    let before = places.iter().filter_map(|(_, at)| at.checked_sub(1));
    let all: Vec<usize> = places.iter().map(|(_, at)| *at).chain(before).collect();
    tour.settle_costs(&all);
    places
}

/// The answer as a JSON value: the command, where one stands, and what it asked for.
fn answer_json(tour: &mut Tour, line: &str, command: &Command, reply: Reply) -> Value {
    let mut answer = json!({
        "command": line,
        "position": tour.position(),
        "of": tour.limit(),
        "iteration": tour.iteration(),
        "view": tour.view().name(),
        "cost": tour.cost_at(tour.position()).flatten(),
    });
    match (command, reply) {
        (Command::Applications(rows), _) => {
            let (rows, more) = some_rows(tour, *rows);
            answer["rows"] = rows.iter().map(|row| row_json(tour, *row)).collect();
            answer["more"] = json!(more);
        }
        (_, Reply::Cost) => {
            for (what, at) in cost_places(tour) {
                answer["costs"][what] = json!({ "position": at, "cost": tour.cost_at(at).flatten() });
            }
        }
        (_, Reply::Found(at)) if tour.view() != View::Applications => {
            let page = tour.page();
            answer["line"] = json!(at + 1);
            answer["text"] = json!(page.one_column().get(at).map(|l| l.text.clone()));
        }
        (Command::Forms(_), _) => answer["all"] = json!(tour.shows_all()),
        (_, Reply::Set) => {
            answer["filter"] = json!(tour.filter.text());
            answer["passing"] = json!(tour.passing());
            answer["fuel"] = json!(tour.fuel);
            answer["hide_empty"] = json!(tour.hide_empty);
            if matches!(command, Command::Fuel(_)) {
                answer["application"] = application_json(tour);
            }
        }
        (_, Reply::Shown) => answer[tour.view().name()] = view_json(tour),
        _ => answer["application"] = application_json(tour),
    }
    answer
}

fn row_json(tour: &Tour, row: Row) -> Value {
    match row {
        Row::Start => json!({ "position": 0, "cost": tour.cost_at(0).flatten() }),
        Row::Iteration(n) => {
            let iteration = n.checked_sub(1).and_then(|i| tour.history().record.iterations.get(i));
            let applied = iteration.map(|i| i.applications.1 - i.applications.0);
            json!({ "iteration": n, "applied": applied, "matches": iteration.map(|i| i.matches) })
        }
        Row::Application(at) => {
            let application = tour.history().record.applications.get(at - 1);
            let rule = application.and_then(|a| tour.history().rule(a));
            json!({
                "position": at,
                "rule": rule.map(|r| &*r.name),
                "location": rule.map(|r| &*r.location),
                "value": tour.subjects.get(at - 1),
                "cost": tour.cost_at(at).flatten(),
            })
        }
        Row::Spent(more) => json!({ "not_done": more }),
    }
}

/// The application at the position; `null` at the start.
fn application_json(tour: &Tour) -> Value {
    let at = tour.position();
    if at == 0 {
        return Value::Null;
    }
    let mut value = row_json(tour, Row::Application(at));
    value["left"] = json!(tour.sides.as_ref().map(|s| &s.left));
    value["right"] = json!(tour.sides.as_ref().map(|s| &s.right));
    value["cost_before"] = json!(tour.cost_at(at - 1).flatten());
    value
}

fn view_json(tour: &mut Tour) -> Value {
    match tour.view() {
        View::Help => TABLE
            .iter()
            .map(|e| json!({ "name": e.name, "arguments": e.arguments, "keys": e.keys, "help": e.help }))
            .collect(),
        View::Graph => {
            let Some(state) = tour.state() else { return Value::Null };
            let Some(graph) = &state.graph else { return Value::Null };
            Printer::with_names(graph, &tour.rules.registry, &tour.sources, state.names.clone()).json()
        }
        View::Class => class_json(tour).unwrap_or_else(|| tour.page().json()),
        View::Rule => {
            let rule = tour.application().and_then(|a| tour.history().rule(a));
            let text = views::rule_span(tour).map(|span| tour.sources.text(span));
            json!({ "name": rule.map(|r| &*r.name), "location": rule.map(|r| &*r.location), "text": text })
        }
        View::BeforeAfter => {
            let page = tour.page();
            let marked = |mark: super::page::Mark| -> Vec<String> {
                page.one_column().iter().filter(|l| l.mark == mark).map(|l| l.text.clone()).collect()
            };
            json!({
                "title": page.title,
                "removed": marked(super::page::Mark::Removed),
                "added": marked(super::page::Mark::Added),
                "cost_before": tour.position().checked_sub(1).and_then(|at| tour.cost_at(at).flatten()),
            })
        }
        View::Applications | View::Linalg => tour.page().json(),
    }
}

fn class_json(tour: &Tour) -> Option<Value> {
    let (found, state) = tour.forms().ok()?;
    let history = tour.history();
    let shown = if tour.shows_all() { found.forms.len() } else { views::FEW.min(found.forms.len()) };
    let forms: Vec<Value> = found.forms[..shown]
        .iter()
        .map(|form| {
            let mut name = |id: egg::Id| state.name(history, id);
            let total = match form.total {
                crate::egraph::forms::Total::Cost(cost) => json!(cost),
                other => json!(views::total_text(other)),
            };
            json!({
                "form": history.call(&form.node, &mut name),
                "own": form.own,
                "total": total,
                "chosen": form.chosen,
                "by": tour.maker(form),
            })
        })
        .collect();
    let mut value = Map::new();
    value.insert("name".into(), json!(state.name(history, found.class)));
    value.insert("number".into(), json!(state.number(history, found.class)));
    value.insert("type".into(), json!(found.ty.as_ref().map(ToString::to_string)));
    value.insert("forms".into(), forms.into());
    value.insert("hidden".into(), json!(found.forms.len() - shown));
    Some(value.into())
}
