//! Functions: values that capture, inlined where they are called.

use std::collections::HashMap;
use std::sync::Arc;

use super::eval::Checker;
use super::value::{Closure, Scope, Value};
use crate::diagnostics::{Diagnostic, Span};
use crate::ir::{BindError, Node, NodeKind, Origin, Signature, TensorType, TypeErrorKind};
use crate::syntax::ast::{Arg, Expr, ExprKind, Function, Ident};

/// The code of the first difference of two types.
fn mismatch_code(a: &TensorType, b: &TensorType) -> &'static str {
    if a.dtype != b.dtype {
        TypeErrorKind::DType.code()
    } else if a.rank() != b.rank() {
        TypeErrorKind::Rank.code()
    } else if a.shape != b.shape {
        TypeErrorKind::Shape.code()
    } else {
        TypeErrorKind::Placement.code()
    }
}

/// The names that occur again, each with its first occurrence.
pub(super) fn repeated<'a>(names: impl Iterator<Item = &'a Ident>) -> Vec<(&'a Ident, &'a Ident)> {
    let mut first: HashMap<&str, &Ident> = HashMap::new();
    let mut repeated = Vec::new();
    for name in names {
        let known = *first.entry(&name.name).or_insert(name);
        if known.span != name.span {
            repeated.push((known, name));
        }
    }
    repeated
}

impl<'a> Checker<'a> {
    /// The value of a `fn`, bound to `name` if a `let` binds it.
    pub fn function(&mut self, function: &'a Function, span: Span, name: Option<&Arc<str>>) -> Value {
        for (first, again) in repeated(function.params.iter().map(|p| &p.name)) {
            self.report(
                Diagnostic::error("E0218", format!("two parameters are named `{}`", again.name))
                    .at(again.span, "again here")
                    .also(first.span, "first here")
                    .help("rename one"),
            );
        }
        let mut used = Vec::new();
        names_in(&function.body, &mut used);
        if !self.spend(used.len(), span) {
            return Value::Poison;
        }
        let mut captured = HashMap::new();
        for used_name in used {
            match self.scope.get(used_name) {
                Some(value) => captured.insert(used_name.clone(), value),
                None if Some(used_name) == name => captured.insert(used_name.clone(), Value::Itself),
                None => None,
            };
        }
        self.functions.push(Closure { function, span, captured });
        let id = self.functions.len() - 1;
        self.defined.entry(span).or_insert(id);
        Value::Function(id)
    }

    /// The local function that a call names, `None` after a report.
    pub fn local_function(&mut self, callee: &Ident, value: Value) -> Option<usize> {
        match value {
            Value::Function(id) => return Some(id),
            Value::Poison => {}
            Value::Itself => {
                self.recursion(&callee.name, callee.span);
            }
            other => {
                let what = self.describe(other);
                let d = Diagnostic::error("E0209", format!("`{}` is {what}, not a function", callee.name))
                    .at(callee.span, "cannot be called");
                let d = if self.registry.id(&callee.name).is_some() {
                    d.note("local names win over operators")
                        .help(format!("rename the local `{0}`, or write `x.{0}(..)`", callee.name))
                } else {
                    d.help("only functions and operators are called")
                };
                self.report(d);
            }
        }
        None
    }

    /// Evaluates the arguments of a call of a local function and checks them against its parameters: one tensor per
    /// parameter, `None` after a report.
    pub fn arguments(&mut self, id: usize, callee: &Ident, args: &'a [Arg]) -> Option<Vec<crate::ir::NodeId>> {
        let function = self.functions[id].function;
        let values: Vec<Value> = args.iter().map(|a| self.eval(&a.value)).collect();
        let names: Vec<&str> = function.params.iter().map(|p| &*p.name.name).collect();
        let signature = Signature::operands_only(&names);
        let order = self.bind_arguments(callee, args, &signature)?;
        let mut operands = Vec::with_capacity(order.len());
        for (param, argument) in function.params.iter().zip(order) {
            let declared = self.resolve_type(&param.ty);
            let (Some(declared), [argument]) = (declared, &argument[..]) else { continue };
            let argument = *argument;
            let arg = &args[argument].value;
            let operand = match values[argument] {
                Value::Literal(literal) => self.splat(literal, &declared, arg.span),
                value => self.tensor(value, arg),
            };
            let Some(operand) = operand else { continue };
            let given = self.graph.ty(operand).clone();
            if given == declared {
                operands.push(operand);
                continue;
            }
            self.report(
                Diagnostic::error(
                    mismatch_code(&declared, &given),
                    format!("`{}` of `{}` is a {declared}, not a {given}", param.name.name, callee.name),
                )
                .at(arg.span, format!("this is a {given}"))
                .also(param.ty.span, "declared here")
                .help("change the parameter's type, or reshape, broadcast or cast the argument"),
            );
        }
        (operands.len() == function.params.len()).then_some(operands)
    }

