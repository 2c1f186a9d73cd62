//! `example` lines: what a rule's author states about single points, verified with the rule.
//!
//! - `example sigmoid(0.0) == 0.5`: a condition over constants. `==` holds within rounding, so that ten digits do for a number
//!   that has more; other comparisons must hold as written. A term that is no comparison must have a value, and no NaN in it.
//! - `example abs([1.0, -2.0])` in the `vjp` of `abs`: a point at which the derivative is compared as at sampled ones.
//! - `example x == 2.0: g_x = 0.25` in a `vjp`: a conclusion at a point, for a cotangent of ones where `g_y` is not given.
//!
//! A list of numbers is a tensor here: `[[1.0, 2.0], [3.0, 4.0]]` of F64, one of whole numbers without a point of I64, one of `true`
//! and `false` of Bool. A number alone is an F64 scalar.

use super::compile::constant;
use super::rule::VarKind;
use super::scope::{Compiled, Library, Scope, bind_args};
use super::term::{Term, TermKind, VarId};
use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::ir::operator::Default as AttrDefault;
use crate::ir::{Array, AttrValue, DType, OpId, Param, Placement, Registry, Shape, Signature, TensorType, Values};
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, Ident, UnaryOp};

/// A constant tensor that stands in a rule file.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    pub ty: TensorType,
    pub array: Array,
}

/// A term without free names: its metavariables stand for constants.
#[derive(Clone, Debug)]
pub struct Closed {
    /// By metavariable.
    pub constants: Vec<Constant>,
    pub term: Term,
}

