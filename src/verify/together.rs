//! The rules together: programs are made up, differentiated and saturated with all rewrites, and every e-node of the result is
//! computed with 256 bits and compared with its class.
//!
//! One rule may be right and two of them wrong together: by a fact about ranges that does not hold, a mask, a merge of commuted
//! operands. Half of the operators in a program come from left sides of rewrites, so that rules meet what other rules made.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::report::{describe_point, number};
use super::sample::{Draw, Limits, array, generator};
use super::trial::{input, integer_bounds};
use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::egraph::view::{ClassView, NodeView, classes};
use crate::egraph::{Budget, differentiate, saturate};
use crate::interp::kernel;
use crate::interp::precise::{Big, Precise, PreciseArray, exact};
use crate::ir::{
    Array, Call, DType, Graph, Handler, HandlerParam, Kernel, Level, Node, NodeId, NodeKind, Origin, Output, Placement,
    Shape, TensorType, Values,
};
use crate::rules::typecheck::{attr_pool, instances};
use crate::rules::{AttrPattern, Pattern, RuleSet};

/// Programs that are made up.
pub const PROGRAMS: usize = 32;
/// Operators in each, before differentiation.
const CALLS: usize = 7;
/// Points at which each is computed.
const DRAWS: [Draw; 2] = [Draw::Normal(1.0), Draw::Positive(2.0)];
/// Bits that equal values have in common: constants that rules have folded have 53.
const EQUAL_BITS: i64 = 48;
const EQUAL_BITS_OF_LARGEST: i64 = 50;
const BUDGET: Budget =
    Budget { nodes: 600, nodes_per_node: 4, iterations: 6, applications: 4_000, steps: 400_000, steps_per_node: 1_000 };

/// What one program showed.
pub struct Outcome {
    /// E-nodes compared with their class.
    pub nodes: usize,
    pub diagnostics: Diagnostics,
}

/// Tries the rules together on the program of a number.
pub fn check(rules: &RuleSet, number: usize, place: Span, seed: u64) -> Outcome {
    let mut outcome = Outcome { nodes: 0, diagnostics: Diagnostics::new() };
    let mut random = generator(&format!("together {number}"), seed);
    let graph = program(rules, number, place, &mut random);
    // An operator without a VJP is the business of closure.
    let Ok(mut differentiated) = differentiate(&graph, rules) else { return outcome };
    if let Err(bag) = saturate(&mut differentiated, rules, Level::O2, BUDGET) {
        outcome.diagnostics.extend(bag);
        return outcome;
    }
    let views = classes(&differentiated);
    let bounds = integer_bounds(&differentiated.tape);
    for draw in DRAWS {
        let inputs: Vec<Array> = differentiated
            .tape
            .inputs
            .iter()
            .map(|id| {
                let bound = bounds.get(id).copied().unwrap_or(2);
                array(differentiated.tape.ty(*id), draw, &Limits::default(), bound, &mut random)
            })
            .collect();
        let names: Vec<&str> = differentiated
            .tape
            .inputs
            .iter()
            .map(|i| differentiated.tape.node(*i).name.as_deref().unwrap_or("x"))
            .collect();
        let audit = Audit { rules, views: &views, inputs: &inputs, names: &names, place };
        audit.run(&mut outcome);
        if outcome.diagnostics.has_errors() {
            return outcome;
        }
    }
    outcome
}

