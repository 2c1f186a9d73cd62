//! Calls: local functions, operators, composites.

use super::attribute::AxisPlaces;
use super::eval::Checker;
use super::value::{Literal, Value};
use crate::diagnostics::{Diagnostic, Span, UNKNOWN_OPERATOR, closest};
use crate::ir::operator::Visibility;
use crate::ir::{AttrKind, AttrValue, NodeId, OpId, Origin, Param, Shape, Signature, TensorType};
use crate::syntax::ast::{Arg, Expr, Ident};

/// What a name in call position refers to.
#[derive(Clone, Copy)]
enum Target {
    Op(OpId),
    Composite,
}

/// Where a call stands, and whether it is written with a point.
#[derive(Clone, Copy)]
struct Site {
    span: Span,
    method: bool,
}

impl<'a> Checker<'a> {
    pub fn call(&mut self, callee: &Ident, args: &'a [Arg], method: bool, span: Span) -> Value {
        // Local names win, but a method is always an operator or a `def`.
        if !method && let Some(value) = self.scope.get(&callee.name) {
            let Some(function) = self.local_function(callee, value) else {
                return self.abandon(args);
            };
            return match self.arguments(function, callee, args) {
                Some(operands) => self.inline(function, operands),
                None => Value::Poison,
            };
        }
        let target = match self.registry.by_name(&callee.name) {
            Some((_, op)) if let Visibility::Internal(why) = op.visibility() => {
                self.report(
                    Diagnostic::error("E0202", format!("`{}` is not a form of the language", callee.name))
                        .at(callee.span, "internal")
                        .note(why)
                        .help(
                            "write the program with other operators: where this one is needed, differentiation adds it",
                        ),
                );
                return self.abandon(args);
            }
            Some((id, _)) => Target::Op(id),
            None if self.composites.signature(&callee.name).is_some() => Target::Composite,
            None => {
                self.unknown_callee(callee, method);
                return self.abandon(args);
            }
        };
        let composites = self.composites;
        let signature: &'a Signature = match target {
            Target::Op(id) => self.registry.op(id).signature(),
            Target::Composite => match composites.signature(&callee.name) {
                Some(signature) => signature,
                None => return self.abandon(args),
            },
        };
        let Some(slots) = self.bind_arguments(callee, args, signature) else {
            return self.abandon(args);
        };
        self.apply(callee, target, signature, args, &slots, Site { span, method })
    }

    /// Evaluates arguments only for what they report.
    fn abandon(&mut self, args: &'a [Arg]) -> Value {
        for arg in args {
            self.eval(&arg.value);
        }
        Value::Poison
    }

    fn unknown_callee(&mut self, callee: &Ident, method: bool) {
        if !self.first_use_of_unknown(&callee.name) {
            return;
        }
        let what = if method { "operator" } else { "function or operator" };
        let mut d =
            Diagnostic::error("E0202", format!("unknown {what} `{}`", callee.name)).at(callee.span, "not known");
        if method && matches!(self.scope.get(&callee.name), Some(Value::Function(_))) {
            d = d.help(format!("`{0}` is a local function: call it as `{0}(..)`", callee.name));
        } else {
            let public = self.registry.iter().filter(|(_, op)| op.visibility() == Visibility::Surface);
            let names = public.map(|(_, op)| op.name()).chain(self.composites.names()).chain(self.scope.names());
            d = match closest(&callee.name, names) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help(UNKNOWN_OPERATOR),
            };
        }
        self.report(d);
    }

    fn apply(
        &mut self,
        callee: &Ident,
        target: Target,
        signature: &Signature,
        args: &'a [Arg],
        slots: &[Vec<usize>],
        Site { span, method }: Site,
    ) -> Value {
        // Arguments are evaluated as they are written, so that inputs are numbered in that order.
        let mut values: Vec<Option<Value>> = vec![None; args.len()];
        let mut given: Vec<Option<AttrValue>> = vec![None; args.len()];
        let mut failed = false;
        for (i, arg) in args.iter().enumerate() {
            let param = signature.params().iter().zip(slots).find(|(_, slot)| slot.contains(&i)).map(|(p, _)| p);
            match param {
                Some(Param::Attr { name, kind: AttrKind::Word, words, .. }) => {
                    given[i] = self.word(name, words, &arg.value);
                    failed |= given[i].is_none();
                }
                Some(Param::Attr { name, kind, .. }) => {
                    given[i] = self.attribute(name, *kind, &arg.value);
                    failed |= given[i].is_none();
                }
                _ => values[i] = Some(self.eval(&arg.value)),
            }
        }
        let mut operands: Vec<(Value, &'a Expr)> = Vec::new();
        for (param, slot) in signature.params().iter().zip(slots) {
            if param.is_operand() {
                operands.extend(slot.iter().map(|i| (values[*i].unwrap_or(Value::Poison), &args[*i].value)));
            }
        }
        let exprs: Vec<&'a Expr> = operands.iter().map(|(_, e)| *e).collect();
        // Tensors first: they give literals their type, and axes their range.
        let mut nodes: Vec<Option<NodeId>> = Vec::new();
        for (value, expr) in &operands {
            nodes.push(match value {
                Value::Literal(_) => None,
                other => {
                    let node = self.tensor(*other, expr);
                    failed |= node.is_none();
                    node
                }
            });
        }
        if failed {
            return Value::Poison;
        }
        let rank = nodes.first().copied().flatten().map(|n| self.graph.ty(n).rank());
        let rank = rank.or_else(|| nodes.iter().flatten().next().map(|n| self.graph.ty(*n).rank()));
        // Without operands, axes are those of the shape that the call gives.
        let of_shape = || {
            let mut params = signature.params().iter().zip(slots);
            let shape = params.find(|(p, _)| matches!(p, Param::Attr { kind: AttrKind::Shape, .. }));
            let given = shape.and_then(|(_, slot)| given[*slot.first()?].as_ref()?.as_ints());
            given.map_or(0, <[i64]>::len)
        };
        let rank = rank.unwrap_or_else(of_shape);
        let mut attrs = Vec::new();
        let mut spans: Vec<(String, Span)> = Vec::new();
        for (param, slot) in signature.params().iter().zip(slots) {
            let Param::Attr { name, kind, default, .. } = param else { continue };
            let (value, at) = match slot.first() {
                Some(i) => (given[*i].take(), AxisPlaces::of(&args[*i].value)),
                None => (self.default_attribute(default.as_ref(), rank), AxisPlaces::at(span)),
            };
            spans.push((name.clone(), at.whole));
            let from_default_axes = slot.is_empty() && *kind == AttrKind::Axes;
            let value = match value {
                // All axes of a rank-0 tensor are none, which only a default may say.
                Some(value) if from_default_axes => Some(value),
                Some(value) => self.normalise(*kind, value, rank, &at),
                None => None,
            };
            match value {
                Some(value) => attrs.push(value),
                None => failed = true,
            }
        }
        if failed {
            return Value::Poison;
        }
        for (i, (value, expr)) in operands.iter().enumerate() {
            if let Value::Literal(literal) = value {
                let Some(ty) = self.literal_type(target, *literal, &nodes, &attrs) else {
                    self.tensor(*value, expr);
                    return Value::Poison;
                };
                nodes[i] = self.splat(*literal, &ty, expr.span);
            }
        }
        let Some(nodes) = nodes.into_iter().collect::<Option<Vec<NodeId>>>() else { return Value::Poison };
        let shapes: Vec<Shape> = nodes.iter().map(|n| self.graph.ty(*n).shape.clone()).collect();
        let first = self.graph.len();
        let origin = Origin::Program(span);
        let (registry, composites) = (self.registry, self.composites);
        let result = match target {
            Target::Op(op) => self.graph.add(registry, op, nodes, attrs, origin),
            Target::Composite => composites.expand(&callee.name, &mut self.graph, nodes, attrs, origin),
        };
        match result {
            Ok(id) => {
                self.add_checks(first);
                Value::Tensor(id)
            }
            Err(error) => {
                let at = |name: &str| spans.iter().find(|(n, _)| n == name).map(|(_, s)| *s);
                self.type_error(error, &exprs, at, &shapes, span, method)
            }
        }
    }

    /// The type of a literal operand: that of another operand, the last first, with which the call is well-typed;
    /// failing that the first of a suitable dtype, so that the report is about the call.
    fn literal_type(
        &self,
        target: Target,
        literal: Literal,
        nodes: &[Option<NodeId>],
        attrs: &[AttrValue],
    ) -> Option<TensorType> {
        let known: Vec<Option<&TensorType>> = nodes.iter().map(|n| n.map(|n| self.graph.ty(n))).collect();
        let candidates: Vec<&TensorType> =
            known.iter().rev().flatten().copied().filter(|ty| literal.suits(ty.dtype)).collect();
        let fits = |ty: &&&TensorType| match target {
            Target::Op(op) => {
                let types: Vec<&TensorType> = known.iter().map(|k| k.unwrap_or(ty)).collect();
                self.registry.infer(op, &types, attrs).is_ok()
            }
            Target::Composite => true,
        };
        candidates.iter().find(fits).or(candidates.first()).map(|ty| (*ty).clone())
    }

    /// Adds a call of an operator that the syntax implies.
    pub fn operator(
        &mut self,
        name: &str,
        operands: Vec<NodeId>,
        attrs: Vec<AttrValue>,
        exprs: &[&Expr],
        span: Span,
    ) -> Value {
        let registry = self.registry;
        let Some(op) = registry.id(name) else {
            return self.report(
                Diagnostic::error("E0202", format!("unknown operator `{name}`"))
                    .at(span, "needed here")
                    .help("use a registry that has it"),
            );
        };
        let shapes: Vec<Shape> = operands.iter().map(|n| self.graph.ty(*n).shape.clone()).collect();
        match self.graph.add(registry, op, operands, attrs, Origin::Program(span)) {
            Ok(id) => Value::Tensor(id),
            Err(error) => self.type_error(error, exprs, |_| None, &shapes, span, false),
        }
    }
}
