//! Items of rule files to compiled rules.

use super::example::{self, Example};
use super::extent::{Extent, MAX_LEFT, measure};
use super::rule::{
    AttrPattern, Conclusion, DomainCompare, DomainFact, Kink, Pattern, Rewrite, RewriteClass, RuleHead, VarKind, Vjp,
};
use super::scope::{Callee, Compiled, Library, Scope, bind_args};
use super::term::{AttrTerm, AttrTermKind, VarId};
use crate::diagnostics::{Diagnostic, Diagnostics, SourceMap, Span, closest};
use crate::ir::operator::{Default as AttrDefault, Words, listed};
use crate::ir::{AttrKind, AttrValue, OpId, Param, RuleRef, Signature};
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, Ident, Line, RewriteItem, UnaryOp, VjpItem};

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
fn word_in(kind: &ExprKind, words: &Words) -> Option<AttrValue> {
    let written: &str = match kind {
        ExprKind::Name(name) => name,
        ExprKind::NoCotangent => "none",
        _ => return None,
    };
    words.iter().find(|w| ***w == *written).map(|w| AttrValue::Word(w.to_string()))
}

/// Compiles a `vjp`. `None` if it has errors, which are in the bag.
pub fn compile_vjp(item: &VjpItem, library: &Library<'_>, sources: &SourceMap, bag: &mut Diagnostics) -> Option<Vjp> {
    let errors = bag.error_count();
    let mut scope = Scope::new(library);
    let Some(op) = library.registry.id(&item.op.name) else {
        if library.failed.contains(&item.op.name) {
            return None;
        }
        let names = library.registry.iter().map(|(_, op)| op.name());
        bag.push(
            Diagnostic::error("E0402", format!("there is no operator `{}`", item.op.name))
                .at(item.op.span, "unknown operator")
                .did_you_mean(&item.op.name, names)
                .help(format!("a VJP is of an operator or of a `def`: `def {}(..)` adds one", item.op.name)),
        );
        return None;
    };
    let operator = library.registry.op(op);
    let ExprKind::Call { callee, args, .. } = &item.premise.kind else {
        bag.push(premise_shape(item.premise.span, operator.name(), operator.signature()));
        return None;
    };
    if callee.name != item.op.name {
        bag.push(
            Diagnostic::error("E0410", format!("the premise calls `{}`, not `{}`", callee.name, item.op.name))
                .at(callee.span, "another operator")
                .also(item.op.span, "the VJP is of this one")
                .help("name the same operator in both places"),
        );
        return None;
    }
    let signature = operator.signature();
    let slots = bind_args(operator.name(), signature, args, item.premise.span, bag)?;
    let mut operands = Vec::new();
    let mut operand_names: Vec<Ident> = Vec::new();
    let mut attrs = Vec::new();
    for (param, slot) in signature.params().iter().zip(slots) {
        let is_variadic = matches!(param, Param::Variadic(_));
        let arg = match &slot[..] {
            [] => None,
            [one] if args[*one].spread == is_variadic => Some(&args[*one].value),
            _ => {
                bag.push(premise_shape(item.premise.span, operator.name(), signature));
                continue;
            }
        };
        match (param, arg.map(|a| (&a.kind, a.span))) {
            (Param::Operand(_) | Param::Variadic(_), Some((ExprKind::Name(name), span))) => {
                if scope.is_bound(name) {
                    bag.push(scope.bound_twice(name, span));
                }
                scope.place(name, span);
                operands.push(scope.var(name, if is_variadic { VarKind::Tensors } else { VarKind::Tensor }));
                operand_names.push(Ident { name: name.clone(), span });
            }
            // A word that is given by name is the word.
            (Param::Attr { words, .. }, Some((kind, _)))
                if slot.first().is_some_and(|i| args[*i].name.is_some()) && word_in(kind, words).is_some() =>
            {
                attrs.extend(word_in(kind, words).map(AttrPattern::Const));
            }
            (Param::Attr { kind: AttrKind::Word, words, .. }, Some((ExprKind::Name(name), span))) => {
                if scope.is_bound(name) {
                    bag.push(scope.bound_twice(name, span));
                }
                attrs.push(AttrPattern::Var(scope.word_var(name, words.clone())));
            }
            (Param::Attr { kind, .. }, Some((ExprKind::Name(name), span))) => {
                if scope.is_bound(name) {
                    bag.push(scope.bound_twice(name, span));
                }
                scope.place(name, span);
                attrs.push(AttrPattern::Var(scope.var(name, VarKind::Attr(Some(*kind)))));
            }
            (Param::Attr { name, kind, .. }, Some((_, span))) => {
                let value = arg.and_then(constant).and_then(|v| kind.coerce(v).ok());
                match value {
                    Some(value) => attrs.push(AttrPattern::Const(value)),
                    None => bag.push(
                        Diagnostic::error("E0410", format!("`{name}` in a premise is a name or a constant"))
                            .at(span, format!("not {}", kind.describe()))
                            .help("write a name, and a `where` line if it is to be restricted"),
                    ),
                }
            }
            (Param::Attr { default: Some(AttrDefault::Value(v)), .. }, None) => {
                attrs.push(AttrPattern::Const(v.clone()))
            }
            (Param::Attr { name, .. }, None) => bag.push(
                Diagnostic::error("E0410", format!("the premise must name `{name}`"))
                    .at(item.premise.span, "its default depends on the operand")
                    .help(format!("write `{}{}`", operator.name(), plain_call(signature))),
            ),
            (Param::Operand(_) | Param::Variadic(_), _) => {
                bag.push(premise_shape(item.premise.span, operator.name(), signature))
            }
        }
    }
    if bag.error_count() > errors {
        return None;
    }
    if scope.is_bound(&item.result.name) {
        bag.push(scope.bound_twice(&item.result.name, item.result.span));
    }
    scope.place(&item.result.name, item.result.span);
    let cotangent_name = format!("g_{}", item.result.name);
    scope.describe(&item.lines, false, Some(&cotangent_name));
    let primal = scope.var(&item.result.name, VarKind::Tensor);
    let cotangent = scope.var(&cotangent_name, VarKind::Tensor);
    let mut parts = Parts::default();
    let mut kinks = Vec::new();
    parts.operator = Some(op);
    let mut conclusions = Conclusions {
        found: operand_names.iter().map(|_| None).collect(),
        names: &operand_names,
        variadic: signature.variadic_place(),
        index: None,
        misplaced: Vec::new(),
    };
    for line in &item.lines {
        let concluded = match line {
            Line::Bind { name, value } => Some((name, None, value)),
            Line::BindIndexed { name, index, value } => Some((name, Some(index), value)),
            _ => None,
        };
        if let Some((name, index, value)) = concluded.filter(|(name, ..)| name.name.starts_with("g_")) {
            conclusions.conclude(&mut scope, name, index, value, bag);
            continue;
        }
        match line {
            Line::Kink { condition, name, value, span } => {
                let operand = stated("a kink", name, &conclusions, bag);
                let (condition, value) = (scope.compile(condition, bag), scope.tensor(value, bag));
                match (condition, operand, value) {
                    (Some(Compiled::Tensor(condition)), Some(operand), Some(value)) => {
                        kinks.push(Kink { condition, operand, value, span: *span });
                    }
                    (Some(Compiled::Attr(condition)), ..) => bag.push(
                        Diagnostic::error("E0408", "the condition of a kink is about the elements of a tensor")
                            .at(condition.span, "this is an attribute")
                            .help("compare an operand, e.g. `kink x == 0.0: g_x = 0.0`"),
                    ),
                    _ => {}
                }
            }
            Line::Example { condition, conclusion: Some((name, value)), span } => {
                if let Some(operand) = stated("an example", name, &conclusions, bag) {
                    let example = example::compile_conclusion(condition, operand, value, *span, &scope, bag);
                    parts.examples.extend(example);
                }
            }
            Line::NotADerivative(span) => parts.not_a_derivative = Some(*span),
            _ => parts.line(&mut scope, line, bag),
        }
    }
    let missing: Vec<String> = operand_names
        .iter()
        .enumerate()
        .filter(|(i, _)| conclusions.found[*i].is_none())
        .map(|(i, _)| conclusions.name_of(i))
        .collect();
    for misplaced in &conclusions.misplaced {
        bag.push(misplaced.report(&conclusions, &missing));
    }
    // Where there is a conclusion under a wrong name for each that is missing, that is what is wrong.
    let is_explained = conclusions.misplaced.len() >= missing.len();
    let index = conclusions.index;
    for (i, (name, conclusion)) in operand_names.iter().zip(&conclusions.found).enumerate() {
        if conclusion.is_none() && !is_explained {
            let wanted = conclusions.name_of(i);
            let locals = item.lines.iter().filter_map(|line| match line {
                Line::Bind { name, .. } if !name.name.starts_with("g_") => Some(&*name.name),
                _ => None,
            });
            let d = Diagnostic::error("E0404", format!("no conclusion for `{}`", name.name))
                .at(name.span, "this operand gets no cotangent");
            bag.push(match closest(&wanted, locals) {
                Some(near) => d.help(format!("`{near}` is the name of a local definition: did you mean `{wanted}`?")),
                None => d.help(format!("add `{wanted} = ..`, or `{wanted} = none` if none flows to it")),
            });
        }
    }
    if bag.error_count() > errors {
        return None;
    }
    let alternative = item.alternative.as_ref().map(|a| a.name.to_string());
    let name = match &alternative {
        Some(alternative) => format!("vjp {} as {alternative}", item.op.name),
        None => format!("vjp {}", item.op.name),
    };
    let conclusions: Vec<Conclusion> = conclusions.found.into_iter().flatten().map(|(c, _)| c).collect();
    let not_a_derivative = parts.not_a_derivative;
    let mut head = parts.head(scope, rule_ref(&name, item.op.span, sources), &item.doc, item.span);
    let terms = conclusions.iter().filter_map(|c| match c {
        Conclusion::Cotangent(term) => Some(term),
        Conclusion::NoCotangent(_) => None,
    });
    let terms = terms.chain(kinks.iter().flat_map(|k: &Kink| [&k.condition, &k.value]));
    head.extent = measure(&head, terms, library, bag)?;
    Some(Vjp { op, alternative, operands, attrs, primal, cotangent, conclusions, index, kinks, not_a_derivative, head })
}

