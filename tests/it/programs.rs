//! Programs from text to numbers, against closed forms that are computed here.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{Floats, directory, kina, npy_f32, npy_f64, npy_i64, read_results};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");

/// Every level and engine of this build, as command-line options.
pub fn ways() -> Vec<&'static str> {
    let mut ways = vec!["-O0 --interpret", "-O1 --interpret", "-O2 --interpret"];
    if cfg!(feature = "codegen") {
        ways.extend(["-O0", "-O1", "-O2"]);
    }
    ways
}

/// Runs `p.kina` of a directory and gives its results. `--check` must pass if it is among the options.
#[track_caller]
pub fn results(directory: &Path, options: &str) -> BTreeMap<String, Floats> {
    kina(directory, &format!("run p.kina --output results.npz {options}")).ok();
    read_results(&directory.join("results.npz"))
}

/// NaN where NaN is wanted, the same infinities, otherwise within `tolerance * (1 + |want|)`.
#[track_caller]
pub fn assert_close(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let same = match w.is_finite() {
            true => (g - w).abs() <= tolerance * (1.0 + w.abs()),
            false => g == w || (g.is_nan() && w.is_nan()),
        };
        assert!(same, "{what}: element {i} is {g}, not {w}\ngot  {got:?}\nwant {want:?}");
    }
}

/// Numbers that look random and are the same everywhere, in -4..4.
fn numbers(count: usize) -> Vec<f64> {
    let mut state: u64 = 17;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 21) as f64 - 4.0
    };
    (0..count).map(next).collect()
}

/// Loss and gradient of the negative log-likelihood: logsumexp(x) - x[t], and softmax(x) - onehot(t).
struct Nll {
    loss: Vec<f64>,
    gradient: Vec<f64>,
}

fn nll_closed_form(logits: &[f64], shape: &[usize], axis: usize, targets: &[i64]) -> Nll {
    let classes = shape[axis];
    let inner: usize = shape[axis + 1..].iter().product();
    let mut gradient = vec![0.0; logits.len()];
    let loss = targets
        .iter()
        .enumerate()
        .map(|(site, target)| {
            let place = |c: usize| (site / inner * classes + c) * inner + site % inner;
            let row: Vec<f64> = (0..classes).map(|c| logits[place(c)]).collect();
            let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = row.iter().map(|x| (x - max).exp()).sum();
            for (c, x) in row.iter().enumerate() {
                let hot = if c as i64 == *target { 1.0 } else { 0.0 };
                gradient[place(c)] = (x - max).exp() / sum - hot;
            }
            sum.ln() - (row[*target as usize] - max)
        })
        .collect();
    Nll { loss, gradient }
}

fn list(shape: &[usize]) -> String {
    format!("[{}]", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

/// Compares the program of Section 10.3, for a dtype, shape and axis, with the closed form.
#[track_caller]
fn check_nll(dtype: &str, shape: &[usize], axis: usize, logits: &[f64], targets: &[i64]) {
    let mut sites = shape.to_vec();
    let classes = sites.remove(axis);
    let (full, site) = (list(shape), list(&sites));
    let program = format!(
        "let nll = fn(logits: tensor<{dtype}, {full}, @host>) -> tensor<{dtype}, {site}, @host> {{
           let targets = tensor<I64, {site}, @host> in
           -logits.log_softmax(axis={axis}).take_along_axis(targets, axis={axis})
         }} in
         let logits = tensor<{dtype}, {full}, @host> in
         handle nll(logits) with reverseMode"
    );
    let (array, tolerance) = match dtype {
        "F64" => (npy_f64(shape, logits), 1e-12),
        _ => (npy_f32(shape, &logits.iter().map(|x| *x as f32).collect::<Vec<_>>()), 2e-6),
    };
    let rounded: Vec<f64> = match dtype {
        "F64" => logits.to_vec(),
        _ => logits.iter().map(|x| f64::from(*x as f32)).collect(),
    };
    let want = nll_closed_form(&rounded, shape, axis, targets);
    let place = directory(&[("p.kina", program.into_bytes()), ("l.npy", array), ("t.npy", npy_i64(&sites, targets))]);
    for way in ways() {
        let got = results(place.path(), &format!("{way} --input logits=l.npy --input targets=t.npy"));
        let what = |name| format!("{name} of {dtype} {full} along {axis} ({classes} classes), {way}");
        assert_eq!(got.keys().collect::<Vec<_>>(), ["g_logits", "primal"]);
        assert_eq!((&got["primal"].shape, &got["g_logits"].shape), (&sites, &shape.to_vec()));
        assert_eq!(got["primal"].descr, if dtype == "F64" { "<f8" } else { "<f4" });
        assert_close(&what("loss"), &got["primal"].values, &want.loss, tolerance);
        assert_close(&what("gradient"), &got["g_logits"].values, &want.gradient, tolerance);
    }
}

