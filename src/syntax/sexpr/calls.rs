//! Lists by their heads: calls, operators, and the forms of the neighbouring file.

use super::{FORMS, List, Reader};
use crate::diagnostics::{Diagnostic, Span, closest};
use crate::syntax::ast::{Arg, BinaryOp, Expr, ExprKind, Ident, UnaryOp};
use crate::syntax::expr::{Built, Node, binary_op, error};
use crate::syntax::grammar::Rule;

impl Reader<'_> {
    pub(super) fn round(&mut self, datum: &Node<'_>) -> Built {
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

    pub(super) fn args(&mut self, parts: Vec<Node<'_>>, height: &mut u32) -> Vec<Arg> {
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
}
