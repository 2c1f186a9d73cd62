//! Rewrites against what their class promises.
//!
//! Both sides are computed by the reference semantics, in f32 and f64, over varied instances of the left side and at sampled
//! points: ordinary, large and crowded ones, zeros of both signs, infinities, NaN, extremes. `[exact]` asks for equal floats, bit
//! by bit but for NaN. `[real]` asks for three things: equal values over the reals, computed with 256 bits; the same infinities and
//! NaN; and a right side that is no less accurate than the left by more than a few units in the last place.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::report::{Findings, describe_attrs, describe_point, number};
use super::sample::{Draw, Limits, array, generator};
use super::trial::{input, integer_bounds, limits};
use crate::diagnostics::Diagnostic;
use crate::egraph::resolve;
use crate::interp::Evaluator;
use crate::interp::precise::{self, Big};
use crate::ir::{Array, AttrKind, AttrValue, DType, Graph, Output, Precision, Registry, Values};
use crate::rules::numbers::build_pattern;
use crate::rules::term::{Bindings, Builder};
use crate::rules::typecheck::{self, Instance};
use crate::rules::{GraphBuilder, Rewrite, RewriteClass, RuleSet, VarKind};

/// Points that a rewrite must be compared at.
const POINTS: usize = 100;
/// Units in the last place by which a right side may be less accurate than the left.
const FEW: f64 = 4.0;
/// Both sides may be lucky: the worst of a sample is within this factor of the worst there is.
const LUCK: f64 = 4.0;
/// Bits that values equal over the reals have in common, at least: constants of a rule have 53. Where large intermediate values
/// cancel, so many of the 256 bits of the largest are left.
const EQUAL_BITS: i64 = 48;
const EQUAL_BITS_OF_LARGEST: i64 = 190;

const INSTANCES: usize = 40;

const EXACT: [Draw; 4] = [Draw::Normal(1.0), Draw::Wide, Draw::Grid, Draw::Normal(1e6)];
const REAL: [Draw; 7] = [
    Draw::Normal(1.0),
    Draw::Crowded(1e8),
    Draw::Opposed(1e8),
    Draw::Normal(40.0),
    Draw::Grid,
    Draw::Wide,
    Draw::Opposed(3e16),
];
const SPECIAL: [Draw; 3] = [Draw::Special, Draw::Extreme, Draw::Masked];

/// How accurate the sides are for one dtype and one way to draw numbers. A single element may be lucky on either side, so
/// that the worst of many are compared.
#[derive(Default)]
struct Accuracy {
    /// The worst error of the left side, in units in the last place.
    left: f64,
    right: f64,
    /// Where the right side has its worst error.
    refusal: Option<Diagnostic>,
}

/// By dtype and draw.
type Accuracies = BTreeMap<(DType, String), Accuracy>;

/// Both sides of a rewrite over one instance.
struct Case {
    graph: Graph,
    limits: Vec<Limits>,
    /// The attributes of the rule in words.
    attrs: String,
    /// A float, or the sides are compared as they are.
    dtype: DType,
}

/// Checks a rewrite.
pub fn check(rewrite: &Rewrite, rules: &RuleSet, seed: u64) -> Findings {
    let mut findings = Findings::default();
    let mut random = generator(&rewrite.head.rule.name, seed);
    let instances = typecheck::instances(rewrite, &rules.registry, INSTANCES);
    if instances.is_empty() {
        findings.not_checked = Some("no instance of its left side was found".into());
        return findings;
    }
    let (ordinary, special, each): (&[Draw], &[Draw], usize) = match rewrite.class {
        RewriteClass::Exact => (&EXACT, &SPECIAL, 2),
        RewriteClass::Real => (&REAL, &SPECIAL, 3),
    };
    let mut accuracies = Accuracies::new();
    // Ordinary points first: what is wrong there says more than a NaN.
    for (draws, each) in [(ordinary, each), (special, 2)] {
        let mut turn = 0;
        for (i, instance) in instances.iter().enumerate() {
            // Precise arithmetic takes its time: large instances are not needed once there are enough points.
            if rewrite.class == RewriteClass::Real && i >= 14 && findings.points >= 4 * POINTS {
                break;
            }
            for _ in 0..each {
                let Some(case) = case(rewrite, rules, instance, &mut random, &mut findings) else {
                    if findings.is_refused() {
                        return findings;
                    }
                    continue;
                };
                compare(rewrite, rules, &case, draws[turn % draws.len()], &mut random, &mut accuracies, &mut findings);
                turn += 1;
                if findings.is_refused() {
                    return findings;
                }
            }
        }
        judge_accuracy(std::mem::take(&mut accuracies), &mut findings);
        if findings.is_refused() {
            return findings;
        }
    }
    // Small left sides have few elements an instance.
    for round in 0..40 {
        if findings.points >= POINTS {
            judge_accuracy(accuracies, &mut findings);
            return findings;
        }
        for instance in &instances {
            if let Some(case) = case(rewrite, rules, instance, &mut random, &mut findings) {
                let draw = ordinary[round % ordinary.len()];
                compare(rewrite, rules, &case, draw, &mut random, &mut accuracies, &mut findings);
            }
            if findings.is_refused() {
                return findings;
            }
        }
    }
    findings.refuse(
        Diagnostic::error(
            "E0907",
            format!("`{}` could be compared at {} points only", rewrite.head.rule.name, findings.points),
        )
        .at(rewrite.head.span, format!("{POINTS} points are asked for"))
        .help("relax its `where` and `domain` lines, or split the rule"),
    );
    findings
}

