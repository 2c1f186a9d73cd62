//! Names of one rule, and the compilation of its expressions against them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::attributes::AttrFunction;
use super::rule::{Def, Var, VarKind};
use super::stub::TODO;
use super::term::{
    AttrArg, AttrTerm, AttrTermKind, ListTerm, Local, LocalId, LocalValue, Tensor, Term, TermKind, TypeProperty, VarId,
};
use crate::diagnostics::{Diagnostic, Diagnostics, Span, UNKNOWN_OPERATOR};
use crate::ir::operator::{Words, listed};
use crate::ir::{AttrKind, AttrValue, BindError, DType, OpId, Param, Registry, Signature};
use crate::syntax::ast::{Arg, BinaryOp, Expr, ExprKind, Ident, Line, UnaryOp};

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
    /// Variables of the comprehensions around, innermost last.
    elements: Vec<Element>,
    /// Names that were reported as unknown: what is missing is one fault, however often it is used.
    unknown: BTreeSet<Arc<str>>,
    /// What the metavariables that are words may be.
    words: BTreeMap<VarId, Words>,
    /// Where names are bound, as far as that is known.
    places: BTreeMap<Arc<str>, Span>,
    /// Names that lines of the rule bind, in whichever order.
    later: BTreeSet<Arc<str>>,
    /// May the rule have further parameters?
    has_parameters: bool,
    /// The name of the incoming cotangent.
    cotangent: Option<Arc<str>>,
}

