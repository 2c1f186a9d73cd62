//! Logarithms.

use super::Format;
use super::code::{Var, two_sum};

/// (ln(1 + f) - f + f^2 / 2) / f^3 for 1 + f from sqrt(1/2) to sqrt(2). Error 2^-27.3.
const LOG_F32: [f64; 8] = [
    0.333_333_313,
    -0.250_008_225,
    0.200_012_594,
    -0.166_233_212,
    0.142_009_526,
    -0.131_597_385,
    0.127_674_341,
    -0.076_433_256_3,
];
/// (ln((1 + s) / (1 - s)) - 2 s) / s^3 in s^2, for s up to (sqrt(2) - 1) / (sqrt(2) + 1). Error 2^-59.4.
const LOG_F64: [f64; 7] = [
    0.666_666_666_666_673_5,
    0.399_999_999_994_093_4,
    0.285_714_287_436_419_7,
    0.222_221_984_394_617_27,
    0.181_835_713_904_525,
    0.153_138_702_531_051_05,
    0.147_977_254_345_004_06,
];

/// x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), for a positive normal number: k + bias as an integer; 1 + f.
fn split(x: Var<'_>) -> (Var<'_>, Var<'_>) {
    let format = Format::of(x);
    let bits = x.bits();
    // The distance from sqrt(1/2) to 1 is added, so that a significand from sqrt(2) on carries into the exponent.
    let low = format.choose(0x3f35_04f3, 0x3fe6_a09e_667f_3bcd);
    let sum = bits + (format.bias.wrapping_shl(format.stored) - low);
    let biased = sum.shr(format.stored);
    (biased, (sum.and((1 << format.stored) - 1) + low).float_of_bits())
}

/// The float k, from k + bias; `bias` may have further numbers in it.
fn exponent<'t>(biased: Var<'t>, bias: Var<'t>) -> Var<'t> {
    // 2^stored with the integer in its low bits.
    let format = Format::of(bias);
    let one = biased.int((format.bias + i64::from(format.stored)) << format.stored);
    biased.or(one).float_of_bits() - bias
}

/// 2^stored + bias, for [`exponent`].
fn offset(format: Format) -> f64 {
    (1_i64 << format.stored) as f64 + format.bias as f64
}

/// k ln 2 + ln(1 + f + f_rest) for the f of [`split`], f_rest being nothing beside 1.
fn sum<'t>(k: Var<'t>, f: Var<'t>, f_rest: Option<Var<'t>>) -> Var<'t> {
    let format = Format::of(f);
    let (high, low) = format.ln_2();
    let low = match f_rest {
        Some(rest) => k.fma(low, rest),
        None => k * low,
    };
    let square = f * f;
    if format.single {
        let series = f.polynomial(&LOG_F32);
        let rest = square.fma(f.fma(series, -0.5), low);
        return k.fma(high, f + rest);
    }
    // ln(1 + f) = f - h + s (h + R) with h = f^2 / 2, s = f / (2 + f), R = ln((1 + s) / (1 - s)) / s - 2.
    let s = f / (f + 2.0);
    let z = s * s;
    let half = square * 0.5;
    let series = z.fma(z.polynomial(&LOG_F64), half);
    k.fma(high, f - (half - s.fma(series, low)))
}

/// `value` where x is positive and finite; elsewhere the logarithm of x: -inf of zero, NaN below, x itself if it is inf or NaN.
fn special<'t>(x: Var<'t>, value: Var<'t>) -> Var<'t> {
    let infinite = f64::INFINITY;
    let other = x.lt(0.0).select(x.float(f64::NAN), x);
    let other = x.eq(0.0).select(x.float(-infinite), other);
    // Bits of positive finite numbers lie between those of 0 and inf.
    let bits = x.bits();
    let last = Format::of(x).choose(0x7f80_0000 - 1, 0x7ff0_0000_0000_0000 - 1);
    (bits - 1_i64).below(bits.int(last)).select(value, other)
}

/// ln x.
pub(super) fn log(x: Var<'_>) -> Var<'_> {
    let format = Format::of(x);
    let tiny = x.lt(format.choose(f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE));
    let up = format.choose(23, 52);
    let normal = tiny.select(x * (1_u64 << up) as f64, x);
    let (biased, m) = split(normal);
    let bias = offset(format);
    let bias = tiny.select(x.float(bias + f64::from(up)), bias);
    special(x, sum(exponent(biased, bias), m - 1.0, None))
}

/// ln(1 + x): the logarithm of the float nearest to 1 + x, with what that rounding lost beside f.
pub(super) fn log1p(x: Var<'_>) -> Var<'_> {
    let format = Format::of(x);
    let (u, lost) = two_sum(x.float(1.0), x);
    let (biased, m) = split(u);
    let k = exponent(biased, x.float(offset(format)));
    // 2^-k; where k is large, nothing is lost that counts.
    let limit = biased.int(format.bias + 60);
    let near = biased.lt(limit).select(biased, limit);
    let down = (biased.int(2 * format.bias) - near).shl(format.stored).float_of_bits();
    let (f, lost) = (m - 1.0, lost * down);
    let whole = f + lost;
    let y = special(u, sum(k, whole, Some(lost - (whole - f))));
    // The sum 1 + x has no sign of zero.
    x.eq(0.0).select(x, y)
}
