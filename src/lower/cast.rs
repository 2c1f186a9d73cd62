//! Conversions between dtypes, defined for every value.

use melior::ir::Value;

use super::LowerError;
use super::builder::Builder;
use crate::ir::DType;

/// `x` of dtype `from` as `to`, by the rules of [`Scalar::Cast`](crate::ir::kernel::Scalar::Cast).
pub(super) fn cast<'c, 'a>(
    b: &Builder<'c, 'a>,
    x: Value<'c, 'a>,
    from: DType,
    to: DType,
) -> Result<Value<'c, 'a>, LowerError> {
    let ty = b.computed(to);
    let name = match (from, to) {
        (DType::Bool, DType::Bool)
        | (DType::I32, DType::I32)
        | (DType::I64, DType::I64)
        | (DType::F32, DType::F32)
        | (DType::F64, DType::F64) => return Ok(x),
        // Unordered or not equal: NaN is true.
        (DType::F32 | DType::F64, DType::Bool) => return b.cmpf(13, x, b.constant_float(0.0, b.computed(from))?),
        (DType::I32 | DType::I64, DType::Bool) => return b.cmpi(1, x, b.constant_int(0, b.computed(from))?),
        (DType::Bool, DType::I32 | DType::I64) => "arith.extui",
        (DType::Bool, DType::F32 | DType::F64) => "arith.uitofp",
        (DType::I32, DType::I64) => "arith.extsi",
        (DType::I64, DType::I32) => {
            let least = b.constant_int(i64::from(i32::MIN), b.computed(from))?;
            let greatest = b.constant_int(i64::from(i32::MAX), b.computed(from))?;
            let x = b.value("arith.maxsi", &[x, least], b.computed(from), &[])?;
            let x = b.value("arith.minsi", &[x, greatest], b.computed(from), &[])?;
            return b.value("arith.trunci", &[x], ty, &[]);
        }
        (DType::I32 | DType::I64, DType::F32 | DType::F64) => "arith.sitofp",
        (DType::F32, DType::F64) => "arith.extf",
        (DType::F64, DType::F32) => "arith.truncf",
        (DType::F32 | DType::F64, DType::I32 | DType::I64) => return float_to_int(b, x, from, to),
    };
    b.value(name, &[x], ty, &[])
}

/// Truncated and saturating, NaN to 0. `arith.fptosi` of anything out of range is poison, so it sees only what is in
/// range.
fn float_to_int<'c, 'a>(
    b: &Builder<'c, 'a>,
    x: Value<'c, 'a>,
    from: DType,
    to: DType,
) -> Result<Value<'c, 'a>, LowerError> {
    let (float, int) = (b.computed(from), b.computed(to));
    let (least, greatest) = match to {
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    // -2^31 and -2^63 are floats of both formats, and so are their negations. Between -2^31 - 1 and -2^31, f64 has
    // values that truncate to -2^31, which saturating gives as well.
    let limit = least as f64;
    let (low, high) = (b.constant_float(limit, float)?, b.constant_float(-limit, float)?);
    let at_least = b.cmpf(3, x, low)?;
    let below = b.cmpf(4, x, high)?;
    let inside = b.value("arith.andi", &[at_least, below], b.int_type(1), &[])?;
    let zero = b.constant_float(0.0, float)?;
    let safe = b.select(inside, x, zero, float)?;
    let whole = b.value("arith.fptosi", &[safe], int, &[])?;
    let too_small = b.cmpf(4, x, low)?;
    let too_large = b.cmpf(3, x, high)?;
    let whole = b.select(too_small, b.constant_int(least, int)?, whole, int)?;
    b.select(too_large, b.constant_int(greatest, int)?, whole, int)
}
