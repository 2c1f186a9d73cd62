//! One conclusion against finite differences at one point.

use std::collections::BTreeMap;

use super::report::{describe_point, number};
use super::trial::Trial;
use super::vjp::{TOLERANCE, Work, conclusion_span};
use crate::diagnostics::Diagnostic;
use crate::interp::{Evaluator, InterpError, Slope, slope, unit_of};
use crate::ir::operator::Eval;
use crate::ir::{Array, NodeId, Precision, Values};
use crate::rules::Vjp;

/// Steps whose slopes agree so settle an element.
pub const AGREEMENT: f64 = 1e-11;
/// A second look takes steps that are so many powers of two smaller.
const NEAR: i32 = 12;
/// Elements compared at one point of an operator that does not work point by point.
const ELEMENTS: usize = 12;

/// The arrays of one comparison.
#[derive(Clone, Copy)]
struct Point<'a> {
    x: &'a [f64],
    y: &'a [f64],
    w: &'a [f64],
    analytic: &'a [f64],
}

/// Values of the operator at the elements compared, with all elements moved, by step.
type Moved = BTreeMap<(i32, u64), Option<Vec<f64>>>;

/// Which elements are compared.
#[derive(Clone, Copy)]
pub enum Sample<'a> {
    /// All of an operator that works point by point, otherwise some, evenly spread so that no row is left out.
    Some,
    /// These.
    These(&'a [usize]),
}

/// What an element of a conclusion should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measured {
    /// The slope.
    Slope(f64),
    /// Something between two slopes.
    Between { left: f64, right: f64 },
    /// What a kink of the rule states.
    Stated(f64),
}

/// An element of a conclusion that is wrong.
#[derive(Clone, Debug)]
pub struct Fault {
    pub operand: usize,
    pub element: usize,
    /// What the rule gives.
    pub given: f64,
    pub measured: Measured,
    pub diagnostic: Diagnostic,
}

/// An element of a conclusion, to be compared with a slope.
struct Element {
    /// Its place.
    i: usize,
    /// What the slope is per.
    unit: f64,
    /// What the rule says.
    analytic: f64,
    /// Slopes below it need no relative precision.
    scale: f64,
    /// Does a kink state the conclusion here?
    stated: bool,
}

/// What the comparison of one element says.
enum Outcome {
    /// With a relative error.
    Agrees(f64),
    /// No difference quotient that could tell.
    Unsettled,
    Fault(Box<Fault>),
}

/// One conclusion at one point.
pub struct Comparison<'a> {
    pub trial: &'a Trial,
    pub evaluator: &'a Evaluator<'a>,
    pub inputs: &'a [Array],
    pub operand: usize,
    /// Kinks only: at infinities and extreme numbers there are no difference quotients.
    pub special: bool,
    /// Beside kinks: what is closer to one than any step is no kink that the rule would have to state.
    pub beside: bool,
    pub pointwise: bool,
    pub sample: Sample<'a>,
}

