//! What each view shows.

use std::cmp::Ordering;

use egg::Id;

use super::change::{change, rows};
use super::command;
use super::list::Row;
use super::model::{Missing, Tour, View};
use super::page::{Line, Mark, Page, count};
use super::state::State;
use crate::diagnostics::Span;
use crate::egraph::forms::{Form, Forms, Total, forms};
use crate::egraph::record::Cause;
use crate::ir::print::Printer;
use crate::ir::{Level, NodeKind, Origin};

/// Forms of a class that are shown unless all are asked for.
pub(super) const FEW: usize = 8;

/// What is said where something is not made yet.
pub const COMPUTING: &str = "computing ..";

/// The page of the view of a tour.
pub(super) fn page(tour: &Tour) -> Page {
    match tour.view {
        View::Applications => Page::new("application", detail(tour)),
        View::Class => class(tour),
        View::BeforeAfter => before_after(tour),
        View::Rule => rule(tour),
        View::Linalg => linalg(tour),
        View::Graph => graph(tour),
        View::Help => Page::new("commands and keys", command::table().iter().map(Line::plain).collect()),
    }
}

/// A cost, or what is said instead.
pub(super) fn cost_text(cost: Option<Option<u64>>) -> String {
    match cost {
        Some(Some(cost)) => cost.to_string(),
        Some(None) => "none".to_owned(),
        None => "..".to_owned(),
    }
}

/// What application `at` changed of the cost: `-742`; nothing where it changed nothing, or that is not known.
fn gain(tour: &Tour, at: usize) -> Option<String> {
    let (before, now) = (tour.cost_at(at.checked_sub(1)?)??, tour.cost_at(at)??);
    match now.cmp(&before) {
        Ordering::Less => Some(format!("-{}", before - now)),
        Ordering::Greater => Some(format!("+{}", now - before)),
        Ordering::Equal => None,
    }
}

fn matches(number: usize) -> String {
    if number == 1 { "1 match".to_owned() } else { format!("{number} matches") }
}

/// `388742 (-742)`: the cost after so many applications, and what the last of them changed.
pub(super) fn cost_with_gain(tour: &Tour, at: usize) -> String {
    let cost = cost_text(tour.cost_at(at));
    let is_known = |at: usize| matches!(tour.cost_at(at), Some(Some(_)));
    match (gain(tour, at), at.checked_sub(1)) {
        (Some(gain), _) => format!("{cost} ({gain})"),
        (None, Some(before)) if is_known(before) && is_known(at) => format!("{cost} (the same)"),
        (None, _) => cost,
    }
}

/// A row of the list as text: position, rule, place, value, cost.
pub(super) fn row_text(tour: &Tour, row: Row) -> String {
    match row {
        Row::Start => {
            let cost = if tour.source.level == Level::O0 { String::new() } else { cost_text(tour.cost_at(0)) };
            format!("{:>5}  start: before any rewriting  {cost}", 0).trim_end().to_owned()
        }
        Row::Iteration(0) => "before the first iteration".to_owned(),
        Row::Iteration(n) => {
            let Some(iteration) = tour.history().record.iterations.get(n - 1) else { return String::new() };
            let (from, to) = iteration.applications;
            let done = match to - from {
                0 => "nothing new".to_owned(),
                n => format!("{n} applied"),
            };
            format!("iteration {n}: {done}, {}", matches(iteration.matches))
        }
        Row::Application(at) => {
            let history = tour.history();
            let Some(application) = history.record.applications.get(at - 1) else { return String::new() };
            let subject = tour.subjects.get(at - 1).map_or("", |s| s);
            let (name, place) = history.rule(application).map_or(("?", ""), |r| (&*r.name, &*r.location));
            let (cost, gain) = (cost_text(tour.cost_at(at)), gain(tour, at).unwrap_or_default());
            format!("{at:>5}  {name:<24} {subject:<12} {cost:>11} {gain:>9}  {place}")
        }
        Row::Spent(more) => format!("fuel ends here: {more} more {} not done", if more == 1 { "is" } else { "are" }),
    }
}

