//! Operators that move, choose and accumulate elements, and their gradients, against values computed by hand.

// Values stand with the digits that they were computed to, whether or not a constant has a name.
#![allow(clippy::approx_constant)]

use crate::programs::{assert_close, results, ways};
use crate::support::{directory, kina, npy_f64};

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// `expression` of `x`, the shapes of both, and x, the value, and the gradient where the cotangent is 1, 2, 3, ..
struct Case<'a> {
    expression: &'a str,
    from: &'a [usize],
    to: &'a [usize],
    x: &'a [f64],
    value: &'a [f64],
    gradient: &'a [f64],
}

fn list(shape: &[usize]) -> String {
    format!("[{}]", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

impl Case<'_> {
    /// Value and gradient in every way, and both orders against finite differences where x is ordinary.
    fn check(&self) {
        let Case { expression, from, to, x, value, gradient } = self;
        let (from_type, to_type) =
            (format!("tensor<F64, {}, @host>", list(from)), format!("tensor<F64, {}, @host>", list(to)));
        let cotangent: Vec<f64> = (0..value.len()).map(|i| i as f64 + 1.0).collect();
        let f = format!(
            "let w = {to_type} in
             let f = fn(x: {from_type}) -> {to_type} {{ let y = {expression} in y * w }} in
             let x = {from_type} in"
        );
        let first = format!("{f} let (p, g) = handle f(x) with reverseMode in ({expression}, g)");
        let inputs = [("x.npy", npy_f64(from, x)), ("w.npy", npy_f64(to, &cotangent))];
        let place = directory(&[&[("p.kina", first.into_bytes())], &inputs[..]].concat());
        for way in ways() {
            let got = results(place.path(), &format!("{way} --input x=x.npy --input w=w.npy"));
            assert_eq!(got["result_0"].shape, to.to_vec(), "{expression}");
            assert_close(&format!("{expression}, {way}"), &got["result_0"].values, value, 1e-13);
            assert_close(&format!("gradient of {expression}, {way}"), &got["result_1"].values, gradient, 1e-13);
        }
        if x.is_empty() || value.is_empty() || !x.iter().all(|x| x.abs() < 1e9) {
            return;
        }
        for second in [
            format!("{f} handle f(x) with reverseMode"),
            format!(
                "{f} let h = fn(x: {from_type}) {{
                   let s = fn(x: {from_type}) {{ let y = f(x) in (y * y).sum() }} in
                   let (p, g) = handle s(x) with reverseMode in g * g }} in
                 handle h(x) with reverseMode"
            ),
        ] {
            let place = directory(&[&[("p.kina", second.into_bytes())], &inputs[..]].concat());
            kina(place.path(), "run p.kina --interpret --check --input x=x.npy --input w=w.npy").ok();
        }
    }
}

#[test]
fn windows() {
    for case in [
        Case {
            expression: "x.slice(start=[1], limit=[6], stride=[2])",
            from: &[7],
            to: &[3],
            x: &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            value: &[1.0, 3.0, 5.0],
            gradient: &[0.0, 1.0, 0.0, 2.0, 0.0, 3.0, 0.0],
        },
        Case {
            expression: "x.slice([0, 1], [2, 3])",
            from: &[2, 4],
            to: &[2, 2],
            x: &[0.0, 1.0, 2.0, NAN, 4.0, 5.0, 6.0, INF],
            value: &[1.0, 2.0, 5.0, 6.0],
            gradient: &[0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0],
        },
        Case {
            expression: "(x * x).slice([0, 0], [1, 2])",
            from: &[2, 3],
            to: &[1, 2],
            x: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            value: &[1.0, 4.0],
            gradient: &[2.0, 8.0, 0.0, 0.0, 0.0, 0.0],
        },
        Case {
            expression: "x.slice([2], [2])",
            from: &[3],
            to: &[0],
            x: &[1.0, 2.0, 3.0],
            value: &[],
            gradient: &[0.0, 0.0, 0.0],
        },
        Case {
            expression: "x.pad(low=[1, 0], high=[0, 2], value=-1.5)",
            from: &[1, 2],
            to: &[2, 4],
            x: &[7.0, 8.0],
            value: &[-1.5, -1.5, -1.5, -1.5, 7.0, 8.0, -1.5, -1.5],
            gradient: &[5.0, 6.0],
        },
        Case {
            expression: "x.pad([1], [1], interior=[2])",
            from: &[2],
            to: &[6],
            x: &[7.0, 8.0],
            value: &[0.0, 7.0, 0.0, 0.0, 8.0, 0.0],
            gradient: &[2.0, 5.0],
        },
        Case {
            expression: "x.pad([2], [1], value=inf)",
            from: &[0],
            to: &[3],
            x: &[],
            value: &[INF, INF, INF],
            gradient: &[],
        },
        Case {
            expression: "x.reverse(axis=-1)",
            from: &[2, 3],
            to: &[2, 3],
            x: &[1.0, 2.0, 3.0, 4.0, 5.0, NAN],
            value: &[3.0, 2.0, 1.0, NAN, 5.0, 4.0],
            gradient: &[3.0, 2.0, 1.0, 6.0, 5.0, 4.0],
        },
        Case {
            expression: "x.reverse()",
            from: &[2, 2],
            to: &[2, 2],
            x: &[1.0, 2.0, 3.0, 4.0],
            value: &[4.0, 3.0, 2.0, 1.0],
            gradient: &[4.0, 3.0, 2.0, 1.0],
        },
        Case {
            expression: "x.exp().reverse(axis=0).slice([1, 0], [2, 2]).pad([0, 1], [1, 0])",
            from: &[2, 2],
            to: &[2, 3],
            x: &[0.0, 2.0, 3.0, 4.0],
            value: &[0.0, 1.0, 7.38905609893065, 0.0, 0.0, 0.0],
            gradient: &[2.0, 22.16716829679195, 0.0, 0.0],
        },
    ] {
        case.check();
    }
}

