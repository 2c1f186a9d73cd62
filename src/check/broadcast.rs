//! The way out where operands have different shapes: the `broadcast` calls that bring them together, written as the
//! program could say them.

use super::eval::Checker;
use crate::diagnostics::{Diagnostic, Span};
use crate::ir::Shape;
use crate::syntax::ast::{Arg, Expr, ExprKind, Ident};
use crate::syntax::{Form, print_expr};

/// Longest text of an operand that a hint repeats.
const MAX_OPERAND: usize = 60;

/// How an operand gets another shape.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretch {
    /// `reshape` to this first, where dimensions of size 1 are missing.
    reshaped: Option<Vec<u64>>,
    to: Shape,
}

impl<'a> Checker<'a> {
    /// Completes the report of operands that should have one shape. `method` tells whether the call was written with a
    /// point; the last operand is at fault where no stretching helps.
    pub fn different_shapes(&self, d: Diagnostic, exprs: &[&Expr], shapes: &[Shape], method: bool) -> Diagnostic {
        let Some(last) = exprs.last() else { return d };
        let stretches = together(shapes);
        let first = stretches.iter().position(Option::is_some);
        let at_fault = first.unwrap_or(exprs.len() - 1);
        let mut d = d;
        for (i, (expr, shape)) in exprs.iter().zip(shapes).enumerate() {
            let label = format!("this has the shape {shape}");
            d = if i == at_fault { d.at(expr.span, label) } else { d.also(expr.span, label) };
        }
        let form = Form::of(&self.sources.file(last.span.file).text);
        let calls: Vec<String> = stretches
            .into_iter()
            .zip(exprs)
            .filter_map(|(stretch, expr)| Some(format!("`{}`", call(expr, &stretch?, method, form))))
            .collect();
        match (calls.is_empty(), conflict(shapes)) {
            (false, _) => d.help(format!("broadcasting is explicit: {}", calls.join(" and "))),
            (true, Some((a, b))) => d
                .note(format!("no `broadcast` brings them together: counted from the last dimension, {a} meets {b}"))
                .help("`reshape` or `transpose` one of them, if its elements are in another order"),
            (true, None) => d.help("bring the shapes together by `reshape`, `broadcast` or `transpose`"),
        }
    }
}

/// For each shape, how it becomes the one that all can have; all `None` if there is none.
fn together(shapes: &[Shape]) -> Vec<Option<Stretch>> {
    let plain = shapes.iter().try_fold(Shape::scalar(), |common, shape| common_shape(&common, shape));
    // Where trailing dimensions do not align, the dimensions of one may still be found in another, in order.
    let target = plain.or_else(|| {
        let all_stretch = |to: &&Shape| shapes.iter().all(|from| from == *to || stretch(from, to).is_some());
        shapes.iter().find(all_stretch).cloned()
    });
    let Some(target) = target else { return vec![None; shapes.len()] };
    shapes.iter().map(|from| if *from == target { None } else { stretch(from, &target) }).collect()
}

/// How `from` becomes `to`. `None` if no stretching does it.
fn stretch(from: &Shape, to: &Shape) -> Option<Stretch> {
    let added = to.rank().checked_sub(from.rank());
    if added.is_some_and(|added| from.iter().zip(&to[added..]).all(|(f, t)| f == t || *f == 1)) {
        return Some(Stretch { reshaped: None, to: to.clone() });
    }
    // Each dimension of `from` finds its place in order; the others become 1.
    let mut dims = vec![1; to.rank()];
    let mut next = 0;
    for d in from.iter() {
        let at = (next..to.rank()).find(|i| to[*i] == *d)?;
        dims[at] = *d;
        next = at + 1;
    }
    Some(Stretch { reshaped: Some(dims), to: to.clone() })
}

/// The dimensions of two shapes, counted from the last one, with 1 where there is none.
fn aligned<'s>(x: &'s Shape, y: &'s Shape) -> impl Iterator<Item = (u64, u64)> + 's {
    let rank = x.rank().max(y.rank());
    let dim = move |s: &Shape, i: usize| (i + s.rank()).checked_sub(rank).and_then(|i| s.get(i).copied()).unwrap_or(1);
    (0..rank).map(move |i| (dim(x, i), dim(y, i)))
}