/// Builds both sides over an instance, float attributes drawn anew. `None` where the rule does not fire, or has no right side: that
/// is a refusal.
fn case(
    rewrite: &Rewrite,
    rules: &RuleSet,
    instance: &Instance,
    random: &mut ChaCha8Rng,
    findings: &mut Findings,
) -> Option<Case> {
    let head = &rewrite.head;
    let registry = &rules.registry;
    let mut graph = Graph::new();
    let mut bindings = Bindings::new(head.vars.len(), &head.locals);
    let mut tensors = Vec::new();
    for (i, ty) in instance.tensors.iter().enumerate() {
        if let Some(ty) = ty {
            bindings.tensors[i] = Some(input(&mut graph, &head.vars[i].name, ty.clone(), head.span));
            tensors.push(i);
        }
    }
    bindings.attrs.clone_from(&instance.attrs);
    for (i, var) in head.vars.iter().enumerate() {
        if var.kind == VarKind::Attr(Some(AttrKind::Float)) && bindings.attrs[i].is_some() {
            bindings.attrs[i] = Some(AttrValue::float(any_float(random)));
        }
    }
    let mut builder = GraphBuilder { registry, graph: &mut graph, rule: head.rule.clone(), serves: Vec::new() };
    let left = build_pattern(&rewrite.left, &bindings, &mut builder)?;
    bindings.expected = Some(builder.ty(left));
    if !typecheck::conditions(head, &mut bindings, &mut builder).ok()? {
        return None;
    }
    let by_var: BTreeMap<u32, Limits> = limits(&head.domain, &mut bindings, &mut builder).ok()?;
    let right = match bindings.build(&rewrite.right, &mut builder) {
        Ok(right) => right,
        Err(error) => {
            findings.refuse(
                Diagnostic::error(
                    "E0904",
                    format!("`{}` has no right side where its left side stands", head.rule.name),
                )
                .at(error.span, error.to_string())
                .note(format!("for{}", constants_of(&bindings.attrs, rewrite).trim_start_matches(',')))
                .help("restrict the rule by `where` lines"),
            );
            return None;
        }
    };
    let instance_attrs = bindings.attrs;
    let dtype = graph.ty(left).dtype;
    for (name, node) in [("left", left), ("right", right)] {
        graph.outputs.push(Output { name: name.into(), node });
    }
    let limits = tensors.iter().map(|i| by_var.get(&(*i as u32)).copied().unwrap_or_default()).collect();
    // A definition stands for its composite in both sides alike.
    let graph = resolve(&graph, rules).ok()?;
    let attrs = constants_of(&instance_attrs, rewrite);
    Some(Case { graph, limits, attrs, dtype })
}

/// The attributes of an instance in words. Those that are computed have names that no text can write.
fn constants_of(attrs: &[Option<AttrValue>], rewrite: &Rewrite) -> String {
    let named = attrs.iter().zip(&rewrite.head.vars).filter(|(_, var)| var.name.starts_with(char::is_alphabetic));
    describe_attrs(named.filter_map(|(value, var)| Some((&*var.name, value.as_ref()?))))
}

