//! The state of a tour through a saturation: where one stands and what one looks at. No terminal has a part in it.

use std::rc::Rc;
use std::sync::Arc;

use egg::Id;

use super::command::{Command, Filter};
use super::error::TourError;
use super::list::{Row, rows};
use super::page::{Page, count};
use super::state::{Done, Source, State, States, Task};
use super::views;
use crate::diagnostics::SourceMap;
use crate::egraph::history::{History, Sides};
use crate::egraph::record::Application;
use crate::egraph::{Differentiated, Report, Stop};
use crate::ir::Level;
use crate::rules::RuleSet;
use crate::{Graph, Refusal, Session};

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Applications,
    Class,
    BeforeAfter,
    Rule,
    Linalg,
    Graph,
    Help,
}

impl View {
    /// In the order in which tab goes through them.
    pub const ALL: [View; 7] =
        [View::Applications, View::Class, View::BeforeAfter, View::Rule, View::Linalg, View::Graph, View::Help];

    /// The name of the command that shows it.
    pub fn name(self) -> &'static str {
        match self {
            View::Applications => "applications",
            View::Class => "class",
            View::BeforeAfter => "before-after",
            View::Rule => "rule",
            View::Linalg => "linalg",
            View::Graph => "graph",
            View::Help => "help",
        }
    }
}

/// The value that `class` and `linalg` are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum About {
    /// The one that the application at the position rewrote.
    #[default]
    Rewritten,
    Id(Id),
    /// Called so in an extracted graph.
    Named(String),
}

/// What a command did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The position is another one, or could have been.
    Moved,
    /// Another view, or another part of it.
    Shown,
    /// The line of the view at which the text was found.
    Found(usize),
    Cost,
    /// The filter, fuel or what is hidden.
    Set,
    Quit,
}

/// A tour through what a saturation did.
pub struct Tour {
    pub(super) source: Arc<Source>,
    pub(super) rules: RuleSet,
    pub(super) sources: SourceMap,
    /// The program's file.
    pub file: String,
    pub(super) report: Option<Report>,
    pub(super) states: States,
    /// The name of the class that each application rewrote, as it was called then.
    pub(super) subjects: Vec<Box<str>>,
    pub(super) position: usize,
    pub(super) fuel: Option<usize>,
    pub(super) filter: Filter,
    /// The applications that the filter lets pass, numbered from 1; all if there is no filter.
    pub(super) passing: Option<Vec<usize>>,
    pub(super) hide_empty: bool,
    pub(super) rows: Vec<Row>,
    pub(super) view: View,
    pub(super) about: About,
    pub(super) all: bool,
    /// The line of the view, apart from the list, at which one stands.
    pub cursor: usize,
    pub(super) sought: Option<String>,
    /// Of the application at the position.
    pub(super) sides: Option<Sides>,
    page: Option<(PageKey, Rc<Page>)>,
    /// States that were made so far.
    made: usize,
}

type PageKey = (View, usize, About, bool, usize);

impl Tour {
    /// Saturates a checked program and keeps the record. Nothing is extracted yet.
    ///
    /// # Errors
    /// As for [`Session::differentiate`] and [`Session::optimise`].
    pub fn open(session: Session, graph: &Graph, file: &str, level: Level) -> Result<Tour, Refusal> {
        let mut program = session.differentiate(graph)?;
        let report = session.record(&mut program, level)?;
        Ok(Tour::new(session, program, report, file, level))
    }

    fn new(session: Session, program: Differentiated, report: Option<Report>, file: &str, level: Level) -> Tour {
        let source = Arc::new(Source::new(program, &session.rules, level));
        let history = &source.history;
        let mut partition = history.partition();
        history.advance(&mut partition, history.record.start);
        let mut subjects = Vec::with_capacity(history.record.applications.len());
        for application in &history.record.applications {
            subjects.push(history.name(&partition, application.class).into_boxed_str());
            history.advance(&mut partition, application.after);
        }
        let states = States::new(history.len());
        let mut tour = Tour {
            rules: session.rules,
            sources: session.sources,
            file: file.to_owned(),
            report,
            states,
            subjects,
            position: 0,
            fuel: None,
            filter: Filter::None,
            passing: None,
            hide_empty: false,
            rows: Vec::new(),
            view: View::Applications,
            about: About::Rewritten,
            all: false,
            cursor: 0,
            sought: None,
            sides: None,
            page: None,
            made: 0,
            source,
        };
        tour.arrange();
        tour
    }

