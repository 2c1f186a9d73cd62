//! A float of 256 bits with an exponent so wide that no product of ordinary numbers overflows or underflows.

use std::cmp::Ordering;
use std::fmt;

use crate::ir::DType;

/// Limbs of 64 bits.
pub(super) const LIMBS: usize = 4;

/// Exponents beyond this, either way, are infinities and zeros. What reaches it is e^x for |x| above 10^17.
const MAX_EXPONENT: i64 = 1 << 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Zero,
    Finite,
    Infinite,
    NaN,
}

/// A binary float of [`Big::BITS`] bits: ±0.m * 2^exponent, or a signed zero, a signed infinity or NaN.
///
/// `+ - * /` and the square root err by at most one unit in the last place (2^-255 of the result), and are exact where the
/// result has at most 256 bits (a square root: where it has at most 128). The elementary functions err by less than 2^-200 of
/// the result, as long as their operand is exact. Signs of zeros, infinities and NaN are those of IEEE 754.
#[derive(Clone, Copy)]
pub struct Big {
    pub(super) kind: Kind,
    pub(super) negative: bool,
    /// Of a finite number that is not zero.
    pub(super) exponent: i64,
    /// The least significant first; the highest bit of a finite number that is not zero is set.
    pub(super) limbs: [u64; LIMBS],
}

impl Big {
    /// Bits of the significand.
    pub const BITS: u32 = 64 * LIMBS as u32;
    pub const NAN: Big = Big::special(Kind::NaN, false);
    pub const INFINITY: Big = Big::special(Kind::Infinite, false);
    pub const ZERO: Big = Big::special(Kind::Zero, false);
    pub const ONE: Big = Big::constant(1, [0, 0, 0, 1 << 63]);
    pub const HALF: Big = Big::constant(0, [0, 0, 0, 1 << 63]);

    pub(super) const fn special(kind: Kind, negative: bool) -> Big {
        Big { kind, negative, exponent: 0, limbs: [0; LIMBS] }
    }

    /// 0.limbs * 2^exponent. The highest bit must be set.
    pub(super) const fn constant(exponent: i64, limbs: [u64; LIMBS]) -> Big {
        Big { kind: Kind::Finite, negative: false, exponent, limbs }
    }

    pub(super) const fn infinity(negative: bool) -> Big {
        Big::special(Kind::Infinite, negative)
    }

    pub(super) const fn zero(negative: bool) -> Big {
        Big::special(Kind::Zero, negative)
    }

    /// A number with its significand in form.
    pub(super) fn finite(negative: bool, exponent: i64, limbs: [u64; LIMBS]) -> Big {
        if exponent > MAX_EXPONENT {
            Big::infinity(negative)
        } else if exponent < -MAX_EXPONENT {
            Big::zero(negative)
        } else {
            Big { kind: Kind::Finite, negative, exponent, limbs }
        }
    }

    /// 0.wide * 2^exponent (least significant limb first), rounded to the nearest.
    pub(super) fn rounded(negative: bool, exponent: i64, wide: &[u64]) -> Big {
        let Some(top) = wide.iter().rposition(|l| *l != 0) else { return Big::zero(negative) };
        let shift = wide[top].leading_zeros();
        // The limb `i` places below the highest, after the shift.
        let limb = |i: usize| {
            let at = |i: usize| top.checked_sub(i).map_or(0, |at| wide[at]);
            if shift == 0 { at(i) } else { at(i) << shift | at(i + 1) >> (64 - shift) }
        };
        let mut limbs = [limb(3), limb(2), limb(1), limb(0)];
        let mut exponent = exponent - 64 * (wide.len() - 1 - top) as i64 - i64::from(shift);
        if limb(LIMBS) >> 63 == 1 && increment(&mut limbs) {
            limbs[LIMBS - 1] = 1 << 63;
            exponent += 1;
        }
        Big::finite(negative, exponent, limbs)
    }

    /// The same number.
    pub fn from_f64(value: f64) -> Big {
        let negative = value.is_sign_negative();
        if value.is_nan() {
            return Big::NAN;
        }
        if value.is_infinite() {
            return Big::infinity(negative);
        }
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        match (bits >> 52 & 0x7ff) as i64 {
            0 => Big::rounded(negative, 64 - 1074, &[fraction]),
            biased => Big::rounded(negative, 64 - 1075 + biased, &[fraction | 1 << 52]),
        }
    }

