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

use pest::Parser;

use super::ast::{Arg, BinaryOp, Expr, ExprKind, FnParam, Function, Ident, Let, Pattern, Program, TypeExpr, UnaryOp};
use super::depth::refuse;
use super::error::{Found, offset, syntax_error, token_hint};
use super::expr::{Builder, Built, Node, binary_op, error};
use super::form::{Form, PROGRAM_HEAD};
use super::grammar::{KinaParser, Rule};
use super::program::MAX_ERRORS;
use super::scan::{Kind, Token, scan};
use crate::diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span, closest};

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
                let mut reader = Reader { builder, faults: 0 };
                let data = pairs.flat_map(|p| p.into_inner()).filter(|p| p.as_rule() != Rule::EOI);
                Some(reader.program(data.collect(), whole))
            }
            Err(error) => {
                let d = syntax_error(sources, file, &error, offset(&error), text.len(), &tokens);
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

/// The first token of a line that stands no further right than a bracket that is open there: if a closing bracket is
/// missing somewhere, then most likely before it.
fn outdented(text: &str, tokens: &[Token]) -> Option<Token> {
    let mut open: Vec<usize> = Vec::new();
    let (mut line, mut last_end) = (0, 0);
    for t in tokens {
        let gap = &text[last_end..t.start];
        let first_of_line = gap.contains(['\n', '\r']);
        if let Some(end) = gap.rfind(['\n', '\r']) {
            line = last_end + end + 1;
        }
        let column = text[line..t.start].chars().count();
        if first_of_line && open.last().is_some_and(|c| column <= *c) && !matches!(t.kind, Kind::Close(_)) {
            return Some(*t);
        }
        match t.kind {
            Kind::Open(_) => open.push(column),
            Kind::Close(_) => {
                open.pop();
            }
            _ => {}
        }
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
    /// How many were reported: more than [`MAX_ERRORS`] would be noise.
    faults: usize,
}

impl Reader<'_> {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.faults += 1;
        if self.faults <= MAX_ERRORS {
            self.builder.bag.push(diagnostic);
        }
    }

    /// Reports that something else was expected where `found` stands, or where its list ends.
    fn expected(&mut self, what: &str, found: Option<&Node<'_>>, close: Span, help: &str) {
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
            Rule::stray => {
                let d = Diagnostic::error("E0101", format!("unexpected {}", Found(text))).at(span, "not understood");
                let d = match stray_hint(text) {
                    Some(help) => d.help(help),
                    None => d,
                };
                return self.report(d);
            }
            Rule::reserved if FORMS.contains(&text) => format!("`{text}` stands first in a list of its own"),
            Rule::reserved => format!("`{text}` is a reserved word of Kina: choose another name"),
            Rule::key => "a named argument stands in a call: `(f x :axis 1)`".to_owned(),
            Rule::place => format!("a placement stands in a type: `{TENSOR}`"),
            Rule::method_name => "a method stands first in its list: `(.f x)`".to_owned(),
            _ => format!("operators stand first in their list, as in `({text} a b)`"),
        };
        self.expected("an expression", Some(atom), span, &help);
    }

    fn round(&mut self, datum: &Node<'_>) -> Built {
        let Some(mut list) = self.list(datum) else { return error(self.builder.span(datum)) };
        let span = list.span;
        if list.parts.is_empty() {
            self.expected("a name or an operator", None, list.close, "an empty list means nothing");
            return error(span);
        }
        let head = list.parts.remove(0);
        let head_span = self.builder.span(&head);
        match (head.as_rule(), head.as_str()) {
            (Rule::ident, _) => self.call(self.builder.ident(&head), list),
            (Rule::method_name, _) => self.method(&head, list),
            (Rule::infix, symbol) => match head.into_inner().next().and_then(|p| binary_op(p.as_rule())) {
                Some(op) => self.operator(op, symbol, list),
                None => error(span),
            },
            (Rule::not, _) => self.fixed(list, "!", "one expression", 1..=1, "(! a)", |mut parts| {
                Some(ExprKind::Unary(UnaryOp::Not, Box::new(parts.next()?)))
            }),
            (Rule::comma, _) => {
                if list.parts.len() < 2 {
                    self.report(
                        Diagnostic::error("E0105", "a tuple has at least two elements")
                            .at(span, "too few elements")
                            .help("the form is `(, a b)`"),
                    );
                }
                let mut height = 0;
                let elements = self.exprs(list.parts, &mut height);
                self.builder.node(ExprKind::Tuple(elements), span, height)
            }
            (Rule::at, _) => self.fixed(list, "@", "a list and an index", 2..=2, "(@ list index)", |mut parts| {
                Some(ExprKind::Index(Box::new(parts.next()?), Box::new(parts.next()?)))
            }),
            (Rule::reserved, "if") => {
                self.fixed(list, "if", "three expressions", 3..=3, "(if condition a b)", |mut parts| {
                    let (condition, yes, no) = (parts.next()?, parts.next()?, parts.next()?);
                    Some(ExprKind::If(Box::new(condition), Box::new(yes), Box::new(no)))
                })
            }
            (Rule::reserved, "let") => self.block(list),
            (Rule::reserved, "fn") => self.function(list),
            (Rule::reserved, "handle") => self.handle(list),
            (Rule::reserved, "for") => self.comprehension(list),
            (Rule::reserved, "tensor") => {
                let ty = self.type_parts(list);
                self.builder.node(ty.map_or(ExprKind::Error, ExprKind::Input), span, 0)
            }
            _ => {
                let help = match head.as_rule() {
                    Rule::stray => stray_hint(head.as_str()).unwrap_or_else(|| "a call is `(f a b)`".to_owned()),
                    Rule::square | Rule::round => {
                        "a call is `(f a b)`; bindings and parameters belong to `let` and `fn`".to_owned()
                    }
                    Rule::int | Rule::float | Rule::negative => "a list of numbers is `[1 2]`".to_owned(),
                    _ => "a call is `(f a b)`".to_owned(),
                };
                self.expected("a name or an operator", Some(&head), head_span, &help);
                error(span)
            }
        }
    }

    /// A list of a fixed number of expressions.
    fn fixed(
        &mut self,
        list: List<'_>,
        head: &str,
        takes: &str,
        count: std::ops::RangeInclusive<usize>,
        form: &str,
        kind: impl FnOnce(std::vec::IntoIter<Expr>) -> Option<ExprKind>,
    ) -> Built {
        let span = list.span;
        let right = count.contains(&list.parts.len());
        if !right {
            self.arity(head, takes, &list, *count.end(), form);
        }
        let mut height = 0;
        let parts = self.exprs(list.parts, &mut height);
        match kind(parts.into_iter()) {
            Some(kind) if right => self.builder.node(kind, span, height),
            _ => error(span),
        }
    }

    fn operator(&mut self, op: BinaryOp, symbol: &str, list: List<'_>) -> Built {
        if symbol == "-" {
            return self.fixed(list, "-", "one or two expressions", 1..=2, "(- a)` or `(- a b)", |mut parts| {
                let first = Box::new(parts.next()?);
                Some(match parts.next() {
                    Some(second) => ExprKind::Binary(op, first, Box::new(second)),
                    None => ExprKind::Unary(UnaryOp::Neg, first),
                })
            });
        }
        let form = match list.parts.len() {
            0..=2 => format!("({symbol} a b)"),
            _ => format!("({symbol} ({symbol} a b) c)"),
        };
        self.fixed(list, symbol, "two expressions", 2..=2, &form, |mut parts| {
            Some(ExprKind::Binary(op, Box::new(parts.next()?), Box::new(parts.next()?)))
        })
    }

    fn call(&mut self, callee: Ident, list: List<'_>) -> Built {
        // What can only stand in a `let` or a `fn` tells that the head is a slip of the pen.
        let of_a_form = list.parts.iter().any(|p| self.is_bindings(p) || p.as_rule() == Rule::thin_arrow);
        if of_a_form && let Some(near) = closest(&callee.name, FORMS) {
            self.report(
                Diagnostic::error("E0101", format!("expected a form of the language, found `{}`", callee.name))
                    .at(callee.span, "not a form")
                    .help(format!("did you mean `{near}`?")),
            );
            return error(list.span);
        }
        let mut height = 0;
        let args = self.args(list.parts, &mut height);
        self.builder.node(ExprKind::Call { callee, args, method: false }, list.span, height)
    }

    /// A list that begins with a list, or is empty.
    fn is_bindings(&self, datum: &Node<'_>) -> bool {
        self.list(datum).is_some_and(|l| l.parts.first().is_none_or(|first| first.as_rule() == Rule::round))
    }

    fn method(&mut self, head: &Node<'_>, list: List<'_>) -> Built {
        let Some(name) = head.clone().into_inner().next() else { return error(list.span) };
        let callee = self.builder.ident(&name);
        let form = format!("({} x)", head.as_str());
        if list.parts.is_empty() {
            self.arity(head.as_str(), "the tensor it is called on", &list, 0, &form);
            return error(list.span);
        }
        let mut height = 0;
        let args = self.args(list.parts, &mut height);
        if let Some(named) = args.first().filter(|a| a.name.is_some() || a.spread) {
            let span = named.name.as_ref().map_or(named.value.span, |n| n.span);
            self.report(
                Diagnostic::error("E0101", format!("expected the tensor that `{}` is called on", head.as_str()))
                    .at(span, "an argument with a name, or a spread one")
                    .help(format!("the form is `{form}`")),
            );
        }
        self.builder.node(ExprKind::Call { callee, args, method: true }, list.span, height)
    }

    fn args(&mut self, parts: Vec<Node<'_>>, height: &mut u32) -> Vec<Arg> {
        let mut args = Vec::with_capacity(parts.len());
        let (mut name, mut spread): (Option<Ident>, Option<Span>) = (None, None);
        for part in parts {
            match part.as_rule() {
                Rule::spread if spread.is_none() && name.is_none() => spread = Some(self.builder.span(&part)),
                Rule::infix if part.as_str() == "*" && spread.is_none() && name.is_none() => {
                    spread = Some(self.builder.span(&part));
                }
                Rule::key if name.is_none() => name = part.into_inner().next().map(|p| self.builder.ident(&p)),
                _ => {
                    let built = self.expr(part);
                    *height = built.height.max(*height);
                    args.push(Arg { name: name.take(), spread: spread.take().is_some(), value: built.expr });
                }
            }
        }
        if let Some(span) = name.map(|n| n.span).or(spread) {
            self.report(
                Diagnostic::error("E0101", "an argument without a value")
                    .at(span, "a value is missing behind this")
                    .help("a named argument is `:name value`"),
            );
        }
        args
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

    fn block(&mut self, list: List<'_>) -> Built {
        let span = list.span;
        if list.parts.len() != 2 {
            self.arity("let", "bindings and one expression", &list, 2, LET);
        }
        let mut height = 0;
        let mut lets = Vec::new();
        let mut parts = list.parts.into_iter();
        if let Some(bindings) = parts.next() {
            self.bindings(&bindings, &mut lets, &mut height);
        }
        let body = self.exprs(parts.collect(), &mut height).into_iter().next();
        match body {
            Some(body) if !lets.is_empty() => self.builder.node(ExprKind::Block(lets, Box::new(body)), span, height),
            _ => error(span),
        }
    }

    fn bindings(&mut self, datum: &Node<'_>, lets: &mut Vec<Let>, height: &mut u32) {
        let (what, help) = ("a binding `(name value)`", format!("the form is `{LET}`"));
        let Some(list) = self.list(datum) else {
            return self.expected("bindings `((name value) ..)`", Some(datum), self.builder.span(datum), &help);
        };
        // `(let (x 1) ..)`: one complaint, not two.
        if list.parts.first().is_none_or(|p| p.as_rule() != Rule::round) {
            return self.expected(what, list.parts.first(), list.close, &help);
        }
        for datum in &list.parts {
            let Some(binding) = self.list(datum) else {
                self.expected(what, Some(datum), list.close, &help);
                continue;
            };
            if binding.parts.len() != 2 {
                self.arity("let", "a name and a value in each binding", &binding, 2, LET);
            }
            let mut parts = binding.parts.into_iter();
            let pattern = parts.next().and_then(|p| self.pattern(&p));
            let value = self.exprs(parts.collect(), height).into_iter().next();
            if let (Some(pattern), Some(value)) = (pattern, value) {
                lets.push(Let { pattern, value });
            }
        }
    }

    fn pattern(&mut self, datum: &Node<'_>) -> Option<Pattern> {
        let Some(list) = self.list(datum) else {
            return self.name(Some(datum), self.builder.span(datum), "a name", LET).map(Pattern::Name);
        };
        if list.parts.first().is_none_or(|p| p.as_rule() != Rule::comma) {
            self.expected("`,`", list.parts.first(), list.close, "a tuple of names is `(, a b)`");
            return None;
        }
        if list.parts.len() < 3 {
            self.report(
                Diagnostic::error("E0105", "a tuple has at least two elements")
                    .at(list.span, "too few names")
                    .help("the form is `(, a b)`"),
            );
        }
        let mut names = Vec::new();
        for part in &list.parts[1..] {
            names.extend(self.name(Some(part), list.close, "a name", "(, a b)"));
        }
        Some(Pattern::Tuple(names, list.span))
    }

    fn function(&mut self, list: List<'_>) -> Built {
        let (span, close) = (list.span, list.close);
        let arrow = list.parts.get(1).is_some_and(|p| p.as_rule() == Rule::thin_arrow);
        let wanted = if arrow { 4 } else { 2 };
        if list.parts.len() != wanted {
            self.arity("fn", "parameters, `->` and a type if it is stated, and one expression", &list, wanted, FN);
        }
        let mut parts = list.parts.into_iter();
        let mut params = Vec::new();
        if let Some(datum) = parts.next() {
            match self.list(&datum) {
                Some(list) => list.parts.iter().for_each(|param| params.extend(self.param(param))),
                None => {
                    self.expected("parameters `((name type) ..)`", Some(&datum), close, &format!("the form is `{FN}`"))
                }
            }
        }
        let mut result = None;
        if arrow {
            parts.next();
            result = parts.next().and_then(|p| self.type_expr(Some(&p), close));
        }
        let mut height = 0;
        let body = self.exprs(parts.collect(), &mut height).into_iter().next();
        match body {
            Some(body) => self.builder.node(ExprKind::Fn(Box::new(Function { params, result, body })), span, height),
            None => error(span),
        }
    }

    fn param(&mut self, datum: &Node<'_>) -> Option<FnParam> {
        let Some(list) = self.list(datum) else {
            self.expected(
                "a parameter `(name type)`",
                Some(datum),
                self.builder.span(datum),
                &format!("the form is `{FN}`"),
            );
            return None;
        };
        if list.parts.len() > 2 {
            self.arity("fn", "a name and a type for each parameter", &list, 2, FN);
        }
        let name = self.name(list.parts.first(), list.close, "the name of a parameter", FN);
        let ty = self.type_expr(list.parts.get(1), list.close);
        Some(FnParam { name: name?, ty: ty? })
    }

    fn type_expr(&mut self, datum: Option<&Node<'_>>, close: Span) -> Option<TypeExpr> {
        let list = datum.and_then(|d| self.list(d));
        if let Some(mut list) = list.filter(|l| l.parts.first().is_some_and(|head| head.as_str() == "tensor")) {
            list.parts.remove(0);
            return self.type_parts(list);
        }
        self.expected("a type", datum, close, &format!("a type is `{TENSOR}`"));
        None
    }

    /// What stands behind `tensor`.
    fn type_parts(&mut self, list: List<'_>) -> Option<TypeExpr> {
        if list.parts.len() != 3 {
            self.arity("tensor", "a dtype, dimensions and a placement", &list, 3, TENSOR);
            return None;
        }
        let dtype = self.name(list.parts.first(), list.close, "a dtype", TENSOR);
        let mut dims = Some(Vec::new());
        match list.parts.get(1) {
            Some(square) if square.as_rule() == Rule::square => {
                for dim in inside(square) {
                    match (dim.as_rule(), &mut dims) {
                        (Rule::int, Some(dims)) => dims.push((dim.as_str().parse().ok(), self.builder.span(&dim))),
                        (Rule::int, None) => {}
                        _ => {
                            self.expected(
                                "a dimension (a whole number)",
                                Some(&dim),
                                list.close,
                                &format!("a type is `{TENSOR}`"),
                            );
                            dims = None;
                        }
                    }
                }
            }
            other => {
                self.expected("dimensions such as `[2 3]`", other, list.close, &format!("a type is `{TENSOR}`"));
                dims = None;
            }
        }
        let placement = match list.parts.get(2) {
            Some(place) if place.as_rule() == Rule::place => {
                place.clone().into_inner().next().map(|p| self.builder.ident(&p))
            }
            other => {
                self.expected(
                    "a placement (`@host` or `@device`)",
                    other,
                    list.close,
                    &format!("a type is `{TENSOR}`"),
                );
                None
            }
        };
        Some(TypeExpr { dtype: dtype?, dims: dims?, placement: placement?, span: list.span })
    }

    fn handle(&mut self, list: List<'_>) -> Built {
        let span = list.span;
        if list.parts.len() != 2 {
            self.arity("handle", "a call and a handler", &list, 2, HANDLE);
            return error(span);
        }
        let handler = self.name(list.parts.get(1), list.close, "a handler", HANDLE);
        let call = self.list(&list.parts[0]);
        let Some(mut call) = call.filter(|l| l.parts.first().is_some_and(|head| head.as_rule() == Rule::ident)) else {
            self.expected("a call such as `(f x)`", list.parts.first(), list.close, &format!("the form is `{HANDLE}`"));
            return error(span);
        };
        let callee = self.builder.ident(&call.parts.remove(0));
        let mut height = 0;
        let args = self.args(call.parts, &mut height);
        match handler {
            Some(handler) => self.builder.node(ExprKind::Handle { callee, args, handler }, span, height),
            None => error(span),
        }
    }

    fn comprehension(&mut self, list: List<'_>) -> Built {
        let span = list.span;
        let form = "(for name list element)` or `(for name list condition element)";
        if !(3..=4).contains(&list.parts.len()) {
            self.arity("for", "a name, a list, perhaps a condition, and an element", &list, 4, form);
            return error(span);
        }
        let mut parts = list.parts.into_iter();
        let name = parts.next();
        let name = self.name(name.as_ref(), list.close, "a name", form);
        let mut height = 0;
        let mut exprs = self.exprs(parts.collect(), &mut height).into_iter();
        match (name, exprs.next(), exprs.next_back()) {
            (Some(name), Some(over), Some(element)) => {
                let condition = exprs.next().map(Box::new);
                let kind =
                    ExprKind::Comprehension { element: Box::new(element), name, list: Box::new(over), condition };
                self.builder.node(kind, span, height)
            }
            _ => error(span),
        }
    }
}

/// The way out where something is no datum.
fn stray_hint(text: &str) -> Option<String> {
    let common = token_hint(text).map(str::to_owned);
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
