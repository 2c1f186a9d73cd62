//! The statements of a faulty rule, each on its own, so that one fault does not hide the next.

use pest::Parser;

use super::error::{offset, syntax_error};
use super::grammar::{KinaParser, Rule};
use super::scan::{Kind, Token};
use crate::diagnostics::{Diagnostic, Diagnostics, FileId, MAX_KEPT, SourceMap};

/// Tokens from `first` up to `end` (not included), and the grammar rule that they are to match.
struct Statement {
    first: usize,
    end: usize,
    rule: Rule,
}

/// Reports the faults of an item: `whole`, which parsing all of it met at byte `at`, and those of statements that are
/// faulty by themselves. `tokens` are those of the item, from its keyword on.
pub(super) fn report_faults(
    sources: &SourceMap,
    file: FileId,
    tokens: &[Token],
    (at, whole): (usize, Diagnostic),
    bag: &mut Diagnostics,
) {
    let text = &*sources.file(file).text;
    let item = item_word(tokens, text);
    let mut whole = Some(whole);
    let mut faults: Vec<Diagnostic> = Vec::new();
    for statement in statements(tokens, text) {
        // Those that are not shown are not looked for.
        if faults.len() >= MAX_KEPT {
            break;
        }
        let (Some(first), Some(last)) = (tokens.get(statement.first), tokens[..statement.end].last()) else { continue };
        let Err(error) = KinaParser::parse(statement.rule, &text[first.start..last.end]) else { continue };
        let found = first.start + offset(&error);
        let fault = syntax_error(sources, file, &error, found, last.end, &tokens[statement.first..], Some(item));
        // An incomplete statement may be found out where the next one starts.
        let next = tokens.get(statement.end).map_or(usize::MAX, |t| t.start);
        let place = |d: &Diagnostic| d.primary.as_ref().map(|l| l.span);
        match whole.take_if(|_| at <= next) {
            // The same fault, met in a place where more is known about what may follow.
            Some(whole) if place(&whole) == place(&fault) => faults.push(whole),
            Some(_) if first.start <= at => faults.push(fault),
            Some(whole) => {
                faults.push(whole);
                faults.push(fault);
            }
            None => faults.push(fault),
        }
    }
    faults.extend(whole);
    // A reserved word that stands for a name is one fault, however often it is used.
    let mut reserved: Vec<&str> = Vec::new();
    for fault in faults {
        let word = fault.primary.as_ref().map_or("", |l| sources.text(l.span));
        if reserved.contains(&word) {
            continue;
        }
        if fault.help.iter().any(|h| h.contains("is a reserved word")) {
            reserved.push(word);
        }
        bag.push(fault);
    }
}

/// The keyword that tells what an item is.
pub(super) fn item_word<'t>(tokens: &[Token], text: &'t str) -> &'t str {
    let word = |i: usize| tokens.get(i).map_or("", |t| t.text(text));
    if word(0) == "override" { "vjp" } else { word(0) }
}

/// The statements between the braces of an item.
fn statements(tokens: &[Token], text: &str) -> Vec<Statement> {
    let Some(open) = tokens.iter().position(|t| t.kind == Kind::Open(b'{')) else { return Vec::new() };
    let is_vjp = tokens[..open].iter().any(|t| t.text(text) == "vjp");
    let end = body_end(tokens, open);
    let Some(margin) = tokens.get(open + 1).map(|t| column(text, t.start)) else { return Vec::new() };
    let mut starts = vec![open + 1];
    let mut depth = 0usize;
    for i in open + 1..end {
        let first_of_line = text[tokens[i - 1].end..tokens[i].start].contains(['\n', '\r']);
        // A named argument may start a line of its own; a statement stands outside of brackets, or, where one was
        // forgotten, at the margin.
        let outside = || depth == 0 || column(text, tokens[i].start) == margin;
        if i > open + 1 && first_of_line && outside() && is_start(tokens, i, text) {
            starts.push(i);
            depth = 0;
        }
        match tokens[i].kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([end]).collect();
    let mut out = Vec::new();
    for (i, (first, end)) in starts.into_iter().zip(ends).enumerate() {
        let rule = match tokens.get(first) {
            _ if first >= end => continue,
            // A bar is whole, or it is what parsing all of the item met.
            Some(t) if t.kind == Kind::Bar => continue,
            Some(t) if t.text(text) == "=>" || t.text(text) == "<=>" => Rule::result_alone,
            // A rewrite starts with its left side, which may share a line with the arrow.
            _ if i == 0 && !is_start(tokens, first, text) => continue,
            _ if i == 0 && is_vjp => Rule::premise_alone,
            _ => Rule::line_alone,
        };
        out.push(Statement { first, end, rule });
    }
    out
}

/// The closing brace of the body that opens at `open`, or the end.
pub(super) fn body_end(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0usize;
    for (i, t) in tokens.iter().enumerate().skip(open) {
        match t.kind {
            Kind::Open(b'{') => depth += 1,
            Kind::Close(b'{') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    tokens.len()
}

/// Could a statement start at token `i`?
fn is_start(tokens: &[Token], i: usize, text: &str) -> bool {
    let word = |i: usize| tokens.get(i).map_or("", |t| t.text(text));
    match tokens[i].kind {
        Kind::Bar => true,
        Kind::Punctuation => matches!(word(i), "=>" | "<=>"),
        Kind::Word => {
            matches!(word(i), "where" | "when" | "domain" | "kink" | "example" | "not_a_derivative")
                || word(i + 1) == "="
                || (word(i + 1), word(i + 3), word(i + 4)) == ("[", "]", "=")
        }
        _ => false,
    }
}

/// How far from the start of its line a byte stands, in bytes.
fn column(text: &str, at: usize) -> usize {
    at - text[..at].rfind(['\n', '\r']).map_or(0, |end| end + 1)
}
