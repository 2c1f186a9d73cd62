//! What a view shows, as lines: the screen draws them, a script prints them.

use std::borrow::Cow;

use egg::Id;
use serde_json::{Value, json};

use crate::diagnostics::is_unseen;

/// What a line is. Each has a sign of its own in the text; a colour only says it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    #[default]
    Plain,
    Heading,
    /// Where one stands; what was chosen.
    Current,
    Removed,
    Added,
    /// Less important.
    Faint,
}

impl Mark {
    /// One column before the text.
    pub fn sign(self) -> char {
        match self {
            Mark::Plain | Mark::Heading | Mark::Faint => ' ',
            Mark::Current => '*',
            Mark::Removed => '-',
            Mark::Added => '+',
        }
    }
}

/// A line of a page. All of its characters can be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub mark: Mark,
    pub text: String,
    /// The class that it speaks of.
    pub about: Option<Id>,
}

impl Line {
    pub fn new(mark: Mark, text: impl AsRef<str>) -> Line {
        Line { mark, text: visible(text.as_ref()), about: None }
    }

    pub fn plain(text: impl AsRef<str>) -> Line {
        Line::new(Mark::Plain, text)
    }

    #[must_use]
    pub fn about(self, id: Id) -> Line {
        Line { about: Some(id), ..self }
    }

    /// With its sign.
    pub fn marked(&self) -> String {
        format!("{} {}", self.mark.sign(), self.text)
    }
}

/// Names and texts may hold characters that a terminal would obey.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("  "),
            c if is_unseen(c) => out.push_str(&format!("U+{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// What a view shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub title: String,
    pub lines: Vec<Line>,
    /// The second column of before-after: what was before stands in `lines`, what is now here, line by line beside each other.
    pub beside: Option<Vec<Line>>,
}

impl Page {
    pub fn new(title: impl AsRef<str>, lines: Vec<Line>) -> Page {
        Page { title: visible(title.as_ref()), lines, beside: None }
    }

    /// A page that only says something.
    pub fn note(title: impl AsRef<str>, text: impl AsRef<str>) -> Page {
        Page::new(title, text.as_ref().lines().map(Line::plain).collect())
    }

    /// Two columns one above the other: lines that stand on both sides once.
    pub fn one_column(&self) -> Cow<'_, [Line]> {
        let Some(beside) = &self.beside else { return Cow::Borrowed(&self.lines) };
        let mut out = Vec::new();
        let mut added = Vec::new();
        for (before, after) in self.lines.iter().zip(beside) {
            let is_same = before.mark != Mark::Removed && after.mark != Mark::Added;
            if is_same {
                out.append(&mut added);
                out.push(if after.text.is_empty() { before.clone() } else { after.clone() });
                continue;
            }
            if before.mark == Mark::Removed {
                out.push(before.clone());
            }
            if after.mark == Mark::Added {
                added.push(after.clone());
            }
        }
        out.append(&mut added);
        Cow::Owned(out)
    }

    /// The page as text.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.title);
        for line in self.one_column().iter() {
            out.push_str(line.marked().trim_end());
            out.push('\n');
        }
        out
    }

    /// The page as a JSON value, where there is no better one.
    pub fn json(&self) -> Value {
        let lines: Vec<Value> =
            self.one_column().iter().map(|l| json!({ "mark": l.mark.sign().to_string(), "text": l.text })).collect();
        json!({ "title": self.title, "lines": lines })
    }
}

/// `1 line`, `2 lines`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
