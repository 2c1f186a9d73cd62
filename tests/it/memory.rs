//! Shapes larger than memory: legal programs, refused when they run, at every level and by every engine.

use crate::support::{directory, kina};

/// Every way to run, by level and engine, with and without a gradient check.
fn ways() -> Vec<&'static str> {
    let mut ways = vec!["-O0 --interpret", "-O1 --interpret", "-O2 --interpret", "--interpret=double --check"];
    if cfg!(feature = "codegen") {
        ways.extend(["-O0", "-O1", "-O2", "--check"]);
    }
    ways
}

/// 4 TB of input: there is no such memory, whatever the allocator says.
const INPUT: &str = "let f = fn(x: tensor<F32, [1000000, 1000000], @host>) -> tensor<F32, [], @host> { sum(x * x) } in
    let x = tensor<F32, [1000000, 1000000], @host> in
    handle f(x) with reverseMode";

/// 4 TB of result, from an input of 4 MB.
const RESULT: &str = "let x = tensor<F32, [1000000], @host> in
    exp(x).broadcast(shape=[1000000, 1000000])";

/// 4 TB of constant and of a gradient that nothing can simplify.
const GRADIENT: &str = "let f = fn(x: tensor<F32, [1000000, 1], @host>) -> tensor<F32, [1000000, 1000000], @host> {
      let b = x.broadcast(shape=[1000000, 1000000]) in
      tanh(b) * transpose(b, perm=[1, 0]) + splat(0.1, like=b)
    } in
    let x = tensor<F32, [1000000, 1], @host> in
    handle f(x) with reverseMode";

/// Products of 2^62 bytes each: no two of them have an address, and the loops of a product cannot be counted.
const PRODUCTS: &str = "let x = tensor<F64, [1], @host> in
    let b = x.broadcast(shape=[536870912, 1073741824]) in
    let c = x.broadcast(shape=[1073741824, 536870912]) in
    sum(exp(matmul(exp(b), tanh(c)))) + sum(tanh(matmul(tanh(b), exp(c))))";

#[test]
fn no_shape_is_too_large_for_an_error() {
    let files =
        [("input.kina", INPUT), ("result.kina", RESULT), ("gradient.kina", GRADIENT), ("products.kina", PRODUCTS)];
    let place = directory(&files);
    for way in ways() {
        let refuse = |file: &str, words: &[&str]| {
            let outcome = kina(place.path(), &format!("run {file} {way}"));
            outcome.refusal(1, words).unwrap_or_else(|complaint| panic!("{file} {way}: {complaint}"));
        };
        refuse("input.kina", &["E0706", "input `x`", "F32", "[1000000, 1000000]", "4000000000000 bytes"]);
        for file in ["result.kina", "gradient.kina", "products.kina"] {
            refuse(file, &["E0802", "use smaller shapes"]);
        }
    }
}

/// What does not run can be looked at, unless it has no addresses.
#[test]
fn programs_larger_than_memory_compile() {
    let place = directory(&[("gradient.kina", GRADIENT), ("products.kina", PRODUCTS)]);
    let mut stages = vec!["program", "graph", "schedule"];
    if cfg!(feature = "codegen") {
        stages.extend(["linalg", "llvm", "llvm-ir", "asm", "object", "header"]);
    }
    for stage in stages {
        for level in ["-O0", "-O2"] {
            let emit = |file: &str| kina(place.path(), &format!("emit {file} --stage {stage} {level} -o out"));
            emit("gradient.kina").ok();
            // No constant is spelled out, element by element.
            let size = std::fs::metadata(place.path().join("out")).unwrap().len();
            assert!(size < 100_000, "{stage} {level}: {size} bytes");
            let products = emit("products.kina");
            match stage {
                "program" | "graph" => assert_eq!(products.ok(), ""),
                _ => products.refusal(1, &["E0605", "too large to be addressed", "use smaller shapes"]).unwrap(),
            }
        }
    }
}

/// A process that may have 1.5 GB, whatever the machine has: the allocator refuses, and that is an error too.
#[cfg(target_os = "linux")]
#[test]
fn what_the_allocator_refuses_is_an_error() {
    use std::process::Command;

    let files = [
        ("input.kina", "let x = tensor<F32, [500000000], @host> in x * x"),
        ("result.kina", "let x = tensor<F64, [1], @host> in exp(x).broadcast(shape=[200000000])"),
        // Each of them fits.
        (
            "several.kina",
            "let x = tensor<F64, [1], @host> in
             let b = x.broadcast(shape=[100000000]) in
             (splat(1.0, like=b), splat(2.0, like=b))",
        ),
    ];
    let place = directory(&files);
    for way in ways() {
        for (file, code) in [("input.kina", "E0706"), ("result.kina", "E0802"), ("several.kina", "E0802")] {
            let binary = env!("CARGO_BIN_EXE_kina-ad");
            let script = format!("ulimit -v 1500000 && exec {binary} run {file} {way}");
            let output = Command::new("sh").args(["-c", &script]).current_dir(place.path()).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{file} {way}: {stderr}");
            assert!(stderr.contains(code) && stderr.contains("not enough memory"), "{file} {way}: {stderr}");
        }
    }
}
