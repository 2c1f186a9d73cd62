//! The conclusions of a VJP at the values of one call: what a search for the wrong rule asks of every call of a program.

use super::compare::{Comparison, Fault, Sample};
use super::report::Findings;
use super::trial::{Trial, in_f64};
use super::vjp::Work;
use crate::diagnostics::Diagnostic;
use crate::interp::{Demand, Evaluator, GradientProbe, InterpError, Verdict, check_gradients_to, unit_of};
use crate::ir::{Array, AttrValue, Kernel, OutOfMemory, Precision, TensorType, memory};
use crate::rules::{RuleSet, Vjp};

/// Operands of an operator that works point by point are compared at every element up to so many, and beyond at so many.
const EVERY: usize = 256;
/// Of these, so many are those that look worst from afar.
const WORST: usize = 64;
/// Elements of other operators that are compared, if there is time for them.
const ELEMENTS: u64 = 64;
/// Evaluations that settle an ordinary slope.
const EVALUATIONS: u64 = 6;
/// What random directions are asked for; an element that they point to is looked at again.
const COARSE: Demand = Demand { tolerance: 1e-6, agreement: 1e-9, constants: false, work: 0 };

/// A call of an operator with its values, all of them as floats of 64 bits.
#[derive(Debug)]
pub struct Call<'a> {
    pub types: Vec<TensorType>,
    pub attrs: &'a [AttrValue],
    pub operands: Vec<Array>,
    pub cotangent: Array,
}

/// What a comparison at one call found.
#[derive(Debug, Default)]
pub struct Compared {
    /// Elements whose slope is known.
    pub elements: usize,
    pub fault: Option<Fault>,
}

/// Compares what a VJP concludes for some operands of a call with difference quotients of the operator. `work` is how many elements
/// may be computed, roughly. Kinks are held to what the rule states. `None` where the rule does not cover the call, or the call has no
/// value.
///
/// # Errors
/// Memory that does not suffice.
pub fn compare(
    vjp: &Vjp,
    rules: &RuleSet,
    call: Call<'_>,
    operands: &[usize],
    work: u64,
    seed: u64,
) -> Result<Option<Compared>, InterpError> {
    // Constants of F32 would be rounded.
    let (types, attrs) = in_f64(call.types.clone(), call.attrs.to_vec());
    let Some(trial) = trial(vjp, rules, &types, &attrs).or_else(|| trial(vjp, rules, &call.types, call.attrs)) else {
        return Ok(None);
    };
    let mut inputs = call.operands;
    inputs.push(call.cotangent);
    let mut evaluator = Evaluator::new(&trial.graph, &rules.registry, copies(&inputs)?, Precision::Double)?;
    match evaluator.evaluate() {
        Ok(()) => {}
        Err(InterpError::Trap(_)) => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut found = Work::new(vjp, rules, seed, Findings::default());
    for operand in operands.iter().copied().filter(|o| *o < trial.operands.len()) {
        if !trial.graph.ty(trial.operands[operand]).dtype.is_float() {
            continue;
        }
        let pointwise = trial.is_pointwise(&rules.registry, operand);
        let one = One { trial: &trial, evaluator: &evaluator, inputs: &inputs, operand, pointwise };
        one.compare(&mut found, work, seed)?;
        if found.fault.is_some() {
            break;
        }
    }
    Ok(Some(Compared { elements: found.compared.iter().sum(), fault: found.fault }))
}

/// Does a rule that says that it is by intent no derivative do what it states? The refusal if not.
pub fn stated(vjp: &Vjp, rules: &RuleSet, seed: u64) -> Option<Diagnostic> {
    super::vjp::first_order(vjp, rules, seed).refusal
}

fn trial(vjp: &Vjp, rules: &RuleSet, types: &[TensorType], attrs: &[AttrValue]) -> Option<Trial> {
    Trial::new(vjp, rules, types, attrs).ok().flatten()
}

fn copies(arrays: &[Array]) -> Result<Vec<Array>, OutOfMemory> {
    arrays.iter().map(Array::copy).collect()
}

/// One operand of a call.
struct One<'a> {
    trial: &'a Trial,
    evaluator: &'a Evaluator<'a>,
    inputs: &'a [Array],
    operand: usize,
    pointwise: bool,
}

