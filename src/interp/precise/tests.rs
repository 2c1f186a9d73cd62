//! Against values of mpmath, against f64, and the kernels of all operators against their references.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::*;
use crate::interp::build::{Build, floats, ints, ty};
use crate::ir::{AttrValue, Precision};

fn unary(name: &str, x: Big) -> Big {
    match name {
        "exp" => x.exp(),
        "exp2" => x.exp2(),
        "expm1" => x.expm1(),
        "log" => x.ln(),
        "log1p" => x.ln_1p(),
        "sqrt" => x.sqrt(),
        "cbrt" => x.cbrt(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tan" => x.tan(),
        "asin" => x.asin(),
        "acos" => x.acos(),
        "atan" => x.atan(),
        "sinh" => x.sinh(),
        "cosh" => x.cosh(),
        "tanh" => x.tanh(),
        "erf" => x.erf(),
        "erfc" => x.erfc(),
        other => panic!("no function {other}"),
    }
}

fn operand(bits: &str) -> Big {
    Big::from_f64(f64::from_bits(u64::from_str_radix(bits, 16).unwrap()))
}

/// Sign, significand, exponent.
fn value(words: &[&str]) -> Big {
    let [sign, digits, exponent] = words else { panic!("not a value: {words:?}") };
    let negative = *sign == "-";
    if *digits == "0" {
        return Big::zero(negative);
    }
    let limb = |i: usize| u64::from_str_radix(&digits[16 * i..16 * (i + 1)], 16).unwrap();
    Big::finite(negative, exponent.parse().unwrap(), [limb(3), limb(2), limb(1), limb(0)])
}

/// -log2 of the relative error: how many bits are right.
fn right_bits(got: Big, want: Big) -> i64 {
    match (got - want).exponent() {
        _ if got.is_nan() || want.is_nan() => 0,
        None => 1000,
        Some(e) => want.exponent().map_or(0, |w| w - e),
    }
}

/// The value of every function as mpmath has it, in `vectors.txt`, to as many bits as documented.
#[test]
fn elementary_functions_are_right_to_200_bits() {
    let mut worst: std::collections::BTreeMap<&str, (i64, &str)> = Default::default();
    for line in include_str!("vectors.txt").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (got, want) = match words[0] {
            "pow" => (operand(words[1]).pow(operand(words[2])), value(&words[3..])),
            "atan2" => (operand(words[1]).atan2(operand(words[2])), value(&words[3..])),
            name => (unary(name, operand(words[1])), value(&words[2..])),
        };
        let bits = right_bits(got, want);
        let entry = worst.entry(words[0]).or_insert((bits, line));
        *entry = (*entry).min((bits, line));
    }
    assert_eq!(worst.len(), 20);
    for (name, (bits, line)) in worst {
        println!("{name}: {bits} bits");
        let wanted = match name {
            "erfc" => 190,
            "sqrt" => 255,
            _ => 225,
        };
        assert!(bits >= wanted, "{bits} bits of {line}");
    }
}

fn random_f64(random: &mut ChaCha8Rng) -> f64 {
    const SPECIAL: [f64; 12] =
        [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324, f64::MAX, 0.5, -2.5, 1e22];
    let bits = random.next_u64();
    match random.next_u64() % 4 {
        0 => SPECIAL[(bits % SPECIAL.len() as u64) as usize],
        1 => f64::from_bits(bits),
        // Near each other, so that sums cancel.
        _ => f64::from_bits(bits >> 6 | 0x3f0 << 52),
    }
}

fn same(a: f64, b: f64) -> bool {
    a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits()
}

/// f64 arithmetic is the exact result rounded once, and so is this, signs of zeros and special values included.
#[test]
fn rounded_results_are_those_of_f64() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let least64 = |a, b| Precision::Double.binary(BinaryFn::Min, a, b, DType::F64);
    for _ in 0..20_000 {
        let (x, y) = (random_f64(&mut random), random_f64(&mut random));
        let (a, b) = (Big::from_f64(x), Big::from_f64(y));
        for (what, got, want) in [
            ("itself", a, x),
            ("neg", -a, -x),
            ("abs", a.abs(), x.abs()),
            ("add", a + b, x + y),
            ("sub", a - b, x - y),
            ("mul", a * b, x * y),
            ("div", a / b, x / y),
            ("sqrt", a.sqrt(), x.sqrt()),
            ("floor", a.floor(), x.floor()),
            ("ceil", a.ceil(), x.ceil()),
            ("round", a.round(), x.round_ties_even()),
            ("min", least(a, b), least64(x, y)),
        ] {
            assert!(same(got.to_f64(), want), "{what} of {x:e} and {y:e}: {got} is not {want:e}");
        }
        assert_eq!(a.partial_cmp(&b), x.partial_cmp(&y), "{x:e} and {y:e}");
        assert!(same(a.to_f32().into(), (x as f32).into()), "{x:e} as F32");
        assert_eq!(a.to_i64(), x as i64, "{x:e} as I64");
        let i = random.next_u64() as i64 >> (random.next_u64() % 64);
        assert_eq!((Big::from_i64(i).to_i64(), Big::from_i64(i).to_f64()), (i, i as f64));
    }
}

