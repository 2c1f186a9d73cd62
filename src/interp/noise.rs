//! What rounding may do to a result, measured: Monte Carlo arithmetic (Parker, 1997).
//!
//! Two correct engines differ, because sums may be added up in another order, functions have errors of a few ULP and
//! rewrites round elsewhere. How much of that reaches a result depends on the program and its inputs, so it is measured:
//! the program is evaluated several times, and every operation that rounds gets an error of its own, of up to
//! `ULPS` units in the last place. The results of all runs, compared with each other, say what may be asked of an
//! engine ([`Spread`](super::expected::Spread)):
//!
//! - where nothing rounds, the runs are equal and so must the engine be, bit by bit. Dyadic inputs give such programs;
//! - where the runs differ, so may the engine, by some multiple of their spread: ill-conditioned elements are
//!   compared loosely and all others tightly;
//! - where the runs decide differently (a comparison, a truncation, an overflow), rounding decides, and nothing can be
//!   asked. Errors break what is equal by a coincidence of exact values (`a - b + b - a == 0`), and rounding may keep
//!   it, so the run in f64 is one of the runs.
//!
//! Errors belong to one loop of an operator's kernel, so that what rounds inside an operator is covered as well. Equal
//! elements get equal errors, so that ties stay ties wherever engines keep them: all engines compute equal elements
//! of one result in the same way, but for sums.

use std::cell::Cell;

use super::evaluate::{InterpError, MAX_ELEMENTS};
use super::kernel::{self, KernelError};
use crate::ir::array::{linear, points};
use crate::ir::kernel::{BinaryFn, Combine, Loop, MapDim, Read, Scalar, Source, UnaryFn, identity};
use crate::ir::operator::Eval;
use crate::ir::{
    Array, Call, Check, DType, EvalError, Graph, Kernel, NodeKind, OutOfMemory, Precision, Registry, Shape, TensorType,
    Values, memory,
};

/// The error of an operation, in units in the last place.
const ULPS: f64 = 4.0;

/// Sums of more terms in all are not looked at term by term: whether one of them is exact is not known then.
const LISTED: u64 = 1 << 20;

/// An evaluation with errors.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    /// Chooses the errors.
    pub seed: u64,
    /// In which precision operations round.
    pub precision: Precision,
    /// What sign zeros have that an operation computes.
    pub zeros: Zeros,
}

/// Signs of computed zeros. Rewrites that are equal over the reals may change them, all others not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Zeros {
    Computed,
    Positive,
    Negative,
    Random,
}

/// What an evaluation with errors gave.
pub struct Run {
    /// The outputs, or the message of a trap.
    pub outcome: Result<Vec<Array>, String>,
    /// Does a value, if not rounded, leave the range of its dtype? Then the program means something else in f64.
    pub leaves_range: bool,
}

