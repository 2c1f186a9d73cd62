//! Sine, cosine and tangent, exact in the reduction of every operand.
//!
//! What counts of y = |x| 2/pi is y modulo 4: the quadrant, and the distance to the nearest integer (M. H. Payne and R. N. Hanek).
//! 2/pi is cut into pieces of few bits. The pieces whose product with x is a multiple of 4 are passed over by a chain of selections,
//! one for each bit of their number, which also scales x down; of the following ones so many are used that the distance has all its
//! bits even where x is as near to a multiple of pi/2 as a float can be.

use super::code::{Var, fast_two_sum, quotient, two_sum};
use crate::ir::types::DType;

/// (sin r - r) / r^3 in r^2, for |r| <= pi / 4, for results in F32. Error 2^-37.5.
const SIN_F32: [f64; 4] =
    [-0.166_666_666_406_959_87, 0.008_333_329_292_876_649, -0.000_198_393_083_684_864_94, 2.718_084_093_437_915e-6];
/// (cos r - 1 + r^2 / 2) / r^4. Error 2^-33.0.
const COS_F32: [f64; 3] = [0.041_666_645_619_008_98, -0.001_388_731_308_073_272_7, 2.443_278_732_110_722_4e-5];
/// Error 2^-57.7.
const SIN_F64: [f64; 6] = [
    -0.166_666_666_666_666_3,
    0.008_333_333_333_321_84,
    -0.000_198_412_698_293_688_52,
    2.755_731_355_177_757e-6,
    -2.505_073_840_800_793_5e-8,
    1.589_578_303_814_728_4e-10,
];
/// Error 2^-63.9.
const COS_F64: [f64; 6] = [
    0.041_666_666_666_666_595,
    -0.001_388_888_888_887_332_5,
    2.480_158_728_898_363_4e-5,
    -2.755_731_421_004_746e-7,
    2.087_570_426_553_520_2e-9,
    -1.135_868_297_587_935_3e-11,
];

const HALF_PI: f64 = std::f64::consts::FRAC_PI_2;
const HALF_PI_REST: f64 = 6.123_233_995_736_766e-17;

/// 2/pi after the point, the most significant bits first. (The oracle that the result is held against has digits of its own.)
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// Piece `index` of `bits` bits of 2/pi, as a fraction of the unit that its first bit follows.
fn piece(index: usize, bits: usize) -> f64 {
    let bit = |at: usize| TWO_OVER_PI.get(at / 64).map_or(0, |limb| limb >> (63 - at % 64) & 1);
    let value = (index * bits..(index + 1) * bits).fold(0, |value, at| value << 1 | bit(at));
    value as f64 / (1_u64 << bits) as f64
}

/// How 2/pi is cut for operands of a format.
struct Cut {
    /// Bits of an operand.
    operand: i32,
    /// Bits of a piece.
    piece: usize,
    /// How many pieces the products are computed of.
    used: usize,
    /// How many pieces are passed over at most: of the greatest operand.
    passed: usize,
}

/// Products are exact in F64. An F32 comes no nearer to a multiple of pi/2 than 2^-33.
const CUT_F32: Cut = Cut { operand: 24, piece: 29, used: 4, passed: 3 };
/// Products are exact as sums of two. An F64 comes no nearer to a multiple of pi/2 than 2^-62.
const CUT_F64: Cut = Cut { operand: 53, piece: 48, used: 5, passed: 20 };

/// The operand scaled down by the pieces that are passed over, and the pieces that are used.
fn pieces<'t>(size: Var<'t>, cut: &Cut) -> (Var<'t>, Vec<Var<'t>>) {
    let mut size = size;
    let mut pieces: Vec<Var<'t>> = (0..cut.passed + cut.used).map(|i| size.float(piece(i, cut.piece))).collect();
    let mut step = (cut.passed + 1).next_power_of_two() / 2;
    while step > 0 {
        let bits = (step * cut.piece) as i32;
        // All bits of the product with the pieces before are worth 4 or more.
        let passes = size.ge(2_f64.powi(cut.operand + 1 + bits));
        size = passes.select(size * 2_f64.powi(-bits), size);
        pieces = (0..step - 1 + cut.used)
            .filter_map(|i| {
                let stays = *pieces.get(i)?;
                Some(pieces.get(i + step).map_or(stays, |next| passes.select(*next, stays)))
            })
            .collect();
        step /= 2;
    }
    (size, pieces)
}

/// `p` less the nearest multiple of 4.
fn modulo_4(p: Var<'_>) -> Var<'_> {
    (p * 0.25).round().fma(-4.0, p)
}

/// The quadrant, in the low bits of an integer, and the angle from there, at most pi/4; for F64 as a sum of two floats.
type Angle<'t> = (Var<'t>, Var<'t>, Option<Var<'t>>);