#[test]
fn nll_is_the_closed_form_for_shapes_axes_and_dtypes() {
    for (shape, axis) in
        [(&[1, 4, 8][..], 2), (&[5, 3], 0), (&[2, 3, 4], 1), (&[1, 1, 3], 2), (&[3, 1], 1), (&[2, 70], 1)]
    {
        let sites: usize = shape.iter().product::<usize>() / shape[axis];
        let targets: Vec<i64> = (0..sites).map(|i| (i * 5 % shape[axis]) as i64).collect();
        let logits = numbers(shape.iter().product());
        for dtype in ["F32", "F64"] {
            check_nll(dtype, shape, axis, &logits, &targets);
        }
    }
}

/// x - (max + log(sum)) would lose the logarithm beside 1e8 and give 0.
#[test]
fn nll_of_huge_logits_keeps_the_shift() {
    let want = nll_closed_form(&[1e8, 1e8], &[1, 2], 1, &[0]);
    assert!((want.loss[0] - std::f64::consts::LN_2).abs() < 1e-15);
    check_nll("F32", &[1, 2], 1, &[1e8, 1e8], &[0]);
    check_nll("F32", &[2, 3], 1, &[-1e8, -1e8, -1e8, 3e38, -3e38, 0.0], &[2, 0]);
    check_nll("F64", &[1, 2], 1, &[1e300, 1e300], &[1]);
}

#[test]
fn infinite_logits_stay_in_their_rows() {
    let (inf, minus) = (f64::INFINITY, f64::NEG_INFINITY);
    // A masked entry, a masked target (an infinite loss), a row with nothing but masked entries, a plain row.
    let logits = [0.0, minus, 1.0, 0.5, minus, 2.0, minus, minus, minus, 1.0, 2.0, 3.0];
    let want = nll_closed_form(&logits, &[4, 3], 1, &[0, 1, 2, 1]);
    assert_eq!((want.gradient[1], want.loss[1], want.loss[2].is_nan()), (0.0, inf, true));
    for dtype in ["F32", "F64"] {
        check_nll(dtype, &[4, 3], 1, &logits, &[0, 1, 2, 1]);
    }
}

#[test]
fn story() {
    let text = std::fs::read(Path::new(EXAMPLES).join("story/story.txt")).unwrap();
    let sites = text.len() - 1;
    // How often each byte follows each byte; site t predicts byte t + 1 with (n + 1) / (N + 256).
    let mut follows = vec![[0u32; 256]; 256];
    for pair in text.windows(2) {
        follows[usize::from(pair[0])][usize::from(pair[1])] += 1;
    }
    let probability = |here: u8, after: usize| {
        let row = &follows[usize::from(here)];
        f64::from(row[after] + 1) / f64::from(row.iter().sum::<u32>() + 256)
    };
    let loss = text.windows(2).map(|p| -probability(p[0], usize::from(p[1])).ln()).sum::<f64>() / sites as f64;
    let mut gradient = Vec::with_capacity(sites * 256);
    for pair in text.windows(2) {
        for c in 0..256 {
            let hot = if c == usize::from(pair[1]) { 1.0 } else { 0.0 };
            gradient.push((probability(pair[0], c) - hot) / sites as f64);
        }
    }
    let place = directory::<&[u8]>(&[]);
    let program = format!("{EXAMPLES}/story/story.kina");
    let engine = if cfg!(feature = "codegen") { &["-O0", "-O1", "-O2"][..] } else { &["-O2 --interpret"] };
    for way in engine {
        kina(place.path(), &format!("run {program} {way} --inputs {EXAMPLES}/story/story.npz --output results.npz"))
            .ok();
        let got = read_results(&place.path().join("results.npz"));
        assert!((got["primal"].values[0] - loss).abs() <= 1e-5, "{way}: {} instead of {loss}", got["primal"].values[0]);
        // Relative to the scale of a gradient of a mean.
        let scaled = |values: &[f64]| values.iter().map(|g| g * sites as f64).collect::<Vec<_>>();
        let (got, want) = (scaled(&got["g_logits"].values), scaled(&gradient));
        let worst = got.iter().zip(&want).map(|(g, w)| (g - w).abs()).fold(0.0, f64::max);
        assert!(got.len() == want.len() && worst <= 2e-6, "{way}: the worst error is {worst}");
    }
}