/// pow and atan2 of special values, signs of zeros, domains: as f64 has them.
#[test]
fn special_values_are_those_of_f64() {
    let specials =
        [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e300];
    use UnaryFn::{
        Acos, Asin, Atan, Cbrt, Ceil, Cos, Cosh, Erf, Erfc, Exp, Exp2, Floor, Log, Round, Rsqrt, Sin, Sinh, Sqrt, Tan,
        Tanh,
    };
    let all = [
        Acos, Asin, Atan, Cbrt, Ceil, Cos, Cosh, Erf, Erfc, Exp, Exp2, Floor, Log, Round, Rsqrt, Sin, Sinh, Sqrt, Tan,
        Tanh,
    ];
    for x in specials {
        for f in all {
            // The f64 functions of 1e300 lose everything, or overflow.
            if x == 1e300 && matches!(f, Exp | Exp2 | Sinh | Cosh) {
                continue;
            }
            let got = Precise.unary(f, Big::from_f64(x), DType::F64).to_f64();
            let want = Precision::Double.unary(f, x, DType::F64);
            let close = (got - want).abs() <= 1e-15 * want.abs() && got.is_sign_negative() == want.is_sign_negative();
            assert!(same(got, want) || close, "{f:?} of {x}: {got} is not {want}");
        }
        for y in specials {
            for f in [BinaryFn::Pow, BinaryFn::Atan2, BinaryFn::Max, BinaryFn::Min] {
                let got = Precise.binary(f, Big::from_f64(x), Big::from_f64(y), DType::F64).to_f64();
                let want = Precision::Double.binary(f, x, y, DType::F64);
                assert!(same(got, want) || (got - want).abs() < 1e-15, "{f:?} of {x} and {y}: {got} is not {want}");
            }
        }
    }
}

#[test]
fn exponents_do_not_run_out() {
    let big = |x: f64| Big::from_f64(x);
    let (huge, tiny) = (big(1e300) * big(1e300), big(1000.0).exp());
    assert!(huge.is_finite() && huge / big(1e300) == big(1e300));
    assert_eq!((tiny * big(-1000.0).exp()).ulps(1.0, DType::F64), 0.0);
    assert_eq!(tiny.ln().to_f64(), 1000.0);
    assert!(big(1e15).exp().is_finite() && big(-1e15).exp() > Big::ZERO);
    assert_eq!(big(1e15).exp().ln().to_f64(), 1e15);
    assert!(big(1e300).exp().is_infinite() && big(-1e300).exp().is_zero());
    // Logits of 1e8 and a difference of 1e-8: nothing cancels that is wanted.
    let sum = big(1e8) + (big(1e-8).exp() + Big::ONE).ln() - big(1e8);
    assert_eq!(sum.to_f64(), 0.6931471855599454); // by mpmath
    assert_eq!(huge.to_string(), "0.5574278282379019 * 2^1994");
}

#[test]
fn distances_are_in_units_of_the_dtype() {
    let third = Big::ONE / Big::from_f64(3.0);
    assert_eq!(third.ulps(1.0 / 3.0, DType::F64), 0.0);
    let up = (1.0_f64 / 3.0).next_up();
    assert!((third.ulps(up, DType::F64) - 0.667).abs() < 0.001, "{}", third.ulps(up, DType::F64));
    assert!(third.ulps(f64::from((1.0_f32 / 3.0).next_up()), DType::F32) > 1.3);
    let huge = Big::from_f64(1e300) * Big::from_f64(1e300);
    assert_eq!(huge.ulps(f64::INFINITY, DType::F64), 0.0);
    assert_eq!(Big::from_f64(1e39).ulps(f64::INFINITY, DType::F32), 0.0);
    assert_eq!(Big::from_f64(1e39).ulps(f64::INFINITY, DType::F64), f64::INFINITY);
    assert_eq!(Big::NAN.ulps(f64::NAN, DType::F64), 0.0);
    assert_eq!(Big::NAN.ulps(0.0, DType::F64), f64::INFINITY);
    // Below the least float the unit is the least float.
    assert_eq!(Big::from_f64(1e-310).ulps(1e-310 + 5e-324, DType::F64), 1.0);
    assert_eq!((Big::from_f64(1e-300) * Big::from_f64(1e-300)).ulps(0.0, DType::F64), 0.0);
}

