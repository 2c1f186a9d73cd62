//! Drawing.

use std::rc::Rc;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

use super::{LEAST, Screen, TWO_COLUMNS};
use crate::explore::tour::list::Row;
use crate::explore::tour::model::{Tour, View};
use crate::explore::tour::page::{Line, Mark, Page, visible};
use crate::explore::tour::views;
use crate::ir::Level;

/// From this width on rows of the list have all their columns.
const WIDE: u16 = 72;
/// From this height of the body on the application is described below the list.
const TALL: u16 = 9;

impl Screen {
    /// Draws a tour.
    pub fn draw(&mut self, tour: &mut Tour, frame: &mut Frame<'_>) {
        let area = frame.area();
        self.draw_into(tour, area, frame.buffer_mut());
    }

    /// Draws a tour into a part of a buffer.
    pub fn draw_into(&mut self, tour: &mut Tour, area: Rect, buffer: &mut Buffer) {
        self.attend(tour);
        if area.width < LEAST.0 || area.height < LEAST.1 {
            put(buffer, area, 0, "terminal too small", Style::new());
            return;
        }
        let heading = self.style(Mark::Heading);
        put(buffer, area, 0, &header(tour, area.width), self.strong());
        put(buffer, area, 1, &tabs(tour, area.width), heading);
        let mut y = 2;
        let settings = tour.settings();
        if !settings.is_empty() && area.height > LEAST.1 + 2 {
            put(buffer, area, y, &format!("  {settings}"), self.style(Mark::Faint));
            y += 1;
        }
        let body = Rect { y: area.y + y, height: area.height - y - 1, ..area };
        match tour.view() {
            View::Applications => self.list(tour, body, buffer),
            _ => self.page(tour, body, buffer),
        }
        put(buffer, area, area.height - 1, &self.footer(tour, area.width), heading);
    }

    fn list(&mut self, tour: &mut Tour, area: Rect, buffer: &mut Buffer) {
        let page = tour.page();
        let below = if area.height >= TALL { area.height.min(20) / 2 } else { 0 };
        let mut details: Vec<Line> = Vec::new();
        for line in &page.lines {
            // What is said of an application is always wrapped.
            let indent = 9;
            let columns = usize::from(area.width).saturating_sub(3 + indent);
            for (i, text) in wrapped(&line.text, columns).into_iter().enumerate() {
                let text = if i == 0 { text } else { format!("{:indent$}{text}", "") };
                details.push(Line { mark: if i == 0 { line.mark } else { Mark::Plain }, text, about: None });
            }
        }
        let below = below.min(details.len() as u16 + 1);
        let height = area.height - below;
        self.height = usize::from(height);
        let here = tour.row();
        let count = tour.rows().len();
        self.follow(here, count);
        for y in 0..height {
            let index = self.top + usize::from(y);
            let Some(row) = tour.rows().get(index).copied() else { break };
            let text = if area.width >= WIDE { views::row_text(tour, row) } else { views::short_row_text(tour, row) };
            let mark = match row {
                _ if index == here => Mark::Current,
                Row::Application(_) | Row::Start => Mark::Plain,
                Row::Iteration(_) => Mark::Heading,
                Row::Spent(_) => Mark::Faint,
            };
            let sign = if index == here { '>' } else { ' ' };
            let text = format!("{sign} {}", cut(&visible(&text), self.left));
            put(buffer, area, y, &text, self.style(mark));
        }
        if below == 0 {
            return;
        }
        put(buffer, area, height, &"-".repeat(usize::from(area.width)), self.style(Mark::Faint));
        for (y, line) in (height + 1..area.height).zip(&details) {
            put(buffer, area, y, &format!(" {} {}", line.mark.sign(), line.text), self.style(line.mark));
        }
    }

