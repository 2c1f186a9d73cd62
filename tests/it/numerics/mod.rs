//! Elementary functions: every result within 2 units in the last place of the exact value, and the right one where that is a
//! zero, an infinity or no number. `docs/numerics.md` says what was measured.

#[cfg(feature = "codegen")]
mod compiled;
mod document;
mod sample;

use kina_ad::interp::precise::Big;
use kina_ad::ir::DType;
use kina_ad::ir::elementary::code;
use kina_ad::ir::kernel::UnaryFn;

/// What is promised, in units in the last place.
const PROMISED: f64 = 2.0;

/// An elementary function.
struct Function {
    name: &'static str,
    /// Computed in F64, with an error that is nothing beside F32.
    wide: fn(f64) -> f64,
    exact: fn(Big) -> Big,
    code: UnaryFn,
}

const FUNCTIONS: [Function; 15] = [
    Function { name: "exp", wide: f64::exp, exact: Big::exp, code: UnaryFn::Exp },
    Function { name: "exp2", wide: f64::exp2, exact: Big::exp2, code: UnaryFn::Exp2 },
    Function { name: "expm1", wide: f64::exp_m1, exact: Big::expm1, code: UnaryFn::Expm1 },
    Function { name: "log", wide: f64::ln, exact: Big::ln, code: UnaryFn::Log },
    Function { name: "log1p", wide: f64::ln_1p, exact: Big::ln_1p, code: UnaryFn::Log1p },
    Function { name: "sinh", wide: f64::sinh, exact: Big::sinh, code: UnaryFn::Sinh },
    Function { name: "cosh", wide: f64::cosh, exact: Big::cosh, code: UnaryFn::Cosh },
    Function { name: "tanh", wide: f64::tanh, exact: Big::tanh, code: UnaryFn::Tanh },
    Function { name: "sigmoid", wide: |x| 1.0 / (1.0 + (-x).exp()), exact: Big::sigmoid, code: UnaryFn::Sigmoid },
    Function { name: "erf", wide: libm::erf, exact: Big::erf, code: UnaryFn::Erf },
    Function { name: "erfc", wide: libm::erfc, exact: Big::erfc, code: UnaryFn::Erfc },
    Function { name: "sin", wide: f64::sin, exact: Big::sin, code: UnaryFn::Sin },
    Function { name: "cos", wide: f64::cos, exact: Big::cos, code: UnaryFn::Cos },
    Function { name: "tan", wide: f64::tan, exact: Big::tan, code: UnaryFn::Tan },
    Function { name: "rsqrt", wide: |x| 1.0 / x.sqrt(), exact: Big::rsqrt, code: UnaryFn::Rsqrt },
];

const DTYPES: [DType; 2] = [DType::F32, DType::F64];

/// The worst result of a sample.
#[derive(Clone, Copy, Debug, Default)]
struct Worst {
    ulps: f64,
    at: f64,
    result: f64,
}

impl Function {
    /// The function of values of a dtype, as compiled code computes it.
    fn evaluate(&self, dtype: DType, operands: &[f64]) -> Vec<f64> {
        operands.chunks(512).flat_map(|chunk| self.evaluate_chunk(dtype, chunk)).collect()
    }

    fn evaluate_chunk(&self, dtype: DType, operands: &[f64]) -> Vec<f64> {
        let code = code(self.code, dtype).expect("it has code");
        if dtype == DType::F64 {
            return code.evaluate_f64(operands).expect("it is code of F64");
        }
        let narrow: Vec<f32> = operands.iter().map(|x| *x as f32).collect();
        code.evaluate_f32(&narrow).expect("it is code of F32").into_iter().map(f64::from).collect()
    }

    /// The error of a result in units in the last place: infinite if it is an infinity, a NaN or a zero of a sign that it
    /// should not be. In F32 by arithmetic in F64, unless that is `exactly` asked for.
    fn error(&self, dtype: DType, x: f64, result: f64, exactly: bool) -> f64 {
        if dtype == DType::F64 || exactly {
            let exact = (self.exact)(Big::from_f64(x));
            let sign = exact.to_float(dtype).is_sign_negative() == result.is_sign_negative();
            return if result == 0.0 && !sign { f64::INFINITY } else { exact.ulps(result, dtype) };
        }
        let want = (self.wide)(x);
        let nearest = f64::from(want as f32);
        if nearest == 0.0 && result == 0.0 {
            return if nearest.is_sign_negative() == result.is_sign_negative() { 0.0 } else { f64::INFINITY };
        }
        if nearest == result || nearest.is_nan() && result.is_nan() {
            return 0.0;
        }
        if !nearest.is_finite() || !result.is_finite() {
            return f64::INFINITY;
        }
        let exponent = (want.to_bits() >> 52 & 0x7ff) as i32 - 1023;
        (want - result).abs() / 2_f64.powi((exponent - 23).max(-149))
    }

