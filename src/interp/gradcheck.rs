//! Gradients against finite differences of the f64 interpreter.

use std::fmt;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::evaluate::{Evaluator, InterpError};
use crate::ir::{Array, Graph, NodeId, Precision, Registry, Values};

/// Up to so many elements every coordinate is checked; beyond it random directions and sampled coordinates.
const ALL_COORDINATES: usize = 2_000;
/// Random directions of a large parameter.
const DIRECTIONS: usize = 16;
/// Sampled coordinates of a large parameter.
const SAMPLES: usize = 64;
/// Steps of the five-point formula, relative to max(1, |x|). Truncation falls with h^4, cancellation grows with 1/h:
/// the estimate on which neighbouring steps agree best is taken.
const STEPS: [f64; 4] = [3e-2, 6e-3, 1.2e-3, 2.4e-4];
/// The greatest relative error that passes.
pub const TOLERANCE: f64 = 1e-6;

/// A gradient to check. Nodes are those of a graph in which parameters still stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GradientProbe {
    pub name: Arc<str>,
    pub primal: NodeId,
    pub param: NodeId,
    pub gradient: NodeId,
    /// Ones if `None`.
    pub cotangent: Option<NodeId>,
}

/// What the check of one gradient found.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Passed,
    Failed,
    /// Why there is nothing to compare. Counts as a failure of the check.
    NotChecked(String),
}

/// The check of one gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct GradientResult {
    pub name: Arc<str>,
    pub elements: usize,
    /// Coordinates and directions compared.
    pub checked: usize,
    /// Coordinates where the one-sided derivatives differ; there the gradient must lie between them.
    pub at_kinks: usize,
    /// The worst relative error, and the element it was met at (for sampled directions, none).
    pub worst: f64,
    pub worst_at: Option<usize>,
    pub verdict: Verdict,
}

/// All gradients of a program.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GradReport {
    pub gradients: Vec<GradientResult>,
}

impl GradReport {
    pub fn passed(&self) -> bool {
        self.gradients.iter().all(|g| g.verdict == Verdict::Passed)
    }
}

/// The least power of ten that bounds an error: `<= 1e-9`. Elementary functions differ between machines in the last
/// digit, so exact errors would.
pub fn bucket(error: f64) -> String {
    if error.is_nan() {
        return "NaN".to_owned();
    }
    for exponent in (1..=12).rev() {
        if error <= 10f64.powi(-exponent) {
            // What is measured below 1e-9 is the rounding of the differences, not of the gradient.
            return format!("<= 1e-{}", exponent.min(9));
        }
    }
    "> 1e-1".to_owned()
}