/// The same for narrow screens.
pub(super) fn short_row_text(tour: &Tour, row: Row) -> String {
    let Row::Application(at) = row else { return row_text(tour, row).trim_start().to_owned() };
    let history = tour.history();
    let Some(application) = history.record.applications.get(at - 1) else { return String::new() };
    let subject = tour.subjects.get(at - 1).map_or("", |s| s);
    let name = history.rule(application).map_or("?", |r| &*r.name);
    format!("{at:>3} {name:<20} {subject:<10} {:>11}", cost_text(tour.cost_at(at)))
}

/// What is said of the application at the position.
pub(super) fn detail(tour: &Tour) -> Vec<Line> {
    let history = tour.history();
    let Some(application) = tour.application() else {
        let mut lines = vec![Line::plain(format!("start    {} before any rewriting", tour.file))];
        let all = history.record.applications.len();
        let iterations = history.record.iterations.len();
        lines.push(Line::plain(if all == 0 {
            format!("end      no applications: {}", tour.end())
        } else {
            format!("end      {} in {}; {}", count(all, "application"), count(iterations, "iteration"), tour.end())
        }));
        return lines;
    };
    let mut lines = Vec::new();
    let rule = history.rule(application).map_or_else(|| "unknown".to_owned(), ToString::to_string);
    let (promise, doc) = match &application.cause {
        Cause::Rewrite { rule, .. } | Cause::Commutes { rule, .. } => {
            let class = match rule.class {
                crate::rules::RewriteClass::Exact => " [exact]",
                crate::rules::RewriteClass::Real => " [real]",
            };
            (class, rule.head.doc.lines().next().unwrap_or("").to_owned())
        }
        Cause::Definition { def, .. } => (" [definition]", def.head.doc.lines().next().unwrap_or("").to_owned()),
        Cause::Alternative => (" [alternative derivative]", String::new()),
    };
    lines.push(Line::new(Mark::Current, format!("rule     {rule}{promise}")));
    if !doc.is_empty() {
        lines.push(Line::new(Mark::Faint, format!("         {doc}")));
    }
    let subject = tour.subjects.get(tour.position - 1).map_or("", |s| s);
    let named = tour.state().and_then(|s| s.value(application.class).and_then(|v| s.names.get(v.index())));
    let also = named.filter(|n| n.as_str() != subject).map(|n| format!(", {n} in the graph here")).unwrap_or_default();
    lines.push(Line::plain(format!("value    {subject}{also}")).about(application.class));
    if let Some(sides) = &tour.sides {
        lines.push(Line::new(Mark::Removed, format!("left     {}", sides.left)));
        lines.push(Line::new(Mark::Added, format!("right    {}", sides.right)));
    }
    lines.push(Line::plain(format!("cost     {}", cost_with_gain(tour, tour.position))));
    lines
}

/// Where one stands, in words.
pub(super) fn place(tour: &Tour) -> String {
    match tour.position {
        0 => "at the start".to_owned(),
        at => format!("after application {at}"),
    }
}

fn missing(title: &str, tour: &Tour, missing: &Missing) -> Page {
    Page::note(
        title,
        match missing {
            Missing::Nothing => format!("nothing was applied yet\n{}", tour.nothing_to_see()),
            Missing::State(_) => COMPUTING.to_owned(),
            Missing::Unknown(name) => {
                format!("there is no value `{name}` here\n`graph` shows the values that there are")
            }
        },
    )
}