/// The operand whose conclusion `name` is, in a line that states it; reports if there is none.
fn stated(what: &str, name: &Ident, conclusions: &Conclusions<'_>, bag: &mut Diagnostics) -> Option<usize> {
    let target = name.name.strip_prefix("g_");
    let found = conclusions.names.iter().position(|o| Some(&*o.name) == target);
    if found.is_none() {
        bag.push(
            Diagnostic::error("E0405", format!("{what} states a conclusion, and `{}` is none", name.name))
                .at(name.span, "unknown conclusion")
                .help(format!("the conclusions are {}", conclusions.listed())),
        );
    }
    found
}

/// What a `vjp` concludes, as far as it was read.
struct Conclusions<'a> {
    /// One for each operand of the premise, with its place.
    found: Vec<Option<(Conclusion, Span)>>,
    names: &'a [Ident],
    /// The place of the variadic operand.
    variadic: Option<usize>,
    /// The metavariable of its index.
    index: Option<VarId>,
    /// Conclusions for no operand, and further ones for the same.
    misplaced: Vec<Misplaced>,
}

impl Conclusions<'_> {
    /// `g_a`, or `g_xs[i]`
    fn name_of(&self, operand: usize) -> String {
        let index = if self.variadic == Some(operand) { "[i]" } else { "" };
        self.names.get(operand).map_or_else(String::new, |name| format!("g_{}{index}", name.name))
    }

    /// `g_a`, `g_b`
    fn listed(&self) -> String {
        let all: Vec<String> = (0..self.names.len()).map(|i| format!("`{}`", self.name_of(i))).collect();
        all.join(", ")
    }

    fn conclude(
        &mut self,
        scope: &mut Scope<'_>,
        name: &Ident,
        index: Option<&Ident>,
        value: &Expr,
        bag: &mut Diagnostics,
    ) {
        let target = name.name.strip_prefix("g_").unwrap_or(&name.name);
        let Some(place) = self.names.iter().position(|o| &*o.name == target) else {
            self.misplaced.push(Misplaced { name: name.clone(), first: None });
            return;
        };
        if let Some((_, first)) = &self.found[place] {
            self.misplaced.push(Misplaced { name: name.clone(), first: Some(*first) });
            return;
        }
        let is_none = value.kind == ExprKind::NoCotangent;
        let conclusion = if (self.variadic == Some(place)) != index.is_some() && !(is_none && index.is_none()) {
            bag.push(match index {
                Some(_) => Diagnostic::error("E0411", format!("`{}[..]` concludes a variadic operand", name.name))
                    .at(name.span, format!("`{target}` is one tensor"))
                    .help(format!("write `{} = ..`", name.name)),
                None => Diagnostic::error("E0411", format!("`{}` concludes each of several tensors", name.name))
                    .at(name.span, "without a name for the place of the tensor")
                    .help(format!("write `{} = ..`, in which `i` counts from 0", self.name_of(place))),
            });
            None
        } else if is_none {
            Some(Conclusion::NoCotangent(value.span))
        } else if let Some(index) = index {
            if scope.is_bound(&index.name) {
                bag.push(scope.bound_twice(&index.name, index.span));
            }
            scope.place(&index.name, index.span);
            self.index = Some(scope.var(&index.name, VarKind::Attr(Some(AttrKind::Int))));
            let term = scope.tensor(value, bag);
            scope.unbind(&index.name);
            term.map(Conclusion::Cotangent)
        } else {
            scope.tensor(value, bag).map(Conclusion::Cotangent)
        };
        // A conclusion with an error counts as given: it was reported.
        self.found[place] = Some((conclusion.unwrap_or(Conclusion::NoCotangent(value.span)), name.span));
    }
}