impl fmt::Display for GradReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for g in &self.gradients {
            write!(f, "g_{}: ", g.name)?;
            match &g.verdict {
                Verdict::NotChecked(why) => writeln!(f, "not checked: {why}")?,
                verdict => {
                    let kinks = if g.at_kinks > 0 { format!(", {} at kinks", g.at_kinks) } else { String::new() };
                    let place = match (verdict, g.worst_at) {
                        (Verdict::Failed, Some(at)) => format!(", worst at element {at}"),
                        _ => String::new(),
                    };
                    let word = if *verdict == Verdict::Passed { "passed" } else { "FAILED" };
                    let what = if g.checked < g.elements { "sampled" } else { "compared" };
                    writeln!(
                        f,
                        "worst relative error {} ({} of {} {what}{kinks}{place}): {word}",
                        bucket(g.worst),
                        g.checked,
                        g.elements
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// Compares each gradient with differences, in f64, of `sum(primal * cotangent)` in its parameter.
///
/// The error of a coordinate is |analytic - numeric| relative to the greater of both, of a thousandth of the gradient's
/// greatest entry, and of what makes the rounding of the primal, magnified by the smallest step, a relative error of
/// [`TOLERANCE`]: below that, differences see only rounding, and a gradient that is zero could not pass.
///
/// # Errors
/// A trap, or inputs that do not fit.
pub fn check_gradients(
    graph: &Graph,
    registry: &Registry,
    inputs: Vec<Array>,
    probes: &[GradientProbe],
    seed: u64,
) -> Result<GradReport, InterpError> {
    let mut evaluator = Evaluator::new(graph, registry, inputs, Precision::Double)?;
    evaluator.evaluate()?;
    let mut report = GradReport::default();
    for probe in probes {
        report.gradients.push(check_one(&mut evaluator, probe, seed)?);
    }
    Ok(report)
}

fn check_one(evaluator: &mut Evaluator<'_>, probe: &GradientProbe, seed: u64) -> Result<GradientResult, InterpError> {
    for node in [probe.primal, probe.param, probe.gradient].into_iter().chain(probe.cotangent) {
        evaluator.require(node)?;
    }
    let floats = |node: NodeId| evaluator.value(node).map(|a| a.floats().to_vec()).unwrap_or_default();
    let point = floats(probe.param);
    let gradient = floats(probe.gradient);
    let primal = floats(probe.primal);
    let cotangent = match probe.cotangent {
        Some(c) => floats(c),
        None => vec![1.0; primal.len()],
    };
    let shape = evaluator.value(probe.param).map(|a| a.shape.clone()).unwrap_or_default();
    let mut result = GradientResult {
        name: probe.name.clone(),
        elements: point.len(),
        checked: 0,
        at_kinks: 0,
        worst: 0.0,
        worst_at: None,
        verdict: Verdict::Passed,
    };
    if primal.iter().any(|v| !v.is_finite()) {
        result.verdict = Verdict::NotChecked("the primal is not finite here".to_owned());
        return Ok(result);
    }
    if gradient.len() != point.len() || gradient.iter().any(|v| !v.is_finite()) {
        result.verdict = Verdict::NotChecked("the gradient is not finite here".to_owned());
        return Ok(result);
    }
    let weight: f64 = primal.iter().zip(&cotangent).map(|(p, c)| (p * c).abs()).sum();
    let rounding = f64::EPSILON * weight / STEPS[STEPS.len() - 1];
    let scale = (gradient.iter().fold(0.0f64, |m, g| m.max(g.abs())) * 1e-3).max(rounding / TOLERANCE);
    let mut along = |direction: &[(usize, f64)], step: f64| -> Result<f64, InterpError> {
        let mut moved = point.clone();
        for (i, d) in direction {
            moved[*i] += d * step;
        }
        let array = Array::new(shape.clone(), Values::Float(moved));
        let value = evaluator.value_with(probe.primal, probe.param, array)?;
        // Relative to the value at the point, so that large primals do not drown small differences.
        let terms = value.floats().iter().zip(&primal).zip(&cotangent).map(|((v, p), c)| (v - p) * c);
        Ok(terms.sum())
    };
    let mut compare = |direction: &[(usize, f64)], at: Option<usize>| -> Result<(), InterpError> {
        let analytic: f64 = direction.iter().map(|(i, d)| gradient[*i] * d).sum();
        let size = match at {
            Some(i) => point[i].abs().max(1.0),
            None => 1.0,
        };
        let estimate = derivative(|h| along(direction, h * size).map(|v| v / size))?;
        result.checked += 1;
        let error = match estimate {
            Estimate::Smooth(numeric) => relative(analytic, numeric, scale),
            Estimate::Kink(left, right) => {
                result.at_kinks += 1;
                let (low, high) = (left.min(right), left.max(right));
                let outside = (low - analytic).max(analytic - high).max(0.0);
                // One-sided differences are of first order only.
                let error = outside / analytic.abs().max(low.abs()).max(high.abs()).max(scale).max(1e-8);
                if error <= 1e-3 { 0.0 } else { error }
            }
        };
        if error > result.worst || error.is_nan() {
            result.worst = error;
            result.worst_at = at;
        }
        Ok(())
    };
    if point.len() <= ALL_COORDINATES {
        for i in 0..point.len() {
            compare(&[(i, 1.0)], Some(i))?;
        }
    } else {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for _ in 0..SAMPLES {
            let i = (random.next_u64() % point.len() as u64) as usize;
            compare(&[(i, 1.0)], Some(i))?;
        }
        for _ in 0..DIRECTIONS {
            let direction: Vec<(usize, f64)> =
                (0..point.len()).map(|i| (i, if random.next_u32() & 1 == 0 { 1.0 } else { -1.0 })).collect();
            compare(&direction, None)?;
        }
    }
    if result.worst.is_nan() || result.worst > TOLERANCE {
        result.verdict = Verdict::Failed;
    }
    Ok(result)
}

fn relative(analytic: f64, numeric: f64, scale: f64) -> f64 {
    let size = analytic.abs().max(numeric.abs()).max(scale).max(1e-8);
    (analytic - numeric).abs() / size
}

enum Estimate {
    Smooth(f64),
    /// The derivatives from the left and from the right.
    Kink(f64, f64),
}

/// The derivative at 0 of `f`, which is 0 there.
fn derivative(mut f: impl FnMut(f64) -> Result<f64, InterpError>) -> Result<Estimate, InterpError> {
    let mut estimates = Vec::with_capacity(STEPS.len());
    for h in STEPS {
        let (a, b, c, d) = (f(-2.0 * h)?, f(-h)?, f(h)?, f(2.0 * h)?);
        estimates.push((a - 8.0 * b + 8.0 * c - d) / (12.0 * h));
    }
    // One-sided derivatives of second order: f(0) = 0.
    let h = STEPS[STEPS.len() - 1];
    let right = (4.0 * f(h)? - f(2.0 * h)?) / (2.0 * h);
    let left = -(4.0 * f(-h)? - f(-2.0 * h)?) / (2.0 * h);
    let gap = (left - right).abs();
    if gap > 1e-3 * left.abs().max(right.abs()).max(1e-6) {
        return Ok(Estimate::Kink(left, right));
    }
    let best = estimates.windows(2).min_by(|x, y| (x[0] - x[1]).abs().total_cmp(&(y[0] - y[1]).abs()));
    Ok(Estimate::Smooth(best.map_or(f64::NAN, |pair| pair[1])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{AttrValue, DType, Node, NodeKind, Origin, Placement, Shape, TensorType};

    /// `primal = f(x)` with a gradient of our choice, built by `build(graph, x) -> (primal, gradient)`.
    fn check(values: Vec<f64>, build: impl Fn(&mut Graph, &Registry, NodeId) -> (NodeId, NodeId)) -> GradientResult {
        let registry = Registry::builtin();
        let mut graph = Graph::new();
        let shape = Shape::new(vec![values.len() as u64]).unwrap();
        let ty = TensorType::new(DType::F64, shape.clone(), Placement::Host);
        let origin = || Origin::Accumulate { serves: vec![] };
        let input =
            graph.push(Node { kind: NodeKind::Input, ty: ty.clone(), name: Some("x".into()), origin: origin() });
        graph.inputs.push(input);
        let kind = NodeKind::Param { handler: 0, index: 0, argument: input };
        let param = graph.push(Node { kind, ty, name: None, origin: origin() });
        let (primal, gradient) = build(&mut graph, &registry, param);
        let probe = GradientProbe { name: "x".into(), primal, param, gradient, cotangent: None };
        let inputs = vec![Array::new(shape, Values::Float(values))];
        check_gradients(&graph, &registry, inputs, &[probe], 1).unwrap().gradients.remove(0)
    }

    fn op(graph: &mut Graph, registry: &Registry, name: &str, operands: &[NodeId]) -> NodeId {
        let origin = Origin::Accumulate { serves: vec![] };
        graph.add(registry, registry.id(name).unwrap(), operands.to_vec(), vec![], origin).unwrap()
    }

    fn splat(graph: &mut Graph, registry: &Registry, value: f64, like: NodeId) -> NodeId {
        let ty = graph.ty(like).clone();
        let origin = Origin::Accumulate { serves: vec![] };
        let attrs = vec![AttrValue::float(value), AttrValue::Type(ty)];
        graph.add(registry, registry.id("splat").unwrap(), vec![], attrs, origin).unwrap()
    }

    #[test]
    fn a_right_gradient_passes() {
        let result = check(vec![0.3, -2.0, 1e3, 1e-3], |g, r, x| {
            let y = op(g, r, "mul", &[x, x]);
            (y, op(g, r, "add", &[x, x]))
        });
        assert_eq!(result.verdict, Verdict::Passed, "{result:?}");
        assert!(result.worst <= 1e-9, "{result:?}");
        assert_eq!((result.checked, result.at_kinks), (4, 0));
    }

    #[test]
    fn wrong_gradients_fail() {
        // Wrong sign, wrong factor, a dropped term: all of exp(x) + x, whose derivative is exp(x) + 1.
        for (sign, factor, term) in [(-1.0, 1.0, 1.0), (1.0, 2.0, 1.0), (1.0, 1.0, 0.0), (1.0, 1.000_01, 1.0)] {
            let result = check(vec![0.5, -1.0, 2.0], |g, r, x| {
                let e = op(g, r, "exp", &[x]);
                let y = op(g, r, "add", &[e, x]);
                let scale = splat(g, r, sign * factor, x);
                let one = splat(g, r, term, x);
                let scaled = op(g, r, "mul", &[e, scale]);
                (y, op(g, r, "add", &[scaled, one]))
            });
            assert_eq!(result.verdict, Verdict::Failed, "sign {sign}, factor {factor}, term {term}: {result:?}");
        }
    }

    #[test]
    fn large_parameters_are_sampled_and_still_caught() {
        let values: Vec<f64> = (0..5000).map(|i| f64::from(i % 17) / 7.0 - 1.0).collect();
        let right = check(values.clone(), |g, r, x| {
            let y = op(g, r, "tanh", &[x]);
            let square = op(g, r, "mul", &[y, y]);
            let one = splat(g, r, 1.0, x);
            (y, op(g, r, "sub", &[one, square]))
        });
        assert_eq!((right.verdict.clone(), right.checked), (Verdict::Passed, SAMPLES + DIRECTIONS), "{right:?}");
        let wrong = check(values, |g, r, x| {
            let y = op(g, r, "tanh", &[x]);
            let square = op(g, r, "mul", &[y, y]);
            let one = splat(g, r, 1.0, x);
            (y, op(g, r, "add", &[one, square]))
        });
        assert_eq!(wrong.verdict, Verdict::Failed);
    }

    #[test]
    fn a_kink_accepts_what_lies_between_the_sides() {
        let relu = |slope_at_zero: f64| {
            check(vec![0.0, 1.0, -1.0], move |g, r, x| {
                let y = op(g, r, "relu", &[x]);
                let zero = splat(g, r, 0.0, x);
                let one = splat(g, r, 1.0, x);
                let slope = splat(g, r, slope_at_zero, x);
                let positive = op(g, r, "greater", &[x, zero]);
                let is_zero = op(g, r, "equal", &[x, zero]);
                let below = op(g, r, "select", &[is_zero, slope, zero]);
                (y, op(g, r, "select", &[positive, one, below]))
            })
        };
        let fair = relu(0.0);
        assert_eq!((fair.verdict, fair.at_kinks), (Verdict::Passed, 1));
        assert_eq!(relu(0.5).verdict, Verdict::Passed);
        assert_eq!(relu(2.0).verdict, Verdict::Failed);
    }

    #[test]
    fn nothing_passes_unseen() {
        let result = check(vec![-1.0, 1.0], |g, r, x| {
            let y = op(g, r, "log", &[x]);
            (y, x)
        });
        assert!(matches!(result.verdict, Verdict::NotChecked(_)), "{result:?}");
        assert!(!GradReport { gradients: vec![result] }.passed());
    }

    #[test]
    fn buckets_hide_what_machines_differ_in() {
        assert_eq!(bucket(0.0), "<= 1e-9");
        assert_eq!(bucket(3e-8), "<= 1e-7");
        assert_eq!(bucket(0.5), "> 1e-1");
    }
}
