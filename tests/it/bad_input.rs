//! Bad input, row by row: exit code, message, place, cause and way out.

use crate::support::{Outcome, directory, kina, npy, npy_f32, npy_i64, npz};

/// A row of a table: what is wrong, the files, the command line, the exit code, and what stderr must say.
type Row<'a> = (&'a str, &'a [(&'a str, &'a [u8])], &'a str, i32, &'a [&'a str]);

#[track_caller]
fn check(rows: &[Row<'_>]) {
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

/// Rows whose rule file is `r.rules`, for a program that needs no rule.
#[track_caller]
fn check_rules(rows: &[(&str, &str, &[&str])]) {
    let program = b"let x = tensor<F32, [2], @host> in x";
    for (name, rules, words) in rows {
        let files: &[(&str, &[u8])] = &[("p.kina", program), ("r.rules", rules.as_bytes())];
        check(&[(name, files, "grad p.kina --rules r.rules", 1, words)]);
    }
}

const NLL: &[u8] = include_bytes!("../../examples/storylm0_nll.kina");

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
            &["E0304", "p.kina:2:12", "axis -1 stands twice", "-1 is the last axis"],
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
        (
            "output is a directory",
            files,
            "run p.kina --interpret --output .",
            4,
            &["E0702", "check that the directory"],
        ),
    ]);
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
        ("input without a file", files, "run p.kina --input logits", 2, &["NAME=FILE.npy"]),
        ("input without a name", files, "run p.kina --input =l.npy", 2, &["NAME=FILE.npy"]),
    ]);
}