/// A conclusion that is none of an operand's.
struct Misplaced {
    name: Ident,
    /// Where the conclusion of that name stands already.
    first: Option<Span>,
}

impl Misplaced {
    /// `missing` are the conclusions that the rule does not have.
    fn report(&self, conclusions: &Conclusions<'_>, missing: &[String]) -> Diagnostic {
        let name = &self.name;
        let missing: Vec<String> = missing.iter().map(|m| format!("`{m}`")).collect();
        if let Some(first) = self.first {
            let d = Diagnostic::error("E0406", format!("`{}` is concluded twice", name.name))
                .at(name.span, "again here")
                .also(first, "first here");
            return match missing.first() {
                Some(missing) => d.help(format!("there is no {missing} yet: did you mean that?")),
                None => d.help("remove one of them"),
            };
        }
        let target = name.name.strip_prefix("g_").unwrap_or(&name.name);
        let otherwise = match &missing[..] {
            [] => format!("the conclusions are {}", conclusions.listed()),
            [one] => format!("the premise calls it otherwise: did you mean {one}?"),
            _ => format!("the premise calls its operands otherwise: {} are missing", missing.join(", ")),
        };
        Diagnostic::error("E0405", format!("`{}` concludes nothing: there is no operand `{target}`", name.name))
            .at(name.span, "unknown conclusion")
            .did_you_mean_or(target, conclusions.names.iter().map(|o| &*o.name), otherwise)
            .note("names that begin with `g_` are conclusions")
    }
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

/// Compiles a left side. Attributes that are neither names nor constants become fresh variables in `computed`.
fn pattern(
    scope: &mut Scope<'_>,
    expr: &Expr,
    computed: &mut Vec<(VarId, Expr)>,
    bag: &mut Diagnostics,
) -> Option<Pattern> {
    let by_name = |scope: &mut Scope<'_>, name: &str, args: &[&Expr], computed: &mut Vec<_>, bag: &mut Diagnostics| {
        let op = scope.library.registry.id(name)?;
        let mut operands = Vec::new();
        for arg in args {
            operands.push(pattern(scope, arg, computed, bag));
        }
        Some(Pattern::Op { op, operands: operands.into_iter().collect::<Option<_>>()?, attrs: Vec::new() })
    };
    match &expr.kind {
        ExprKind::Name(name) => match scope.lookup_var(name) {
            Some(v) if scope.vars[v.0 as usize].kind != VarKind::Tensor => {
                bag.push(both_kinds(name, expr.span));
                None
            }
            Some(v) => Some(Pattern::Var(v)),
            None => Some(Pattern::Var(scope.var(name, VarKind::Tensor))),
        },
        ExprKind::Unary(UnaryOp::Neg, a) if constant(expr).is_none() => by_name(scope, "neg", &[a], computed, bag),
        ExprKind::Unary(UnaryOp::Not, a) => by_name(scope, "logical_not", &[a], computed, bag),
        ExprKind::Binary(op, a, b) => match op.operator_name() {
            Some(name) => by_name(scope, name, &[a, b], computed, bag),
            None => {
                bag.push(not_a_pattern(expr.span));
                None
            }
        },
        ExprKind::Call { callee, args, .. } => {
            let op = match scope.callee(callee, args, bag)? {
                Callee::Op(op) => op,
                Callee::Def(def) => {
                    bag.push(
                        Diagnostic::error(
                            "E0410",
                            format!("`{}` is a `def` without a VJP, so it never stands in a graph", def.name),
                        )
                        .at(callee.span, "this can never match")
                        .help("write out its definition, or give it a `vjp`"),
                    );
                    return None;
                }
            };
            let registry = scope.library.registry;
            let signature = registry.op(op).signature();
            let slots = bind_args(&callee.name, signature, args, expr.span, bag)?;
            if let Some(spread) = args.iter().find(|a| a.spread) {
                bag.push(
                    Diagnostic::error("E0410", "a left side has each operand by its name")
                        .at(spread.value.span, "a list of tensors cannot be matched")
                        .help(format!("match calls with so many operands: `{}(a, b, ..)`", callee.name)),
                );
                return None;
            }
            let mut operands = Vec::new();
            let mut attrs = Vec::new();
            for (param, slot) in signature.params().iter().zip(slots) {
                if matches!(param, Param::Variadic(_)) {
                    for argument in slot {
                        operands.push(pattern(scope, &args[argument].value, computed, bag));
                    }
                    continue;
                }
                match (param, slot.first().map(|i| &args[*i].value)) {
                    (Param::Variadic(_), _) => {}
                    (Param::Operand(_), Some(arg)) => operands.push(pattern(scope, arg, computed, bag)),
                    (Param::Operand(_), None) => operands.push(None),
                    (Param::Attr { words, .. }, Some(arg)) if word_in(&arg.kind, words).is_some() => {
                        attrs.push(word_in(&arg.kind, words).map(AttrPattern::Const));
                    }
                    (Param::Attr { name, kind: AttrKind::Word, words, .. }, Some(arg)) => {
                        bag.push(
                            Diagnostic::error("E0408", format!("`{name}` of `{}` is {}", callee.name, listed(words)))
                                .at(arg.span, "a left side has one of these words")
                                .help("write a rule for each of them"),
                        );
                        attrs.push(None);
                    }
                    (Param::Attr { kind, .. }, Some(arg)) => attrs.push(attr_pattern(scope, *kind, arg, computed, bag)),
                    (Param::Attr { default: Some(AttrDefault::Value(v)), .. }, None) => {
                        attrs.push(Some(AttrPattern::Const(v.clone())));
                    }
                    (Param::Attr { name, .. }, None) => {
                        bag.push(
                            Diagnostic::error("E0410", format!("the pattern must name `{name}` of `{}`", callee.name))
                                .at(expr.span, "its default depends on the operand")
                                .help(format!("add `{name}={name}`")),
                        );
                        attrs.push(None);
                    }
                }
            }
            let operands: Option<Vec<Pattern>> = operands.into_iter().collect();
            let attrs: Option<Vec<AttrPattern>> = attrs.into_iter().collect();
            Some(Pattern::Op { op, operands: operands?, attrs: attrs? })
        }
        _ => match constant(expr).and_then(|v| v.as_float()) {
            // A number matches a splat of it, of whatever type.
            Some(value) => Some(Pattern::Op {
                op: scope.library.registry.id("splat")?,
                operands: Vec::new(),
                attrs: vec![
                    AttrPattern::Const(AttrValue::float(value)),
                    AttrPattern::Var(scope.fresh("type", VarKind::Attr(Some(AttrKind::Type)))),
                ],
            }),
            None => {
                bag.push(not_a_pattern(expr.span));
                None
            }
        },
    }
}

