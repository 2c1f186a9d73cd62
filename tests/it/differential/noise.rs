//! What rounding may do to a result, measured: Monte Carlo arithmetic (Parker, 1997).
//!
//! Two correct engines differ, because sums may be added up in another order, functions have errors of a few ULP and
//! rewrites round elsewhere. How much of that reaches a result depends on the program and its inputs, so it is measured:
//! the program is evaluated several times, and every operation that rounds gets an error of its own, of up to
//! [`ULPS`] units in the last place. The results of all runs, compared with each other, say what may be asked of an
//! engine ([`Spread`]):
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

use kina_ad::interp::kernel;
use kina_ad::ir::array::{linear, points};
use kina_ad::ir::kernel::{BinaryFn, Combine, Loop, MapDim, Read, Scalar, Source, UnaryFn, identity};
use kina_ad::ir::operator::Eval;
use kina_ad::ir::{Array, Call, Check, DType, Graph, Kernel, NodeKind, Precision, Registry, Shape, TensorType, Values};

/// The error of an operation, in units in the last place.
const ULPS: f64 = 4.0;

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

/// Evaluates a program with errors.
pub fn evaluate(graph: &Graph, registry: &Registry, inputs: &[Array], noise: Noise) -> Run {
    let leaves_range = Cell::new(false);
    let mut values: Vec<Option<Array>> = vec![None; graph.len()];
    for (id, input) in graph.inputs.iter().zip(inputs) {
        values[id.index()] = Some(input.clone());
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
        let value = graph.with_call(id, |_, call| {
            let operator = registry.op(*op);
            let salt = mix(noise.seed ^ mix(id.index() as u64));
            let noisy = Noisy { noise, salt, leaves_range: &leaves_range };
            match operator.kernel(call, &node.ty) {
                Kernel::Loops(loops) if operator.bound(call).is_none() => {
                    Some(noisy.loops(&loops, call, &args, &node.ty))
                }
                // Moves elements.
                _ => {
                    let eval = Eval { call, args: &args, result: &node.ty, precision: noise.precision };
                    operator.reference(&eval).ok()
                }
            }
        });
        values[id.index()] = value.flatten();
    }
    let fails = |check: &&Check| {
        let indices = values[check.indices.index()].as_ref().expect("a check before this one has failed").ints();
        !indices.iter().all(|i| (0..check.size as i64).contains(i))
    };
    let outcome = match graph.checks.iter().find(fails) {
        Some(check) => Err(check.message()),
        None => Ok(graph.outputs.iter().map(|o| values[o.node.index()].clone().expect("all checks passed")).collect()),
    };
    Run { outcome, leaves_range: leaves_range.get() }
}

/// The errors of one node.
struct Noisy<'a> {
    noise: Noise,
    salt: u64,
    leaves_range: &'a Cell<bool>,
}

impl Noisy<'_> {
    fn loops(&self, loops: &[Loop], call: Call<'_>, args: &[&Array], result: &TensorType) -> Array {
        let operands = args.len();
        let mut types: Vec<TensorType> = call.operands.iter().map(|t| (*t).clone()).collect();
        let mut arrays: Vec<Array> = args.iter().map(|a| (*a).clone()).collect();
        for (i, l) in loops.iter().enumerate() {
            let shape = Shape::new(l.shape.clone()).expect("a temporary's shape");
            let ty = TensorType::new(l.dtype, shape, result.placement);
            // Points that are visited in order round in that order, at every level; those of other loops get one error.
            let precision = if l.sequence.is_some() { self.noise.precision } else { Precision::Double };
            // Earlier loops are copies of what they gave, errors included.
            let copies = (0..i).map(|j| copy(&loops[j], operands + j));
            let run = |last: Loop, ty: &TensorType| {
                let kernel = Kernel::Loops(copies.clone().chain([last]).collect());
                let types: Vec<&TensorType> = types.iter().collect();
                let arrays: Vec<&Array> = arrays.iter().collect();
                let call = Call { operands: &types, attrs: call.attrs };
                kernel::run(&kernel, call, &arrays, ty, precision).expect("a kernel that is tested")
            };
            let mut array = run(l.clone(), &ty);
            let effect = effect(l);
            if ty.dtype.is_float() {
                let terms = (l.reduce == Some(Combine::Add) && !l.reduction_dims().is_empty()).then(|| {
                    let shape = Shape::new(l.domain.clone()).expect("a domain as large as an operand");
                    run(terms(l), &TensorType::new(l.dtype, shape, result.placement))
                });
                let sums = terms.map(|terms| sums(l, &terms));
                self.disturb(&mut array, ty.dtype, effect, i as u64, sums.as_deref());
            }
            types.push(ty);
            arrays.push(array);
        }
        arrays.pop().expect("a kernel has loops")
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
fn sums(l: &Loop, terms: &Array) -> Vec<Sum> {
    let format = Format::of(l.dtype);
    let units = 2.0 / format.epsilon;
    let size = l.shape.iter().product::<u64>() as usize;
    let mut sums = vec![Sum { exact: true, root_of_squares: 0.0, magnitude: 0.0 }; size];
    let mut unit = vec![f64::INFINITY; size];
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
    sums
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

/// What may be asked of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// This value, the sign of a zero included.
    Exactly(f64),
    /// This value, but a zero of any sign.
    Equal(f64),
    /// About this value.
    Within { value: f64, radius: f64 },
    /// Rounding decides.
    Open,
}

/// How far an engine may be from the reference, in multiples of what the runs differ by.
const FACTOR: f64 = 8.0;

/// What may be asked of an element that is `reference` without errors and one of `runs` with errors.
pub fn spread(dtype: DType, reference: f64, runs: impl Iterator<Item = f64>) -> Spread {
    let kind = |v: f64| if v.is_finite() { 0.0 } else { v };
    let (mut radius, mut signs_differ) = (0.0, false);
    for v in runs {
        if kind(v).to_bits() != kind(reference).to_bits() && !(v.is_nan() && reference.is_nan()) {
            return Spread::Open;
        }
        if v.is_finite() {
            radius = f64::max(radius, (v - reference).abs());
            signs_differ |= v.is_sign_negative() != reference.is_sign_negative();
        }
    }
    if radius > 0.0 {
        return Spread::Within { value: reference, radius: FACTOR * radius + 4.0 * Format::of(dtype).least };
    }
    if signs_differ { Spread::Equal(reference) } else { Spread::Exactly(reference) }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Spread::Exactly(value) | Spread::Equal(value) => write!(f, "{value:e}"),
            Spread::Within { value, radius } => write!(f, "{value:e} +- {radius:e}"),
            Spread::Open => f.write_str("anything"),
        }
    }
}

impl Spread {
    /// Does an engine's element satisfy it?
    pub fn admits(self, v: f64) -> bool {
        match self {
            Spread::Exactly(value) => v.to_bits() == value.to_bits() || v.is_nan() && value.is_nan(),
            Spread::Equal(value) => v == value || v.is_nan() && value.is_nan(),
            Spread::Within { value, radius } => (v - value).abs() <= radius,
            Spread::Open => true,
        }
    }
}