    /// The same number.
    pub fn from_i64(value: i64) -> Big {
        Big::rounded(value < 0, 64, &[value.unsigned_abs()])
    }

    /// The nearest f64, ties to even; infinite beyond the range.
    pub fn to_f64(self) -> f64 {
        self.nearest(53, -1074)
    }

    /// The nearest f32, ties to even; infinite beyond the range.
    pub fn to_f32(self) -> f32 {
        self.nearest(24, -149) as f32 // exact: it has the bits of an f32, or is beyond its range
    }

    /// The nearest value of a float dtype.
    pub fn to_float(self, dtype: DType) -> f64 {
        if dtype == DType::F32 { self.to_f32().into() } else { self.to_f64() }
    }

    /// The nearest number of `bits` bits that is a multiple of 2^least.
    fn nearest(self, bits: i64, least: i64) -> f64 {
        let sign = if self.negative { -1.0 } else { 1.0 };
        match self.kind {
            Kind::NaN => return f64::NAN,
            Kind::Infinite => return sign * f64::INFINITY,
            Kind::Zero => return sign * 0.0,
            Kind::Finite => {}
        }
        if self.exponent > 1024 {
            return sign * f64::INFINITY;
        }
        let unit = (self.exponent - bits).max(least);
        let kept = self.exponent - unit;
        if kept < 0 {
            return sign * 0.0;
        }
        let top = self.limbs[LIMBS - 1];
        let (mut whole, rest) = if kept == 0 { (0, top) } else { (top >> (64 - kept), top << kept) };
        let more = self.limbs[..LIMBS - 1].iter().any(|l| *l != 0);
        if rest > 1 << 63 || rest == 1 << 63 && (more || whole & 1 == 1) {
            whole += 1;
        }
        sign * (whole as f64) * power_of_two(unit)
    }

    /// Towards zero, saturating; NaN gives 0: as casts of floats to integers.
    pub fn to_i64(self) -> i64 {
        match self.kind {
            Kind::NaN | Kind::Zero => 0,
            _ if self.kind == Kind::Infinite || self.exponent > 63 => {
                if self.negative {
                    i64::MIN
                } else {
                    i64::MAX
                }
            }
            _ if self.exponent <= 0 => 0,
            _ => {
                let whole = (self.limbs[LIMBS - 1] >> (64 - self.exponent)) as i64;
                if self.negative { -whole } else { whole }
            }
        }
    }

    pub fn is_nan(self) -> bool {
        self.kind == Kind::NaN
    }

    pub fn is_infinite(self) -> bool {
        self.kind == Kind::Infinite
    }

    pub fn is_zero(self) -> bool {
        self.kind == Kind::Zero
    }

    /// Neither infinite nor NaN.
    pub fn is_finite(self) -> bool {
        matches!(self.kind, Kind::Zero | Kind::Finite)
    }

    /// Is the sign bit set? NaN has none.
    pub fn is_negative(self) -> bool {
        self.negative
    }

    #[must_use]
    pub fn abs(self) -> Big {
        Big { negative: false, ..self }
    }

    /// `self` with the sign of `sign`.
    #[must_use]
    pub fn copysign(self, sign: Big) -> Big {
        if self.is_nan() { self } else { Big { negative: sign.negative, ..self } }
    }

    /// Times 2^n.
    #[must_use]
    pub fn scaled(self, n: i64) -> Big {
        match self.kind {
            Kind::Finite => Big::finite(self.negative, self.exponent.saturating_add(n), self.limbs),
            _ => self,
        }
    }

    /// The exponent e of a finite number in ±[2^(e-1), 2^e), if it is not zero.
    pub fn exponent(self) -> Option<i64> {
        (self.kind == Kind::Finite).then_some(self.exponent)
    }

    /// Towards zero.
    #[must_use]
    pub fn trunc(self) -> Big {
        if self.kind != Kind::Finite || self.exponent >= i64::from(Big::BITS) {
            return self;
        }
        if self.exponent <= 0 {
            return Big::zero(self.negative);
        }
        self.cut(self.exponent as u32)
    }