impl One<'_> {
    fn compare(&self, found: &mut Work<'_>, work: u64, seed: u64) -> Result<(), InterpError> {
        let x = self.inputs[self.operand].floats();
        let finite = (0..x.len()).filter(|i| x[*i].is_finite() && (!self.pointwise || self.is_inside(*i)));
        let finite = memory::collect(x.len() as u64, finite)?;
        // An operator that reads all elements for each asks all of them to be where the rule holds.
        if !self.pointwise && !self.is_all_inside() {
            return Ok(());
        }
        if self.pointwise {
            let list = if finite.len() <= EVERY { finite } else { self.suspects(found, &finite)? };
            self.at(found, &list);
            return Ok(());
        }
        let most = (work / (EVALUATIONS * self.points(found)).max(1)).clamp(4, ELEMENTS) as usize;
        if finite.len() <= most {
            self.at(found, &finite);
            return Ok(());
        }
        let analytic = self.analytic();
        let mut list = spread(&finite, most - 1);
        list.extend(finite.iter().copied().max_by(|a, b| size_at(analytic, *a).total_cmp(&size_at(analytic, *b))));
        list.sort_unstable();
        list.dedup();
        self.at(found, &list);
        if found.fault.is_none() {
            self.along_directions(found, work, seed)?;
        }
        Ok(())
    }

    /// Are all operands where the rule says that it holds, at one place?
    fn is_inside(&self, i: usize) -> bool {
        let mut operands = self.trial.limits.iter().zip(self.inputs);
        operands.all(|(limits, array)| array.floats().get(i).is_none_or(|v| limits.contains(*v)))
    }

    fn is_all_inside(&self) -> bool {
        let mut operands = self.trial.limits.iter().zip(self.inputs);
        operands.all(|(limits, array)| array.floats().iter().all(|v| limits.contains(*v)))
    }

    /// Looks at elements.
    fn at(&self, found: &mut Work<'_>, list: &[usize]) {
        self.comparison(Sample::These(list)).run(found);
    }

    fn comparison<'s>(&'s self, sample: Sample<'s>) -> Comparison<'s> {
        let One { trial, evaluator, inputs, operand, pointwise } = *self;
        Comparison { trial, evaluator, inputs, operand, special: false, beside: false, pointwise, sample }
    }

    /// What the rule concludes, empty for zero.
    fn analytic(&self) -> &[f64] {
        let node = self.trial.conclusions[self.operand];
        node.and_then(|node| self.evaluator.value(node)).map_or(&[][..], Array::floats)
    }

    /// Points that one evaluation of the operator computes.
    fn points(&self, found: &Work<'_>) -> u64 {
        let result = self.trial.graph.ty(self.trial.primal);
        let loops = self.trial.graph.with_call(self.trial.primal, |op, call| {
            match found.rules.registry.op(op).kernel(call, result) {
                Kernel::Loops(loops) => loops.iter().map(|l| l.points()).fold(0, u64::saturating_add),
                Kernel::Reshape | Kernel::Composite => 0,
            }
        });
        loops.unwrap_or(0).max(result.shape.elements()).max(self.inputs[self.operand].values.len() as u64)
    }

    /// Elements of a large tensor: those that look worst by one difference quotient of all of them, and others.
    fn suspects(&self, found: &Work<'_>, finite: &[usize]) -> Result<Vec<usize>, OutOfMemory> {
        const STEP: f64 = 1.0 / 512.0;
        let x = self.inputs[self.operand].floats();
        let w = self.inputs[self.trial.operands.len()].floats();
        let analytic = self.analytic();
        let comparison = self.comparison(Sample::Some);
        let mut values = Vec::new();
        for t in [-2.0 * STEP, -STEP, STEP, 2.0 * STEP] {
            let moved = memory::map(x, |x| if x.is_finite() { x + t * unit_of(*x) } else { *x })?;
            match comparison.primal_at(found, moved) {
                Some(value) => values.push(value),
                None => return Ok(spread(finite, EVERY)),
            }
        }
        let error = |i: usize| {
            let quotient = 8.0 * (values[2][i] - values[1][i]) - (values[3][i] - values[0][i]);
            let slope = w[i] * quotient / (12.0 * STEP * unit_of(x[i]));
            let given = analytic.get(i).copied().unwrap_or(0.0);
            match (slope.is_finite(), given.is_finite()) {
                (true, true) => (slope - given).abs() / slope.abs().max(given.abs()).max(f64::MIN_POSITIVE),
                (true, false) => f64::INFINITY,
                (false, _) => 0.0,
            }
        };
        let mut worst = memory::map(finite, |i| (error(*i), *i))?;
        worst.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut list = spread(finite, EVERY - WORST);
        list.extend(worst.iter().take(WORST).map(|(_, i)| *i));
        list.sort_unstable();
        list.dedup();
        Ok(list)
    }

    /// Random directions see every element. One that disagrees leads to an element, which is then looked at like the others.
    fn along_directions(&self, found: &mut Work<'_>, work: u64, seed: u64) -> Result<(), InterpError> {
        let Some(gradient) = self.trial.conclusions[self.operand] else { return Ok(()) };
        let probe = GradientProbe {
            name: "g".into(),
            primal: self.trial.primal,
            param: self.trial.operands[self.operand],
            gradient,
            cotangent: Some(self.trial.cotangent),
        };
        let demand = Demand { work, ..COARSE };
        let (graph, registry) = (&self.trial.graph, &found.rules.registry);
        let report = check_gradients_to(&demand, graph, registry, copies(self.inputs)?, &[probe], seed)?;
        for gradient in report.gradients {
            if let (Verdict::Failed, Some(element)) = (gradient.verdict, gradient.worst_at) {
                self.at(found, &[element]);
            }
        }
        Ok(())
    }
}

/// So many of a list, evenly spread.
fn spread(list: &[usize], most: usize) -> Vec<usize> {
    let step = list.len().div_ceil(most.max(1)).max(1);
    list.iter().copied().step_by(step).collect()
}

fn size_at(values: &[f64], i: usize) -> f64 {
    values.get(i).map_or(0.0, |v| v.abs())
}
