//! Rule files in the style of `rules/*.rules`.
//!
//! Tokens and comments stay as they are and in their order; what changes is the white space between them, and the length
//! of bars. So nothing can be lost, parentheses that a writer put stay, and a line that was broken stays broken.

use std::collections::BTreeMap;

use pest::Parser;

use super::MAX_INDENT;
use super::spacing::{Atom, Role, Setting, atoms, break_at};
use crate::diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap};
use crate::syntax::depth::on_big_stack;
use crate::syntax::form::Form;
use crate::syntax::grammar::{KinaParser, Rule};
use crate::syntax::rules::{item_end, item_starts, parse_rules};
use crate::syntax::scan::{Kind, Token, scan};

/// A rule file as the project writes it: formatted twice, a text is what it is when formatted once. `None` if it has
/// syntax errors, which are in the bag.
pub fn format_rules(sources: &SourceMap, file: FileId, bag: &mut Diagnostics) -> Option<String> {
    let mut faults = Diagnostics::new();
    parse_rules(sources, file, &mut faults);
    let is_faulty = faults.has_errors();
    bag.extend(faults);
    if is_faulty {
        return None;
    }
    let text = &*sources.file(file).text;
    let formatted = on_big_stack(|| layout(text));
    if tokens_of(text).eq(tokens_of(&formatted)) {
        return Some(formatted);
    }
    let end = sources.span(file, text.len(), text.len());
    bag.push(
        Diagnostic::error("E0113", "formatting would change what this file says: a fault of kina-ad")
            .at(end, "the file is left as it is")
            .help("please report it with the file"),
    );
    None
}

/// What formatting must keep.
fn tokens_of(text: &str) -> impl Iterator<Item = String> {
    let tokens = scan(text, Form::Kina);
    let text = text.to_owned();
    tokens.into_iter().map(move |t| if t.kind == Kind::Bar { "---".to_owned() } else { t.text(&text).to_owned() })
}

/// A token or a comment.
#[derive(Clone, Copy, Debug)]
struct Piece<'t> {
    /// `None` for a comment.
    token: Option<Token>,
    text: &'t str,
    /// Ends of lines between it and what stands before it.
    breaks: usize,
}

/// What a run of pieces is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Import,
    Head,
    Premise,
    Bar,
    /// `name = value`
    Bind,
    /// `where`, `domain` and their like.
    Keyword,
    /// The sides of a rewrite, the result of a `def`.
    Plain,
    /// The brace that ends an item.
    End,
    /// A comment on lines of its own.
    Comment,
}

/// A statement with the comments inside it and beside it.
#[derive(Debug)]
struct Statement<'t> {
    part: Part,
    pieces: Vec<Piece<'t>>,
    /// Does an empty line stand before it?
    gap: bool,
}

fn layout(text: &str) -> String {
    let tokens = scan(text, Form::Kina);
    let statements = statements(&pieces(text, &tokens), &parts(text, &tokens));
    let mut out = String::new();
    let mut in_item = false;
    let mut before: Option<Part> = None;
    // Of the bindings that stand together: the width of the longest name.
    let mut name_width = 0;
    let mut premise_width = 0;
    for (i, statement) in statements.iter().enumerate() {
        let gap = match before {
            None | Some(Part::Head) => false,
            Some(Part::End) => true,
            Some(Part::Import) => statement.gap || following(&statements[i..]) != Some(Part::Import),
            Some(Part::Bar) => false,
            Some(_) => statement.gap && !matches!(statement.part, Part::End | Part::Bar),
        };
        if gap {
            out.push('\n');
        }
        let base = if in_item && statement.part != Part::End { 2 } else { 0 };
        if statement.part == Part::Bind && (before != Some(Part::Bind) || gap) {
            let together =
                statements[i..].iter().enumerate().take_while(|(k, s)| s.part == Part::Bind && (*k == 0 || !s.gap));
            name_width = together.map(|(_, s)| target_width(s, text)).max().unwrap_or(0);
        }
        let width = match statement.part {
            Part::Comment => {
                statement.pieces.iter().for_each(|piece| line(&mut out, base, piece.text));
                0
            }
            Part::Bar => {
                let bar = "-".repeat(premise_width.max(3));
                let comment = statement.pieces.iter().find(|p| p.token.is_none());
                line(&mut out, base, &beside(bar, comment.map(|p| p.text)));
                0
            }
            _ => write_statement(&mut out, statement, text, base, name_width),
        };
        match statement.part {
            Part::Premise => premise_width = width,
            Part::Head => in_item = true,
            Part::End => in_item = false,
            _ => {}
        }
        before = Some(statement.part);
    }
    out
}