/// Differences are those of the f64 interpreter, whatever computes the results: one check, and equal results.
#[test]
fn gradients_of_the_mlp_agree_with_differences_and_with_each_other() {
    let place = directory::<&[u8]>(&[]);
    let command = format!("run {EXAMPLES}/mlp.kina --output results.npz");
    let out = kina(place.path(), &format!("{command} --interpret=double -O0 --check")).ok();
    let verdicts = out.split_once("gradient check").unwrap().1;
    assert_eq!(verdicts.matches(": passed").count(), 5, "{out}");
    let reference = read_results(&place.path().join("results.npz"));
    assert_eq!(reference.keys().collect::<Vec<_>>(), ["g_b1", "g_b2", "g_w1", "g_w2", "g_x", "primal"]);
    for way in ways() {
        kina(place.path(), &format!("{command} {way}")).ok();
        for (name, array) in read_results(&place.path().join("results.npz")) {
            assert_close(&format!("{name}, {way}"), &array.values, &reference[&name].values, 1e-5);
        }
    }
}

const SQUARE: &str = "let f = fn(x: tensor<F64, [3], @host>) -> tensor<F64, [3], @host> { x * x } in
                      let x = tensor<F64, [3], @host> in
                      handle f(x) with reverseMode";

#[test]
fn the_cotangent_may_be_an_input() {
    let place = directory(&[
        ("p.kina", SQUARE.as_bytes().to_vec()),
        ("x.npy", npy_f64(&[3], &[1.0, -2.0, 0.5])),
        ("c.npy", npy_f64(&[3], &[10.0, 0.0, -1.0])),
    ]);
    for way in ways() {
        let ones = results(place.path(), &format!("{way} --input x=x.npy --check"));
        assert_close(way, &ones["g_x"].values, &[2.0, -4.0, 1.0], 1e-15);
        let given = format!("{way} --cotangent input --input x=x.npy --input cotangent=c.npy --check");
        assert_close(way, &results(place.path(), &given)["g_x"].values, &[20.0, 0.0, -1.0], 1e-15);
    }
}

/// `cast` has no VJP; behind a stop it needs none.
#[test]
fn what_a_rule_stops_is_inactive() {
    let program = "let f = fn(x: tensor<F64, [3], @host>) -> tensor<F64, [3], @host> {
                     let frozen = x.stop_gradient().cast(dtype=F32).cast(dtype=F64) in
                     x * frozen
                   } in
                   let x = tensor<F64, [3], @host> in
                   handle f(x) with reverseMode";
    let place = directory(&[("p.kina", program.as_bytes().to_vec()), ("x.npy", npy_f64(&[3], &[1.0, -2.0, 0.5]))]);
    for way in ways() {
        let got = results(place.path(), &format!("{way} --input x=x.npy --check"));
        assert_close(way, &got["primal"].values, &[1.0, 4.0, 0.25], 1e-15);
        assert_close(way, &got["g_x"].values, &[1.0, -2.0, 0.5], 1e-15);
    }
    let active = program.replace(".stop_gradient()", "");
    let place = directory(&[("p.kina", active.into_bytes())]);
    // The restricted pass has no VJP of `cast`.
    kina(place.path(), "grad p.kina --profile phase1").refusal(1, &["E0501", "no VJP for `cast`"]).unwrap();
}

