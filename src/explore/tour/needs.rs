//! What a view needs that takes long to make, and the making of it here and now. (On a terminal another thread makes it.)

use super::command::Command;
use super::error::TourError;
use super::list::Row;
use super::model::{Missing, Reply, Tour, View};
use super::state::{Done, Task};
use crate::ir::Level;

impl Tour {
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
}
