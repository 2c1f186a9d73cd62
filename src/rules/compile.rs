//! Items of rule files to compiled rules.

use super::example::{self, Example};
use super::extent::{Extent, MAX_LEFT, measure};
use super::pattern::pattern;
use super::rule::{DomainCompare, DomainFact, Rewrite, RewriteClass, RuleHead, VarKind};
use super::scope::{Compiled, Library, Scope};
use super::term::{AttrTerm, AttrTermKind};
use crate::diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use crate::ir::operator::Words;
use crate::ir::{AttrValue, OpId, RuleRef};
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, Line, RewriteItem, UnaryOp};

/// How a rule is named and placed in everything it makes.
pub fn rule_ref(name: &str, span: Span, sources: &SourceMap) -> RuleRef {
    RuleRef { name: name.into(), location: sources.file_line(span).into() }
}

/// The value of an expression that is a constant, if it is one.
pub fn constant(expr: &Expr) -> Option<AttrValue> {
    match &expr.kind {
        ExprKind::Int(i) => Some(AttrValue::Int(*i)),
        ExprKind::Float(v) => Some(AttrValue::float(*v)),
        ExprKind::Bool(b) => Some(AttrValue::Bool(*b)),
        ExprKind::Unary(UnaryOp::Neg, a) => match constant(a)? {
            AttrValue::Int(i) => i.checked_neg().map(AttrValue::Int),
            AttrValue::Float(v) => Some(AttrValue::float(-v.get())),
            _ => None,
        },
        ExprKind::List(items) => {
            let ints = items.iter().map(|i| constant(i).and_then(|v| v.as_int()));
            ints.collect::<Option<Vec<i64>>>().map(AttrValue::Ints)
        }
        _ => None,
    }
}

/// The word that an expression is, if it is one of `words`.
pub(super) fn word_in(kind: &ExprKind, words: &Words) -> Option<AttrValue> {
    let written: &str = match kind {
        ExprKind::Name(name) => name,
        ExprKind::NoCotangent => "none",
        _ => return None,
    };
    words.iter().find(|w| ***w == *written).map(|w| AttrValue::Word(w.to_string()))
}

/// Compiles a `rewrite` into one directed rewrite, or two for `<=>`.
pub fn compile_rewrite(
    item: &RewriteItem,
    library: &Library<'_>,
    sources: &SourceMap,
    bag: &mut Diagnostics,
) -> Vec<Rewrite> {
    let class = match &*item.class.name {
        "exact" => RewriteClass::Exact,
        "real" => RewriteClass::Real,
        other => {
            bag.push(
                Diagnostic::error("E0409", format!("`{other}` is not a class of rewrites"))
                    .at(item.class.span, "unknown class")
                    .did_you_mean(other, ["exact", "real"])
                    .help(
                        "`[exact]` promises equality on every float, `[real]` over the reals without losing accuracy",
                    ),
            );
            return Vec::new();
        }
    };
    let mut out = Vec::new();
    out.extend(directed(item, &item.name.name, class, &item.left, &item.right, library, sources, bag));
    if item.both_ways && !bag.has_errors() {
        let name = format!("{}_reversed", item.name.name);
        out.extend(directed(item, &name, class, &item.right, &item.left, library, sources, bag));
    }
    out
}