    /// Only the highest `bits` bits.
    pub(super) fn cut(mut self, bits: u32) -> Big {
        let mut dropped = Big::BITS.saturating_sub(bits);
        for limb in &mut self.limbs {
            *limb = if dropped >= 64 { 0 } else { *limb >> dropped << dropped };
            dropped = dropped.saturating_sub(64);
        }
        self
    }

    #[must_use]
    pub fn floor(self) -> Big {
        let whole = self.trunc();
        if self.negative && whole != self { whole - Big::ONE } else { whole }
    }

    #[must_use]
    pub fn ceil(self) -> Big {
        -(-self).floor()
    }

    /// To the nearest integer, halves to the even one.
    #[must_use]
    pub fn round(self) -> Big {
        let whole = self.trunc();
        let up = match (self - whole).abs().partial_cmp(&Big::HALF) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Equal) => whole.scaled(-1).trunc() != whole.scaled(-1),
            _ => false,
        };
        if up { whole + Big::ONE.copysign(self) } else { whole }
    }

    /// How far a float is from this value, in units in the last place of `dtype` at this value. 0 if the value, rounded
    /// to the dtype, is that float (an infinity beyond its range too) or both are NaN; infinite if just one is NaN, or the
    /// float is an infinity that it should not be.
    ///
    /// ```
    /// use kina_ad::interp::precise::Big;
    /// use kina_ad::ir::DType;
    /// let third = Big::from_f64(1.0) / Big::from_f64(3.0);
    /// assert_eq!(third.ulps(1.0 / 3.0, DType::F64), 0.0);
    /// let off = third.ulps(f64::from(1_f32 / 3.0).next_up(), DType::F32);
    /// assert!(off < 0.5);
    /// assert_eq!(third.ulps(f64::NAN, DType::F64), f64::INFINITY);
    /// ```
    pub fn ulps(self, float: f64, dtype: DType) -> f64 {
        let nearest = self.to_float(dtype);
        if nearest == float || nearest.is_nan() && float.is_nan() {
            return 0.0;
        }
        if !self.is_finite() || !float.is_finite() {
            return f64::INFINITY;
        }
        let (bits, least) = if dtype == DType::F32 { (24, -149) } else { (53, -1074) };
        let unit = self.exponent().map_or(least, |e| (e - bits).max(least));
        (self - Big::from_f64(float)).abs().scaled(-unit).to_f64()
    }
}

/// 2^n for the exponents of f64; `n` from -1074 to 1023.
fn power_of_two(n: i64) -> f64 {
    if n >= -1022 { f64::from_bits(((n + 1023) as u64) << 52) } else { f64::from_bits(1 << (n + 1074)) }
}

/// Adds one unit in the last place. Did it carry out?
fn increment(limbs: &mut [u64]) -> bool {
    for limb in limbs {
        let carry;
        (*limb, carry) = limb.overflowing_add(1);
        if !carry {
            return false;
        }
    }
    true
}

impl PartialEq for Big {
    fn eq(&self, other: &Big) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Big {
    /// As floats: NaN is not comparable, zeros are equal.
    fn partial_cmp(&self, other: &Big) -> Option<Ordering> {
        let sign = |x: &Big| match x.kind {
            Kind::Zero => 0,
            _ if x.negative => -1,
            _ => 1,
        };
        if self.is_nan() || other.is_nan() {
            return None;
        }
        let order = sign(self).cmp(&sign(other));
        if order.is_ne() || sign(self) == 0 {
            return Some(order);
        }
        let size = magnitudes(self, other);
        Some(if self.negative { size.reverse() } else { size })
    }
}

/// The order of the absolute values of two numbers that are neither zero nor NaN.
pub(super) fn magnitudes(a: &Big, b: &Big) -> Ordering {
    (a.is_infinite(), a.exponent)
        .cmp(&(b.is_infinite(), b.exponent))
        .then_with(|| a.limbs.iter().rev().cmp(b.limbs.iter().rev()))
}

impl fmt::Debug for Big {
    /// As the nearest f64 where it is in range, else as a multiple of a power of two.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Big {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exponent() {
            Some(e) if !(-1000..=1000).contains(&e) => write!(f, "{:?} * 2^{e}", self.scaled(-e).to_f64()),
            _ => write!(f, "{:?}", self.to_f64()),
        }
    }
}
