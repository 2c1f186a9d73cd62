//! Calls in rules: of operators, of composites, of functions on attributes.

use std::collections::BTreeMap;

use super::super::attributes::AttrFunction;
use super::super::rule::VarKind;
use super::super::term::{AttrArg, AttrTerm, AttrTermKind, LocalValue, Tensor, Term, TermKind, TypeProperty};
use super::{Callee, Compiled, Name, Scope, as_term};
use crate::diagnostics::{Diagnostic, Diagnostics, Span, UNKNOWN_OPERATOR};
use crate::ir::operator::Words;
use crate::ir::{AttrKind, AttrValue, BindError, Param, Signature};
use crate::syntax::ast::{Arg, Expr, ExprKind, Ident};

impl<'a> Scope<'a> {
    /// Finds what a call refers to, or reports it.
    pub fn callee(&mut self, callee: &Ident, args: &[Arg], bag: &mut Diagnostics) -> Option<Callee> {
        if let Some(id) = self.library.registry.id(&callee.name) {
            return Some(Callee::Op(id));
        }
        if let Some(def) = self.library.defs.get(&callee.name) {
            return Some(Callee::Def(def.clone()));
        }
        if self.library.failed.contains(&callee.name) || !self.unknown.insert(callee.name.clone()) {
            return None;
        }
        let names = self.library.registry.iter().map(|(_, op)| op.name());
        let defs = self.library.defs.keys().map(|k| &**k);
        let functions = || AttrFunction::ALL.iter().map(|(n, _, _)| *n).chain(OF_TENSORS);
        let all = names.chain(defs).chain(functions());
        // What has attributes only is meant to be a function of the attribute language, which nobody can add to.
        bag.push(if !args.is_empty() && args.iter().all(|arg| self.is_attribute(&arg.value)) {
            let listed: Vec<String> = functions().map(|f| format!("`{f}`")).collect();
            Diagnostic::error("E0402", format!("there is no function `{}` of attributes", callee.name))
                .at(callee.span, "unknown function")
                .did_you_mean_or(&callee.name, all, format!("the functions are {}", listed.join(", ")))
        } else {
            Diagnostic::error("E0402", format!("there is no operator or `def` named `{}`", callee.name))
                .at(callee.span, "unknown operator")
                .did_you_mean_or(&callee.name, all, UNKNOWN_OPERATOR)
        });
        None
    }

