//! Which rewrites with a `domain` need their values to be numbers.
//!
//! A domain is proved from ranges, and a range says nothing of NaN: `exp(x)` is positive wherever it is not NaN. For most rules
//! that is enough, since NaN passes through both sides alike. Whether it does is tried when the rule is loaded, on small tensors whose
//! elements are NaN; a rule that would turn a NaN into a number, as `x / x => 1` does, fires only where NaN is ruled out.

use super::builders::ArrayBuilder;
use super::rule::{AttrPattern, Pattern, Rewrite};
use super::term::{Bindings, Builder};
use super::typecheck;
use crate::ir::{Array, Precision, Registry, TensorType, Values};

/// Instances that are tried.
const INSTANCES: usize = 4;

/// Do the sides disagree where a tensor of the domain is NaN?
pub fn needs_numbers(rewrite: &Rewrite, registry: &Registry) -> bool {
    if rewrite.head.domain.is_empty() {
        return false;
    }
    let bounded = |var: usize| rewrite.head.domain.iter().any(|fact| fact.tensor.0 as usize == var);
    typecheck::instances(rewrite, registry, INSTANCES).iter().any(|instance| {
        let mut builder = ArrayBuilder::new(registry, Precision::Double);
        let mut bindings = Bindings::new(rewrite.head.vars.len(), &rewrite.head.locals);
        bindings.attrs.clone_from(&instance.attrs);
        for (i, ty) in instance.tensors.iter().enumerate() {
            let Some(ty) = ty else { continue };
            let value = if bounded(i) { f64::NAN } else { 0.5 };
            bindings.tensors[i] = Some(builder.given(ty.clone(), filled(ty, value)));
        }
        let Some(left) = build_pattern(&rewrite.left, &bindings, &mut builder) else { return false };
        bindings.expected = Some(builder.ty(left));
        let Ok(right) = bindings.build(&rewrite.right, &mut builder) else { return false };
        let nan = |array: &Array| array.floats().iter().map(|v| v.is_nan()).collect::<Vec<_>>();
        nan(builder.array(left)) != nan(builder.array(right))
    })
}

fn filled(ty: &TensorType, value: f64) -> Array {
    let count = ty.shape.elements() as usize;
    let values = if ty.dtype.is_float() {
        Values::Float(vec![value; count])
    } else if ty.dtype.is_int() {
        Values::Int(vec![0; count])
    } else {
        Values::Bool(vec![false; count])
    };
    Array::new(ty.shape.clone(), values)
}

/// Builds a left side; `None` if it is ill-typed or a metavariable has no value.
pub fn build_pattern<B: Builder>(
    pattern: &Pattern,
    bindings: &Bindings<'_, B::Value>,
    builder: &mut B,
) -> Option<B::Value> {
    match pattern {
        Pattern::Var(v) => bindings.tensors[v.0 as usize],
        Pattern::Op { op, operands, attrs } => {
            let operands: Option<Vec<B::Value>> =
                operands.iter().map(|o| build_pattern(o, bindings, builder)).collect();
            let attrs = attrs.iter().map(|a| match a {
                AttrPattern::Const(v) => Some(v.clone()),
                AttrPattern::Var(v) => bindings.attrs[v.0 as usize].clone(),
            });
            builder.op(*op, &operands?, attrs.collect::<Option<_>>()?).ok()
        }
    }
}
