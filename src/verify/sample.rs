//! Points at which rules are tried.

use std::hash::Hasher;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rustc_hash::FxHasher;

use crate::ir::{Array, DType, Precision, TensorType, Values};
use crate::rules::DomainCompare;

/// How the floats of one array are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// Normal, of that deviation.
    Normal(f64),
    /// Its magnitude: for functions of positive numbers.
    Positive(f64),
    /// Uniform in -0.95..0.95: for functions of small numbers.
    Unit,
    /// Multiples of a half between -2 and 2: where kinks and ties are.
    Grid,
    /// A little beside those, by 1e-2 to 1e-6.
    Near,
    /// Magnitudes from 1e-3 to 1e3, of either sign.
    Wide,
    /// Close to one large number, a few units in the last place apart.
    Crowded(f64),
    /// The same, of either sign, among ordinary numbers: large numbers whose sum is small.
    Opposed(f64),
    /// Zeros of both signs, infinities, NaN, the greatest, least and subnormal numbers, among ordinary ones.
    Special,
    /// The same, without NaN and infinities.
    Extreme,
    /// Stretches of -inf, as masks leave them, among ordinary numbers.
    Masked,
}

/// Where the values of a metavariable may lie, out of the rule's `domain` lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The bound, and whether it is part of the domain.
    pub lo: Option<(f64, bool)>,
    pub hi: Option<(f64, bool)>,
}

impl Limits {
    pub fn restrict(&mut self, compare: DomainCompare, bound: f64) {
        let (slot, inclusive, greater) = match compare {
            DomainCompare::Gt => (&mut self.lo, false, true),
            DomainCompare::Ge => (&mut self.lo, true, true),
            DomainCompare::Lt => (&mut self.hi, false, false),
            DomainCompare::Le => (&mut self.hi, true, false),
        };
        let tighter = match *slot {
            None => true,
            Some((old, included)) => {
                if bound == old {
                    included && !inclusive
                } else {
                    (bound > old) == greater
                }
            }
        };
        if tighter {
            *slot = Some((bound, inclusive));
        }
    }

    pub fn contains(&self, v: f64) -> bool {
        let above = self.lo.is_none_or(|(lo, inclusive)| v > lo || (inclusive && v == lo));
        let below = self.hi.is_none_or(|(hi, inclusive)| v < hi || (inclusive && v == hi));
        // NaN is in no domain; without one it may occur.
        let free = self.lo.is_none() && self.hi.is_none();
        above && below && (free || !v.is_nan())
    }

    /// A whole number of the domain made of one that is not negative; that one itself where the domain has none.
    fn whole(&self, n: i64) -> i64 {
        let from = |bound: Option<(f64, bool)>, steps: i64| {
            let start = bound.filter(|(b, _)| b.abs() < 1e15)?.0 as i64;
            (start - 1..=start + 1).map(|s| s + steps).find(|v| self.contains(*v as f64))
        };
        match self.contains(n as f64) {
            true => n,
            false => [n, 0].into_iter().find_map(|k| from(self.lo, k).or_else(|| from(self.hi, -k))).unwrap_or(n),
        }
    }

    /// A value of the domain made of any value.
    fn bring_in(&self, v: f64) -> f64 {
        if self.contains(v) {
            return v;
        }
        // An infinite bound only says that the value is finite.
        let finite = |bound: Option<(f64, bool)>| bound.filter(|(b, _)| b.is_finite());
        let v = if v.is_nan() { 0.5 } else { v };
        let v = if v.is_infinite() { 1e30f64.copysign(v) } else { v };
        if self.contains(v) {
            return v;
        }
        let (low, high) = (finite(self.lo), finite(self.hi));
        let inside = match (low, high) {
            (Some((lo, _)), None) => lo + (v - lo).abs().min(f64::MAX),
            (None, Some((hi, _))) => hi - (hi - v).abs().min(f64::MAX),
            (Some((lo, _)), Some((hi, _))) => {
                let fraction = v.abs().fract();
                lo + (hi - lo) * if fraction.is_nan() { 0.5 } else { fraction }
            }
            (None, None) => v,
        };
        if self.contains(inside) {
            return inside;
        }
        // An excluded bound itself: the middle, or one step away from it.
        match (low, high) {
            (Some((lo, _)), Some((hi, _))) => lo + 0.5 * (hi - lo),
            (Some((lo, _)), None) => lo + lo.abs().max(1.0),
            (None, Some((hi, _))) => hi - hi.abs().max(1.0),
            (None, None) => v,
        }
    }
}

/// A generator for one rule: the same points in every run, whatever other rules there are.
pub fn generator(rule: &str, seed: u64) -> ChaCha8Rng {
    let mut hasher = FxHasher::default();
    hasher.write(rule.as_bytes());
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(hasher.finish());
    random
}

const SPECIAL: [f64; 20] = [
    f64::NAN,
    f64::NAN,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1e8,
    -1e8,
    1e-8,
    3e38,
    -3e38,
    1e-38,
    // A subnormal f32, and a subnormal f64.
    1e-42,
    1e-310,
    1.7e308,
];

fn below(random: &mut ChaCha8Rng, n: u64) -> u64 {
    random.next_u64() % n.max(1)
}