#[test]
fn handlers_nest() {
    let program = "let f = fn(x: tensor<F64, [3], @host>) -> tensor<F64, [3], @host> { x * x * x } in
                   let df = fn(x: tensor<F64, [3], @host>) -> tensor<F64, [3], @host> {
                     let (y, g) = handle f(x) with reverseMode in
                     g
                   } in
                   let x = tensor<F64, [3], @host> in
                   handle df(x) with reverseMode";
    let place = directory(&[("p.kina", program.as_bytes().to_vec()), ("x.npy", npy_f64(&[3], &[1.0, -2.0, 0.5]))]);
    for way in ways() {
        let got = results(place.path(), &format!("{way} --input x=x.npy --check"));
        assert_close(way, &got["primal"].values, &[3.0, 12.0, 0.75], 1e-15);
        assert_close(way, &got["g_x"].values, &[6.0, -12.0, 3.0], 1e-15);
    }
}

#[test]
fn a_training_step_is_one_program() {
    let program = "let f = fn(x: tensor<F32, [3], @host>) -> tensor<F32, [], @host> { (x * x).sum() } in
                   let x = tensor<F32, [3], @host> in
                   let (l, g) = handle f(x) with reverseMode in
                   (l, x - g * 0.1)";
    let place = directory(&[("p.kina", program.as_bytes().to_vec()), ("x.npy", npy_f32(&[3], &[1.0, -2.0, 0.5]))]);
    for way in ways() {
        let got = results(place.path(), &format!("{way} --input x=x.npy"));
        assert_eq!(got["result_0"].shape, [0usize; 0]);
        assert_close(way, &got["result_0"].values, &[5.25], 1e-6);
        assert_close(way, &got["result_1"].values, &[0.8, -1.6, 0.4], 1e-6);
    }
}

#[test]
fn one_argument_twice_has_two_gradients_and_an_unused_one_has_zeros() {
    let ty = "tensor<F64, [3], @host>";
    let program = format!(
        "let f = fn(a: {ty}, b: {ty}, c: tensor<F32, [2], @host>) -> {ty} {{ a * a * b }} in
         let x = {ty} in let c = tensor<F32, [2], @host> in
         handle f(x, x, c) with reverseMode"
    );
    let place = directory(&[("p.kina", program.into_bytes()), ("x.npy", npy_f64(&[3], &[1.0, -2.0, 0.5]))]);
    for way in ways() {
        let got = results(place.path(), &format!("{way} --input x=x.npy --check"));
        assert_eq!(got.keys().collect::<Vec<_>>(), ["g_a", "g_b", "g_c", "primal"]);
        assert_close(way, &got["g_a"].values, &[2.0, 8.0, 0.5], 1e-15);
        assert_close(way, &got["g_b"].values, &[1.0, 4.0, 0.25], 1e-15);
        assert_eq!((&*got["g_c"].descr, &got["g_c"].values), ("<f4", &vec![0.0, 0.0]));
    }
}

/// The gradient of |g|^2, g being the gradient of the loss: second order through exp and ScatterAlongAxis.
const SECOND_ORDER: &str = "let nll = fn(logits: tensor<F64, [2, 3], @host>) -> tensor<F64, [2], @host> {
                              let targets = tensor<I64, [2], @host> in
                              -logits.log_softmax(axis=1).take_along_axis(targets, axis=1)
                            } in
                            let slope = fn(logits: tensor<F64, [2, 3], @host>) -> tensor<F64, [], @host> {
                              let (loss, g) = handle nll(logits) with reverseMode in
                              (g * g).sum()
                            } in
                            let logits = tensor<F64, [2, 3], @host> in
                            handle slope(logits) with reverseMode";

