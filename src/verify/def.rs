//! Definitions: differentiated through, and computed without overflowing on the way.
//!
//! A `def` cannot be wrong as such, it says what its name means. But its derivative goes through the operators in it, and its value
//! may overflow where what it stands for does not: softplus as log(1 + exp(x)) is infinite at 1000.

use std::sync::Arc;

use super::compare::AGREEMENT;
use super::report::{Findings, describe_attrs, describe_point, number};
use super::sample::{Draw, Limits, array, generator};
use super::trial::{in_f64, input, integer_bounds};
use super::vjp::TOLERANCE;
use crate::diagnostics::Diagnostic;
use crate::egraph::{differentiate, resolve};
use crate::interp::precise;
use crate::interp::{Demand, Evaluator, Verdict, check_gradients_to};
use crate::ir::{
    Array, AttrValue, DType, Graph, Handler, HandlerParam, Node, NodeId, NodeKind, Origin, Output, Precision,
    TensorType, Values,
};
use crate::rules::{Def, RuleSet, family};
use crate::run::probes;

/// Points drawn for each call, for the derivative.
const DRAWS: [Draw; 4] = [Draw::Normal(1.0), Draw::Positive(1.0), Draw::Unit, Draw::Normal(3.0)];
/// And for overflow: large, but far from where squares overflow.
const LARGE: [Draw; 3] = [Draw::Normal(300.0), Draw::Wide, Draw::Crowded(1e4)];

/// Checks a definition.
pub fn check(def: &Def, rules: &RuleSet, seed: u64) -> Findings {
    let mut findings = Findings::default();
    let calls = family::of_def(def, &rules.registry);
    if calls.is_empty() {
        findings.not_compared = Some("no call of it was found that is well-typed".into());
        return findings;
    }
    for (i, (types, attrs)) in calls.iter().enumerate() {
        overflow(def, rules, types, attrs, seed + i as u64, &mut findings);
        // A VJP of its own is checked as such.
        if !findings.is_refused() && rules.registry.id(&def.name).is_none() && def.not_a_derivative.is_none() {
            let (types, attrs) = in_f64(types.clone(), attrs.clone());
            gradient(def, rules, &types, &attrs, seed + i as u64, &mut findings);
        }
        if findings.is_refused() {
            return findings;
        }
    }
    findings.policy = def.not_a_derivative.is_some();
    findings
}

/// A program that is one call, and where its parts are.
fn program(def: &Def, rules: &RuleSet, types: &[TensorType], attrs: &[AttrValue]) -> Option<(Graph, NodeId)> {
    let mut graph = Graph::new();
    let place = def.head.span;
    let names: Vec<String> = def.signature.operand_names().map(str::to_owned).collect();
    let mut params = Vec::new();
    let mut operands = Vec::new();
    for (name, ty) in names.iter().zip(types) {
        input(&mut graph, name, ty.clone(), place);
    }
    let inputs = graph.inputs.clone();
    for ((name, ty), argument) in names.iter().zip(types).zip(inputs) {
        if !ty.dtype.is_float() {
            operands.push(argument);
            continue;
        }
        let kind = NodeKind::Param { handler: 0, index: params.len(), argument };
        let name: Arc<str> = name.as_str().into();
        let node = graph.push(Node { kind, ty: ty.clone(), name: Some(name.clone()), origin: Origin::Program(place) });
        params.push(HandlerParam { name, node });
        operands.push(node);
    }
    let primal = rules.expand(&def.name, &mut graph, &operands, attrs, Vec::new()).ok()??;
    graph.outputs.push(Output { name: "primal".into(), node: primal });
    if graph.ty(primal).dtype.is_float() && !params.is_empty() {
        let types: Vec<TensorType> = params.iter().map(|p| graph.ty(p.node).clone()).collect();
        let ty = graph.ty(primal).clone();
        let cotangent = input(&mut graph, "g", ty, place);
        graph.handlers.push(Handler { primal, params, span: place, cotangent: Some(cotangent) });
        for (index, ty) in types.into_iter().enumerate() {
            let kind = NodeKind::Gradient { handler: 0, index };
            let node = graph.push(Node { kind, ty, name: None, origin: Origin::Handler(place) });
            graph.outputs.push(Output { name: format!("g_{index}").into(), node });
        }
    }
    Some((graph, primal))
}

