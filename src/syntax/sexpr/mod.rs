//! Programs as S-expressions: from the brackets of `grammar/sexpr.pest` to the tree.
//!
//! | list | what it is |
//! |---|---|
//! | `(f a :axis b)` | a call |
//! | `(.f a :axis b)` | a method call, `a.f(axis=b)` |
//! | `(+ a b)`, `(- a)`, `(! a)`, .. | an operator |
//! | `[a b]`, `(, a b)` | a list, a tuple |
//! | `(let ((x a) ((, y z) b)) body)` | a chain of `let`s |
//! | `(fn ((x type) ..) -> type body)`, `(handle (f a) reverseMode)`, `(tensor F32 [2 3] @host)` | as in Kina |
//! | `(if c a b)`, `(for x list a)`, `(for x list c a)`, `(@ list i)`, `(f *xs)` | forms of rule files |
//!
//! Heads that are words are Kina's reserved words or names of what is called, and all others are Kina's own punctuation:
//! so every name may be called, and every tree has one form. Reading goes on behind a fault, so that one text can have
//! several.

mod calls;
mod forms;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use pest::Parser;

use super::ast::{Expr, ExprKind, Ident, Program, UnaryOp};
use super::depth::refuse;
use super::error::{offset, syntax_error};
use super::expr::{Builder, Built, Node, error};
use super::form::{Form, PROGRAM_HEAD};
use super::grammar::{KinaParser, Rule};
use super::scan::{Kind, Token, scan};
use super::strange::{Found, token_hint};
use crate::diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};

/// Words that are heads of lists with a meaning of their own.
const FORMS: [&str; 6] = ["let", "fn", "handle", "tensor", "if", "for"];

const PROGRAM: &str = "(program expression)";
const LET: &str = "(let ((name value) ..) expression)";
const FN: &str = "(fn ((name type) ..) -> type expression)";
const HANDLE: &str = "(handle (f x) reverseMode)";
const TENSOR: &str = "(tensor F32 [2 3] @host)";

/// Parses a program in S-expressions. Syntax errors go to the bag.
pub(super) fn parse(sources: &SourceMap, file: FileId, bag: &mut Diagnostics) -> Program {
    let text = &*sources.file(file).text;
    let whole = sources.span(file, 0, text.len());
    let tokens = scan(text, Form::Sexpr);
    let body = match refuse(sources, file, Form::Sexpr, &tokens) {
        Some(refusal) => {
            bag.push(refusal);
            None
        }
        None => match KinaParser::parse(Rule::sexpr, text) {
            Ok(pairs) => {
                let builder = Builder { sources, file, base: 0, bag, too_high: false };
                let mut reader = Reader { builder, strange: HashSet::new() };
                let data = pairs.flat_map(|p| p.into_inner()).filter(|p| p.as_rule() != Rule::EOI);
                Some(reader.program(data.collect(), whole))
            }
            Err(error) => {
                let d = syntax_error(sources, file, &error, offset(&error), text.len(), &tokens, None);
                bag.push(match outdented(text, &tokens) {
                    Some(t) => {
                        d.also(sources.span(file, t.start, t.end), "by the indentation, it is missing before this")
                    }
                    None => d,
                });
                None
            }
        },
    };
    Program { body: body.unwrap_or(Expr { kind: ExprKind::Error, span: whole }) }
}

/// Where brackets are missing: the first token of a line that stands no further right than a bracket that is open there.
fn outdented(text: &str, tokens: &[Token]) -> Option<Token> {
    let count = |is: fn(Kind) -> bool| tokens.iter().filter(|t| is(t.kind)).count();
    if count(|k| matches!(k, Kind::Open(_))) <= count(|k| matches!(k, Kind::Close(_))) {
        return None;
    }
    let mut open: Vec<usize> = Vec::new();
    let (mut column, mut last_end) = (0, 0);
    for t in tokens {
        let gap = &text[last_end..t.start];
        let line_end = gap.rfind(['\n', '\r']);
        column = match line_end {
            Some(end) => gap[end + 1..].chars().count(),
            None => column + gap.chars().count(),
        };
        match t.kind {
            Kind::Close(_) => {
                open.pop();
            }
            _ if line_end.is_some() && open.last().is_some_and(|c| column <= *c) => return Some(*t),
            Kind::Open(_) => open.push(column),
            _ => {}
        }
        column += t.text(text).chars().count();
        last_end = t.end;
    }
    None
}

