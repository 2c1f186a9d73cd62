//! What the commands do to a tour.

use egg::Id;

use super::command::{Command, Filter};
use super::error::TourError;
use super::list::Row;
use super::model::{About, Reply, Tour, View};
use super::views;

impl Tour {
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
}
