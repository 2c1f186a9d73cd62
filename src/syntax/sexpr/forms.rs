//! The forms that bind names and state types: `let`, `fn`, `handle`, `tensor`, `for`.

use super::{FN, HANDLE, LET, List, Reader, TENSOR, inside};
use crate::diagnostics::{Diagnostic, Span};
use crate::syntax::ast::{ExprKind, FnParam, Function, Let, Pattern, TypeExpr};
use crate::syntax::expr::{Built, Node, error};
use crate::syntax::grammar::Rule;

impl Reader<'_> {
    pub(super) fn block(&mut self, list: List<'_>) -> Built {
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

    pub(super) fn function(&mut self, list: List<'_>) -> Built {
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
    pub(super) fn type_parts(&mut self, list: List<'_>) -> Option<TypeExpr> {
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

    pub(super) fn handle(&mut self, list: List<'_>) -> Built {
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

    pub(super) fn comprehension(&mut self, list: List<'_>) -> Built {
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