/// A list in round brackets.
struct List<'a> {
    span: Span,
    /// The closing bracket: where something is missing.
    close: Span,
    /// What stands inside, behind the head.
    parts: Vec<Node<'a>>,
}

/// What stands between the brackets of a list.
fn inside<'a>(list: &Node<'a>) -> impl Iterator<Item = Node<'a>> + use<'a> {
    let is_bracket =
        |rule: Rule| matches!(rule, Rule::open_paren | Rule::close_paren | Rule::open_bracket | Rule::close_bracket);
    list.clone().into_inner().filter(move |p| !is_bracket(p.as_rule()))
}

struct Reader<'a> {
    builder: Builder<'a>,
    /// Words that are no names and were reported: one fault each, however often it is used.
    strange: HashSet<String>,
}

impl Reader<'_> {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.builder.bag.push(diagnostic);
    }

    /// Reports something that is no datum.
    fn stray(&mut self, atom: &Node<'_>) {
        let text = atom.as_str();
        if text.contains(char::is_alphanumeric) && !self.strange.insert(text.to_owned()) {
            return;
        }
        let help =
            stray_hint(text).unwrap_or_else(|| "remove it, or write it as a name, a number or a list".to_owned());
        let message = format!("unexpected {}", Found(text));
        self.report(Diagnostic::error("E0101", message).at(self.builder.span(atom), "not understood").help(help));
    }

    /// Reports that something else was expected where `found` stands, or where its list ends.
    fn expected(&mut self, what: &str, found: Option<&Node<'_>>, close: Span, help: &str) {
        if let Some(stray) = found.filter(|f| f.as_rule() == Rule::stray) {
            return self.stray(stray);
        }
        let span = found.map_or(close, |f| self.builder.span(f));
        let found = found.map_or(")", |f| f.as_str());
        let message = format!("expected {what}, found {}", Found(found));
        self.report(Diagnostic::error("E0101", message).at(span, format!("expected {what}")).help(help));
    }

    /// Reports a list with too few or too many parts.
    fn arity(&mut self, head: &str, takes: &str, list: &List<'_>, at_most: usize, form: &str) {
        let (span, label) = match list.parts.get(at_most) {
            Some(extra) => (self.builder.span(extra), "one too many"),
            None => (list.close, "something is missing"),
        };
        let message = format!("`{head}` takes {takes}, not {}", list.parts.len());
        self.report(Diagnostic::error("E0111", message).at(span, label).help(format!("the form is `{form}`")));
    }

    /// The parts of a list in round brackets; `None` for anything else.
    fn list<'a>(&self, datum: &Node<'a>) -> Option<List<'a>> {
        if datum.as_rule() != Rule::round {
            return None;
        }
        let span = self.builder.span(datum);
        Some(List { span, close: Span { start: span.end - 1, ..span }, parts: inside(datum).collect() })
    }

    fn program(&mut self, data: Vec<Node<'_>>, whole: Span) -> Expr {
        let end = Span { start: whole.end, ..whole };
        let (stray, data): (Vec<Node<'_>>, Vec<Node<'_>>) = data.into_iter().partition(|d| d.as_rule() == Rule::stray);
        for atom in stray {
            self.stray(&atom);
        }
        let Some(first) = data.first() else {
            self.report(
                Diagnostic::error("E0101", format!("expected `{PROGRAM}`, found the end"))
                    .at(end, "expected a program")
                    .help("a file that starts with a `;` comment is read as an S-expression"),
            );
            return error(whole).expr;
        };
        if let Some(extra) = data.get(1) {
            self.expected("the end", Some(extra), end, &format!("a file holds one `{PROGRAM}`"));
        }
        let list = self.list(first).filter(|l| l.parts.first().is_some_and(|head| head.as_str() == PROGRAM_HEAD));
        let Some(mut list) = list else {
            self.expected(
                &format!("`{PROGRAM}`"),
                Some(first),
                end,
                "a program as an S-expression begins with `(program`",
            );
            return error(whole).expr;
        };
        list.parts.remove(0);
        if list.parts.len() != 1 {
            self.arity(PROGRAM_HEAD, "one expression", &list, 1, PROGRAM);
        }
        let mut height = 0;
        let body = self.exprs(list.parts, &mut height).into_iter().next();
        body.unwrap_or_else(|| error(whole).expr)
    }

    /// Reads expressions; raises `height` to the highest of them.
    fn exprs(&mut self, data: Vec<Node<'_>>, height: &mut u32) -> Vec<Expr> {
        let mut exprs = Vec::with_capacity(data.len());
        for datum in data {
            let built = self.expr(datum);
            *height = built.height.max(*height);
            exprs.push(built.expr);
        }
        exprs
    }

    fn expr(&mut self, datum: Node<'_>) -> Built {
        let span = self.builder.span(&datum);
        match datum.as_rule() {
            Rule::round => self.round(&datum),
            Rule::square => {
                let mut height = 0;
                let elements = self.exprs(inside(&datum).collect(), &mut height);
                self.builder.node(ExprKind::List(elements), span, height)
            }
            Rule::ident => self.builder.node(ExprKind::Name(datum.as_str().into()), span, 0),
            Rule::negative => match datum.into_inner().next() {
                Some(number) => {
                    let number = self.builder.literal(&number);
                    self.builder.prefix(UnaryOp::Neg, span, number)
                }
                None => error(span),
            },
            Rule::float | Rule::int | Rule::inf | Rule::nan | Rule::truth | Rule::none => self.builder.literal(&datum),
            _ => {
                self.no_expression(&datum, span);
                error(span)
            }
        }
    }

    /// Reports an atom that is no expression.
    fn no_expression(&mut self, atom: &Node<'_>, span: Span) {
        let text = atom.as_str();
        let help = match atom.as_rule() {
            Rule::stray => return self.stray(atom),
            Rule::reserved if FORMS.contains(&text) => format!("`{text}` stands first in a list of its own"),
            Rule::reserved => format!("`{text}` is a reserved word of Kina: choose another name"),
            Rule::key => "a named argument stands in a call: `(f x :axis 1)`".to_owned(),
            Rule::place => format!("a placement stands in a type: `{TENSOR}`"),
            Rule::method_name => "a method stands first in its list: `(.f x)`".to_owned(),
            _ => format!("operators stand first in their list, as in `({text} a b)`"),
        };
        self.expected("an expression", Some(atom), span, &help);
    }

    fn name(&mut self, datum: Option<&Node<'_>>, close: Span, what: &str, form: &str) -> Option<Ident> {
        match datum {
            Some(d) if d.as_rule() == Rule::ident => Some(self.builder.ident(d)),
            Some(d) if d.as_rule() == Rule::reserved => {
                let help = format!("`{}` is a reserved word of Kina: choose another name", d.as_str());
                self.expected(what, datum, close, &help);
                None
            }
            _ => {
                self.expected(what, datum, close, &format!("the form is `{form}`"));
                None
            }
        }
    }
}

/// The way out where something is no datum.
fn stray_hint(text: &str) -> Option<String> {
    let common = token_hint(text);
    let word = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    common.or_else(|| match (text.split_at(1), text.split_once('=')) {
        _ if text.starts_with("//") => Some("comments start with `;`".to_owned()),
        (("{" | "}", _), _) => Some("lists are in `[ ]`, everything else is in `( )`".to_owned()),
        (("-", rest), _) if word(rest) => Some(format!("write `(- {rest})`")),
        (_, Some((name, value))) if word(name) && !value.starts_with('=') => {
            Some(format!("a named argument is `:{name} value`"))
        }
        ((_, rest), _) if rest.contains(['+', '-', '*', '/', '<', '>', '=', '.']) && word(text) => {
            Some("operators stand first in their list, with spaces around: `(+ a b)`".to_owned())
        }
        _ => None,
    })
}