    /// Is it an attribute, as far as can be told before it is compiled?
    pub(super) fn is_attribute(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name(name) => match self.names.get(name) {
                Some(Name::Var(v)) => matches!(self.vars[v.0 as usize].kind, VarKind::Attr(_)),
                Some(Name::Local(l)) => matches!(self.locals[l.0 as usize].value, LocalValue::Attr(_)),
                None => false,
            },
            ExprKind::List(_) | ExprKind::Comprehension { .. } => true,
            ExprKind::Call { callee, .. } => type_property(&callee.name).is_some() || &*callee.name == "dim",
            _ => false,
        }
    }

    pub(super) fn call(&mut self, callee: &Ident, args: &[Arg], span: Span, bag: &mut Diagnostics) -> Option<Compiled> {
        if let Some(property) = type_property(&callee.name) {
            let tensor = self.typed_name(callee, args, 1, bag)?;
            return Some(Compiled::Attr(AttrTerm { kind: AttrTermKind::Of(property, tensor), span }));
        }
        if &*callee.name == "dim" {
            let tensor = self.typed_name(callee, args, 2, bag)?;
            let axis = Box::new(self.attr(&args[1].value, bag)?);
            return Some(Compiled::Attr(AttrTerm { kind: AttrTermKind::Dim(tensor, axis), span }));
        }
        if let ("len", [Arg { name: None, value, .. }]) = (&*callee.name, args)
            && let Some(list) = self.list_of_tensors(value)
        {
            return Some(Compiled::Attr(AttrTerm { kind: AttrTermKind::Count(list), span }));
        }
        let function = AttrFunction::from_name(&callee.name);
        // What is called and what it is called with may both be faulty.
        let target = if function.is_none() { self.callee(callee, args, bag) } else { None };
        let params = target.as_ref().map(|target| word_params(self.signature(target), args)).unwrap_or_default();
        let mut values = Vec::new();
        for (i, arg) in args.iter().enumerate() {
            if let Some((name, words)) = params.get(&i) {
                values.push(self.word(name, words, &arg.value, bag).map(Compiled::Attr));
                continue;
            }
            values.push(if arg.spread { self.spread(arg, bag) } else { self.compile(&arg.value, bag) });
        }
        let values: Vec<Compiled> = values.into_iter().collect::<Option<_>>()?;
        // An operator of the same name as a function is meant where an argument is a tensor, or where there are other arguments than
        // the function has.
        let has_operator = self.library.registry.id(&callee.name).is_some();
        let is_function = |arity: usize| {
            let fits = values.len() == arity && args.iter().all(|a| a.name.is_none());
            !values.iter().any(|v| matches!(v, Compiled::Tensor(_))) && (fits || !has_operator)
        };
        if let Some((function, arity)) = function.filter(|(_, arity)| is_function(*arity)) {
            if values.len() != arity || args.iter().any(|a| a.name.is_some()) {
                bag.push(
                    Diagnostic::error("E0403", format!("`{}` has {}", callee.name, unnamed(arity)))
                        .at(span, format!("{} given", values.len()))
                        .help(format!("the form is `{}`", function.form())),
                );
                return None;
            }
            let args = values.into_iter().filter_map(|v| match v {
                Compiled::Attr(a) => Some(a),
                Compiled::Tensor(_) => None,
            });
            return Some(Compiled::Attr(AttrTerm { kind: AttrTermKind::Call(function, args.collect()), span }));
        }
        let is_operator =
            self.library.registry.id(&callee.name).is_some() || self.library.defs.contains_key(&callee.name);
        if function.is_some() && !is_operator {
            let of_types = ["is_float", "with_shape", "with_dtype"].contains(&&*callee.name);
            let property = if of_types { "type" } else { "shape" };
            let shown = match args.first().map(|a| &a.value.kind) {
                Some(ExprKind::Name(name)) => name.to_string(),
                _ => "x".to_owned(),
            };
            bag.push(
                Diagnostic::error("E0408", format!("`{}` is a function of attributes, not of tensors", callee.name))
                    .at(span, "called with a tensor")
                    .help(format!("ask for an attribute of it: `{}({property}({shown}))`", callee.name)),
            );
            return None;
        }
        let target = if function.is_some() { self.callee(callee, args, bag) } else { target }?;
        // `splat(v)` without a type is the number v in tensor position.
        if &*callee.name == "splat" && values.len() == 1 {
            if let Some(Compiled::Attr(value)) = values.into_iter().next() {
                return Some(Compiled::Tensor(Term { kind: TermKind::Literal(value), span }));
            }
            return None;
        }
        let signature = self.signature(&target);
        let slots = bind_args(&callee.name, signature, args, span, bag)?;
        let mut values: Vec<Option<Compiled>> = values.into_iter().map(Some).collect();
        let mut operands = Vec::new();
        let mut attrs = Vec::new();
        for (param, slot) in signature.params().iter().zip(slots) {
            if matches!(param, Param::Variadic(_)) {
                operands.extend(slot.into_iter().filter_map(|i| values[i].take()).map(as_term));
                continue;
            }
            let argument = slot.first().copied();
            if let Some(spread) = argument.map(|i| &args[i]).filter(|a| a.spread) {
                bag.push(
                    Diagnostic::error("E0403", format!("`{}` of `{}` is one value", param.name(), callee.name))
                        .at(spread.value.span, "a list of tensors stands here")
                        .help("write `xs[i]` for one of them"),
                );
                return None;
            }
            match (param, argument.and_then(|i| values[i].take())) {
                (Param::Variadic(_), _) => {}
                (Param::Operand(operand), Some(value)) => {
                    if let Compiled::Attr(a) = &value
                        && let Some(kind) = self.no_number(a)
                    {
                        bag.push(
                            Diagnostic::error("E0408", format!("`{operand}` of `{}` is a tensor", callee.name))
                                .at(a.span, format!("this is {kind}"))
                                .help("write a tensor, or a number, which becomes one"),
                        );
                        return None;
                    }
                    operands.push(as_term(value));
                }
                (Param::Operand(_), None) => return None,
                (Param::Attr { kind, .. }, Some(Compiled::Attr(a))) => {
                    let span = a.span;
                    let coerced = matches!(kind, AttrKind::Axes | AttrKind::Float);
                    let a = if coerced { AttrTerm { kind: AttrTermKind::As(*kind, Box::new(a)), span } } else { a };
                    attrs.push(AttrArg::Given(a));
                }
                (Param::Attr { name, kind, .. }, Some(Compiled::Tensor(t))) => {
                    bag.push(
                        Diagnostic::error("E0408", format!("`{name}` of `{}` is {}", callee.name, kind.describe()))
                            .at(t.span, "this is a tensor")
                            .help("write an attribute, such as `shape(x)`, `type(x)` or a constant"),
                    );
                    return None;
                }
                (Param::Attr { default, .. }, None) => attrs.extend(default.clone().map(AttrArg::Default)),
            }
        }
        let kind = match target {
            Callee::Op(op) => TermKind::Op { op, operands, attrs },
            Callee::Def(def) => TermKind::Composite { def, operands, attrs },
        };
        Some(Compiled::Tensor(Term { kind, span }))
    }

    /// What an attribute is that cannot become a tensor of one value.
    pub(super) fn no_number(&self, attr: &AttrTerm) -> Option<&'static str> {
        match &attr.kind {
            AttrTermKind::Var(v) => match self.vars[v.0 as usize].kind {
                VarKind::Attr(Some(kind))
                    if !matches!(kind, AttrKind::Int | AttrKind::Float | AttrKind::Bool | AttrKind::Axis) =>
                {
                    Some(kind.describe())
                }
                _ => None,
            },
            AttrTermKind::List(_) | AttrTermKind::Comprehension { .. } => Some("a list"),
            AttrTermKind::Of(TypeProperty::Shape, _) => Some("a shape"),
            AttrTermKind::Of(TypeProperty::Type, _) => Some("a type"),
            AttrTermKind::Of(TypeProperty::DType, _) | AttrTermKind::Const(AttrValue::DType(_)) => Some("a dtype"),
            _ => None,
        }
    }

    /// The parameters of what is called.
    pub(super) fn signature<'s>(&self, target: &'s Callee) -> &'s Signature
    where
        'a: 's,
    {
        match target {
            Callee::Op(op) => self.library.registry.op(*op).signature(),
            Callee::Def(def) => &def.signature,
        }
    }

    /// Is the attribute a tensor type, as far as its kind is known?
    pub(super) fn is_type(&self, attr: &AttrTerm) -> bool {
        match &attr.kind {
            AttrTermKind::Var(v) => self.vars[v.0 as usize].kind == VarKind::Attr(Some(AttrKind::Type)),
            AttrTermKind::Local(l) => match &self.locals[l.0 as usize].value {
                LocalValue::Attr(value) => self.is_type(value),
                LocalValue::Tensor(_) => false,
            },
            AttrTermKind::Const(value) => value.as_type().is_some(),
            AttrTermKind::Of(property, _) => *property == TypeProperty::Type,
            AttrTermKind::Call(function, _) => matches!(function, AttrFunction::WithShape | AttrFunction::WithDType),
            AttrTermKind::If(_, a, b) => self.is_type(a) && self.is_type(b),
            _ => false,
        }
    }

    /// `*xs` in a call.
    pub(super) fn spread(&mut self, arg: &Arg, bag: &mut Diagnostics) -> Option<Compiled> {
        if let Some(list) = self.list_of_tensors(&arg.value) {
            return Some(Compiled::Tensor(Term { kind: TermKind::All(list), span: arg.value.span }));
        }
        bag.push(
            Diagnostic::error("E0403", "`*` stands before a list of tensors")
                .at(arg.value.span, "not a list of tensors")
                .help("only a variadic operand of the premise is one: `y = concat(*xs, axis)`"),
        );
        None
    }

    /// The name in `shape(x)`, `dim(xs[i], axis)`: only a name, since only its type is asked for.
    pub(super) fn typed_name(
        &mut self,
        callee: &Ident,
        args: &[Arg],
        arity: usize,
        bag: &mut Diagnostics,
    ) -> Option<Tensor> {
        if args.len() != arity || args.iter().any(|a| a.name.is_some()) {
            bag.push(
                Diagnostic::error("E0403", format!("`{}` has {}", callee.name, unnamed(arity)))
                    .at(callee.span, format!("{} given", args.len()))
                    .help(if arity == 1 {
                        format!("the form is `{}(x)`, x being the name of a tensor", callee.name)
                    } else {
                        format!("the form is `{}(x, axis)`, x being the name of a tensor", callee.name)
                    }),
            );
            return None;
        }
        let expr = &args[0].value;
        let element = match &expr.kind {
            ExprKind::Name(name) => self.elements.iter().rev().position(|e| e.name == *name),
            _ => None,
        };
        if let Some(depth) = element.filter(|depth| self.elements[self.elements.len() - 1 - depth].is_tensor) {
            let ty = AttrTerm { kind: AttrTermKind::Element(depth), span: expr.span };
            return Some(Tensor::Type(Box::new(ty)));
        }
        if matches!(expr.kind, ExprKind::Name(_) | ExprKind::Index(..)) {
            match self.compile(expr, bag)? {
                Compiled::Tensor(Term { kind: TermKind::Var(v), .. }) => return Some(Tensor::Var(v)),
                Compiled::Tensor(Term { kind: TermKind::Local(l), .. }) => return Some(Tensor::Local(l)),
                Compiled::Tensor(Term { kind: TermKind::Element(list, index), .. }) => {
                    return Some(Tensor::Element(list, index));
                }
                Compiled::Attr(ty) if self.is_type(&ty) => return Some(Tensor::Type(Box::new(ty))),
                _ => {}
            }
        }
        bag.push(
            Diagnostic::error("E0408", format!("`{}` asks for the type of a named tensor", callee.name))
                .at(expr.span, "not the name of a tensor")
                .help("bind it first: `t = ..` on a line of its own"),
        );
        None
    }
}

