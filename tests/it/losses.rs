//! The losses of `rules/losses.rules` against their formulas, written out here, and against finite differences.

use std::collections::BTreeMap;

use crate::programs::{assert_close, results, ways};
use crate::support::{Floats, directory, kina, npy_f32, npy_f64, npy_i64};

/// Arguments of one loss.
#[derive(Clone, Copy, Debug)]
struct Loss {
    ignore: i64,
    smoothing: f64,
    z: f64,
    weighted: bool,
}

const PLAIN: Loss = Loss { ignore: -100, smoothing: 0.0, z: 0.0, weighted: false };

/// Numbers that look random and are the same everywhere, in -2..2.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(((state >> 40) as f64 / f64::from(1u32 << 22) - 2.0) as f32)
    };
    (0..count).map(next).collect()
}

/// Logits along an axis of a shape, by row.
struct Problem {
    dims: Vec<usize>,
    axis: usize,
    logits: Vec<f64>,
    targets: Vec<i64>,
    weights: Vec<f64>,
}

impl Problem {
    fn new(dims: &[usize], axis: usize, ignore: i64) -> Problem {
        let classes = dims[axis];
        let rows = dims.iter().product::<usize>() / classes;
        let targets = (0..rows).map(|i| if i % 3 == 1 { ignore } else { ((7 * i + 2) % classes) as i64 }).collect();
        let weights = numbers(classes, 5).into_iter().map(|w| w.abs() + 0.25).collect();
        Problem { dims: dims.to_vec(), axis, logits: numbers(rows * classes, 3), targets, weights }
    }

    fn classes(&self) -> usize {
        self.dims[self.axis]
    }

    /// The place of class `c` of row `row` among the logits.
    fn place(&self, row: usize, c: usize) -> usize {
        let inner: usize = self.dims[self.axis + 1..].iter().product();
        (row / inner * self.classes() + c) * inner + row % inner
    }

    /// PyTorch's documented formula, and the z term: the loss of each row and its weight.
    fn rows(&self, loss: Loss) -> Vec<(f64, f64)> {
        let weight = |c: usize| if loss.weighted { self.weights[c] } else { 1.0 };
        let rows = self.targets.iter().enumerate().map(|(row, target)| {
            if *target == loss.ignore {
                return (0.0, 0.0);
            }
            let x: Vec<f64> = (0..self.classes()).map(|c| self.logits[self.place(row, c)]).collect();
            let m = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let lse = m + x.iter().map(|x| (x - m).exp()).sum::<f64>().ln();
            let t = *target as usize;
            let smooth: f64 = (0..x.len()).map(|c| weight(c) * (lse - x[c])).sum();
            let sharp = weight(t) * (lse - x[t]);
            let smoothed = (1.0 - loss.smoothing) * sharp + loss.smoothing / x.len() as f64 * smooth;
            (smoothed + loss.z * weight(t) * lse * lse, weight(t))
        });
        rows.collect()
    }

    fn value(&self, loss: Loss, reduction: &str) -> Vec<f64> {
        let rows = self.rows(loss);
        let sum: f64 = rows.iter().map(|(loss, _)| loss).sum();
        match reduction {
            "none" => rows.into_iter().map(|(loss, _)| loss).collect(),
            "sum" => vec![sum],
            _ => vec![sum / rows.iter().map(|(_, weight)| weight).sum::<f64>()],
        }
    }

    /// By central differences of the formula.
    fn gradient(&self, loss: Loss, reduction: &str) -> Vec<f64> {
        let at = |place: usize, step: f64| {
            let mut moved = self.logits.clone();
            moved[place] += step;
            let problem = Problem {
                logits: moved,
                dims: self.dims.clone(),
                targets: self.targets.clone(),
                weights: self.weights.clone(),
                ..*self
            };
            problem.value(loss, reduction).iter().sum::<f64>()
        };
        let h = 1e-5;
        (0..self.logits.len()).map(|i| (at(i, h) - at(i, -h)) / (2.0 * h)).collect()
    }

