//! Intervals in which the values of a tensor provably lie: the facts behind the `domain` conditions of rules.
//!
//! A bound holds for every way the project computes a value: in f64, in the dtype, and with sums reassociated. IEEE
//! arithmetic rounds monotonically, so the rounded result of the bounds bounds the rounded results; for F32 they are
//! moved out to the next f32. Sums get the usual slack of n roundings.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::types::{DType, TensorType};

/// All elements that are not NaN lie in `lo..=hi`; a bound may be infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub lo: f64,
    pub hi: f64,
}

/// Up to here every integer is an f64.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Range {
    /// Nothing is known.
    pub const UNBOUNDED: Range = Range { lo: f64::NEG_INFINITY, hi: f64::INFINITY };
    pub const NON_NEGATIVE: Range = Range { lo: 0.0, hi: f64::INFINITY };
    pub const NON_POSITIVE: Range = Range { lo: f64::NEG_INFINITY, hi: 0.0 };
    /// Of probabilities and of Bools.
    pub const UNIT: Range = Range { lo: 0.0, hi: 1.0 };

    /// A bound that is NaN says nothing.
    pub fn new(lo: f64, hi: f64) -> Range {
        let lo = if lo.is_nan() { f64::NEG_INFINITY } else { lo };
        let hi = if hi.is_nan() { f64::INFINITY } else { hi };
        Range { lo, hi }
    }

    pub fn point(value: f64) -> Range {
        Range::new(value, value)
    }

    /// What the dtype alone says.
    pub fn of_type(ty: &TensorType) -> Range {
        match ty.dtype {
            DType::Bool => Range::UNIT,
            DType::I32 => Range::new(i32::MIN.into(), i32::MAX.into()),
            // The upper bound, 2^63 - 1, is no f64; the next one is.
            DType::I64 => Range::new(i64::MIN as f64, i64::MAX as f64),
            DType::F32 | DType::F64 => Range::UNBOUNDED,
        }
    }

    pub fn contains(self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }

    /// The least interval that holds both.
    #[must_use]
    pub fn hull(self, other: Range) -> Range {
        Range::new(self.lo.min(other.lo), self.hi.max(other.hi))
    }

    /// What both say; if they contradict each other (by a rounding), nothing.
    #[must_use]
    pub fn intersect(self, other: Range) -> Range {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.min(other.hi));
        if lo <= hi { Range::new(lo, hi) } else { Range::UNBOUNDED }
    }

    /// The bounds of a monotonically increasing function.
    #[must_use]
    pub fn map(self, f: impl Fn(f64) -> f64) -> Range {
        Range::new(f(self.lo), f(self.hi))
    }

    #[must_use]
    pub fn abs(self) -> Range {
        if self.contains(0.0) {
            Range::new(0.0, self.hi.max(-self.lo))
        } else {
            Range::new(self.lo.abs().min(self.hi.abs()), self.lo.abs().max(self.hi.abs()))
        }
    }

    fn corners(self, other: Range, f: impl Fn(f64, f64) -> f64) -> Range {
        let all = [f(self.lo, other.lo), f(self.lo, other.hi), f(self.hi, other.lo), f(self.hi, other.hi)].into_iter();
        // inf / inf is no value, and the corners beside it bound its neighbours.
        let values = all.filter(|v| !v.is_nan());
        let (lo, hi) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
        if lo <= hi { Range::new(lo, hi) } else { Range::UNBOUNDED }
    }

    /// The sum of `n` such values of a dtype, added in any order, each addition rounded.
    #[must_use]
    pub fn sum(self, n: u64, dtype: DType) -> Range {
        let epsilon = match dtype {
            DType::F32 => f64::from(f32::EPSILON),
            DType::F64 => f64::EPSILON,
            DType::Bool | DType::I32 | DType::I64 => 0.0,
        };
        match n {
            0 => Range::point(0.0),
            1 => self,
            _ => {
                let slack = 2.0 * n as f64 * epsilon;
                // `least` towards 0, where a sum is no less than one of its terms; `most` away from it.
                let least = |v: f64| v.max(v * n as f64 * (1.0 - slack));
                let most = |v: f64| if slack < 0.5 { v * n as f64 * (1.0 + slack) } else { f64::INFINITY };
                let lo = if self.lo >= 0.0 { least(self.lo) } else { -most(-self.lo) };
                let hi = if self.hi <= 0.0 { -least(-self.hi) } else { most(self.hi) };
                Range::new(lo, hi)
            }
        }
    }

    /// The bounds of results of a dtype: floats move out to the next value of the dtype; integers that may have wrapped
    /// around, or are not exact here, can be anything.
    #[must_use]
    pub fn fit(self, ty: &TensorType) -> Range {
        match ty.dtype {
            DType::F64 => self,
            DType::F32 => Range::new(down(self.lo), -down(-self.hi)),
            DType::Bool => Range::UNIT,
            DType::I32 | DType::I64 => {
                let all = Range::of_type(ty);
                let exact = self.lo >= -EXACT && self.hi <= EXACT;
                if exact && all.contains(self.lo) && all.contains(self.hi) { self } else { all }
            }
        }
    }
}

