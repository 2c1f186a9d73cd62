//! Names of one rule, and the compilation of its expressions against them.

mod call;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::rule::{Def, Var, VarKind};
use super::stub::TODO;
use super::term::{AttrTerm, AttrTermKind, ListTerm, Local, LocalId, LocalValue, Term, TermKind, VarId};
use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::ir::operator::{Words, listed};
use crate::ir::{AttrKind, AttrValue, DType, OpId, Registry};
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, Ident, Line, UnaryOp};

pub use call::{bind_args, is_function};

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
}

pub fn as_term(value: Compiled) -> Term {
    match value {
        Compiled::Tensor(t) => t,
        Compiled::Attr(a) => Term { span: a.span, kind: TermKind::Literal(a) },
    }
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