    fn run(&self, dtype: &str, program: &str, options: &str) -> BTreeMap<String, Floats> {
        let rows: Vec<usize> = (0..self.dims.len()).filter(|d| *d != self.axis).map(|d| self.dims[d]).collect();
        let floats = |dims: &[usize], values: &[f64]| match dtype {
            "F64" => npy_f64(dims, values),
            _ => npy_f32(dims, &values.iter().map(|v| *v as f32).collect::<Vec<f32>>()),
        };
        let place = directory(&[
            ("p.kina", program.as_bytes().to_vec()),
            ("x.npy", floats(&self.dims, &self.logits)),
            ("t.npy", npy_i64(&rows, &self.targets)),
            ("w.npy", floats(&[self.classes()], &self.weights)),
        ]);
        let weights = if program.contains("let weights") { "--input weights=w.npy" } else { "" };
        results(place.path(), &format!("--input logits=x.npy --input targets=t.npy {weights} {options}"))
    }
}

/// The program of a loss.
fn program(problem: &Problem, dtype: &str, loss: Loss, reduction: &str) -> String {
    let rows: Vec<usize> = (0..problem.dims.len()).filter(|d| *d != problem.axis).map(|d| problem.dims[d]).collect();
    let (dims, classes) = (&problem.dims, problem.classes());
    let axis = problem.axis as i64 - if problem.dims.len().is_multiple_of(2) { problem.dims.len() as i64 } else { 0 };
    let mut arguments = format!("axis={axis}");
    if loss.ignore != PLAIN.ignore {
        arguments += &format!(", ignore_index={}", loss.ignore);
    }
    if loss.smoothing != 0.0 {
        arguments += &format!(", label_smoothing={}", loss.smoothing);
    }
    if loss.z != 0.0 {
        arguments += &format!(", z_loss={}", loss.z);
    }
    if reduction != "none" || loss.weighted {
        arguments += &format!(", reduction={reduction}");
    }
    let call = match (loss.weighted, loss.smoothing + loss.z) {
        (true, _) => format!("weighted_cross_entropy(logits, targets, weights, {arguments})"),
        (false, 0.0) => format!("logits.nll(targets, {arguments})"),
        (false, _) => format!("cross_entropy(logits, targets, {arguments})"),
    };
    let weights =
        if loss.weighted { format!("let weights = tensor<{dtype}, [{classes}], @host> in") } else { String::new() };
    format!(
        "let f = fn(logits: tensor<{dtype}, {dims:?}, @host>) {{
           let targets = tensor<I64, {rows:?}, @host> in {weights} {call}
         }} in
         let logits = tensor<{dtype}, {dims:?}, @host> in
         handle f(logits) with reverseMode"
    )
}

#[test]
fn losses_and_gradients_are_those_of_their_formulas() {
    let losses = [
        PLAIN,
        Loss { ignore: 2, ..PLAIN },
        Loss { smoothing: 0.1, ..PLAIN },
        Loss { z: 0.01, smoothing: 0.25, ignore: 0, ..PLAIN },
        Loss { weighted: true, ..PLAIN },
        Loss { weighted: true, smoothing: 0.1, z: 0.02, ..PLAIN },
    ];
    let shapes: [(&[usize], usize); 5] =
        [(&[5, 4], 1), (&[4, 5], 0), (&[2, 3, 4], 2), (&[2, 5, 1, 3], 1), (&[2, 1, 4, 2, 2], 2)];
    for (i, loss) in losses.into_iter().enumerate() {
        for (j, (dims, axis)) in shapes.into_iter().enumerate() {
            // Every loss meets every shape, and every reduction and dtype.
            let reduction = ["mean", "none", "sum"][(i + j) % 3];
            let dtype = if (i + j / 2) % 2 == 0 { "F64" } else { "F32" };
            let tolerance = if dtype == "F64" { 1e-8 } else { 1e-5 };
            let problem = Problem::new(dims, axis, loss.ignore);
            let (value, gradient) = (problem.value(loss, reduction), problem.gradient(loss, reduction));
            let text = program(&problem, dtype, loss, reduction);
            // Each in the interpreter, unrewritten and rewritten, and one of the compiled levels in turn.
            let compiled = ways().into_iter().filter(|way| !way.contains("interpret")).cycle().skip(i + j).take(1);
            for way in ["-O0 --interpret --check", "-O2 --interpret"].into_iter().chain(compiled) {
                let what = format!("{loss:?} {dims:?} along {axis}, {reduction}, {dtype} {way}");
                let found = problem.run(dtype, &text, way);
                assert_close(&what, &found["primal"].values, &value, tolerance);
                assert_close(&what, &found["g_logits"].values, &gradient, tolerance.max(1e-7));
            }
        }
    }
}

