//! Names of one rule, and the compilation of its expressions against them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::attributes::AttrFunction;
use super::rule::{Def, Var, VarKind};
use super::stub::TODO;
use super::term::{
    AttrArg, AttrTerm, AttrTermKind, Local, LocalId, LocalValue, Tensor, Term, TermKind, TypeProperty, VarId,
};
use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::ir::operator::Default as AttrDefault;
use crate::ir::{AttrKind, AttrValue, BindError, DType, OpId, Param, Registry, Signature};
use crate::syntax::ast::{Arg, BinaryOp, Expr, ExprKind, Ident, UnaryOp};

/// What compilation of every rule sees.
pub struct Library<'a> {
    pub registry: &'a Registry,
    /// Composites that expand where they are called.
    pub defs: &'a BTreeMap<Arc<str>, Arc<Def>>,
    /// Composites whose definitions are faulty: their calls are no further faults.
    pub failed: &'a BTreeSet<Arc<str>>,
}

/// The names of one rule.
pub struct Scope<'a> {
    pub library: &'a Library<'a>,
    pub vars: Vec<Var>,
    pub locals: Vec<Local>,
    names: BTreeMap<Arc<str>, Name>,
    elements: Vec<Arc<str>>,
    /// Names that were reported as unknown: what is missing is one fault, however often it is used.
    unknown: BTreeSet<Arc<str>>,
}

#[derive(Clone, Copy)]
enum Name {
    Var(VarId),
    Local(LocalId),
}

/// An expression of either kind.
pub enum Compiled {
    Tensor(Term),
    Attr(AttrTerm),
}

/// What a call refers to.
pub enum Callee {
    Op(OpId),
    Def(Arc<Def>),
}

impl<'a> Scope<'a> {
    pub fn new(library: &'a Library<'a>) -> Self {
        Self {
            library,
            vars: Vec::new(),
            locals: Vec::new(),
            names: BTreeMap::new(),
            elements: Vec::new(),
            unknown: BTreeSet::new(),
        }
    }

    /// Adds a metavariable under a name, or returns the one that the name has.
    pub fn var(&mut self, name: &str, kind: VarKind) -> VarId {
        if let Some(Name::Var(v)) = self.names.get(name) {
            return *v;
        }
        let id = self.fresh(name, kind);
        self.names.insert(name.into(), Name::Var(id));
        id
    }

    /// Adds a metavariable that no expression can name.
    pub fn fresh(&mut self, name: &str, kind: VarKind) -> VarId {
        let id = VarId(self.vars.len() as u32);
        self.vars.push(Var { name: name.into(), kind });
        id
    }

    pub fn lookup_var(&self, name: &str) -> Option<VarId> {
        match self.names.get(name) {
            Some(Name::Var(v)) => Some(*v),
            _ => None,
        }
    }