#[allow(clippy::too_many_arguments)]
fn directed(
    item: &RewriteItem,
    name: &str,
    class: RewriteClass,
    left: &Expr,
    right: &Expr,
    library: &Library<'_>,
    sources: &SourceMap,
    bag: &mut Diagnostics,
) -> Option<Rewrite> {
    let errors = bag.error_count();
    let mut scope = Scope::new(library);
    let mut computed = Vec::new();
    let left_pattern = pattern(&mut scope, left, &mut computed, bag);
    if bag.error_count() > errors {
        return None;
    }
    let left_pattern = left_pattern?;
    if left_pattern.root().is_none() {
        bag.push(
            Diagnostic::error("E0410", "a rewrite's left side must be an operator call")
                .at(left.span, "this matches every value")
                .help("write the call that the rule replaces"),
        );
        return None;
    }
    if left_pattern.calls() > MAX_LEFT {
        bag.push(
            Diagnostic::error("E0417", format!("the left side of `{name}` has more than {MAX_LEFT} operator calls"))
                .at(left.span, "too large")
                .help("match a part of it, and the rest by other rules"),
        );
        return None;
    }
    scope.describe(&item.lines, false, None);
    let mut parts = Parts::default();
    // An attribute that the pattern computes is a condition on what it matched.
    for (var, expr) in computed {
        if let Some(wanted) = scope.attr(&expr, bag) {
            let var = AttrTerm { kind: AttrTermKind::Var(var), span: expr.span };
            let kind = AttrTermKind::Binary(BinaryOp::Eq, Box::new(var), Box::new(wanted));
            parts.conditions.push(AttrTerm { kind, span: expr.span });
        }
    }
    for line in &item.lines {
        parts.line(&mut scope, line, bag);
    }
    let right = scope.tensor(right, bag);
    if bag.error_count() > errors {
        return None;
    }
    let right = right?;
    let mut head = parts.head(scope, rule_ref(name, item.name.span, sources), &item.doc, item.span);
    head.extent = measure(&head, [&right], library, bag)?;
    Some(Rewrite { head, class, left: left_pattern, right, needs_numbers: false })
}

/// Visits an expression and all its parts.
pub fn walk<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    visit(expr);
    match &expr.kind {
        ExprKind::List(items) | ExprKind::Tuple(items) => items.iter().for_each(|e| walk(e, visit)),
        ExprKind::Call { args, .. } => args.iter().for_each(|a| walk(&a.value, visit)),
        ExprKind::Unary(_, a) => walk(a, visit),
        ExprKind::Binary(_, a, b) | ExprKind::Index(a, b) => {
            walk(a, visit);
            walk(b, visit);
        }
        ExprKind::If(c, a, b) => {
            walk(c, visit);
            walk(a, visit);
            walk(b, visit);
        }
        ExprKind::Comprehension { element, list, condition, .. } => {
            walk(element, visit);
            walk(list, visit);
            if let Some(c) = condition {
                walk(c, visit);
            }
        }
        _ => {}
    }
}

/// The lines below the bar that every kind of rule may have.
#[derive(Default)]
pub(super) struct Parts {
    conditions: Vec<AttrTerm>,
    worth: Vec<AttrTerm>,
    domain: Vec<DomainFact>,
    pub(super) examples: Vec<Example>,
    /// The operator of a VJP.
    pub(super) operator: Option<OpId>,
    pub(super) not_a_derivative: Option<Span>,
}

impl Parts {
    pub(super) fn line(&mut self, scope: &mut Scope<'_>, line: &Line, bag: &mut Diagnostics) {
        match line {
            Line::Bind { name, value } => scope.define(name, value, bag),
            Line::Where(condition) => self.conditions.extend(attribute_condition("where", scope, condition, bag)),
            Line::When(condition) => self.worth.extend(attribute_condition("when", scope, condition, bag)),
            Line::Domain(condition) => self.domain(scope, condition, bag),
            Line::Example { condition, conclusion: None, span } => {
                self.examples.extend(example::compile(condition, *span, self.operator, scope.library, bag));
            }
            Line::Kink { span, .. } | Line::NotADerivative(span) | Line::Example { span, .. } => bag.push(
                Diagnostic::error("E0411", "this line is about the conclusions of a VJP")
                    .at(*span, "not possible here")
                    .help("remove it; `where`, `domain` and `example CONDITION` may stand in every rule"),
            ),
            Line::BindIndexed { name, .. } => bag.push(
                Diagnostic::error("E0411", format!("`{}[..]` is not the conclusion of a variadic operand", name.name))
                    .at(name.span, "only such conclusions have an index")
                    .help(format!("write `{} = ..`", name.name)),
            ),
        }
    }

