//! What keys do.

use super::{Flow, Screen};
use crate::explore::tour::command::{self, Command, Press};
use crate::explore::tour::model::{Reply, Tour, View};
use crate::explore::tour::views;

/// The longest command that can be typed.
const MAX_TYPED: usize = 1_000;
/// Columns of a step sideways.
const SIDEWAYS: usize = 8;

impl Screen {
    /// A key, called as in the table of commands; characters by themselves.
    pub fn press(&mut self, tour: &mut Tour, key: &str) -> Flow {
        self.attend(tour);
        if key == "ctrl-c" {
            return Flow::Quit;
        }
        if self.prompt.is_some() {
            return self.type_key(tour, key);
        }
        self.message.clear();
        let is_list = tour.view() == View::Applications;
        let page = self.height.saturating_sub(1).max(1);
        match key {
            "up" | "k" if is_list => self.step(tour, -1),
            "down" | "j" if is_list => self.step(tour, 1),
            "pageup" if is_list => self.step(tour, -(page as isize)),
            "pagedown" if is_list => self.step(tour, page as isize),
            "up" | "k" => self.scroll(tour, -1),
            "down" | "j" => self.scroll(tour, 1),
            "pageup" => self.scroll(tour, -(page as isize)),
            "pagedown" => self.scroll(tour, page as isize),
            "home" if !is_list => self.scroll(tour, isize::MIN),
            "end" if !is_list => self.scroll(tour, isize::MAX),
            ">" => self.left += SIDEWAYS,
            "<" => self.left = self.left.saturating_sub(SIDEWAYS),
            "w" => {
                self.wrap = !self.wrap;
                self.left = 0;
                self.say(if self.wrap { "long lines are wrapped" } else { "long lines are cut: < and > scroll" });
            }
            "tab" => return self.next_view(tour),
            "n" => return self.run(tour, "search"),
            "C" => self.prompt = Some("class ".to_owned()),
            ":" => self.prompt = Some(String::new()),
            "enter" if !is_list => {
                if let Some(id) = self.line_about(tour) {
                    tour.look_at(id);
                    (self.top, self.left) = (0, 0);
                }
            }
            _ => match command::press_of(key) {
                Some(Press::Run(line)) => return self.run(tour, line),
                Some(Press::Ask(start)) => self.prompt = Some(start.to_owned()),
                None if key.chars().count() == 1 => self.say(format!("no command has the key {key}; ? lists the keys")),
                None => {}
            },
        }
        self.attend(tour);
        Flow::GoOn
    }

    /// The class that the line at the cursor speaks of.
    fn line_about(&self, tour: &mut Tour) -> Option<egg::Id> {
        let page = tour.page();
        let cursor = tour.cursor;
        // The columns of before-after have as many lines each; one above the other, they are counted in one.
        let line = |lines: &[crate::explore::tour::page::Line]| lines.get(cursor).and_then(|l| l.about);
        match &page.beside {
            Some(beside) if self.is_beside => line(beside).or_else(|| line(&page.lines)),
            _ => line(&page.one_column()),
        }
    }

    /// Steps over the rows of the list.
    fn step(&mut self, tour: &mut Tour, by: isize) {
        let count = by.unsigned_abs();
        let forwards = by > 0;
        let command = |n: usize| if forwards { Command::Next(n) } else { Command::Back(n) };
        let done = tour.run(&command(count));
        if let Err(error) = done {
            // A page may be more than there is.
            let edge = if forwards { Command::Last } else { Command::First };
            let moved = count > 1 && tour.position() != if forwards { tour.limit() } else { 0 };
            if !(moved && tour.run(&edge).is_ok()) {
                self.say(error.to_string());
            }
        }
    }

    fn scroll(&mut self, tour: &mut Tour, by: isize) {
        let count = self.count(tour);
        tour.cursor = tour.cursor.min(count.saturating_sub(1)).saturating_add_signed(by).min(count.saturating_sub(1));
    }

    /// Lines of the page as it is seen.
    fn count(&self, tour: &mut Tour) -> usize {
        let page = tour.page();
        if self.is_beside || page.beside.is_none() { page.lines.len() } else { page.one_column().len() }
    }

    fn next_view(&mut self, tour: &mut Tour) -> Flow {
        let at = View::ALL.iter().position(|v| *v == tour.view()).unwrap_or(0);
        // At the start there is no rule to show.
        for step in 1..View::ALL.len() {
            let view = View::ALL[(at + step) % View::ALL.len()];
            if Command::parse(view.name()).is_ok_and(|c| tour.run(&c).is_ok()) {
                break;
            }
        }
        self.attend(tour);
        Flow::GoOn
    }

    fn type_key(&mut self, tour: &mut Tour, key: &str) -> Flow {
        let Some(typed) = &mut self.prompt else { return Flow::GoOn };
        match key {
            "esc" => self.prompt = None,
            "enter" => {
                let line = self.prompt.take().unwrap_or_default();
                if !line.trim().is_empty() {
                    return self.run(tour, &line);
                }
            }
            "backspace" => {
                if typed.pop().is_none() {
                    self.prompt = None;
                }
            }
            "ctrl-u" => typed.clear(),
            "space" => typed.push(' '),
            key if key.chars().count() == 1 && typed.len() < MAX_TYPED => typed.push_str(key),
            _ => {}
        }
        Flow::GoOn
    }

    /// Runs a command as it is typed.
    fn run(&mut self, tour: &mut Tour, line: &str) -> Flow {
        let done = Command::parse(line).map_err(Into::into).and_then(|c| Ok((tour.run(&c)?, c)));
        match done {
            Ok((Reply::Quit, _)) => return Flow::Quit,
            Ok((Reply::Cost, _)) => {
                let at = tour.position();
                self.say(format!(
                    "cost {} {}; {} at the start, {} at the end",
                    views::cost_with_gain(tour, at),
                    views::place(tour),
                    views::cost_text(tour.cost_at(0)),
                    views::cost_text(tour.cost_at(tour.limit()))
                ));
            }
            Ok((Reply::Set, Command::Forms(_))) => {
                self.say(if tour.shows_all() { "everything is shown" } else { "some is hidden: key a shows all" });
            }
            Ok((Reply::Set, Command::HideEmpty(_))) => {
                let hidden = tour.settings().contains("hidden");
                self.say(if hidden { "empty iterations are hidden" } else { "empty iterations are shown" });
            }
            Ok((Reply::Set, _)) => self.say(tour.settings()),
            Ok(_) => {}
            Err(error) => {
                let error: crate::explore::tour::TourError = error;
                let diagnostic = error.diagnostic(tour);
                let help = diagnostic.help.first().map(|h| format!("; {h}")).unwrap_or_default();
                self.say(format!("{}{help}", diagnostic.message));
            }
        }
        self.attend(tour);
        Flow::GoOn
    }
}