/// Evaluates a program with errors. Composites must have been expanded.
///
/// # Errors
/// Inputs that do not fit; values too large to keep, or more than memory suffices for. A trap is an outcome.
pub fn evaluate(graph: &Graph, registry: &Registry, inputs: &[Array], noise: Noise) -> Result<Run, InterpError> {
    if inputs.len() != graph.inputs.len() {
        return Err(InterpError::InputCount { wanted: graph.inputs.len(), given: inputs.len() });
    }
    let leaves_range = Cell::new(false);
    let mut values: Vec<Option<Array>> = vec![None; graph.len()];
    for (id, input) in graph.inputs.iter().zip(inputs) {
        values[id.index()] = Some(input.copy()?);
    }
    let live = graph.live();
    for (id, node) in graph.iter() {
        let NodeKind::Op { op, operands, .. } = &node.kind else { continue };
        // What an index out of bounds has left without a value, has none; a check will speak about it.
        let Some(args) = operands.iter().map(|o| values[o.index()].as_ref()).collect::<Option<Vec<_>>>() else {
            continue;
        };
        if !live[id.index()] {
            continue;
        }
        if node.ty.shape.elements() > MAX_ELEMENTS {
            return Err(InterpError::TooLarge { ty: node.ty.clone() });
        }
        let value = graph.with_call(id, |_, call| {
            let operator = registry.op(*op);
            let salt = mix(noise.seed ^ mix(id.index() as u64));
            let noisy = Noisy { noise, salt, leaves_range: &leaves_range };
            match operator.kernel(call, &node.ty) {
                Kernel::Loops(loops) if operator.bound(call).is_none() => noisy.loops(&loops, call, &args, &node.ty),
                // Moves elements.
                _ => {
                    let eval = Eval { call, args: &args, result: &node.ty, precision: noise.precision };
                    match operator.reference(&eval) {
                        Ok(value) => Ok(Some(value)),
                        Err(EvalError::Trap(_)) => Ok(None),
                        Err(EvalError::OutOfMemory(error)) => Err(error),
                    }
                }
            }
        });
        values[id.index()] =
            value.transpose().map_err(|error| InterpError::ValueOutOfMemory { ty: node.ty.clone(), error })?.flatten();
    }
    // Indices that an earlier trap has left without a value are of no check that speaks.
    let fails = |check: &&Check| match &values[check.indices.index()] {
        Some(indices) => !indices.ints().iter().all(|i| u64::try_from(*i).is_ok_and(|i| i < check.size)),
        None => false,
    };
    let outcome = match graph.checks.iter().find(fails) {
        Some(check) => Err(check.message()),
        None => {
            let copy = |value: &Option<Array>| {
                value.as_ref().ok_or(InterpError::NotDifferentiated)?.copy().map_err(InterpError::from)
            };
            Ok(graph.outputs.iter().map(|o| copy(&values[o.node.index()])).collect::<Result<_, _>>()?)
        }
    };
    Ok(Run { outcome, leaves_range: leaves_range.get() })
}

/// The errors of one node.
struct Noisy<'a> {
    noise: Noise,
    salt: u64,
    leaves_range: &'a Cell<bool>,
}

impl Noisy<'_> {
    /// `None` for a kernel that is not one: a fault of its operator, which has no value then.
    fn loops(
        &self,
        loops: &[Loop],
        call: Call<'_>,
        args: &[&Array],
        result: &TensorType,
    ) -> Result<Option<Array>, OutOfMemory> {
        let operands = args.len();
        let mut types: Vec<TensorType> = call.operands.iter().map(|t| (*t).clone()).collect();
        let mut made: Vec<Array> = Vec::with_capacity(loops.len());
        for (i, l) in loops.iter().enumerate() {
            let Ok(shape) = Shape::new(l.shape.clone()) else { return Ok(None) };
            let ty = TensorType::new(l.dtype, shape, result.placement);
            // Points that are visited in order round in that order, at every level; those of other loops get one error.
            let precision = if l.sequence.is_some() { self.noise.precision } else { Precision::Double };
            // Earlier loops are copies of what they gave, errors included.
            let copies = (0..i).map(|j| copy(&loops[j], operands + j));
            let run = |last: Loop, ty: &TensorType| {
                let kernel = Kernel::Loops(copies.clone().chain([last]).collect());
                let types: Vec<&TensorType> = types.iter().collect();
                let arrays: Vec<&Array> = args.iter().copied().chain(&made).collect();
                let call = Call { operands: &types, attrs: call.attrs };
                match kernel::run(&kernel, call, &arrays, ty, precision) {
                    Ok(array) => Ok(Some(array)),
                    Err(KernelError::OutOfMemory(error)) => Err(error),
                    Err(_) => Ok(None),
                }
            };
            let Some(mut array) = run(l.clone(), &ty)? else { return Ok(None) };
            let effect = effect(l);
            if ty.dtype.is_float() {
                let sums = if l.reduce != Some(Combine::Add) || l.reduction_dims().is_empty() {
                    None
                } else if l.points() <= LISTED {
                    let Ok(shape) = Shape::new(l.domain.clone()) else { return Ok(None) };
                    let terms = run(terms(l), &TensorType::new(l.dtype, shape, result.placement))?;
                    let Some(terms) = terms else { return Ok(None) };
                    Some(sums(l, &terms)?)
                } else {
                    let (Some(sizes), Some(squares)) = (run(sizes(l), &ty)?, run(squares(l), &ty)?) else {
                        return Ok(None);
                    };
                    let sum = |(size, square): (&f64, &f64)| Sum {
                        exact: *size == 0.0,
                        root_of_squares: square.sqrt(),
                        magnitude: *size,
                    };
                    let pairs = sizes.floats().iter().zip(squares.floats());
                    Some(memory::collect(sizes.values.len() as u64, pairs.map(sum))?)
                };
                self.disturb(&mut array, ty.dtype, effect, i as u64, sums.as_deref());
            }
            types.push(ty);
            made.push(array);
        }
        Ok(made.pop())
    }

    /// Gives every element that was rounded its error. `sums` are there if the loop adds up.
    fn disturb(&self, array: &mut Array, dtype: DType, effect: Effect, stage: u64, sums: Option<&[Sum]>) {
        let Values::Float(values) = &mut array.values else { return };
        let format = Format::of(dtype);
        // In f64 the same operations round, but finer.
        let finer = if self.noise.precision == Precision::Double {
            Format::of(DType::F64).epsilon / format.epsilon
        } else {
            1.0
        };
        for (i, v) in values.iter_mut().enumerate() {
            let size = match sums.map(|s| s[i]) {
                Some(sum) => sum.magnitude,
                None => v.abs(),
            };
            if size.is_finite() && (format.round(size).is_infinite() || *v != 0.0 && v.abs() < format.normal) {
                self.leaves_range.set(true);
            }
            // Sums of equal terms may be added up in different order; everything else is a function of its value.
            let own = if sums.is_some() { i as u64 } else { v.to_bits() };
            let random = mix(self.salt ^ mix(stage ^ mix(own)));
            let scale = match sums.map(|s| s[i]) {
                Some(sum) => (!sum.exact).then_some(v.abs() + sum.root_of_squares),
                None => (effect == Effect::Rounds && format.was_rounded(*v)).then_some(v.abs()),
            };
            if let Some(scale) = scale.filter(|s| s.is_finite()) {
                // Never much smaller than it may be: a few runs must show it.
                let size = 0.5 + (random >> 12) as f64 / (1u64 << 53) as f64;
                let error = if random & 2 == 0 { size } else { -size };
                *v += error * ULPS * finer * (scale * format.epsilon).max(format.least);
            }
            *v = self.noise.precision.round(dtype, *v);
            if *v == 0.0 && effect != Effect::Moves {
                *v = match self.noise.zeros {
                    Zeros::Computed => *v,
                    Zeros::Positive => 0.0,
                    Zeros::Negative => -0.0,
                    Zeros::Random => [0.0, -0.0][(random & 1) as usize],
                };
            }
        }
    }
}