impl Tour {
    fn nothing_to_see(&self) -> &'static str {
        if self.limit() == 0 { self.end() } else { "`next` applies the first; `class VALUE` looks at any value" }
    }

    /// The forms of the class that the view is about.
    pub(super) fn forms(&self) -> Result<(Forms, &State), Missing> {
        let id = self.subject()?;
        let state = self.state().ok_or(Missing::State(self.position))?;
        let forms = forms(&state.program, id, state.choices.as_ref());
        forms.map(|forms| (forms, &**state)).ok_or_else(|| Missing::Unknown(self.history().number(id)))
    }

    /// Who made a form: the rule and its place, or the place in the program.
    pub(super) fn maker(&self, form: &Form) -> String {
        match &form.origin {
            Some(Origin::Rule { rule, .. }) => format!("{} {}", rule.name, rule.location),
            Some(Origin::Program(span)) => self.sources.file_line(*span),
            Some(Origin::Handler(span)) => format!("{} handler", self.sources.file_line(*span)),
            Some(Origin::Accumulate { serves }) => format!("sum of the cotangents of {}", serves.join(", ")),
            None => String::new(),
        }
    }

    /// What a class is called beside its number.
    pub(super) fn class_title(&self, forms: &Forms, state: &State) -> String {
        let number = state.number(self.history(), forms.class);
        let name = state.name(self.history(), forms.class);
        if name == number { number } else { format!("{name} ({number})") }
    }
}

/// The cost of a form with all that it needs, as text.
pub(super) fn total_text(total: Total) -> String {
    match total {
        Total::Cost(cost) => cost.to_string(),
        Total::Circular => "needs itself".to_owned(),
        Total::Impossible => "-".to_owned(),
        Total::Unknown => "?".to_owned(),
    }
}

fn class(tour: &Tour) -> Page {
    let (found, state) = match tour.forms() {
        Ok(found) => found,
        Err(Missing::Unknown(name)) if tour.history().find(&name).is_some() => {
            return Page::note("class", format!("{name} does not exist yet {}\n`last` goes to the end", place(tour)));
        }
        Err(why) => return missing("class", tour, &why),
    };
    let ty = found.ty.as_ref().map(|t| format!(" : {t}")).unwrap_or_default();
    let title =
        format!("{}{ty}, {} {}", tour.class_title(&found, state), count(found.forms.len(), "form"), place(tour));
    let mut lines = Vec::new();
    if !found.is_needed && state.choices.is_some() {
        lines.push(Line::new(Mark::Faint, "no form of a result needs this value"));
    }
    let shown = if tour.all { found.forms.len() } else { FEW.min(found.forms.len()) };
    let own = |form: &Form| form.own.map_or_else(|| "-".to_owned(), |c| c.to_string());
    let shown_forms = &found.forms[..shown];
    let width = |of: &dyn Fn(&Form) -> String, least: usize| {
        shown_forms.iter().map(|f| of(f).len()).max().unwrap_or(0).max(least)
    };
    let (first, second) = (width(&own, 3), width(&|f| total_text(f.total), 5));
    lines.push(Line::new(Mark::Heading, format!("{:>first$}  {:>second$}  form", "own", "total")));
    for form in shown_forms {
        let mut name = |id: Id| state.name(tour.history(), id);
        let call = tour.history().call(&form.node, &mut name);
        let mark = if form.chosen { Mark::Current } else { Mark::Plain };
        lines.push(Line::new(mark, format!("{:>first$}  {:>second$}  {call}", own(form), total_text(form.total))));
        lines.push(Line::new(Mark::Faint, format!("{:first$}  {:second$}    by {}", "", "", tour.maker(form))));
    }
    let hidden = found.forms.len() - shown;
    if hidden > 0 {
        lines.push(Line::new(Mark::Heading, format!("{hidden} more hidden: `forms all`, key a")));
    }
    Page::new(title, lines)
}

fn before_after(tour: &Tour) -> Page {
    let at = tour.position;
    if at == 0 {
        return Page::note("before and after", format!("nothing was applied yet\n{}", tour.nothing_to_see()));
    }
    let (Some(before), Some(after)) = (tour.states.get(at - 1), tour.states.get(at)) else {
        return Page::note("before and after", COMPUTING);
    };
    if before.graph.is_none() || after.graph.is_none() {
        let which = if before.graph.is_none() { at - 1 } else { at };
        return Page::note("before and after", format!("after {which} applications nothing can be extracted"));
    }
    let change = change(before, after, &tour.rules.registry, &tour.sources, tour.all);
    let title = format!(
        "application {at}: {} removed, {} added, cost {} -> {}",
        count(change.removed, "line"),
        count(change.added, "line"),
        cost_text(Some(before.cost)),
        cost_with_gain(tour, at)
    );
    Page { beside: Some(change.after), ..Page::new(title, change.before) }
}

