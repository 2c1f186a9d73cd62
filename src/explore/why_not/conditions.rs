//! Conditions of rules: which part of one fails, and what its parts are worth.

use std::collections::BTreeSet;

use crate::diagnostics::{SourceMap, Span};
use crate::ir::{AttrValue, OpId};
use crate::rules::attributes::AttrFunction;
use crate::rules::term::{AttrTerm, AttrTermKind, Bindings, Builder, ListTerm, TermError, TypeProperty, VarId};
use crate::rules::{AttrPattern, Pattern, RuleHead};
use crate::syntax::ast::BinaryOp;

/// Most parts of a condition whose values are shown.
const MAX_PARTS: usize = 8;

/// A condition that does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    pub span: Span,
    /// Its parts as they are written, with their values.
    pub values: Vec<(String, String)>,
    /// Does it ask for types only?
    pub is_about_types: bool,
    /// The attribute that the left side computes, if that is what the condition is: the metavariable and what is wanted.
    pub computed: Option<(VarId, AttrValue, AttrValue)>,
}

/// The first of `conditions` that does not hold. `None` if all do.
///
/// # Errors
/// One that cannot be computed.
pub fn first_failed<'t, B: Builder>(
    head: &RuleHead,
    conditions: impl Iterator<Item = &'t AttrTerm>,
    bindings: &mut Bindings<'_, B::Value>,
    builder: &mut B,
    sources: &SourceMap,
) -> Result<Option<Failed>, TermError> {
    for condition in conditions {
        if bindings.condition(condition, builder)? {
            continue;
        }
        let mut failed = condition;
        // Of several that must hold, the first that does not.
        while let AttrTermKind::Binary(BinaryOp::And, a, b) = &failed.kind {
            failed = if bindings.condition(a, builder)? { b } else { a };
        }
        let mut parts = Vec::new();
        let mut types = Types::default();
        collect(failed, &mut parts, &mut types);
        let mut seen = BTreeSet::new();
        let mut values = Vec::new();
        for part in parts {
            let text = one_line(sources.text(part.span));
            if values.len() == MAX_PARTS || !seen.insert(text.clone()) {
                continue;
            }
            // What the condition never came to is not to be computed.
            if let Ok(value) = bindings.attr(part, builder) {
                values.push((text, value.to_string()));
            }
        }
        let computed = match &failed.kind {
            AttrTermKind::Binary(BinaryOp::Eq, var, wanted) => match &var.kind {
                AttrTermKind::Var(v) if head.vars[v.0 as usize].name == "(computed)" => {
                    Some((*v, bindings.attr(wanted, builder)?, bindings.attr(var, builder)?))
                }
                _ => None,
            },
            _ => None,
        };
        let is_about_types = types.types && !types.others;
        return Ok(Some(Failed { span: failed.span, values, is_about_types, computed }));
    }
    Ok(None)
}

/// A text without its line breaks.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[derive(Default)]
struct Types {
    types: bool,
    others: bool,
}

/// The parts of a condition that have a value of their own: names, properties of tensors, functions. Trees of attributes are as deep as
/// rule files may nest them, which is not deep.
fn collect<'t>(term: &'t AttrTerm, parts: &mut Vec<&'t AttrTerm>, types: &mut Types) {
    match &term.kind {
        AttrTermKind::Const(_) | AttrTermKind::Element(_) => {}
        AttrTermKind::Var(_) | AttrTermKind::Local(_) | AttrTermKind::Count(_) => parts.push(term),
        AttrTermKind::As(_, a) | AttrTermKind::Neg(a) | AttrTermKind::Not(a) => collect(a, parts, types),
        AttrTermKind::List(items) => items.iter().for_each(|item| collect(item, parts, types)),
        AttrTermKind::Comprehension { list, .. } => {
            parts.push(term);
            if let ListTerm::Attr(list) = list {
                collect(list, parts, types);
            }
        }
        AttrTermKind::Binary(_, a, b) | AttrTermKind::Index(a, b) => {
            if matches!(term.kind, AttrTermKind::Index(..)) {
                parts.push(term);
            }
            collect(a, parts, types);
            collect(b, parts, types);
        }
        AttrTermKind::If(c, a, b) => [c, a, b].into_iter().for_each(|t| collect(t, parts, types)),
        AttrTermKind::Of(property, _) => {
            let is_type = matches!(property, TypeProperty::Type | TypeProperty::DType);
            types.types |= is_type;
            types.others |= !is_type;
            parts.push(term);
        }
        AttrTermKind::Dim(_, axis) => {
            types.others = true;
            parts.push(term);
            collect(axis, parts, types);
        }
        AttrTermKind::Call(function, args) => {
            let is_type = matches!(function, AttrFunction::IsFloat | AttrFunction::WithDType);
            types.types |= is_type;
            types.others |= !is_type;
            // What a condition as a whole is worth is known.
            if *function != AttrFunction::IsFloat {
                parts.push(term);
            }
            args.iter().for_each(|arg| collect(arg, parts, types));
        }
    }
}

/// The call and the attribute that a metavariable stands for in a left side.
pub fn attribute_of(pattern: &Pattern, var: VarId) -> Option<(OpId, usize)> {
    let Pattern::Op { op, operands, attrs } = pattern else { return None };
    match attrs.iter().position(|a| *a == AttrPattern::Var(var)) {
        Some(index) => Some((*op, index)),
        None => operands.iter().find_map(|o| attribute_of(o, var)),
    }
}
