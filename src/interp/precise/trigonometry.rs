//! Circular functions of [`Big`] and their inverses.

use super::big::{Big, Kind, LIMBS};
use super::constants::{HALF_PI, INVERSE_FACTORIALS, INVERSE_ODD, TWO_OVER_PI};
use super::elementary::horner;
use super::operations::multiply;

/// Limbs of 2/π that a reduction looks at: those of the significand, those of the result, and three for a fraction that starts
/// with zeros.
const WINDOW: usize = 2 * LIMBS + 3;

impl Big {
    /// The nearest multiple of π/2, modulo 4, and what is left. Every bit of the operand counts, up to 2^2048; beyond, where
    /// only products of many numbers come, the bits of 2/π are taken to be zero.
    fn reduced(self) -> (u8, Big) {
        if self.exponent < 0 {
            return (0, self); // |x| < 1/2
        }
        // Bits of 2/π by which the significand, an integer times 2^(exponent - 256), is multiplied to multiples of 4 are
        // skipped.
        let skipped = (self.exponent - i64::from(Big::BITS) - 3).max(0) / 64;
        let bits: [u64; WINDOW] =
            std::array::from_fn(|i| TWO_OVER_PI.get(skipped as usize + WINDOW - 1 - i).copied().unwrap_or(0));
        let mut product = [0; WINDOW + LIMBS];
        multiply(&self.limbs, &bits, &mut product);
        // The product is an integer times 2^-point.
        let point = i64::from(Big::BITS) - self.exponent + 64 * (skipped + WINDOW as i64);
        let (limb, bit) = ((point / 64) as usize, (point % 64) as u32);
        let at = |i: usize| product.get(i).copied().unwrap_or(0);
        let whole = if bit == 0 { at(limb) } else { at(limb) >> bit | at(limb + 1) << (64 - bit) };
        keep_fraction(&mut product, limb, bit);
        let fraction = Big::rounded(false, 64 * product.len() as i64 - point, &product);
        let (quarter, fraction) = if fraction > Big::HALF {
            (whole.wrapping_add(1), -complement(&product, point))
        } else {
            (whole, fraction)
        };
        let rest = fraction * HALF_PI;
        match self.negative {
            false => ((quarter % 4) as u8, rest),
            true => ((quarter.wrapping_neg() % 4) as u8, -rest),
        }
    }

    /// The sine and cosine of a finite number.
    fn sin_cos(self) -> (Big, Big) {
        let (quarter, x) = if self.is_zero() { (0, self) } else { self.reduced() };
        let square = x * x;
        // Terms x^(2n)/(2n)! until they are below 2^-264: for |x| <= π/4 there are 29.
        let per_term = square.exponent().map_or(300, |e| -e).max(0);
        let terms = (264 / (per_term + 5) + 1).clamp(2, 29) as usize;
        // Signs alternate: the series at -x^2.
        let series = |first: usize| horner(INVERSE_FACTORIALS[first..].iter().step_by(2).take(terms).copied(), -square);
        let (sin, cos) = (x * series(1), series(0));
        match quarter {
            0 => (sin, cos),
            1 => (cos, -sin),
            2 => (-sin, -cos),
            _ => (-cos, sin),
        }
    }

    /// sin x; NaN of an infinity.
    #[must_use]
    pub fn sin(self) -> Big {
        match self.kind {
            Kind::NaN | Kind::Infinite => Big::NAN,
            Kind::Zero => self,
            Kind::Finite => self.sin_cos().0,
        }
    }

    /// cos x; NaN of an infinity.
    #[must_use]
    pub fn cos(self) -> Big {
        if self.is_finite() { self.sin_cos().1 } else { Big::NAN }
    }

    /// tan x; NaN of an infinity.
    #[must_use]
    pub fn tan(self) -> Big {
        if self.is_zero() || !self.is_finite() {
            return self.sin();
        }
        let (sin, cos) = self.sin_cos();
        sin / cos
    }

    /// The angle in -π/2..π/2 with this tangent.
    #[must_use]
    pub fn atan(self) -> Big {
        match self.kind {
            Kind::NaN | Kind::Zero => self,
            Kind::Infinite => HALF_PI.copysign(self),
            Kind::Finite if self.abs() > Big::ONE => (HALF_PI - (Big::ONE / self.abs()).small_atan()).copysign(self),
            Kind::Finite => self.small_atan(),
        }
    }

    /// The arc tangent for |x| <= 1. Unless x is small, 53 bits of the result are taken away before the series.
    fn small_atan(self) -> Big {
        if self.exponent().is_none_or(|e| e <= -10) {
            return atan_series(self);
        }
        let near = Big::from_f64(self.to_f64().atan());
        let (sin, cos) = near.sin_cos();
        near + atan_series((self * cos - sin) / (cos + self * sin))
    }

    /// NaN outside -1..1.
    #[must_use]
    pub fn asin(self) -> Big {
        if self.is_zero() {
            return self;
        }
        self.atan2(((Big::ONE - self) * (Big::ONE + self)).sqrt())
    }

    /// NaN outside -1..1.
    #[must_use]
    pub fn acos(self) -> Big {
        ((Big::ONE - self) * (Big::ONE + self)).sqrt().atan2(self)
    }

    /// The angle of the point (x, self) in -π..π, of zeros and infinities as IEEE 754 defines it.
    #[must_use]
    pub fn atan2(self, x: Big) -> Big {
        if self.is_nan() || x.is_nan() {
            return Big::NAN;
        }
        let (size, width) = (self.abs(), x.abs());
        let angle = match (size.is_infinite(), width.is_infinite()) {
            (true, true) => HALF_PI.scaled(-1),
            _ if size.is_zero() => Big::ZERO,
            _ => (size / width).atan(),
        };
        (if x.is_negative() { Big::PI - angle } else { angle }).copysign(self)
    }
}

/// 1 - the fraction of a product with its point, without loss where it is near 1.
fn complement(product: &[u64; WINDOW + LIMBS], point: i64) -> Big {
    let mut rest = product.map(|p| !p);
    keep_fraction(&mut rest, (point / 64) as usize, (point % 64) as u32);
    Big::rounded(false, 64 * product.len() as i64 - point, &rest)
}

/// Clears the bits from `bit` of `limb` on.
fn keep_fraction(product: &mut [u64], limb: usize, bit: u32) {
    for p in product.iter_mut().skip(limb + 1) {
        *p = 0;
    }
    if let Some(p) = product.get_mut(limb) {
        *p &= (1 << bit) - 1;
    }
}

/// x - x^3/3 + x^5/5 - .. for |x| < 2^-9.
fn atan_series(x: Big) -> Big {
    let Some(exponent) = x.exponent() else { return x };
    let terms = (264 / (-2 * exponent).max(18) + 2) as usize;
    x * horner(INVERSE_ODD[..terms].iter().copied(), -(x * x))
}
