//! Hyperbolic functions, and the logistic one.

use super::Format;
use super::code::{Var, fast_two_sum, quotient};
use super::exp::{exp_rest, expm1_rest, power_of_two, reduce, two_factors};

/// (sinh x - x) / x^3 in x^2, for |x| <= 1. Error 2^-31.6.
const SINH_F32: [f64; 4] = [0.166_666_672, 0.008_333_310_48, 0.000_198_428_956, 2.782_213_41e-6];
/// Error 2^-61.8.
const SINH_F64: [f64; 7] = [
    0.166_666_666_666_666_69,
    0.008_333_333_333_332_912,
    0.000_198_412_698_415_934_16,
    2.755_731_910_675_200_5e-6,
    2.505_213_100_005_803_5e-8,
    1.605_665_900_940_187_5e-10,
    7.776_606_860_979_003e-13,
];

/// tanh x = t / (t + 2) with t = e^(2|x|) - 1, both as sums of two floats.
pub(super) fn tanh(x: Var<'_>) -> Var<'_> {
    let format = Format::of(x);
    let size = x.abs();
    // Beyond these the result is 1.
    let (biased, r, r_rest) = reduce((size + size).at_most(format.choose(20.0, 40.0)), format.bias);
    let scale = power_of_two(biased);
    let (sum, sum_rest) = fast_two_sum(r, expm1_rest(r, r_rest));
    let (sum, sum_rest) = (scale * sum, scale * sum_rest);
    let plus = |one: f64| {
        let (near, lost) = fast_two_sum(scale, scale.float(one));
        let (near, more) = fast_two_sum(near, sum);
        (near, (lost + more) + sum_rest)
    };
    let ((t, t_rest), (below, below_rest)) = (plus(-1.0), plus(1.0));
    quotient(t, t_rest, below, below_rest).signed_as(x)
}

/// e^|x| / 2, infinite only where sinh and cosh are.
fn half_exp(size: Var<'_>) -> Var<'_> {
    let format = Format::of(size);
    // 2^(n - 2) is a number, or infinite where half of e^|x| is: neither 2^129 nor 2^128 is one.
    let (biased, r, r_rest) = reduce(size.at_most(format.choose(90.0, 711.0)), format.bias - 2);
    let quarter = (expm1_rest(r, r_rest) + r + 1.0) * power_of_two(biased);
    quarter + quarter
}

/// cosh x = h + 1 / (4 h) with h = e^|x| / 2.
pub(super) fn cosh(x: Var<'_>) -> Var<'_> {
    let half = half_exp(x.abs());
    half + 0.25 / half
}

/// sinh x: below 1 an odd polynomial, above it h - 1 / (4 h) with h = e^|x| / 2.
pub(super) fn sinh(x: Var<'_>) -> Var<'_> {
    let format = Format::of(x);
    let size = x.abs();
    let square = x * x;
    let series = match format.single {
        true => square.polynomial(&SINH_F32),
        false => square.polynomial(&SINH_F64),
    };
    let near = (size * square).fma(series, size);
    let half = half_exp(size);
    size.lt(1.0).select(near, half - 0.25 / half).signed_as(x)
}

/// 1 / (1 + e) above 0, e / (1 + e) below, with e = e^-|x| = 2^n (1 + p); the quotient of sums of two floats. The last product is by
/// 2^n, so a subnormal result is what it should be.
pub(super) fn sigmoid(x: Var<'_>) -> Var<'_> {
    let format = Format::of(x);
    let (biased_twice, r, r_rest) = reduce((-x.abs()).at_least(format.choose(-104.0, -746.0)), 2 * format.bias);
    let (scale, scale_rest) = two_factors(biased_twice);
    let (p, p_rest) = fast_two_sum(r, exp_rest(r, r_rest));
    let power = scale * scale_rest;
    let (near, lost) = fast_two_sum(x.float(1.0), power);
    let (below, more) = fast_two_sum(near, power * p);
    let below_rest = power.fma(p_rest, lost + more);
    let (e, e_rest) = fast_two_sum(x.float(1.0), p);
    let positive = x.ge(0.0);
    let one = |y| positive.select(x.float(1.0), y);
    let above_rest = positive.select(x.float(0.0), e_rest + p_rest);
    quotient(one(e), above_rest, below, below_rest) * one(scale) * one(scale_rest)
}