    fn page(&mut self, tour: &mut Tour, area: Rect, buffer: &mut Buffer) {
        let page = tour.page();
        let is_new = self.shown.as_ref().is_none_or(|shown| !Rc::ptr_eq(shown, &page));
        self.shown = Some(page.clone());
        put(buffer, area, 0, &format!("  {}", page.title), self.strong());
        let area = Rect { y: area.y + 1, height: area.height - 1, ..area };
        self.height = usize::from(area.height);
        self.is_beside = page.beside.is_some() && area.width >= TWO_COLUMNS && !self.wrap;
        if page.beside.is_some() && is_new && tour.cursor == 0 {
            tour.cursor = self.first_change(&page);
        }
        if let (true, Some(beside)) = (self.is_beside, &page.beside) {
            let left = Rect { width: area.width / 2 - 2, ..area };
            let right = Rect { x: area.x + area.width / 2 + 1, width: area.width - area.width / 2 - 1, ..area };
            self.lines(tour, &page.lines, left, buffer);
            self.lines(tour, beside, right, buffer);
            for y in 0..area.height {
                put(buffer, Rect { x: area.x + area.width / 2 - 1, width: 1, ..area }, y, "|", self.style(Mark::Faint));
            }
            return;
        }
        match &page.beside {
            None => self.lines(tour, &page.lines, area, buffer),
            Some(_) => self.lines(tour, &page.one_column(), area, buffer),
        }
    }

    /// The line that one wants to see first.
    fn first_change(&self, page: &Page) -> usize {
        let is_changed = |line: &Line| line.mark != Mark::Plain && line.mark != Mark::Faint;
        let place = match &page.beside {
            Some(beside) if self.is_beside => {
                page.lines.iter().zip(beside).position(|(a, b)| is_changed(a) || is_changed(b))
            }
            _ => page.one_column().iter().position(is_changed),
        };
        place.unwrap_or(0)
    }

    fn lines(&mut self, tour: &mut Tour, lines: &[Line], area: Rect, buffer: &mut Buffer) {
        tour.cursor = tour.cursor.min(lines.len().saturating_sub(1));
        let cursor = tour.cursor;
        self.follow(cursor, lines.len());
        let width = usize::from(area.width).saturating_sub(3);
        // The keys must be readable wherever one is.
        let wraps = self.wrap || tour.view() == View::Help;
        let rows = |line: &Line| if wraps { wrapped(&line.text, width) } else { vec![cut(&line.text, self.left)] };
        if wraps {
            // Lines take several rows each: the cursor's must be among those that are seen.
            let mut room = self.height;
            let mut top = cursor;
            for i in (0..=cursor).rev() {
                let need = lines.get(i).map_or(1, |l| rows(l).len());
                if need > room {
                    break;
                }
                (room, top) = (room - need, i);
            }
            self.top = self.top.max(top).min(cursor);
        }
        let mut y = 0;
        for (i, line) in lines.iter().enumerate().skip(self.top) {
            let at = if i == cursor { '>' } else { ' ' };
            for (part, text) in rows(line).into_iter().enumerate() {
                if y >= area.height {
                    return;
                }
                let signs = if part == 0 { format!("{at}{} ", line.mark.sign()) } else { "   ".to_owned() };
                put(buffer, area, y, &format!("{signs}{text}"), self.style(line.mark));
                y += 1;
            }
        }
    }

    /// What is typed, what is to be said, or what can be done.
    fn footer(&self, tour: &Tour, width: u16) -> String {
        if let Some(typed) = &self.prompt {
            let room = usize::from(width).saturating_sub(4);
            let skipped = typed.chars().count().saturating_sub(room);
            return format!(": {}_", visible(&typed.chars().skip(skipped).collect::<String>()));
        }
        let busy = self.busy.as_ref().map(|(what, since)| format!("computing {what} {:.1} s", since.as_secs_f32()));
        if !self.message.is_empty() {
            return visible(&self.message);
        }
        let hints = match tour.view() {
            View::Applications => "left right step  enter forms  b before-after  ? keys  q quit",
            _ => "up down scroll  left right step  esc list  ? keys  q quit",
        };
        let hints = if usize::from(width) < hints.len() { "? keys  q quit" } else { hints };
        match busy {
            Some(busy) if usize::from(width) >= hints.len() + busy.len() + 2 => format!("{hints}  {busy}"),
            Some(busy) => busy,
            None => hints.to_owned(),
        }
    }

    fn strong(&self) -> Style {
        if self.colour { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() }
    }

