//! Unary minus, binary operators, and the hint for operands of different shape.

use super::eval::Checker;
use super::literal::{fold, negate};
use super::value::{Literal, Value};
use crate::diagnostics::{Diagnostic, Span};
use crate::ir::{Shape, TypeErrorKind};
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

    /// The `broadcast` call that would give two operands one shape, if there is one.
    pub fn broadcast_hint(&self, exprs: &[&Expr], shapes: &[Shape]) -> Option<String> {
        let ([a, b], [x, y]) = (exprs, shapes) else { return None };
        let (a, b) = (self.shown(a), self.shown(b));
        if let Some(call) = stretch(&b, y, x).or_else(|| stretch(&a, x, y)) {
            return Some(format!("broadcasting is explicit: `{call}`"));
        }
        let common = common_shape(x, y)?;
        Some(format!("broadcasting is explicit: `broadcast({a}, shape={common})` and `broadcast({b}, shape={common})`"))
    }

    /// Reports a violated premise of an operator at the argument at fault.
    pub fn type_error(
        &mut self,
        error: crate::ir::TypeError,
        exprs: &[&Expr],
        attr_span: impl Fn(&str) -> Option<Span>,
        shapes: &[Shape],
        span: Span,
    ) -> Value {
        use crate::ir::Where;
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
        let hint = || match error.kind {
            TypeErrorKind::Shape => self.broadcast_hint(exprs, shapes),
            _ => None,
        };
        let help = error.help.or_else(hint).unwrap_or_else(|| way_out(error.kind).into());
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

/// The call that stretches `text` of shape `from` to `to`: `broadcast`, with a `reshape` inside where dimensions of
/// size 1 are missing. `None` if no stretching does it.
fn stretch(text: &str, from: &Shape, to: &Shape) -> Option<String> {
    let fits = |from: &[u64]| {
        let added = to.rank().checked_sub(from.len());
        added.is_some_and(|added| from.iter().zip(&to[added..]).all(|(f, t)| f == t || *f == 1))
    };
    if fits(from) {
        return Some(format!("broadcast({text}, shape={to})"));
    }
    // Each dimension of `from` finds its place in order; the others become 1.
    let mut dims = vec![1; to.rank()];
    let mut next = 0;
    for d in from.iter() {
        let at = (next..to.rank()).find(|i| to[*i] == *d)?;
        dims[at] = *d;
        next = at + 1;
    }
    Some(format!("broadcast(reshape({text}, shape={dims:?}), shape={to})"))
}

/// The shape to which both operands stretch: trailing dimensions align, dimensions of size 1 stretch.
fn common_shape(x: &Shape, y: &Shape) -> Option<Shape> {
    let rank = x.rank().max(y.rank());
    let dim = |s: &Shape, i: usize| (i + s.rank()).checked_sub(rank).and_then(|i| s.get(i).copied()).unwrap_or(1);
    let dims = (0..rank).map(|i| match (dim(x, i), dim(y, i)) {
        (a, b) if a == b || b == 1 => Some(a),
        (1, b) => Some(b),
        _ => None,
    });
    Shape::new(dims.collect::<Option<Vec<u64>>>()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[u64]) -> Shape {
        Shape::new(dims.to_vec()).unwrap()
    }

    #[test]
    fn the_hint_is_a_call_that_works() {
        assert_eq!(stretch("b", &shape(&[8]), &shape(&[4, 8])).unwrap(), "broadcast(b, shape=[4, 8])");
        assert_eq!(
            stretch("b", &shape(&[4]), &shape(&[4, 8])).unwrap(),
            "broadcast(reshape(b, shape=[4, 1]), shape=[4, 8])"
        );
        assert_eq!(stretch("b", &shape(&[5]), &shape(&[4, 8])), None);
    }
    #[test]
    fn both_operands_may_stretch() {
        assert_eq!(common_shape(&shape(&[4, 1]), &shape(&[8])), Some(shape(&[4, 8])));
        assert_eq!(common_shape(&shape(&[3]), &shape(&[8])), None);
    }
}
