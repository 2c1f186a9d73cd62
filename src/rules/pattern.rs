//! Left sides of rewrites.

use super::compile::{constant, word_in};
use super::rule::{AttrPattern, Pattern, VarKind};
use super::scope::{Callee, Scope, bind_args};
use super::term::VarId;
use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::ir::operator::{Default as AttrDefault, listed};
use crate::ir::{AttrKind, AttrValue, Param};
use crate::syntax::ast::{Expr, ExprKind, UnaryOp};

/// Compiles a left side. Attributes that are neither names nor constants become fresh variables in `computed`.
pub(super) fn pattern(
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
    let var = scope.fresh("(computed)", VarKind::Attr(Some(kind)));
    computed.push((var, arg.clone()));
    Some(AttrPattern::Var(var))
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