    /// Sixteen standard colours, or none.
    fn style(&self, mark: Mark) -> Style {
        if !self.colour {
            return Style::new();
        }
        match mark {
            Mark::Plain => Style::new(),
            Mark::Heading => Style::new().fg(Color::Cyan),
            Mark::Current => Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD),
            Mark::Removed => Style::new().fg(Color::Red),
            Mark::Added => Style::new().fg(Color::Green),
            Mark::Faint => Style::new().fg(Color::DarkGray),
        }
    }
}

/// Where one stands.
fn header(tour: &Tour, width: u16) -> String {
    let iterations = tour.history().record.iterations.len();
    let (at, limit) = (tour.position(), tour.limit());
    let is_rewritten = tour.source.level != Level::O0;
    let place = format!("{at} of {limit}");
    let iteration = format!("iteration {} of {iterations}", tour.iteration());
    let cost = format!("cost {}", views::cost_with_gain(tour, at));
    let mut parts = vec![format!("{} {}", visible(&tour.file), tour.source.level), place, iteration];
    if is_rewritten {
        parts.push(cost);
    }
    let length = |parts: &[String]| parts.iter().map(|p| Span::raw(p.as_str()).width() + 3).sum::<usize>();
    // The name of the file is what one knows best, the iteration what stands in the list.
    if length(&parts) > usize::from(width) {
        parts.remove(0);
    }
    if length(&parts) > usize::from(width) && parts.len() > 2 {
        parts.remove(1);
    }
    parts.join(" | ")
}

/// The views, with the keys that show them.
fn tabs(tour: &Tour, width: u16) -> String {
    let one = |view: &View| {
        let name = view.name();
        let key = crate::explore::tour::command::entry_of(name).and_then(|e| e.keys.first()).unwrap_or(&"");
        let name = if *view == View::Applications { "list" } else { name };
        if *view == tour.view() { format!("[{key} {name}]") } else { format!(" {key} {name} ") }
    };
    let all: String = View::ALL.iter().map(one).collect();
    if all.len() <= usize::from(width) { all } else { one(&tour.view()) + "  tab: next view" }
}

/// Puts a text into a row of an area; what does not fit is cut.
fn put(buffer: &mut Buffer, area: Rect, y: u16, text: &str, style: Style) {
    if y < area.height {
        buffer.set_stringn(area.x, area.y + y, text.trim_end(), usize::from(area.width), style);
    }
}

fn width_of(c: char) -> usize {
    Span::raw(c.encode_utf8(&mut [0; 4]) as &str).width()
}

/// A text without its first columns.
fn cut(text: &str, columns: usize) -> String {
    let mut gone = 0;
    let mut chars = text.chars();
    while gone < columns {
        match chars.next() {
            Some(c) => gone += width_of(c),
            None => break,
        }
    }
    chars.collect()
}

/// A text in pieces of at most so many columns, each ended after a space or comma if there is one.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    // A character may be two columns wide.
    let columns = columns.max(2);
    let mut out = Vec::new();
    let mut line = String::new();
    let mut width = 0;
    for c in text.chars() {
        let own = width_of(c);
        if width + own > columns {
            // Not within a word, unless it is longer than half a line.
            let end = line.rfind([' ', ',']).map(|at| at + 1).filter(|at| *at > line.len() / 2 && *at < line.len());
            let rest = end.map(|at| line.split_off(at)).unwrap_or_default();
            out.push(std::mem::replace(&mut line, rest));
            width = Span::raw(line.as_str()).width();
        }
        if line.is_empty() && c == ' ' && !out.is_empty() {
            continue;
        }
        line.push(c);
        width += own;
    }
    out.push(line);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_and_wrapped_by_columns() {
        assert_eq!(cut("abc", 1), "bc");
        assert_eq!(cut("abc", 9), "");
        assert_eq!(cut("日本語", 2), "本語");
        assert_eq!(wrapped("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(wrapped("日本語", 4), ["日本", "語"]);
        assert_eq!(wrapped("add(abc, de)", 10), ["add(abc, ", "de)"]);
        assert_eq!(wrapped("abcdefgh ij", 8), ["abcdefgh", "ij"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
