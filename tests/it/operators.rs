//! Operators that move, choose and accumulate elements, and their gradients, against values computed by hand.

use crate::programs::{assert_close, results, ways};
use crate::support::{directory, kina, npy_f64};

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// `expression` of `x`, the shapes of both, and x, the value, and the gradient where the cotangent is 1, 2, 3, ..
struct Case {
    expression: &'static str,
    from: &'static [usize],
    to: &'static [usize],
    x: &'static [f64],
    value: &'static [f64],
    gradient: &'static [f64],
}

fn list(shape: &[usize]) -> String {
    format!("[{}]", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

impl Case {
    /// Value and gradient in every way, and both orders against finite differences where x is finite.
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
        if x.is_empty() || value.is_empty() || !x.iter().all(|x| x.is_finite()) {
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