    pub fn history(&self) -> &History {
        &self.source.history
    }

    /// What states are made from, for a thread that makes them.
    pub fn source(&self) -> Arc<Source> {
        self.source.clone()
    }

    /// Applications done.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Applications that the fuel allows.
    pub fn limit(&self) -> usize {
        let all = self.history().record.applications.len();
        self.fuel.map_or(all, |fuel| fuel.min(all))
    }

    pub fn view(&self) -> View {
        self.view
    }

    /// Are all forms shown, and all lines?
    pub fn shows_all(&self) -> bool {
        self.all
    }

    /// The iteration of the last application done; 0 before the first.
    pub fn iteration(&self) -> usize {
        self.application().map_or(0, |a| a.iteration)
    }

    /// The last application done.
    pub fn application(&self) -> Option<&Application> {
        self.history().record.applications.get(self.position.checked_sub(1)?)
    }

    /// The rows of the list.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The row of the position.
    pub fn row(&self) -> usize {
        let place = match self.position {
            0 => self.rows.iter().position(|r| *r == Row::Start),
            at => self.rows.iter().position(|r| *r == Row::Application(at)),
        };
        // What the filter hides stands behind the last that it shows.
        place.unwrap_or_else(|| {
            let before = |r: &Row| matches!(r, Row::Application(n) if *n < self.position);
            self.rows.iter().rposition(before).unwrap_or(0)
        })
    }

    /// The state at the position, if it was made.
    pub fn state(&self) -> Option<&Rc<State>> {
        self.states.get(self.position)
    }