/// With H = diag(s) - s s', the gradient of |g|^2 is 2 H g.
fn second_order_closed_form(logits: &[f64], targets: &[i64]) -> Vec<f64> {
    let g = nll_closed_form(logits, &[2, 3], 1, targets).gradient;
    let softmax = |i: usize| g[i] + if (i % 3) as i64 == targets[i / 3] { 1.0 } else { 0.0 };
    (0..6)
        .map(|i| {
            let row = i / 3 * 3..i / 3 * 3 + 3;
            let dot: f64 = row.map(|j| softmax(j) * g[j]).sum();
            2.0 * softmax(i) * (g[i] - dot)
        })
        .collect()
}

#[test]
fn the_restricted_pass_takes_second_order_from_a_users_rules() {
    let exp = "/// y is at hand.\nvjp exp {\n  y = exp(x)\n  ---\n  g_x = g_y * y\n}\n";
    let scatter = "/// Read back.\nvjp scatter_along_axis {\n  y = scatter_along_axis(axis, updates, indices, dest_ty)\n  ---\n  \
                   g_updates = take_along_axis(g_y, indices, axis)\n  g_indices = none\n}\n";
    let logits = [0.5, -1.0, 2.0, 1.5, 0.0, -0.5];
    let place = directory(&[
        ("p.kina", SECOND_ORDER.as_bytes().to_vec()),
        ("exp.rules", exp.into()),
        ("scatter.rules", scatter.into()),
        ("l.npy", npy_f64(&[2, 3], &logits)),
        ("t.npy", npy_i64(&[2], &[2, 0])),
    ]);
    let inputs = "--input logits=l.npy --input targets=t.npy";
    let restricted = |rules: &str| kina(place.path(), &format!("grad p.kina --profile phase1 {rules}"));
    restricted("").refusal(1, &["E0501", "no VJP for `exp`", "vjp log_softmax at rules/phase1.rules:"]).unwrap();
    restricted("--rules scatter.rules").refusal(1, &["no VJP for `exp`", "vjp exp {"]).unwrap();
    let want = second_order_closed_form(&logits, &[2, 0]);
    for way in ways() {
        let both = format!("--profile phase1 --rules exp.rules --rules scatter.rules {way} {inputs} --check");
        assert_close(way, &results(place.path(), &both)["g_logits"].values, &want, 1e-12);
        let default = format!("{way} {inputs} --check");
        assert_close(way, &results(place.path(), &default)["g_logits"].values, &want, 1e-12);
    }
}

#[test]
fn the_restricted_pass_knows_no_vjp_of_scatter() {
    let program = "let pick = fn(x: tensor<F64, [2, 3], @host>) -> tensor<F64, [2], @host> {
                     let i = tensor<I64, [2], @host> in
                     let t = x.take_along_axis(i, axis=1) in
                     t * t
                   } in
                   let slope = fn(x: tensor<F64, [2, 3], @host>) -> tensor<F64, [2, 3], @host> {
                     let (y, g) = handle pick(x) with reverseMode in
                     g
                   } in
                   let x = tensor<F64, [2, 3], @host> in
                   handle slope(x) with reverseMode";
    let place = directory(&[("p.kina", program.as_bytes().to_vec()), ("i.npy", npy_i64(&[2], &[2, 0]))]);
    kina(place.path(), "grad p.kina --profile phase1")
        .refusal(
            1,
            &[
                "E0501",
                "no VJP for `scatter_along_axis` with respect to its operand `updates`",
                "vjp take_along_axis at rules/phase1.rules:",
                "vjp scatter_along_axis {",
            ],
        )
        .unwrap();
    for way in ways() {
        let got = results(place.path(), &format!("{way} --input i=i.npy --check"));
        assert_close(way, &got["g_x"].values, &[0.0, 0.0, 2.0, 2.0, 0.0, 0.0], 1e-15);
    }
}

#[test]
fn the_restricted_pass_differentiates_the_loss() {
    let place = directory::<&[u8]>(&[]);
    for way in ways() {
        for example in ["storylm0_nll", "storylm0_nll_mean"] {
            let run = format!("run {EXAMPLES}/{example}.kina --profile phase1 {way} --check");
            assert!(kina(place.path(), &run).ok().contains(": passed"), "{run}");
        }
    }
    kina(place.path(), &format!("grad {EXAMPLES}/mlp.kina --profile phase1")).ok();
}