impl Comparison<'_> {
    pub fn run(&self, work: &mut Work<'_>) {
        let trial = self.trial;
        let floats = |node: NodeId| self.evaluator.value(node).map_or(&[][..], Array::floats);
        let x = self.inputs[self.operand].floats();
        let zeros = vec![0.0; x.len()];
        let analytic = match trial.conclusions[self.operand] {
            Some(node) => floats(node),
            None => &zeros,
        };
        let y = floats(trial.primal);
        let w = self.inputs[trial.operands.len()].floats();
        // What kink lines state, by element.
        let mut stated: Vec<bool> = vec![false; x.len()];
        for (k, kink) in work.vjp.kinks.iter().enumerate().filter(|(_, kink)| kink.operand == self.param()) {
            let Some((condition, value)) = trial.kinks[k] else { continue };
            let (Some(condition), value) = (self.evaluator.value(condition), floats(value)) else { continue };
            for (i, holds) in condition.bools().iter().enumerate() {
                if !holds {
                    continue;
                }
                stated[i] = true;
                work.kinks_met[k] += 1;
                if !same(analytic[i], value[i]) {
                    let diagnostic = Diagnostic::error(
                        "E0903",
                        format!("`{}` does not do what its kink states", work.vjp.head.rule.name),
                    )
                    .at(kink.span, format!("stated here is {}", number(value[i])))
                    .also(conclusion_span(work.vjp, self.param()), format!("the conclusion is {}", number(analytic[i])))
                    .note(format!("at {}", self.shown(i)))
                    .help("mend the conclusion or the kink");
                    let measured = Measured::Stated(value[i]);
                    return work.refuse(Fault {
                        operand: self.operand,
                        element: i,
                        given: analytic[i],
                        measured,
                        diagnostic,
                    });
                }
            }
        }
        if self.special {
            return;
        }
        // What is not finite has no slope; where no cotangent comes in, none is asked for.
        if self.pointwise || y.iter().zip(w).all(|(y, w)| y.is_finite() || *w == 0.0) {
            self.elements(work, &Point { x, y, w, analytic }, &stated);
        }
    }

    fn param(&self) -> usize {
        self.trial.params[self.operand]
    }

    /// The operator's value with the operand replaced.
    pub fn primal_at(&self, work: &Work<'_>, moved: Vec<f64>) -> Option<Vec<f64>> {
        let trial = self.trial;
        let replaced = Array::new(self.inputs[self.operand].shape.clone(), Values::Float(moved));
        let args: Vec<&Array> =
            (0..trial.operands.len()).map(|i| if i == self.operand { &replaced } else { &self.inputs[i] }).collect();
        let result = trial.graph.ty(trial.primal);
        let value = trial.graph.with_call(trial.primal, |op, call| {
            let eval = Eval { call, args: &args, result, precision: Precision::Double };
            work.rules.registry.op(op).reference(&eval)
        });
        match value {
            Some(Ok(Array { values: Values::Float(v), .. })) => Some(v),
            _ => None,
        }
    }

    fn elements(&self, work: &mut Work<'_>, values: &Point<'_>, stated: &[bool]) {
        let Point { x, y, analytic, .. } = *values;
        let largest = analytic.iter().filter(|g| g.is_finite()).fold(0.0, |m: f64, g| m.max(g.abs()));
        let most = |v: &[f64]| v.iter().filter(|v| v.is_finite()).fold(0.0, |m: f64, v| m.max(v.abs()));
        // What rounding alone does to the sums of a conclusion is no error of it.
        let rounding = 1e-6 * most(values.w) * most(y);
        let step = if self.pointwise { 1 } else { x.len().div_ceil(ELEMENTS).max(1) };
        let chosen: Vec<usize>;
        let list = match self.sample {
            Sample::These(list) => list,
            Sample::Some => {
                chosen = (0..x.len()).filter(|i| i % step == (x.len() / 2) % step).collect();
                &chosen
            }
        };
        let mut known = Moved::new();
        for (at, i) in list.iter().copied().enumerate().filter(|(_, i)| *i < x.len()) {
            let whole = self.pointwise && !y[i].is_finite();
            if whole || !x[i].is_finite() || (stated[i] && !analytic[i].is_finite()) {
                continue;
            }
            let unit = unit_of(x[i]);
            let scale = if self.pointwise {
                1e-3 * values.w[i].abs() * y[i].abs().max(1e-30)
            } else {
                (1e-3 * largest * unit).max(rounding).max(1e-12)
            };
            let Some(found) = self.slope_at(work, values, (list, at), 0, scale, &mut known) else { continue };
            let element = Element { i, unit, analytic: analytic[i], scale, stated: stated[i] };
            let mut outcome = self.judge(work.vjp, found, &element);
            if let Outcome::Fault(_) = outcome {
                // From afar, many kinks look like a slope: a refusal needs small steps to agree with it.
                let Some(near) = self.slope_at(work, values, (list, at), NEAR, scale, &mut known) else { continue };
                let factor = 2f64.powi(-NEAR);
                let element = Element { unit: unit * factor, scale: scale * factor, ..element };
                match self.judge(work.vjp, near, &element) {
                    Outcome::Fault(_) => {}
                    _ => outcome = Outcome::Unsettled,
                }
            }
            match outcome {
                Outcome::Agrees(error) => {
                    work.compared[self.param()] += 1;
                    work.findings.worst = work.findings.worst.max(error);
                }
                Outcome::Unsettled => {}
                Outcome::Fault(fault) => return work.refuse(*fault),
            }
        }
    }

    /// The slope at an element, which is given by its place in the list of those compared, per its unit times 2^-`near`. Where the
    /// operator works point by point all elements are moved at once, and what is computed for one serves all.
    fn slope_at(
        &self,
        work: &Work<'_>,
        values: &Point<'_>,
        (list, at): (&[usize], usize),
        near: i32,
        scale: f64,
        known: &mut Moved,
    ) -> Option<Slope> {
        let Point { x, y, w, .. } = *values;
        let i = list[at];
        let factor = 2f64.powi(-near);
        if self.pointwise {
            let value = |t: f64| -> Result<Vec<f64>, InterpError> {
                let moved = known.entry((near, t.to_bits())).or_insert_with(|| {
                    let step = |x: &f64| if x.is_finite() { x + t * factor * unit_of(*x) } else { *x };
                    let moved = self.primal_at(work, x.iter().map(step).collect())?;
                    Some(list.iter().map(|i| moved[*i]).collect())
                });
                Ok(vec![moved.as_ref().map_or(f64::NAN, |v| v[at])])
            };
            return slope(&[y[i]], &[w[i]], scale * factor, AGREEMENT, value).ok();
        }
        let unit = unit_of(x[i]) * factor;
        let finite = |v: &mut [f64]| v.iter_mut().zip(y).filter(|(_, y)| !y.is_finite()).for_each(|(v, _)| *v = 0.0);
        let value = |t: f64| -> Result<Vec<f64>, InterpError> {
            let mut moved = x.to_vec();
            moved[i] += t * unit;
            let mut value = self.primal_at(work, moved).unwrap_or_else(|| vec![f64::NAN; y.len()]);
            finite(&mut value);
            Ok(value)
        };
        let mut middle = y.to_vec();
        finite(&mut middle);
        slope(&middle, w, scale * factor, AGREEMENT, value).ok()
    }

    /// Compares an element with its slope, which is per unit.
    fn judge(&self, vjp: &Vjp, found: Slope, element: &Element) -> Outcome {
        let Element { i, unit, analytic, scale, stated } = *element;
        let value = analytic * unit;
        let distance = found.distance(value);
        let rule = &vjp.head.rule.name;
        let place = conclusion_span(vjp, self.param());
        let (code, what, numbers, help) = match found {
            Slope::Unusable => return Outcome::Unsettled,
            Slope::Kink { .. } if self.beside && !stated => return Outcome::Unsettled,
            // Whether the rule should have stated the kink is no question at values that are given.
            Slope::Kink { left, right } if !stated && matches!(self.sample, Sample::These(_)) => {
                if distance <= 1e-4 * value.abs().max(left.abs()).max(right.abs()).max(scale) {
                    return Outcome::Unsettled;
                }
                let (left, right) = (number(left / unit), number(right / unit));
                let numbers = format!("the slope is {left} on the left and {right} on the right");
                ("E0903", "is not between the slopes at a kink", numbers, "mend this conclusion, or state the kink")
            }
            Slope::Kink { left, right } => {
                let numbers = format!(
                    "the slope is {} on the left and {} on the right",
                    number(left / unit),
                    number(right / unit)
                );
                // The policy of a kink lies between the two sides.
                let size = value.abs().max(left.abs()).max(right.abs()).max(scale);
                match stated {
                    true if distance <= 1e-4 * size => return Outcome::Unsettled,
                    true => (
                        "E0903",
                        "has a kink whose policy is not between the slopes",
                        numbers,
                        "state a policy between the two",
                    ),
                    false => (
                        "E0903",
                        "has a kink that it does not state",
                        numbers,
                        "say what holds there, as `kink x == 0.0: g_x = 0.0` does",
                    ),
                }
            }
            Slope::Smooth { value: slope, uncertainty } => {
                let size = value.abs().max(slope.abs()).max(scale);
                let error = distance / size;
                if error <= TOLERANCE {
                    return Outcome::Agrees(error);
                }
                // An infinite conclusion is wrong where there is a slope for certain: where the slope is infinite, estimates grow
                // from step to step.
                if !analytic.is_finite() && uncertainty > 1e-6 * slope.abs().max(scale) {
                    return Outcome::Unsettled;
                }
                if distance <= 4.0 * uncertainty || (stated && distance <= 1e-6 * size) {
                    return Outcome::Unsettled;
                }
                let numbers =
                    format!("finite differences give {} (relative error {})", number(slope / unit), number(error));
                if stated {
                    (
                        "E0903",
                        "states a kink where there is none, and not the derivative",
                        numbers,
                        "mend the kink's condition",
                    )
                } else {
                    (
                        "E0902",
                        "is not the derivative",
                        numbers,
                        "mend this conclusion; the point above shows what is wrong",
                    )
                }
            }
        };
        let diagnostic = Diagnostic::error(code, format!("`{rule}` {what}"))
            .at(place, format!("the rule gives {}", number(analytic)))
            .note(numbers)
            .note(format!("at {}", self.shown(i)))
            .help(help);
        let measured = match found {
            Slope::Kink { left, right } => Measured::Between { left: left / unit, right: right / unit },
            Slope::Smooth { value, .. } => Measured::Slope(value / unit),
            Slope::Unusable => return Outcome::Unsettled,
        };
        Outcome::Fault(Box::new(Fault { operand: self.operand, element: i, given: analytic, measured, diagnostic }))
    }

    /// The point in words: values at the element for pointwise operators, whole arrays otherwise.
    fn shown(&self, element: usize) -> String {
        let graph = &self.trial.graph;
        let names: Vec<&str> = graph.inputs.iter().map(|i| graph.node(*i).name.as_deref().unwrap_or("x")).collect();
        let point = describe_point(&names, self.inputs, self.pointwise.then_some(element)) + &self.trial.attrs;
        if self.pointwise { point } else { format!("element {element} of `{}`: {point}", names[self.operand]) }
    }
}

/// Equal but for rounding; NaN equals NaN.
fn same(a: f64, b: f64) -> bool {
    let size = a.abs().max(b.abs());
    a == b || (a.is_nan() && b.is_nan()) || (size.is_finite() && (a - b).abs() <= 1e-12 * size)
}
