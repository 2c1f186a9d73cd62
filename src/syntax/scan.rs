//! A token scanner: enough to count nesting before pest recurses, to find where to go on behind a syntax error, and
//! to say what stands at the fault.

use super::form::Form;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Word,
    Number,
    /// `".."`
    Text,
    /// `(`, `[` or `{`. S-expressions have no braces.
    Open(u8),
    /// `)`, `]` or `}`; holds the opening bracket it matches.
    Close(u8),
    /// Three or more minus signs (or `─`).
    Bar,
    /// One or more characters of punctuation.
    Punctuation,
    /// A character that no token can start with.
    Stray,
}

/// A token with its byte range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

impl Token {
    pub fn text<'a>(&self, source: &'a str) -> &'a str {
        source.get(self.start..self.end).unwrap_or("")
    }
}

/// All tokens of `source`, white space and comments skipped. Works on any text. Rule files are scanned like Kina text.
pub(super) fn scan(source: &str, form: Form) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = if source.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        if matches!(c, ' ' | '\t' | '\n' | '\r') {
            at += 1;
            continue;
        }
        if rest.starts_with(form.comment()) {
            at += rest.find(['\n', '\r']).unwrap_or(rest.len());
            continue;
        }
        let (kind, len) = match c {
            '{' | '}' if form == Form::Sexpr => (Kind::Stray, 1),
            _ => token(c, rest),
        };
        tokens.push(Token { kind, start: at, end: at + len });
        at += len;
    }
    tokens
}

/// Kind and length in bytes of the token that `rest`, which starts with `c`, starts with.
fn token(c: char, rest: &str) -> (Kind, usize) {
    let run = |accept: fn(char) -> bool| rest.find(|c| !accept(c)).unwrap_or(rest.len());
    match c {
        c if is_wordlike(c) => {
            let len = if c.is_ascii_digit() { number(rest) } else { run(is_wordlike) };
            let kind = match c {
                _ if !rest[..len].is_ascii() => Kind::Stray,
                '0'..='9' => Kind::Number,
                _ => Kind::Word,
            };
            (kind, len)
        }
        '"' => match rest[1..].find(['"', '\n', '\r']) {
            Some(end) if rest[1 + end..].starts_with('"') => (Kind::Text, end + 2),
            Some(end) => (Kind::Stray, end + 1),
            None => (Kind::Stray, rest.len()),
        },
        '(' | '[' | '{' => (Kind::Open(c as u8), 1),
        ')' => (Kind::Close(b'('), 1),
        ']' => (Kind::Close(b'['), 1),
        '}' => (Kind::Close(b'{'), 1),
        '-' if rest.starts_with("---") => (Kind::Bar, run(|c| c == '-')),
        '─' if rest.starts_with("───") => (Kind::Bar, run(|c| c == '─')),
        _ => {
            let long = ["<=>", "=>", "->", "==", "!=", "<=", ">=", "++", "&&", "||"];
            if let Some(text) = long.into_iter().find(|t| rest.starts_with(t)) {
                (Kind::Punctuation, text.len())
            } else if "+-*/%=<>!.,:@|".contains(c) {
                (Kind::Punctuation, 1)
            } else {
                (Kind::Stray, c.len_utf8())
            }
        }
    }
}

/// The length of a number, with its point and the sign of its exponent where digits follow them.
fn number(rest: &str) -> usize {
    let wordlike = |from: usize| rest[from..].find(|c| !is_wordlike(c)).map_or(rest.len(), |len| from + len);
    let digit_at = |at: usize| rest.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let are_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let mut end = wordlike(0);
    if rest[end..].starts_with('.') && digit_at(end + 1) && are_digits(&rest[..end]) {
        end = wordlike(end + 1);
    }
    let mantissa = rest[..end].strip_suffix(['e', 'E']);
    let is_mantissa = mantissa.is_some_and(|m| m.split('.').all(are_digits));
    if is_mantissa && rest[end..].starts_with(['+', '-']) && digit_at(end + 1) {
        end = wordlike(end + 1);
    }
    end
}

/// May stand in what a writer means as one name: letters and digits of any script.
fn is_wordlike(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_any_text() {
        let text = "\u{FEFF}let naïve2 = // ( ünï\r---- \"a(b\" <=>}";
        let found: Vec<(Kind, &str)> = scan(text, Form::Kina).iter().map(|t| (t.kind, t.text(text))).collect();
        let expected = [
            (Kind::Word, "let"),
            (Kind::Stray, "naïve2"),
            (Kind::Punctuation, "="),
            (Kind::Bar, "----"),
            (Kind::Text, "\"a(b\""),
            (Kind::Punctuation, "<=>"),
            (Kind::Close(b'{'), "}"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn numbers_are_whole() {
        let found =
            |text: &str| -> Vec<String> { scan(text, Form::Kina).iter().map(|t| t.text(text).to_owned()).collect() };
        assert_eq!(found("1e-5 0.25E+10 12.5-3"), ["1e-5", "0.25E+10", "12.5", "-", "3"]);
        assert_eq!(
            found("1.5.exp 2.sum 1e-x 2xe-5"),
            ["1.5", ".", "exp", "2", ".", "sum", "1e", "-", "x", "2xe", "-", "5"]
        );
    }

    #[test]
    fn the_form_decides_about_comments_and_braces() {
        let text = "(a ; b (\n // {)";
        let found = |form| scan(text, form).iter().map(|t| t.text(text)).collect::<Vec<_>>();
        assert_eq!(found(Form::Kina), ["(", "a", ";", "b", "("]);
        assert_eq!(found(Form::Sexpr), ["(", "a", "/", "/", "{", ")"]);
        assert_eq!(scan(text, Form::Sexpr)[4].kind, Kind::Stray);
    }
}
