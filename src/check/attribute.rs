//! Attributes of a call: from values to what the IR stores.

use std::sync::Arc;

use super::eval::Checker;
use super::value::{Literal, Value};
use crate::diagnostics::{Diagnostic, Span};
use crate::ir::attr::format_float;
use crate::ir::operator::{Default as AttrDefault, listed};
use crate::ir::{AttrKind, AttrValue, DType, TypeErrorKind};
use crate::syntax::ast::{Expr, ExprKind};

impl<'a> Checker<'a> {
    /// The attribute that an argument gives. `None` after a report.
    pub fn attribute(&mut self, name: &str, kind: AttrKind, expr: &'a Expr) -> Option<AttrValue> {
        if let (AttrKind::DType, ExprKind::Name(written)) = (kind, &expr.kind) {
            return self.dtype(written, expr.span).map(AttrValue::DType);
        }
        if let ExprKind::Name(written) = &expr.kind
            && self.scope.get(written).is_none()
            && self.first_use_of_unknown(written)
        {
            let words: &[&str] = if kind == AttrKind::Bool { &["true", "false"] } else { &[] };
            let near = self.scope.names().chain(words.iter().copied());
            self.report(
                Diagnostic::error("E0201", format!("unknown name `{written}`"))
                    .at(expr.span, "not bound here")
                    .did_you_mean(written, near)
                    .help(format!("`{name}` must be {}", kind.describe())),
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
            Err(AttrValue::Float(value)) => {
                let found = format!("the number {}", format_float(value.get()));
                self.wrong_attribute(name, kind, &found, expr.span)
            }
            Err(value) => self.wrong_attribute(name, kind, value.describe(), expr.span),
        }
    }

    /// The word that an argument is. `None` after a report.
    pub fn word(&mut self, name: &str, words: &[Arc<str>], expr: &'a Expr) -> Option<AttrValue> {
        let written: &str = match &expr.kind {
            ExprKind::Name(written) => written,
            ExprKind::NoCotangent => "none",
            _ => {
                let value = self.eval(expr);
                if value != Value::Poison {
                    let found = self.describe(value);
                    self.no_word(name, words, &found, expr.span, None);
                }
                return None;
            }
        };
        // Local names win, here as everywhere.
        if let Some(value) = self.scope.get(written) {
            let hidden = words.iter().any(|w| **w == *written).then_some(written);
            let found = self.describe(value);
            self.no_word(name, words, &found, expr.span, hidden);
            return None;
        }
        if words.iter().any(|w| **w == *written) {
            return Some(AttrValue::Word(written.to_owned()));
        }
        self.report(
            Diagnostic::error(
                TypeErrorKind::Attribute.code(),
                format!("`{name}` must be {}, not `{written}`", listed(words)),
            )
            .at(expr.span, "not one of these words")
            .did_you_mean_or(
                written,
                words.iter().map(|w| &**w),
                format!("write one of them: `{name}={}`", words[0]),
            ),
        );
        None
    }

    fn no_word(&mut self, name: &str, words: &[Arc<str>], found: &str, span: Span, hidden: Option<&str>) {
        let d = Diagnostic::error(
            TypeErrorKind::Attribute.code(),
            format!("`{name}` must be {}, not {found}", listed(words)),
        )
        .at(span, format!("this is {found}"));
        self.report(match hidden {
            Some(word) => d.note("local names win over words").help(format!("rename the local `{word}`")),
            None => d.help("write one of these words, without quotes"),
        });
    }

    /// The dtype of a name. `None` after a report.
    pub fn dtype(&mut self, name: &str, span: Span) -> Option<DType> {
        let dtype = DType::from_name(name);
        if dtype.is_none() {
            let names = DType::ALL.map(DType::name);
            self.report(
                Diagnostic::error("E0203", format!("unknown dtype `{name}`"))
                    .at(span, "not a dtype")
                    .did_you_mean(name, names)
                    .help(format!("the dtypes are {}", names.join(", "))),
            );
        }
        dtype
    }

    fn wrong_attribute(&mut self, name: &str, kind: AttrKind, found: &str, span: Span) -> Option<AttrValue> {
        self.report(
            Diagnostic::error(
                TypeErrorKind::Attribute.code(),
                format!("`{name}` must be {}, not {found}", kind.describe()),
            )
            .at(span, format!("this is {found}"))
            .help(match kind {
                AttrKind::DType => format!("the dtypes are {}", DType::ALL.map(DType::name).join(", ")),
                _ => "attributes are constants, known when the program is compiled".to_owned(),
            }),
        );
        None
    }

    /// Brings axes into the form of the IR: counted from the start, lists ascending and without repetition.
    pub fn normalise(
        &mut self,
        kind: AttrKind,
        value: AttrValue,
        rank: usize,
        places: &AxisPlaces,
    ) -> Option<AttrValue> {
        match (kind, value) {
            (AttrKind::Axis, AttrValue::Int(axis)) => self.axis(axis, rank, places.whole).map(AttrValue::Int),
            (AttrKind::NewAxis, AttrValue::Int(axis)) => self.axis(axis, rank + 1, places.whole).map(AttrValue::Int),
            (AttrKind::Axes, AttrValue::Ints(axes)) => {
                if axes.is_empty() {
                    self.report(
                        Diagnostic::error(TypeErrorKind::Axis.code(), "an empty list of axes")
                            .at(places.whole, "no axis")
                            .help("leave `axis` out to mean all axes"),
                    );
                    return None;
                }
                let mut axes = self.axes(&axes, rank, places)?;
                axes.sort_unstable();
                Some(AttrValue::Ints(axes))
            }
            (AttrKind::Permutation, AttrValue::Ints(axes)) => self.axes(&axes, rank, places).map(AttrValue::Ints),
            (_, value) => Some(value),
        }
    }

    fn axes(&mut self, axes: &[i64], rank: usize, places: &AxisPlaces) -> Option<Vec<i64>> {
        let mut out: Vec<i64> = Vec::with_capacity(axes.len());
        for (i, axis) in axes.iter().enumerate() {
            let normal = self.axis(*axis, rank, places.element(i))?;
            // No list is longer than the rank before one stands twice.
            if let Some(first) = out.iter().position(|a| *a == normal) {
                self.report(same_axis((axes[first], first), (*axis, i), rank, places));
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
        let help = axes_of(rank);
        self.report(
            Diagnostic::error(TypeErrorKind::Axis.code(), format!("axis {axis} is out of range for rank {rank}"))
                .at(span, "out of range")
                .help(help),
        );
        None
    }

    /// The value of an attribute that a call leaves out.
    pub fn default_attribute(&self, default: Option<&AttrDefault>, rank: usize) -> Option<AttrValue> {
        Some(default?.value(rank))
    }
}

/// Where the axes of an argument are written.
pub(super) struct AxisPlaces {
    pub whole: Span,
    /// One for each element, if the argument is a list.
    elements: Vec<Span>,
}

impl AxisPlaces {
    pub fn at(whole: Span) -> AxisPlaces {
        AxisPlaces { whole, elements: Vec::new() }
    }

    pub fn of(expr: &Expr) -> AxisPlaces {
        let elements = match &expr.kind {
            ExprKind::List(elements) => elements.iter().map(|e| e.span).collect(),
            _ => Vec::new(),
        };
        AxisPlaces { whole: expr.span, elements }
    }

    fn element(&self, i: usize) -> Span {
        self.elements.get(i).copied().unwrap_or(self.whole)
    }
}

/// Two elements of a list, each with its index, that name one axis.
fn same_axis(first: (i64, usize), second: (i64, usize), rank: usize, places: &AxisPlaces) -> Diagnostic {
    let (message, label) = if first.0 == second.0 {
        (format!("axis {} stands twice", first.0), "again here".to_owned())
    } else {
        let from_start = first.0.max(second.0);
        let message = format!("{} and {} are the same axis of a tensor of rank {rank}", first.0, second.0);
        (message, format!("this is axis {from_start}"))
    };
    let d = Diagnostic::error(TypeErrorKind::Axis.code(), message).at(places.element(second.1), label);
    let d = if places.elements.is_empty() { d } else { d.also(places.element(first.1), "first here") };
    d.help(format!("name every axis once; {}", axes_of(rank)))
}

fn axes_of(rank: usize) -> String {
    match rank {
        0 => "a tensor of rank 0 has no axes".to_owned(),
        _ => format!("axes are 0 to {}, or -{rank} to -1 from the end", rank - 1),
    }
}
