//! Exponentials.

use std::f64::consts::{LN_2, LOG2_E};

use super::Format;
use super::code::Var;

/// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2, by relative errors of e^r. Error 2^-28.2.
const EXP_F32: [f64; 5] = [0.499_999_94, 0.166_665_167, 0.041_668_105_9, 0.008_369_128_22, 0.001_383_636_03];
/// Error 2^-57.7.
const EXP_F64: [f64; 10] = [
    0.500_000_000_000_001_1,
    0.166_666_666_666_666_96,
    0.041_666_666_666_535_554,
    0.008_333_333_333_365_821,
    0.001_388_888_894_135_39,
    0.000_198_412_697_149_328_44,
    2.480_149_577_488_548_2e-5,
    2.755_744_201_251_94e-6,
    2.762_926_340_794_589e-7,
    2.503_642_514_029_595e-8,
];
/// The same, by relative errors of e^r - 1. Error 2^-30.9.
const EXPM1_F32: [f64; 6] =
    [0.5, 0.166_666_657, 0.041_666_466_7, 0.008_333_642_97, 0.001_393_513_64, 0.000_196_648_398];
/// Error 2^-57.8.
const EXPM1_F64: [f64; 11] = [
    0.500_000_000_000_000_1,
    0.166_666_666_666_666_7,
    0.041_666_666_666_648_42,
    0.008_333_333_333_327_154,
    0.001_388_888_889_739_469_6,
    0.000_198_412_698_708_564_3,
    2.480_157_110_366_939e-5,
    2.755_726_005_068_562e-6,
    2.757_079_321_114_917e-7,
    2.510_349_666_839_211_3e-8,
    1.681_997_937_047_788_4e-9,
];

/// (2^f - 1) / f for |f| <= 1/2, by relative errors of 2^f. Error 2^-27.5.
const EXP2_F32: [f64; 6] =
    [0.693_147_242, 0.240_226_552, 0.055_502_727_6, 0.009_617_063_22, 0.001_341_772_5, 0.000_158_258_175];
/// Error 2^-59.6.
const EXP2_F64: [f64; 12] = [
    LN_2,
    0.240_226_506_959_100_7,
    0.055_504_108_664_823_38,
    0.009_618_129_107_630_232,
    0.001_333_355_814_603_330_8,
    0.000_154_035_303_888_730_9,
    1.525_273_416_702_567_2e-5,
    1.321_549_135_097_790_4e-6,
    1.017_793_207_070_118_7e-7,
    7.052_940_124_492_912e-9,
    4.473_395_094_585_823e-10,
    2.874_272_674_711_271_8e-11,
];

/// ln 2 in two parts; the first has so few bits that its product with an integer is exact.
const LN_2_F32: (f64, f64) = (0.693_359_375, -2.121_944_400_546_905_8e-4);
const LN_2_F64: (f64, f64) = (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10);

impl Format {
    pub(super) fn ln_2(self) -> (f64, f64) {
        self.choose(LN_2_F32, LN_2_F64)
    }
}

/// x = n ln 2 + r + rest with |r| <= ln 2 / 2 (W. J. Cody and W. Waite): an integer whose low bits are n + offset; r; rest. NaN
/// gives a NaN r and any integer.
pub(super) fn reduce(x: Var<'_>, offset: i64) -> (Var<'_>, Var<'_>, Var<'_>) {
    let format = Format::of(x);
    let magic = format.magic() + offset as f64;
    let (high, low) = format.ln_2();
    let shifted = x.fma(LOG2_E, x.float(magic));
    let n = shifted - magic;
    let near = n.fma(-high, x);
    let r = n.fma(-low, near);
    (shifted.bits(), r, n.fma(-low, near - r))
}

/// 2^n from an integer whose low bits are n + bias.
pub(super) fn power_of_two(biased: Var<'_>) -> Var<'_> {
    let stored = if biased.dtype() == crate::ir::DType::I32 { 23 } else { 52 };
    biased.shl(stored).float_of_bits()
}

/// e^r - 1 - r for the r of [`reduce`], as exact as a sum with 1 needs.
pub(super) fn exp_rest<'t>(r: Var<'t>, r_rest: Var<'t>) -> Var<'t> {
    let rest = match Format::of(r).single {
        true => r.polynomial(&EXP_F32),
        false => r.polynomial(&EXP_F64),
    };
    (r * r).fma(rest, r_rest)
}

/// e^r - 1 - r, as exact as a sum with r needs.
pub(super) fn expm1_rest<'t>(r: Var<'t>, r_rest: Var<'t>) -> Var<'t> {
    let rest = match Format::of(r).single {
        true => r.polynomial(&EXPM1_F32),
        false => r.polynomial(&EXPM1_F64),
    };
    (r * r).fma(rest, r_rest)
}

/// 2^n from an integer whose low bits are n + 2 bias, as two factors, since neither 2^128 nor 2^-150 are numbers.
pub(super) fn two_factors(biased_twice: Var<'_>) -> (Var<'_>, Var<'_>) {
    // The bits of the magic number are shifted out at the upper end.
    let half = biased_twice.shr(1);
    (power_of_two(half), power_of_two(biased_twice - half))
}

/// e^x: 2^n e^r.
pub(super) fn exp(x: Var<'_>) -> Var<'_> {
    let format = Format::of(x);
    // Beyond these the result is 0 or inf.
    let x = x.at_least(format.choose(-104.0, -746.0)).at_most(format.choose(89.0, 710.0));
    let (biased_twice, r, r_rest) = reduce(x, 2 * format.bias);
    let (scale, rest) = two_factors(biased_twice);
    (r + exp_rest(r, r_rest)).fma(scale, scale) * rest
}

/// 2^x: 2^n 2^f with n the nearest integer.
pub(super) fn exp2(x: Var<'_>) -> Var<'_> {
    let format = Format::of(x);
    let x = x.at_least(format.choose(-151.0, -1076.0)).at_most(format.choose(129.0, 1025.0));
    let magic = format.magic() + 2.0 * format.bias as f64;
    let shifted = x + magic;
    let f = x - (shifted - magic);
    let series = match format.single {
        true => f.polynomial(&EXP2_F32),
        false => f.polynomial(&EXP2_F64),
    };
    let (scale, rest) = two_factors(shifted.bits());
    (f * scale).fma(series, scale) * rest
}

/// e^x - 1: 2^n (e^r - 1) + (2^n - 1), as twice the half of it, since 2^128 is not a number.
pub(super) fn expm1(x: Var<'_>) -> Var<'_> {
    let format = Format::of(x);
    let near = x.at_least(format.choose(-20.0, -40.0)).at_most(format.choose(89.0, 710.0));
    let (biased, r, r_rest) = reduce(near, format.bias - 1);
    let half = power_of_two(biased);
    let sum = half.fma(expm1_rest(r, r_rest), half.fma(r, half - 0.5));
    // Where x^2 / 2 is nothing beside x: halves of subnormal numbers and the sign of zero would be lost.
    x.abs().lt(format.choose(1e-12, 1e-24)).select(x, sum + sum)
}
