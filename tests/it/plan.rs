//! The buffer plan against what programs take when they run: destinations, temporaries, aliased results, reuse in place.

use std::fmt::Write as _;
use std::num::NonZero;

use kina_ad::exec::Tensor;
use kina_ad::exec::inputs::gather;
use kina_ad::exec::jit::Compiled;
use kina_ad::ir::Precision;
use kina_ad::lower::{self, LowerOptions, TrapMode};
use kina_ad::run::{Engine, run};
use kina_ad::{CheckOptions, Level, Optimised, RuleOptions, Session};

fn optimised(program: &str, level: Level) -> (Session, Optimised) {
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    let graph = session.check("p.kina", program, &CheckOptions::default());
    let plain = kina_ad::diagnostics::Style::Plain;
    let graph = graph.unwrap_or_else(|refusal| panic!("{program}: {}", refusal.render(plain)));
    let mut program = session.differentiate(&graph).unwrap();
    let optimised = session.optimise(&mut program, level).unwrap();
    (session, optimised)
}

fn nll(dims: [u64; 2]) -> String {
    format!(
        "let x = tensor<F32, {dims:?}, @host> in let t = tensor<I64, [{}], @host> in
         let f = fn(x: tensor<F32, {dims:?}, @host>) {{ -x.log_softmax(axis=1).take_along_axis(t, axis=1) }} in
         handle f(x) with reverseMode",
        dims[0]
    )
}

/// The module of a form, as built, and after all passes.
fn modules(program: &str, level: Level, traps: TrapMode) -> (String, String) {
    let (session, program) = optimised(program, level);
    let schedule = session.schedule(&program).unwrap();
    let context = lower::context();
    let options = LowerOptions::new(level, traps);
    let registry = &session.rules.registry;
    let mut module = lower::lower(&context, &program.graph, registry, &schedule, &options).unwrap();
    let built = module.as_operation().to_string();
    lower::llvm_dialect(&context, &mut module, traps).unwrap();
    (built, module.as_operation().to_string())
}

/// Results go straight into the caller's buffers: the form that runs in this process allocates and copies nothing at all.
#[test]
fn the_negative_log_likelihood_allocates_and_copies_nothing() {
    for level in [Level::O1, Level::O2] {
        let (built, lowered) = modules(&nll([64, 50257]), level, TrapMode::Status);
        for word in ["memref.alloc(", "memref.copy", "linalg.copy", "bufferization."] {
            assert!(!built.contains(word), "{level}: {word}\n{built}");
        }
        for word in ["@malloc", "@aligned_alloc", "@memrefCopy", "llvm.intr.memcpy", "llvm.intr.memmove"] {
            assert!(!lowered.contains(word), "{level}: {word}");
        }
    }
}

/// The form of the specification returns new buffers; all others that it asks for are given back.
#[test]
fn temporaries_of_the_form_that_returns_its_results_are_freed() {
    let mlp = "let w = tensor<F32, [64, 300], @host> in let v = tensor<F32, [300, 50], @host> in
        let f = fn(x: tensor<F32, [100, 64], @host>) { x.matmul(w).gelu().matmul(v) } in
        let x = tensor<F32, [100, 64], @host> in handle f(x) with reverseMode";
    for (program, results) in [(nll([64, 5000]), 2), (mlp.to_owned(), 2)] {
        for level in [Level::O0, Level::O2] {
            let (_, lowered) = modules(&program, level, TrapMode::Assert);
            let calls = |name: &str| lowered.matches(&format!("llvm.call @{name}(")).count();
            let (taken, freed) = (calls("malloc") + calls("aligned_alloc"), calls("free"));
            assert!(taken >= results, "{level}: {program}");
            assert_eq!(taken - freed, results, "{level}: {taken} allocated, {freed} freed\n{program}");
        }
    }
}

/// Programs whose temporaries are larger than 100 MB, and fast enough for a test.
fn large() -> Vec<(&'static str, String)> {
    let mlp = "let w = tensor<F32, [16, 8192], @host> in let v = tensor<F32, [8192, 8], @host> in
        let f = fn(x: tensor<F32, [4096, 16], @host>) { x.matmul(w).gelu().matmul(v) } in
        let x = tensor<F32, [4096, 16], @host> in handle f(x) with reverseMode";
    let attention = "let f = fn(x: tensor<F32, [12, 1024, 8], @host>) {
          let n = x.layer_norm() in
          let p = softmax(n.matmul(transpose(n, perm=[0, 2, 1])), axis=-1) in
          x + p.matmul(n).tanh() } in
        let x = tensor<F32, [12, 1024, 8], @host> in handle f(x) with reverseMode";
    let scans = "let x = tensor<F32, [2000, 8000], @host> in
        let a = x.cumsum(axis=1) in let b = a.cumsum(axis=0).tanh() in let c = (a * b).cumsum(axis=1) in
        (b.cumsum(axis=0) * c).sum(axis=1)";
    let columns = "let x = tensor<F32, [4000, 8000], @host> in
        let y = x.softmax(axis=0).cumsum(axis=0) in y.softmax(axis=0).reverse(axis=1).cumsum(axis=1).max(axis=0)";
    vec![
        ("mlp", mlp.to_owned()),
        ("attention", attention.to_owned()),
        ("scans", scans.to_owned()),
        ("columns", columns.to_owned()),
        ("nll", nll([256, 50257])),
    ]
}

