//! The four operations and roots of [`Big`].

use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::big::{Big, Kind, LIMBS, magnitudes};

impl Neg for Big {
    type Output = Big;
    fn neg(self) -> Big {
        if self.is_nan() { self } else { Big { negative: !self.negative, ..self } }
    }
}

impl Add for Big {
    type Output = Big;
    fn add(self, other: Big) -> Big {
        match (self.kind, other.kind) {
            (Kind::Finite, Kind::Finite) => {}
            (Kind::NaN, _) | (_, Kind::NaN) => return Big::NAN,
            (Kind::Infinite, Kind::Infinite) if self.negative != other.negative => return Big::NAN,
            (Kind::Zero, Kind::Zero) => return Big::zero(self.negative && other.negative),
            (Kind::Infinite, _) | (_, Kind::Zero) => return self,
            (_, Kind::Infinite) | (Kind::Zero, _) => return other,
        }
        let (a, b) = match magnitudes(&self, &other) {
            Ordering::Less => (other, self),
            Ordering::Equal if self.negative != other.negative => return Big::ZERO,
            _ => (self, other),
        };
        let distance = a.exponent - b.exponent;
        if distance > i64::from(Big::BITS) + 2 {
            return a;
        }
        // One limb below both and one above.
        let shifted = shifted(b.limbs, distance as u32);
        let mut wide = [0; LIMBS + 2];
        wide[1..=LIMBS].copy_from_slice(&a.limbs);
        let mut carry = false;
        for (w, s) in wide.iter_mut().zip(shifted) {
            (*w, carry) = if a.negative == b.negative { adding(*w, s, carry) } else { subtracting(*w, s, carry) };
        }
        // A difference is positive: |a| > |b|.
        wide[LIMBS + 1] = u64::from(carry && a.negative == b.negative);
        Big::rounded(a.negative, a.exponent + 64, &wide)
    }
}

/// Limbs with one limb below them, moved down; what is lost leaves the lowest bit set.
fn shifted(limbs: [u64; LIMBS], distance: u32) -> [u64; LIMBS + 1] {
    let mut wide = [0; LIMBS + 1];
    wide[1..].copy_from_slice(&limbs);
    let (whole, bits) = ((distance / 64) as usize, distance % 64);
    let mut moved = [0; LIMBS + 1];
    for (i, limb) in moved.iter_mut().enumerate() {
        let at = |i: usize| wide.get(i).copied().unwrap_or(0);
        *limb = if bits == 0 { at(i + whole) } else { at(i + whole) >> bits | at(i + whole + 1) << (64 - bits) };
    }
    let lost =
        wide.iter().take(whole).any(|l| *l != 0) || bits > 0 && wide.get(whole).is_some_and(|l| l << (64 - bits) != 0);
    moved[0] |= u64::from(lost);
    moved
}

fn adding(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let (sum, first) = a.overflowing_add(b);
    let (sum, second) = sum.overflowing_add(carry.into());
    (sum, first || second)
}

fn subtracting(a: u64, b: u64, borrow: bool) -> (u64, bool) {
    let (difference, first) = a.overflowing_sub(b);
    let (difference, second) = difference.overflowing_sub(borrow.into());
    (difference, first || second)
}

impl Sub for Big {
    type Output = Big;
    fn sub(self, other: Big) -> Big {
        self + -other
    }
}

impl Mul for Big {
    type Output = Big;
    fn mul(self, other: Big) -> Big {
        let negative = self.negative != other.negative;
        match (self.kind, other.kind) {
            (Kind::Finite, Kind::Finite) => {}
            (Kind::NaN, _) | (_, Kind::NaN) => return Big::NAN,
            (Kind::Zero, Kind::Infinite) | (Kind::Infinite, Kind::Zero) => return Big::NAN,
            (Kind::Infinite, _) | (_, Kind::Infinite) => return Big::infinity(negative),
            _ => return Big::zero(negative),
        }
        let mut product = [0; 2 * LIMBS];
        multiply(&self.limbs, &other.limbs, &mut product);
        Big::rounded(negative, self.exponent + other.exponent, &product)
    }
}

/// Adds `a * b` to `product`, which has room for it.
pub(super) fn multiply(a: &[u64], b: &[u64], product: &mut [u64]) {
    for (i, x) in a.iter().enumerate() {
        let mut carry = 0;
        for (p, y) in product[i..].iter_mut().zip(b) {
            // At most (2^64 - 1)^2 + 2 (2^64 - 1), which is 2^128 - 1.
            let sum = u128::from(*x).wrapping_mul(u128::from(*y)).wrapping_add(u128::from(*p)).wrapping_add(carry);
            *p = sum as u64;
            carry = sum >> 64;
        }
        if let Some(p) = product.get_mut(i + b.len()) {
            *p = carry as u64;
        }
    }
}