/// A number format.
struct Format {
    dtype: DType,
    epsilon: f64,
    /// The least normal number and the least subnormal one.
    normal: f64,
    least: f64,
}

impl Format {
    fn of(dtype: DType) -> Format {
        match dtype {
            DType::F32 => Format { dtype, epsilon: 2f64.powi(-23), normal: 2f64.powi(-126), least: 2f64.powi(-149) },
            _ => Format { dtype, epsilon: 2f64.powi(-52), normal: f64::MIN_POSITIVE, least: 2f64.powi(-1074) },
        }
    }

    fn round(&self, v: f64) -> f64 {
        Precision::Typed.round(self.dtype, v)
    }

    /// Is `v`, a result in f64, or would it be, rounded? In F32 that is known. In F64 it shows in the bits: rounding
    /// leaves none of the low ones 0, but for one result in a million.
    fn was_rounded(&self, v: f64) -> bool {
        if v == 0.0 || !v.is_finite() {
            false
        } else if self.dtype == DType::F32 {
            self.round(v) != v
        } else {
            v.abs() < self.normal || v.to_bits().trailing_zeros() < 20
        }
    }
}

/// A good mixture of all bits (the finaliser of splitmix64).
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x ^ (x >> 31)).wrapping_add(0x9E37_79B9_7F4A_7C15)
}

/// What a loop does to floats.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    /// Moves, compares and chooses them.
    Moves,
    /// Changes signs.
    Negates,
    Rounds,
}

fn effect(l: &Loop) -> Effect {
    match l.reduce {
        Some(Combine::Add | Combine::Mul) => Effect::Rounds,
        Some(Combine::Max | Combine::Min) | None => scalar_effect(&l.body),
    }
}

