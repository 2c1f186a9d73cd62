//! Literals: numbers without a type, until they meet a tensor.

use super::eval::Checker;
use super::value::{Literal, Value};
use crate::diagnostics::{Diagnostic, Span};
use crate::ir::{DType, NodeId, Origin, TensorType};
use crate::syntax::ast::{BinaryOp, Expr};

impl Literal {
    fn number(self) -> Option<f64> {
        match self {
            Literal::Bool(_) => None,
            Literal::Int(i) => Some(i as f64),
            Literal::Float(v) => Some(v),
        }
    }

    /// Can it become an element of the dtype, range aside?
    pub fn suits(self, dtype: DType) -> bool {
        matches!(self, Literal::Bool(_)) == (dtype == DType::Bool)
    }
}

impl std::fmt::Display for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Literal::Bool(b) => write!(f, "{b}"),
            Literal::Int(i) => write!(f, "{i}"),
            Literal::Float(v) => f.write_str(&crate::ir::attr::format_float(*v)),
        }
    }
}

/// Literal arithmetic: in f64, but sums and products of integers stay integers where they fit. `None` for truth
/// values and for an operator that is not arithmetic.
pub(super) fn fold(op: BinaryOp, a: Literal, b: Literal) -> Option<Literal> {
    if let (Literal::Int(x), Literal::Int(y)) = (a, b) {
        let exact = match op {
            BinaryOp::Add => x.checked_add(y),
            BinaryOp::Sub => x.checked_sub(y),
            BinaryOp::Mul => x.checked_mul(y),
            _ => None,
        };
        if let Some(exact) = exact {
            return Some(Literal::Int(exact));
        }
    }
    let (x, y) = (a.number()?, b.number()?);
    Some(match op {
        BinaryOp::Add => Literal::Float(x + y),
        BinaryOp::Sub => Literal::Float(x - y),
        BinaryOp::Mul => Literal::Float(x * y),
        BinaryOp::Div => Literal::Float(x / y),
        BinaryOp::Eq => Literal::Bool(x == y),
        BinaryOp::Ne => Literal::Bool(x != y),
        BinaryOp::Lt => Literal::Bool(x < y),
        BinaryOp::Le => Literal::Bool(x <= y),
        BinaryOp::Gt => Literal::Bool(x > y),
        BinaryOp::Ge => Literal::Bool(x >= y),
        _ => return None,
    })
}

pub(super) fn negate(literal: Literal) -> Option<Literal> {
    match literal {
        Literal::Bool(_) => None,
        Literal::Int(i) => Some(i.checked_neg().map_or(Literal::Float(-(i as f64)), Literal::Int)),
        Literal::Float(v) => Some(Literal::Float(-v)),
    }
}

/// Does a whole number fit an integer dtype? Floats are checked where they are rounded.
fn in_range(value: f64, dtype: DType) -> bool {
    match dtype {
        DType::I32 => value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX),
        // 2^63 as a float is itself out of range.
        DType::I64 => value >= i64::MIN as f64 && value < -(i64::MIN as f64),
        _ => true,
    }
}

impl<'a> Checker<'a> {
    /// A tensor of one value. `None` after a report.
    pub fn splat(&mut self, literal: Literal, ty: &TensorType, span: Span) -> Option<NodeId> {
        let value = match literal {
            Literal::Bool(b) => f64::from(u8::from(b)),
            Literal::Int(i) => i as f64,
            Literal::Float(v) => v,
        };
        let complaint = if !literal.suits(ty.dtype) {
            Some(format!("`{literal}` cannot be a {}", ty.dtype))
        } else if ty.dtype.is_int() && (value.fract() != 0.0 || !value.is_finite()) {
            Some(format!("`{literal}` is not an integer, but the tensor is {}", ty.dtype))
        } else if matches!(literal, Literal::Int(i) if ty.dtype == DType::I64 && value as i128 != i128::from(i)) {
            Some(format!("`{literal}` is beyond 2^53: literals are kept as f64, which cannot hold it"))
        } else if !in_range(value, ty.dtype) {
            Some(format!("`{literal}` overflows {}", ty.dtype))
        } else {
            None
        };
        if let Some(complaint) = complaint {
            self.report(
                Diagnostic::error("E0206", complaint)
                    .at(span, format!("meets a {ty}"))
                    .help("write a value of that dtype, or `cast` the tensor"),
            );
            return None;
        }
        // Arithmetic may overflow to infinity; what a person wrote may not.
        if ty.dtype == DType::F32 && value.is_finite() && (value as f32).is_infinite() {
            self.report(
                Diagnostic::error("E0207", format!("`{literal}` does not fit {}", ty.dtype))
                    .at(span, format!("meets a {ty}"))
                    .help("use F64, or write `inf`"),
            );
            return None;
        }
        let registry = self.registry;
        let node = registry
            .splat(value, ty.clone())
            .and_then(|(op, attrs)| self.graph.add(registry, op, Vec::new(), attrs, Origin::Program(span)));
        match node {
            Ok(id) => Some(id),
            Err(error) => {
                self.report(
                    Diagnostic::error("E0207", format!("`{literal}` does not fit {}", ty.dtype))
                        .at(span, format!("meets a {ty}"))
                        .note(error.message)
                        .help("use a dtype of larger range"),
                );
                None
            }
        }
    }

    /// The node of a value that must be a tensor. `None` after a report.
    pub fn tensor(&mut self, value: Value, expr: &Expr) -> Option<NodeId> {
        match value {
            Value::Tensor(id) => Some(id),
            Value::Poison => None,
            Value::Literal(literal) => {
                self.report(
                    Diagnostic::error("E0208", format!("the literal `{literal}` has no type here"))
                        .at(expr.span, "not a tensor")
                        .help(format!("give it the type of a tensor: `splat({literal}, like=x)`")),
                );
                None
            }
            other => {
                let what = self.describe(other);
                let d = Diagnostic::error("E0208", format!("expected a tensor, found {what}")).at(expr.span, what);
                let d = match other {
                    Value::Tuple(_) => d.help("take it apart first: `let (a, b) = .. in`"),
                    Value::Ints(_) => d.help("lists are attributes: axes, shapes, permutations"),
                    _ => d.help("call it: `f(..)`"),
                };
                self.report(d);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_stay_exact_while_they_fit() {
        assert_eq!(fold(BinaryOp::Add, Literal::Int(2), Literal::Int(3)), Some(Literal::Int(5)));
        assert_eq!(
            fold(BinaryOp::Mul, Literal::Int(i64::MAX), Literal::Int(2)),
            Some(Literal::Float(i64::MAX as f64 * 2.0))
        );
        assert_eq!(fold(BinaryOp::Div, Literal::Int(1), Literal::Int(2)), Some(Literal::Float(0.5)));
        assert_eq!(fold(BinaryOp::Add, Literal::Bool(true), Literal::Int(1)), None);
        assert_eq!(negate(Literal::Int(i64::MIN)), Some(Literal::Float(-(i64::MIN as f64))));
    }
    #[test]
    fn integer_ranges() {
        assert!(in_range(2_147_483_647.0, DType::I32) && !in_range(2_147_483_648.0, DType::I32));
        assert!(
            in_range(-9_223_372_036_854_775_808.0, DType::I64) && !in_range(9_223_372_036_854_775_808.0, DType::I64)
        );
    }
}