#[test]
fn axes_and_places() {
    for case in [
        Case {
            expression: "x.unsqueeze(axis=-1)",
            from: &[3],
            to: &[3, 1],
            x: &[1.0, 2.0, 3.0],
            value: &[1.0, 2.0, 3.0],
            gradient: &[1.0, 2.0, 3.0],
        },
        Case {
            expression: "x.squeeze(axis=-2).unsqueeze(0)",
            from: &[2, 1, 2],
            to: &[1, 2, 2],
            x: &[1.0, 2.0, 3.0, 4.0],
            value: &[1.0, 2.0, 3.0, 4.0],
            gradient: &[1.0, 2.0, 3.0, 4.0],
        },
        Case { expression: "x.unsqueeze(0)", from: &[], to: &[1], x: &[5.0], value: &[5.0], gradient: &[1.0] },
        // What is above the diagonal does not leak.
        Case {
            expression: "x.tril()",
            from: &[2, 3],
            to: &[2, 3],
            x: &[1.0, NAN, INF, 4.0, 5.0, -INF],
            value: &[1.0, 0.0, 0.0, 4.0, 5.0, 0.0],
            gradient: &[1.0, 0.0, 0.0, 4.0, 5.0, 0.0],
        },
        Case {
            expression: "x.log().tril()",
            from: &[2, 1, 2],
            to: &[2, 1, 2],
            x: &[1.0, 0.0, 2.0, -1.0],
            value: &[0.0, 0.0, 0.6931471805599453, 0.0],
            gradient: &[1.0, 0.0, 1.5, 0.0],
        },
        Case {
            expression: "x * iota(shape=[2, 2], axis=-1, dtype=F64)",
            from: &[2, 2],
            to: &[2, 2],
            x: &[1.0, 2.0, 3.0, 4.0],
            value: &[0.0, 2.0, 0.0, 4.0],
            gradient: &[0.0, 2.0, 0.0, 4.0],
        },
    ] {
        case.check();
    }
}

#[test]
fn conversions_between_floats() {
    Case {
        expression: "(x.cast(dtype=F32) * x.cast(dtype=F32)).cast(dtype=F64)",
        from: &[2],
        to: &[2],
        x: &[1.5, -2.0],
        value: &[2.25, 4.0],
        gradient: &[3.0, -8.0],
    }
    .check();
}

#[test]
fn the_angle_stands_still_at_infinity() {
    for (b, value, gradient) in [
        (
            "1.0",
            [1.5707963267948966, 0.7853981633974483, 0.4636476090008061, -1.5707963267948966],
            [0.0, 1.0, 2.4, 0.0],
        ),
        ("inf", [0.7853981633974483, 0.0, 0.0, -0.7853981633974483], [0.0; 4]),
    ] {
        Case {
            expression: &format!("atan2(x, splat({b}, like=x))"),
            from: &[4],
            to: &[4],
            x: &[INF, 1.0, 0.5, -INF],
            value: &value,
            gradient: &gradient,
        }
        .check();
    }
    for (expression, gradient) in
        [("atan2(splat(2.0, like=x), x)", [0.0, 0.0]), ("atan2(splat(nan, like=x), x)", [NAN; 2])]
    {
        let value = if gradient[0] == 0.0 { [0.0, 3.141592653589793] } else { [NAN; 2] };
        Case { expression, from: &[2], to: &[2], x: &[INF, -INF], value: &value, gradient: &gradient }.check();
    }
}

#[test]
fn the_place_of_the_maximum() {
    // Ties, signed zeros, NaN.
    let x = &[1.0, 2.0, 2.0, 0.0, -0.0, -INF, 5.0, NAN, NAN];
    for (call, to, value) in [
        ("argmax(axis=-1)", &[3][..], [1.0, 0.0, 1.0]),
        ("argmax(axis=0)", &[3], [2.0, 2.0, 2.0]),
        ("argmax(axis=1, keepdims=true)", &[3, 1], [1.0, 0.0, 1.0]),
    ] {
        let expression = &format!("x.{call}.cast(dtype=F64)");
        Case { expression, from: &[3, 3], to, x, value: &value, gradient: &[0.0; 9] }.check();
    }
}

