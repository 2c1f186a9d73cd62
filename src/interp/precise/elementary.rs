//! Exponentials, logarithms, powers and hyperbolic functions of [`Big`].

use super::big::{Big, Kind};
use super::constants::{INVERSE_FACTORIALS, INVERSE_ODD, LN_2, LOG2_E};

/// Bits after which a term of a series is left out.
const ENOUGH: i64 = Big::BITS as i64 + 8;

/// The polynomial of `terms` coefficients at `x`, by Horner's rule.
pub(super) fn horner(coefficients: impl DoubleEndedIterator<Item = Big>, x: Big) -> Big {
    coefficients.rev().fold(Big::ZERO, |sum, c| sum * x + c)
}

/// Halvings before the series of e^x - 1, and doublings after it.
const HALVINGS: i64 = 9;

impl Big {
    /// e^x - 1 for |x| <= 0.35: a Taylor series at x / 2^9, then (1 + e)^2 - 1 = e (2 + e), which keeps the digits of a small
    /// result.
    fn small_expm1(self) -> Big {
        let Some(exponent) = self.exponent() else { return self };
        let halvings = (exponent + HALVINGS + 1).clamp(0, HALVINGS);
        let x = self.scaled(-halvings);
        // x^(n-1)/n! < 2^-ENOUGH, where |x| < 2^(exponent - halvings) <= 2^-10.
        let per_term = (halvings - exponent).max(10);
        let terms = (ENOUGH / (per_term + 3) + 2) as usize;
        let mut e = x * horner(INVERSE_FACTORIALS[1..=terms].iter().copied(), x);
        for _ in 0..halvings {
            e = e * (e + Big::ONE.scaled(1));
        }
        e
    }

    /// e^x. An error of the operand is multiplied by x, as it is by mathematics.
    #[must_use]
    pub fn exp(self) -> Big {
        match self.kind {
            Kind::NaN => self,
            Kind::Zero => Big::ONE,
            Kind::Infinite => {
                if self.negative {
                    Big::ZERO
                } else {
                    self
                }
            }
            Kind::Finite if self.exponent > 62 => Big::INFINITY.copysign(self).exp(),
            Kind::Finite => {
                let k = (self * LOG2_E).round();
                ((self - k * LN_2).small_expm1() + Big::ONE).scaled(k.to_i64())
            }
        }
    }

    /// 2^x, exact for an integer.
    #[must_use]
    pub fn exp2(self) -> Big {
        if self.kind != Kind::Finite || self.exponent > 62 {
            return self.exp();
        }
        let k = self.round();
        (((self - k) * LN_2).small_expm1() + Big::ONE).scaled(k.to_i64())
    }

    /// e^x - 1.
    #[must_use]
    pub fn expm1(self) -> Big {
        match self.kind {
            Kind::Zero => self,
            Kind::Finite if self.exponent <= -2 => self.small_expm1(),
            _ => self.exp() - Big::ONE,
        }
    }

    /// ln x; NaN below zero, -inf at zero.
    #[must_use]
    pub fn ln(self) -> Big {
        match self.kind {
            Kind::NaN => return self,
            Kind::Zero => return -Big::INFINITY,
            _ if self.negative => return Big::NAN,
            Kind::Infinite => return self,
            Kind::Finite => {}
        }
        // x = m 2^k with m in [0.7, 1.4).
        let k = if self.scaled(-self.exponent).to_f64() < 0.7 { self.exponent - 1 } else { self.exponent };
        let m = self.scaled(-k);
        let distance = m - Big::ONE;
        // Near 1 the series alone; else 53 bits of the logarithm are divided away before it.
        let log = if distance.exponent().is_none_or(|e| e <= -10) {
            two_atanh(distance / (m + Big::ONE))
        } else {
            let near = Big::from_f64(m.to_f64().ln());
            let rest = m * (-near).exp();
            near + two_atanh((rest - Big::ONE) / (rest + Big::ONE))
        };
        Big::from_i64(k) * LN_2 + log
    }

    /// ln(1 + x).
    #[must_use]
    pub fn ln_1p(self) -> Big {
        match self.exponent() {
            Some(e) if e <= -10 => two_atanh(self / (self + Big::ONE.scaled(1))),
            None if self.is_zero() => self,
            _ => (self + Big::ONE).ln(),
        }
    }

    /// sinh x.
    #[must_use]
    pub fn sinh(self) -> Big {
        let e = self.abs().expm1();
        // Where e is infinite or tiny, so is the result.
        let result = if e.is_infinite() || e.is_zero() { e } else { (e + e / (e + Big::ONE)).scaled(-1) };
        result.copysign(self)
    }

    /// cosh x.
    #[must_use]
    pub fn cosh(self) -> Big {
        let e = self.abs().exp();
        if e.is_infinite() { e } else { (e + Big::ONE / e).scaled(-1) }
    }

    /// tanh x.
    #[must_use]
    pub fn tanh(self) -> Big {
        // Beyond 2^9, 1 - tanh x < 2^-1400.
        if self.is_infinite() || self.exponent().is_some_and(|e| e > 9) {
            return Big::ONE.copysign(self);
        }
        let e = self.abs().scaled(1).expm1();
        (e / (e + Big::ONE.scaled(1))).copysign(self)
    }

    /// 1 / (1 + e^-x).
    #[must_use]
    pub fn sigmoid(self) -> Big {
        Big::ONE / ((-self).exp() + Big::ONE)
    }

    /// a^b as IEEE 754 defines it: NaN for a negative number to a power that is no integer, 1 for a power of 0 and for a base
    /// of 1, whatever the other.
    #[must_use]
    pub fn pow(self, power: Big) -> Big {
        if power.is_zero() || self == Big::ONE {
            return Big::ONE;
        }
        if self.is_nan() || power.is_nan() {
            return Big::NAN;
        }
        let integer = power.is_finite() && power.trunc() == power;
        let odd = integer && power.scaled(-1).trunc() != power.scaled(-1);
        let size = self.abs();
        let sign = |x: Big| if self.is_negative() && odd { -x } else { x };
        if self.is_zero() {
            return sign(if power.is_negative() { Big::INFINITY } else { Big::ZERO });
        }
        if power.is_infinite() {
            return match (size == Big::ONE, (size > Big::ONE) != power.is_negative()) {
                (true, _) => Big::ONE,
                (false, true) => Big::INFINITY,
                (false, false) => Big::ZERO,
            };
        }
        if self.is_infinite() {
            return sign(if power.is_negative() { Big::ZERO } else { Big::INFINITY });
        }
        if self.is_negative() && !integer {
            return Big::NAN;
        }
        if integer && power.exponent <= 10 {
            return self.power_of_integer(power.to_i64());
        }
        sign((power * size.ln()).exp())
    }

    /// x^n by squaring: exact where the result has few bits.
    fn power_of_integer(self, n: i64) -> Big {
        let mut power = Big::ONE;
        let (mut square, mut left) = (self, n.unsigned_abs());
        while left > 0 {
            if left & 1 == 1 {
                power = power * square;
            }
            square = square * square;
            left >>= 1;
        }
        if n < 0 { Big::ONE / power } else { power }
    }
}

/// 2 atanh(z) for |z| < 2^-10: 2 (z + z^3/3 + z^5/5 + ..).
fn two_atanh(z: Big) -> Big {
    let Some(exponent) = z.exponent() else { return z };
    let terms = (ENOUGH / (-2 * exponent).max(20) + 2) as usize;
    (z * horner(INVERSE_ODD[..terms].iter().copied(), z * z)).scaled(1)
}
