//! The arithmetics in which kernels can be computed.

use std::cmp::Ordering;
use std::fmt::Debug;

use crate::ir::kernel::{BinaryFn, UnaryFn};
use crate::ir::{DType, Precision, ops};

/// What floats are, and how they compute. Integers and Bools are the same in every arithmetic.
pub trait Arithmetic: Copy {
    type Float: Copy + PartialOrd + Debug;

    /// A value of a float dtype.
    fn constant(&self, value: f64, dtype: DType) -> Self::Float;

    /// A value of another float dtype, as one of this.
    fn round(&self, value: Self::Float, dtype: DType) -> Self::Float;

    fn of_i64(&self, value: i64, dtype: DType) -> Self::Float;

    /// Towards zero, saturating; NaN gives 0.
    fn to_i64(&self, value: Self::Float) -> i64;

    /// A function of floats: not of `Not`, which is one of Bools.
    fn unary(&self, f: UnaryFn, x: Self::Float, dtype: DType) -> Self::Float;

    /// A function of floats: not of `And` and `Or`, which are functions of Bools.
    fn binary(&self, f: BinaryFn, a: Self::Float, b: Self::Float, dtype: DType) -> Self::Float;
}

/// f64, rounded to the dtype or not.
impl Arithmetic for Precision {
    type Float = f64;

    fn constant(&self, value: f64, dtype: DType) -> f64 {
        Precision::round(*self, dtype, value)
    }

    fn round(&self, value: f64, dtype: DType) -> f64 {
        Precision::round(*self, dtype, value)
    }

    fn of_i64(&self, value: i64, dtype: DType) -> f64 {
        match (self, dtype) {
            // Rounded once.
            (Precision::Typed, DType::F32) => (value as f32).into(),
            _ => value as f64,
        }
    }

    fn to_i64(&self, value: f64) -> i64 {
        value as i64
    }

    fn unary(&self, f: UnaryFn, x: f64, dtype: DType) -> f64 {
        let y = match f {
            UnaryFn::Neg => -x,
            UnaryFn::Abs => x.abs(),
            UnaryFn::Sqrt => x.sqrt(),
            UnaryFn::Rsqrt => x.sqrt().recip(),
            UnaryFn::Floor => x.floor(),
            UnaryFn::Ceil => x.ceil(),
            UnaryFn::Round => x.round_ties_even(),
            UnaryFn::Exp => x.exp(),
            UnaryFn::Exp2 => x.exp2(),
            UnaryFn::Expm1 => x.exp_m1(),
            UnaryFn::Log => x.ln(),
            UnaryFn::Log1p => x.ln_1p(),
            UnaryFn::Cbrt => x.cbrt(),
            UnaryFn::Sin => x.sin(),
            UnaryFn::Cos => x.cos(),
            UnaryFn::Tan => x.tan(),
            UnaryFn::Asin => x.asin(),
            UnaryFn::Acos => x.acos(),
            UnaryFn::Atan => x.atan(),
            UnaryFn::Sinh => x.sinh(),
            UnaryFn::Cosh => x.cosh(),
            UnaryFn::Tanh => x.tanh(),
            UnaryFn::Sigmoid => ops::sigmoid(x),
            UnaryFn::Erf => libm::erf(x),
            UnaryFn::Erfc => libm::erfc(x),
            UnaryFn::Not => f64::NAN,
        };
        Precision::round(*self, dtype, y)
    }

    fn binary(&self, f: BinaryFn, a: f64, b: f64, dtype: DType) -> f64 {
        let y = match f {
            BinaryFn::Add => a + b,
            BinaryFn::Sub => a - b,
            BinaryFn::Mul => a * b,
            BinaryFn::Div => a / b,
            BinaryFn::Max => -least(-a, -b),
            BinaryFn::Min => least(a, b),
            BinaryFn::Pow => a.powf(b),
            BinaryFn::Atan2 => a.atan2(b),
            BinaryFn::And | BinaryFn::Or => f64::NAN,
        };
        Precision::round(*self, dtype, y)
    }
}

/// IEEE `minimum`: NaN if one is, -0 before +0.
fn least(a: f64, b: f64) -> f64 {
    match a.partial_cmp(&b) {
        None => f64::NAN,
        Some(Ordering::Equal) if a.is_sign_negative() => a,
        Some(Ordering::Less) => a,
        Some(_) => b,
    }
}