/// The first of these statements that is no comment.
fn following(statements: &[Statement<'_>]) -> Option<Part> {
    statements.iter().map(|s| s.part).find(|part| *part != Part::Comment)
}

fn line(out: &mut String, indent: usize, text: &str) {
    out.extend(std::iter::repeat_n(' ', indent.min(MAX_INDENT)));
    out.push_str(text);
    out.push('\n');
}

fn beside(line: String, comment: Option<&str>) -> String {
    match comment {
        Some(comment) => format!("{line}  {comment}"),
        None => line,
    }
}

/// Tokens and comments in their order.
fn pieces<'t>(text: &'t str, tokens: &[Token]) -> Vec<Piece<'t>> {
    let mut pieces = Vec::new();
    let start = text.len() - text.trim_start_matches('\u{FEFF}').len();
    let ends = std::iter::once(start.min('\u{FEFF}'.len_utf8())).chain(tokens.iter().map(|t| t.end));
    let nexts = tokens.iter().map(Some).chain([None]);
    for (end, next) in ends.zip(nexts) {
        let gap = &text[end..next.map_or(text.len(), |t| t.start)];
        let mut breaks = usize::from(pieces.is_empty());
        // White space and comments are all that lies between tokens.
        for (i, line) in lines(gap).into_iter().enumerate() {
            breaks += usize::from(i > 0);
            if let Some(mark) = line.find(Form::Kina.comment()) {
                pieces.push(Piece { token: None, text: line[mark..].trim_end(), breaks });
                breaks = 0;
            }
        }
        if let Some(token) = next {
            pieces.push(Piece { token: Some(*token), text: token.text(text), breaks });
        }
    }
    pieces
}

/// The lines of a text, whichever way they end.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\n', '\r']) {
        lines.push(&rest[..at]);
        let len = if rest[at..].starts_with("\r\n") { 2 } else { 1 };
        rest = &rest[at + len..];
    }
    lines.push(rest);
    lines
}

/// Where each part of each item starts, as the grammar sees it.
fn parts(text: &str, tokens: &[Token]) -> BTreeMap<usize, Part> {
    let mut parts = BTreeMap::new();
    let starts = item_starts(tokens, text);
    for (i, start) in starts.iter().enumerate() {
        let next = starts.get(i + 1).copied().unwrap_or(tokens.len());
        let item = &tokens[*start..next];
        let item = &item[..item_end(item)];
        let (Some(first), Some(last)) = (item.first(), item.last()) else { continue };
        let is_import = first.text(text) == "import";
        parts.insert(first.start, if is_import { Part::Import } else { Part::Head });
        let Ok(pairs) = KinaParser::parse(Rule::item, &text[first.start..last.end]) else { continue };
        let rules = [Rule::vjp, Rule::rewrite, Rule::def];
        let Some(pair) = pairs.flatten().find(|p| rules.contains(&p.as_rule())) else { continue };
        let is_rewrite = pair.as_rule() == Rule::rewrite;
        let mut has_left = false;
        for part in pair.into_inner() {
            let kind = match part.as_rule() {
                Rule::premise => Part::Premise,
                Rule::bar => Part::Bar,
                Rule::one_way if !is_rewrite => Part::Plain,
                Rule::expr if is_rewrite && !has_left => {
                    has_left = true;
                    Part::Plain
                }
                Rule::close_brace => Part::End,
                Rule::line => match part.clone().into_inner().next().map(|p| p.as_rule()) {
                    Some(Rule::bind | Rule::bind_each) => Part::Bind,
                    _ => Part::Keyword,
                },
                _ => continue,
            };
            parts.insert(first.start + part.as_span().start(), kind);
        }
    }
    parts
}

fn statements<'t>(pieces: &[Piece<'t>], parts: &BTreeMap<usize, Part>) -> Vec<Statement<'t>> {
    let part_at = |piece: &Piece<'_>| piece.token.and_then(|t| parts.get(&t.start).copied());
    let mut statements: Vec<Statement<'t>> = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        let part = match piece.token {
            Some(_) => part_at(piece),
            // A comment on lines of its own belongs to a statement only inside of it.
            None => {
                let next = pieces[i..].iter().find(|p| p.token.is_some());
                let is_inside = next.is_some_and(|p| part_at(p).is_none());
                (piece.breaks > 0 && !is_inside).then_some(Part::Comment)
            }
        };
        match (part, statements.last_mut()) {
            (None, Some(statement)) => statement.pieces.push(*piece),
            (part, _) => {
                let part = part.unwrap_or(Part::Plain);
                statements.push(Statement { part, pieces: vec![*piece], gap: piece.breaks > 1 });
            }
        }
    }
    statements
}

