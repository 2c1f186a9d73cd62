//! The registry: what Rust knows about an operator (and no mathematics beyond its meaning).

use std::fmt;
use std::sync::Arc;

use super::array::{Array, Precision};
use super::attr::{AttrKind, AttrValue};
use super::kernel::Kernel;
use super::memory::OutOfMemory;
use super::range::Range;
use super::types::TensorType;

/// An operator of a [`Registry`], which is sorted by name: comparing ids compares names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u16);

/// One parameter of an operator, in the order in which a call writes them.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// A tensor.
    Operand(String),
    /// One tensor or more. A signature has at most one such parameter.
    Variadic(String),
    /// A compile-time attribute.
    Attr {
        name: String,
        kind: AttrKind,
        default: Option<Default>,
        /// What it may be, if it is a word.
        words: Words,
    },
}

/// The words that an attribute may be, in the order of its declaration.
pub type Words = Arc<[Arc<str>]>;

/// `none, mean or sum`
pub fn listed(words: &[Arc<str>]) -> String {
    match words {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [others @ .., last] => {
            let others: Vec<String> = others.iter().map(|w| format!("`{w}`")).collect();
            format!("{} or `{last}`", others.join(", "))
        }
    }
}

impl Param {
    pub fn name(&self) -> &str {
        match self {
            Param::Operand(name) | Param::Variadic(name) | Param::Attr { name, .. } => name,
        }
    }

    /// What an attribute must be, for messages.
    pub fn wanted(&self) -> String {
        match self {
            Param::Attr { kind: AttrKind::Word, words, .. } => listed(words),
            Param::Attr { kind, .. } => kind.describe().to_owned(),
            Param::Operand(_) | Param::Variadic(_) => "a tensor".to_owned(),
        }
    }

    /// May the attribute have this value?
    pub fn accepts(&self, value: &AttrValue) -> bool {
        match (self, value) {
            (Param::Attr { kind: AttrKind::Word, words, .. }, AttrValue::Word(word)) => {
                words.iter().any(|w| **w == **word)
            }
            (Param::Attr { kind, .. }, value) => kind.accepts(value),
            (Param::Operand(_) | Param::Variadic(_), _) => false,
        }
    }

    /// Does it stand for tensors?
    pub fn is_operand(&self) -> bool {
        !matches!(self, Param::Attr { .. })
    }
}

/// Most tensors that one call takes. A rule for a variadic operator makes a term for each of them that may speak of
/// all.
pub const MAX_OPERANDS: usize = 512;

/// The value of an attribute that a call leaves out.
#[derive(Clone, Debug, PartialEq)]
pub enum Default {
    Value(AttrValue),
    /// All axes of operand 0.
    AllAxes,
    /// This integer for each axis of operand 0.
    Each(i64),
}

impl Default {
    /// The value for an operand 0 of that rank.
    pub fn value(&self, rank: usize) -> AttrValue {
        match self {
            Default::Value(value) => value.clone(),
            Default::AllAxes => AttrValue::Ints((0..rank as i64).collect()),
            Default::Each(value) => AttrValue::Ints(vec![*value; rank]),
        }
    }
}

/// The parameters of an operator. Attributes of a call are stored in the order of the signature's attributes,
/// operands in the order of its operands, whatever order the call had.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    params: Vec<Param>,
}

impl Signature {
    pub fn new(params: Vec<Param>) -> Self {
        Self { params }
    }

    /// A signature of operands only.
    pub fn operands_only(names: &[&str]) -> Self {
        Self::new(names.iter().map(|n| Param::Operand((*n).into())).collect())
    }

    /// Adds an operand.
    #[must_use]
    pub fn operand(mut self, name: &str) -> Self {
        self.params.push(Param::Operand(name.into()));
        self
    }

    /// Adds an operand that stands for one tensor or more.
    #[must_use]
    pub fn variadic(mut self, name: &str) -> Self {
        self.params.push(Param::Variadic(name.into()));
        self
    }