/// An `example` line.
#[derive(Clone, Debug)]
pub struct Example {
    pub kind: ExampleKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ExampleKind {
    /// Both have the same value, within rounding.
    Equal(Closed, Closed),
    /// A Bool term that is true everywhere, or another one that has a value.
    Holds(Closed),
    /// In a VJP: a call of its operator.
    Call { operands: Vec<Closed>, attrs: Vec<AttrValue> },
    /// In a VJP: what the conclusion of one operand is.
    Conclusion { tensors: Vec<(VarId, Closed)>, attrs: Vec<(VarId, AttrValue)>, operand: usize, value: Closed },
}

/// Compiles an example of any rule. `operator` is that of a VJP.
pub(super) fn compile(
    condition: &Expr,
    span: Span,
    operator: Option<OpId>,
    library: &Library<'_>,
    bag: &mut Diagnostics,
) -> Option<Example> {
    if let (Some(op), ExprKind::Call { callee, args, .. }) = (operator, &condition.kind)
        && library.registry.id(&callee.name) == Some(op)
    {
        let signature = library.registry.op(op).signature();
        let slots = bind_args(&callee.name, signature, args, condition.span, bag)?;
        let (mut operands, mut attrs) = (Vec::new(), Vec::new());
        for (param, slot) in signature.params().iter().zip(slots) {
            if let Param::Variadic(_) = param {
                for i in slot {
                    operands.push(closed(&args[i].value, library, bag)?);
                }
                continue;
            }
            let arg = slot.first().map(|i| &args[*i].value);
            match (param, arg) {
                (Param::Attr { name, kind, .. }, Some(arg)) => match constant(arg).map(|v| kind.coerce(v)) {
                    Some(Ok(value)) => attrs.push(value),
                    _ => {
                        bag.push(
                            Diagnostic::error("E0408", format!("`{name}` in an example must be {}", kind.describe()))
                                .at(arg.span, "not a constant of that kind")
                                .help("write a constant: an example is one point"),
                        );
                        return None;
                    }
                },
                (Param::Attr { default: Some(AttrDefault::Value(value)), .. }, None) => attrs.push(value.clone()),
                (Param::Attr { name, .. }, None) => {
                    bag.push(
                        Diagnostic::error("E0403", format!("an example gives `{name}`"))
                            .at(condition.span, "its default depends on the operand")
                            .help(format!("add `{name}=..`")),
                    );
                    return None;
                }
                (_, Some(arg)) => operands.push(closed(arg, library, bag)?),
                (_, None) => return None,
            }
        }
        return Some(Example { kind: ExampleKind::Call { operands, attrs }, span });
    }
    let kind = match &condition.kind {
        ExprKind::Binary(BinaryOp::Eq, a, b) => {
            let (a, b) = (closed(a, library, bag), closed(b, library, bag));
            ExampleKind::Equal(a?, b?)
        }
        _ => ExampleKind::Holds(closed(condition, library, bag)?),
    };
    Some(Example { kind, span })
}

/// Compiles `example x == 2.0 && axis == 1: g_x = 0.25` of a VJP whose names are in `scope`.
pub(super) fn compile_conclusion(
    point: &Expr,
    operand: usize,
    value: &Expr,
    span: Span,
    scope: &Scope<'_>,
    bag: &mut Diagnostics,
) -> Option<Example> {
    let (mut tensors, mut attrs) = (Vec::new(), Vec::new());
    let mut parts = vec![point];
    while let Some(part) = parts.pop() {
        let (name, given) = match &part.kind {
            ExprKind::Binary(BinaryOp::And, a, b) => {
                parts.extend([&**b, &**a]);
                continue;
            }
            ExprKind::Binary(BinaryOp::Eq, name, given) if matches!(name.kind, ExprKind::Name(_)) => (name, given),
            _ => {
                bag.push(
                    Diagnostic::error("E0411", "an example says where it is by `name == constant`, joined by `&&`")
                        .at(part.span, "not of that form")
                        .help("e.g. `example x == 2.0 && g_y == 1.0: g_x = 0.25`"),
                );
                return None;
            }
        };
        let ExprKind::Name(text) = &name.kind else { continue };
        let Some(var) = scope.lookup_var(text) else {
            bag.push(
                Diagnostic::error("E0401", format!("`{text}` is not bound in this rule's premise"))
                    .at(name.span, "unknown name")
                    .help("an example gives the operands of the premise, its attributes and the cotangent"),
            );
            return None;
        };
        match scope.vars[var.0 as usize].kind {
            VarKind::Tensors => {
                bag.push(
                    Diagnostic::error("E0411", format!("`{text}` stands for several tensors"))
                        .at(name.span, "not one constant")
                        .help("write the example as a call of the operator"),
                );
                return None;
            }
            VarKind::Tensor => tensors.push((var, closed(given, scope.library, bag)?)),
            VarKind::Attr(kind) => {
                let value = constant(given).map(|v| kind.map_or(Ok(v.clone()), |k| k.coerce(v)));
                let Some(Ok(value)) = value else {
                    bag.push(
                        Diagnostic::error("E0408", format!("`{text}` in an example must be a constant of its kind"))
                            .at(given.span, "not such a constant")
                            .help("write a number, true, false or a list of whole numbers"),
                    );
                    return None;
                };
                attrs.push((var, value));
            }
        }
    }
    let value = closed(value, scope.library, bag)?;
    Some(Example { kind: ExampleKind::Conclusion { tensors, attrs, operand, value }, span })
}

/// Compiles a term whose lists are constants.
fn closed(expr: &Expr, library: &Library<'_>, bag: &mut Diagnostics) -> Option<Closed> {
    let mut expr = expr.clone();
    let mut constants = Vec::new();
    lists_to_names(&mut expr, true, library.registry, library, &mut constants, bag)?;
    let mut scope = Scope::new(library);
    for i in 0..constants.len() {
        scope.var(&name_of(i), VarKind::Tensor);
    }
    let term = match scope.compile(&expr, bag)? {
        Compiled::Tensor(term) => term,
        Compiled::Attr(value) => Term { span: expr.span, kind: TermKind::Literal(value) },
    };
    Some(Closed { constants, term })
}

/// A name that no text can write.
fn name_of(constant: usize) -> String {
    format!("[{constant}]")
}

/// Replaces the lists that stand where a tensor is wanted by names, and collects their values.
fn lists_to_names(
    expr: &mut Expr,
    wants_tensor: bool,
    registry: &Registry,
    library: &Library<'_>,
    constants: &mut Vec<Constant>,
    bag: &mut Diagnostics,
) -> Option<()> {
    match &mut expr.kind {
        ExprKind::List(_) if wants_tensor => {
            constants.push(tensor(expr, bag)?);
            expr.kind = ExprKind::Name(name_of(constants.len() - 1).into());
        }
        ExprKind::Unary(_, a) => lists_to_names(a, wants_tensor, registry, library, constants, bag)?,
        ExprKind::Binary(_, a, b) => {
            lists_to_names(a, wants_tensor, registry, library, constants, bag)?;
            lists_to_names(b, wants_tensor, registry, library, constants, bag)?;
        }
        ExprKind::Call { callee, args, .. } => {
            let signature: Option<&Signature> = match registry.by_name(&callee.name) {
                Some((_, op)) => Some(op.signature()),
                None => library.defs.get(&callee.name).map(|def| &def.signature),
            };
            for (i, arg) in args.iter_mut().enumerate() {
                let is_operand = signature.is_some_and(|s| {
                    let param = match &arg.name {
                        Some(Ident { name, .. }) => s.params().iter().find(|p| p.name() == &**name),
                        None => s.params().get(i).or(s.params().last()),
                    };
                    param.is_some_and(|p| !matches!(p, Param::Attr { .. }))
                });
                lists_to_names(&mut arg.value, is_operand, registry, library, constants, bag)?;
            }
        }
        _ => {}
    }
    Some(())
}

/// The elements of nested lists.
fn tensor(expr: &Expr, bag: &mut Diagnostics) -> Option<Constant> {
    let mut shape = Vec::new();
    let mut first = expr;
    while let ExprKind::List(items) = &first.kind {
        shape.push(items.len() as u64);
        match items.first() {
            Some(item) => first = item,
            None => break,
        }
    }
    let mut leaves = Vec::new();
    let refuse = |span: Span, bag: &mut Diagnostics| {
        bag.push(
            Diagnostic::error("E0408", "a list that is a tensor holds constants, in rows of equal length")
                .at(span, "not such a list")
                .help("e.g. `[1.0, -2.0]`, `[[1.0], [2.0]]`; whole numbers without a point are I64"),
        );
    };
    if !flatten(expr, &shape, &mut leaves) {
        refuse(expr.span, bag);
        return None;
    }
    let bools: Option<Vec<bool>> = leaves.iter().map(AttrValue::as_bool).collect();
    let ints: Option<Vec<i64>> = leaves.iter().map(AttrValue::as_int).collect();
    let floats: Option<Vec<f64>> = leaves.iter().map(AttrValue::as_float).collect();
    let (dtype, values) = match (floats, ints, bools) {
        (Some(floats), _, _) if floats.is_empty() => (DType::F64, Values::Float(floats)),
        (_, Some(ints), _) => (DType::I64, Values::Int(ints)),
        (Some(floats), _, _) => (DType::F64, Values::Float(floats)),
        (_, _, Some(bools)) => (DType::Bool, Values::Bool(bools)),
        _ => {
            refuse(expr.span, bag);
            return None;
        }
    };
    let Ok(shape) = Shape::new(shape) else {
        refuse(expr.span, bag);
        return None;
    };
    Some(Constant { ty: TensorType::new(dtype, shape.clone(), Placement::Host), array: Array::new(shape, values) })
}

/// Are the lists of that shape? Their elements go to `leaves`.
fn flatten(expr: &Expr, shape: &[u64], leaves: &mut Vec<AttrValue>) -> bool {
    match (shape.split_first(), &expr.kind) {
        (Some((size, rest)), ExprKind::List(items)) => {
            items.len() as u64 == *size && items.iter().all(|item| flatten(item, rest, leaves))
        }
        (None, ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Unary(UnaryOp::Neg, _)) => {
            match constant(expr) {
                Some(value) => {
                    leaves.push(value);
                    true
                }
                None => false,
            }
        }
        _ => false,
    }
}
