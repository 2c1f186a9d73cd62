//! Bytes, characters and tokens that belong to no form: how messages show them, and what was probably meant.

use std::fmt;

use crate::diagnostics::{Diagnostic, is_unseen};

/// The text of a program or rule file.
///
/// # Errors
/// E0110 if it is not UTF-8.
pub fn utf8(name: &str, bytes: Vec<u8>) -> Result<String, Box<Diagnostic>> {
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let utf16 = error.as_bytes().starts_with(&[0xFF, 0xFE]) || error.as_bytes().starts_with(&[0xFE, 0xFF]);
        let valid = &error.as_bytes()[..offset];
        let line = 1 + valid.iter().filter(|b| **b == b'\n').count();
        let column = 1 + valid.iter().rev().take_while(|b| **b != b'\n').count();
        let d = Diagnostic::error("E0110", format!("`{name}` is not UTF-8 text (line {line}, byte {column})"));
        Box::new(d.help(if utf16 { "it looks like UTF-16: save it as UTF-8" } else { "save the file as UTF-8" }))
    })
}

/// A token in a message: at most 24 characters, each of which can be seen.
pub(super) struct Found<'a>(pub &'a str);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`")?;
        for (i, c) in self.0.chars().enumerate() {
            match c {
                _ if i == 24 => {
                    f.write_str("..")?;
                    break;
                }
                c if is_unseen(c) => write!(f, "U+{:04X}", u32::from(c))?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("`")
    }
}

/// The character that a keyboard has where a text processor put another one.
fn plain(c: char) -> Option<char> {
    Some(match c {
        '−' | '–' | '—' | '‐' | '‑' | '─' => '-',
        '×' | '∗' | '·' | '⋅' => '*',
        '÷' | '∕' => '/',
        '“' | '”' | '„' | '″' => '"',
        '‘' | '’' => '\'',
        // Fullwidth forms stand in the order of ASCII.
        '！'..='～' => char::from_u32(u32::from(c) - 0xFEE0)?,
        _ => return None,
    })
}

/// The way out where a token is none.
pub(super) fn token_hint(token: &str) -> Option<String> {
    let first = token.chars().next()?;
    // What makes it strange, where it begins like a word.
    let strange = token.chars().find(|c| !c.is_ascii() || c.is_control()).unwrap_or(first);
    let words = [('≤', "<="), ('≥', ">="), ('≠', "!="), ('→', "->"), ('⇒', "=>"), ('∞', "inf")];
    if strange.is_whitespace() {
        Some("only spaces, tabs and ends of lines separate words: put a plain space here".to_owned())
    } else if is_unseen(strange) {
        Some("a character that cannot be seen: remove it".to_owned())
    } else if let Some((_, meant)) = words.iter().find(|(c, _)| *c == strange) {
        Some(format!("write `{meant}`"))
    } else if let Some(meant) = plain(strange) {
        Some(format!("this is not the character `{meant}` of the keyboard, which is meant here"))
    } else if !token.is_ascii() {
        Some("names are ASCII letters, digits and `_`; other characters belong in comments".to_owned())
    } else if token.starts_with('"') {
        Some("a text in quotes ends on its line".to_owned())
    } else if first.is_ascii_digit() && !token.bytes().all(|b| b.is_ascii_digit()) {
        Some("numbers look like `12`, `0.5` or `1e-5`".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_seen() {
        assert_eq!(Found("größe").to_string(), "`größe`");
        assert_eq!(Found("\0").to_string(), "`U+0000`");
        assert_eq!(Found("a\u{202E}\u{A0}b").to_string(), "`aU+202EU+00A0b`");
        assert_eq!(Found(&"x".repeat(30)).to_string(), format!("`{}..`", "x".repeat(24)));
    }

    #[test]
    fn strange_tokens_have_a_way_out() {
        for (token, words) in [
            ("\u{A0}", "plain space"),
            ("\u{2028}", "plain space"),
            ("\u{200B}", "cannot be seen"),
            ("\u{1B}", "cannot be seen"),
            ("−", "`-`"),
            ("（", "`(`"),
            ("“", "`\"`"),
            ("≤", "`<=`"),
            ("größe", "ASCII letters"),
            ("\"abc", "ends on its line"),
            ("2x", "numbers look like"),
            ("x\0", "cannot be seen"),
            ("a−b", "`-`"),
        ] {
            let hint = token_hint(token).unwrap_or_default();
            assert!(hint.contains(words), "{token}: {hint}");
        }
        assert_eq!(token_hint("12"), None);
    }
}