/// A float attribute, representable in F32 as constants of both dtypes are.
fn any_float(random: &mut ChaCha8Rng) -> f64 {
    // The greatest powers of two whose double no integer dtype has are among them.
    const SOME: [f64; 14] = [
        1_073_741_824.0,
        4_611_686_018_427_387_904.0,
        2.0,
        -0.5,
        0.0,
        -0.0,
        1.0,
        -1.0,
        3.0,
        0.75,
        f64::INFINITY,
        f64::NAN,
        9_223_372_036_854_775_808.0,
        -1e-30_f32 as f64,
    ];
    SOME[(random.next_u64() % SOME.len() as u64) as usize]
}

/// Compares the sides at one point.
fn compare(
    rewrite: &Rewrite,
    rules: &RuleSet,
    case: &Case,
    draw: Draw,
    random: &mut ChaCha8Rng,
    accuracies: &mut Accuracies,
    findings: &mut Findings,
) {
    let graph = &case.graph;
    let bounds = integer_bounds(graph);
    let inputs: Vec<Array> = graph
        .inputs
        .iter()
        .zip(&case.limits)
        .map(|(node, limits)| array(graph.ty(*node), draw, limits, bounds.get(node).copied().unwrap_or(4), random))
        .collect();
    let Ok(mut evaluator) = Evaluator::new(graph, &rules.registry, inputs.clone(), Precision::Typed) else { return };
    if evaluator.evaluate().is_err() {
        return;
    }
    let (left, right) = (graph.outputs[0].node, graph.outputs[1].node);
    let (Some(l), Some(r)) = (evaluator.value(left), evaluator.value(right)) else { return };
    let names: Vec<&str> = graph.inputs.iter().map(|i| graph.node(*i).name.as_deref().unwrap_or("x")).collect();
    let place = |element: usize| {
        let pointwise = is_pointwise(graph, &rules.registry);
        let dtype = case.dtype;
        let attrs = &case.attrs;
        if pointwise {
            format!("in {dtype} at {}{attrs}", describe_point(&names, &inputs, Some(element)))
        } else {
            format!("in {dtype}, element {element}, at {}{attrs}", describe_point(&names, &inputs, None))
        }
    };
    let (l, r) = match (&l.values, &r.values) {
        (Values::Float(l), Values::Float(r)) => (l, r),
        (l, r) => {
            findings.points += l.len();
            if let Some((i, left, right)) = first_difference(l, r) {
                findings.refuse(
                    Diagnostic::error("E0904", format!("`{}` changes an integer or Bool", rewrite.head.rule.name))
                        .at(rewrite.right.span, format!("this is {right}, the left side {left}"))
                        .note(place(i))
                        .help("restrict the rule by `where is_float(..)`, or mend it"),
                );
            }
            return;
        }
    };
    if rewrite.class == RewriteClass::Exact {
        findings.points += l.len();
        let differ = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
        if let Some(i) = l.iter().zip(r).position(differ) {
            let close = (l[i] - r[i]).abs() <= 1e-5 * l[i].abs().max(r[i].abs());
            findings.refuse(
                Diagnostic::error("E0904", format!("the sides of `{}` differ", rewrite.head.rule.name))
                    .at(rewrite.right.span, format!("this is {}, the left side {}", number(r[i]), number(l[i])))
                    .note(place(i))
                    .help(if close {
                        "`[exact]` promises the same float; `[real]` allows the rounding of a few units in the last place"
                    } else {
                        "mend the rule, or restrict it by `domain` or `where` lines"
                    }),
            );
        }
        return;
    }
    let Ok(truth) = precise::evaluate(graph, &rules.registry, &inputs) else { return };
    let (true_left, true_right) = (truth[left.index()].floats(), truth[right.index()].floats());
    let largest = truth.iter().flat_map(|a| a.floats()).filter_map(|v| v.exponent()).max().unwrap_or(0);
    let accuracy = accuracies.entry((case.dtype, format!("{draw:?}"))).or_default();
    for i in 0..l.len() {
        findings.points += 1;
        let refusal = |(code, words, numbers, help): Fault| {
            Diagnostic::error(code, format!("`{}` {words}", rewrite.head.rule.name))
                .at(rewrite.right.span, format!("this is {}, the left side {}", number(r[i]), number(l[i])))
                .note(numbers)
                .note(place(i))
                .help(help)
        };
        if let Err(fault) = real(l[i], r[i], true_left[i], true_right[i], largest) {
            return findings.refuse(refusal(fault));
        }
        if !l[i].is_finite() || !true_left[i].is_finite() {
            continue;
        }
        let (error_l, error_r) = (true_left[i].ulps(l[i], case.dtype), true_left[i].ulps(r[i], case.dtype));
        accuracy.left = accuracy.left.max(error_l);
        if error_r > accuracy.right {
            accuracy.right = error_r;
            let numbers = format!(
                "the exact value is {}: the right side is off by {error_r:.1} units in the last place, the left side by {error_l:.1}",
                number(true_left[i].to_f64()),
            );
            accuracy.refusal = (error_r > FEW).then(|| {
                refusal((
                    "E0905",
                    "loses accuracy",
                    numbers,
                    "`[real]` promises no less accuracy than the left side: subtract what is large first, avoid cancellation",
                ))
            });
        }
    }
}

