//! The screen: what of a tour is seen on a terminal of any size, and what keys do. It draws into a buffer and knows no terminal, so
//! that tests see what people see.
//!
//! All that a colour says is said by a sign as well: `>` where one stands, `*` what was chosen, `-` and `+` what changed.

mod draw;
mod keys;

use std::rc::Rc;
use std::time::Duration;

use super::model::{Tour, View};
use super::page::Page;

/// Widths below this, or heights, have no room for anything.
pub const LEAST: (u16, u16) = (20, 5);
/// From this width on before-after has two columns.
pub const TWO_COLUMNS: u16 = 80;

/// What is seen of a tour beside its own state.
#[derive(Clone, Debug)]
pub struct Screen {
    colour: bool,
    /// The first row of the list, or line of a page, that is seen.
    top: usize,
    /// Columns that were scrolled away.
    left: usize,
    wrap: bool,
    /// What was typed so far.
    prompt: Option<String>,
    /// What the last key had to say.
    message: String,
    /// What is being made, and since when.
    pub busy: Option<(String, Duration)>,
    /// Lines of the body when it was drawn last.
    height: usize,
    seen: Option<View>,
    /// Has before-after two columns?
    is_beside: bool,
    /// The page that was drawn last.
    shown: Option<Rc<Page>>,
}

/// Whether to go on after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    GoOn,
    Quit,
}

impl Screen {
    pub fn new(colour: bool) -> Screen {
        Screen {
            colour,
            top: 0,
            left: 0,
            wrap: false,
            prompt: None,
            message: String::new(),
            busy: None,
            height: 1,
            seen: None,
            is_beside: false,
            shown: None,
        }
    }

    /// The rows of the list that are seen.
    pub fn rows(&self) -> std::ops::Range<usize> {
        self.top..self.top + self.height
    }

    /// Says something in the last line.
    pub fn say(&mut self, message: impl Into<String>) {
        self.message = message.into();
    }

    /// Moves the part that is seen so that line `at` of `count` is in it.
    fn follow(&mut self, at: usize, count: usize) {
        let height = self.height.max(1);
        // One line more is seen on either side, if there is room.
        let margin = usize::from(height > 4);
        self.top = self.top.min(at.saturating_sub(margin));
        self.top = self.top.max((at + margin + 1).saturating_sub(height));
        self.top = self.top.min(count.saturating_sub(height));
        // However few lines there are, this one is seen.
        self.top = self.top.min(at).max((at + 1).saturating_sub(height));
    }

    /// Another view begins at its first line.
    fn attend(&mut self, tour: &Tour) {
        if self.seen != Some(tour.view()) {
            self.seen = Some(tour.view());
            (self.top, self.left) = (0, 0);
        }
    }
}