    /// For each parameter, the indices of its arguments. `None` after a report.
    pub fn bind_arguments(
        &mut self,
        callee: &Ident,
        args: &'a [Arg],
        signature: &Signature,
    ) -> Option<Vec<Vec<usize>>> {
        let shape = format!("{}{signature}", callee.name);
        if let Some(spread) = args.iter().find(|a| a.spread) {
            self.report(
                Diagnostic::error("E0214", "`*` before an argument belongs to rule files, not to programs")
                    .at(spread.value.span, "a spread argument")
                    .help("list the arguments"),
            );
            return None;
        }
        // In the numbering of `bind`: positional arguments, then named ones.
        let (positional, named): (Vec<usize>, Vec<usize>) = (0..args.len()).partition(|i| args[*i].name.is_none());
        if let (Some(last), Some(first)) = (positional.last(), named.first())
            && last > first
        {
            self.report(
                Diagnostic::error("E0205", "an argument without a name follows one with a name")
                    .at(args[*last].value.span, "has no name")
                    .help(format!("unnamed arguments come first: `{shape}`")),
            );
            return None;
        }
        let alias = |name: &'a str| if name == "like" { like_param(signature) } else { name.to_string() };
        let names: Vec<String> = named.iter().filter_map(|i| args[*i].name.as_ref()).map(|n| alias(&n.name)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let numbering: Vec<usize> = positional.iter().chain(&named).copied().collect();
        let span_of = |argument: usize| {
            let arg = numbering.get(argument).map(|i| &args[*i]);
            arg.map_or(callee.span, |a| a.name.as_ref().map_or(a.value.span, |n| n.span))
        };
        let diagnostic = match signature.bind(positional.len(), &names) {
            Ok(bound) => {
                let as_written = |b: Vec<usize>| b.into_iter().filter_map(|b| numbering.get(b).copied()).collect();
                return Some(bound.into_iter().map(as_written).collect());
            }
            Err(BindError::TooMany { argument, takes }) => {
                Diagnostic::error("E0205", format!("`{}` takes {takes} argument(s), not {}", callee.name, args.len()))
                    .at(span_of(argument), "one too many")
            }
            Err(BindError::Unknown { argument }) => {
                let name = names.get(argument.saturating_sub(positional.len())).copied().unwrap_or("");
                Diagnostic::error("E0205", format!("`{}` has no argument `{name}`", callee.name))
                    .at(span_of(argument), "unknown argument")
                    .did_you_mean(name, signature.params().iter().map(|p| p.name()))
            }
            Err(BindError::Twice { argument }) => {
                let name = names.get(argument.saturating_sub(positional.len())).copied().unwrap_or("");
                Diagnostic::error("E0205", format!("`{name}` is given twice")).at(span_of(argument), "again here")
            }
            Err(BindError::Missing { param }) => {
                let name = signature.params().get(param).map_or("", |p| p.name());
                Diagnostic::error("E0205", format!("`{}` needs its argument `{name}`", callee.name))
                    .at(callee.span, format!("`{name}` is missing"))
            }
        };
        self.report(diagnostic.help(format!("the form is `{shape}`")));
        None
    }

    /// The value of a function's body for the given arguments.
    pub fn inline(&mut self, id: usize, operands: Vec<crate::ir::NodeId>) -> Value {
        let closure = &self.functions[id];
        let (function, span) = (closure.function, closure.span);
        let mut names = closure.captured.clone();
        names.extend(function.params.iter().zip(operands).map(|(p, o)| (p.name.name.clone(), Value::Tensor(o))));
        self.called.insert(span);
        let outer = std::mem::replace(&mut self.scope, Scope::new(names));
        let value = self.eval(&function.body);
        self.scope = outer;
        self.result_of(function, value)
    }

    /// Checks a function's value against its declared result.
    fn result_of(&mut self, function: &'a Function, value: Value) -> Value {
        if let Value::Function(_) = value {
            return self.report(
                Diagnostic::error("E0209", "a function cannot return a function")
                    .at(function.body.span, "a function")
                    .help("define it outside, where it is called"),
            );
        }
        let Some(written) = &function.result else { return value };
        let Some(declared) = self.resolve_type(written) else { return Value::Poison };
        let span = tail(&function.body).span;
        match value {
            Value::Poison => Value::Poison,
            Value::Literal(literal) => self.splat(literal, &declared, span).map_or(Value::Poison, Value::Tensor),
            Value::Tensor(id) if *self.graph.ty(id) == declared => value,
            other => {
                let code = match other {
                    Value::Tensor(id) => mismatch_code(&declared, self.graph.ty(id)),
                    _ => "E0209",
                };
                let what = self.describe(other);
                self.report(
                    Diagnostic::error(code, format!("the function returns {what}, not a {declared}"))
                        .at(span, what)
                        .also(written.span, "declared here")
                        .help("correct the declared type, or leave it out"),
                )
            }
        }
    }

    /// Checks the functions that are never called, each with parameters of its declared types. What they add is
    /// thrown away, their faults are reported.
    pub fn uncalled(&mut self) {
        let mut next = 0;
        let mut kept = None;
        self.aside = true;
        while let Some((span, id)) = self.defined.get_index(next).map(|(s, id)| (*s, *id)) {
            next += 1;
            if self.called.contains(&span) {
                continue;
            }
            kept.get_or_insert_with(|| self.graph.clone());
            let function = self.functions[id].function;
            let mut params = Vec::new();
            for p in &function.params {
                let Some(ty) = self.resolve_type(&p.ty) else { continue };
                let origin = Origin::Program(p.name.span);
                params.push(self.graph.push(Node { kind: NodeKind::Input, ty, name: None, origin }));
            }
            if params.len() == function.params.len() {
                self.inline(id, params);
            }
        }
        self.aside = false;
        if let Some(graph) = kept {
            self.graph = graph;
        }
    }
}

/// The parameter that `like=` gives: the one that is a type, unless one is called `like`.
fn like_param(signature: &Signature) -> String {
    let own = signature.params().iter().any(|p| p.name() == "like");
    let ty = signature.attrs().find(|(_, kind, _)| *kind == crate::ir::AttrKind::Type);
    match ty {
        Some((name, ..)) if !own => name.to_string(),
        _ => "like".to_string(),
    }
}

/// The expression that a block evaluates to.
fn tail(expr: &Expr) -> &Expr {
    let mut expr = expr;
    while let ExprKind::Block(_, body) = &expr.kind {
        expr = body;
    }
    expr
}

/// Every name an expression mentions, bound inside or not.
fn names_in<'e>(expr: &'e Expr, names: &mut Vec<&'e Arc<str>>) {
    let args_in = |callee: &'e Ident, args: &'e [Arg], names: &mut Vec<&'e Arc<str>>| {
        names.push(&callee.name);
        for arg in args {
            names_in(&arg.value, names);
        }
    };
    match &expr.kind {
        ExprKind::Name(name) => names.push(name),
        ExprKind::Call { callee, args, .. } | ExprKind::Handle { callee, args, .. } => args_in(callee, args, names),
        ExprKind::List(elements) | ExprKind::Tuple(elements) => {
            for element in elements {
                names_in(element, names);
            }
        }
        ExprKind::Unary(_, operand) => names_in(operand, names),
        ExprKind::Binary(_, left, right) => {
            names_in(left, names);
            names_in(right, names);
        }
        ExprKind::Block(lets, body) => {
            for l in lets {
                names_in(&l.value, names);
            }
            names_in(body, names);
        }
        ExprKind::Fn(function) => names_in(&function.body, names),
        // Rule files only; refused before anything in them is evaluated.
        ExprKind::Comprehension { .. } | ExprKind::If(..) | ExprKind::Index(..) => {}
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => {}
        ExprKind::NoCotangent | ExprKind::Input(_) | ExprKind::Error => {}
    }
}
