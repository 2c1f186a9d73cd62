//! `example` lines computed.

use super::report::number;
use crate::diagnostics::Diagnostic;
use crate::ir::{Array, DType, Placement, Precision, Shape, TensorType, Values};
use crate::rules::example::{Closed, Example, ExampleKind};
use crate::rules::term::{Bindings, Builder};
use crate::rules::{ArrayBuilder, RuleSet};

/// How much the two sides of an `==` may differ, relatively: examples are written with ten digits or so.
const DIGITS: f64 = 1e-9;

/// The value of a closed term, in f64.
///
/// # Errors
/// A term that is ill-typed or traps.
pub fn value(closed: &Closed, rules: &RuleSet) -> Result<(TensorType, Array), Box<Diagnostic>> {
    let mut builder = ArrayBuilder::new(&rules.registry, Precision::Double);
    let mut bindings = Bindings::new(closed.constants.len(), &[]);
    for (slot, constant) in bindings.tensors.iter_mut().zip(&closed.constants) {
        *slot = Some(builder.given(constant.ty.clone(), constant.array.clone()));
    }
    bindings.expected = Some(TensorType::new(DType::F64, Shape::scalar(), Placement::Host));
    match bindings.build(&closed.term, &mut builder) {
        Ok(id) => Ok((builder.ty(id), builder.into_array(id))),
        Err(error) => Err(Box::new(
            Diagnostic::error("E0906", format!("an example has no value: {error}"))
                .at(error.span, "here")
                .help("in examples a number alone is an F64 scalar, and a list of numbers a tensor"),
        )),
    }
}

/// Are the two equal within rounding, a single number standing for every element? The first pair that is not.
///
/// # Errors
/// The two elements that differ; NaN for arrays that cannot be compared.
pub fn agree(a: &Array, b: &Array) -> Result<(), (f64, f64)> {
    let numbers = |array: &Array| -> Vec<f64> {
        match &array.values {
            Values::Float(v) => v.clone(),
            Values::Int(v) => v.iter().map(|i| *i as f64).collect(),
            Values::Bool(v) => v.iter().map(|b| f64::from(u8::from(*b))).collect(),
        }
    };
    let (mut x, mut y) = (numbers(a), numbers(b));
    if a.shape != b.shape {
        match (x.as_slice(), y.as_slice()) {
            ([one], many) => x = vec![*one; many.len()],
            (many, [one]) => y = vec![*one; many.len()],
            _ => return Err((f64::NAN, f64::NAN)),
        }
    }
    let equal = |a: f64, b: f64| {
        let size = a.abs().max(b.abs());
        a == b || (a.is_nan() && b.is_nan()) || (size.is_finite() && (a - b).abs() <= DIGITS * size)
    };
    match x.iter().zip(&y).find(|(a, b)| !equal(**a, **b)) {
        None => Ok(()),
        Some((a, b)) => Err((*a, *b)),
    }
}

/// Checks an example that stands for itself.
///
/// # Errors
/// The example does not hold.
pub fn closed(example: &Example, rules: &RuleSet) -> Result<(), Box<Diagnostic>> {
    let fault = |text: String| {
        Box::new(
            Diagnostic::error("E0906", "an example does not hold")
                .at(example.span, text)
                .help("mend the example, or what it is an example of"),
        )
    };
    match &example.kind {
        ExampleKind::Equal(left, right) => {
            let ((left_ty, left), (right_ty, right)) = (value(left, rules)?, value(right, rules)?);
            if left.shape != right.shape && left.values.len() != 1 && right.values.len() != 1 {
                return Err(fault(format!("{left_ty} is compared with {right_ty}")));
            }
            agree(&left, &right).map_err(|(a, b)| fault(format!("{} is not {}", number(a), number(b))))
        }
        ExampleKind::Holds(term) => {
            let (_, found) = value(term, rules)?;
            match &found.values {
                Values::Bool(v) if v.iter().any(|b| !b) => Err(fault("this is not true".into())),
                Values::Float(v) if v.iter().any(|x| x.is_nan()) => Err(fault("this is NaN".into())),
                _ => Ok(()),
            }
        }
        ExampleKind::Call { .. } | ExampleKind::Conclusion { .. } => Ok(()),
    }
}