/// How wide the name is that a binding gives, its index included.
fn target_width(statement: &Statement<'_>, text: &str) -> usize {
    let tokens: Vec<Token> = statement.pieces.iter().filter_map(|p| p.token).collect();
    let end = tokens.iter().position(|t| t.text(text) == "=").unwrap_or(0);
    tokens[..end].iter().map(|t| t.text(text).chars().count()).sum()
}

/// Writes a statement line by line. The result is the width of its longest line.
fn write_statement(out: &mut String, statement: &Statement<'_>, text: &str, base: usize, name_width: usize) -> usize {
    let setting = match statement.part {
        Part::Head | Part::Import => Setting::Head,
        Part::Keyword => Setting::Keyword,
        _ => Setting::Plain,
    };
    let tokens: Vec<Token> = statement.pieces.iter().filter_map(|p| p.token).collect();
    let atoms = atoms(&tokens, text, setting);
    let mut writer = Lines { out, base, widest: 0, is_first: true, padding: 0 };
    if statement.part == Part::Bind {
        writer.padding = name_width.saturating_sub(target_width(statement, text));
    }
    // The atoms of the line that is being collected.
    let (mut from, mut to) = (0, 0);
    let mut must_break = false;
    for piece in &statement.pieces {
        if piece.token.is_none() {
            if piece.breaks == 0 {
                writer.line(&atoms[from..to], Some(piece.text));
            } else {
                writer.line(&atoms[from..to], None);
                writer.comment(atoms.get(to), piece.text);
            }
            from = to;
            must_break = true;
            continue;
        }
        let stays = atoms.get(to).is_some_and(|a| {
            // The brace of an item, and the sign behind a name, stand on the line of what is before them.
            a.role == Role::Brace && statement.part == Part::Head
                || a.role == Role::Assign && statement.part == Part::Bind && a.depth == 0
        });
        if to > from && (must_break || piece.breaks > 0 && !stays) {
            writer.line(&atoms[from..to], None);
            from = to;
        }
        must_break = false;
        to += 1;
    }
    writer.line(&atoms[from..to], None);
    writer.widest
}

struct Lines<'o> {
    out: &'o mut String,
    base: usize,
    widest: usize,
    is_first: bool,
    /// Spaces before the sign of the binding that is written.
    padding: usize,
}

impl Lines<'_> {
    /// How far a line that begins with this atom is moved in.
    fn indent(&self, first: &Atom<'_>, closing: usize) -> usize {
        match (self.is_first, closing) {
            (true, _) => self.base,
            (false, 0) if first.role == Role::Brace && first.depth == 0 => self.base,
            (false, 0) => self.base + 2 * first.depth.max(1),
            (false, closing) => self.base + 2 * first.depth.saturating_sub(closing),
        }
    }

    /// Writes these atoms, in several lines if they are too long for one.
    fn line(&mut self, atoms: &[Atom<'_>], comment: Option<&str>) {
        let mut rest = atoms;
        while let Some(first) = rest.first() {
            let closing = rest.iter().take_while(|a| a.role == Role::Close).count();
            let indent = self.indent(first, closing).min(MAX_INDENT);
            let padding = if self.is_first { std::mem::take(&mut self.padding) } else { 0 };
            let split = break_at(rest, indent + padding);
            let (here, next) = rest.split_at(split.unwrap_or(rest.len()));
            let mut text = String::new();
            let mut padding = padding;
            for (i, atom) in here.iter().enumerate() {
                if atom.role == Role::Assign {
                    text.extend(std::iter::repeat_n(' ', std::mem::take(&mut padding)));
                }
                if i > 0 && atom.space {
                    text.push(' ');
                }
                text.push_str(atom.text);
            }
            self.widest = self.widest.max(text.chars().count());
            let comment = comment.filter(|_| next.is_empty());
            line(self.out, indent, &beside(text, comment));
            self.is_first = false;
            rest = next;
        }
        // A comment that follows another one.
        if let (true, Some(comment)) = (atoms.is_empty(), comment) {
            line(self.out, self.base, comment);
        }
    }

    /// A comment on a line of its own, before an atom of the statement.
    fn comment(&mut self, next: Option<&Atom<'_>>, text: &str) {
        let indent = next.map_or(self.base, |a| self.indent(a, usize::from(a.role == Role::Close)));
        line(self.out, indent, text);
    }
}
