//! Elementary functions as straight-line code.
//!
//! Each function is written once, for both float dtypes, as a list of steps without branches, calls or tables ([`Code`]). `lower`
//! emits the steps as operations that LLVM vectorises at any width, so that an element's value does not depend on its place; and they
//! are evaluated here, without LLVM, for tests. Steps round as IEEE 754 says, so both agree bit by bit.
//!
//! What holds for all of them, and is tested: no result is further than 2 units in the last place from the exact value, subnormal
//! numbers are numbers like others, and zeros, infinities and NaN give what IEEE 754 asks (`docs/numerics.md`). No step has an
//! undefined result: integers are taken from floats by adding a number so large that the sum's last bit is worth 1, not by a
//! conversion, which NaN does not have.
//!
//! Polynomials are minimax; `fit.py`, beside this file, finds them. Reductions of the range are named where they are used.

mod code;
mod error_function;
mod evaluate;
mod exp;
mod hyperbolic;
mod log;
mod trigonometric;

pub use code::{Code, Op, Step, StepId};

use code::Var;

use super::kernel::UnaryFn;
use super::types::DType;

/// The code of a function of floats; `None` for functions that have none.
pub fn code(f: UnaryFn, dtype: DType) -> Option<Code> {
    if !dtype.is_float() {
        return None;
    }
    Some(match f {
        UnaryFn::Rsqrt => Code::record(dtype, |x| 1.0 / x.sqrt()),
        UnaryFn::Exp => Code::record(dtype, exp::exp),
        UnaryFn::Expm1 => Code::record(dtype, exp::expm1),
        UnaryFn::Log => Code::record(dtype, log::log),
        UnaryFn::Log1p => Code::record(dtype, log::log1p),
        UnaryFn::Exp2 => Code::record(dtype, exp::exp2),
        UnaryFn::Sinh => Code::record(dtype, hyperbolic::sinh),
        UnaryFn::Cosh => Code::record(dtype, hyperbolic::cosh),
        UnaryFn::Tan => Code::record(dtype, trigonometric::tan),
        UnaryFn::Sigmoid => Code::record(dtype, hyperbolic::sigmoid),
        UnaryFn::Tanh => Code::record(dtype, hyperbolic::tanh),
        UnaryFn::Sin => Code::record(dtype, trigonometric::sin),
        UnaryFn::Cos => Code::record(dtype, trigonometric::cos),
        UnaryFn::Erf => Code::record(dtype, error_function::erf),
        UnaryFn::Erfc => Code::record(dtype, error_function::erfc),
        _ => return None,
    })
}

/// How a function with code is computed, for people: a clause.
pub fn method(f: UnaryFn) -> Option<&'static str> {
    Some(match f {
        UnaryFn::Rsqrt => "1 / sqrt(x), each rounded",
        UnaryFn::Exp => {
            "x = n ln 2 + r by Cody and Waite, ln 2 in two parts, r as a sum of two floats; e^r by a polynomial of degree 6 (F32) or 11 (F64); 2^n in two factors, \
             so that results down to the least subnormal are rounded once"
        }
        UnaryFn::Expm1 => "as exp, by degree 7 or 12; 2^n (e^r - 1) + (2^n - 1)",
        UnaryFn::Log => {
            "x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2); ln(1 + f) by a polynomial of degree 10 in f (F32), or of degree 13 in \
             f / (2 + f) (F64); k ln 2 in two parts"
        }
        UnaryFn::Log1p => "as log, of the float nearest to 1 + x, with what that rounding loses added to f",
        UnaryFn::Tanh => {
            "t / (t + 2) with t = e^(2|x|) - 1, numerator and denominator as sums of two floats, the quotient corrected once"
        }
        UnaryFn::Exp2 => {
            "x = n + f with n the nearest integer; 2^f by a polynomial of degree 6 (F32) or 12 (F64); 2^n in two factors"
        }
        UnaryFn::Sinh => {
            "below 1 an odd polynomial of degree 9 (F32) or 15 (F64); from 1 on h - 1 / (4 h) with h = e^|x| / 2, infinite only where \
             the result is"
        }
        UnaryFn::Cosh => "h + 1 / (4 h) with h = e^|x| / 2, infinite only where the result is",
        UnaryFn::Sigmoid => {
            "1 / (1 + e) for x from 0 on, e / (1 + e) below, with e = e^-|x|; numerator and denominator as sums of two floats, the \
             quotient corrected once"
        }
        UnaryFn::Tan => "as sin, the sine and cosine each as a sum of two floats (F64), their quotient corrected once",
        UnaryFn::Sin => {
            "x times 2/pi modulo 4 by Payne and Hanek, computed in F64, in all ranges alike: pieces of 2/pi chosen by selections, their \
             products exact; polynomials of degree 9 and 8 (F32) or 13 and 14 (F64) for the sine and cosine of what is left"
        }
        UnaryFn::Cos => "as sin, a quarter turn further",
        UnaryFn::Erf => {
            "below 1 an odd polynomial of degree 13 (F32) or 23 (F64); from 1 on 1 - e^p, p a polynomial in |x| of degree 8 or 17"
        }
        UnaryFn::Erfc => {
            "below 1/2 as erf; from there on e^(-x^2) p / (1 + 2 x) with a polynomial p in (x - 2) / (x + 2) of degree 10 (F32) or 23 (F64), \
             after Shepherd and Laframboise, with the square, the quotient and e^r as sums of two floats; 2 less that below -1/2"
        }
        _ => return None,
    })
}

/// A binary format.
#[derive(Clone, Copy)]
struct Format {
    single: bool,
    /// Bits of a significand without its first one, which is not stored.
    stored: u32,
    /// What is added to exponents.
    bias: i64,
}

impl Format {
    fn of(x: Var<'_>) -> Format {
        if x.dtype() == DType::F32 {
            Format { single: true, stored: 23, bias: 127 }
        } else {
            Format { single: false, stored: 52, bias: 1023 }
        }
    }

    /// One constant for F32, another for F64.
    fn choose<T>(self, single: T, double: T) -> T {
        if self.single { single } else { double }
    }

    /// 1.5 * 2^stored. Added to a number that is small beside it, it rounds that to an integer, which the sum's low bits are.
    fn magic(self) -> f64 {
        self.choose(12_582_912.0, 6_755_399_441_055_744.0)
    }
}