fn quadrant(n: Var<'_>) -> Var<'_> {
    (n + 6_755_399_441_055_744.0).bits()
}

/// Of an F32 as an F64.
fn reduce_single(size: Var<'_>) -> Angle<'_> {
    let (size, pieces) = pieces(size, &CUT_F32);
    let product = |k: usize| (size * 2_f64.powi(-((k * CUT_F32.piece) as i32))) * pieces[k];
    let (first, second, third, fourth) = (modulo_4(product(0)), product(1), product(2), product(3));
    let n = (first + (second + third)).round();
    // However much cancels here, what is left has all its bits.
    let (sum, lost) = two_sum(first - n, second);
    let turn = (sum + third) + (lost + fourth);
    (quadrant(n), turn * HALF_PI, None)
}

fn reduce_double(operand: Var<'_>) -> Angle<'_> {
    let (size, pieces) = pieces(operand, &CUT_F64);
    let product = |k: usize| {
        let scaled = size * 2_f64.powi(-((k * CUT_F64.piece) as i32));
        let high = scaled * pieces[k];
        (high, scaled.fma(pieces[k], -high))
    };
    let [(h0, l0), (h1, l1), (h2, l2), (h3, l3), (h4, _)] = [0, 1, 2, 3, 4].map(product);
    let (sum, e0) = two_sum(modulo_4(h0), modulo_4(l0));
    let (sum, e1) = two_sum(sum, modulo_4(h1));
    let (sum, e2) = two_sum(sum, h2);
    let (sum, e3) = two_sum(sum, l1);
    let n = sum.round();
    let mut turn = sum - n;
    let mut rest = l3 + h4;
    for part in [h3, l2, e0, e1, e2, e3] {
        let lost;
        (turn, lost) = two_sum(turn, part);
        rest = rest + lost;
    }
    let (turn, rest) = fast_two_sum(turn, rest);
    let angle = turn * HALF_PI;
    let lost = turn.fma(HALF_PI, -angle);
    let angle_rest = lost + turn.fma(HALF_PI_REST, rest * HALF_PI);
    // Small operands are their own angle, also where products with them are subnormal.
    let own = operand.lt(0.78);
    (quadrant(n), own.select(operand, angle), Some(own.select(operand.float(0.0), angle_rest)))
}

/// A sine and a cosine, each as a sum of two floats.
struct Both<'t> {
    sin: (Var<'t>, Var<'t>),
    cos: (Var<'t>, Var<'t>),
}

/// Of an angle up to pi/4, r + rest; without a rest with as many bits as results in F32 need.
fn kernel<'t>(r: Var<'t>, rest: Option<Var<'t>>) -> Both<'t> {
    let z = r * r;
    let half = z * 0.5;
    let near = 1.0 - half;
    let (cubed, fourth) = (r * z, z * z);
    let Some(rest) = rest else {
        let sin = (r, cubed * z.polynomial(&SIN_F32));
        return Both { sin, cos: (near, fourth * z.polynomial(&COS_F32)) };
    };
    let lost = (1.0 - near) - half;
    let sin = (r, cubed.fma(z.polynomial(&SIN_F64), (-half).fma(rest, rest)));
    Both { sin, cos: (near, fourth.fma(z.polynomial(&COS_F64), (-r).fma(rest, lost))) }
}

fn both(x: Var<'_>) -> (Var<'_>, Both<'_>) {
    let single = x.dtype() == DType::F32;
    let size = x.convert(DType::F64).abs();
    let (quadrant, r, rest) = if single { reduce_single(size) } else { reduce_double(size) };
    (quadrant, kernel(r, rest))
}

/// Sines from `quarter` turns on: of x, or with one quarter of |x|, which is its cosine.
fn sine_from<'t>(x: Var<'t>, quarter: i64) -> Var<'t> {
    let (quadrant, Both { sin, cos }) = both(x);
    let quadrant = quadrant + quarter;
    let odd = quadrant.and(1).eq(1_i64);
    // Sines of the third and fourth quadrant are negative, and those of negative operands the other way round.
    let sign = quadrant.and(2).shl(62);
    let sign = if quarter == 0 { sign.xor(x.convert(DType::F64).bits().and(i64::MIN)) } else { sign };
    odd.select(cos.0 + cos.1, sin.0 + sin.1).bits().xor(sign).float_of_bits().convert(x.dtype())
}

/// sin x; NaN of an infinity.
pub(super) fn sin(x: Var<'_>) -> Var<'_> {
    sine_from(x, 0)
}

/// cos x; NaN of an infinity.
pub(super) fn cos(x: Var<'_>) -> Var<'_> {
    sine_from(x, 1)
}

/// tan x, sin x / cos x or from odd quadrants -cos x / sin x; NaN of an infinity.
pub(super) fn tan(x: Var<'_>) -> Var<'_> {
    let (quadrant, Both { sin, cos }) = both(x);
    let odd = quadrant.and(1).eq(1_i64);
    let over = (odd.select(cos.0, sin.0), odd.select(cos.1, sin.1));
    let under = (odd.select(sin.0, cos.0), odd.select(sin.1, cos.1));
    let size = if x.dtype() == DType::F32 {
        (over.0 + over.1) / (under.0 + under.1)
    } else {
        let (over, under) = (fast_two_sum(over.0, over.1), fast_two_sum(under.0, under.1));
        quotient(over.0, over.1, under.0, under.1)
    };
    let sign = quadrant.shl(63).xor(x.convert(DType::F64).bits().and(i64::MIN));
    size.bits().xor(sign).float_of_bits().convert(x.dtype())
}