    /// How the saturation ended.
    pub fn end(&self) -> &'static str {
        match self.report.as_ref().map(|r| r.stop) {
            None => "nothing is rewritten at -O0",
            Some(Stop::Saturated) => "saturated: nothing more to rewrite",
            Some(Stop::Nodes) => "ended by its budget of e-nodes",
            Some(Stop::Steps) => "ended by its budget of steps",
            Some(Stop::Iterations) => "ended by its budget of iterations",
            Some(Stop::Applications) => "ended by its budget of applications",
        }
    }

    /// Runs a command. If it is refused, nothing changes.
    ///
    /// # Errors
    /// What cannot be done here, and why.
    pub fn run(&mut self, command: &Command) -> Result<Reply, TourError> {
        match command {
            Command::Next(n) => self.step(*n, true),
            Command::Back(n) => self.step(*n, false),
            Command::NextIteration => {
                let ends = self.history().record.iterations.iter().map(|i| i.applications.1);
                let next = ends.filter(|end| *end > self.position).min().filter(|end| *end <= self.limit());
                // Fuel may end within an iteration.
                let next = next.or_else(|| (self.position < self.limit()).then(|| self.limit()));
                self.go(next.ok_or_else(|| self.no_more())?)
            }
            Command::PreviousIteration => {
                if self.position == 0 {
                    return Err(TourError::AtTheStart);
                }
                let ends = self.history().record.iterations.iter().map(|i| i.applications.1);
                self.go(ends.filter(|end| *end < self.position).max().unwrap_or(0))
            }
            Command::First => self.go(0),
            Command::Last => self.go(self.limit()),
            Command::Goto(n) => self.go(*n),
            Command::Iteration(0) => self.go(0),
            Command::Iteration(n) => {
                let iterations = &self.history().record.iterations;
                let end = iterations.get(n - 1).map(|i| i.applications.1);
                let error = TourError::NoIteration { wanted: *n, last: iterations.len() };
                self.go(end.ok_or(error)?)
            }
            Command::Filter(filter) => self.set_filter(filter.clone()),
            Command::HideEmpty(on) => {
                self.hide_empty = on.unwrap_or(!self.hide_empty);
                self.arrange();
                Ok(Reply::Set)
            }
            Command::Applications(_) => self.show(View::Applications),
            Command::Class(about) => self.look(View::Class, about.as_deref()),
            Command::Linalg(about) => self.look(View::Linalg, about.as_deref()),
            Command::Forms(all) => {
                self.all = all.unwrap_or(!self.all);
                Ok(Reply::Set)
            }
            Command::BeforeAfter => self.show(View::BeforeAfter),
            Command::Rule if self.application().is_none() => Err(self.nothing_applied()),
            Command::Rule => self.show(View::Rule),
            Command::Graph => self.show(View::Graph),
            Command::Cost => Ok(Reply::Cost),
            Command::Fuel(fuel) => {
                self.fuel = *fuel;
                self.arrange();
                // What is extracted from such a run is what is asked for.
                if fuel.is_some() || self.position > self.limit() {
                    self.go(self.limit())?;
                }
                Ok(Reply::Set)
            }
            Command::Search(text) => self.search(text.as_deref()),
            Command::Help => self.show(View::Help),
            Command::Quit => Ok(Reply::Quit),
        }
    }

    fn show(&mut self, view: View) -> Result<Reply, TourError> {
        if self.view != view {
            (self.view, self.cursor) = (view, 0);
        }
        Ok(Reply::Shown)
    }

    fn look(&mut self, view: View, about: Option<&str>) -> Result<Reply, TourError> {
        let about = match about {
            None => About::Rewritten,
            Some(text) => match self.history().find(text) {
                Some(id) => About::Id(id),
                None => About::Named(text.to_owned()),
            },
        };
        if about == About::Rewritten && self.application().is_none() {
            return Err(self.nothing_applied());
        }
        if (self.view, &self.about) != (view, &about) {
            (self.view, self.about, self.cursor) = (view, about, 0);
        }
        Ok(Reply::Shown)
    }

    /// Looks at the forms of a class.
    pub fn look_at(&mut self, id: Id) {
        (self.view, self.about, self.cursor) = (View::Class, About::Id(id), 0);
    }

    fn nothing_applied(&self) -> TourError {
        match self.limit() {
            0 => TourError::Nothing(self.end()),
            _ => TourError::NothingApplied,
        }
    }

    fn no_more(&self) -> TourError {
        match (self.limit(), &self.filter, self.fuel) {
            (0, _, None) => TourError::Nothing(self.end()),
            (_, Filter::None, Some(fuel)) if fuel < self.history().record.applications.len() => {
                TourError::OutOfFuel(fuel)
            }
            (_, Filter::None, _) => TourError::AtTheEnd,
            (_, filter, _) => TourError::NoneFurther(filter.text()),
        }
    }

    /// `n` applications forwards or backwards, of those that the filter lets pass.
    fn step(&mut self, n: usize, forwards: bool) -> Result<Reply, TourError> {
        if n == 0 {
            return self.go(self.position);
        }
        let limit = self.limit();
        let to = match (&self.passing, forwards) {
            (None, true) => self.position.checked_add(n).filter(|to| *to <= limit),
            (None, false) => self.position.checked_sub(n),
            (Some(passing), true) => {
                let next = passing.partition_point(|p| *p <= self.position);
                passing.get(next.saturating_add(n - 1)).copied().filter(|to| *to <= limit)
            }
            (Some(passing), false) => {
                let before = passing.partition_point(|p| *p < self.position);
                // The start is before all of them.
                match before.checked_sub(n) {
                    Some(place) => passing.get(place).copied(),
                    None if before + 1 == n && self.position > 0 => Some(0),
                    None => None,
                }
            }
        };
        match to {
            Some(to) => self.go(to),
            None if forwards => Err(self.no_more()),
            None => Err(TourError::AtTheStart),
        }
    }

    fn go(&mut self, to: usize) -> Result<Reply, TourError> {
        if to > self.limit() {
            return Err(match self.fuel {
                Some(fuel) if fuel < self.history().record.applications.len() => TourError::OutOfFuel(fuel),
                _ => TourError::NoSuchPlace { wanted: to, last: self.limit() },
            });
        }
        if to != self.position {
            self.position = to;
            self.sides = to.checked_sub(1).and_then(|index| {
                let history = self.history();
                let mut partition = history.partition();
                history.advance(&mut partition, history.moment_of(index));
                history.sides(index, &partition)
            });
            // A rule to show there is none at the start.
            if to == 0 && self.view == View::Rule {
                self.view = View::Applications;
            }
            if self.view != View::Graph {
                self.cursor = 0;
            }
        }
        Ok(Reply::Moved)
    }

    fn set_filter(&mut self, filter: Filter) -> Result<Reply, TourError> {
        let history = self.history();
        let applications = &history.record.applications;
        let passing: Option<Vec<usize>> = match &filter {
            Filter::None => None,
            Filter::Rule(name) => {
                let answers = |rule: &str| {
                    let subject = rule.strip_prefix("vjp ").unwrap_or(rule);
                    rule == name || subject == name || subject.split(' ').next() == Some(name)
                };
                let is_known = crate::rules::listing::entries(&self.rules).iter().any(|e| e.answers_to(name));
                let places = applications.iter().enumerate();
                let passing: Vec<usize> = places
                    .filter(|(_, a)| history.rule(a).is_some_and(|rule| answers(&rule.name)))
                    .map(|(i, _)| i + 1)
                    .collect();
                if passing.is_empty() && !is_known {
                    return Err(TourError::UnknownRule(name.clone()));
                }
                Some(passing)
            }
            Filter::Op(name) => {
                let Some(op) = self.rules.registry.id(name) else { return Err(TourError::UnknownOp(name.clone())) };
                Some((0..applications.len()).filter(|i| history.operators(*i).contains(&op)).map(|i| i + 1).collect())
            }
        };
        (self.filter, self.passing) = (filter, passing);
        self.arrange();
        Ok(Reply::Set)
    }

    /// The rows of the list, anew.
    fn arrange(&mut self) {
        self.rows = rows(&self.history().record, self.passing.as_deref(), self.limit(), self.hide_empty);
    }

    /// How many applications the filter lets pass, within the fuel.
    pub fn passing(&self) -> usize {
        match &self.passing {
            None => self.limit(),
            Some(passing) => passing.partition_point(|p| *p <= self.limit()),
        }
    }

    fn search(&mut self, text: Option<&str>) -> Result<Reply, TourError> {
        let Some(text) = text.map(str::to_owned).or_else(|| self.sought.clone()) else { return Err(TourError::NoText) };
        self.sought = Some(text.clone());
        let wanted = text.to_lowercase();
        if self.view == View::Applications {
            let from = self.row() + 1;
            let order = (from..self.rows.len()).chain(0..from.min(self.rows.len()));
            let found = order.map(|row| (row, self.rows[row])).find_map(|(row, kind)| match kind {
                Row::Application(at) if views::row_text(self, kind).to_lowercase().contains(&wanted) => Some((row, at)),
                _ => None,
            });
            let Some((row, at)) = found else { return Err(TourError::NotFound(text)) };
            self.go(at)?;
            return Ok(Reply::Found(row));
        }
        let page = self.page();
        let lines = page.one_column();
        let from = self.cursor + 1;
        let mut order = (from..lines.len()).chain(0..from.min(lines.len()));
        match order.find(|i| lines[*i].text.to_lowercase().contains(&wanted)) {
            Some(line) => {
                self.cursor = line;
                Ok(Reply::Found(line))
            }
            None => Err(TourError::NotFound(text)),
        }
    }

    /// The class that the view is about, as far as it can be known with the states that there are.
    pub fn subject(&self) -> Result<Id, Missing> {
        match &self.about {
            About::Rewritten => self.application().map(|a| a.class).ok_or(Missing::Nothing),
            About::Id(id) => Ok(*id),
            About::Named(name) => {
                for at in [self.position, self.limit()] {
                    let Some(state) = self.states.get(at) else { return Err(Missing::State(at)) };
                    if let Some(id) = state.named(name) {
                        return Ok(id);
                    }
                }
                Err(Missing::Unknown(name.clone()))
            }
        }
    }

    /// What has to be made for the view, most urgent first. `rows` are those of the list that are seen.
    pub fn wanted(&self, rows: std::ops::Range<usize>) -> Vec<Task> {
        let mut tasks = Vec::new();
        let state = |at: usize, tasks: &mut Vec<Task>| {
            if self.states.get(at).is_none() {
                tasks.push(Task::State(at));
            }
        };
        state(self.position, &mut tasks);
        match self.view {
            View::BeforeAfter => state(self.position.saturating_sub(1), &mut tasks),
            View::Class | View::Linalg => {
                let subject = self.subject();
                if let Err(Missing::State(at)) = subject {
                    state(at, &mut tasks);
                }
                if let (View::Linalg, Ok(id), Some(state)) = (self.view, subject, self.state())
                    && let (Some(node), Some(graph)) = (state.value(id), &state.graph)
                    && self.states.linalg(self.position, node).is_none()
                {
                    tasks.push(Task::Linalg { at: self.position, node, graph: graph.clone() });
                }
            }
            _ => {}
        }
        let cost = |at: usize, tasks: &mut Vec<Task>| {
            let is_known = self.states.costs.contains_key(&at) || self.source.level == Level::O0;
            if !is_known && !tasks.iter().any(|t| matches!(t, Task::Cost(n) | Task::State(n) if *n == at)) {
                tasks.push(Task::Cost(at));
            }
        };
        cost(self.position.saturating_sub(1), &mut tasks);
        if self.view == View::Applications {
            let here = self.row();
            let mut seen: Vec<usize> = rows.filter(|row| *row < self.rows.len()).collect();
            seen.sort_by_key(|row| row.abs_diff(here));
            for row in seen {
                match self.rows[row] {
                    Row::Start => cost(0, &mut tasks),
                    Row::Application(at) => cost(at, &mut tasks),
                    Row::Iteration(_) | Row::Spent(_) => {}
                }
            }
        }
        tasks
    }

    /// Takes what a task made.
    pub fn take(&mut self, done: Done) {
        // Pages are made anew if they may show it.
        let is_far = |at: usize| at != self.position && at + 1 != self.position;
        if !matches!(done, Done::Cost(at, _) if is_far(at)) {
            self.made += 1;
        }
        self.states.take(done);
    }

    /// Makes everything that the view wants, here and now.
    pub fn settle(&mut self, rows: std::ops::Range<usize>) {
        while let Some(task) = self.wanted(rows.clone()).into_iter().next() {
            let done = self.source.run(&task);
            self.take(done);
        }
    }

    /// Runs a command and makes all that its answer needs. If it is refused, nothing changes.
    ///
    /// # Errors
    /// As for [`run`](Self::run), and values that are not there.
    pub fn run_settled(&mut self, command: &Command) -> Result<Reply, TourError> {
        if matches!(command, Command::Search(_)) {
            self.settle(0..0);
        }
        let before = (self.view, self.about.clone(), self.cursor);
        let reply = self.run(command)?;
        self.settle(0..0);
        if matches!(self.view, View::Class | View::Linalg)
            && let Err(Missing::Unknown(name)) = self.subject()
        {
            (self.view, self.about, self.cursor) = before;
            return Err(TourError::UnknownValue(name));
        }
        Ok(reply)
    }

    /// Makes the costs after so many applications.
    pub fn settle_costs(&mut self, at: &[usize]) {
        for at in at {
            if self.source.level != Level::O0 && !self.states.costs.contains_key(at) {
                let done = self.source.run(&Task::Cost(*at));
                self.take(done);
            }
        }
    }

    /// The cost after so many applications, if it is known: `None` inside where nothing can be extracted.
    pub fn cost_at(&self, at: usize) -> Option<Option<u64>> {
        self.states.costs.get(&at).copied()
    }

    /// The page of the view; for the list, what is said of the application at the position.
    pub fn page(&mut self) -> Rc<Page> {
        let key = (self.view, self.position, self.about.clone(), self.all, self.made);
        if let Some((known, page)) = &self.page
            && *known == key
        {
            return page.clone();
        }
        let page = Rc::new(views::page(self));
        self.page = Some((key, page.clone()));
        page
    }

    /// What was set, in a line.
    pub fn settings(&self) -> String {
        let mut parts = Vec::new();
        if self.filter != Filter::None {
            parts.push(format!("filter {}: {}", self.filter.text(), count(self.passing(), "application")));
        }
        if let Some(fuel) = self.fuel {
            parts.push(format!("fuel {fuel}"));
        }
        if self.hide_empty {
            parts.push("empty iterations hidden".to_owned());
        }
        parts.join("; ")
    }
}

/// Why it is not known what a view is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// No application was done, whose value it could be.
    Nothing,
    /// That is known once this state was made.
    State(usize),
    /// No value has that name.
    Unknown(String),
}