/// The variable of a comprehension.
struct Element {
    name: Arc<str>,
    /// Does it stand for a tensor, of which only the type is known?
    is_tensor: bool,
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
            words: BTreeMap::new(),
            places: BTreeMap::new(),
            later: BTreeSet::new(),
            has_parameters: false,
            cotangent: None,
        }
    }

    /// Tells what kind of rule it is, and what its lines will bind: for messages about names.
    pub fn describe(&mut self, lines: &[Line], has_parameters: bool, cotangent: Option<&str>) {
        self.later.extend(lines.iter().filter_map(|line| match line {
            Line::Bind { name, .. } => Some(name.name.clone()),
            _ => None,
        }));
        self.has_parameters = has_parameters;
        self.cotangent = cotangent.map(Into::into);
    }

    /// Notes where a name is bound.
    pub fn place(&mut self, name: &Arc<str>, span: Span) {
        self.places.entry(name.clone()).or_insert(span);
    }

    /// The report of a name that is bound again.
    pub fn bound_twice(&self, name: &str, span: Span) -> Diagnostic {
        let d = Diagnostic::error("E0406", format!("`{name}` is bound twice")).at(span, "again here");
        match self.places.get(name) {
            Some(first) => d.also(*first, "first here"),
            None => d,
        }
        .help("give each its own name")
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

    /// Adds a metavariable that is one of some words.
    pub fn word_var(&mut self, name: &str, words: Words) -> VarId {
        let id = self.var(name, VarKind::Attr(Some(AttrKind::Word)));
        self.words.insert(id, words);
        id
    }

    /// The words that the expression may be, if it is the name of a word.
    fn words_of(&self, expr: &Expr) -> Option<(Arc<str>, Words)> {
        let ExprKind::Name(name) = &expr.kind else { return None };
        let words = self.words.get(&self.lookup_var(name)?)?;
        Some((name.clone(), words.clone()))
    }

    /// An expression where a word is wanted: a word, or the name of one.
    fn word(&mut self, of: &str, words: &[Arc<str>], expr: &Expr, bag: &mut Diagnostics) -> Option<AttrTerm> {
        let span = expr.span;
        let written: Arc<str> = match &expr.kind {
            ExprKind::NoCotangent => "none".into(),
            ExprKind::Name(name) => name.clone(),
            _ => {
                bag.push(
                    Diagnostic::error("E0408", format!("`{of}` is {}", listed(words)))
                        .at(span, "not a word")
                        .help("write one of these words, or the name of an attribute that is one"),
                );
                return None;
            }
        };
        if let Some((_, others)) = self.words_of(expr) {
            if let Some(other) = others.iter().find(|w| !words.contains(w)) {
                bag.push(
                    Diagnostic::error(
                        "E0408",
                        format!("`{written}` may be `{other}`, but `{of}` is {}", listed(words)),
                    )
                    .at(span, "words of another attribute")
                    .help("declare the same words for both"),
                );
                return None;
            }
            return self.attr(expr, bag);
        }
        if self.is_bound(&written) || self.elements.iter().any(|e| e.name == written) {
            bag.push(
                Diagnostic::error("E0408", format!("`{of}` is {}", listed(words)))
                    .at(span, format!("`{written}` is a name of this rule"))
                    .note("names of the rule win over words")
                    .help("give the name of the rule another name"),
            );
            return None;
        }
        if !words.contains(&written) {
            bag.push(
                Diagnostic::error("E0408", format!("`{of}` is {}", listed(words)))
                    .at(span, "not one of these words")
                    .did_you_mean_or(&written, words.iter().map(|w| &**w), "write one of these words"),
            );
            return None;
        }
        Some(AttrTerm { kind: AttrTermKind::Const(AttrValue::Word(written.to_string())), span })
    }

    /// Forgets a name, which no later expression can use.
    pub fn unbind(&mut self, name: &str) {
        self.names.remove(name);
    }

    /// The list of tensors that an expression names.
    fn list_of_tensors(&self, expr: &Expr) -> Option<VarId> {
        let ExprKind::Name(name) = &expr.kind else { return None };
        let hidden = self.elements.iter().any(|e| e.name == *name);
        self.lookup_var(name).filter(|v| !hidden && self.vars[v.0 as usize].kind == VarKind::Tensors)
    }

    pub fn is_bound(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Compiles and adds a local definition.
    pub fn define(&mut self, name: &Ident, value: &Expr, bag: &mut Diagnostics) {
        if self.is_bound(&name.name) {
            bag.push(self.bound_twice(&name.name, name.span));
            return;
        }
        // A failed definition still binds its name, so that its uses do not fail as well.
        let value = match self.compile(value, bag) {
            Some(Compiled::Tensor(t)) => LocalValue::Tensor(t),
            Some(Compiled::Attr(a)) => LocalValue::Attr(a),
            None => LocalValue::Attr(AttrTerm { kind: AttrTermKind::Const(AttrValue::Int(0)), span: value.span }),
        };
        self.place(&name.name, name.span);
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
                let tensors = self.list_of_tensors(list);
                let list = match tensors {
                    Some(list) => ListTerm::Tensors(list),
                    None => ListTerm::Attr(Box::new(self.attr(list, bag)?)),
                };
                self.elements.push(Element { name: name.name.clone(), is_tensor: tensors.is_some() });
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
            ExprKind::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b)
                if self.words_of(a).is_some() || self.words_of(b).is_some() =>
            {
                let (name, words) = self.words_of(a).or_else(|| self.words_of(b))?;
                let a = self.word(&name, &words, a, bag);
                let b = self.word(&name, &words, b, bag);
                attr(AttrTermKind::Binary(*op, Box::new(a?), Box::new(b?)))
            }
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
            ExprKind::Index(list, index) if self.list_of_tensors(list).is_some() => {
                let index = Box::new(self.attr(index, bag)?);
                let kind = TermKind::Element(self.list_of_tensors(list)?, index);
                Some(Compiled::Tensor(Term { kind, span }))
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
        if let Some(depth) = self.elements.iter().rev().position(|e| e.name == *name) {
            if self.elements[self.elements.len() - 1 - depth].is_tensor {
                bag.push(
                    Diagnostic::error(
                        "E0408",
                        format!("`{name}` is a tensor of a list, of which only the type is known"),
                    )
                    .at(span, "a tensor stands where an attribute is wanted")
                    .help(format!("ask for `shape({name})`, `dim({name}, axis)`, `rank({name})`, ..")),
                );
                return None;
            }
            return Some(Compiled::Attr(AttrTerm { kind: AttrTermKind::Element(depth), span }));
        }
        match self.names.get(name) {
            Some(Name::Var(v)) if self.vars[v.0 as usize].kind == VarKind::Tensors => {
                bag.push(
                    Diagnostic::error("E0408", format!("`{name}` is a list of tensors"))
                        .at(span, "not one value")
                        .help(format!(
                            "write `{name}[i]` for one of them, `*{name}` for all in a call of a variadic operator, or \
                             `len({name})`"
                        )),
                );
                None
            }
            Some(Name::Var(v)) => Some(match self.vars[v.0 as usize].kind {
                VarKind::Tensor | VarKind::Tensors => Compiled::Tensor(Term { kind: TermKind::Var(*v), span }),
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
                    let names = self.names.keys().chain(self.elements.iter().map(|e| &e.name)).map(|k| &**k);
                    let d = Diagnostic::error("E0401", format!("`{name}` is not bound in this rule"))
                        .at(span, "unknown name")
                        .note(format!("bound here: {}", self.bound_names()));
                    bag.push(if self.later.contains(name) {
                        d.help(format!("`{name} = ..` stands further down: move that line up"))
                    } else {
                        let is_gradient = name.starts_with(['g', 'd']);
                        let otherwise = match (self.elements.last(), &self.cotangent) {
                            (Some(element), _) => format!("the comprehension calls its elements `{}`", element.name),
                            (None, Some(cotangent)) if is_gradient => {
                                format!("the incoming cotangent is `{cotangent}`")
                            }
                            _ if self.has_parameters => {
                                format!("bind it on a line of its own, `{name} = ..`, or make it a parameter")
                            }
                            _ => format!("bind it on a line of its own: `{name} = ..`"),
                        };
                        d.did_you_mean_or(name, names.chain(DType::ALL.map(DType::name)), otherwise)
                    });
                }
                None
            }
        }
    }

    fn bound_names(&self) -> String {
        let names: BTreeSet<&Arc<str>> = self.names.keys().chain(self.elements.iter().map(|e| &e.name)).collect();
        let names = names.into_iter().map(|name| match &self.cotangent {
            Some(cotangent) if cotangent == name => format!("{name} (the incoming cotangent)"),
            _ => name.to_string(),
        });
        names.collect::<Vec<_>>().join(", ")
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
                    .help(match op {
                        BinaryOp::And => "between tensors it is `logical_and(a, b)`",
                        BinaryOp::Or => "between tensors it is `logical_or(a, b)`",
                        _ => "tensors have operators for what is to be computed of their elements",
                    }),
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
    fn is_attribute(&self, expr: &Expr) -> bool {
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

    fn call(&mut self, callee: &Ident, args: &[Arg], span: Span, bag: &mut Diagnostics) -> Option<Compiled> {
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
    fn no_number(&self, attr: &AttrTerm) -> Option<&'static str> {
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
    fn signature<'s>(&self, target: &'s Callee) -> &'s Signature
    where
        'a: 's,
    {
        match target {
            Callee::Op(op) => self.library.registry.op(*op).signature(),
            Callee::Def(def) => &def.signature,
        }
    }

    /// Is the attribute a tensor type, as far as its kind is known?
    fn is_type(&self, attr: &AttrTerm) -> bool {
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
    fn spread(&mut self, arg: &Arg, bag: &mut Diagnostics) -> Option<Compiled> {
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
    fn typed_name(&mut self, callee: &Ident, args: &[Arg], arity: usize, bag: &mut Diagnostics) -> Option<Tensor> {
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

pub fn as_term(value: Compiled) -> Term {
    match value {
        Compiled::Tensor(t) => t,
        Compiled::Attr(a) => Term { span: a.span, kind: TermKind::Literal(a) },
    }
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

/// The kind that a constant suggests for a parameter of a `def`.
pub fn kind_of_value(value: &AttrValue) -> AttrKind {
    match value {
        AttrValue::Bool(_) => AttrKind::Bool,
        AttrValue::Int(_) => AttrKind::Int,
        AttrValue::Float(_) => AttrKind::Float,
        AttrValue::Word(_) => AttrKind::Word,
        AttrValue::Ints(_) => AttrKind::Shape,
        AttrValue::DType(_) => AttrKind::DType,
        AttrValue::Type(_) => AttrKind::Type,
    }
}