    /// Adds an attribute that every call must give.
    #[must_use]
    pub fn attr(mut self, name: &str, kind: AttrKind) -> Self {
        self.params.push(Param::Attr { name: name.into(), kind, default: None, words: Words::default() });
        self
    }

    /// Adds an attribute that is one of `words`, and `default` where a call leaves it out.
    #[must_use]
    pub fn word(mut self, name: &str, words: Words, default: Option<Arc<str>>) -> Self {
        let default = default.map(|word| Default::Value(AttrValue::Word(word.to_string())));
        self.params.push(Param::Attr { name: name.into(), kind: AttrKind::Word, default, words });
        self
    }

    /// Adds an attribute with a default.
    #[must_use]
    pub fn attr_or(mut self, name: &str, kind: AttrKind, default: Default) -> Self {
        self.params.push(Param::Attr { name: name.into(), kind, default: Some(default), words: Words::default() });
        self
    }

    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The names of the parameters that stand for tensors; a variadic one counts once.
    pub fn operand_names(&self) -> impl Iterator<Item = &str> {
        self.params.iter().filter(|p| p.is_operand()).map(Param::name)
    }

    /// How many parameters stand for tensors: a call has so many tensors, or more where one is variadic.
    pub fn operand_count(&self) -> usize {
        self.operand_names().count()
    }

    /// The place of the variadic parameter among those that stand for tensors.
    pub fn variadic_place(&self) -> Option<usize> {
        self.params.iter().filter(|p| p.is_operand()).position(|p| matches!(p, Param::Variadic(_)))
    }

    /// May a call have so many tensors?
    pub fn takes(&self, operands: usize) -> bool {
        let least = self.operand_count();
        operands == least || (operands > least && operands <= MAX_OPERANDS && self.variadic_place().is_some())
    }

    /// The parameter, counted among those that stand for tensors, of operand `index` of a call with `count` of them, and
    /// the operand's place in the list of a variadic one.
    pub fn param_of(&self, index: usize, count: usize) -> (usize, Option<usize>) {
        let more = count.saturating_sub(self.operand_count());
        match self.variadic_place() {
            Some(v) if index < v => (index, None),
            Some(v) if index <= v + more => (v, Some(index - v)),
            Some(_) => (index - more, None),
            None => (index, None),
        }
    }