    fn domain(&mut self, scope: &mut Scope<'_>, condition: &Expr, bag: &mut Diagnostics) {
        let ExprKind::Binary(op, a, b) = &condition.kind else {
            bag.push(domain_shape(condition.span));
            return;
        };
        if *op == BinaryOp::And {
            self.domain(scope, a, bag);
            self.domain(scope, b, bag);
            return;
        }
        let tensor = |scope: &Scope<'_>, e: &Expr| match &e.kind {
            ExprKind::Name(name) => scope.lookup_var(name).filter(|v| scope.vars[v.0 as usize].kind == VarKind::Tensor),
            _ => None,
        };
        let (compare, flipped) = match op {
            BinaryOp::Lt => (DomainCompare::Lt, DomainCompare::Gt),
            BinaryOp::Le => (DomainCompare::Le, DomainCompare::Ge),
            BinaryOp::Gt => (DomainCompare::Gt, DomainCompare::Lt),
            BinaryOp::Ge => (DomainCompare::Ge, DomainCompare::Le),
            _ => {
                bag.push(domain_shape(condition.span));
                return;
            }
        };
        let (tensor, compare, bound) = match (tensor(scope, a), tensor(scope, b)) {
            (Some(t), None) => (t, compare, b),
            (None, Some(t)) => (t, flipped, a),
            // A name that is not bound is what is wrong.
            _ if [a, b].iter().any(|e| matches!(&e.kind, ExprKind::Name(name) if !scope.is_bound(name))) => {
                scope.compile(condition, bag);
                return;
            }
            _ => {
                let named = |e: &Expr| match &e.kind {
                    ExprKind::Name(name) if scope.is_bound(name) => Some((name.clone(), scope.lookup_var(name))),
                    _ => None,
                };
                bag.push(match named(a).or_else(|| named(b)) {
                    Some((name, Some(v))) if matches!(scope.vars[v.0 as usize].kind, VarKind::Attr(_)) => {
                        Diagnostic::error("E0411", format!("`{name}` is an attribute, and a domain is about tensors"))
                            .at(condition.span, "known when the rule fires")
                            .help("write `where` instead of `domain`")
                    }
                    Some((name, None)) => {
                        Diagnostic::error("E0411", format!("`{name}` is a local definition, of which nothing is known"))
                            .at(condition.span, "a domain is about what the rule matches")
                            .help("state what holds for the names that it is computed from")
                    }
                    _ => domain_shape(condition.span),
                });
                return;
            }
        };
        if let Some(bound) = scope.attr(bound, bag) {
            self.domain.push(DomainFact { tensor, compare, bound, span: condition.span });
        }
    }

    pub(super) fn head(self, scope: Scope<'_>, rule: RuleRef, doc: &str, span: Span) -> RuleHead {
        RuleHead {
            rule,
            doc: doc.to_owned(),
            span,
            vars: scope.vars,
            locals: scope.locals,
            conditions: self.conditions,
            worth: self.worth,
            domain: self.domain,
            examples: self.examples,
            extent: Extent::default(),
        }
    }
}

/// What a `where` or `when` line says.
fn attribute_condition(word: &str, scope: &mut Scope<'_>, condition: &Expr, bag: &mut Diagnostics) -> Option<AttrTerm> {
    match scope.compile(condition, bag)? {
        Compiled::Attr(condition) => Some(condition),
        Compiled::Tensor(tensor) => {
            bag.push(
                Diagnostic::error(
                    "E0408",
                    format!("a `{word}` line is about shapes, types and attributes, not about elements"),
                )
                .at(tensor.span, "this is a tensor")
                .help("what must hold of all elements stands in a `domain` line, e.g. `domain x >= 0.0`"),
            );
            None
        }
    }
}

/// Rules other than rewrites are not chosen by what is worth trying.
pub(super) fn no_when(head: &RuleHead, bag: &mut Diagnostics) {
    for condition in &head.worth {
        bag.push(
            Diagnostic::error("E0411", "`when` says where a rewrite is worth trying, and this is no rewrite")
                .at(condition.span, "not possible here")
                .help("write `where`, which says where the rule holds"),
        );
    }
}

fn domain_shape(span: Span) -> Diagnostic {
    Diagnostic::error("E0411", "a domain compares a named tensor with a number")
        .at(span, "not of that form")
        .help("write names of the rule and numbers, e.g. `domain x > 0 && y <= 1`")
}