/// Uniform in 0..1.
fn unit(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn normal(random: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(random)
}

fn float(draw: Draw, dtype: DType, random: &mut ChaCha8Rng) -> f64 {
    match draw {
        Draw::Normal(scale) => scale * normal(random),
        Draw::Positive(scale) => scale * normal(random).abs() + 1e-3 * scale,
        Draw::Unit => 1.9 * unit(random) - 0.95,
        Draw::Grid => (below(random, 9) as f64 - 4.0) / 2.0,
        Draw::Near => {
            let sign = if random.next_u64() & 1 == 0 { 1.0 } else { -1.0 };
            float(Draw::Grid, dtype, random) + sign * 10f64.powf(-2.0 - 4.0 * unit(random))
        }
        Draw::Wide => {
            let sign = if random.next_u64() & 1 == 0 { 1.0 } else { -1.0 };
            sign * 10f64.powf(6.0 * unit(random) - 3.0)
        }
        Draw::Crowded(at) => {
            let step = if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
            at * (1.0 + step * below(random, 4) as f64)
        }
        Draw::Opposed(at) => {
            let v = float(Draw::Crowded(at), dtype, random);
            match below(random, 3) {
                0 => v,
                1 => -v,
                _ => normal(random),
            }
        }
        Draw::Special => match below(random, 2 * SPECIAL.len() as u64) as usize {
            i if i < SPECIAL.len() => SPECIAL[i],
            _ => normal(random),
        },
        // Whether it is masked is decided for stretches: see `array`.
        Draw::Masked => 3.0 * normal(random),
        Draw::Extreme => match below(random, 2 * SPECIAL.len() as u64) as usize {
            i if i < SPECIAL.len() && SPECIAL[i].is_finite() => SPECIAL[i],
            _ => normal(random),
        },
    }
}

/// A value of the dtype that is in the domain, if rounding has left it.
fn representable(dtype: DType, rounded: f64, limits: &Limits) -> f64 {
    let neighbours = match dtype {
        DType::F32 => [f64::from((rounded as f32).next_up()), f64::from((rounded as f32).next_down())],
        _ => [rounded.next_up(), rounded.next_down()],
    };
    std::iter::once(rounded).chain(neighbours).find(|v| limits.contains(*v)).unwrap_or(rounded)
}

/// Stretches of up to five elements, masked and not in turn.
#[derive(Default)]
struct Mask {
    masked: bool,
    left: u64,
}

impl Mask {
    fn next(&mut self, random: &mut ChaCha8Rng) -> bool {
        if self.left == 0 {
            self.masked = !self.masked;
            self.left = 1 + below(random, 5);
        }
        self.left -= 1;
        self.masked
    }
}

/// Elements of a tensor type. Floats are representable in the dtype; integers lie in `0..bound`.
pub fn array(ty: &TensorType, draw: Draw, limits: &Limits, bound: u64, random: &mut ChaCha8Rng) -> Array {
    let count = ty.shape.elements();
    // Every multiple comes in turn, so that no kink is missed by chance; the stride has no factor in common with 9.
    let (first, stride) = (below(random, 9), [1, 2, 4, 5, 7, 8][below(random, 6) as usize]);
    let mut mask = Mask::default();
    let values = match ty.dtype {
        DType::F32 | DType::F64 => Values::Float(
            (0..count)
                .map(|i| {
                    let drawn = match draw {
                        Draw::Grid => ((first + stride * i) % 9) as f64 / 2.0 - 2.0,
                        Draw::Masked if mask.next(random) => f64::NEG_INFINITY,
                        _ => float(draw, ty.dtype, random),
                    };
                    let v = limits.bring_in(drawn);
                    let rounded = Precision::Typed.round(ty.dtype, v);
                    representable(ty.dtype, rounded, limits)
                })
                .collect(),
        ),
        DType::I32 | DType::I64 => Values::Int((0..count).map(|_| limits.whole(below(random, bound) as i64)).collect()),
        DType::Bool => Values::Bool((0..count).map(|_| random.next_u64() & 1 == 0).collect()),
    };
    Array::new(ty.shape.clone(), values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Placement, Shape};

    #[test]
    fn samples_lie_in_the_domain() {
        let ty = TensorType::new(DType::F32, Shape::new(vec![500]).unwrap(), Placement::Host);
        let draws =
            [Draw::Normal(3.0), Draw::Unit, Draw::Grid, Draw::Wide, Draw::Special, Draw::Extreme, Draw::Opposed(1e8)];
        let facts: [&[(DomainCompare, f64)]; 4] = [
            &[(DomainCompare::Gt, 0.0)],
            &[(DomainCompare::Ge, -1.0), (DomainCompare::Lt, 1.0)],
            &[(DomainCompare::Le, 2.0)],
            &[(DomainCompare::Gt, 0.0), (DomainCompare::Gt, 1.0), (DomainCompare::Lt, f64::INFINITY)],
        ];
        let mut random = generator("a rule", 0);
        for facts in facts {
            let mut limits = Limits::default();
            facts.iter().for_each(|(compare, bound)| limits.restrict(*compare, *bound));
            for draw in draws {
                let sample = array(&ty, draw, &limits, 1, &mut random);
                for v in sample.floats() {
                    assert!(limits.contains(*v), "{v} of {draw:?} is not in {limits:?}");
                    assert!(v.is_nan() || f64::from(*v as f32) == *v, "{v}");
                }
            }
        }
    }

    #[test]
    fn points_do_not_depend_on_other_rules() {
        let mut first = generator("vjp exp", 0);
        let mut again = generator("vjp exp", 0);
        let mut other = generator("vjp log", 0);
        assert_eq!(first.next_u64(), again.next_u64());
        assert_ne!(first.next_u64(), other.next_u64());
    }
}
