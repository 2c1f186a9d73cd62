//! Compiled expressions of rule files: tensor [`Term`]s and compile-time [`AttrTerm`]s, and how they are instantiated.
//!
//! Instantiation is generic over a [`Builder`], so that one term can be built into the typed graph (a `def` called
//! by a program), onto the differentiation tape, into the e-graph, or into types alone (the static check of rules).

use std::fmt;
use std::sync::Arc;

use super::attributes::{self, AttrFunction};
use super::rule::{Def, VarKind};
use crate::diagnostics::Span;
use crate::ir::operator::Default as AttrDefault;
use crate::ir::{AttrKind, AttrValue, DType, OpId, TensorType, TypeError, TypeErrorKind, Where};
use crate::syntax::ast::BinaryOp;

/// A metavariable of one rule. The same number is its variable in the e-graph pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarId(pub u32);

/// A local definition of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalId(pub u32);

/// An expression whose value is a tensor.
#[derive(Clone, Debug)]
pub struct Term {
    pub kind: TermKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum TermKind {
    Var(VarId),
    Local(LocalId),
    /// `xs[i]`: one of a list of tensors.
    Element(VarId, Box<AttrTerm>),
    /// `*xs` among the operands of a variadic operator: all of a list of tensors.
    All(VarId),
    Op {
        op: OpId,
        operands: Vec<Term>,
        attrs: Vec<AttrArg>,
    },
    /// A call of a `def`, which expands when it is built.
    Composite {
        def: Arc<Def>,
        operands: Vec<Term>,
        attrs: Vec<AttrArg>,
    },
    /// A number in tensor position: a splat of the other operand's type, or of the expected type.
    Literal(AttrTerm),
    /// Chosen when the rule fires.
    If(Box<AttrTerm>, Box<Term>, Box<Term>),
}

/// An attribute argument of an operator in a term.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrArg {
    Given(AttrTerm),
    /// Left out: the default, which may depend on operand 0.
    Default(AttrDefault),
}

/// An expression of the attribute language.
#[derive(Clone, Debug, PartialEq)]
pub struct AttrTerm {
    pub kind: AttrTermKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AttrTermKind {
    Const(AttrValue),
    Var(VarId),
    Local(LocalId),
    /// The variable of an enclosing comprehension, counted from the innermost.
    Element(usize),
    /// As an attribute of that kind: one axis as a list of axes, an integer as a float.
    As(AttrKind, Box<AttrTerm>),
    /// `[a, b]`
    List(Vec<AttrTerm>),
    Comprehension {
        element: Box<AttrTerm>,
        list: ListTerm,
        condition: Option<Box<AttrTerm>>,
    },
    Neg(Box<AttrTerm>),
    Not(Box<AttrTerm>),
    Binary(BinaryOp, Box<AttrTerm>, Box<AttrTerm>),
    If(Box<AttrTerm>, Box<AttrTerm>, Box<AttrTerm>),
    Index(Box<AttrTerm>, Box<AttrTerm>),
    /// `len(xs)` of a list of tensors.
    Count(VarId),
    /// A property of a tensor's type.
    Of(TypeProperty, Tensor),
    /// `dim(x, axis)`
    Dim(Tensor, Box<AttrTerm>),
    Call(AttrFunction, Vec<AttrTerm>),
}

/// What a comprehension goes over.
#[derive(Clone, Debug, PartialEq)]
pub enum ListTerm {
    Attr(Box<AttrTerm>),
    /// A list of tensors, of which only the types are asked for: each stands for its type.
    Tensors(VarId),
}

/// What stands in `shape(x)` and its like: a name, since only its type is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Tensor {
    Var(VarId),
    Local(LocalId),
    /// `xs[i]`
    Element(VarId, Box<AttrTerm>),
    /// A type that is an attribute itself.
    Type(Box<AttrTerm>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeProperty {
    Shape,
    Type,
    DType,
    Rank,
}

impl TypeProperty {
    fn of(self, ty: TensorType) -> AttrValue {
        match self {
            TypeProperty::Shape => AttrValue::Ints(ty.shape.iter().map(|d| *d as i64).collect()),
            TypeProperty::Type => AttrValue::Type(ty),
            TypeProperty::DType => AttrValue::DType(ty.dtype),
            TypeProperty::Rank => AttrValue::Int(ty.rank() as i64),
        }
    }
}

/// A local definition.
#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    pub value: LocalValue,
}

#[derive(Clone, Debug)]
pub enum LocalValue {
    Tensor(Term),
    Attr(AttrTerm),
}

/// Where terms are built.
pub trait Builder {
    type Value: Copy;

