//! Operands.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, SQRT_2};

use kina_ad::ir::DType;

/// F64s next to a multiple of pi/2: the nearest ones of all, 2^-61.5 to 2^-58.7 of a quadrant from it (found by continued fractions).
const NEXT_TO_QUADRANTS: [f64; 13] = [
    5.319372648326541e255,
    45.553093477052,
    1.0638745296653083e256,
    91.106186954104,
    14461176.67027838,
    3.576149729694266e39,
    2.1277490593306166e256,
    3.924293714572882e298,
    182.212373908208,
    6.426511099577231e173,
    1.3930726336834465e259,
    9.312926614229972e204,
    3.8281827772588983e59,
];

/// Where some code takes another way, results leave the range, or a reduction changes over: neighbours are tried.
fn thresholds(dtype: DType) -> Vec<f64> {
    let mut all = vec![0.5, 0.78, 1.0, SQRT_2, SQRT_2 / 2.0, 2.0, 4.0, 6.0, 10.0, 17.5, 20.0, 40.0];
    all.extend([SQRT_2 - 1.0, SQRT_2 / 2.0 - 1.0, 1e-12, 1e-24]);
    all.extend((1..32).map(|k| f64::from(2 * k - 1) * LN_2 / 2.0));
    all.extend((1..32).map(|k| f64::from(k) * FRAC_PI_4));
    all.extend((1..200).map(|k| f64::from(k * k) * FRAC_PI_2));
    all.extend(match dtype {
        DType::F32 => [88.722_84, 87.336_55, 103.972_08, 104.0, 89.0, 89.415_985, 10.054_67, 10.1],
        _ => [
            709.782_712_893_384,
            708.396_418_532_264_1,
            745.133_219_101_941_2,
            746.0,
            710.0,
            710.475_860_073_943_9,
            27.226_017_111_108_366,
            27.3,
        ],
    });
    all
}

/// splitmix64
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 31
    }
}

/// Special values; thresholds and powers of two with their neighbours; of every exponent, `density` numbers of both signs, and ten
/// times as many of the exponents from 2^-12 to 2^10.
pub fn sample(dtype: DType, density: usize) -> Vec<f64> {
    let mut out = super::special(dtype);
    let step = |x: f64, by: i64| match dtype {
        DType::F32 => f64::from(f32::from_bits(((x as f32).to_bits() as i64 + by) as u32)),
        _ => f64::from_bits((x.to_bits() as i64 + by) as u64),
    };
    let mut both = |x: f64| out.extend([x, -x]);
    for x in thresholds(dtype) {
        (-8..=8).for_each(|by| both(step(x, by)));
    }
    NEXT_TO_QUADRANTS.iter().for_each(|x| both(step(*x, 0)));
    let mut random = Random(7);
    let (exponents, stored, bias) = if dtype == DType::F32 { (255, 23, 127) } else { (2047, 52, 1023) };
    for exponent in 0..exponents {
        let lowest = (exponent as u64) << stored;
        let float = |bits: u64| match dtype {
            DType::F32 => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits),
        };
        (-1..=1).for_each(|by| both(float((lowest as i64 + by).max(0) as u64)));
        let wide = (-12..=10).contains(&(exponent - bias));
        for _ in 0..density * if wide { 10 } else { 1 } {
            both(float(lowest | random.next() >> (64 - stored)));
        }
    }
    out
}