impl Neg for Range {
    type Output = Range;

    fn neg(self) -> Range {
        Range::new(-self.hi, -self.lo)
    }
}

impl Add for Range {
    type Output = Range;

    fn add(self, other: Range) -> Range {
        Range::new(self.lo + other.lo, self.hi + other.hi)
    }
}

impl Sub for Range {
    type Output = Range;

    fn sub(self, other: Range) -> Range {
        Range::new(self.lo - other.hi, self.hi - other.lo)
    }
}

impl Mul for Range {
    type Output = Range;

    fn mul(self, other: Range) -> Range {
        // An infinite bound stands for values as great as one likes, and 0 times those is 0.
        self.corners(other, |a, b| if a == 0.0 || b == 0.0 { 0.0 } else { a * b })
    }
}

/// Of floats. A divisor that may be 0 may be -0, so nothing is known then.
impl Div for Range {
    type Output = Range;

    fn div(self, other: Range) -> Range {
        if other.contains(0.0) { Range::UNBOUNDED } else { self.corners(other, |a, b| a / b) }
    }
}

/// The greatest f32 that is not above `v`.
fn down(v: f64) -> f64 {
    let near = v as f32;
    f64::from(if f64::from(near) > v { near.next_down() } else { near })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::types::{Placement, Shape};

    const INF: f64 = f64::INFINITY;

    #[test]
    fn intervals() {
        let r = Range::new;
        assert_eq!(r(-2.0, 1.0).abs(), r(0.0, 2.0));
        assert_eq!(r(-3.0, -1.0).abs(), r(1.0, 3.0));
        assert_eq!(Range::NON_NEGATIVE * Range::NON_NEGATIVE, Range::NON_NEGATIVE);
        assert_eq!(Range::point(0.0) * Range::UNBOUNDED, Range::point(0.0));
        assert_eq!(r(1.0, INF) / r(2.0, INF), r(0.0, INF));
        assert_eq!(Range::UNIT / Range::UNIT, Range::UNBOUNDED);
        assert_eq!(r(INF, INF) + r(-INF, -INF), Range::UNBOUNDED);
        assert_eq!(Range::UNIT.sum(0, DType::F32), Range::point(0.0));
        assert_eq!(Range::NON_NEGATIVE.sum(1 << 40, DType::F32), Range::NON_NEGATIVE);
        assert_eq!(r(1.0, 2.0).sum(1 << 40, DType::F32), r(1.0, INF));
        assert_eq!(r(0.0, 1.0).intersect(r(2.0, 3.0)), Range::UNBOUNDED);
        let f32s = TensorType::new(DType::F32, Shape::scalar(), Placement::Host);
        let tenth = Range::point(0.1).fit(&f32s);
        assert!(tenth.lo < 0.1 && 0.1 < tenth.hi && tenth.contains(f64::from(0.1f32)));
    }
}