    fn ty(&self, value: Self::Value) -> TensorType;

    /// Types and adds an operator call.
    ///
    /// # Errors
    /// The violated premise of the operator's typing rule.
    fn op(&mut self, op: OpId, operands: &[Self::Value], attrs: Vec<AttrValue>) -> Result<Self::Value, TypeError>;

    /// A constant tensor.
    ///
    /// # Errors
    /// The value does not fit the dtype.
    fn splat(&mut self, value: f64, ty: TensorType) -> Result<Self::Value, TypeError>;

    /// Would the call be well-typed? (Used to find the type of a literal among candidates.)
    fn accepts(&self, op: OpId, operands: &[&TensorType], attrs: &[AttrValue]) -> bool;
}

/// Why a term could not be instantiated, with the place in the rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct TermError {
    pub span: Span,
    pub cause: TermErrorCause,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermErrorCause {
    #[error(transparent)]
    Type(#[from] TypeError),
    #[error("{0}")]
    Attr(String),
}

/// Most steps that the attributes of one instantiation may take. A rule of a tensor of rank 64 takes some hundreds.
pub const MAX_STEPS: usize = 100_000;

/// The values of a rule's metavariables, and of its locals once they were needed.
#[derive(Clone, Debug)]
pub struct Bindings<'r, V> {
    pub tensors: Vec<Option<V>>,
    /// Of variadic parameters; empty for others.
    lists: Vec<Vec<V>>,
    pub attrs: Vec<Option<AttrValue>>,
    locals: &'r [Local],
    built: Vec<Option<Built<V>>>,
    elements: Vec<AttrValue>,
    /// Work done on attributes so far.
    steps: usize,
    /// Type of a literal that stands alone: that of the rule's left side.
    pub expected: Option<TensorType>,
}

/// An operand that was built, or a number that still needs a type.
enum Operand<V> {
    Tensor(V),
    Number(f64),
}

#[derive(Clone, Debug)]
enum Built<V> {
    Tensor(V),
    Attr(AttrValue),
}

impl<'r, V: Copy> Bindings<'r, V> {
    /// Nothing bound yet, of `vars` metavariables.
    pub fn new(vars: usize, locals: &'r [Local]) -> Self {
        Self {
            tensors: vec![None; vars],
            lists: vec![Vec::new(); vars],
            attrs: vec![None; vars],
            locals,
            built: (0..locals.len()).map(|_| None).collect(),
            elements: Vec::new(),
            steps: 0,
            expected: None,
        }
    }

    pub fn bind_tensor(&mut self, var: VarId, value: V) {
        self.tensors[var.0 as usize] = Some(value);
    }

    pub fn bind_tensors(&mut self, var: VarId, values: Vec<V>) {
        self.lists[var.0 as usize] = values;
    }

    /// The tensors that a list stands for.
    pub fn tensors_of(&self, var: VarId) -> &[V] {
        &self.lists[var.0 as usize]
    }

    pub fn bind_attr(&mut self, var: VarId, value: AttrValue) {
        self.attrs[var.0 as usize] = Some(value);
    }

