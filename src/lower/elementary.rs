//! Elementary functions as inline polynomials.

use melior::ir::Value;

use super::LowerError;
use super::builder::Builder;

/// exp in f32 within 2 ULP, subnormal results included; exp(-inf) = 0, exp(+inf) = +inf, NaN stays NaN.
///
/// Range reduction x = n ln 2 + r, |r| <= ln 2 / 2, in the way of Cody and Waite, with n rounded by adding 1.5 * 2^23: the sum's low
/// bits are n, and taking them by a bit cast is defined for NaN too (a conversion of NaN to an integer is not).
/// exp(r) by the degree-7 polynomial of the Cephes library's `expf`. 2^n is multiplied in two halves, so that n = 128 and results
/// below the normal range come out right.
pub(super) fn exp_f32<'c, 'a>(b: &Builder<'c, 'a>, x: Value<'c, 'a>) -> Result<Value<'c, 'a>, LowerError> {
    const POLYNOMIAL: [f64; 6] = [
        1.987_569_15e-4,
        1.398_199_950_7e-3,
        8.333_451_907_3e-3,
        4.166_579_589_4e-2,
        1.666_666_545_9e-1,
        5.000_000_120_1e-1,
    ];
    let (f32, i32) = (b.computed(crate::ir::DType::F32), b.computed(crate::ir::DType::I32));
    let constant = |v: f64| b.constant_float(v, f32);
    let int = |v: i64| b.constant_int(v, i32);
    let op = |name: &str, a, c| b.value(name, &[a, c], f32, &[]);
    let iop = |name: &str, a, c| b.value(name, &[a, c], i32, &[]);
    let fma = |p, q, r| b.value("math.fma", &[p, q, r], f32, &[]);

    // Beyond these the result is 0 or inf anyway; a comparison with NaN is false, so NaN passes.
    let (low, high) = (constant(-104.0)?, constant(89.0)?);
    let below = b.cmpf(4, x, low)?;
    let x = b.select(below, low, x, f32)?;
    let above = b.cmpf(2, x, high)?;
    let x = b.select(above, high, x, f32)?;

    let magic = constant(12_582_912.0)?;
    let scaled = op("arith.mulf", x, constant(std::f64::consts::LOG2_E)?)?;
    let shifted = op("arith.addf", scaled, magic)?;
    let n = op("arith.subf", shifted, magic)?;
    let bits = b.value("arith.bitcast", &[shifted], i32, &[])?;
    let whole = iop("arith.subi", bits, int(0x4B40_0000)?)?;
    let r = fma(n, constant(-0.693_359_375)?, x)?;
    let r = fma(n, constant(2.121_944_4e-4)?, r)?;

    let mut p = constant(POLYNOMIAL[0])?;
    for c in &POLYNOMIAL[1..] {
        p = fma(p, r, constant(*c)?)?;
    }
    let square = op("arith.mulf", r, r)?;
    let y = op("arith.addf", fma(p, square, r)?, constant(1.0)?)?;

    let half = iop("arith.shrsi", whole, int(1)?)?;
    let rest = iop("arith.subi", whole, half)?;
    let power = |k| {
        let biased = iop("arith.addi", k, int(127)?)?;
        let shifted = iop("arith.shli", biased, int(23)?)?;
        b.value("arith.bitcast", &[shifted], f32, &[])
    };
    let y = op("arith.mulf", y, power(half)?)?;
    op("arith.mulf", y, power(rest)?)
}
