//! Points at which rules are compared: random and special ones.

use std::collections::BTreeMap;

use kina_ad::ir::{Array, DType, Graph, NodeId, Precision, TensorType, Values};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// How the floats of a point are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// -4 to 4, evenly.
    Plain,
    /// Multiples of a half between -2 and 2: kinks and ties.
    Grid,
    /// Magnitudes from 1e-12 to 1e12, whose exponentials are in range.
    Wide,
    /// -1 to 1.
    Unit,
    /// Positive, up to 20.
    Positive,
    /// One value and its neighbours.
    Crowded,
    /// Zeros of both signs, ones, infinities and NaN among ordinary ones.
    Special,
    /// Large: 10 to 1000, of either sign.
    Large,
}

pub const DRAWS: [Draw; 8] =
    [Draw::Plain, Draw::Grid, Draw::Special, Draw::Unit, Draw::Positive, Draw::Wide, Draw::Large, Draw::Crowded];

/// One infinite or NaN element decides a whole row; the others of the row are ordinary then.
const SPECIAL: [f64; 8] = [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.5];

pub struct Points {
    random: ChaCha8Rng,
}

impl Points {
    pub fn new(seed: u64) -> Points {
        Points { random: ChaCha8Rng::seed_from_u64(seed) }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n.max(1)
    }

    /// Uniform in 0..1.
    fn unit(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn sign(&mut self) -> f64 {
        if self.below(2) == 0 { 1.0 } else { -1.0 }
    }

    pub fn float(&mut self, draw: Draw) -> f64 {
        match draw {
            Draw::Plain => 8.0 * self.unit() - 4.0,
            Draw::Grid => (self.below(9) as f64 - 4.0) / 2.0,
            Draw::Wide => self.sign() * 10f64.powf(24.0 * self.unit() - 12.0),
            Draw::Unit => 2.0 * self.unit() - 1.0,
            Draw::Positive => 20.0 * self.unit(),
            Draw::Crowded => 1.0 + f64::from(f32::EPSILON) * self.below(3) as f64,
            Draw::Special => match self.below(16) as usize {
                i if i < SPECIAL.len() => SPECIAL[i],
                _ => 4.0 * self.unit() - 2.0,
            },
            Draw::Large => self.sign() * 10f64.powf(1.0 + 2.0 * self.unit()),
        }
    }

    /// Elements of a type, representable in its dtype; integers below `bound`, some of them -100 where there is none.
    pub fn array(&mut self, ty: &TensorType, draw: Draw, bound: Option<u64>, keep: &dyn Fn(f64) -> bool) -> Array {
        let n = ty.shape.elements();
        // In some special arrays only one element is special.
        let lonely = (draw == Draw::Special && self.below(2) == 0).then(|| self.below(n));
        let values = match ty.dtype {
            DType::F32 | DType::F64 => Values::Float(
                (0..n)
                    .map(|i| {
                        let draw = if lonely.is_some_and(|l| l != i) { Draw::Plain } else { draw };
                        let mut value = f64::NAN;
                        for attempt in 0..64 {
                            let draw = if attempt < 32 { draw } else { DRAWS[attempt % DRAWS.len()] };
                            value = Precision::Typed.round(ty.dtype, self.float(draw));
                            if keep(value) {
                                break;
                            }
                        }
                        value
                    })
                    .collect(),
            ),
            DType::I32 | DType::I64 => Values::Int(
                (0..n)
                    .map(|_| {
                        let mut value = 0;
                        // 0 to 2 is in few domains.
                        for attempt in 0..64 {
                            value = match bound {
                                Some(bound) => self.below(bound) as i64,
                                None if self.below(4) == 0 => -100,
                                None => self.below(3 + attempt) as i64 - attempt as i64 / 2,
                            };
                            if keep(value as f64) {
                                break;
                            }
                        }
                        value
                    })
                    .collect(),
            ),
            DType::Bool => Values::Bool((0..n).map(|_| self.below(2) == 0).collect()),
        };
        Array::new(ty.shape.clone(), values)
    }

    /// A cotangent: of both signs and away from zero, but for a zero now and then.
    pub fn cotangent(&mut self, ty: &TensorType) -> Array {
        let n = ty.shape.elements();
        let zeros = self.below(8) == 0;
        let values = (0..n).map(|_| if zeros && self.below(2) == 0 { 0.0 } else { self.sign() * (0.5 + self.unit()) });
        Array::new(ty.shape.clone(), Values::Float(values.map(|v| Precision::Typed.round(ty.dtype, v)).collect()))
    }
}

/// The bounds of integer inputs that index something.
pub fn integer_bounds(graph: &Graph) -> BTreeMap<NodeId, u64> {
    let mut bounds = BTreeMap::new();
    for check in &graph.checks {
        let bound = bounds.entry(check.indices).or_insert(check.size);
        *bound = check.size.min(*bound);
    }
    bounds
}
