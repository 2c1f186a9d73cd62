//! Gradients compared with finite differences.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::evaluate::{Dependents, Evaluator, InterpError};
use super::quotient::{EVALUATIONS, Slope, slope};
use super::report::{GradReport, GradientProbe, GradientResult, TOLERANCE, Verdict};
use crate::ir::{Array, Graph, NodeId, NodeKind, Precision, Registry, Values, memory};

/// Parameters of more elements are sampled.
const EVERY_ELEMENT: u64 = 2_000;
/// What a sample consists of, if [`WORK`] allows.
const ELEMENTS: u64 = 64;
const DIRECTIONS: u64 = 16;
/// See [`Demand::work`].
const WORK: u64 = 50_000_000;

/// Compares each gradient with finite differences of `sum(primal * cotangent)`, in f64, with respect to the parameter's
/// own value: uses of the argument outside the handler stay as they are. Results of operators that are constants for
/// differentiation (`stop_gradient`) stay as well.
///
/// A parameter of up to 2,000 elements is compared element by element. A larger one, or one whose program is too slow
/// for that, is compared in random directions, which see every element, and at sampled elements; `seed` chooses them. A
/// direction that disagrees is halved until the element is found.
///
/// The error of an element is `|analytic - numeric| / max(|analytic|, |numeric|, 1e-3 * G, 1e-8)`, where G is the
/// greatest magnitude in the gradient: an element much smaller than the rest need not have the relative precision that
/// rounding in the rest makes impossible. An element at a kink, where left and right derivative differ, is right if
/// it lies between them. Above 1e-6 the check fails.
///
/// `graph` must hold the nodes that the probes name.
///
/// # Errors
/// As [`Evaluator::evaluate`]. A primal or gradient that is not finite is no error but is reported as not checked.
pub fn check_gradients(
    graph: &Graph,
    registry: &Registry,
    inputs: Vec<Array>,
    probes: &[GradientProbe],
    seed: u64,
) -> Result<GradReport, InterpError> {
    check_gradients_to(&Demand::default(), graph, registry, inputs, probes, seed)
}

/// How precise an agreement is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// The greatest relative error that passes.
    pub tolerance: f64,
    /// Two steps whose slopes agree so settle an element.
    pub agreement: f64,
    /// Are results of operators that are constants for differentiation held fixed?
    pub constants: bool,
    /// How many tensor elements the check of one gradient may compute, roughly. Beyond that fewer elements are compared, but never
    /// fewer than four and two directions.
    pub work: u64,
}

impl Default for Demand {
    fn default() -> Demand {
        Demand { tolerance: TOLERANCE, agreement: 1e-9, constants: true, work: WORK }
    }
}