#[test]
fn running_sums() {
    for case in [
        Case {
            expression: "x.cumsum(axis=0)",
            from: &[4],
            to: &[4],
            x: &[1.0, -2.0, 0.5, 4.0],
            value: &[1.0, -1.0, -0.5, 3.5],
            gradient: &[10.0, 9.0, 7.0, 4.0],
        },
        Case {
            expression: "x.cumsum(axis=1)",
            from: &[2, 3, 2],
            to: &[2, 3, 2],
            x: &[1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 4.0, 40.0, 5.0, NAN, 6.0, 60.0],
            value: &[1.0, 10.0, 3.0, 30.0, 6.0, 60.0, 4.0, 40.0, 9.0, NAN, 15.0, NAN],
            gradient: &[9.0, 12.0, 8.0, 10.0, 5.0, 6.0, 27.0, 30.0, 20.0, 22.0, 11.0, 12.0],
        },
        Case {
            expression: "(x * x).cumsum(axis=-1).exp()",
            from: &[2, 1],
            to: &[2, 1],
            x: &[0.0, 1.0],
            value: &[1.0, 2.718281828459045],
            gradient: &[0.0, 10.87312731383618],
        },
        Case { expression: "x.cumsum(axis=1)", from: &[2, 0], to: &[2, 0], x: &[], value: &[], gradient: &[] },
    ] {
        case.check();
    }
}

/// No division: right where elements are zero, in both orders, and where the product itself over- or underflows.
#[test]
fn products() {
    for case in [
        Case {
            expression: "x.prod()",
            from: &[3],
            to: &[],
            x: &[2.0, -3.0, 4.0],
            value: &[-24.0],
            gradient: &[-12.0, 8.0, -6.0],
        },
        Case {
            expression: "x.prod(axis=1)",
            from: &[4, 3],
            to: &[4],
            x: &[2.0, 0.0, 4.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 1.0, NAN, 0.0],
            value: &[0.0, 0.0, 0.0, NAN],
            gradient: &[0.0, 8.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, NAN, 0.0, NAN],
        },
        Case {
            expression: "x.prod(axis=1)",
            from: &[3, 3],
            to: &[3],
            x: &[2.0, 0.0, 4.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0],
            value: &[0.0, 0.0, 0.0],
            gradient: &[0.0, 8.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        },
        Case {
            expression: "x.prod(axis=[0, 2], keepdims=true)",
            from: &[2, 2, 2],
            to: &[1, 2, 1],
            x: &[1.0, 2.0, 3.0, 0.0, 5.0, 6.0, 7.0, 8.0],
            value: &[60.0, 0.0],
            gradient: &[60.0, 30.0, 0.0, 336.0, 12.0, 10.0, 0.0, 0.0],
        },
        Case {
            expression: "x.prod(axis=0)",
            from: &[2, 2],
            to: &[2],
            x: &[1e-200, 1e200, 1e-200, 1e200],
            value: &[0.0, INF],
            gradient: &[1e-200, 2e200, 1e-200, 2e200],
        },
        Case { expression: "x.prod(axis=0)", from: &[0, 2], to: &[2], x: &[], value: &[1.0, 1.0], gradient: &[] },
        Case {
            expression: "x.prod(axis=1)",
            from: &[2, 1],
            to: &[2],
            x: &[7.0, 0.0],
            value: &[7.0, 0.0],
            gradient: &[1.0, 2.0],
        },
    ] {
        case.check();
    }
}

#[test]
fn rows_of_a_table() {
    let ids = |dtype: &str| format!("iota(shape=[2, 2], axis=1, dtype={dtype})");
    for dtype in ["I64", "I32"] {
        // Row 2 is not taken, the others twice.
        Case {
            expression: &format!("x.gather({})", ids(dtype)),
            from: &[3, 2],
            to: &[2, 2, 2],
            x: &[1.0, 2.0, 3.0, 4.0, NAN, INF],
            value: &[1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0],
            gradient: &[6.0, 8.0, 10.0, 12.0, 0.0, 0.0],
        }
        .check();
        Case {
            expression: &format!("(x * x).gather({}).exp()", ids(dtype)),
            from: &[2],
            to: &[2, 2],
            x: &[0.0, 0.5],
            value: &[1.0, 1.2840254166877414, 1.0, 1.2840254166877414],
            gradient: &[0.0, 7.704152500126448],
        }
        .check();
    }
}

#[test]
fn ids_out_of_range_trap() {
    for (dtype, id) in [("I64", "-1"), ("I64", "3"), ("I32", "-1"), ("I32", "3"), ("I64", "4294967296")] {
        for body in ["t.gather(i)", "(t * t).gather(i)"] {
            let program = format!(
                "let f = fn(t: tensor<F32, [3, 2], @host>) {{
                   let i = cast(splat({id}, like=tensor<I64, [4], @host>), dtype={dtype}) in {body} }} in
                 let t = tensor<F32, [3, 2], @host> in handle f(t) with reverseMode"
            );
            let place = directory(&[("p.kina", program.into_bytes())]);
            for way in ways() {
                let outcome = kina(place.path(), &format!("run p.kina {way}"));
                outcome.refusal(3, &["gather index out of bounds"]).unwrap();
            }
        }
    }
}