    /// The operands of a call, parameter by parameter of those that stand for tensors.
    pub fn split<'a, T>(&self, operands: &'a [T]) -> Vec<&'a [T]> {
        let count = operands.len();
        let mut parts = Vec::new();
        let mut rest = operands;
        for param in 0..self.operand_count() {
            let more =
                if self.variadic_place() == Some(param) { count.saturating_sub(self.operand_count()) } else { 0 };
            let (part, behind) = rest.split_at((1 + more).min(rest.len()));
            parts.push(part);
            rest = behind;
        }
        parts
    }

    /// What operand `index` of a call with `count` of them is called: `x`, or `xs[2]`.
    pub fn operand_label(&self, index: usize, count: usize) -> String {
        let (param, element) = self.param_of(index, count);
        let name = self.operand_names().nth(param).unwrap_or("?");
        element.map_or_else(|| name.to_owned(), |i| format!("{name}[{i}]"))
    }

    /// Name, kind and default of each attribute, in storage order.
    pub fn attrs(&self) -> impl Iterator<Item = (&str, AttrKind, Option<&Default>)> {
        self.params.iter().filter_map(|p| match p {
            Param::Operand(_) | Param::Variadic(_) => None,
            Param::Attr { name, kind, default, .. } => Some((name.as_str(), *kind, default.as_ref())),
        })
    }

    /// The parameters that stand for attributes, in storage order.
    pub fn attr_params(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|p| !p.is_operand())
    }

    /// Binds the arguments of a call: `positional` unnamed ones first, then the named ones in the order of `named`.
    /// Returns, for each parameter, the indices of its arguments in that numbering: none if it was left out and has a
    /// default, several for a variadic one. What stands behind a variadic parameter and has no default takes the last of
    /// the unnamed arguments, unless it is named.
    ///
    /// # Errors
    /// The first argument that does not fit, or the first parameter that is missing.
    pub fn bind(&self, positional: usize, named: &[&str]) -> Result<Vec<Vec<usize>>, BindError> {
        let mut bound: Vec<Vec<usize>> = vec![Vec::new(); self.params.len()];
        match self.params.iter().position(|p| matches!(p, Param::Variadic(_))) {
            None if positional > self.params.len() => {
                return Err(BindError::TooMany { argument: self.params.len(), takes: self.params.len() });
            }
            None => (0..positional).for_each(|i| bound[i].push(i)),
            Some(variadic) => {
                let behind = (variadic + 1..self.params.len()).filter(|i| {
                    let param = &self.params[*i];
                    let may_be_left_out = matches!(param, Param::Attr { default: Some(_), .. });
                    !may_be_left_out && !named.contains(&param.name())
                });
                let behind: Vec<usize> = behind.collect();
                let first = variadic.min(positional);
                // The variadic parameter has one argument at least.
                let last = behind.len().min((positional - first).saturating_sub(1));
                (0..first).for_each(|i| bound[i].push(i));
                bound[variadic].extend(first..positional - last);
                behind.into_iter().zip(positional - last..positional).for_each(|(param, i)| bound[param].push(i));
            }
        }
        for (i, name) in named.iter().enumerate() {
            let argument = positional + i;
            let Some(param) = self.params.iter().position(|p| p.name() == *name) else {
                return Err(BindError::Unknown { argument });
            };
            if !bound[param].is_empty() {
                return Err(BindError::Twice { argument });
            }
            bound[param].push(argument);
        }
        for (i, param) in self.params.iter().enumerate() {
            if bound[i].is_empty() && !matches!(param, Param::Attr { default: Some(_), .. }) {
                return Err(BindError::Missing { param: i });
            }
        }
        Ok(bound)
    }

    pub fn attr_index(&self, name: &str) -> Option<usize> {
        self.attrs().position(|(n, _, _)| n == name)
    }
}

impl fmt::Display for Signature {
    /// `(x, axis, keepdims=false)`, `(xs.., axis)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, p) in self.params.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            f.write_str(p.name())?;
            match p {
                Param::Variadic(_) => f.write_str("..")?,
                Param::Attr { default: Some(Default::Value(v)), .. } => write!(f, "={v}")?,
                Param::Attr { default: Some(Default::AllAxes), .. } => f.write_str("=all")?,
                Param::Attr { default: Some(Default::Each(v)), .. } => write!(f, "=[{v}, ..]")?,
                _ => {}
            }
        }
        f.write_str(")")
    }
}

/// Why the arguments of a call do not fit a [`Signature`]. `argument` counts positional, then named arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindError {
    TooMany { argument: usize, takes: usize },
    Unknown { argument: usize },
    Twice { argument: usize },
    Missing { param: usize },
}

/// Where in a call a type error sits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    Operand(usize),
    Attr(&'static str),
    Call,
}

/// Which premise of a typing rule is violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeErrorKind {
    Rank,
    DType,
    Shape,
    Axis,
    Placement,
    Attribute,
    /// The result would not be addressable.
    Overflow,
    /// The operation has no value here (a maximum over no elements).
    Empty,
}

impl TypeErrorKind {
    /// The diagnostic code of the violation.
    pub fn code(self) -> &'static str {
        match self {
            TypeErrorKind::Rank => "E0301",
            TypeErrorKind::DType => "E0302",
            TypeErrorKind::Shape => "E0303",
            TypeErrorKind::Axis => "E0304",
            TypeErrorKind::Placement => "E0305",
            TypeErrorKind::Attribute => "E0306",
            TypeErrorKind::Overflow => "E0307",
            TypeErrorKind::Empty => "E0308",
        }
    }
}

/// A violated premise. The caller knows the spans.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TypeError {
    pub kind: TypeErrorKind,
    pub place: Where,
    pub message: String,
    pub help: Option<String>,
}