    /// The worst of some results, its error exact.
    fn worst(&self, dtype: DType, operands: &[f64], results: &[f64]) -> Worst {
        assert_eq!(operands.len(), results.len());
        let mut worst = Worst::default();
        for (x, y) in operands.iter().zip(results) {
            let ulps = self.error(dtype, *x, *y, false);
            if ulps > worst.ulps {
                worst = Worst { ulps, at: *x, result: *y };
            }
        }
        if worst.ulps > 0.0 {
            worst.ulps = self.error(dtype, worst.at, worst.result, true);
        }
        worst
    }
}

/// Operands that are special in every function.
fn special(dtype: DType) -> Vec<f64> {
    let (least, max) =
        if dtype == DType::F32 { (f32::from_bits(1).into(), f32::MAX.into()) } else { (f64::from_bits(1), f64::MAX) };
    vec![f64::NEG_INFINITY, -max, -1.0, -least, -0.0, 0.0, least, 1.0, max, f64::INFINITY, f64::NAN]
}

/// Is it the same number, sign of zero included, or is neither a number?
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

#[test]
fn special_values_are_those_of_ieee_754() {
    for function in &FUNCTIONS {
        for dtype in DTYPES {
            let operands = special(dtype);
            for (x, result) in operands.iter().zip(function.evaluate(dtype, &operands)) {
                let exact = (function.exact)(Big::from_f64(*x)).to_float(dtype);
                let special = exact == 0.0 || !exact.is_finite();
                let right =
                    if special { same(result, exact) } else { function.error(dtype, *x, result, true) <= PROMISED };
                assert!(right, "{} {dtype} of {x:e} is {result:e}, not {exact:e}", function.name);
            }
        }
    }
}

/// Bounds that rules and operators rely on hold of rounded results too.
#[test]
fn results_stay_in_range_and_symmetric() {
    for dtype in DTYPES {
        let operands = sample::sample(dtype, 2);
        let mirrored: Vec<f64> = operands.iter().map(|x| -x).collect();
        for function in &FUNCTIONS {
            let results = function.evaluate(dtype, &operands);
            let (low, high) = match function.name {
                "exp" | "exp2" => (0.0, f64::INFINITY),
                "sigmoid" => (0.0, 1.0),
                "erfc" => (0.0, 2.0),
                "cosh" => (1.0, f64::INFINITY),
                "expm1" => (-1.0, f64::INFINITY),
                "tanh" | "erf" | "sin" | "cos" => (-1.0, 1.0),
                _ => (f64::NEG_INFINITY, f64::INFINITY),
            };
            let outside = results.iter().zip(&operands).find(|(y, _)| **y < low || **y > high);
            assert_eq!(outside, None, "{} {dtype}", function.name);
            let sign = match function.name {
                "sinh" | "tanh" | "erf" | "sin" | "tan" => -1.0,
                "cosh" | "cos" => 1.0,
                _ => continue,
            };
            let others = function.evaluate(dtype, &mirrored);
            assert!(results.iter().zip(others).all(|(y, other)| same(*y, sign * other)), "{} {dtype}", function.name);
        }
    }
}

/// An error would be seen: the next float but two is further off than promised, and so is another zero.
#[test]
fn errors_are_measured() {
    let exp = &FUNCTIONS[0];
    for dtype in DTYPES {
        for exactly in [false, true] {
            let off = if dtype == DType::F32 { 1.0 + 3.0 * f64::from(f32::EPSILON) } else { 1.0 + 3.0 * f64::EPSILON };
            assert!((2.9..3.1).contains(&exp.error(dtype, 0.0, off, exactly)));
            assert_eq!(exp.error(dtype, f64::NEG_INFINITY, -0.0, exactly), f64::INFINITY);
            assert!(exp.error(dtype, 1e4, f32::MAX.into(), exactly) > 1e6);
            assert_eq!(exp.error(dtype, 1.0, f64::NAN, exactly), f64::INFINITY);
        }
    }
}