#[test]
fn arrays_must_be_what_the_program_declares() {
    let five = npy_i64(&[1, 5], &[0; 5]);
    let good = npy_i64(&[1, 4], &[0, 1, 2, 3]);
    let int32 = npy("<i4", &[1, 4], &[0; 16]);
    let cut = npy("<i8", &[1, 4], &[0; 24]);
    let complex = npy("<c8", &[1, 4], &[0; 32]);
    let floats = npy_f32(&[1, 4, 8], &[0.0; 32]);
    let archive = npz(&[("targets", good.clone()), ("surplus", floats.clone())]);
    let files: &[(&str, &[u8])] = &[
        ("p.kina", NLL),
        ("five.npy", &five),
        ("good.npy", &good),
        ("int32.npy", &int32),
        ("cut.npy", &cut),
        ("complex.npy", &complex),
        ("floats.npy", &floats),
        ("text.npy", b"logits"),
        ("two.npz", &archive),
        ("half.npz", &archive[..archive.len() / 2]),
    ];
    check(&[
        (
            "shape",
            files,
            "run p.kina --input targets=five.npy",
            1,
            &["E0708", "`targets` must be tensor<I64, [1, 4], @host>", "I64 [1, 5]", "give an array of shape [1, 4]"],
        ),
        (
            "dtype",
            files,
            "run p.kina --input targets=int32.npy",
            1,
            &["E0708", "`targets` must be tensor<I64, [1, 4], @host>", "I32 [1, 4]", "never converted silently"],
        ),
        (
            "cut off",
            files,
            "run p.kina --input targets=cut.npy",
            1,
            &["E0705", "cut.npy", "32 bytes", "24", "write it again"],
        ),
        ("no array", files, "run p.kina --input targets=text.npy", 1, &["E0703", "text.npy", "numpy.save"]),
        ("complex", files, "run p.kina --input targets=complex.npy", 1, &["E0704", "complex.npy", "c8"]),
        (
            "archive as array",
            files,
            "run p.kina --input targets=two.npz",
            1,
            &["E0703", "two.npz", "`--inputs FILE.npz`"],
        ),
        ("damaged archive", files, "run p.kina --inputs half.npz", 1, &["E0707", "half.npz", "numpy.savez"]),
        (
            "surplus in an archive",
            files,
            "run p.kina --inputs two.npz",
            1,
            &["E0709", "no input `surplus`", "logits, targets"],
        ),
        (
            "unknown input",
            files,
            "run p.kina --input target=good.npy",
            1,
            &["E0709", "no input `target`", "its inputs are: logits, targets", "did you mean `targets`?"],
        ),
        (
            "given twice",
            files,
            "run p.kina --input targets=good.npy --input targets=good.npy",
            1,
            &["E0709", "`targets` is given twice", "give each input once"],
        ),
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
fn rule_files_are_checked_when_they_are_loaded() {
    check_rules(&[
        (
            "syntax",
            "/// d\noverride vjp tanh {\n  y = tanh(x)\n  ---\n  g_x = g_y * (1.0 -\n}",
            &["E0101", "r.rules:6:1", "expected an expression", "still open here"],
        ),
        ("cut off", "/// d\nvjp tanh { y = tanh(x)\n", &["E0101", "r.rules:2:23", "expected a bar of three or more"]),
        (
            "unbound name",
            "/// d\noverride vjp tanh {\n  y = tanh(x)\n  ---\n  g_x = g_z * y\n}",
            &["E0401", "r.rules:5:9", "`g_z` is not bound", "bound here: g_y, x, y", "did you mean `g_y`?"],
        ),
        (
            "unbound on a right side",
            "/// d\nrewrite odd [exact] {\n  a + b => a + c\n}",
            &["E0401", "r.rules:3:16", "`c` is not bound"],
        ),
        (
            "unknown operator in a conclusion",
            "/// d\noverride vjp tanh {\n  y = tanh(x)\n  ---\n  g_x = tnah(g_y)\n}",
            &["E0402", "r.rules:5:9", "`tnah`", "did you mean `tanh`?"],
        ),
        (
            "rule for an unknown operator",
            "/// d\nvjp tnah {\n  y = tnah(x)\n  ---\n  g_x = g_y\n}",
            &["E0402", "r.rules:2:5", "no operator `tnah`", "did you mean `tanh`?"],
        ),
        (
            "operand count",
            "/// d\noverride vjp mul {\n  y = mul(a)\n  ---\n  g_a = g_y\n}",
            &["E0403", "r.rules:3:7", "`mul` needs `b`", "`mul(a, b)`"],
        ),
        (
            "missing conclusion",
            "/// d\noverride vjp mul {\n  y = mul(a, b)\n  ---\n  g_a = g_y * b\n}",
            &["E0404", "r.rules:3:14", "no conclusion for `b`", "g_b = none"],
        ),
        (
            "unknown conclusion",
            "/// d\noverride vjp tanh {\n  y = tanh(x)\n  ---\n  g_x = g_y\n  g_z = g_y\n}",
            &["E0405", "r.rules:6:3", "no operand `z`", "did you mean `x`?"],
        ),
        (
            "duplicate vjp",
            "/// d\nvjp tanh {\n  y = tanh(x)\n  ---\n  g_x = g_y\n}",
            &[
                "E0406",
                "r.rules:2:5",
                "rules/elementwise.rules:",
                "first here",
                "`override vjp tanh`",
                "`vjp tanh as NAME`",
            ],
        ),
        (
            "duplicate rewrite",
            "/// d\nrewrite neg_of_neg [exact] {\n  -(-a) => a\n}",
            &["E0406", "r.rules:2:9", "rules/algebra.rules:", "give it another name"],
        ),
        (
            "def named like an operator",
            "/// d\ndef tanh(x) {\n  => x\n}",
            &["E0406", "r.rules:2:5", "is an operator already", "another name"],
        ),
        (
            "ill-typed vjp",
            "/// d\noverride vjp sum {\n  y = sum(x, axis, keepdims)\n  ---\n  g_x = g_y\n}",
            &["E0407", "r.rules:5:9", "`vjp sum` concludes tensor<F32, []", "is wanted", "for x: tensor<F32,"],
        ),
        (
            "ill-typed rewrite",
            "/// d\nrewrite drop_sum [real] {\n  sum(x, axis, keepdims) => x\n}",
            &["E0407", "r.rules:3:29", "`drop_sum` concludes tensor<F32,", "is wanted"],
        ),
        (
            "cotangent of indices",
            "/// d\noverride vjp take_along_axis {\n  y = take_along_axis(values, indices, axis)\n  ---\n  \
             g_values = scatter_along_axis(axis, g_y, indices, type(values))\n  g_indices = g_y\n}",
            &["E0407", "r.rules:6:15", "carries no cotangent", "`g_indices = none`"],
        ),
        (
            "tensor for an attribute",
            "/// d\noverride vjp tanh {\n  y = tanh(x)\n  ---\n  g_x = broadcast(g_y, x)\n}",
            &["E0408", "r.rules:5:24", "`shape` of `broadcast`", "this is a tensor"],
        ),
        (
            "attribute for a tensor",
            "/// d\noverride vjp sum {\n  y = sum(x, axis, keepdims)\n  ---\n  g_x = axis\n}",
            &["r.rules:5:9", "found a list of integers"],
        ),
        (
            "unknown class",
            "/// d\nrewrite odd [approx] {\n  -(-a) => a\n}",
            &["E0409", "r.rules:2:14", "`approx` is not a class", "`[exact]`", "`[real]`"],
        ),
        (
            "premise that is no plain call",
            "/// d\noverride vjp tanh {\n  y = tanh(x + x)\n  ---\n  g_x = g_y\n}",
            &["r.rules:3:12"],
        ),
        (
            "alternative to nothing",
            "/// d\nvjp floor_div as other {\n  y = floor_div(a, b)\n  ---\n  g_a = g_y\n  g_b = g_y\n}",
            &["E0402", "r.rules:2:5", "`floor_div`"],
        ),
        (
            "recursive def",
            "/// d\ndef ping(x) {\n  => pong(x)\n}\n/// e\ndef pong(x) {\n  => ping(x)\n}",
            &["E0416", "r.rules:2:5", "r.rules:6:5", "`def ping` is defined through itself", "come down to operators"],
        ),
    ]);
    check(&[(
        "import of nothing",
        &[("p.kina", NLL), ("r.rules", b"import \"absent.rules\"")],
        "grad p.kina --rules r.rules",
        4,
        &["E0701", "r.rules:1:8", "`absent.rules`", "imported here"],
    )]);
}

#[test]
fn all_errors_of_a_rule_file_come_in_one_go() {
    let rules = "/// d\noverride vjp tanh {\n  y = tanh(x)\n  ---\n  g_x = g_z\n}\n\
                 /// d\nrewrite odd [exact] {\n  a + b => c\n}";
    check_rules(&[("two rules", rules, &["r.rules:5:9", "`g_z`", "r.rules:9:12", "`c`"])]);
}

#[test]
fn override_replaces_a_vjp() {
    let program = "let f = fn(x: tensor<F32, [2], @host>) -> tensor<F32, [2], @host> { x.tanh() } in\n\
                   let x = tensor<F32, [2], @host> in handle f(x) with reverseMode";
    let rules = "/// d\noverride vjp tanh {\n  y = tanh(x)\n  ---\n  g_x = g_y * y\n}";
    let place = directory(&[("p.kina", program), ("r.rules", rules)]);
    let with = kina(place.path(), "grad p.kina -O0 --rules r.rules").ok();
    assert!(with.contains("r.rules:2 vjp tanh"), "{with}");
    let without = kina(place.path(), "grad p.kina -O0").ok();
    assert!(without.contains("rules/elementwise.rules") && !without.contains("r.rules:2"), "{without}");
    // It is not the derivative, and the check says so.
    let outcome = kina(place.path(), "run p.kina --interpret --check --rules r.rules");
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stdout.contains("FAILED"), "{outcome:?}");
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

#[test]
fn diagnostics_are_json_on_request() {
    let over = npy_i64(&[1, 4], &[9; 4]);
    let files: &[(&str, &[u8])] =
        &[("p.kina", NLL), ("over.npy", &over), ("bad.kina", b"let x = tensor<F32, [2], @host> in\nx.rleu()")];
    let place = directory(files);
    let parse = |outcome: &Outcome| -> serde_json::Value { serde_json::from_str(&outcome.stderr).expect("JSON") };
    let refused = kina(place.path(), "grad bad.kina --json");
    refused.refusal(1, &[]).unwrap();
    let json = parse(&refused);
    assert_eq!(json["version"], 1);
    let first = &json["diagnostics"][0];
    assert_eq!((&first["code"], &first["severity"]), (&"E0202".into(), &"error".into()));
    assert_eq!(first["help"][0], "did you mean `relu`?");
    let place_of = &first["primary"];
    assert_eq!(
        (&place_of["file"], &place_of["line"], &place_of["column"], &place_of["start"], &place_of["end"]),
        (&"bad.kina".into(), &2.into(), &3.into(), &37.into(), &41.into())
    );
    for (command, code, name) in [
        ("run p.kina --interpret --json --input targets=over.npy", 3, "E0801"),
        ("run absent.kina --json", 4, "E0701"),
        ("run p.kina --json --input logits=absent.npy", 4, "E0701"),
        ("run p.kina --interpret --json --output absent/x.npz", 4, "E0702"),
        ("rules show nothing_like_it --json", 1, "E0402"),
    ] {
        let outcome = kina(place.path(), command);
        outcome.refusal(code, &[]).unwrap();
        let json = parse(&outcome);
        assert_eq!((&json["version"], &json["diagnostics"][0]["code"]), (&1.into(), &name.into()), "{command}");
    }
}

/// `kina-ad .. | head -0`: the reader goes away before anything is written.
#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_quietly() {
    use std::process::{Command, Stdio};

    let place = directory(&[("p.kina", NLL)]);
    for arguments in [&["grad", "p.kina"][..], &["rules", "list"], &["run", "p.kina", "--interpret"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_kina-ad"))
            .args(arguments)
            .current_dir(place.path())
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn kinks_are_read_like_the_conclusions_they_restate() {
    let rule = |kink: &str| {
        format!("/// Not the real one.\noverride vjp relu {{\n  y = relu(x)\n  ---\n  g_x = g_y\n  kink {kink}\n}}\n")
    };
    check_rules(&[
        ("unbound name", &rule("z == 0.0: g_x = 0.0"), &["E0401", "r.rules:6:8", "`z` is not bound"]),
        ("unknown conclusion", &rule("x == 0.0: g_z = 0.0"), &["E0405", "r.rules:6:18", "`g_x`"]),
        ("unknown operator", &rule("x == 0.0: g_x = zero(x)"), &["E0402", "r.rules:6:", "`zero`"]),
    ]);
}
