//! Elements of generated inputs.

use kina_ad::ir::{DType, TensorType};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Which elements an input gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mix {
    /// Multiples of a half between -4 and 4: arithmetic on them is exact, and ties are common.
    Dyadic,
    /// All bits of the significand are in use, and no two elements are near each other or near 0.
    Ordinary,
    /// All elements equal.
    Equal,
    /// Infinities, NaN, both zeros, subnormals, the ends of the range, among dyadic numbers.
    Special,
    /// Powers of two over all of the range.
    Scales,
    /// -inf, and a number now and then: rows without a finite maximum.
    Masked,
    /// In bounds for a dimension of this size.
    Indices(u64),
    /// The same, but that some are out of bounds.
    Wild(u64),
}

/// For inputs that index nothing; the likelier ones several times.
pub const MIXES: [Mix; 9] = [
    Mix::Dyadic,
    Mix::Dyadic,
    Mix::Ordinary,
    Mix::Ordinary,
    Mix::Ordinary,
    Mix::Equal,
    Mix::Special,
    Mix::Scales,
    Mix::Masked,
];

fn specials(dtype: DType) -> [f64; 16] {
    let (least, normal, greatest) = match dtype {
        DType::F32 => (2f64.powi(-149), f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)),
        _ => (2f64.powi(-1074), f64::MIN_POSITIVE, f64::MAX),
    };
    let nan = f64::NAN;
    let inf = f64::INFINITY;
    [0.0, -0.0, inf, -inf, nan, least, -least, normal, normal / 8.0, greatest, -greatest, 1.0, -1.0, 0.5, 88.0, -104.0]
}

const INTS: [i64; 8] = [0, -1, 1, i32::MAX as i64, i32::MIN as i64, i64::MAX, i64::MIN, 1 << 53];

/// So many elements at most; they are repeated. A prime, so that rows differ.
const PERIOD: u64 = 37;

/// The elements as a program file lists them, those of `seed` on every machine.
pub fn elements(ty: &TensorType, mix: Mix, seed: u64) -> Vec<String> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let n = if mix == Mix::Equal { 1 } else { ty.shape.elements().min(PERIOD) };
    (0..n)
        .map(|i| match ty.dtype {
            DType::Bool => (random.next_u32() & 1 == 1).to_string(),
            DType::F32 => format!("{:?}", float(&mut random, ty.dtype, mix, i) as f32),
            DType::F64 => format!("{:?}", float(&mut random, ty.dtype, mix, i)),
            DType::I64 => int(&mut random, mix).to_string(),
            DType::I32 => int(&mut random, mix).clamp(i32::MIN.into(), i32::MAX.into()).to_string(),
        })
        .collect()
}

fn below(random: &mut ChaCha8Rng, n: u64) -> u64 {
    random.next_u64() % n
}

fn float(random: &mut ChaCha8Rng, dtype: DType, mix: Mix, place: u64) -> f64 {
    let sign = if random.next_u32() & 1 == 0 { 1.0 } else { -1.0 };
    match mix {
        // Distinct by the element's place; the sign by chance.
        Mix::Ordinary => {
            let jitter = below(random, 1 << 20) as f64 / f64::from(1 << 26);
            sign * (0.25 + (place as f64 * 0.618_033_988_749_894_9 + jitter) % 2.25)
        }
        Mix::Special if below(random, 2) == 0 => specials(dtype)[below(random, 16) as usize],
        Mix::Scales => {
            let span = if dtype == DType::F32 { 140 } else { 1000 };
            sign * 2f64.powi(below(random, 2 * span + 1) as i32 - span as i32)
        }
        Mix::Masked if below(random, 3) > 0 => f64::NEG_INFINITY,
        Mix::Masked => 0.25,
        _ => below(random, 17) as f64 / 2.0 - 4.0,
    }
}

fn int(random: &mut ChaCha8Rng, mix: Mix) -> i64 {
    match mix {
        Mix::Indices(size) => below(random, size.max(1)) as i64,
        Mix::Wild(size) => below(random, size + 2) as i64 - 1,
        Mix::Special | Mix::Scales if below(random, 2) == 0 => INTS[below(random, 8) as usize],
        _ => below(random, 12) as i64 - 3,
    }
}