/// Random operands. Integers that index nothing are now and then one that the call names, such as an index to ignore.
fn draw(graph: &Graph, draw: Draw, attrs: &[AttrValue], name: &str, seed: u64) -> Vec<Array> {
    let mut random = generator(name, seed);
    let bounds = integer_bounds(graph);
    let special = attrs.iter().find_map(AttrValue::as_int);
    let mut inputs = Vec::new();
    for id in &graph.inputs {
        let ty = graph.ty(*id);
        let mut values = array(ty, draw, &Limits::default(), bounds.get(id).copied().unwrap_or(2), &mut random);
        if let (Values::Int(v), Some(special), false) = (&mut values.values, special, bounds.contains_key(id)) {
            v.iter_mut().skip(1).step_by(3).for_each(|i| *i = special);
        }
        inputs.push(values);
    }
    inputs
}

/// The attributes of a call in words.
fn shown(def: &Def, attrs: &[AttrValue]) -> String {
    describe_attrs(def.signature.attrs().map(|(name, _, _)| name).zip(attrs))
}

fn gradient(def: &Def, rules: &RuleSet, types: &[TensorType], attrs: &[AttrValue], seed: u64, findings: &mut Findings) {
    let Some((graph, _)) = program(def, rules, types, attrs) else { return };
    if graph.handlers.is_empty() {
        return;
    }
    let differentiated = match differentiate(&graph, rules) {
        Ok(differentiated) => differentiated,
        Err(bag) => {
            findings.not_second = bag.iter().next().map(|d| d.message.clone());
            return;
        }
    };
    let probes = probes(&differentiated);
    for (i, drawn) in DRAWS.into_iter().enumerate() {
        let inputs = draw(&graph, drawn, attrs, &def.name, seed + 100 * i as u64);
        let demand = Demand { tolerance: TOLERANCE, agreement: AGREEMENT, constants: false, ..Demand::default() };
        let report = check_gradients_to(&demand, &differentiated.tape, &rules.registry, inputs.clone(), &probes, 0);
        let Ok(report) = report else { continue };
        for gradient in report.gradients {
            match gradient.verdict {
                Verdict::Passed => {
                    findings.points += gradient.checked;
                    findings.worst = findings.worst.max(gradient.worst);
                }
                Verdict::NotChecked(_) => {}
                Verdict::Failed => {
                    let names: Vec<&str> = def.signature.operand_names().chain(["g"]).collect();
                    return findings.refuse(
                        Diagnostic::error("E0902", format!("the derivative of `{}` for `{}` is wrong", def.name, gradient.name))
                            .at(def.head.span, "differentiated through this definition")
                            .note(format!("relative error {}", number(gradient.worst)))
                            .note(format!("at {}{}", describe_point(&names, &inputs, None), shown(def, attrs)))
                            .help("is a VJP of its operators wrong, or a part held constant by `stop_gradient`? If that is meant, say `not_a_derivative`"),
                    );
                }
            }
        }
    }
}

/// Is a value infinite or NaN where what it stands for is a float?
fn overflow(def: &Def, rules: &RuleSet, types: &[TensorType], attrs: &[AttrValue], seed: u64, findings: &mut Findings) {
    let Some((mut graph, _)) = program(def, rules, types, attrs) else { return };
    let handlers = std::mem::take(&mut graph.handlers);
    graph.outputs.truncate(1);
    if !handlers.is_empty() {
        graph.inputs.pop();
    }
    let Ok(graph) = resolve(&graph, rules) else { return };
    let Some(output) = graph.outputs.first().map(|o| o.node) else { return };
    let dtype = graph.ty(output).dtype;
    if !dtype.is_float() {
        return;
    }
    for (i, drawn) in LARGE.into_iter().enumerate() {
        let inputs = draw(&graph, drawn, attrs, &def.name, seed + 1_000 * i as u64);
        let Ok(mut evaluator) = Evaluator::new(&graph, &rules.registry, inputs.clone(), Precision::Typed) else {
            return;
        };
        let (Ok(()), Ok(truth)) = (evaluator.evaluate(), precise::evaluate(&graph, &rules.registry, &inputs)) else {
            continue;
        };
        let Some(found) = evaluator.value(output) else { continue };
        for (v, truth) in found.floats().iter().zip(truth[output.index()].floats()) {
            let wanted = truth.to_float(dtype);
            if wanted.is_finite() && !v.is_finite() {
                let names: Vec<&str> = def.signature.operand_names().collect();
                return findings.refuse(
                    Diagnostic::error("E0905", format!("`{}` overflows on the way to its value", def.name))
                        .at(def.head.span, format!("{} in {dtype}, where the value is {}", number(*v), number(wanted)))
                        .note(format!("at {}{}", describe_point(&names, &inputs, None), shown(def, attrs)))
                        .help("write it so that no intermediate value is larger than the result: shift by the greatest element, use log1p, expm1, abs"),
                );
            }
            findings.values += 1;
            let off = truth.ulps(*v, if dtype == DType::F32 { DType::F32 } else { DType::F64 });
            findings.ulps = findings.ulps.max(if off.is_finite() { off } else { 0.0 });
        }
    }
}
