//! The state of a tour through a saturation: where one stands and what one looks at. No terminal has a part in it.

use std::rc::Rc;
use std::sync::Arc;

use egg::Id;

use super::command::Filter;
use super::list::{Row, rows};
use super::page::{Page, count};
use super::state::{Source, State, States};
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
    /// How often something was made that pages may show.
    pub(super) made: usize,
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

    /// The rows of the list, anew.
    pub(super) fn arrange(&mut self) {
        self.rows = rows(&self.history().record, self.passing.as_deref(), self.limit(), self.hide_empty);
    }

    /// How many applications the filter lets pass, within the fuel.
    pub fn passing(&self) -> usize {
        match &self.passing {
            None => self.limit(),
            Some(passing) => passing.partition_point(|p| *p <= self.limit()),
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