#[test]
fn a_check_belongs_to_the_program_even_if_its_value_is_unused() {
    let program = "let f = fn(x: tensor<F32, [2, 3], @host>) -> tensor<F32, [2, 3], @host> {
                     let i = tensor<I64, [2], @host> in
                     let unused = x.take_along_axis(i, axis=1) in
                     x * x
                   } in
                   let x = tensor<F32, [2, 3], @host> in
                   handle f(x) with reverseMode";
    let place = directory(&[
        ("p.kina", program.as_bytes().to_vec()),
        ("good.npy", npy_i64(&[2], &[2, 0])),
        ("bad.npy", npy_i64(&[2], &[2, 3])),
    ]);
    for way in ways() {
        kina(place.path(), &format!("run p.kina {way} --input i=good.npy")).ok();
        let trapped = kina(place.path(), &format!("run p.kina {way} --input i=bad.npy"));
        trapped.refusal(3, &["E0801", "take_along_axis index out of bounds"]).unwrap();
    }
}

/// At -O0 the scatter of the backward pass has its own check; the primal's comes first.
#[test]
fn the_first_failing_check_speaks_alone() {
    let place = directory(&[("t.npy", npy_i64(&[1, 4], &[0, 8, 1, -1]))]);
    for way in ways() {
        let run = format!("run {EXAMPLES}/storylm0_nll.kina {way} --input targets=t.npy");
        let outcome = kina(place.path(), &run);
        outcome.refusal(3, &["take_along_axis index out of bounds"]).unwrap();
        assert_eq!(outcome.stderr.matches("out of bounds").count(), 1, "{way}: {}", outcome.stderr);
    }
}

/// A constant has the bits of its dtype, however it is written: one node for the literal and for `splat`.
#[test]
fn constants_are_rounded_where_they_are_written() {
    let program = "let x = tensor<F32, [2], @host> in (x * 0.1, x * splat(0.1, like=x))";
    let files = directory(&[("p.kina", program)]);
    let graph = kina(files.path(), "grad p.kina -O1").ok();
    assert_eq!(graph.matches("= splat(").count(), 1, "{graph}");
    assert_eq!(graph.matches("= mul(").count(), 1, "{graph}");
}

/// Folding constants is arithmetic of their dtype: what overflows becomes an infinity, as it does without folding.
#[test]
fn folded_constants_overflow_as_computed_ones_do() {
    let program = "let x = tensor<F32, [2], @host> in (x - x) + splat(3e38, like=x) * splat(10.0, like=x)";
    let files = directory(&[("p.kina", program), ("q.kina", "let x = tensor<F32, [2], @host> in x + 1e39")]);
    for arguments in ["run p.kina -O0 --interpret", "run p.kina -O2 --interpret"] {
        let out = kina(files.path(), arguments).ok();
        assert!(out.contains("[inf, inf]"), "{arguments}: {out}");
    }
    // What a person wrote must fit.
    kina(files.path(), "run q.kina --interpret").refusal(1, &["E0207", "does not fit F32"]).unwrap();
}

/// Large enough to be shared: rows, rows in scratch memory, points.
#[cfg(feature = "codegen")]
#[test]
fn results_are_the_same_files_for_every_number_of_threads() {
    let program = "let f = fn(x: tensor<F32, [300, 1200], @host>) {
          let y = x.softmax(axis=1) in (y * y).sum(axis=1) + x.exp().tanh().mean(axis=1)
        } in
        let x = tensor<F32, [300, 1200], @host> in
        handle f(x) with reverseMode";
    let place = directory(&[("p.kina", program)]);
    let run = |threads: &str| {
        kina(place.path(), &format!("run p.kina --output r.npz {threads}")).ok();
        std::fs::read(place.path().join("r.npz")).unwrap()
    };
    let one = run("--threads 1");
    for threads in ["", "--threads 2", "--threads 3", "--threads 16"] {
        assert!(run(threads) == one, "{threads:?}");
    }
}