fn elements(random: &mut ChaCha8Rng, ty: &TensorType, bound: Option<u64>, special: bool) -> Array {
    const FLOATS: [f64; 8] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1.0, -1.0, 0.5];
    const INTS: [i64; 6] = [0, 1, -1, 7, i32::MAX as i64, i32::MIN as i64];
    let n = ty.shape.elements();
    let mut below = |n: u64| random.next_u64() % n.max(1);
    let values = match ty.dtype {
        DType::F32 | DType::F64 if special => Values::Float((0..n).map(|_| FLOATS[below(8) as usize]).collect()),
        DType::F32 | DType::F64 => Values::Float((0..n).map(|_| below(1 << 20) as f64 / 1e5 - 5.0).collect()),
        DType::Bool => Values::Bool((0..n).map(|_| below(2) == 1).collect()),
        _ if bound.is_some() => Values::Int((0..n).map(|_| below(bound.unwrap_or(1)) as i64).collect()),
        _ => Values::Int((0..n).map(|_| INTS[below(6) as usize]).collect()),
    };
    Array::new(ty.shape.clone(), values)
}

/// Every operator, over its instances, as its reference computes it in f64.
#[test]
fn kernels_agree_with_references() {
    let registry = Registry::builtin();
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut instances = 0;
    for (id, op) in registry.iter() {
        for (operands, attrs) in op.instances() {
            let types: Vec<&TensorType> = operands.iter().collect();
            let result = registry.infer(id, &types, &attrs).unwrap();
            let call = crate::ir::Call { operands: &types, attrs: &attrs };
            let bound = |i: usize| op.bound(call).filter(|b| b.operand == i).map(|b| b.size);
            for round in 0..6 {
                let special = round % 2 == 1;
                let args: Vec<Array> =
                    operands.iter().enumerate().map(|(i, ty)| elements(&mut random, ty, bound(i), special)).collect();
                let exact: Vec<PreciseArray> = args.iter().map(|a| exact(a).unwrap()).collect();
                let refs: Vec<&PreciseArray> = exact.iter().collect();
                let got = kernel::run(&op.kernel(call, &result), call, &refs, &result, Precise).unwrap();
                let refs: Vec<&Array> = args.iter().collect();
                let eval =
                    crate::ir::operator::Eval { call, args: &refs, result: &result, precision: Precision::Double };
                let want = op.reference(&eval).unwrap();
                let context = || format!("{} {attrs:?} of {args:?}: {got:?} is not {want:?}", op.name());
                assert_eq!((got.ints(), got.bools()), (want.ints(), want.bools()), "{}", context());
                assert_eq!(got.floats().len(), want.floats().len(), "{}", context());
                for (g, w) in got.floats().iter().map(|g| g.to_f64()).zip(want.floats()) {
                    // A sine next to a multiple of pi in f64 is as wrong as pi is.
                    assert!(g == *w || same(g, *w) || (g - w).abs() <= 1e-12 * (1.0 + w.abs()), "{}", context());
                }
            }
            instances += 1;
        }
    }
    assert!(instances >= 100, "only {instances} instances");
}

#[test]
fn a_graph_is_evaluated() {
    let mut b = Build::new();
    let x = b.input("x", ty(DType::F32, &[2, 2]));
    let i = b.input("i", ty(DType::I64, &[2]));
    let e = b.op("exp", &[x], &[]);
    let s = b.op("sum", &[e], &[AttrValue::Ints(vec![1]), AttrValue::Bool(false)]);
    let l = b.op("log", &[s], &[]);
    let t = b.op("take_along_axis", &[x, i], &[AttrValue::Int(1)]);
    let d = b.op("sub", &[l, t], &[]);
    let input = |i: [i64; 2]| [floats(&[2, 2], &[1000.0, 1000.0, -1e8, -1e8]), ints(&[2], &i)];
    let values = evaluate(&b.graph, &b.registry, &input([0, 1])).unwrap();
    // ln 2, twice, where f32 and f64 overflow; 2^-28 of 1e8 is left of 256 bits.
    for value in values[d.index()].floats() {
        assert_eq!(value.to_f64(), std::f64::consts::LN_2);
    }
    assert_eq!(values[x.index()].floats()[2], Big::from_f64(-1e8));
    assert!(matches!(evaluate(&b.graph, &b.registry, &input([0, 2])), Err(PreciseError::Trap(_))));
    let [first, _] = input([0, 0]);
    let error = evaluate(&b.graph, &b.registry, &[first]).unwrap_err();
    assert_eq!(error, PreciseError::InputCount { wanted: 2, given: 1 });
    let [first, second] = input([0, 0]);
    assert!(matches!(
        evaluate(&b.graph, &b.registry, &[second, first]),
        Err(PreciseError::WrongInput { index: 0, .. })
    ));
}
