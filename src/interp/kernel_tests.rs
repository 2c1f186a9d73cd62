//! Every operator says the same twice: its kernel computes what its reference computes, bit by bit.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::*;
use crate::ir::operator::Eval;
use crate::ir::{Operator, Precision, Registry};

/// With these, any two elements are often equal: ties.
const FLOATS: [f64; 10] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1.0, -1.0, 0.5, 1e8, 1e-40];
const INTS: [i64; 8] = [0, 1, -1, 7, i64::MAX, i64::MIN, i32::MAX as i64, i32::MIN as i64];

/// Which elements an array gets.
#[derive(Clone, Copy, PartialEq)]
enum Mix {
    Ordinary,
    Special,
    /// Only -inf, and one other value now and then: rows without a finite maximum.
    Masked,
}

fn array(random: &mut ChaCha8Rng, ty: &TensorType, bound: Option<u64>, mix: Mix, precision: Precision) -> Array {
    let n = ty.shape.elements();
    let mut below = |n: usize| (random.next_u64() % n.max(1) as u64) as usize;
    let values = match ty.dtype {
        DType::F32 | DType::F64 => Values::Float(
            (0..n)
                .map(|_| {
                    let value = match mix {
                        Mix::Ordinary => below(1 << 20) as f64 / 1e5 - 5.0,
                        Mix::Special => FLOATS[below(FLOATS.len())],
                        Mix::Masked => {
                            if below(3) > 0 {
                                f64::NEG_INFINITY
                            } else {
                                0.25
                            }
                        }
                    };
                    precision.round(ty.dtype, value)
                })
                .collect(),
        ),
        DType::I32 | DType::I64 => Values::Int(
            (0..n)
                .map(|_| match (bound, mix) {
                    (Some(size), _) => below(size as usize) as i64,
                    (None, Mix::Ordinary) => below(41) as i64 - 20,
                    (None, _) => INTS[below(INTS.len())],
                })
                .map(|i| if ty.dtype == DType::I32 { i.clamp(i32::MIN.into(), i32::MAX.into()) } else { i })
                .collect(),
        ),
        DType::Bool => Values::Bool((0..n).map(|_| below(2) == 1).collect()),
    };
    Array::new(ty.shape.clone(), values)
}

/// Equal bits, where all NaNs are one value and signed zeros differ; of a kernel that computes a function in its own way, equal
/// but for a few roundings.
fn same(a: &Array, b: &Array, epsilon: f64) -> bool {
    let bits = |v: &f64| if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() };
    let close = |(x, y): (&f64, &f64)| bits(x) == bits(y) || (x - y).abs() <= epsilon * x.abs();
    match (&a.values, &b.values) {
        (Values::Float(x), Values::Float(y)) => a.shape == b.shape && x.iter().zip(y).all(close),
        _ => a == b,
    }
}

/// The functions whose kernel is a formula of others.
const FORMULAS: [&str; 2] = ["expm1", "log1p"];

fn agree(op: &dyn Operator, operands: &[TensorType], attrs: &[crate::ir::AttrValue], result: &TensorType) {
    let types: Vec<&TensorType> = operands.iter().collect();
    let call = Call { operands: &types, attrs };
    let kernel = op.kernel(call, result);
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for round in 0..24 {
        let mix = [Mix::Ordinary, Mix::Special, Mix::Masked][round % 3];
        let precision = [Precision::Double, Precision::Typed][round % 2];
        let bound = |i: usize| op.bound(call).filter(|b| b.operand == i).map(|b| b.size);
        let args: Vec<Array> =
            operands.iter().enumerate().map(|(i, ty)| array(&mut random, ty, bound(i), mix, precision)).collect();
        let args: Vec<&Array> = args.iter().collect();
        let want = op.reference(&Eval { call, args: &args, result, precision }).expect("indices are in range");
        let got =
            run(&kernel, call, &args, result, precision).unwrap_or_else(|e| panic!("{} {attrs:?}: {e}", op.name()));
        let epsilon = match (FORMULAS.contains(&op.name()), result.dtype, precision) {
            (false, ..) => 0.0,
            (true, DType::F32, Precision::Typed) => 4.0 * f64::from(f32::EPSILON),
            (true, ..) => 4.0 * f64::EPSILON,
        };
        assert!(same(&got, &want, epsilon), "{} {attrs:?} of {args:?}: {got:?} is not {want:?}", op.name());
    }
}

#[test]
fn kernels_agree_with_references() {
    let registry = Registry::builtin();
    let mut operators = 0;
    for (id, op) in registry.iter() {
        for (operands, attrs) in op.instances() {
            let types: Vec<&TensorType> = operands.iter().collect();
            let result = registry.infer(id, &types, &attrs).expect("instances are well-typed");
            agree(op, &operands, &attrs, &result);
        }
        operators += 1;
    }
    assert!(operators >= 36, "only {operators} operators");
}

/// The sum of a vector, with something wrong in it.
fn broken_sum(change: impl FnOnce(&mut Loop)) -> Result<Array, KernelError> {
    let registry = Registry::builtin();
    let (_, op) = registry.by_name("sum").expect("an operator");
    let ty = TensorType::new(DType::F64, Shape::new(vec![3]).expect("small"), crate::ir::Placement::Host);
    let result = ty.with_shape(Shape::scalar());
    let attrs = [crate::ir::AttrValue::Ints(vec![0]), crate::ir::AttrValue::Bool(false)];
    let call = Call { operands: &[&ty], attrs: &attrs };
    let mut kernel = op.kernel(call, &result);
    if let Kernel::Loops(loops) = &mut kernel {
        change(&mut loops[0]);
    }
    let x = Array::new(ty.shape.clone(), Values::Float(vec![1.0, 2.0, 3.0]));
    run(&kernel, call, &[&x], &result, Precision::Double)
}

#[test]
fn defects_of_a_kernel_are_named() {
    assert_eq!(broken_sum(|_| {}).map(|a| a.floats().to_vec()), Ok(vec![6.0]));
    let says = |change: fn(&mut Loop), words: &str| {
        let error = broken_sum(change).expect_err(words);
        assert!(error.to_string().contains(words), "{error}");
    };
    says(|l| l.reduce = None, "several times without combining");
    says(|l| l.domain = vec![4], "leaves what it leads to");
    says(|l| l.inputs[0].source = Source::Operand(1), "not there");
    says(|l| l.body = Scalar::Index(0), "dtype");
    says(
        |l| l.body = Scalar::Gather(Source::Operand(0), vec![Scalar::constant(3.0, DType::I64)]),
        "outside its source",
    );
    says(|l| l.shape = vec![1], "another rank");
}