fn attr_pattern(
    scope: &mut Scope<'_>,
    kind: AttrKind,
    arg: &Expr,
    computed: &mut Vec<(VarId, Expr)>,
    bag: &mut Diagnostics,
) -> Option<AttrPattern> {
    if let ExprKind::Name(name) = &arg.kind {
        return match scope.lookup_var(name) {
            Some(v) if scope.vars[v.0 as usize].kind == VarKind::Tensor => {
                bag.push(both_kinds(name, arg.span));
                None
            }
            // One axis and a list of axes are different values: two names and a `where` say how they relate.
            Some(v) if scope.vars[v.0 as usize].kind != VarKind::Attr(Some(kind)) => {
                let before = match scope.vars[v.0 as usize].kind {
                    VarKind::Attr(Some(before)) => before.describe(),
                    _ => "of another kind",
                };
                let d =
                    Diagnostic::error("E0408", format!("`{name}` is {} here, but {before} elsewhere", kind.describe()))
                        .at(arg.span, format!("{} here", kind.describe()));
                bag.push(d.help(match kind {
                    AttrKind::Axis | AttrKind::Axes => {
                        "give it another name and relate the two by `where`, e.g. `where axes == [axis]`"
                    }
                    _ => "give it another name and relate the two by `where`",
                }));
                None
            }
            Some(v) => Some(AttrPattern::Var(v)),
            None => Some(AttrPattern::Var(scope.var(name, VarKind::Attr(Some(kind))))),
        };
    }
    if let Some(value) = constant(arg) {
        return match kind.coerce(value) {
            Ok(value) => Some(AttrPattern::Const(value)),
            Err(value) => {
                bag.push(
                    Diagnostic::error("E0408", format!("expected {}, found {}", kind.describe(), value.describe()))
                        .at(arg.span, "wrong kind of attribute")
                        .help("write a constant of that kind, or a name"),
                );
                None
            }
        };
    }
    let var = scope.fresh("computed", VarKind::Attr(Some(kind)));
    computed.push((var, arg.clone()));
    Some(AttrPattern::Var(var))
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
    domain: Vec<DomainFact>,
    examples: Vec<Example>,
    /// The operator of a VJP.
    operator: Option<OpId>,
    not_a_derivative: Option<Span>,
}

