//! The error function and its complement.

use super::Format;
use super::code::{Var, fast_two_sum, quotient_parts};
use super::exp::{exp_rest, power_of_two, reduce, two_factors};

/// erf(x) / x - 1 in x^2, for |x| <= 1, by relative errors of erf. Error 2^-29.4.
const ERF_F32: [f64; 7] = [
    0.128_379_166,
    -0.376_126_26,
    0.112_835_787,
    -0.026_853_347_2,
    0.005_187_162_2,
    -0.000_799_785_31,
    7.806_903_89e-5,
];
/// Error 2^-56.0.
const ERF_F64: [f64; 12] = [
    0.128_379_167_095_512_56,
    -0.376_126_389_031_833_43,
    0.112_837_916_709_369_5,
    -0.026_866_170_641_959_147,
    0.005_223_977_596_725_922_5,
    -0.000_854_832_548_322_383_1,
    0.000_120_552_803_756_973_12,
    -1.492_446_146_752_071_5e-5,
    1.644_407_032_414_285_5e-6,
    -1.618_311_925_823_905_8e-7,
    1.361_169_184_224_024_2e-8,
    -7.595_992_701_774_594e-10,
];
/// ln(1 - erf(x)) for x from 1 to 4, by relative errors of erf. Error 2^-35.3.
const TAIL_F32: [f64; 9] = [
    0.000_202_072_362,
    -1.129_649_4,
    -0.633_065_581,
    -0.108_606_815,
    0.025_349_097_3,
    -0.004_270_717_04,
    0.000_460_380_019,
    -2.475_741_71e-5,
    2.122_343_83e-7,
];
/// To 6. Error 2^-57.0.
const TAIL_F64: [f64; 18] = [
    -5.028_358_036_943_037e-7,
    -1.128_374_089_621_958_5,
    -0.636_643_627_387_509_7,
    -0.102_703_441_575_488_87,
    0.018_990_182_983_844_483,
    0.000_410_621_912_559_320_06,
    -0.001_915_936_863_636_247_6,
    0.000_770_637_886_738_487,
    -0.000_135_046_990_165_408_94,
    -2.026_833_652_742_387e-5,
    2.282_315_580_050_348_8e-5,
    -8.667_363_344_645_965e-6,
    2.135_724_183_865_905_6e-6,
    -3.733_110_913_777_608e-7,
    4.642_392_911_987_391e-8,
    -3.934_350_641_838_153e-9,
    2.045_011_839_939_079e-10,
    -4.928_746_702_460_837e-12,
];

/// (1 + 2 x) e^(x^2) (1 - erf(x)) in (x - 2) / (x + 2) for x from 0.5 to 10.1; the first coefficient as a sum of two. Error 2^-30.6.
const ERFC_F32: [f64; 12] = [
    1.276_978_37,
    7.716_826_29e-9,
    -0.092_763_818_8,
    -0.166_030_347,
    0.164_050_803,
    -0.054_221_216_6,
    -0.008_026_605_47,
    0.008_732_416_67,
    0.001_224_739_59,
    -0.001_487_337_52,
    -0.000_322_515_349,
    0.000_236_898_733,
];
/// To 27.3. Error 2^-55.2.
const ERFC_F64: [f64; 25] = [
    1.276_978_381_552_528_6,
    8.858_458_842_986_755e-17,
    -0.092_763_826_585_746_06,
    -0.166_030_397_615_288_8,
    0.164_051_280_033_451_5,
    -0.054_220_000_992_093_53,
    -0.008_034_015_082_931_483,
    0.008_722_653_877_887_29,
    0.001_271_338_978_040_919_2,
    -0.001_456_813_991_772_447,
    -0.000_454_340_982_246_453_9,
    0.000_206_367_764_555_030_34,
    0.000_151_040_190_142_691_68,
    -1.514_153_237_498_579e-6,
    -3.642_656_118_594_515e-5,
    -1.347_145_285_778_722_8e-5,
    3.710_564_114_214_584_5e-6,
    5.156_575_028_216_483e-6,
    1.541_268_246_694_538_4e-6,
    -5.689_639_220_029_94e-7,
    -9.636_322_387_394_469e-7,
    -3.842_597_007_114_091e-7,
    3.351_947_269_505_41e-7,
    1.866_332_960_760_578e-7,
    -1.012_616_611_240_312_8e-7,
];

/// erf x: below 1 an odd polynomial, above it 1 - e^p(|x|), in which e^p is small.
pub(super) fn erf(x: Var<'_>) -> Var<'_> {
    let format = Format::of(x);
    let size = x.abs();
    let square = x * x;
    // Beyond these the result is 1.
    let far = size.at_most(format.choose(4.0, 6.0));
    let (near, tail) = match format.single {
        true => (square.polynomial(&ERF_F32), far.polynomial(&TAIL_F32)),
        false => (square.polynomial(&ERF_F64), far.polynomial(&TAIL_F64)),
    };
    let near = size.fma(near, size);
    let (biased, r, r_rest) = reduce(tail, format.bias);
    let scale = power_of_two(biased);
    // 1 - 2^n (1 + p)
    let complement = (-(r + exp_rest(r, r_rest))).fma(scale, 1.0 - scale);
    size.lt(1.0).select(near, complement).signed_as(x)
}

/// 1 - erf x. Near 0 it is that; from 1/2 on e^(-x^2) p / (1 + 2 x) with a polynomial p in (x - 2) / (x + 2) (M. M. Shepherd and
/// J. G. Laframboise), the square and the quotient as sums of two floats; 2 less that from -1/2 on down.
pub(super) fn erfc(x: Var<'_>) -> Var<'_> {
    let format = Format::of(x);
    let square = x * x;
    let series = match format.single {
        true => square.polynomial(&ERF_F32),
        false => square.polynomial(&ERF_F64),
    };
    let (near, lost) = fast_two_sum(x.float(1.0), -x);
    let near = near + (-x).fma(series, lost);

    // Beyond these the result is 0.
    let size = x.abs();
    let far = size.at_most(format.choose(10.1, 27.3));
    let t = (far - 2.0) / (far + 2.0);
    let (first, rest) = match format.single {
        true => (&ERFC_F32[..2], &ERFC_F32[2..]),
        false => (&ERFC_F64[..2], &ERFC_F64[2..]),
    };
    let (above, above_rest) = fast_two_sum(t.float(first[0]), t.fma(t.polynomial(rest), first[1]));
    let (below, below_rest) = fast_two_sum(far + far, far.float(1.0));
    let (scaled, scaled_rest) = quotient_parts(above, above_rest, below, below_rest);

    let high = far * far;
    let low = far.fma(far, -high);
    let (biased_twice, r, r_rest) = reduce(-high, 2 * format.bias);
    let (scale, scale_rest) = two_factors(biased_twice);
    let (p, p_rest) = fast_two_sum(r, exp_rest(r, r_rest));
    // (1 + p + p_rest - low (1 + p)) (scaled + scaled_rest), without products of two small numbers.
    let power = p + 1.0;
    let rest = scaled.fma((-low).fma(power, p_rest), scaled_rest * power);
    let tail = (scaled + p.fma(scaled, rest)) * scale * scale_rest;
    size.lt(0.5).select(near, x.lt(0.0).select(2.0 - tail, tail))
}