/// A random program with a gradient.
fn program(rules: &RuleSet, number: usize, place: Span, random: &mut ChaCha8Rng) -> Graph {
    let mut graph = Graph::new();
    let mut params: Vec<HandlerParam> = Vec::new();
    let shapes: [&[u64]; 5] = [&[2, 3], &[3], &[2, 1], &[3, 3], &[2, 3, 2]];
    let mut values: Vec<NodeId> = Vec::new();
    for (i, dims) in [shapes[number % 5], shapes[(number + 1) % 5]].into_iter().enumerate() {
        let Ok(shape) = Shape::new(dims.to_vec()) else { continue };
        let ty = TensorType::new(DType::F64, shape, Placement::Host);
        let name: std::sync::Arc<str> = format!("x{i}").into();
        let argument = input(&mut graph, &name, ty.clone(), place);
        let kind = NodeKind::Param { handler: 0, index: params.len(), argument };
        let node = graph.push(Node { kind, ty, name: Some(name.clone()), origin: Origin::Program(place) });
        params.push(HandlerParam { name, node });
        values.push(node);
    }
    let rewrites = rules.rewrites();
    let ops: Vec<_> = rules.registry.iter().map(|(id, _)| id).collect();
    let mut calls = 0;
    for _ in 0..400 {
        if calls >= CALLS {
            break;
        }
        let made = if random.next_u64() & 1 == 0 && !rewrites.is_empty() {
            let rewrite = &rewrites[pick(random, rewrites.len())];
            let family = instances(rewrite, &rules.registry, 6);
            if family.is_empty() {
                continue;
            }
            let instance = &family[pick(random, family.len())];
            let mut bound: Vec<Option<NodeId>> = vec![None; instance.tensors.len()];
            for (slot, ty) in bound.iter_mut().zip(&instance.tensors) {
                let Some(ty) = ty else { continue };
                let fitting: Vec<NodeId> = values.iter().copied().filter(|v| graph.ty(*v) == ty).collect();
                *slot = Some(match fitting.is_empty() {
                    false => fitting[pick(random, fitting.len())],
                    true => {
                        let name = format!("c{}", graph.inputs.len());
                        let id = input(&mut graph, &name, ty.clone(), place);
                        values.push(id);
                        id
                    }
                });
            }
            left_side(&rewrite.left, &bound, &instance.attrs, rules, &mut graph, place)
        } else {
            let op = ops[pick(random, ops.len())];
            let signature = rules.registry.op(op).signature();
            let operands: Vec<NodeId> =
                (0..signature.operand_count()).map(|_| values[pick(random, values.len())]).collect();
            let types: Vec<TensorType> = operands.iter().map(|o| graph.ty(*o).clone()).collect();
            let attrs = signature
                .attrs()
                .map(|(_, kind, _)| {
                    let pool = attr_pool(kind, &types);
                    (!pool.is_empty()).then(|| pool[pick(random, pool.len())].clone())
                })
                .collect::<Option<Vec<_>>>();
            attrs.and_then(|attrs| graph.add(&rules.registry, op, operands, attrs, Origin::Program(place)).ok())
        };
        if let Some(node) = made {
            if let Some(check) = graph.check_of(&rules.registry, node) {
                graph.checks.add(check);
            }
            values.push(node);
            calls += 1;
        }
    }
    // The last float value that something was computed for; all others end in outputs of their own.
    let primal = values.iter().copied().rev().find(|v| graph.ty(*v).dtype.is_float()).unwrap_or(NodeId(0));
    graph.outputs.push(Output { name: "primal".into(), node: primal });
    for (i, value) in values.iter().enumerate() {
        graph.outputs.push(Output { name: format!("value_{i}").into(), node: *value });
    }
    let types: Vec<TensorType> = params.iter().map(|p| graph.ty(p.node).clone()).collect();
    graph.handlers.push(Handler { primal, params, span: place, cotangent: None });
    for (index, ty) in types.into_iter().enumerate() {
        let kind = NodeKind::Gradient { handler: 0, index };
        let node = graph.push(Node { kind, ty, name: None, origin: Origin::Handler(place) });
        graph.outputs.push(Output { name: format!("g_x{index}").into(), node });
    }
    graph
}

fn pick(random: &mut ChaCha8Rng, n: usize) -> usize {
    (random.next_u64() % n.max(1) as u64) as usize
}

fn left_side(
    pattern: &Pattern,
    tensors: &[Option<NodeId>],
    attrs: &[Option<crate::ir::AttrValue>],
    rules: &RuleSet,
    graph: &mut Graph,
    place: Span,
) -> Option<NodeId> {
    match pattern {
        Pattern::Var(v) => tensors[v.0 as usize],
        Pattern::Op { op, operands, attrs: given } => {
            let operands: Option<Vec<NodeId>> =
                operands.iter().map(|o| left_side(o, tensors, attrs, rules, graph, place)).collect();
            let values = given.iter().map(|a| match a {
                AttrPattern::Const(v) => Some(v.clone()),
                AttrPattern::Var(v) => attrs[v.0 as usize].clone(),
            });
            let values: Option<Vec<_>> = values.collect();
            let id = graph.add(&rules.registry, *op, operands?, values?, Origin::Program(place)).ok()?;
            if let Some(check) = graph.check_of(&rules.registry, id) {
                graph.checks.add(check);
            }
            Some(id)
        }
    }
}

/// All e-nodes at one point.
struct Audit<'a> {
    rules: &'a RuleSet,
    views: &'a [ClassView],
    inputs: &'a [Array],
    names: &'a [&'a str],
    place: Span,
}