/// Little is lost between temporaries.
#[test]
fn the_workspace_is_hardly_larger_than_what_is_needed_at_one_time() {
    for (name, program) in large() {
        let (session, program) = optimised(&program, Level::O2);
        let schedule = session.schedule(&program).unwrap();
        let least = schedule.least;
        assert!(schedule.workspace >= least, "{name}");
        let lost = schedule.workspace - least;
        assert!(lost as f64 <= 0.03 * schedule.workspace as f64, "{name}: {lost} of {} bytes", schedule.workspace);
    }
}

/// A figure of `/proc/self/status` in bytes.
#[cfg(target_os = "linux")]
fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix(key)).unwrap_or_else(|| panic!("{key} in {text}"));
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Runs one of the [`large`] programs and prints how much memory a call took besides its inputs and outputs, and how much
/// was planned. Only as a process of its own, which the next test starts.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "a part of `the_plan_is_what_a_call_takes`"]
fn one_call() {
    let Ok(name) = std::env::var("KINA_PLAN") else { return };
    let (_, program) = large().into_iter().find(|(n, _)| *n == name).unwrap();
    let (session, program) = optimised(&program, Level::O2);
    let threads = NonZero::new(2).unwrap();
    let compiled = Compiled::new(&program.graph, &session.rules.registry, Level::O2).unwrap().with_threads(threads);
    let inputs = gather(&program.graph, Vec::new(), 5).unwrap();
    let tensors: Vec<&Tensor> = inputs.iter().map(|i| &i.tensor).collect();
    // The first call touches the outputs and starts threads.
    let mut outputs = compiled.call(&tensors).unwrap();
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    compiled.call_into(&tensors, &mut outputs).unwrap();
    let taken = status("VmHWM").saturating_sub(before);
    let given: usize = tensors.iter().copied().chain(&outputs).map(|t| t.as_bytes().len()).sum();
    println!("plan {} {} {given}", compiled.temporaries(), taken);
}

#[cfg(target_os = "linux")]
#[test]
fn the_plan_is_what_a_call_takes() {
    for (name, _) in large() {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "plan::one_call", "--ignored", "--nocapture", "--test-threads=1"])
            .env("KINA_PLAN", name)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {text}{}", String::from_utf8_lossy(&output.stderr));
        let line = text.lines().find_map(|l| l.split("plan ").nth(1)).unwrap_or_else(|| panic!("{name}: {text}"));
        let [planned, taken, given]: [u64; 3] =
            line.split(' ').map(|n| n.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
        if name == "nll" {
            // 256 rows: a few kilobytes, and what the machine counts in pages. The logits alone are 51 MB.
            assert!(planned < 64 * 256 && taken < 2 << 20, "{name}: {planned} planned, {taken} taken");
            continue;
        }
        assert!(planned > 100_000_000, "{name}: {planned} bytes are few");
        let off = planned.abs_diff(taken) as f64 / planned as f64;
        assert!(off <= 0.05, "{name}: {planned} planned, {taken} taken, beside {given} bytes of inputs and outputs");
    }
}

/// Every level, with one thread and with several, against the interpreter.
fn assert_all_agree(what: &str, text: &str, levels: &[Level], tolerance: f64) {
    let results = |level, engine| {
        let (session, program) = optimised(text, level);
        let inputs = gather(&program.graph, Vec::new(), 3).unwrap();
        let tensors: Vec<&Tensor> = inputs.iter().map(|i| &i.tensor).collect();
        let results = run(&program.graph, &session.rules.registry, level, engine, &tensors).unwrap();
        results.into_iter().map(|(_, tensor)| tensor.to_array().unwrap()).collect::<Vec<_>>()
    };
    let want = results(Level::O0, Engine::Interpreted(Precision::Double));
    for level in levels {
        for threads in [1, 3] {
            let got = results(*level, Engine::Compiled { threads: NonZero::new(threads) });
            for (n, (got, want)) in got.iter().zip(&want).enumerate() {
                for (i, (g, w)) in got.floats().iter().zip(want.floats()).enumerate() {
                    let close = (g - w).abs() <= tolerance * (1.0 + w.abs());
                    assert!(close, "{what} {level}, {threads} threads: result {n} at {i} is {g}, not {w}\n{text}");
                }
            }
        }
    }
}