/// The shape to which both stretch: trailing dimensions align, dimensions of size 1 stretch.
fn common_shape(x: &Shape, y: &Shape) -> Option<Shape> {
    let dims = aligned(x, y).map(|dims| match dims {
        (a, b) if a == b || b == 1 => Some(a),
        (1, b) => Some(b),
        _ => None,
    });
    Shape::new(dims.collect::<Option<Vec<u64>>>()?).ok()
}

/// The last pair of dimensions that cannot be made equal.
fn conflict(shapes: &[Shape]) -> Option<(u64, u64)> {
    let pairs = shapes.iter().enumerate().flat_map(|(i, x)| shapes[i + 1..].iter().map(move |y| (x, y)));
    pairs.filter_map(|(x, y)| aligned(x, y).filter(|(a, b)| a != b && *a != 1 && *b != 1).last()).next()
}

/// The calls of a stretch in source text.
fn call(operand: &Expr, stretch: &Stretch, method: bool, form: Form) -> String {
    let shown = print_expr(operand, form);
    let operand = if shown.len() <= MAX_OPERAND && !shown.contains('\n') {
        operand.clone()
    } else {
        Expr { kind: ExprKind::Name("..".into()), span: operand.span }
    };
    let mut expr = operand;
    if let Some(dims) = &stretch.reshaped {
        expr = with_shape("reshape", expr, dims, method);
    }
    print_expr(&with_shape("broadcast", expr, &stretch.to, method), form)
}

fn with_shape(operator: &str, operand: Expr, dims: &[u64], method: bool) -> Expr {
    let span = operand.span;
    let ident = |name: &str, span: Span| Ident { name: name.into(), span };
    let dims = dims.iter().map(|d| Expr { kind: ExprKind::Int(*d as i64), span }).collect();
    let shape = Expr { kind: ExprKind::List(dims), span };
    let args = vec![
        Arg { name: None, spread: false, value: operand },
        Arg { name: Some(ident("shape", span)), spread: false, value: shape },
    ];
    Expr { kind: ExprKind::Call { callee: ident(operator, span), args, method }, span }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[u64]) -> Shape {
        Shape::new(dims.to_vec()).unwrap()
    }

    /// What it is reshaped to first, if it is, and what it is stretched to.
    type Stretch = (Option<Vec<u64>>, Vec<u64>);

    fn stretches(shapes: &[&[u64]]) -> Vec<Option<Stretch>> {
        let shapes: Vec<Shape> = shapes.iter().map(|s| shape(s)).collect();
        together(&shapes).into_iter().map(|s| s.map(|s| (s.reshaped, s.to.to_vec()))).collect()
    }

    #[test]
    fn operands_are_brought_together() {
        let plain = |to: &[u64]| Some((None, to.to_vec()));
        assert_eq!(stretches(&[&[4, 8], &[8]]), [None, plain(&[4, 8])]);
        assert_eq!(stretches(&[&[8], &[4, 8]]), [plain(&[4, 8]), None]);
        assert_eq!(stretches(&[&[4, 1], &[8]]), [plain(&[4, 8]), plain(&[4, 8])]);
        assert_eq!(stretches(&[&[4, 8], &[4]]), [None, Some((Some(vec![4, 1]), vec![4, 8]))]);
        assert_eq!(stretches(&[&[3], &[2, 3], &[]]), [plain(&[2, 3]), None, plain(&[2, 3])]);
        assert_eq!(stretches(&[&[2, 3], &[3, 2]]), [None, None]);
        // An empty dimension is a size like any other.
        assert_eq!(stretches(&[&[0], &[1]]), [None, plain(&[0])]);
        assert_eq!(stretches(&[&[1 << 40, 1], &[1, 1 << 40]]), [None, None]);
    }

    #[test]
    fn a_conflict_is_named_by_its_dimensions() {
        let conflict = |x: &[u64], y: &[u64]| super::conflict(&[shape(x), shape(y)]);
        assert_eq!(conflict(&[2, 3], &[4]), Some((3, 4)));
        assert_eq!(conflict(&[2, 3], &[3, 2]), Some((3, 2)));
        assert_eq!(conflict(&[2, 3, 5], &[4, 3, 1]), Some((2, 4)));
        assert_eq!(conflict(&[1 << 40, 1], &[1, 1 << 40]), None);
    }
}
