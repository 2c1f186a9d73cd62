//! Attributes of a call: from values to what the IR stores.

use super::eval::Checker;
use super::value::{Literal, Value};
use crate::diagnostics::{Diagnostic, Span};
use crate::ir::operator::Default as AttrDefault;
use crate::ir::{AttrKind, AttrValue, DType, TypeErrorKind};
use crate::syntax::ast::{Expr, ExprKind};

impl<'a> Checker<'a> {
    /// The attribute that an argument gives. `None` after a report.
    pub fn attribute(&mut self, name: &str, kind: AttrKind, expr: &'a Expr) -> Option<AttrValue> {
        if let (AttrKind::DType, ExprKind::Name(written)) = (kind, &expr.kind) {
            if let Some(dtype) = DType::from_name(written) {
                return Some(AttrValue::DType(dtype));
            }
            let names = DType::ALL.map(DType::name);
            self.report(
                Diagnostic::error("E0203", format!("unknown dtype `{written}`"))
                    .at(expr.span, "not a dtype")
                    .help(format!("the dtypes are {}", names.join(", "))),
            );
            return None;
        }
        // Where a type is wanted, `tensor<..>` is the type and no program input.
        if let (AttrKind::Type, ExprKind::Input(written)) = (kind, &expr.kind) {
            return self.resolve_type(written).map(AttrValue::Type);
        }
        let value = self.eval(expr);
        let value = match value {
            Value::Poison => return None,
            Value::Tensor(id) if kind == AttrKind::Type => AttrValue::Type(self.graph.ty(id).clone()),
            Value::Literal(Literal::Bool(b)) => AttrValue::Bool(b),
            Value::Literal(Literal::Int(i)) => AttrValue::Int(i),
            Value::Literal(Literal::Float(v)) => AttrValue::float(v),
            Value::Ints(list) => AttrValue::Ints(self.lists[list].clone()),
            other => return self.wrong_attribute(name, kind, &self.describe(other), expr.span),
        };
        match kind.coerce(value) {
            Ok(value) => Some(value),
            Err(value) => self.wrong_attribute(name, kind, value.describe(), expr.span),
        }
    }

    fn wrong_attribute(&mut self, name: &str, kind: AttrKind, found: &str, span: Span) -> Option<AttrValue> {
        self.report(
            Diagnostic::error(
                TypeErrorKind::Attribute.code(),
                format!("`{name}` must be {}, not {found}", kind.describe()),
            )
            .at(span, format!("this is {found}"))
            .help("attributes are constants, known when the program is compiled"),
        );
        None
    }

    /// Brings axes into the form of the IR: counted from the start, lists ascending and without repetition.
    pub fn normalise(&mut self, kind: AttrKind, value: AttrValue, rank: usize, span: Span) -> Option<AttrValue> {
        match (kind, value) {
            (AttrKind::Axis, AttrValue::Int(axis)) => self.axis(axis, rank, span).map(AttrValue::Int),
            (AttrKind::Axes, AttrValue::Ints(axes)) => {
                if axes.is_empty() {
                    self.report(
                        Diagnostic::error(TypeErrorKind::Axis.code(), "an empty list of axes")
                            .at(span, "no axis")
                            .help("leave `axis` out to reduce over all axes"),
                    );
                    return None;
                }
                let mut axes = self.axes(&axes, rank, span)?;
                axes.sort_unstable();
                Some(AttrValue::Ints(axes))
            }
            (AttrKind::Permutation, AttrValue::Ints(axes)) => self.axes(&axes, rank, span).map(AttrValue::Ints),
            (_, value) => Some(value),
        }
    }

    fn axes(&mut self, axes: &[i64], rank: usize, span: Span) -> Option<Vec<i64>> {
        let mut out: Vec<i64> = Vec::with_capacity(axes.len());
        for axis in axes {
            let normal = self.axis(*axis, rank, span)?;
            if out.contains(&normal) {
                self.report(
                    Diagnostic::error(TypeErrorKind::Axis.code(), format!("axis {axis} stands twice"))
                        .at(span, "the same axis again")
                        .help("name every axis once; -1 is the last axis"),
                );
                return None;
            }
            out.push(normal);
        }
        Some(out)
    }

    fn axis(&mut self, axis: i64, rank: usize, span: Span) -> Option<i64> {
        let from_start = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
        if let Some(normal) = from_start.filter(|a| (0..rank as i64).contains(a)) {
            return Some(normal);
        }
        let help = if rank == 0 {
            "a tensor of rank 0 has no axes".to_owned()
        } else {
            format!("axes are 0 to {}, or -{rank} to -1 from the end", rank - 1)
        };
        self.report(
            Diagnostic::error(TypeErrorKind::Axis.code(), format!("axis {axis} is out of range for rank {rank}"))
                .at(span, "out of range")
                .help(help),
        );
        None
    }

    /// The value of an attribute that a call leaves out.
    pub fn default_attribute(&self, default: Option<&AttrDefault>, rank: usize) -> Option<AttrValue> {
        match default? {
            AttrDefault::Value(value) => Some(value.clone()),
            AttrDefault::AllAxes => Some(AttrValue::Ints((0..rank as i64).collect())),
        }
    }
}