    /// Builds a term; shared locals are built once.
    ///
    /// # Errors
    /// The first call in it that is not well-typed or the first attribute that cannot be computed.
    pub fn build<B: Builder<Value = V>>(&mut self, term: &Term, builder: &mut B) -> Result<V, TermError> {
        match &term.kind {
            TermKind::Var(v) => self.tensors[v.0 as usize].ok_or_else(|| unbound(term.span)),
            TermKind::Local(l) => self.local_tensor(*l, term.span, builder),
            TermKind::Element(v, index) => self.element(*v, index, builder),
            // Stands among operands only, where `arguments` takes it apart.
            TermKind::All(_) => Err(unbound(term.span)),
            TermKind::If(c, a, b) => {
                let arm = if self.condition(c, builder)? { a } else { b };
                self.build(arm, builder)
            }
            TermKind::Literal(value) => {
                let number = self.number(value, builder)?;
                let Some(ty) = self.expected.clone() else {
                    return Err(attr_error(
                        term.span,
                        "a number alone has no type here: write `splat(number, type(x))`".into(),
                    ));
                };
                builder.splat(number, ty).map_err(|e| type_error(term.span, e))
            }
            TermKind::Op { op, operands, attrs } => {
                let (values, attrs) = self.arguments(operands, attrs, builder)?;
                let values = self
                    .with_literals(term.span, values, builder, |builder, types| builder.accepts(*op, types, &attrs))?;
                builder.op(*op, &values, attrs).map_err(|e| type_error(term.span, e))
            }
            TermKind::Composite { def, operands, attrs } => {
                let (values, attrs) = self.arguments(operands, attrs, builder)?;
                let values = self.with_literals(term.span, values, builder, |_, _| true)?;
                expand(def, &values, &attrs, builder).map_err(|e| TermError { span: term.span, ..e })
            }
        }
    }

    /// Builds the arguments of a call; numbers among the operands stay numbers.
    fn arguments<B: Builder<Value = V>>(
        &mut self,
        operands: &[Term],
        attrs: &[AttrArg],
        builder: &mut B,
    ) -> Result<(Vec<Operand<V>>, Vec<AttrValue>), TermError> {
        let mut values = Vec::with_capacity(operands.len());
        for operand in operands {
            match &operand.kind {
                TermKind::Literal(number) => values.push(Operand::Number(self.number(number, builder)?)),
                TermKind::All(list) => {
                    values.extend(self.lists[list.0 as usize].iter().map(|v| Operand::Tensor(*v)));
                }
                _ => values.push(Operand::Tensor(self.build(operand, builder)?)),
            }
        }
        let rank = match values.first() {
            Some(Operand::Tensor(v)) => builder.ty(*v).rank(),
            _ => 0,
        };
        let mut attr_values = Vec::with_capacity(attrs.len());
        for attr in attrs {
            attr_values.push(match attr {
                AttrArg::Given(a) => self.attr(a, builder)?,
                AttrArg::Default(default) => default.value(rank),
            });
        }
        Ok((values, attr_values))
    }

    /// Gives numbers among the operands a type: that of another operand, the last first, or of the rule's left
    /// side, whichever first makes the call well-typed. A number is never a Bool.
    fn with_literals<B: Builder<Value = V>>(
        &self,
        span: Span,
        operands: Vec<Operand<V>>,
        builder: &mut B,
        accepts: impl Fn(&B, &[&TensorType]) -> bool,
    ) -> Result<Vec<V>, TermError> {
        let known: Vec<Option<TensorType>> = operands
            .iter()
            .map(|o| match o {
                Operand::Tensor(v) => Some(builder.ty(*v)),
                Operand::Number(_) => None,
            })
            .collect();
        let mut literal: Option<&TensorType> = None;
        if known.iter().any(Option::is_none) {
            let fits = |ty: &&TensorType| {
                let types: Vec<&TensorType> = known.iter().map(|k| k.as_ref().unwrap_or(ty)).collect();
                ty.dtype != DType::Bool && accepts(builder, &types)
            };
            literal = known.iter().rev().flatten().chain(&self.expected).find(fits);
            if literal.is_none() {
                return Err(attr_error(span, "no type fits the number here: write `splat(number, type(x))`".into()));
            }
        }
        let mut values = Vec::with_capacity(operands.len());
        for operand in operands {
            values.push(match (operand, literal) {
                (Operand::Tensor(v), _) => v,
                (Operand::Number(n), Some(ty)) => builder.splat(n, ty.clone()).map_err(|e| type_error(span, e))?,
                (Operand::Number(_), None) => return Err(unbound(span)),
            });
        }
        Ok(values)
    }

