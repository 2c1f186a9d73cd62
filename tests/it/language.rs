//! What a program may say, by its results at every level and in every engine.

use std::collections::BTreeSet;

use crate::programs::{assert_close, results, ways};
use crate::support::{directory, kina, npy, npy_f64, npy_i64};

const NAN: f64 = f64::NAN;

/// A program of `x` (F64 [3], here 1 2 3) and `n` (I64 [3], here 2 0 1), and its results by name.
struct Case {
    what: &'static str,
    program: &'static str,
    results: &'static [(&'static str, &'static [f64])],
}

const CASES: &[Case] = &[
    Case {
        what: "a tuple taken apart",
        program: "let x = tensor<F64, [3], @host> in let (a, b) = (x + 1.0, x * 2.0) in a * b",
        results: &[("result", &[4.0, 12.0, 24.0])],
    },
    Case {
        what: "a tuple as the result",
        program: "let x = tensor<F64, [3], @host> in (x, -x, x.sum())",
        results: &[("result_0", &[1.0, 2.0, 3.0]), ("result_1", &[-1.0, -2.0, -3.0]), ("result_2", &[6.0])],
    },
    Case {
        what: "a function called twice, and one that takes apart what another gives",
        program: "let both = fn(x: tensor<F64, [3], @host>) -> tensor<F64, [3], @host> { let (s, d) = (x + x, x - x) in s * s + d } in
                  let x = tensor<F64, [3], @host> in both(both(x) - x)",
        results: &[("result", &[36.0, 784.0, 4356.0])],
    },
    Case {
        what: "loss, gradient and a step of descent",
        program: "let loss = fn(w: tensor<F64, [3], @host>) -> tensor<F64, [], @host> { (w * w).sum() } in
                  let x = tensor<F64, [3], @host> in
                  let (before, slope) = handle loss(x) with reverseMode in
                  let stepped = x - slope * 0.25 in
                  (before, loss(stepped), stepped)",
        results: &[("result_0", &[14.0]), ("result_1", &[3.5]), ("result_2", &[0.5, 1.0, 1.5])],
    },
    Case {
        what: "several handlers, of one and of two arguments",
        program: "let f = fn(x: tensor<F64, [3], @host>) -> tensor<F64, [3], @host> { x * x } in
                  let g = fn(a: tensor<F64, [3], @host>, b: tensor<F64, [3], @host>) -> tensor<F64, [3], @host> { a / b } in
                  let x = tensor<F64, [3], @host> in
                  let (y, gy) = handle f(x) with reverseMode in
                  let (z, ga, gb) = handle g(y, gy) with reverseMode in
                  (z, ga, gb)",
        results: &[("result_0", &[0.5, 1.0, 1.5]), ("result_1", &[0.5, 0.25, 1.0 / 6.0]), ("result_2", &[-0.25, -0.25, -0.25])],
    },
    Case {
        what: "the third derivative, innermost handler first",
        program: "let f = fn(x: tensor<F64, [3], @host>) -> tensor<F64, [3], @host> { (x * x) * (x * x) } in
                  let d = fn(x: tensor<F64, [3], @host>) -> tensor<F64, [3], @host> { let (y, g) = handle f(x) with reverseMode in g } in
                  let dd = fn(x: tensor<F64, [3], @host>) -> tensor<F64, [3], @host> { let (y, g) = handle d(x) with reverseMode in g } in
                  let x = tensor<F64, [3], @host> in
                  handle dd(x) with reverseMode",
        results: &[("primal", &[12.0, 48.0, 108.0]), ("g_x", &[24.0, 48.0, 72.0])],
    },
    Case {
        what: "arguments that are not float have no gradient",
        program: "let f = fn(n: tensor<I64, [3], @host>, x: tensor<F64, [3], @host>, c: tensor<Bool, [3], @host>) -> tensor<F64, [3], @host> {
                    select(c, x * cast(n, dtype=F64), x)
                  } in
                  let x = tensor<F64, [3], @host> in let n = tensor<I64, [3], @host> in
                  handle f(n, x, x > 1.0) with reverseMode",
        results: &[("primal", &[1.0, 0.0, 3.0]), ("g_x", &[1.0, 0.0, 1.0])],
    },
    Case {
        what: "integers of both sizes and Bools",
        program: "let n = tensor<I64, [3], @host> in
                  let small = cast(n, dtype=I32) in
                  let even = (small / 2) * 2 == small in
                  let x = tensor<F64, [3], @host> in
                  (cast(small - 3, dtype=F64), cast(logical_and(even, n > 0), dtype=F64), x + cast(n, dtype=F64))",
        results: &[("result_0", &[-1.0, -3.0, -2.0]), ("result_1", &[1.0, 0.0, 0.0]), ("result_2", &[3.0, 2.0, 4.0])],
    },
    Case {
        what: "literals take the other operand's type",
        program: "let x = tensor<F64, [3], @host> in 1.0 - x / 2 + splat(0.5, like=x)",
        results: &[("result", &[1.0, 0.5, 0.0])],
    },
    Case {
        what: "negative axes, lists of axes, keepdims",
        program: "let x = tensor<F64, [3], @host> in
                  let y = x.broadcast([2, 3]) * x.reshape([1, 3]).broadcast([2, 3]) in
                  (y.sum(axis=-1), y.sum(axis=[-1, 0]), y.max(axis=[0], keepdims=true))",
        results: &[("result_0", &[14.0, 14.0]), ("result_1", &[28.0]), ("result_2", &[1.0, 4.0, 9.0])],
    },
    Case {
        what: "dimensions of size one",
        program: "let f = fn(x: tensor<F64, [1, 3, 1], @host>) -> tensor<F64, [1], @host> {
                    (x.log_softmax(axis=0) + x.softmax(axis=2) + x * x).sum(axis=[1, 2])
                  } in
                  let x = tensor<F64, [3], @host> in
                  handle f(x.reshape([1, 3, 1])) with reverseMode",
        results: &[("primal", &[17.0]), ("g_x", &[2.0, 4.0, 6.0])],
    },
    Case {
        what: "dimensions of size zero",
        program: "let f = fn(x: tensor<F64, [2, 0], @host>) -> tensor<F64, [2], @host> {
                    (x.exp() * x.log_softmax(axis=0)).sum(axis=1)
                  } in
                  let e = tensor<F64, [2, 0], @host> in
                  let (y, g) = handle f(e) with reverseMode in
                  (y, g, e.mean(axis=1), e.matmul(tensor<F64, [0, 2], @host>), e.transpose([1, 0]).softmax(axis=0))",
        results: &[
            ("result_0", &[0.0, 0.0]),
            ("result_1", &[]),
            ("result_2", &[NAN, NAN]),
            ("result_3", &[0.0, 0.0, 0.0, 0.0]),
            ("result_4", &[]),
        ],
    },
    Case {
        what: "a gradient through dimensions of size zero is zero",
        program: "let f = fn(x: tensor<F64, [3], @host>) -> tensor<F64, [], @host> { x.broadcast([0, 3]).sum() + x.sum() * 2.0 } in
                  let x = tensor<F64, [3], @host> in
                  handle f(x) with reverseMode",
        results: &[("primal", &[12.0]), ("g_x", &[2.0, 2.0, 2.0])],
    },
];