impl Div for Big {
    type Output = Big;
    fn div(self, other: Big) -> Big {
        let negative = self.negative != other.negative;
        match (self.kind, other.kind) {
            (Kind::Finite, Kind::Finite) => {}
            (Kind::NaN, _) | (_, Kind::NaN) => return Big::NAN,
            (Kind::Zero, Kind::Zero) | (Kind::Infinite, Kind::Infinite) => return Big::NAN,
            (Kind::Infinite, _) | (_, Kind::Zero) => return Big::infinity(negative),
            _ => return Big::zero(negative),
        }
        let quotient = quotient(&self.limbs, &other.limbs);
        Big::rounded(negative, self.exponent - other.exponent + 64, &quotient)
    }
}

/// The whole part of `a 2^320 / b`: long division (Knuth, TAOCP 2, algorithm D). The highest bit of `b` is set.
fn quotient(a: &[u64; LIMBS], b: &[u64; LIMBS]) -> [u64; LIMBS + 2] {
    let mut rest = [0_u64; 2 * LIMBS + 2];
    rest[LIMBS + 1..2 * LIMBS + 1].copy_from_slice(a);
    let mut digits = [0; LIMBS + 2];
    let highest = u128::from(b[LIMBS - 1]);
    for (j, place) in digits.iter_mut().enumerate().rev() {
        let window = &mut rest[j..=j + LIMBS];
        let top = u128::from(window[LIMBS]) << 64 | u128::from(window[LIMBS - 1]);
        // Never too small, and at most 2 too large.
        let mut digit = u64::try_from(top / highest).unwrap_or(u64::MAX);
        let mut carry = 0;
        let mut borrow = false;
        for (w, limb) in window.iter_mut().zip(b.iter().chain(&[0])) {
            let product = u128::from(digit) * u128::from(*limb) + carry;
            (*w, borrow) = subtracting(*w, product as u64, borrow);
            carry = product >> 64;
        }
        while borrow {
            digit -= 1;
            let mut carry = false;
            for (w, limb) in window.iter_mut().zip(b.iter().chain(&[0])) {
                (*w, carry) = adding(*w, *limb, carry);
            }
            borrow = !carry;
        }
        *place = digit;
    }
    digits
}

impl Big {
    /// NaN below zero; the root of -0 is -0.
    #[must_use]
    pub fn sqrt(self) -> Big {
        match self.kind {
            Kind::NaN | Kind::Zero => return self,
            _ if self.negative => return Big::NAN,
            Kind::Infinite => return self,
            Kind::Finite => {}
        }
        // An even power of two aside, a number in [1/2, 2).
        let half = self.exponent.div_euclid(2);
        let x = self.scaled(-2 * half);
        // Newton for 1/sqrt(x), from 52 bits: 104, 208; then one step for the root itself.
        let mut inverse = Big::from_f64(1.0 / x.to_f64().sqrt());
        for _ in 0..2 {
            inverse = inverse + (inverse * (Big::ONE - x * inverse * inverse)).scaled(-1);
        }
        let root = x * inverse;
        let root = root + ((x - root * root) * inverse).scaled(-1);
        exact_root(root, x, 128, |r| r * r).scaled(half)
    }

    /// The real cube root.
    #[must_use]
    pub fn cbrt(self) -> Big {
        if self.kind != Kind::Finite {
            return self;
        }
        let third = self.exponent.div_euclid(3);
        let x = self.abs().scaled(-3 * third);
        // Halley: each step triples the bits.
        let mut root = Big::from_f64(x.to_f64().cbrt());
        for _ in 0..2 {
            let cube = root * root * root;
            root = root + root * (x - cube) / (cube.scaled(1) + x);
        }
        exact_root(root, x, 85, |r| r * r * r).scaled(third).copysign(self)
    }

    /// 1 / sqrt(x).
    #[must_use]
    pub fn rsqrt(self) -> Big {
        Big::ONE / self.sqrt()
    }
}

/// The number of few bits next to `root` if it is the root exactly, else `root`.
fn exact_root(root: Big, x: Big, bits: u32, power: impl Fn(Big) -> Big) -> Big {
    let half = Big::ONE.scaled(root.exponent - i64::from(bits) - 1);
    let near = (root + half).cut(bits);
    if power(near) == x { near } else { root }
}