    fn local_tensor<B: Builder<Value = V>>(
        &mut self,
        local: LocalId,
        span: Span,
        builder: &mut B,
    ) -> Result<V, TermError> {
        let index = local.0 as usize;
        match &self.built[index] {
            Some(Built::Tensor(v)) => return Ok(*v),
            Some(Built::Attr(_)) => return Err(unbound(span)),
            None => {}
        }
        let LocalValue::Tensor(term) = &self.locals[index].value else { return Err(unbound(span)) };
        let value = self.build(term, builder)?;
        self.built[index] = Some(Built::Tensor(value));
        Ok(value)
    }

    /// One of a list of tensors.
    fn element<B: Builder<Value = V>>(
        &mut self,
        list: VarId,
        index: &AttrTerm,
        builder: &mut B,
    ) -> Result<V, TermError> {
        let place = self.int(index, builder)?;
        let list = &self.lists[list.0 as usize];
        usize::try_from(place)
            .ok()
            .and_then(|i| list.get(i).copied())
            .ok_or_else(|| attr_error(index.span, format!("index {place} is outside a list of {} tensors", list.len())))
    }

    fn tensor_type<B: Builder<Value = V>>(
        &mut self,
        tensor: &Tensor,
        span: Span,
        builder: &mut B,
    ) -> Result<TensorType, TermError> {
        let value = match tensor {
            Tensor::Var(v) => self.tensors[v.0 as usize].ok_or_else(|| unbound(span))?,
            Tensor::Local(l) => self.local_tensor(*l, span, builder)?,
            Tensor::Element(list, index) => self.element(*list, index, builder)?,
            Tensor::Type(ty) => match self.attr(ty, builder)? {
                AttrValue::Type(ty) => return Ok(ty),
                v => return Err(attr_error(span, format!("expected a tensor type, found {}", v.describe()))),
            },
        };
        Ok(builder.ty(value))
    }

    /// Computes an attribute.
    ///
    /// # Errors
    /// An operation that has no value: an index outside its list, an overflow, a division by zero, mixed kinds; more than
    /// [`MAX_STEPS`] steps.
    pub fn attr<B: Builder<Value = V>>(&mut self, term: &AttrTerm, builder: &mut B) -> Result<AttrValue, TermError> {
        let value = self.attr_value(term, builder)?;
        self.steps += 1 + value.as_ints().map_or(0, <[i64]>::len);
        if self.steps > MAX_STEPS {
            return Err(attr_error(term.span, format!("the attributes of this rule take more than {MAX_STEPS} steps")));
        }
        Ok(value)
    }

    /// How much work its attributes were: one step for each part of an expression and each element of a list.
    pub fn steps(&self) -> usize {
        self.steps
    }