#[test]
fn programs_compute_what_they_say() {
    for case in CASES {
        let place = directory(&[
            ("p.kina", case.program.as_bytes().to_vec()),
            ("x.npy", npy_f64(&[3], &[1.0, 2.0, 3.0])),
            ("n.npy", npy_i64(&[3], &[2, 0, 1])),
        ]);
        let mut inputs = String::new();
        for (name, ty) in [("x", "let x = tensor<F64, [3], @host>"), ("n", "let n = tensor<I64, [3], @host>")] {
            if case.program.contains(ty) {
                inputs += &format!(" --input {name}={name}.npy");
            }
        }
        for way in ways() {
            let got = results(place.path(), &format!("{way}{inputs}"));
            let names: BTreeSet<&str> = case.results.iter().map(|(name, _)| *name).collect();
            assert_eq!(got.keys().collect::<Vec<_>>(), names.iter().collect::<Vec<_>>(), "{}, {way}", case.what);
            for (name, want) in case.results {
                assert_close(&format!("{name} of {}, {way}", case.what), &got[*name].values, want, 1e-12);
            }
        }
    }
}

/// A cotangent from outside weighs the results, for every dtype that has one, at dimensions of size zero and one too.
#[test]
fn a_cotangent_from_outside_weighs_the_results() {
    for (shape, dims, x, weights, gradient) in [
        (&[3][..], "[3]", &[1.0, 2.0, 3.0][..], &[1.0, 10.0, 100.0][..], &[2.0, 40.0, 600.0][..]),
        (&[1, 1], "[1, 1]", &[4.0], &[-1.0], &[-8.0]),
        (&[], "[]", &[4.0], &[0.5], &[4.0]),
        (&[2, 0], "[2, 0]", &[], &[], &[]),
    ] {
        let ty = format!("tensor<F64, {dims}, @host>");
        let program =
            format!("let f = fn(x: {ty}) -> {ty} {{ x * x }} in let x = {ty} in handle f(x) with reverseMode");
        let place = directory(&[
            ("p.kina", program.into_bytes()),
            ("x.npy", npy_f64(shape, x)),
            ("w.npy", npy_f64(shape, weights)),
        ]);
        for way in ways() {
            let got =
                results(place.path(), &format!("{way} --cotangent input --input x=x.npy --input cotangent=w.npy"));
            assert_close(&format!("g_x of {dims}, {way}"), &got["g_x"].values, gradient, 1e-12);
            assert_eq!(got["g_x"].shape, shape, "{way}");
        }
    }
}

/// Dtypes other than float come out of a run as they went in.
#[test]
fn integers_and_bools_are_results_too() {
    let program = "let a = tensor<I32, [2], @host> in let b = tensor<Bool, [2], @host> in let c = tensor<I64, [0], @host> in (a, b, c)";
    let place = directory(&[
        ("p.kina", program.as_bytes().to_vec()),
        ("a.npy", npy("<i4", &[2], &[7_i32.to_le_bytes(), (-1_i32).to_le_bytes()].concat())),
        ("b.npy", npy("|b1", &[2], &[1, 0])),
        ("c.npy", npy_i64(&[0], &[])),
    ]);
    for way in ways() {
        let options = "--input a=a.npy --input b=b.npy --input c=c.npy";
        let printed = kina(place.path(), &format!("run p.kina {way} {options}")).ok();
        for line in ["I32 [2] = [7, -1]", "Bool [2] = [true, false]", "I64 [0] = []"] {
            assert!(printed.contains(line), "{way}: {printed}");
        }
    }
}