fn scalar_effect(body: &Scalar) -> Effect {
    match body {
        Scalar::Input(_)
        | Scalar::Index(_)
        | Scalar::Constant(..)
        | Scalar::Previous
        | Scalar::Gather(..)
        | Scalar::Compare(..) => Effect::Moves,
        Scalar::Cast(..) => Effect::Rounds,
        Scalar::Unary(f, x) => match f {
            f if f.is_transcendental() => Effect::Rounds,
            UnaryFn::Sqrt | UnaryFn::Rsqrt => Effect::Rounds,
            UnaryFn::Neg => Effect::Negates.max(scalar_effect(x)),
            _ => scalar_effect(x),
        },
        Scalar::Binary(f, x, y) => match f {
            BinaryFn::Add | BinaryFn::Sub | BinaryFn::Mul | BinaryFn::Div => Effect::Rounds,
            BinaryFn::Pow | BinaryFn::Atan2 => Effect::Rounds,
            BinaryFn::Max | BinaryFn::Min | BinaryFn::And | BinaryFn::Or => scalar_effect(x).max(scalar_effect(y)),
        },
        Scalar::Select(_, x, y) => scalar_effect(x).max(scalar_effect(y)),
    }
}

/// A loop that gives operand `from`, of the shape that `l` computes.
fn copy(l: &Loop, from: usize) -> Loop {
    let mut copy = Loop::elementwise(&l.shape, l.dtype, 0, Scalar::Input(0));
    copy.inputs = vec![Read::new(Source::Operand(from), identity(l.shape.len()))];
    copy
}

/// The loop that gives what `l` adds up.
fn terms(l: &Loop) -> Loop {
    Loop { shape: l.domain.clone(), result_map: identity(l.domain.len()), reduce: None, ..l.clone() }
}

/// The loop that adds up the magnitudes of what `l` adds up.
fn sizes(l: &Loop) -> Loop {
    Loop { body: Scalar::unary(UnaryFn::Abs, l.body.clone()), ..l.clone() }
}

/// The loop that adds up their squares.
fn squares(l: &Loop) -> Loop {
    Loop { body: Scalar::binary(BinaryFn::Mul, l.body.clone(), l.body.clone()), ..l.clone() }
}

/// One sum.
#[derive(Clone, Copy)]
struct Sum {
    /// In every order. Otherwise rounding is relative to the sum itself and to `root_of_squares`.
    exact: bool,
    root_of_squares: f64,
    /// What the terms add up to without their signs.
    magnitude: f64,
}

/// The sums of a loop, from their terms. A sum is exact in every order if its terms are multiples of one unit and all of
/// them together are no more units than the format counts.
fn sums(l: &Loop, terms: &Array) -> Result<Vec<Sum>, OutOfMemory> {
    let format = Format::of(l.dtype);
    let units = 2.0 / format.epsilon;
    let size = l.shape.iter().product::<u64>();
    let mut sums = memory::filled(size, Sum { exact: true, root_of_squares: 0.0, magnitude: 0.0 })?;
    let mut unit = memory::filled(size, f64::INFINITY)?;
    for (point, term) in points(&l.domain).zip(terms.floats()) {
        let at = |m: &MapDim| if let MapDim::Dim(d) = m { point[*d] } else { 0 };
        let place = linear(&l.shape, l.result_map.iter().map(at));
        unit[place] = f64::min(unit[place], lowest_bit(*term));
        let sum = &mut sums[place];
        sum.magnitude += term.abs();
        sum.root_of_squares = sum.root_of_squares.hypot(*term);
        sum.exact &= !format.was_rounded(*term);
    }
    for (sum, unit) in sums.iter_mut().zip(unit) {
        sum.exact &= sum.magnitude == 0.0 || sum.magnitude <= units * unit;
    }
    Ok(sums)
}

/// The value of the lowest bit that is set, infinite if none is.
fn lowest_bit(v: f64) -> f64 {
    if v == 0.0 || !v.is_finite() {
        return f64::INFINITY;
    }
    let bits = v.to_bits();
    let exponent = (bits >> 52 & 0x7FF) as i32;
    let significand = bits & ((1 << 52) - 1) | if exponent == 0 { 0 } else { 1 << 52 };
    2f64.powi(exponent.max(1) - 1075 + significand.trailing_zeros() as i32)
}