    fn attr_value<B: Builder<Value = V>>(&mut self, term: &AttrTerm, builder: &mut B) -> Result<AttrValue, TermError> {
        let fail = |message: String| attr_error(term.span, message);
        match &term.kind {
            AttrTermKind::Const(v) => Ok(v.clone()),
            AttrTermKind::Var(v) => self.attrs[v.0 as usize].clone().ok_or_else(|| unbound(term.span)),
            AttrTermKind::Element(depth) => {
                let index = self.elements.len().checked_sub(depth + 1).ok_or_else(|| unbound(term.span))?;
                Ok(self.elements[index].clone())
            }
            AttrTermKind::Local(l) => {
                let index = l.0 as usize;
                match &self.built[index] {
                    Some(Built::Attr(v)) => return Ok(v.clone()),
                    Some(Built::Tensor(_)) => return Err(unbound(term.span)),
                    None => {}
                }
                let LocalValue::Attr(attr) = &self.locals[index].value else { return Err(unbound(term.span)) };
                let value = self.attr(attr, builder)?;
                self.built[index] = Some(Built::Attr(value.clone()));
                Ok(value)
            }
            AttrTermKind::As(kind, value) => {
                let value = self.attr(value, builder)?;
                Ok(kind.coerce(value).unwrap_or_else(|unfit| unfit))
            }
            AttrTermKind::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.push(self.int(item, builder)?);
                }
                Ok(AttrValue::Ints(list))
            }
            AttrTermKind::Comprehension { element, list, condition } => {
                let items: Vec<AttrValue> = match list {
                    ListTerm::Attr(list) => self.ints(list, builder)?.into_iter().map(AttrValue::Int).collect(),
                    ListTerm::Tensors(list) => {
                        self.lists[list.0 as usize].iter().map(|v| AttrValue::Type(builder.ty(*v))).collect()
                    }
                };
                let mut out = Vec::new();
                for item in items {
                    self.elements.push(item);
                    let keep = condition.as_ref().map_or(Ok(true), |c| self.condition(c, builder));
                    let value = keep.and_then(|k| if k { self.int(element, builder).map(Some) } else { Ok(None) });
                    self.elements.pop();
                    out.extend(value?);
                }
                Ok(AttrValue::Ints(out))
            }
            AttrTermKind::Neg(a) => match self.attr(a, builder)? {
                AttrValue::Int(i) => i.checked_neg().map(AttrValue::Int).ok_or_else(|| fail("overflow".into())),
                AttrValue::Float(v) => Ok(AttrValue::float(-v.get())),
                v => Err(fail(format!("`-` of {}", v.describe()))),
            },
            AttrTermKind::Not(a) => Ok(AttrValue::Bool(!self.condition(a, builder)?)),
            AttrTermKind::Binary(BinaryOp::And, a, b) => {
                Ok(AttrValue::Bool(self.condition(a, builder)? && self.condition(b, builder)?))
            }
            AttrTermKind::Binary(BinaryOp::Or, a, b) => {
                Ok(AttrValue::Bool(self.condition(a, builder)? || self.condition(b, builder)?))
            }
            AttrTermKind::Binary(op, a, b) => {
                let a = self.attr(a, builder)?;
                let b = self.attr(b, builder)?;
                attributes::binary(*op, a, b).map_err(fail)
            }
            AttrTermKind::If(c, a, b) => {
                let arm = if self.condition(c, builder)? { a } else { b };
                self.attr(arm, builder)
            }
            AttrTermKind::Index(list, index) => {
                let index = self.int(index, builder)?;
                // An element of a local list costs one step, however long the list is.
                let value = match &list.kind {
                    AttrTermKind::Local(l) if self.built[l.0 as usize].is_none() => Some(self.attr(list, builder)?),
                    AttrTermKind::Local(_) => None,
                    _ => Some(self.attr(list, builder)?),
                };
                let value = match (&value, &list.kind) {
                    (Some(value), _) => Some(value),
                    (None, AttrTermKind::Local(l)) => match &self.built[l.0 as usize] {
                        Some(Built::Attr(value)) => Some(value),
                        _ => None,
                    },
                    (None, _) => None,
                };
                let value = value.ok_or_else(|| unbound(list.span))?;
                let list = value.as_ints().ok_or_else(|| {
                    attr_error(list.span, format!("expected a list of integers, found {}", value.describe()))
                })?;
                usize::try_from(index)
                    .ok()
                    .and_then(|i| list.get(i))
                    .map(|v| AttrValue::Int(*v))
                    .ok_or_else(|| fail(format!("index {index} is outside a list of {}", list.len())))
            }
            AttrTermKind::Count(list) => Ok(AttrValue::Int(self.lists[list.0 as usize].len() as i64)),
            AttrTermKind::Of(property, tensor) => Ok(property.of(self.tensor_type(tensor, term.span, builder)?)),
            AttrTermKind::Dim(tensor, axis) => {
                let ty = self.tensor_type(tensor, term.span, builder)?;
                let axis = self.int(axis, builder)?;
                usize::try_from(axis)
                    .ok()
                    .and_then(|a| ty.shape.get(a))
                    .map(|d| AttrValue::Int(*d as i64))
                    .ok_or_else(|| fail(format!("axis {axis} is outside a tensor of rank {}", ty.rank())))
            }
            AttrTermKind::Call(function, args) => {
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    values.push(self.attr(arg, builder)?);
                }
                attributes::call(*function, &values).map_err(fail)
            }
        }
    }

    /// Computes a condition.
    ///
    /// # Errors
    /// As [`attr`](Self::attr); also if it is not true or false.
    pub fn condition<B: Builder<Value = V>>(&mut self, term: &AttrTerm, builder: &mut B) -> Result<bool, TermError> {
        let value = self.attr(term, builder)?;
        value.as_bool().ok_or_else(|| {
            attr_error(term.span, format!("a condition must be true or false, not {}", value.describe()))
        })
    }

    fn int<B: Builder<Value = V>>(&mut self, term: &AttrTerm, builder: &mut B) -> Result<i64, TermError> {
        let value = self.attr(term, builder)?;
        value.as_int().ok_or_else(|| attr_error(term.span, format!("expected an integer, found {}", value.describe())))
    }

    fn ints<B: Builder<Value = V>>(&mut self, term: &AttrTerm, builder: &mut B) -> Result<Vec<i64>, TermError> {
        match self.attr(term, builder)? {
            AttrValue::Ints(v) => Ok(v),
            v => Err(attr_error(term.span, format!("expected a list of integers, found {}", v.describe()))),
        }
    }

    fn number<B: Builder<Value = V>>(&mut self, term: &AttrTerm, builder: &mut B) -> Result<f64, TermError> {
        let value = self.attr(term, builder)?;
        value.as_float().ok_or_else(|| attr_error(term.span, format!("expected a number, found {}", value.describe())))
    }
}