/// The place of the rule that was applied last.
pub(super) fn rule_span(tour: &Tour) -> Option<Span> {
    let application = tour.application()?;
    match &application.cause {
        Cause::Rewrite { rule, .. } | Cause::Commutes { rule, .. } => Some(rule.head.span),
        Cause::Definition { def, .. } => Some(def.head.span),
        Cause::Alternative => {
            let wanted = tour.history().rule(application)?;
            let entries = crate::rules::listing::entries(&tour.rules);
            entries.iter().find(|e| e.rule == *wanted).map(|e| e.span)
        }
    }
}

fn rule(tour: &Tour) -> Page {
    let Some(span) = rule_span(tour) else {
        return Page::note("rule", format!("nothing was applied yet\n{}", tour.nothing_to_see()));
    };
    let file = tour.sources.file(span.file);
    let lines = tour.sources.lines(span);
    let numbered = |number: usize, text: &str, mark: Mark| Line::new(mark, format!("{number:>4} | {text}"));
    // Its documentation stands before it.
    let before = file.text[..lines.start].lines().collect::<Vec<_>>();
    let doc = before.iter().rev().take_while(|l| l.trim_start().starts_with("///")).count();
    let mut out: Vec<Line> = before[before.len() - doc..]
        .iter()
        .enumerate()
        .map(|(i, text)| numbered(before.len() - doc + i + 1, text, Mark::Faint))
        .collect();
    let own = lines.text.lines().enumerate();
    out.extend(own.map(|(i, text)| numbered(lines.number + i, text, if i == 0 { Mark::Current } else { Mark::Plain })));
    let name = tour.application().and_then(|a| tour.history().rule(a)).map_or("", |r| &*r.name);
    Page::new(format!("{name}, {}", tour.sources.file_line(span)), out)
}

fn linalg(tour: &Tour) -> Page {
    let id = match tour.subject() {
        Ok(id) => id,
        Err(why) => return missing("linalg", tour, &why),
    };
    let Some(state) = tour.state() else { return Page::note("linalg", COMPUTING) };
    let history = tour.history();
    let name = state.name(history, id);
    let title = format!("linalg of {name} {}", place(tour));
    match state.value(id) {
        None if tour.source.level == Level::O0 => {
            Page::note(title, "at -O0 nothing is extracted: `kina-ad emit --stage linalg -O0`")
        }
        None => Page::note(title, "no value of the graph that is extracted here: nothing is lowered for it"),
        Some(node) => match tour.states.linalg(tour.position, node) {
            None => Page::note(title, COMPUTING),
            Some(lines) => Page::new(title, lines.to_vec()),
        },
    }
}

fn graph(tour: &Tour) -> Page {
    let Some(state) = tour.state() else { return Page::note("graph", COMPUTING) };
    let Some(graph) = &state.graph else {
        return Page::note("graph", "nothing can be extracted here: a composite has no definition yet");
    };
    let registry = &tour.rules.registry;
    let mut lines = Vec::new();
    let mut values = rows(graph, registry, &tour.sources, state.names.clone(), &state.classes).into_iter();
    let printer = Printer::with_names(graph, registry, &tour.sources, state.names.clone());
    for (_, node) in graph.iter().filter(|(_, node)| node.kind != NodeKind::Input) {
        lines.extend(values.next());
        if tour.all {
            lines.push(Line::new(Mark::Faint, format!("    // {}", printer.origin(&node.origin))));
        }
    }
    lines.extend(values.map(|l| Line { mark: Mark::Heading, ..l }));
    let cost =
        if tour.source.level == Level::O0 { String::new() } else { format!(", cost {}", cost_text(Some(state.cost))) };
    let title = format!("graph {}: {}{cost}", place(tour), count(graph.len() - graph.inputs.len(), "value"));
    Page::new(title, lines)
}