    pub fn is_bound(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Compiles and adds a local definition.
    pub fn define(&mut self, name: &Ident, value: &Expr, bag: &mut Diagnostics) {
        if self.is_bound(&name.name) {
            bag.push(
                Diagnostic::error("E0406", format!("`{}` is defined twice in this rule", name.name))
                    .at(name.span, "defined again here")
                    .help("give it another name"),
            );
            return;
        }
        // A failed definition still binds its name, so that its uses do not fail as well.
        let value = match self.compile(value, bag) {
            Some(Compiled::Tensor(t)) => LocalValue::Tensor(t),
            Some(Compiled::Attr(a)) => LocalValue::Attr(a),
            None => LocalValue::Attr(AttrTerm { kind: AttrTermKind::Const(AttrValue::Int(0)), span: value.span }),
        };
        let id = LocalId(self.locals.len() as u32);
        self.locals.push(Local { name: name.name.to_string(), value });
        self.names.insert(name.name.clone(), Name::Local(id));
    }

    /// Compiles an expression that must be a tensor; a number becomes a literal.
    pub fn tensor(&mut self, expr: &Expr, bag: &mut Diagnostics) -> Option<Term> {
        match self.compile(expr, bag)? {
            Compiled::Tensor(t) => Some(t),
            Compiled::Attr(a) => Some(Term { kind: TermKind::Literal(a), span: expr.span }),
        }
    }

    /// Compiles an expression that must be an attribute.
    pub fn attr(&mut self, expr: &Expr, bag: &mut Diagnostics) -> Option<AttrTerm> {
        match self.compile(expr, bag)? {
            Compiled::Attr(a) => Some(a),
            Compiled::Tensor(t) => {
                bag.push(
                    Diagnostic::error("E0408", "a tensor stands where an attribute is wanted")
                        .at(t.span, "this is a tensor")
                        .help("attributes are computed when the rule fires: ask for `shape(x)`, `dim(x, axis)`, `rank(x)`, .."),
                );
                None
            }
        }
    }

    pub fn compile(&mut self, expr: &Expr, bag: &mut Diagnostics) -> Option<Compiled> {
        let span = expr.span;
        let attr = |kind| Some(Compiled::Attr(AttrTerm { kind, span }));
        match &expr.kind {
            ExprKind::Int(i) => attr(AttrTermKind::Const(AttrValue::Int(*i))),
            ExprKind::Float(v) => attr(AttrTermKind::Const(AttrValue::float(*v))),
            ExprKind::Bool(b) => attr(AttrTermKind::Const(AttrValue::Bool(*b))),
            ExprKind::Name(name) => self.name(name, span, bag),
            ExprKind::List(items) => {
                let mut list = Vec::new();
                for item in items {
                    list.push(self.attr(item, bag));
                }
                attr(AttrTermKind::List(list.into_iter().collect::<Option<_>>()?))
            }
            ExprKind::Comprehension { element, name, list, condition } => {
                let list = Box::new(self.attr(list, bag)?);
                self.elements.push(name.name.clone());
                let element = self.attr(element, bag);
                let condition = condition.as_ref().map(|c| self.attr(c, bag));
                self.elements.pop();
                let condition = match condition {
                    Some(c) => Some(Box::new(c?)),
                    None => None,
                };
                attr(AttrTermKind::Comprehension { element: Box::new(element?), list, condition })
            }
            ExprKind::Unary(op, a) => match (op, self.compile(a, bag)?) {
                (UnaryOp::Neg, Compiled::Attr(a)) => attr(AttrTermKind::Neg(Box::new(a))),
                (UnaryOp::Not, Compiled::Attr(a)) => attr(AttrTermKind::Not(Box::new(a))),
                (UnaryOp::Neg, Compiled::Tensor(t)) => self.op_term("neg", vec![t], span, bag),
                (UnaryOp::Not, Compiled::Tensor(t)) => self.op_term("logical_not", vec![t], span, bag),
            },
            ExprKind::Binary(op, a, b) => {
                let a = self.compile(a, bag);
                let b = self.compile(b, bag);
                self.binary(*op, a?, b?, span, bag)
            }
            ExprKind::If(c, a, b) => {
                let c = self.attr(c, bag);
                let a = self.compile(a, bag);
                let b = self.compile(b, bag);
                let c = Box::new(c?);
                match (a?, b?) {
                    (Compiled::Attr(a), Compiled::Attr(b)) => attr(AttrTermKind::If(c, Box::new(a), Box::new(b))),
                    (a, b) => Some(Compiled::Tensor(Term {
                        kind: TermKind::If(c, Box::new(as_term(a)), Box::new(as_term(b))),
                        span,
                    })),
                }
            }
            ExprKind::Index(list, index) => {
                let list = self.attr(list, bag);
                let index = self.attr(index, bag);
                attr(AttrTermKind::Index(Box::new(list?), Box::new(index?)))
            }
            ExprKind::Call { callee, args, .. } => self.call(callee, args, span, bag),
            ExprKind::Error => None,
            ExprKind::NoCotangent => {
                bag.push(
                    Diagnostic::error("E0408", "`none` is a whole conclusion, not a value")
                        .at(span, "not possible inside an expression")
                        .help("write `g_NAME = none` for an operand that no cotangent flows to"),
                );
                None
            }
            _ => {
                bag.push(
                    Diagnostic::error("E0408", "this form belongs to programs, not to rules")
                        .at(span, "not possible in a rule")
                        .help("rules have calls, arithmetic, names, numbers and the attribute language"),
                );
                None
            }
        }
    }

    fn name(&mut self, name: &Arc<str>, span: Span, bag: &mut Diagnostics) -> Option<Compiled> {
        if let Some(depth) = self.elements.iter().rev().position(|e| e == name) {
            return Some(Compiled::Attr(AttrTerm { kind: AttrTermKind::Element(depth), span }));
        }
        match self.names.get(name) {
            Some(Name::Var(v)) => Some(match self.vars[v.0 as usize].kind {
                VarKind::Tensor => Compiled::Tensor(Term { kind: TermKind::Var(*v), span }),
                VarKind::Attr(_) => Compiled::Attr(AttrTerm { kind: AttrTermKind::Var(*v), span }),
            }),
            Some(Name::Local(l)) => Some(match self.locals[l.0 as usize].value {
                LocalValue::Tensor(_) => Compiled::Tensor(Term { kind: TermKind::Local(*l), span }),
                LocalValue::Attr(_) => Compiled::Attr(AttrTerm { kind: AttrTermKind::Local(*l), span }),
            }),
            None => {
                if let Some(dtype) = DType::from_name(name) {
                    let kind = AttrTermKind::Const(AttrValue::DType(dtype));
                    return Some(Compiled::Attr(AttrTerm { kind, span }));
                }
                if &**name == TODO {
                    bag.push(
                        Diagnostic::error("E0401", format!("`{TODO}` stands where this rule is still to be written"))
                            .at(span, "to be filled in")
                            .help(format!("put an expression in its place; bound here: {}", self.bound_names())),
                    );
                } else if self.unknown.insert(name.clone()) {
                    let names = self.names.keys().chain(&self.elements).map(|k| &**k);
                    bag.push(
                        Diagnostic::error("E0401", format!("`{name}` is not bound in this rule"))
                            .at(span, "unknown name")
                            .note(format!("bound here: {}", self.bound_names()))
                            .did_you_mean_or(
                                name,
                                names.chain(DType::ALL.map(DType::name)),
                                format!("bind it on a line of its own: `{name} = ..`"),
                            ),
                    );
                }
                None
            }
        }
    }

    fn bound_names(&self) -> String {
        let names: Vec<&str> = self.names.keys().map(|k| &**k).collect();
        names.join(", ")
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        a: Compiled,
        b: Compiled,
        span: Span,
        bag: &mut Diagnostics,
    ) -> Option<Compiled> {
        if let (Compiled::Attr(a), Compiled::Attr(b)) = (&a, &b) {
            let kind = AttrTermKind::Binary(op, Box::new(a.clone()), Box::new(b.clone()));
            return Some(Compiled::Attr(AttrTerm { kind, span }));
        }
        let Some(name) = op.operator_name() else {
            bag.push(
                Diagnostic::error("E0408", format!("`{}` works on attributes, not on tensors", op.symbol()))
                    .at(span, "one side is a tensor")
                    .help("use an operator, such as `logical_and` or `select`"),
            );
            return None;
        };
        self.op_term(name, vec![as_term(a), as_term(b)], span, bag)
    }

    /// An operator of operands only, by name.
    fn op_term(&self, name: &str, operands: Vec<Term>, span: Span, bag: &mut Diagnostics) -> Option<Compiled> {
        match self.library.registry.id(name) {
            Some(op) => Some(Compiled::Tensor(Term { kind: TermKind::Op { op, operands, attrs: Vec::new() }, span })),
            None => {
                bag.push(
                    Diagnostic::error("E0402", format!("there is no operator `{name}`"))
                        .at(span, "needed here")
                        .help("use a registry that has it"),
                );
                None
            }
        }
    }

    /// Finds what a call refers to, or reports it.
    pub fn callee(&mut self, callee: &Ident, bag: &mut Diagnostics) -> Option<Callee> {
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
        let functions = AttrFunction::ALL.iter().map(|(n, _, _)| *n).chain(OF_TENSORS);
        bag.push(
            Diagnostic::error("E0402", format!("there is no operator or `def` named `{}`", callee.name))
                .at(callee.span, "unknown operator")
                .did_you_mean_or(&callee.name, names.chain(defs).chain(functions), "a `def` in a rule file adds one"),
        );
        None
    }

    fn call(&mut self, callee: &Ident, args: &[Arg], span: Span, bag: &mut Diagnostics) -> Option<Compiled> {
        if let Some(property) = type_property(&callee.name) {
            if let [Arg { name: None, value, .. }] = args
                && let ExprKind::Name(name) = &value.kind
                && let Some(Name::Var(v)) = self.names.get(name)
                && self.vars[v.0 as usize].kind == VarKind::Attr(Some(AttrKind::Type))
            {
                let ty = AttrTerm { kind: AttrTermKind::Var(*v), span: value.span };
                return Some(Compiled::Attr(AttrTerm { kind: AttrTermKind::OfType(property, Box::new(ty)), span }));
            }
            let tensor = self.typed_name(callee, args, 1, bag)?;
            return Some(Compiled::Attr(AttrTerm { kind: AttrTermKind::Of(property, tensor), span }));
        }
        if &*callee.name == "dim" {
            let tensor = self.typed_name(callee, args, 2, bag)?;
            let axis = Box::new(self.attr(&args[1].value, bag)?);
            return Some(Compiled::Attr(AttrTerm { kind: AttrTermKind::Dim(tensor, axis), span }));
        }
        let function = AttrFunction::from_name(&callee.name);
        // What is called and what it is called with may both be faulty.
        let target = if function.is_none() { self.callee(callee, bag) } else { None };
        let mut values = Vec::new();
        for arg in args {
            values.push(self.compile(&arg.value, bag));
        }
        let values: Vec<Compiled> = values.into_iter().collect::<Option<_>>()?;
        // An operator of the same name as a function is meant where the first argument is a tensor.
        if let Some((function, arity)) = function.filter(|_| !matches!(values.first(), Some(Compiled::Tensor(_)))) {
            if values.len() != arity || args.iter().any(|a| a.name.is_some()) {
                bag.push(
                    Diagnostic::error("E0403", format!("`{}` takes {arity} unnamed argument(s)", callee.name))
                        .at(span, format!("{} given", values.len()))
                        .help("arguments of functions on attributes have no names"),
                );
                return None;
            }
            let args = values.into_iter().filter_map(|v| match v {
                Compiled::Attr(a) => Some(a),
                Compiled::Tensor(_) => None,
            });
            return Some(Compiled::Attr(AttrTerm { kind: AttrTermKind::Call(function, args.collect()), span }));
        }
        let target = if function.is_some() { self.callee(callee, bag) } else { target }?;
        // `splat(v)` without a type is the number v in tensor position.
        if &*callee.name == "splat" && values.len() == 1 {
            if let Some(Compiled::Attr(value)) = values.into_iter().next() {
                return Some(Compiled::Tensor(Term { kind: TermKind::Literal(value), span }));
            }
            return None;
        }
        let signature = match &target {
            Callee::Op(op) => self.library.registry.op(*op).signature(),
            Callee::Def(def) => &def.signature,
        };
        let slots = bind_args(&callee.name, signature, args, span, bag)?;
        let mut values: Vec<Option<Compiled>> = values.into_iter().map(Some).collect();
        let mut operands = Vec::new();
        let mut attrs = Vec::new();
        for (param, slot) in signature.params().iter().zip(slots) {
            let value = slot.and_then(|i| values[i].take());
            match (param, value) {
                (Param::Operand(_), Some(value)) => operands.push(as_term(value)),
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
                (Param::Attr { default, .. }, None) => attrs.push(match default {
                    Some(AttrDefault::Value(v)) => {
                        AttrArg::Given(AttrTerm { kind: AttrTermKind::Const(v.clone()), span })
                    }
                    _ => AttrArg::AllAxes,
                }),
            }
        }
        let kind = match target {
            Callee::Op(op) => TermKind::Op { op, operands, attrs },
            Callee::Def(def) => TermKind::Composite { def, operands, attrs },
        };
        Some(Compiled::Tensor(Term { kind, span }))
    }

    /// The name in `shape(x)`, `dim(x, axis)`: only a name, since only its type is asked for.
    fn typed_name(&mut self, callee: &Ident, args: &[Arg], arity: usize, bag: &mut Diagnostics) -> Option<Tensor> {
        if args.len() != arity || args.iter().any(|a| a.name.is_some()) {
            bag.push(
                Diagnostic::error("E0403", format!("`{}` takes {arity} unnamed argument(s)", callee.name))
                    .at(callee.span, format!("{} given", args.len()))
                    .help("it takes the name of a tensor first"),
            );
            return None;
        }
        let expr = &args[0].value;
        if let ExprKind::Name(name) = &expr.kind {
            match self.name(name, expr.span, bag)? {
                Compiled::Tensor(Term { kind: TermKind::Var(v), .. }) => return Some(Tensor::Var(v)),
                Compiled::Tensor(Term { kind: TermKind::Local(l), .. }) => return Some(Tensor::Local(l)),
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

/// Binds the arguments of a call, or reports what does not fit.
pub fn bind_args(
    callee: &str,
    signature: &Signature,
    args: &[Arg],
    span: Span,
    bag: &mut Diagnostics,
) -> Option<Vec<Option<usize>>> {
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
            Diagnostic::error("E0403", format!("`{}` is given twice", named[argument - positional]))
                .at(name_span(argument), "given again here")
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

pub fn as_term(value: Compiled) -> Term {
    match value {
        Compiled::Tensor(t) => t,
        Compiled::Attr(a) => Term { span: a.span, kind: TermKind::Literal(a) },
    }
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

/// The kind that a constant suggests for a parameter of a `def`.
pub fn kind_of_value(value: &AttrValue) -> AttrKind {
    match value {
        AttrValue::Bool(_) => AttrKind::Bool,
        AttrValue::Int(_) => AttrKind::Int,
        AttrValue::Float(_) | AttrValue::Word(_) => AttrKind::Float,
        AttrValue::Ints(_) => AttrKind::Shape,
        AttrValue::DType(_) => AttrKind::DType,
        AttrValue::Type(_) => AttrKind::Type,
    }
}
