//! `vjp` items to compiled VJPs.

use super::compile::{Parts, constant, no_when, rule_ref, word_in};
use super::example;
use super::extent::measure;
use super::rule::{AttrPattern, Conclusion, Kink, VarKind, Vjp};
use super::scope::{Compiled, Library, Scope, bind_args};
use super::term::VarId;
use crate::diagnostics::{Diagnostic, Diagnostics, SourceMap, Span, closest};
use crate::ir::operator::Default as AttrDefault;
use crate::ir::{AttrKind, Param, Signature};
use crate::syntax::ast::{Expr, ExprKind, Ident, Line, VjpItem};

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
    no_when(&head, bag);
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