/// Compares the worst errors of both sides. Of several faults the one that shows most is told.
fn judge_accuracy(accuracies: Accuracies, findings: &mut Findings) {
    let mut worst: Option<(f64, Diagnostic)> = None;
    for accuracy in accuracies.into_values() {
        findings.worst = findings.worst.max(accuracy.right - accuracy.left);
        let allowed = LUCK * accuracy.left + FEW;
        if accuracy.right > allowed
            && let Some(refusal) = accuracy.refusal
            && worst.as_ref().is_none_or(|(excess, _)| accuracy.right / allowed > *excess)
        {
            let note = format!("the left side is off by at most {:.1} at all points drawn in this way", accuracy.left);
            worst = Some((accuracy.right / allowed, refusal.note(note)));
        }
    }
    if let Some((_, refusal)) = worst {
        findings.refuse(refusal);
    }
}

/// Where integers or Bools differ, and what they are there.
fn first_difference(l: &Values, r: &Values) -> Option<(usize, String, String)> {
    fn first<T: PartialEq + ToString>(l: &[T], r: &[T]) -> Option<(usize, String, String)> {
        let i = l.iter().zip(r).position(|(a, b)| a != b)?;
        Some((i, l[i].to_string(), r[i].to_string()))
    }
    match (l, r) {
        (Values::Int(l), Values::Int(r)) => first(l, r),
        (Values::Bool(l), Values::Bool(r)) => first(l, r),
        _ => None,
    }
}

type Fault = (&'static str, &'static str, String, &'static str);

/// One element of a `[real]` rewrite. `largest` is the exponent of the greatest value on the way to it.
fn real(l: f64, r: f64, true_l: Big, true_r: Big, largest: i64) -> Result<(), Fault> {
    let class = |v: f64| (v.is_nan(), v.is_infinite(), v.is_infinite() && v > 0.0);
    if class(l) != class(r) {
        let numbers = format!("over the reals the left side is {}", number(true_l.to_f64()));
        return Err((
            "E0904",
            "moves a NaN or an infinity",
            numbers,
            "restrict it by a `domain`, which may leave out infinities too (`x > -inf && x < inf`), or write it so that nothing overflows and nothing is divided by zero",
        ));
    }
    let same = (true_l.is_nan() && true_r.is_nan()) || true_l == true_r || {
        let difference = (true_l - true_r).abs();
        match (difference.exponent(), true_l.exponent().max(true_r.exponent())) {
            (Some(d), Some(size)) => {
                true_l.is_finite()
                    && true_r.is_finite()
                    && (d <= size - EQUAL_BITS || d <= largest - EQUAL_BITS_OF_LARGEST)
            }
            _ => difference.is_zero(),
        }
    };
    // Where neither side is finite the reals have no say.
    if !same && (l.is_finite() || true_l.is_finite() || true_r.is_finite()) {
        let numbers =
            format!("over the reals the sides are {} and {}", number(true_l.to_f64()), number(true_r.to_f64()));
        return Err((
            "E0904",
            "is not an identity",
            numbers,
            "mend the rule, or restrict it by `domain` or `where` lines",
        ));
    }
    Ok(())
}

/// Does every element depend on the elements at its own place alone?
fn is_pointwise(graph: &Graph, registry: &Registry) -> bool {
    let shape = graph.outputs.first().map(|o| graph.ty(o.node).shape.clone());
    graph.iter().all(|(id, node)| {
        let call = graph.with_call(id, |op, call| registry.op(op).is_elementwise(call, &node.ty));
        call.unwrap_or(true) && Some(&node.ty.shape) == shape.as_ref()
    })
}
