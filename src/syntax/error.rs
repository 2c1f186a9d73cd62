//! Syntax errors in human words.

use std::fmt;

use pest::error::{Error, ErrorVariant, InputLocation};

use super::grammar::{Rule, Weight, describe};
use super::scan::{Kind, Token};
use crate::diagnostics::{Diagnostic, FileId, SourceMap};

/// The byte offset of an error in the text that pest was given.
pub(super) fn offset(error: &Error<Rule>) -> usize {
    match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    }
}

/// Words of expression syntax that cannot be names.
const RESERVED: [&str; 15] =
    ["let", "in", "fn", "handle", "with", "tensor", "if", "then", "else", "for", "true", "false", "inf", "nan", "none"];

/// Turns pest's error into a diagnostic. `at` is its byte offset in the file; `tokens` are those of the parsed part
/// (which ends at byte `end`), in file offsets.
pub(super) fn syntax_error(
    sources: &SourceMap,
    file: FileId,
    error: &Error<Rule>,
    at: usize,
    end: usize,
    tokens: &[Token],
) -> Diagnostic {
    let text = &*sources.file(file).text;
    let positives = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives.as_slice(),
        ErrorVariant::CustomError { .. } => &[],
    };
    let token = tokens.iter().find(|t| t.end > at);
    let expected = expected_words(positives);
    let found = match token {
        Some(t) => Found(t.text(text)).to_string(),
        None => "the end".to_string(),
    };
    let span = match token {
        // An error inside a token (`2x`): the whole token.
        Some(t) => sources.span(file, t.start, t.end),
        None => {
            let last = tokens.iter().rev().find(|t| t.end <= at).map_or(end, |t| t.end);
            sources.span(file, last, last)
        }
    };
    let message = match &expected {
        Some(words) => format!("expected {words}, found {found}"),
        None => format!("unexpected {found}"),
    };
    let label = expected.map_or_else(|| "not understood".to_string(), |words| format!("expected {words}"));
    let mut d = Diagnostic::error("E0101", message).at(span, label);
    if let Some(open) = unclosed(tokens, at) {
        d = d.also(sources.span(file, open.start, open.end), "still open here");
    }
    let next = tokens.iter().find(|t| token.is_some_and(|found| t.start >= found.end));
    hint(d, positives, token, next.map_or("", |t| t.text(text)), text)
}

/// `a, b or c`, the most specific expectations only, in grammar-independent order.
fn expected_words(positives: &[Rule]) -> Option<String> {
    // Behind an operand a call or an index may follow: their brackets are not what is missing.
    let behind_operand = positives.contains(&Rule::infix);
    // In an S-expression anything may stand anywhere: only closing brackets can be missing.
    let among_data = positives.contains(&Rule::stray);
    let shown = positives.iter().filter(|r| match r {
        Rule::close_paren | Rule::close_bracket | Rule::EOI => true,
        Rule::open_paren | Rule::open_bracket => !behind_operand && !among_data,
        _ => !among_data,
    });
    let described: Vec<(&str, Weight)> = shown.filter_map(|r| describe(*r)).collect();
    let weight = described.iter().map(|(_, w)| *w).max()?;
    let mut words: Vec<&str> = described.iter().filter(|(_, w)| *w == weight).map(|(words, _)| *words).collect();
    words.sort_unstable();
    words.dedup();
    if words.len() > 1 {
        words.retain(|w| *w != "the end");
    }
    let (last, head) = words.split_last()?;
    Some(if head.is_empty() { (*last).to_string() } else { format!("{} or {last}", head.join(", ")) })
}

fn hint(d: Diagnostic, positives: &[Rule], token: Option<&Token>, next: &str, text: &str) -> Diagnostic {
    let found = token.map_or("", |t| t.text(text));
    match token.map(|t| t.kind) {
        Some(Kind::Stray | Kind::Number) => {
            if let Some(help) = token_hint(found) {
                return d.help(help);
            }
        }
        Some(Kind::Bar) => {
            return d.help("three minus signs are the bar of a rule; write `-(-(-x))` for three negations");
        }
        _ => {}
    }
    let wants = |rule: Rule| positives.contains(&rule);
    if RESERVED.contains(&found) && (wants(Rule::ident) || wants(Rule::tuple_pattern) || wants(Rule::param)) {
        d.help(format!("`{found}` is a reserved word: choose another name"))
    } else if wants(Rule::kw_in) {
        d.help("a `let name = value` is followed by `in`")
    } else if wants(Rule::kw_with) {
        d.help("write `handle f(x) with reverseMode`")
    } else if next == "=" && token.is_some_and(|t| t.kind == Kind::Word) && !wants(Rule::ident) {
        d.help(format!("`{found} =` starts a statement; is something missing before it? Equality is written `==`"))
    } else if found == "=" && wants(Rule::infix) {
        d.help("equality is written `==`")
    } else {
        d
    }
}

/// The innermost bracket that is open at byte `at`.
fn unclosed(tokens: &[Token], at: usize) -> Option<Token> {
    let mut open: Vec<Token> = Vec::new();
    for t in tokens.iter().take_while(|t| t.start < at) {
        match t.kind {
            Kind::Open(_) => open.push(*t),
            Kind::Close(bracket) => {
                if let Some(i) = open.iter().rposition(|o| o.kind == Kind::Open(bracket)) {
                    open.truncate(i);
                }
            }
            _ => {}
        }
    }
    open.pop()
}

/// The way out where a token is none.
pub(super) fn token_hint(token: &str) -> Option<&'static str> {
    if !token.is_ascii() {
        Some("names are ASCII letters, digits and `_`; other characters belong in comments")
    } else if token.starts_with('"') {
        Some("a text in quotes ends on its line")
    } else if token.starts_with(|c: char| c.is_ascii_digit()) && !token.bytes().all(|b| b.is_ascii_digit()) {
        Some("numbers look like `12`, `0.5` or `1e-5`")
    } else {
        None
    }
}

/// A token of a text in a message: at most 24 characters, none of which controls a terminal.
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
                c if c.is_control() => write!(f, "U+{:04X}", u32::from(c))?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("`")
    }
}