impl TypeError {
    pub fn new(kind: TypeErrorKind, place: Where, message: impl Into<String>) -> Self {
        Self { kind, place, message: message.into(), help: None }
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A stop at run time: an index out of its bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operator} index out of bounds")]
pub struct Trap {
    pub operator: String,
}

/// Why an operator has no result for its operands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    #[error(transparent)]
    Trap(#[from] Trap),
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// Operand types and attributes of one call, in storage order.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub operands: &'a [&'a TensorType],
    pub attrs: &'a [AttrValue],
}

impl Call<'_> {
    /// The attribute as an axis. Registry code calls it after the kinds were checked.
    pub fn axis(&self, attr: usize) -> usize {
        self.attrs[attr].as_int().map_or(usize::MAX, |i| usize::try_from(i).unwrap_or(usize::MAX))
    }

    pub fn ints(&self, attr: usize) -> &[i64] {
        self.attrs[attr].as_ints().unwrap_or(&[])
    }

    pub fn flag(&self, attr: usize) -> bool {
        self.attrs[attr].as_bool().unwrap_or(false)
    }
}

/// What a reference implementation computes from.
pub struct Eval<'a> {
    pub call: Call<'a>,
    pub args: &'a [&'a Array],
    pub result: &'a TensorType,
    pub precision: Precision,
}

/// A run-time bound on the elements of an operand: `0 <= operand[i] < size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    pub operand: usize,
    pub size: u64,
}

/// May programs write it?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    Surface,
    /// Only rule files and the pass write it; the text says why.
    Internal(&'static str),
}

/// One operator: name, parameters, typing rule with placement, reference semantics and lowering, in one place.
///
/// The kinds of the attributes were checked against the signature before any method is called, and every method
/// but [`infer`](Operator::infer) may rely on `infer` having accepted the call.
pub trait Operator: Send + Sync {
    fn name(&self) -> &str;

    /// The meaning as a formula, for documentation.
    fn doc(&self) -> &str;

    fn signature(&self) -> &Signature;

    fn visibility(&self) -> Visibility {
        Visibility::Surface
    }

    /// The typing rule: dtype, shape and placement of the result.
    ///
    /// # Errors
    /// The first violated premise.
    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError>;

    /// The reference semantics, written without regard to speed or to [`kernel`](Operator::kernel). Elements are kept in
    /// memory from [`memory`](super::memory), which may be refused.
    ///
    /// # Errors
    /// A [`Trap`] where the specification traps, or memory does not suffice.
    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError>;

    /// The lowering.
    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel;

    /// The run-time bound, if the operator has one. Its check is not part of the kernel.
    fn bound(&self, _call: Call<'_>) -> Option<Bound> {
        None
    }

    /// Where the elements of the result lie that are not NaN, if those of the operands lie in `operands`.
    fn range(&self, _operands: &[Range], _call: Call<'_>, result: &TensorType) -> Range {
        Range::of_type(result)
    }

    /// The same where all operands are one value.
    fn range_of_one(&self, operand: Range, call: Call<'_>, result: &TensorType) -> Range {
        self.range(&vec![operand; call.operands.len()], call, result)
    }

    /// Is no element of the result NaN where no element of an operand is?
    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        false
    }

    /// Does each element of the result depend on the elements at its own place alone?
    fn is_elementwise(&self, call: Call<'_>, result: &TensorType) -> bool {
        self.kernel(call, result).is_elementwise()
    }

    /// Is the result a constant for differentiation, whatever it is computed from? Finite differences then hold it fixed.
    fn is_constant(&self) -> bool {
        false
    }

    /// The attributes in the form that equal calls share, if `attrs`, whose kinds may be wrong, are in another one.
    fn canonical(&self, _attrs: &[AttrValue]) -> Option<Vec<AttrValue>> {
        None
    }

    /// Well-typed calls of ranks 1 to 4 (where the operator allows them): operand types and attributes. Rule
    /// conclusions are typed over them, documentation and tests use them.
    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)>;
}