/// The arguments that must be words, by their place: the name of the parameter, and the words.
fn word_params(signature: &Signature, args: &[Arg]) -> BTreeMap<usize, (String, Words)> {
    let positional = args.iter().take_while(|a| a.name.is_none()).count();
    let named: Vec<&str> = args[positional..].iter().filter_map(|a| a.name.as_ref()).map(|n| &*n.name).collect();
    // What does not fit is reported elsewhere.
    let Ok(slots) = signature.bind(positional, &named) else { return BTreeMap::new() };
    let bound = signature.params().iter().zip(slots);
    let words = bound.filter_map(|(param, slot)| match param {
        Param::Attr { name, kind: AttrKind::Word, words, .. } => Some((*slot.first()?, (name.clone(), words.clone()))),
        _ => None,
    });
    words.collect()
}

/// Binds the arguments of a call, or reports what does not fit: for each parameter the places of its arguments.
pub fn bind_args(
    callee: &str,
    signature: &Signature,
    args: &[Arg],
    span: Span,
    bag: &mut Diagnostics,
) -> Option<Vec<Vec<usize>>> {
    let positional = args.iter().take_while(|a| a.name.is_none()).count();
    if let Some(late) = args[positional..].iter().find(|a| a.name.is_none()) {
        bag.push(
            Diagnostic::error("E0403", "a positional argument after a named one")
                .at(late.value.span, "has no name")
                .help("name it, or move it forward"),
        );
        return None;
    }
    let named: Vec<&str> = args[positional..].iter().filter_map(|a| a.name.as_ref()).map(|n| &*n.name).collect();
    let error = match signature.bind(positional, &named) {
        Ok(slots) => return Some(slots),
        Err(error) => error,
    };
    let shown = format!("`{callee}{signature}`");
    let name_span = |i: usize| args[i].name.as_ref().map_or(args[i].value.span, |n| n.span);
    bag.push(match error {
        BindError::TooMany { argument, takes } => {
            Diagnostic::error("E0403", format!("too many arguments: `{callee}` takes {takes}"))
                .at(args[argument].value.span, "one too many")
                .help(format!("the form is {shown}"))
        }
        BindError::Unknown { argument } => {
            let name = named[argument - positional];
            Diagnostic::error("E0403", format!("`{callee}` has no argument `{name}`"))
                .at(name_span(argument), "unknown argument")
                .did_you_mean(name, signature.params().iter().map(Param::name))
                .help(format!("the form is {shown}"))
        }
        BindError::Twice { argument } => {
            let name = named[argument - positional];
            let d = Diagnostic::error("E0403", format!("`{name}` is given twice"))
                .at(name_span(argument), "given again here");
            let first = args[..argument].iter().position(|a| a.name.as_ref().is_some_and(|n| &*n.name == name));
            match first.or_else(|| signature.params().iter().position(|p| p.name() == name)) {
                Some(first) if first < argument => d.also(name_span(first), "first here"),
                _ => d,
            }
            .help(format!("the form is {shown}"))
        }
        BindError::Missing { param } => {
            Diagnostic::error("E0403", format!("`{callee}` needs `{}`", signature.params()[param].name()))
                .at(span, "missing here")
                .help(format!("the form is {shown}"))
        }
    });
    None
}

/// How many arguments something has.
fn unnamed(count: usize) -> String {
    if count == 1 { "one argument, without a name".to_owned() } else { format!("{count} arguments, without names") }
}

/// Is it the name of a function of the attribute language? Those are reserved.
pub fn is_function(name: &str) -> bool {
    OF_TENSORS.contains(&name) || AttrFunction::from_name(name).is_some()
}

/// Functions that ask for the type of a tensor.
const OF_TENSORS: [&str; 5] = ["shape", "type", "dtype", "rank", "dim"];

fn type_property(name: &str) -> Option<TypeProperty> {
    Some(match name {
        "shape" => TypeProperty::Shape,
        "type" => TypeProperty::Type,
        "dtype" => TypeProperty::DType,
        "rank" => TypeProperty::Rank,
        _ => return None,
    })
}
