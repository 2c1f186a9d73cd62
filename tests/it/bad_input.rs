//! Bad input, row by row: exit code, message, place, cause and way out.

use crate::support::{directory, kina, npy_i64};

/// A row of a table: what is wrong, the files, the command line, the exit code, and what stderr must say.
pub type Row<'a> = (&'a str, &'a [(&'a str, &'a [u8])], &'a str, i32, &'a [&'a str]);

#[track_caller]
pub fn check(rows: &[Row<'_>]) {
    let mut failures = Vec::new();
    for (name, files, arguments, code, words) in rows {
        let place = directory(files);
        if let Err(complaint) = kina(place.path(), arguments).refusal(*code, words) {
            failures.push(format!("== {name}: {complaint}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Rows whose program is `p.kina`, for `kina-ad grad p.kina`.
#[track_caller]
fn check_programs(rows: &[(&str, &str, &[&str])]) {
    for (name, program, words) in rows {
        check(&[(name, &[("p.kina", program.as_bytes())], "grad p.kina", 1, words)]);
    }
}

pub const NLL: &[u8] = include_bytes!("../../examples/storylm0_nll.kina");

#[test]
fn syntax_errors_say_what_was_expected() {
    check_programs(&[
        ("cut off", "let x = tensor<F32, [2], @host> in\nx +", &["E0101", "p.kina:2:4", "expected an expression"]),
        ("empty", "", &["E0101", "p.kina:1:1", "expected an expression"]),
        (
            "an open bracket",
            "let x = tensor<F32, [2], @host> in\nsum(x, axis=[0",
            &["E0101", "p.kina:2:15", "still open here"],
        ),
        ("no in", "let x = tensor<F32, [2], @host>\nx", &["E0101", "p.kina:2:1", "`in`"]),
        (
            "chained comparison",
            "let x = tensor<F32, [2], @host> in\nx < x < x",
            &["E0109", "p.kina:2:7", "comparisons do not chain"],
        ),
        ("a rule's form", "none", &["E0214", "p.kina:1:1", "belongs to rule files"]),
    ]);
    let deep = format!("{}1.0{}", "(".repeat(100_000), ")".repeat(100_000));
    let long = format!("let x = tensor<F32, [2], @host> in x{}", " + x".repeat(100_000));
    check_programs(&[
        ("nested too deeply", &deep, &["E0102", "p.kina:1:", "bind inner parts with `let`"]),
        ("chained too long", &long, &["E0103", "p.kina:1:", "bind parts with `let`"]),
    ]);
}

#[test]
fn names_and_arguments_are_checked_with_suggestions() {
    check_programs(&[
        (
            "unknown operator",
            "let x = tensor<F32, [2], @host> in\nx.rleu()",
            &["E0202", "p.kina:2:3", "unknown operator `rleu`", "did you mean `relu`?"],
        ),
        (
            "unknown operator, nothing near",
            "let x = tensor<F32, [2], @host> in\nx.cholesky()",
            &["E0202", "p.kina:2:3", "unknown operator `cholesky`", "a `def` in a rule file adds one"],
        ),
        (
            "unknown name",
            "let logits = tensor<F32, [2], @host> in\nlogit",
            &["E0201", "p.kina:2:1", "unknown name `logit`", "did you mean `logits`?"],
        ),
        (
            "two inputs of one name",
            "let x = tensor<F32, [2], @host> in\nlet x = tensor<F32, [2], @host> in x",
            &["E0204", "p.kina:2:5", "two inputs are named `x`"],
        ),
        (
            "unknown dtype and placement, both reported",
            "let x = tensor<F16, [2], @gpu> in x",
            &[
                "E0203",
                "p.kina:1:16",
                "the dtypes are Bool, I32, I64, F32, F64",
                "p.kina:1:27",
                "`@host` and `@device`",
            ],
        ),
        (
            "missing argument",
            "let x = tensor<F32, [2], @host> in\nx.log_softmax()",
            &["E0205", "p.kina:2:3", "needs its argument `axis`"],
        ),
        (
            "unknown argument",
            "let x = tensor<F32, [2], @host> in\nx.log_softmax(axes=0)",
            &["E0205", "p.kina:2:15", "has no argument `axes`", "did you mean `axis`?"],
        ),
        (
            "recursion",
            "let f = fn(x: tensor<F32, [2], @host>) -> tensor<F32, [2], @host> { f(x) } in\n\
             let x = tensor<F32, [2], @host> in f(x)",
            &["p.kina:1:69", "`f`"],
        ),
        (
            "unknown handler",
            "let f = fn(x: tensor<F32, [2], @host>) -> tensor<F32, [2], @host> { x } in\n\
             let x = tensor<F32, [2], @host> in\nhandle f(x) with forwardMode",
            &["E0212", "p.kina:3:18", "unknown handler `forwardMode`", "`reverseMode`"],
        ),
        (
            "only integers to differentiate by",
            "let f = fn(x: tensor<I64, [2], @host>) -> tensor<I64, [2], @host> { x } in\n\
             let x = tensor<I64, [2], @host> in\nhandle f(x) with reverseMode",
            &["E0215", "p.kina:3:1", "nothing to differentiate", "F32 or F64"],
        ),
    ]);
}

#[test]
fn scatter_along_axis_is_no_form_of_the_language() {
    let head = "let u = tensor<F32, [2], @host> in\nlet i = tensor<I64, [2], @host> in\n";
    for call in ["u.scatter_along_axis(i, axis=1)", "scatter_along_axis(1, u, i, u)", "i.scatter_along_axis()"] {
        let program = format!("{head}{call}");
        check_programs(&[(call, &program, &["E0202", "p.kina:3:", "internal", "take_along_axis"])]);
    }
}

#[test]
fn typing_premises_are_checked() {
    check_programs(&[
        (
            "rank",
            "let x = tensor<F32, [2], @host> in\nlet i = tensor<I64, [2], @host> in\nx.take_along_axis(i, axis=0)",
            &["E0301", "p.kina:3:1", "rank >= 2", "of rank 1", "`reshape`"],
        ),
        (
            "dtype",
            "let x = tensor<F32, [2, 3], @host> in\nlet i = tensor<F32, [2], @host> in\nx.take_along_axis(i, axis=1)",
            &["E0302", "p.kina:3:19", "needs I64 indices", "cast(indices, dtype=I64)"],
        ),
        (
            "shape of indices",
            "let x = tensor<F32, [2, 3], @host> in\nlet i = tensor<I64, [3], @host> in\nx.take_along_axis(i, axis=1)",
            &["E0303", "p.kina:3:19", "`values` without axis 1, [2], but they are [3]", "`reshape`"],
        ),
        (
            "shape of arithmetic",
            "let x = tensor<F32, [2, 3], @host> in\nlet y = tensor<F32, [3], @host> in\nx + y",
            &["E0303", "p.kina:3:5", "`a` is [2, 3], but `b` is [3]", "`broadcast(y, shape=[2, 3])`"],
        ),
        (
            "inner dimensions of matmul",
            "let x = tensor<F32, [2, 3], @host> in\nx.matmul(x)",
            &["E0303", "p.kina:2:", "matmul"],
        ),
        (
            "axis out of range",
            "let x = tensor<F32, [2, 3], @host> in\nx.log_softmax(axis=2)",
            &["E0304", "p.kina:2:20", "out of range for rank 2", "0 to 1, or -2 to -1"],
        ),
        (
            "negative axis out of range",
            "let x = tensor<F32, [2, 3], @host> in\nx.sum(axis=-3)",
            &["E0304", "p.kina:2:12", "out of range for rank 2"],
        ),
        (
            "axis twice",
            "let x = tensor<F32, [2, 3], @host> in\nx.sum(axis=[1, -1])",
            &[
                "E0304",
                "p.kina:2:16",
                "1 and -1 are the same axis of a tensor of rank 2",
                "first here",
                "0 to 1, or -2 to -1",
            ],
        ),
        (
            "axis twice, written the same",
            "let x = tensor<F32, [2, 3], @host> in\nx.transpose(perm=[0, 0])",
            &["E0304", "p.kina:2:22", "axis 0 stands twice", "again here", "name every axis once"],
        ),
        (
            "one of several axes out of range",
            "let x = tensor<F32, [2, 3], @host> in\nx.sum(axis=[0, -3])",
            &["E0304", "p.kina:2:16", "axis -3 is out of range for rank 2"],
        ),
        (
            "no axis",
            "let x = tensor<F32, [2], @host> in\nx.sum(axis=[])",
            &["E0304", "p.kina:2:12", "leave `axis` out"],
        ),
        (
            "placement",
            "let x = tensor<F32, [2], @host> in\nlet y = tensor<F32, [2], @device> in\nx + y",
            &["E0305", "p.kina:3:5", "device"],
        ),
        (
            "an input over 2^63",
            "let x = tensor<F32, [4294967296, 4294967296], @host> in\nx",
            &["E0307", "p.kina:1:9", "too large", "2^63"],
        ),
        (
            "a result over 2^63",
            "let x = tensor<F32, [2], @host> in\nx.broadcast(shape=[4294967296, 4294967296, 2])",
            &["E0307", "p.kina:2:19", "2^63", "smaller or fewer dimensions"],
        ),
        ("max of nothing", "let x = tensor<F32, [2, 0], @host> in\nx.max(axis=1)", &["E0308", "p.kina:2:", "max"]),
        (
            "argument of a function",
            "let f = fn(x: tensor<F32, [2], @host>) -> tensor<F32, [2], @host> { x } in\n\
             let y = tensor<F32, [3], @host> in\nf(y)",
            &["E0303", "p.kina:3:3", "`x` of `f` is a tensor<F32, [2], @host>, not a tensor<F32, [3], @host>"],
        ),
        (
            "result of a function",
            "let f = fn(x: tensor<F32, [2], @host>) -> tensor<F32, [3], @host> { x } in\n\
             let x = tensor<F32, [2], @host> in\nf(x)",
            &["E0303", "p.kina:1:69", "declared here", "correct the declared type"],
        ),
    ]);
}

#[test]
fn a_missing_vjp_names_operator_operand_and_path_and_prints_a_stub() {
    let program: &[u8] = b"let f = fn(x: tensor<F32, [2], @host>) -> tensor<F32, [2], @host> {\n  \
        let s = x * x in\n  let e = s.exp() in\n  e + x\n} in\n\
        let x = tensor<F32, [2], @host> in\nhandle f(x) with reverseMode\n";
    let words: &[&str] = &[
        "E0501",
        "p.kina:3:11",
        "no VJP for `exp` with respect to its operand `x`",
        "x -> s -> e",
        "--rules FILE",
        "vjp exp {",
        "y = exp(x)",
        "g_x = ",
    ];
    let files: &[(&str, &[u8])] = &[("p.kina", program)];
    check(&[
        ("grad", files, "grad p.kina --profile phase1", 1, words),
        ("run", files, "run p.kina --interpret --profile phase1", 1, words),
        ("emit", files, "emit p.kina --stage graph --profile phase1", 1, words),
        ("no rules at all", files, "grad p.kina --no-default-rules", 1, &["E0501", "`add`", "vjp add {"]),
    ]);
    let place = directory(files);
    kina(place.path(), "grad p.kina").ok();
}

#[test]
fn files_that_cannot_be_read_or_written_exit_with_4() {
    let files: &[(&str, &[u8])] = &[("p.kina", NLL)];
    let missing = "No such file or directory";
    check(&[
        ("program", files, "grad absent.kina", 4, &["E0701", "`absent.kina`", missing, "check the path"]),
        ("a directory", files, "run .", 4, &["E0701", "`.`", "check the path"]),
        (
            "array",
            files,
            "run p.kina --input logits=absent.npy",
            4,
            &["E0701", "absent.npy", missing, "check the path"],
        ),
        ("archive", files, "run p.kina --inputs absent.npz", 4, &["E0701", "absent.npz", missing, "check the path"]),
        (
            "rules",
            files,
            "grad p.kina --rules absent.rules",
            4,
            &["E0701", "`absent.rules`", missing, "check the path"],
        ),
        (
            "output of emit",
            files,
            "emit p.kina --stage graph -o absent/graph.txt",
            4,
            &["E0702", "`absent/graph.txt`", missing, "check that the directory exists"],
        ),
        (
            "output of run",
            files,
            "run p.kina --interpret --output absent/results.npz",
            4,
            &["E0702", "absent/results.npz", missing, "check that the directory exists"],
        ),
    ]);
    let place = directory(files);
    for name in ["results.npz", "results.safetensors"] {
        std::fs::create_dir(place.path().join(name)).unwrap();
        let outcome = kina(place.path(), &format!("run p.kina --interpret --output {name}"));
        outcome.refusal(4, &["E0702", name, "check that the directory"]).unwrap();
    }
    // The same message each time: no name of a temporary file in it.
    let place = directory(files);
    let run = || kina(place.path(), "emit p.kina --stage graph -o absent/graph.txt").stderr;
    assert_eq!(run(), run());
    assert_eq!(names_in(place.path()), ["p.kina"], "nothing is left behind");
}

fn names_in(directory: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn wrong_usage_exits_with_2() {
    let files: &[(&str, &[u8])] = &[("p.kina", NLL)];
    check(&[
        ("no command", files, "", 2, &["Usage"]),
        ("unknown command", files, "frobnicate", 2, &["frobnicate", "--help"]),
        ("no program", files, "run", 2, &["FILE.kina", "--help"]),
        ("level", files, "run p.kina -O3", 2, &["0..=2", "--help"]),
        ("option", files, "grad p.kina --fast", 2, &["--fast", "--help"]),
        ("stage", files, "emit p.kina --stage ast", 2, &["program", "schedule", "linalg"]),
        ("input without a file", files, "run p.kina --input logits", 2, &["NAME=FILE"]),
        ("input without a name", files, "run p.kina --input =l.npy", 2, &["NAME=FILE"]),
        ("output of no format", files, "run p.kina --output r", 2, &["'r'", ".npz or .safetensors", "--help"]),
        ("no thread", files, "run p.kina --threads 0", 2, &["'0'", "from 1 to 256", "--help"]),
        ("too many threads", files, "run p.kina --threads 257", 2, &["from 1 to 256"]),
        ("threads of the interpreter", files, "run p.kina --interpret --threads 2", 2, &["cannot be used with"]),
        ("output of one array", files, "run p.kina --output r.npy", 2, &["'r.npy'", ".npz or .safetensors"]),
    ]);
}

#[test]
fn an_index_out_of_range_traps_and_writes_nothing() {
    let over = npy_i64(&[1, 4], &[0, 1, 8, 3]);
    let under = npy_i64(&[1, 4], &[0, -1, 2, 3]);
    let files: &[(&str, &[u8])] = &[("p.kina", NLL), ("over.npy", &over), ("under.npy", &under)];
    let mut ways = vec!["-O0 --interpret", "-O2 --interpret", "--interpret=double"];
    if cfg!(feature = "codegen") {
        ways.extend(["-O0", "-O1", "-O2"]);
    }
    for way in ways {
        for targets in ["over.npy", "under.npy"] {
            let place = directory(files);
            let command = format!("run p.kina {way} --input targets={targets} --output results.npz");
            let outcome = kina(place.path(), &command);
            outcome.refusal(3, &["E0801", "take_along_axis index out of bounds", "negative indices do not"]).unwrap();
            assert_eq!(names_in(place.path()), ["over.npy", "p.kina", "under.npy"], "{command}");
        }
    }
}

#[test]
fn an_old_output_survives_a_failure() {
    let over = npy_i64(&[1, 4], &[9; 4]);
    let place = directory::<&[u8]>(&[("p.kina", NLL), ("over.npy", &over), ("results.npz", b"old")]);
    let command = "run p.kina --interpret --output results.npz --input targets=";
    assert_eq!(kina(place.path(), &format!("{command}over.npy")).code, Some(3));
    assert_eq!(std::fs::read(place.path().join("results.npz")).unwrap(), b"old");
    std::fs::write(place.path().join("over.npy"), npy_i64(&[1, 4], &[7; 4])).unwrap();
    kina(place.path(), &format!("{command}over.npy")).ok();
    let results = crate::support::read_results(&place.path().join("results.npz"));
    assert_eq!(results.keys().collect::<Vec<_>>(), ["g_logits", "primal"]);
}

#[test]
fn device_programs_differentiate_and_are_refused_by_the_lowering() {
    let program = String::from_utf8(NLL.to_vec()).unwrap().replace("@host", "@device");
    let files: &[(&str, &[u8])] = &[("p.kina", program.as_bytes())];
    let place = directory(files);
    let graph = kina(place.path(), "grad p.kina -O0").ok();
    assert!(graph.contains("scatter_along_axis(") && graph.contains("@device"), "{graph}");
    if cfg!(feature = "codegen") {
        let words: &[&str] = &[
            "E0601",
            "take_along_axis: checked device lowering is not available",
            "scatter_along_axis: checked device lowering is not available",
            "log_softmax: device lowering is not available",
            "neg: device lowering is not available",
            "@host",
        ];
        check(&[
            ("run", files, "run p.kina -O0", 1, words),
            ("emit", files, "emit p.kina --stage linalg -O0", 1, words),
            ("optimised", files, "emit p.kina --stage linalg -O2", 1, &words[..3]),
        ]);
    }
}

#[test]
fn without_code_generation_the_way_out_is_named() {
    if !cfg!(feature = "codegen") {
        check(&[
            ("run", &[("p.kina", NLL)], "run p.kina", 1, &["E0602", "without code generation", "--interpret"]),
            ("emit", &[("p.kina", NLL)], "emit p.kina --stage linalg", 1, &["E0602", "feature `codegen`"]),
        ]);
    }
}