/// As [`check_gradients`], to another precision.
///
/// # Errors
/// As [`check_gradients`].
pub fn check_gradients_to(
    demand: &Demand,
    graph: &Graph,
    registry: &Registry,
    inputs: Vec<Array>,
    probes: &[GradientProbe],
    seed: u64,
) -> Result<GradReport, InterpError> {
    let mut evaluator = Evaluator::new(graph, registry, inputs, Precision::Double)?;
    evaluator.evaluate()?;
    let mut report = GradReport::default();
    for (i, probe) in probes.iter().enumerate() {
        for node in [Some(probe.primal), Some(probe.param), Some(probe.gradient), probe.cotangent].into_iter().flatten()
        {
            evaluator.require(node)?;
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(i as u64);
        report.gradients.push(check(demand, &evaluator, probe, graph, registry, &mut random)?);
    }
    Ok(report)
}

fn check(
    demand: &Demand,
    evaluator: &Evaluator<'_>,
    probe: &GradientProbe,
    graph: &Graph,
    registry: &Registry,
    random: &mut ChaCha8Rng,
) -> Result<GradientResult, InterpError> {
    let get = |id: NodeId| evaluator.value(id).map_or(&[][..], Array::floats);
    let (primal, gradient, x) = (get(probe.primal), get(probe.gradient), get(probe.param));
    let ones;
    let weights = match probe.cotangent {
        Some(node) => get(node),
        None => {
            ones = memory::filled(primal.len() as u64, 1.0)?;
            &ones
        }
    };
    let mut report = GradientResult {
        name: probe.name.clone(),
        elements: x.len(),
        checked: 0,
        at_kinks: 0,
        unresolved: 0,
        worst: 0.0,
        worst_at: None,
        verdict: Verdict::Passed,
    };
    let infinite = |v: &[f64]| v.iter().any(|x| !x.is_finite());
    let reason = if primal.len() != weights.len() {
        Some("the cotangent is not one of the primal")
    } else if gradient.len() != x.len() {
        Some("the gradient is not one of the parameter")
    } else if infinite(primal) {
        Some("the primal is not finite at these inputs")
    } else if infinite(weights) {
        Some("the cotangent is not finite at these inputs")
    } else if infinite(gradient) {
        Some("the gradient is not finite at these inputs")
    } else if !x.is_empty() && x.iter().all(|v| !v.is_finite()) {
        Some("no element of the parameter is finite")
    } else {
        None
    };
    if let Some(reason) = reason {
        report.verdict = Verdict::NotChecked(reason.into());
        return Ok(report);
    }
    let constant = |id: NodeId| match &graph.node(id).kind {
        NodeKind::Op { op, .. } => demand.constants && registry.op(*op).is_constant(),
        _ => false,
    };
    let dependents = evaluator.dependents(probe.primal, probe.param, constant);
    let largest = gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
    let mut comparison =
        Comparison { evaluator, dependents, primal, weights, gradient, x, largest, demand: *demand, report };
    comparison.run(random)?;
    Ok(comparison.finish())
}

/// One gradient at work.
struct Comparison<'a> {
    evaluator: &'a Evaluator<'a>,
    dependents: Dependents,
    primal: &'a [f64],
    weights: &'a [f64],
    gradient: &'a [f64],
    x: &'a [f64],
    /// The greatest magnitude in the gradient.
    largest: f64,
    demand: Demand,
    report: GradientResult,
}

/// Steps are relative to large elements. They are powers of two, so that most of them are exact, and there is one below
/// the greatest number, whose logarithm rounds up.
pub fn unit_of(x: f64) -> f64 {
    x.abs().max(1.0).log2().floor().min(1023.0).exp2()
}

/// How analytic and numeric derivative along a line compare.
enum Outcome {
    Equal { error: f64 },
    Different { error: f64 },
    Kink,
    Unresolved,
}

