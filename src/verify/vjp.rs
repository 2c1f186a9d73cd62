//! VJPs against finite differences.
//!
//! A conclusion is evaluated in f64 at sampled points of every instance of its operator, and each element is compared with the
//! five-point difference quotient of the operator's own reference semantics, whose step adapts
//! ([`slope`](fn@crate::interp::slope)). Where an operator works point by point, all elements are moved at once. At elements where
//! a `kink` line says so, the conclusion must be what the line states instead; a kink that no line states is refused. The conclusion
//! itself is then differentiated by the whole rule set and compared again: second order.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;

use super::compare::{Comparison, Fault, Sample};
use super::report::{Findings, number};
use super::sample::{Draw, Limits, array, generator};
use super::trial::{Trial, in_f64, integer_bounds};
use crate::diagnostics::{Diagnostic, Span};
use crate::interp::Evaluator;
use crate::ir::{Array, AttrValue, Precision, TensorType, Values};
use crate::rules::example::{Closed, Example, ExampleKind};
use crate::rules::term::VarId;
use crate::rules::{Conclusion, RuleSet, Vjp};

/// Points that each conclusion must be compared at.
pub const POINTS: usize = 100;
/// The greatest relative error of a conclusion.
pub const TOLERANCE: f64 = 1e-8;
/// Rounds over all instances, each with another way to draw numbers.
const ROUNDS: usize = 40;
/// More rounds for kinks that were not met often enough: a condition may hold for several reasons.
const KINK_ROUNDS: usize = 400;
const KINK_POINTS: usize = 24;
const KINK_DRAWS: [Draw; 3] = [Draw::Grid, Draw::Special, Draw::Near];

const DRAWS: [Draw; 10] = [
    Draw::Normal(1.0),
    Draw::Grid,
    Draw::Positive(1.0),
    Draw::Special,
    Draw::Unit,
    Draw::Grid,
    Draw::Normal(4.0),
    Draw::Wide,
    Draw::Near,
    Draw::Grid,
];

/// Compares the conclusions of a VJP, its kinks and its examples.
pub fn first_order(vjp: &Vjp, rules: &RuleSet, seed: u64) -> Findings {
    let mut work = Work::new(vjp, rules, seed, Findings::default());
    work.first_order();
    work.findings
}

/// A VJP in question.
pub struct Work<'r> {
    pub vjp: &'r Vjp,
    pub rules: &'r RuleSet,
    pub random: ChaCha8Rng,
    /// Elements compared, by operand.
    pub compared: Vec<usize>,
    pub kinks_met: Vec<usize>,
    pub findings: Findings,
    /// The element for which it is refused, if that is why.
    pub fault: Option<Fault>,
}