impl Audit<'_> {
    fn run(&self, outcome: &mut Outcome) {
        let mut values: Vec<Option<PreciseArray>> = vec![None; self.views.len()];
        // Any e-node gives its class a value, as soon as its operands have theirs.
        loop {
            let mut news = false;
            for (i, class) in self.views.iter().enumerate() {
                if values[i].is_none() {
                    values[i] = class.nodes.iter().find_map(|node| self.value(node, &class.ty, &values));
                    news |= values[i].is_some();
                }
            }
            if !news {
                break;
            }
        }
        let largest = values.iter().flatten().flat_map(|a| a.floats()).filter_map(|v| v.exponent()).max().unwrap_or(0);
        for (i, class) in self.views.iter().enumerate() {
            let Some(expected) = &values[i] else { continue };
            for node in &class.nodes {
                let Some(found) = self.value(node, &class.ty, &values) else { continue };
                outcome.nodes += 1;
                if let Some((a, b)) = differ(expected, &found, largest) {
                    outcome.diagnostics.push(self.refusal(class, node, a, b));
                    return;
                }
            }
        }
    }

    fn value(&self, node: &NodeView, ty: &TensorType, values: &[Option<PreciseArray>]) -> Option<PreciseArray> {
        match node {
            NodeView::Input(number) => exact(self.inputs.get(*number)?).ok(),
            NodeView::Call { op, operands, attrs, .. } => {
                let args: Vec<&PreciseArray> = operands.iter().map(|o| values[*o].as_ref()).collect::<Option<_>>()?;
                let types: Vec<&TensorType> = operands.iter().map(|o| &self.views[*o].ty).collect();
                let call = Call { operands: &types, attrs };
                let operator = self.rules.registry.op(*op);
                if let Some(bound) = operator.bound(call)
                    && !args[bound.operand].ints().iter().all(|i| u64::try_from(*i).is_ok_and(|i| i < bound.size))
                {
                    return None;
                }
                match operator.kernel(call, ty) {
                    // Its expansion is in the same class.
                    Kernel::Composite => None,
                    kernel => kernel::run(&kernel, call, &args, ty, Precise).ok(),
                }
            }
        }
    }

    fn refusal(&self, class: &ClassView, node: &NodeView, a: String, b: String) -> Diagnostic {
        let mut rules: BTreeSet<String> = BTreeSet::new();
        for node in &class.nodes {
            if let NodeView::Call { rule: Some(rule), .. } = node {
                rules.insert(rule.to_string());
            }
        }
        let shown = match node {
            NodeView::Input(number) => self.names.get(*number).map_or_else(String::new, |n| (*n).to_owned()),
            NodeView::Call { op, attrs, .. } => {
                let attrs: Vec<String> = attrs.iter().map(ToString::to_string).collect();
                format!("{}({})", self.rules.registry.op(*op).name(), attrs.join(", "))
            }
        };
        let maker = match node {
            NodeView::Call { rule: Some(rule), .. } => format!("by {rule}"),
            _ => "by the program".to_owned(),
        };
        Diagnostic::error("E0909", "the rules together make equal what is not")
            .at(self.place, "found in a made-up program; the rules at fault are below")
            .note(format!("`{shown}`, made {maker}, is {b}, and its e-class is {a}"))
            .note(format!("rules that made forms of this value: {}", rules.into_iter().collect::<Vec<_>>().join(", ")))
            .note(format!("at {}", describe_point(self.names, self.inputs, None)))
            .help("check the rules named above, and what their `domain` lines rely on")
    }
}

/// The first elements that differ, if there are any.
fn differ(a: &PreciseArray, b: &PreciseArray, largest: i64) -> Option<(String, String)> {
    match (&a.values, &b.values) {
        (Values::Float(x), Values::Float(y)) => {
            let pair = x.iter().zip(y).find(|(x, y)| !equal(**x, **y, largest))?;
            Some((number(pair.0.to_f64()), number(pair.1.to_f64())))
        }
        _ if a.values == b.values => None,
        _ => Some(("other integers".into(), "something else".into())),
    }
}

fn equal(a: Big, b: Big, largest: i64) -> bool {
    if (a.is_nan() && b.is_nan()) || a == b {
        return true;
    }
    match ((a - b).abs().exponent(), a.exponent().max(b.exponent())) {
        (Some(d), Some(size)) if a.is_finite() && b.is_finite() => {
            d <= size - EQUAL_BITS || d <= largest - EQUAL_BITS_OF_LARGEST
        }
        _ => (a - b).is_zero(),
    }
}