impl fmt::Debug for dyn Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operator({})", self.name())
    }
}

/// All operators of a compilation: the built-in ones and the composites that rule files define.
#[derive(Clone, Debug)]
pub struct Registry {
    /// Sorted by name.
    ops: Vec<Arc<dyn Operator>>,
}

impl Registry {
    /// Sorts by name; of two operators of one name the first wins.
    pub fn from_ops(mut ops: Vec<Arc<dyn Operator>>) -> Registry {
        ops.sort_by(|a, b| a.name().cmp(b.name()));
        ops.dedup_by(|b, a| a.name() == b.name());
        Registry { ops }
    }

    /// A registry with `more` operators. Ids of the two registries differ.
    #[must_use]
    pub fn extended(&self, more: Vec<Arc<dyn Operator>>) -> Registry {
        Registry::from_ops(self.ops.iter().cloned().chain(more).collect())
    }

    pub fn id(&self, name: &str) -> Option<OpId> {
        self.ops.binary_search_by(|op| op.name().cmp(name)).ok().map(|i| OpId(i as u16))
    }

    pub fn op(&self, id: OpId) -> &dyn Operator {
        &*self.ops[id.0 as usize]
    }

    pub fn by_name(&self, name: &str) -> Option<(OpId, &dyn Operator)> {
        self.id(name).map(|id| (id, self.op(id)))
    }

    pub fn iter(&self) -> impl Iterator<Item = (OpId, &dyn Operator)> {
        self.ops.iter().enumerate().map(|(i, op)| (OpId(i as u16), &**op))
    }

    /// The operator and attributes of a constant tensor. Beyond the range of F32 the value becomes an infinity, as IEEE
    /// arithmetic has it.
    ///
    /// # Errors
    /// The registry has no `splat` (a registry of a test).
    pub fn splat(&self, value: f64, ty: TensorType) -> Result<(OpId, Vec<AttrValue>), TypeError> {
        let op = self.id("splat").ok_or_else(|| {
            TypeError::new(TypeErrorKind::Attribute, Where::Call, "a constant needs the operator `splat`")
        })?;
        let attrs = vec![AttrValue::float(value), AttrValue::Type(ty)];
        Ok((op, self.op(op).canonical(&attrs).unwrap_or(attrs)))
    }

    /// Checks the kinds of the attributes, then the typing rule. Every IR node is made through here.
    ///
    /// # Errors
    /// The first violated premise.
    pub fn infer(&self, id: OpId, operands: &[&TensorType], attrs: &[AttrValue]) -> Result<TensorType, TypeError> {
        let op = self.op(id);
        let signature = op.signature();
        if !signature.takes(operands.len()) {
            let wanted = match signature.variadic_place() {
                Some(_) => format!("{} to {MAX_OPERANDS}", signature.operand_count()),
                None => signature.operand_count().to_string(),
            };
            return Err(TypeError::new(
                TypeErrorKind::Attribute,
                Where::Call,
                format!("`{}` takes {wanted} tensor(s), not {}", op.name(), operands.len()),
            )
            .help("make several calls of it"));
        }
        if attrs.len() != signature.attrs().count() {
            return Err(TypeError::new(
                TypeErrorKind::Attribute,
                Where::Call,
                format!("`{}` takes {} attribute(s), not {}", op.name(), signature.attrs().count(), attrs.len()),
            ));
        }
        for (param, value) in signature.attr_params().zip(attrs) {
            if !param.accepts(value) {
                let (name, wanted) = (param.name(), param.wanted());
                let found = match value {
                    AttrValue::Word(word) => format!("`{word}`"),
                    value => value.describe().to_owned(),
                };
                return Err(TypeError::new(
                    TypeErrorKind::Attribute,
                    Where::Call,
                    format!("`{name}` of `{}` must be {wanted}, not {found}", op.name()),
                ));
            }
        }
        op.infer(Call { operands, attrs })
    }
}