#[test]
fn ignored_rows_leak_nothing_and_other_targets_are_checked() {
    let loss = Loss { smoothing: 0.1, z: 0.01, ..PLAIN };
    for loss in [PLAIN, loss, Loss { weighted: true, ..loss }] {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut problem = Problem::new(&[4, 3], 1, loss.ignore);
            let clean = problem.run("F32", &program(&problem, "F32", loss, "mean"), "-O0 --interpret");
            // Row 1 is ignored; its target is far outside the classes.
            (0..3).for_each(|c| problem.logits[3 + c] = bad);
            let text = program(&problem, "F32", loss, "mean");
            for way in ways() {
                let found = problem.run("F32", &text, way);
                let what = format!("{loss:?} {bad} {way}");
                assert_close(&what, &found["primal"].values, &clean["primal"].values, 1e-6);
                assert_close(&what, &found["g_logits"].values, &clean["g_logits"].values, 1e-6);
                assert_eq!(&found["g_logits"].values[3..6], &[0.0; 3], "{what}");
            }
        }
    }
    // A target that is not ignored and no class.
    for target in [3, -1, -101] {
        let mut problem = Problem::new(&[4, 3], 1, -100);
        problem.targets[2] = target;
        let place = directory(&[
            ("p.kina", program(&problem, "F32", PLAIN, "mean").into_bytes()),
            ("t.npy", npy_i64(&[4], &problem.targets)),
        ]);
        for way in ways() {
            let outcome = kina(place.path(), &format!("run p.kina --input targets=t.npy {way}"));
            outcome.refusal(3, &["E0801", "take_along_axis index out of bounds"]).unwrap();
        }
    }
}

#[test]
fn a_mean_over_no_rows_is_nan_and_its_gradient_zero() {
    for loss in [PLAIN, Loss { smoothing: 0.1, z: 0.01, ..PLAIN }, Loss { weighted: true, smoothing: 0.1, ..PLAIN }] {
        let mut problem = Problem::new(&[2, 3], 1, -100);
        problem.targets = vec![-100; 2];
        for (reduction, value) in [("mean", f64::NAN), ("sum", 0.0)] {
            let text = program(&problem, "F32", loss, reduction);
            for way in ways() {
                let found = problem.run("F32", &text, way);
                let what = format!("{loss:?} {reduction} {way}");
                assert_close(&what, &found["primal"].values, &[value], 0.0);
                assert_close(&what, &found["g_logits"].values, &[0.0; 6], 0.0);
            }
        }
    }
}

#[test]
fn large_logits_lose_no_digits() {
    let text = "let f = fn(x: tensor<F32, [2, 2], @host>) { let t = tensor<I64, [2], @host> in x.nll(t, axis=1) } in
        let x = tensor<F32, [2, 2], @host> in handle f(x) with reverseMode";
    let place = directory(&[
        ("p.kina", text.as_bytes().to_vec()),
        ("x.npy", npy_f32(&[2, 2], &[1e8, 1e8, -1000.0, 1000.0])),
        ("t.npy", npy_i64(&[2], &[0, 0])),
    ]);
    for way in ways() {
        let found = results(place.path(), &format!("--input x=x.npy --input t=t.npy {way}"));
        assert_close(way, &found["primal"].values, &[2f64.ln(), 2000.0], 1e-6);
        assert_close(way, &found["g_x"].values, &[-0.5, 0.5, -1.0, 1.0], 1e-6);
    }
}

#[test]
fn gradients_with_respect_to_class_weights_and_of_second_order() {
    let text = "let f = fn(x: tensor<F64, [3, 4], @host>, w: tensor<F64, [4], @host>) {
          let t = tensor<I64, [3], @host> in
          let loss = fn(y: tensor<F64, [3, 4], @host>) {
            weighted_cross_entropy(y, t, exp(w), axis=-1, label_smoothing=0.2, z_loss=0.1, reduction=mean) } in
          let (value, g) = handle loss(x) with reverseMode in value + (g * g * x).sum() } in
        let x = tensor<F64, [3, 4], @host> in let w = tensor<F64, [4], @host> in
        handle f(x, w) with reverseMode";
    let place = directory(&[("p.kina", text.as_bytes().to_vec()), ("t.npy", npy_i64(&[3], &[3, -100, 0]))]);
    for way in ["-O0 --interpret", "-O2 --interpret"] {
        let out = kina(place.path(), &format!("run p.kina --input t=t.npy --check {way}")).ok();
        assert!(out.contains("g_w") && out.contains("passed"), "{out}");
    }
}