impl Parts {
    pub(super) fn line(&mut self, scope: &mut Scope<'_>, line: &Line, bag: &mut Diagnostics) {
        match line {
            Line::Bind { name, value } => scope.define(name, value, bag),
            Line::Where(condition) => match scope.compile(condition, bag) {
                Some(Compiled::Attr(condition)) => self.conditions.push(condition),
                Some(Compiled::Tensor(tensor)) => bag.push(
                    Diagnostic::error(
                        "E0408",
                        "a `where` line is about shapes, types and attributes, not about elements",
                    )
                    .at(tensor.span, "this is a tensor")
                    .help("what must hold of all elements stands in a `domain` line, e.g. `domain x >= 0.0`"),
                ),
                None => {}
            },
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
            domain: self.domain,
            examples: self.examples,
            extent: Extent::default(),
        }
    }
}

fn premise_shape(span: Span, op: &str, signature: &Signature) -> Diagnostic {
    Diagnostic::error("E0410", "a premise is a plain call of names")
        .at(span, "not a plain call")
        .help(format!("write `y = {op}{}`", plain_call(signature)))
}

pub(super) fn plain_call(signature: &Signature) -> String {
    let names = signature.params().iter().map(|p| match p {
        Param::Variadic(name) => format!("*{name}"),
        p => p.name().to_owned(),
    });
    format!("({})", names.collect::<Vec<_>>().join(", "))
}

fn both_kinds(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error("E0408", format!("`{name}` is a tensor in one place and an attribute in another"))
        .at(span, "used as the other kind here")
        .help("give the tensor and the attribute names of their own")
}

fn not_a_pattern(span: Span) -> Diagnostic {
    Diagnostic::error("E0410", "a left side has operator calls, names and numbers only")
        .at(span, "cannot be matched")
        .help("match it by a name, and restrict the name with `where`")
}

fn domain_shape(span: Span) -> Diagnostic {
    Diagnostic::error("E0411", "a domain compares a named tensor with a number")
        .at(span, "not of that form")
        .help("write names of the rule and numbers, e.g. `domain x > 0 && y <= 1`")
}
