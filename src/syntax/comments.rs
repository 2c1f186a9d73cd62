//! The comments of a text, which its syntax tree does not have.

use super::form::Form;
use super::scan::scan;

/// A comment of a program's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Where it starts, in bytes.
    pub start: u32,
    /// What it says, without the mark before it.
    pub text: String,
    /// Does it share its line with what it stands behind?
    pub beside: bool,
    /// Does an empty line follow?
    pub before_gap: bool,
}

/// The comments of a text in their order.
pub fn comments(source: &str) -> Vec<Comment> {
    let form = Form::of(source);
    let tokens = scan(source, form);
    let mut found = Vec::new();
    let ends = std::iter::once(0).chain(tokens.iter().map(|t| t.end));
    let starts = tokens.iter().map(|t| t.start).chain([source.len()]);
    // White space and comments are all that lies between tokens.
    for (gap_start, gap_end) in ends.zip(starts) {
        let gap = &source[gap_start..gap_end];
        let mut at = 0;
        let mut is_first_line = true;
        while at < gap.len() {
            let line = &gap[at..];
            let line = &line[..line.find(['\n', '\r']).unwrap_or(line.len())];
            let behind = &gap[at + line.len()..];
            let end_of_line = if behind.starts_with("\r\n") { 2 } else { behind.len().min(1) };
            if let Some(mark) = line.find(form.comment()) {
                let text = &line[mark..];
                let text = match form {
                    Form::Kina => &text[2..],
                    Form::Sexpr => text.trim_start_matches(';'),
                };
                let next = &behind[end_of_line..];
                let next_line = &next[..next.find(['\n', '\r']).unwrap_or(0)];
                let is_last = gap_end == source.len() && next.trim().is_empty();
                found.push(Comment {
                    start: (gap_start + at + mark) as u32,
                    text: text.trim_end().to_owned(),
                    beside: is_first_line && gap_start > 0,
                    before_gap: !is_last && next.contains(['\n', '\r']) && next_line.trim().is_empty(),
                });
            }
            at += line.len() + end_of_line;
            is_first_line = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_both_forms_with_their_places() {
        for (text, mark) in [
            ("\u{FEFF}// a\r\n//  b \n\n// c\r1 // d\r\n\r\n  // e", "//"),
            ("; a\r\n;;  b \n\n; c\r(program 1 ; d\r\n\r\n  ; e", ";"),
        ] {
            let found = comments(text);
            let shown: Vec<(&str, bool, bool)> =
                found.iter().map(|c| (c.text.as_str(), c.beside, c.before_gap)).collect();
            let expected = [
                (" a", false, false),
                ("  b", false, true),
                (" c", false, false),
                (" d", true, true),
                (" e", false, false),
            ];
            assert_eq!(shown, expected, "{text}");
            assert!(found.iter().all(|c| text[c.start as usize..].starts_with(mark)));
        }
    }
}
