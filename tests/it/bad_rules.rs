//! Bad rule files, row by row: the same as for programs.

use crate::bad_input::{NLL, check};
use crate::support::{directory, kina};

/// Rows whose rule file is `r.rules`, for a program that needs no rule.
#[track_caller]
fn check_rules(rows: &[(&str, &str, &[&str])]) {
    let program = b"let x = tensor<F32, [2], @host> in x";
    for (name, rules, words) in rows {
        let files: &[(&str, &[u8])] = &[("p.kina", program), ("r.rules", rules.as_bytes())];
        check(&[(name, files, "grad p.kina --rules r.rules", 1, words)]);
    }
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
            &[
                "E0401",
                "r.rules:5:9",
                "`g_z` is not bound",
                "bound here: g_y (the incoming cotangent), x, y",
                "did you mean `g_y`?",
            ],
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
            &["E0405", "r.rules:6:3", "no operand `z`", "the conclusions are `g_x`"],
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
            "def named like the head of S-expressions",
            "/// d\ndef program(x) {\n  => x\n}",
            &["E0406", "r.rules:2:5", "S-expressions", "another name"],
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

/// A stub says `none` where no cotangent can flow, so that filling it in is all there is to do.
#[test]
fn stubs_know_which_operands_carry_no_cotangent() {
    let program = "let i = tensor<I64, [2], @host> in
        let f = fn(x: tensor<F32, [2, 3], @host>) -> tensor<F32, [2], @host> { x.take_along_axis(i, axis=1) } in
        let x = tensor<F32, [2, 3], @host> in
        handle f(x) with reverseMode";
    let place = directory(&[("p.kina", program)]);
    let words = ["E0501", "g_values  = TODO", "g_indices = none"];
    kina(place.path(), "grad p.kina --no-default-rules").refusal(1, &words).unwrap();
}
