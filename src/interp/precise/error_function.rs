//! The error function of [`Big`] and its complement.

use super::big::{Big, Kind};
use super::constants::TWO_OVER_SQRT_PI;

/// From here on erf is 1 to 256 bits: 1 - erf(13.5) is below 2^-266.
const ONE_FROM: f64 = 13.5;

/// From here on the complement comes from its continued fraction.
const TAIL_FROM: f64 = 6.0;

/// Levels of the continued fraction. Its error falls like e^(-2 x sqrt(2 n)): below 2^-260 of the result at x = 6.
const LEVELS: i64 = 160;

impl Big {
    /// 2/sqrt(π) times the integral of e^(-t^2) from 0 to x, as 2/sqrt(π) e^(-x^2) (x + 2 x^3/3 + 4 x^5/15 + ..), a series of
    /// positive terms: DLMF 7.6.2.
    #[must_use]
    pub fn erf(self) -> Big {
        match self.kind {
            Kind::NaN | Kind::Zero => return self,
            Kind::Infinite => return Big::ONE.copysign(self),
            Kind::Finite if self.abs().to_f64() >= ONE_FROM => return Big::ONE.copysign(self),
            Kind::Finite => {}
        }
        let square = self * self;
        let (mut term, mut sum) = (self, self);
        let mut odd = 1;
        // Terms fall from x^2 on, and then at least as fast as a geometric series of ratio 2/3.
        while term.exponent() > sum.exponent().map(|e| e - 264) {
            odd += 2;
            term = term * square.scaled(1) / Big::from_i64(odd);
            sum = sum + term;
        }
        TWO_OVER_SQRT_PI * (-square).exp() * sum
    }

    /// 1 - erf(x), to 190 bits of the result at least: beyond 6 by its continued fraction,
    /// e^(-x^2) / sqrt(π) / (x + (1/2) / (x + 1 / (x + (3/2) / (x + ..)))): DLMF 7.9.1.
    #[must_use]
    pub fn erfc(self) -> Big {
        if self.is_infinite() {
            return if self.negative { Big::ONE.scaled(1) } else { Big::ZERO };
        }
        if self.is_nan() || self.to_f64() < TAIL_FROM {
            return Big::ONE - self.erf();
        }
        let fraction = (1..=LEVELS).rev().fold(self, |below, n| self + Big::from_i64(n).scaled(-1) / below);
        (TWO_OVER_SQRT_PI.scaled(-1) * (-(self * self)).exp()) / fraction
    }
}