impl Work<'_> {
    pub fn new<'r>(vjp: &'r Vjp, rules: &'r RuleSet, seed: u64, findings: Findings) -> Work<'r> {
        Work {
            vjp,
            rules,
            random: generator(&vjp.head.rule.name, seed),
            compared: vec![0; vjp.conclusions.len()],
            kinks_met: vec![0; vjp.kinks.len()],
            findings,
            fault: None,
        }
    }

    /// Refuses the rule for an element.
    pub fn refuse(&mut self, fault: Fault) {
        self.findings.refuse(fault.diagnostic.clone());
        self.fault.get_or_insert(fault);
    }

    /// The instances that the rule covers, in F64.
    pub fn trials(&mut self) -> Vec<Trial> {
        let mut trials = Vec::new();
        for (types, attrs) in self.rules.registry.op(self.vjp.op).instances() {
            let (types, attrs) = in_f64(types, attrs);
            match Trial::new(self.vjp, self.rules, &types, &attrs) {
                Ok(trial) => trials.extend(trial),
                Err(refusal) => self.findings.refuse(*refusal),
            }
        }
        // Types that do not differ but in precision are one.
        trials.dedup_by(|b, a| a.graph == b.graph);
        trials
    }

    fn first_order(&mut self) {
        let trials = self.trials();
        if trials.is_empty() && !self.findings.is_refused() {
            self.findings.not_checked = Some("it covers no instance of its operator".into());
        }
        if self.findings.is_refused() || trials.is_empty() {
            return;
        }
        let mut wanted: Vec<bool> = vec![false; self.vjp.conclusions.len()];
        for trial in &trials {
            for (i, operand) in trial.operands.iter().enumerate() {
                let stated = trial.conclusions[i].is_some() || self.vjp.not_a_derivative.is_none();
                wanted[trial.params[i]] |= trial.graph.ty(*operand).dtype.is_float() && stated;
            }
        }
        if self.vjp.not_a_derivative.is_some() {
            self.policy(&wanted);
        } else {
            self.sample(&trials, &wanted);
        }
        if !self.findings.is_refused() {
            self.examples();
        }
    }

    fn sample(&mut self, trials: &[Trial], wanted: &[bool]) {
        'rounds: for round in 0..ROUNDS {
            for trial in trials {
                let enough = wanted.iter().zip(&self.compared).all(|(w, n)| !w || *n >= POINTS);
                if round >= DRAWS.len() && enough {
                    break 'rounds;
                }
                self.point(trial, DRAWS[round % DRAWS.len()]);
                if self.findings.is_refused() {
                    return;
                }
            }
        }
        // Some kinks are rare: NaN, a tie of zeros.
        for round in 0..KINK_ROUNDS {
            for trial in trials {
                if self.kinks_met.iter().all(|met| *met >= KINK_POINTS) {
                    return self.enough(wanted);
                }
                self.point(trial, KINK_DRAWS[round % KINK_DRAWS.len()]);
                if self.findings.is_refused() {
                    return;
                }
            }
        }
        self.enough(wanted);
    }

    /// Random inputs of a trial.
    pub fn draw(&mut self, trial: &Trial, draw: Draw) -> Vec<Array> {
        let bounds = integer_bounds(&trial.graph);
        let mut inputs = Vec::new();
        for (i, node) in trial.operands.iter().enumerate() {
            let bound = bounds.get(node).copied().unwrap_or(2);
            inputs.push(array(trial.graph.ty(*node), draw, &trial.limits[i], bound, &mut self.random));
        }
        // A cotangent of both signs, no element of which is small.
        let ty = trial.graph.ty(trial.cotangent);
        let mut g = array(ty, Draw::Positive(1.0), &Limits::default(), 1, &mut self.random);
        if let Values::Float(v) = &mut g.values {
            v.iter_mut().enumerate().for_each(|(i, g)| *g = if i % 3 == 1 { -0.5 - *g } else { 0.5 + *g });
        }
        inputs.push(g);
        inputs
    }

    /// Compares all conclusions at one point.
    fn point(&mut self, trial: &Trial, draw: Draw) {
        let inputs = self.draw(trial, draw);
        self.compare(trial, inputs, draw);
    }

    fn compare(&mut self, trial: &Trial, inputs: Vec<Array>, draw: Draw) {
        let registry = &self.rules.registry;
        let Ok(mut evaluator) = Evaluator::new(&trial.graph, registry, inputs.clone(), Precision::Double) else {
            return;
        };
        // A sampled index out of its bound is no point.
        if evaluator.evaluate().is_err() {
            return;
        }
        for operand in 0..trial.operands.len() {
            if !trial.graph.ty(trial.operands[operand]).dtype.is_float() {
                continue;
            }
            let pointwise = trial.is_pointwise(registry, operand);
            let (special, beside) = (draw == Draw::Special, draw == Draw::Near);
            let (evaluator, inputs, sample) = (&evaluator, &inputs, Sample::Some);
            let comparison = Comparison { trial, evaluator, inputs, operand, special, beside, pointwise, sample };
            comparison.run(self);
            if self.findings.is_refused() {
                return;
            }
        }
    }

    /// Were all conclusions and kinks met often enough?
    fn enough(&mut self, wanted: &[bool]) {
        let names: Vec<&str> = self.rules.registry.op(self.vjp.op).signature().operand_names().collect();
        let head = &self.vjp.head;
        self.findings.points =
            wanted.iter().zip(&self.compared).filter(|(w, _)| **w).map(|(_, n)| *n).min().unwrap_or(0);
        for (i, n) in self.compared.iter().enumerate() {
            if wanted[i] && *n < POINTS {
                let name = names.get(i).copied().unwrap_or("x");
                return self.findings.refuse(
                    Diagnostic::error("E0907", format!("`{}` could be compared at {n} points only", head.rule.name))
                        .at(head.span, format!("{POINTS} points are asked for `g_{name}`"))
                        .note("elsewhere the operator has no finite value, or no difference quotient that settles")
                        .help("say where the rule holds by `domain` lines, so that points are drawn there"),
                );
            }
        }
        for (kink, met) in self.vjp.kinks.iter().zip(&self.kinks_met) {
            if *met == 0 {
                return self.findings.refuse(
                    Diagnostic::error("E0903", format!("no sampled point has the kink of `{}`", head.rule.name))
                        .at(kink.condition.span, "never true")
                        .note("points are drawn at random, at multiples of 0.5 from -2 to 2, at ties of operands, at infinities and NaN")
                        .help("mend the condition, or remove the line"),
                );
            }
        }
        self.findings.kinks = self.kinks_met.iter().sum();
    }

    /// A rule that is by intent no derivative: its examples are all there is to hold it against.
    fn policy(&mut self, wanted: &[bool]) {
        let head = &self.vjp.head;
        let concludes = wanted.iter().any(|w| *w);
        let shown = head.examples.iter().any(|e| matches!(e.kind, ExampleKind::Conclusion { .. }));
        if concludes && !shown {
            self.findings.refuse(
                Diagnostic::error(
                    "E0907",
                    format!("`{}` says that it is no derivative, and not what it is", head.rule.name),
                )
                .at(head.span, "nothing to verify it by")
                .help("state its conclusion at a point: `example x == 0.3: g_x = 1.0`"),
            );
        }
        self.findings.policy = true;
    }

    fn examples(&mut self) {
        for example in &self.vjp.head.examples {
            match &example.kind {
                ExampleKind::Call { operands, attrs } => self.example_call(example, operands, attrs),
                ExampleKind::Conclusion { tensors, attrs, operand, value } => {
                    if let Err(refusal) = self.example_conclusion(example.span, tensors, attrs, *operand, value) {
                        self.findings.refuse(*refusal);
                    }
                }
                _ => {
                    if let Err(refusal) = super::example::closed(example, self.rules) {
                        self.findings.refuse(*refusal);
                    }
                }
            }
            if self.findings.is_refused() {
                return;
            }
            self.findings.examples += 1;
        }
    }

    fn example_call(&mut self, example: &Example, operands: &[Closed], attrs: &[AttrValue]) {
        let mut values = Vec::new();
        for operand in operands {
            match super::example::value(operand, self.rules) {
                Ok(value) => values.push(value),
                Err(refusal) => return self.findings.refuse(*refusal),
            }
        }
        let types: Vec<TensorType> = values.iter().map(|(ty, _)| ty.clone()).collect();
        let trial = match Trial::new(self.vjp, self.rules, &types, attrs) {
            Ok(Some(trial)) => trial,
            Ok(None) => {
                return self.findings.refuse(
                    Diagnostic::error("E0906", "the rule does not apply to this example")
                        .at(example.span, "not a call that the rule covers")
                        .help("mend the example; its types must be those of the operator"),
                );
            }
            Err(refusal) => return self.findings.refuse(*refusal),
        };
        let mut inputs = self.draw(&trial, Draw::Normal(1.0));
        for (slot, (_, value)) in inputs.iter_mut().zip(values) {
            *slot = value;
        }
        self.compare(&trial, inputs, Draw::Normal(1.0));
    }

    fn example_conclusion(
        &mut self,
        span: Span,
        tensors: &[(VarId, Closed)],
        attrs: &[(VarId, AttrValue)],
        operand: usize,
        value: &Closed,
    ) -> Result<(), Box<Diagnostic>> {
        let vjp = self.vjp;
        let fault = |what: String| {
            Box::new(Diagnostic::error("E0906", what).at(span, "this example").help("mend the example, or the rule"))
        };
        let mut given: BTreeMap<u32, (TensorType, Array)> = BTreeMap::new();
        for (var, closed) in tensors {
            given.insert(var.0, super::example::value(closed, self.rules)?);
        }
        let (mut types, mut arrays) = (Vec::new(), Vec::new());
        for var in &vjp.operands {
            let (ty, array) = given
                .get(&var.0)
                .cloned()
                .ok_or_else(|| fault(format!("the example does not give `{}`", vjp.head.vars[var.0 as usize].name)))?;
            types.push(ty);
            arrays.push(array);
        }
        let mut values = Vec::new();
        for (pattern, (name, _, default)) in vjp.attrs.iter().zip(self.rules.registry.op(vjp.op).signature().attrs()) {
            values.push(match pattern {
                crate::rules::AttrPattern::Const(v) => v.clone(),
                crate::rules::AttrPattern::Var(var) => {
                    let stated = attrs.iter().find(|(v, _)| v == var).map(|(_, value)| value.clone());
                    let default = default.map(|d| d.value(types.first().map_or(0, TensorType::rank)));
                    stated.or(default).ok_or_else(|| fault(format!("the example does not give `{name}`")))?
                }
            });
        }
        let trial = Trial::new(self.vjp, self.rules, &types, &values)?
            .ok_or_else(|| fault("the rule does not apply to this example".into()))?;
        let ty = trial.graph.ty(trial.cotangent).clone();
        arrays.push(match given.get(&vjp.cotangent.0) {
            Some((found, array)) if *found == ty => array.clone(),
            Some((found, _)) => return Err(fault(format!("the cotangent must be {ty}, not {found}"))),
            None => Array::new(ty.shape.clone(), Values::Float(vec![1.0; ty.shape.elements() as usize])),
        });
        let (_, wanted) = super::example::value(value, self.rules)?;
        let found = match trial.conclusions[operand] {
            Some(node) => {
                let evaluator = Evaluator::new(&trial.graph, &self.rules.registry, arrays, Precision::Double);
                let mut evaluator = evaluator.map_err(|e| fault(e.to_string()))?;
                evaluator.require(node).map_err(|e| fault(e.to_string()))?.clone()
            }
            None => return Err(fault("the conclusion is `none`".into())),
        };
        super::example::agree(&found, &wanted).map_err(|(found, wanted)| {
            Box::new(
                Diagnostic::error("E0906", format!("an example of `{}` does not hold", vjp.head.rule.name))
                    .at(span, format!("the conclusion here is {}", number(found)))
                    .note(format!("stated is {}", number(wanted)))
                    .help("mend the example, or the rule"),
            )
        })
    }
}

pub fn conclusion_span(vjp: &Vjp, operand: usize) -> Span {
    match &vjp.conclusions[operand] {
        Conclusion::Cotangent(term) => term.span,
        Conclusion::NoCotangent(span) => *span,
    }
}
