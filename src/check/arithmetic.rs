//! Unary minus, binary operators, and what a violated premise is reported as.

use super::eval::Checker;
use super::literal::{fold, negate};
use super::value::{Literal, Value};
use crate::diagnostics::{Diagnostic, Span};
use crate::ir::{Shape, TypeError, TypeErrorKind, Where};
use crate::syntax::ast::{BinaryOp, Expr};

impl<'a> Checker<'a> {
    pub fn negate(&mut self, operand: &'a Expr, span: Span) -> Value {
        match self.eval(operand) {
            Value::Literal(literal) => match negate(literal) {
                Some(negated) => Value::Literal(negated),
                None => self.no_arithmetic(literal, operand.span),
            },
            value => match self.tensor(value, operand) {
                Some(id) => self.operator("neg", vec![id], Vec::new(), &[operand], span),
                None => Value::Poison,
            },
        }
    }

    fn no_arithmetic(&mut self, literal: Literal, span: Span) -> Value {
        self.report(
            Diagnostic::error("E0208", format!("no arithmetic on the truth value `{literal}`"))
                .at(span, "not a number")
                .help("use `logical_and`, `logical_or` or `logical_not`"),
        )
    }

    pub fn binary(&mut self, op: BinaryOp, left: &'a Expr, right: &'a Expr, span: Span) -> Value {
        let Some(name) = op.operator_name() else { return Value::Poison };
        let a = self.eval(left);
        let b = self.eval(right);
        if let (Value::Literal(x), Value::Literal(y)) = (a, b) {
            return match fold(op, x, y) {
                Some(folded) => Value::Literal(folded),
                None => self.no_arithmetic(if matches!(x, Literal::Bool(_)) { x } else { y }, span),
            };
        }
        let (a, b) = match (a, b) {
            (Value::Literal(x), other) => {
                let Some(b) = self.tensor(other, right) else { return Value::Poison };
                let ty = self.graph.ty(b).clone();
                (self.splat(x, &ty, left.span), Some(b))
            }
            (other, Value::Literal(y)) => {
                let Some(a) = self.tensor(other, left) else { return Value::Poison };
                let ty = self.graph.ty(a).clone();
                (Some(a), self.splat(y, &ty, right.span))
            }
            (a, b) => {
                let a = self.tensor(a, left);
                (a, self.tensor(b, right))
            }
        };
        match (a, b) {
            (Some(a), Some(b)) => self.operator(name, vec![a, b], Vec::new(), &[left, right], span),
            _ => Value::Poison,
        }
    }

    /// Reports a violated premise of an operator at the argument at fault.
    pub fn type_error(
        &mut self,
        error: TypeError,
        exprs: &[&Expr],
        attr_span: impl Fn(&str) -> Option<Span>,
        shapes: &[Shape],
        span: Span,
        method: bool,
    ) -> Value {
        if let (TypeErrorKind::Shape, Where::Operand(_), None) = (error.kind, &error.place, &error.help) {
            let d = Diagnostic::error(error.kind.code(), error.message);
            return self.report(self.different_shapes(d, exprs, shapes, method));
        }
        let place = match error.place {
            Where::Operand(i) => exprs.get(i).map(|e| e.span),
            Where::Attr(name) => attr_span(name),
            Where::Call => None,
        };
        let label = match error.kind {
            TypeErrorKind::Rank => "wrong rank",
            TypeErrorKind::DType => "wrong dtype",
            TypeErrorKind::Shape => "wrong shape",
            TypeErrorKind::Axis => "wrong axis",
            TypeErrorKind::Placement => "wrong placement",
            TypeErrorKind::Attribute => "wrong argument",
            TypeErrorKind::Overflow => "too large",
            TypeErrorKind::Empty => "no elements",
        };
        let help = error.help.unwrap_or_else(|| way_out(error.kind).into());
        let d = Diagnostic::error(error.kind.code(), error.message).at(place.unwrap_or(span), label);
        self.report(d.help(help))
    }
}

/// What to do about a violated premise, where nothing more precise is known.
fn way_out(kind: TypeErrorKind) -> &'static str {
    match kind {
        TypeErrorKind::Rank => "give it another rank: `reshape`, `broadcast` or a reduction",
        TypeErrorKind::DType => "convert it first: `cast(x, dtype=..)`",
        TypeErrorKind::Shape => "bring the shapes together: `reshape`, `broadcast` or `transpose`",
        TypeErrorKind::Axis => "name axes of the first operand, each once; -1 is the last one",
        TypeErrorKind::Placement => "declare the inputs with one placement",
        TypeErrorKind::Attribute => "give another value",
        TypeErrorKind::Overflow => "use smaller shapes",
        TypeErrorKind::Empty => "leave out axes of size 0",
    }
}