#[test]
fn results_that_are_each_other_or_inputs() {
    let x = "let x = tensor<F32, [6, 40], @host> in let y = tensor<F32, [6, 40], @host> in";
    let programs = [
        "(x, x, y)",
        "let a = tanh(x) in (a, a, a.reshape(shape=[240]), x.reshape(shape=[40, 6]), a)",
        // A result that another nest would write over.
        "let a = tanh(x) in let b = a * y in let c = b + a in (a, c, b.reshape(shape=[2, 120]), b)",
        "let a = tanh(x) in let b = exp(a) in (b, a + b, (a + b).reverse(axis=0), a.sum(axis=1), a)",
        // A view of a temporary, and of a result, that is read after both are written over.
        "let a = (x * y).reshape(shape=[40, 6]) in let b = tanh(a) in (b, b.reshape(shape=[6, 40]) + x, a)",
        "let s = x.softmax(axis=0) in (s, s, s * s, s.reshape(shape=[240]).sum(axis=0), x)",
        "let s = x.sum(axis=1, keepdims=true) in (s, s.reshape(shape=[6]), s.broadcast(shape=[6, 40]), s)",
        "let f = fn(x: tensor<F32, [6, 40], @host>) { x.reshape(shape=[240]) } in handle f(x) with reverseMode",
        "let f = fn(x: tensor<F32, [6, 40], @host>) { x } in handle f(x) with reverseMode",
    ];
    for program in programs {
        assert_all_agree("aliased results", &format!("{x} {program}"), &Level::ALL, 1e-5);
    }
}

/// A program of many values of wide rows, of which many are results: everything that may live in another one's buffer. In
/// F64, so that what rounding does is small beside any mistake.
fn random(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize % n
    };
    let shapes = [[5usize, 400], [3, 1100], [160, 160], [300, 7]];
    let dims = shapes[next(shapes.len())];
    let mut text = format!("let v0 = tensor<F64, {dims:?}, @host> in\nlet v1 = tensor<F64, {dims:?}, @host> in\n");
    let count = 6 + next(14);
    for i in 2..count {
        let (a, b) = (i - 1 - next(i.min(4)), next(i));
        let axis = next(2);
        let flat = dims[0] * dims[1];
        let _ = match next(11) {
            0 => writeln!(text, "let v{i} = tanh(v{a}) in"),
            1 => writeln!(text, "let v{i} = v{a} - v{b} * v{b} in"),
            2 => writeln!(text, "let v{i} = tanh(v{a} * v{b}) in"),
            3 | 4 => {
                writeln!(text, "let v{i} = v{a} - v{b}.max(axis={axis}, keepdims=true).broadcast(shape={dims:?}) in")
            }
            5 => writeln!(
                text,
                "let v{i} = tanh(v{a}).sum(axis={axis}, keepdims=true).broadcast(shape={dims:?}) * v{b} in"
            ),
            6 => writeln!(text, "let v{i} = v{a}.softmax(axis={axis}) + v{b} in"),
            7 => writeln!(text, "let v{i} = v{a}.reverse(axis={axis}) + tanh(v{b}) in"),
            8 => writeln!(text, "let v{i} = tanh(v{a}.reshape(shape=[{flat}])).reshape(shape={dims:?}) in"),
            9 => writeln!(text, "let v{i} = tanh(v{a}).cumsum(axis={axis}) in let v{i} = tanh(v{i} + v{b}) in"),
            _ => writeln!(text, "let v{i} = (v{a} + v{b}).layer_norm(axis={axis}) in"),
        };
        // Nothing grows without end.
        let _ = writeln!(text, "let v{i} = minimum(maximum(v{i}, splat(-4.0, like=v{i})), splat(4.0, like=v{i})) in");
    }
    let results: Vec<String> = (0..1 + next(6))
        .map(|_| match next(5) {
            0 => format!("v{}.sum(axis={})", next(count), next(2)),
            1 => format!("v{}.reshape(shape=[{}])", next(count), dims[0] * dims[1]),
            _ => format!("v{}", next(count)),
        })
        .chain([format!("v{}", count - 1)])
        .collect();
    text + &format!("({})", results.join(", "))
}

#[test]
fn reuse_in_place_loses_nothing() {
    for seed in 0..40 {
        assert_all_agree(&format!("seed {seed}"), &random(seed), &[Level::O2], 1e-8);
    }
}