impl Comparison<'_> {
    fn run(&mut self, random: &mut ChaCha8Rng) -> Result<(), InterpError> {
        // Elements that are not finite cannot be varied.
        let finite = memory::collect(self.x.len() as u64, (0..self.x.len()).filter(|i| self.x[*i].is_finite()))?;
        let cost = EVALUATIONS * self.dependents.elements(self.evaluator).max(1);
        let lines = self.demand.work / cost;
        if finite.len() as u64 <= EVERY_ELEMENT.min(lines.max(ELEMENTS / 16)) {
            return finite.iter().try_for_each(|i| self.element(*i));
        }
        // Large sums round more; a tenth of the tolerance is as much as can be had.
        self.demand.agreement = self.demand.tolerance / 10.0;
        for _ in 0..(lines / 5).clamp(2, DIRECTIONS) {
            let mut sign = || if random.next_u32() & 1 == 0 { 1.0 } else { -1.0 };
            let direction = memory::collect(finite.len() as u64, finite.iter().map(|i| (*i, sign())))?;
            self.direction(direction)?;
        }
        let wanted = (lines / 5 * 4).clamp(ELEMENTS / 16, ELEMENTS).min(finite.len() as u64) as usize;
        let mut sample: BTreeSet<usize> = BTreeSet::new();
        // The greatest element is always one of them.
        sample
            .extend(finite.iter().copied().max_by(|a, b| self.gradient[*a].abs().total_cmp(&self.gradient[*b].abs())));
        while sample.len() < wanted {
            sample.insert(finite[(random.next_u64() % finite.len() as u64) as usize]);
        }
        sample.into_iter().try_for_each(|i| self.element(i))
    }

    fn element(&mut self, i: usize) -> Result<(), InterpError> {
        let outcome = self.compare(&[(i, 1.0)])?.0;
        self.record(&outcome, Some(i));
        Ok(())
    }

    /// Compares along a direction of many elements. If it disagrees, the half that disagrees more is followed down to
    /// one element, which tells a kink from an error.
    fn direction(&mut self, direction: Vec<(usize, f64)>) -> Result<(), InterpError> {
        let (outcome, _) = self.compare(&direction)?;
        let Outcome::Different { .. } = outcome else {
            self.record(&outcome, None);
            return Ok(());
        };
        let mut part = &direction[..];
        while part.len() > 1 {
            let (left, right) = part.split_at(part.len() / 2);
            let (a, b) = (self.compare(left)?.1, self.compare(right)?.1);
            part = if a >= b { left } else { right };
        }
        let Some((i, _)) = part.first() else { return Ok(()) };
        let (leaf, _) = self.compare(part)?;
        match leaf {
            Outcome::Different { .. } => self.record(&leaf, Some(*i)),
            // No element is wrong by itself: the direction crosses kinks of several elements at once.
            Outcome::Kink => self.record(&leaf, None),
            Outcome::Unresolved => self.record(&leaf, None),
            Outcome::Equal { .. } => self.record(&outcome, None),
        }
        Ok(())
    }

    fn record(&mut self, outcome: &Outcome, place: Option<usize>) {
        let (error, failed) = match outcome {
            Outcome::Equal { error } => (*error, false),
            Outcome::Different { error } => (*error, true),
            Outcome::Kink => {
                self.report.checked += 1;
                self.report.at_kinks += 1;
                return;
            }
            Outcome::Unresolved => {
                self.report.unresolved += 1;
                return;
            }
        };
        self.report.checked += 1;
        if failed {
            self.report.verdict = Verdict::Failed;
        }
        if error > self.report.worst {
            self.report.worst = error;
            self.report.worst_at = place;
        }
    }

    /// Compares the derivatives along a line, given as elements and signs; the second value is their distance.
    fn compare(&self, line: &[(usize, f64)]) -> Result<(Outcome, f64), InterpError> {
        let line = memory::map(line, |(i, sign)| (*i, sign * unit_of(self.x[*i])))?;
        let analytic: f64 = line.iter().map(|(i, v)| self.gradient[*i] * v).sum();
        // The size that the derivative along the line has if its terms neither cancel nor add up.
        let stretch = line.iter().fold(0.0, |stretch: f64, (_, v)| stretch.hypot(*v));
        let least = (1e-3 * self.largest * stretch).max(1e-8);
        if !analytic.is_finite() || !least.is_finite() {
            return Ok((Outcome::Unresolved, 0.0));
        }
        let slope = slope(self.primal, self.weights, least, self.demand.agreement, |t| self.at(&line, t))?;
        let distance = slope.distance(analytic);
        let outcome = match slope {
            Slope::Unusable => Outcome::Unresolved,
            Slope::Kink { left, right } => {
                let size = analytic.abs().max(left.abs()).max(right.abs()).max(least);
                // One-sided slopes are less precise than central ones.
                if distance <= 1e-4 * size { Outcome::Kink } else { Outcome::Different { error: distance / size } }
            }
            Slope::Smooth { value, uncertainty } => {
                let error = distance / analytic.abs().max(value.abs()).max(least);
                if error <= self.demand.tolerance {
                    Outcome::Equal { error }
                } else if distance <= 4.0 * uncertainty {
                    Outcome::Unresolved
                } else {
                    Outcome::Different { error }
                }
            }
        };
        Ok((outcome, distance))
    }

    /// The primal with the parameter moved by `t` along the line.
    fn at(&self, line: &[(usize, f64)], t: f64) -> Result<Vec<f64>, InterpError> {
        let mut moved = memory::copy(self.x)?;
        for (i, v) in line {
            moved[*i] += t * v;
        }
        let Some(param) = self.evaluator.value(self.dependents.node()) else { return Ok(memory::copy(self.primal)?) };
        let moved = Array::new(param.shape.clone(), Values::Float(moved));
        Ok(memory::copy(self.evaluator.value_at(&self.dependents, moved)?.floats())?)
    }

    fn finish(self) -> GradientResult {
        let mut report = self.report;
        let nothing = report.checked == 0;
        if nothing && report.elements > 0 && report.verdict == Verdict::Passed {
            let reason = "finite differences do not resolve any element at these inputs";
            report.verdict = Verdict::NotChecked(reason.into());
        }
        report
    }
}

#[cfg(test)]
mod tests;
