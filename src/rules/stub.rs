//! Rules ready to be filled in.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use super::RuleSet;
use super::composite::Composite;
use super::rule::Vjp;
use super::vjp::plain_call;
use crate::ir::operator::Call;
use crate::ir::{AttrValue, OpId, Operator, Registry, Signature, TensorType};

/// The name that stands where a writer has to fill in something.
pub const TODO: &str = "TODO";

/// A rule to be filled in, for an operator or a `def`.
#[derive(Clone, Debug)]
pub struct Stub {
    pub text: String,
    /// The VJP that it would replace.
    pub replaces: Option<Arc<Vjp>>,
    /// Has the result a type that carries cotangents? If not, no VJP is needed.
    pub is_needed: bool,
}

/// The VJP of an operator, to be filled in.
pub fn stub(op: OpId, registry: &Registry) -> String {
    of_operator(registry.op(op), registry, false).0
}

/// The VJP of an operator or of a `def`, to be filled in. `None` if there is nothing of that name.
pub fn stub_of(name: &str, rules: &RuleSet) -> Option<Stub> {
    let registry = &rules.registry;
    if let Some(op) = registry.id(name) {
        let replaces = rules.vjps(op).first().cloned();
        let (text, is_needed) = of_operator(registry.op(op), registry, replaces.is_some());
        return Some(Stub { text, replaces, is_needed });
    }
    // A `def` without a VJP is no operator yet.
    let def = rules.def(name)?;
    let composite = Composite::new(name, &def.head.doc, def.signature.clone());
    composite.complete(def.clone(), registry);
    let (text, is_needed) = of_operator(&composite, registry, false);
    Some(Stub { text, replaces: None, is_needed })
}

/// A call of the operator that is well-typed: its operands, its attributes in words, its result.
struct Instance {
    operands: Vec<TensorType>,
    attrs: String,
    result: TensorType,
}

/// The text, and whether the result carries cotangents.
fn of_operator(operator: &dyn Operator, registry: &Registry, is_override: bool) -> (String, bool) {
    let name = operator.name();
    let signature = operator.signature();
    let all: Vec<Instance> = operator
        .instances()
        .into_iter()
        .filter_map(|(operands, attrs)| {
            let result = {
                let types: Vec<&TensorType> = operands.iter().collect();
                infer(operator, registry, &types, &attrs)?
            };
            let attrs: Vec<String> =
                signature.attrs().zip(&attrs).map(|((name, ..), value)| format!("{name} = {value}")).collect();
            Some(Instance { operands, attrs: attrs.join(", "), result })
        })
        .collect();
    let is_needed = all.is_empty() || all.iter().any(|i| i.result.dtype.is_float());
    let instances: Vec<&Instance> = all.iter().filter(|i| i.result.dtype.is_float() || !is_needed).collect();

    let premise = format!("  y = {name}{}", plain_call(signature));
    let bar = "-".repeat(premise.len().saturating_sub(2).max(3));
    let word = if is_override { "override " } else { "" };
    let mut out = format!("/// {TODO}: say in a line why it is so.\n{word}vjp {name} {{\n{premise}\n  {bar}\n");
    let _ = writeln!(out, "  // {name}{signature}");
    if let Some(first) = instances.first() {
        if !first.attrs.is_empty() {
            let _ = writeln!(out, "  // for example with {}", first.attrs);
        }
        for (i, operand) in signature.operand_names().enumerate() {
            let _ = writeln!(out, "  // {operand}: {}", in_words(&instances, |x| of_param(signature, x, i)));
        }
        let _ = writeln!(out, "  // y: {}", in_words(&instances, |x| Some(&x.result)));
    }
    let width = signature.operand_names().map(str::len).max().unwrap_or(0);
    for (i, operand) in signature.operand_names().enumerate() {
        // Integers and Bools carry no cotangent.
        let is_float = instances.is_empty()
            || instances.iter().any(|x| of_param(signature, x, i).is_some_and(|ty| ty.dtype.is_float()));
        let is_like_result = signature.variadic_place() != Some(i)
            && instances.iter().all(|x| of_param(signature, x, i) == Some(&x.result));
        let conclusion = match (is_needed && is_float, is_like_result) {
            (false, _) => "none".to_owned(),
            (true, true) => format!("g_y * {TODO}"),
            (true, false) => TODO.to_owned(),
        };
        let index = if signature.variadic_place() == Some(i) { "[i]" } else { "" };
        let operand = format!("{operand}{index}");
        let _ = writeln!(out, "  g_{operand:width$} = {conclusion}");
    }
    out.push_str("}\n");
    (out, is_needed)
}

/// The type of what is given for a parameter, the first of a variadic one.
fn of_param<'i>(signature: &Signature, instance: &'i Instance, param: usize) -> Option<&'i TensorType> {
    signature.split(&instance.operands).get(param)?.first()
}

/// The result of a call, of built-in operators by way of the registry, which checks more.
fn infer(
    operator: &dyn Operator,
    registry: &Registry,
    types: &[&TensorType],
    attrs: &[AttrValue],
) -> Option<TensorType> {
    match registry.id(operator.name()) {
        Some(op) => registry.infer(op, types, attrs).ok(),
        None => operator.infer(Call { operands: types, attrs }).ok(),
    }
}

/// `F32 or F64, for example tensor<F32, [2, 3], @host>`
fn in_words<'i>(instances: &[&'i Instance], of: impl Fn(&'i Instance) -> Option<&'i TensorType>) -> String {
    let types: Vec<&TensorType> = instances.iter().filter_map(|i| of(i)).collect();
    let dtypes: BTreeSet<_> = types.iter().map(|t| t.dtype).collect();
    let dtypes: Vec<Arc<str>> = dtypes.into_iter().map(|d| d.name().into()).collect();
    let example = types.first().map(|t| format!(", for example {t}")).unwrap_or_default();
    format!("{}{example}", dtypes.join(" or "))
}