/// Builds the body of a composite operator. Negative axes count from the end of operand 0, as in programs.
///
/// # Errors
/// The first call in the body that is not well-typed.
pub fn expand<B: Builder>(
    def: &Def,
    operands: &[B::Value],
    attrs: &[AttrValue],
    builder: &mut B,
) -> Result<B::Value, TermError> {
    let mut bindings = Bindings::new(def.head.vars.len(), &def.head.locals);
    let rank = operands.first().map_or(0, |v| builder.ty(*v).rank() as i64);
    let (mut operands, mut attrs) = (operands.iter(), attrs.iter());
    for var in &def.params {
        match def.head.vars[var.0 as usize].kind {
            VarKind::Tensor | VarKind::Tensors => bindings.tensors[var.0 as usize] = operands.next().copied(),
            VarKind::Attr(kind) => {
                bindings.attrs[var.0 as usize] = attrs.next().map(|value| from_the_end(kind, value, rank));
            }
        }
    }
    for condition in &def.head.conditions {
        if !bindings.condition(condition, builder)? {
            return Err(attr_error(condition.span, format!("`{}` is not defined here", def.name)));
        }
    }
    bindings.build(&def.result, builder)
}

fn from_the_end(kind: Option<AttrKind>, value: &AttrValue, rank: i64) -> AttrValue {
    let wrap = |axis: i64| if axis < 0 { axis.saturating_add(rank) } else { axis };
    match (kind, value) {
        (Some(AttrKind::Axis), AttrValue::Int(axis)) => AttrValue::Int(wrap(*axis)),
        (Some(AttrKind::NewAxis), AttrValue::Int(axis)) if *axis < 0 => AttrValue::Int(wrap(*axis).saturating_add(1)),
        (Some(AttrKind::Axes), AttrValue::Int(axis)) => AttrValue::Ints(vec![wrap(*axis)]),
        (Some(AttrKind::Axes | AttrKind::Permutation), AttrValue::Ints(axes)) => {
            let mut axes: Vec<i64> = axes.iter().map(|a| wrap(*a)).collect();
            if kind == Some(AttrKind::Axes) {
                axes.sort_unstable();
            }
            AttrValue::Ints(axes)
        }
        _ => value.clone(),
    }
}

fn unbound(span: Span) -> TermError {
    attr_error(span, "this name has no value here".into())
}

fn attr_error(span: Span, message: String) -> TermError {
    TermError { span, cause: TermErrorCause::Attr(message) }
}

fn type_error(span: Span, error: TypeError) -> TermError {
    TermError { span, cause: error.into() }
}

impl TermError {
    /// As a type error of the whole call, for callers that know only those.
    pub fn into_type_error(self) -> TypeError {
        match self.cause {
            TermErrorCause::Type(e) => TypeError { place: Where::Call, ..e },
            TermErrorCause::Attr(message) => TypeError::new(TypeErrorKind::Attribute, Where::Call, message),
        }
    }
}

impl fmt::Display for VarId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "?{}", self.0)
    }
}
