//! The notation of rule files, sentence by sentence of DESIGN §3: each form does what it says, and has a refusal where it is
//! used wrongly.

use crate::bad_input::check;
use crate::programs::{assert_close, results, ways};
use crate::support::{Outcome, directory, kina};

/// Runs a command of a program with a rule file.
fn with(program: &str, rules: &str, command: &str) -> Outcome {
    let place = directory(&[("p.kina", program), ("r.rules", rules)]);
    kina(place.path(), &format!("{command} --rules r.rules"))
}

/// Rule files that are refused, by what stands in the refusal.
#[track_caller]
fn refused(rows: &[(&str, &str, &[&str])]) {
    let program = b"let x = tensor<F32, [2], @host> in x";
    for (name, rules, words) in rows {
        let files: &[(&str, &[u8])] = &[("p.kina", program), ("r.rules", rules.as_bytes())];
        check(&[(name, files, "grad p.kina --rules r.rules", 1, words)]);
    }
}

/// A program that differentiates `body` with respect to its F64 parameters, named `a`, `b`, ..
fn differentiated(shapes: &[&[u64]], body: &str) -> String {
    let names: Vec<String> = ('a'..='z').take(shapes.len()).map(String::from).collect();
    let types: Vec<String> = shapes.iter().map(|s| format!("tensor<F64, {s:?}, @host>")).collect();
    let params: Vec<String> = names.iter().zip(&types).map(|(n, t)| format!("{n}: {t}")).collect();
    let lets: Vec<String> = names.iter().zip(&types).map(|(n, t)| format!("let {n} = {t} in")).collect();
    format!(
        "let f = fn({}) {{ {body} }} in {} handle f({}) with reverseMode",
        params.join(", "),
        lets.join(" "),
        names.join(", ")
    )
}

/// The cotangent of tensors of size 1 along the axis: element i of g_y.
const CONCAT: &str = "/// For tensors of size 1 along the axis.
    override vjp concat {
      y = concat(*xs, axis)
      ---------------------
      sizes   = [dim(x, axis) for x in xs]
      where prod(sizes) == 1 && len(xs) == dim(y, axis) && rank(y) > 1
      row     = with_dtype(with_shape(type(y), without(shape(y), axis)), I64)
      at      = offsets(sizes)
      g_xs[i] = reshape(take_along_axis(g_y, splat(at[i], row), axis), shape(xs[i]))
    }
";

fn concat_rule() -> String {
    // `override` once the rule files have one.
    let has_rule = kina_ad::Session::new(&kina_ad::RuleOptions::default()).is_ok_and(|session| {
        let op = session.rules.registry.id("concat");
        op.is_some_and(|op| !session.rules.vjps(op).is_empty())
    });
    if has_rule { CONCAT.to_owned() } else { CONCAT.replace("override ", "") }
}

#[test]
fn concat_joins_along_any_axis() {
    let program = "let a = tensor<F32, [2, 1, 2], @host> in let b = tensor<F32, [2, 3, 2], @host> in
        let c = tensor<F32, [2, 0, 2], @host> in
        let flags = concat(a > 0.0, b > 0.0, axis=1) in
        (concat(a, b, axis=1), a.concat(c, b, a, axis=-2), concat(b, -1), concat(xs=a, axis=0), concat(a, c, c, axis=1),
         concat(c, c, axis=1).sum(), concat(a, 7.0, axis=0).sum(), select(flags, 1.0, concat(a, b, axis=1) * 0.0))";
    let a: Vec<f32> = vec![1.0, 2.0, 3.0, 4.0];
    let b: Vec<f32> = (0..12).map(|i| -10.0 - i as f32).collect();
    let arrays = [
        ("a.npy", crate::support::npy_f32(&[2, 1, 2], &a)),
        ("b.npy", crate::support::npy_f32(&[2, 3, 2], &b)),
        ("p.kina", program.as_bytes().to_vec()),
    ];
    let place = directory(&arrays);
    let row = |i: usize| [&a[2 * i..2 * i + 2], &b[6 * i..6 * i + 6]].concat();
    let doubled = |i: usize| [row(i), a[2 * i..2 * i + 2].to_vec()].concat();
    let wide = |v: Vec<f32>| v.into_iter().map(f64::from).collect::<Vec<f64>>();
    for way in ways() {
        let found = results(place.path(), &format!("--input a=a.npy --input b=b.npy {way}"));
        let want = [
            wide([row(0), row(1)].concat()),
            wide([doubled(0), doubled(1)].concat()),
            wide(b.clone()),
            wide(a.clone()),
            wide(a.clone()),
            vec![0.0],
            vec![10.0 + 28.0],
            vec![1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        ];
        for (i, want) in want.iter().enumerate() {
            assert_close(&format!("{way}: result_{i}"), &found[&format!("result_{i}")].values, want, 0.0);
        }
    }
}

#[test]
fn concat_of_very_many_tensors() {
    let names: Vec<String> = (0..512).map(|i| format!("x * {i}.0")).collect();
    let program = |n: usize| format!("let x = tensor<F32, [1], @host> in concat({}, axis=0)", names[..n].join(", "));
    let place = directory(&[("p.kina", program(512)), ("q.kina", program(3) + ".concat(x, x, axis=1)")]);
    for way in ways() {
        let found = results(place.path(), way);
        let values = &found["result"].values;
        assert_eq!(values.len(), 512);
        let want: Vec<f64> = (0..512).map(|i| values[1] * i as f64).collect();
        assert_close(way, values, &want, 1e-6);
    }
    kina(place.path(), "run q.kina").refusal(1, &["E0304", "axis 1 is out of range for rank 1"]).unwrap();
}

#[test]
fn wrong_calls_of_a_variadic_operator() {
    let head = "let x = tensor<F32, [2, 2], @host> in let y = tensor<F64, [2, 2], @host> in\n";
    for (call, words) in [
        ("concat(x, y, axis=0)", &["E0302", "2:11", "`xs[1]` is F64"][..]),
        ("concat(x, x)", &["E0306", "2:11", "`axis` must be an axis (an integer), not a tensor<F32"]),
        ("concat(axis=0)", &["E0205", "needs its argument `xs`", "`concat(xs.., axis)`"]),
        ("concat(x)", &["E0205", "needs its argument `axis`"]),
        ("concat(x, x, axis=2)", &["E0304", "2:19", "axis 2 is out of range"]),
        ("concat(x, x.sum(axis=0), axis=0)", &["E0301", "2:11", "differ along axis 0 only"]),
        ("concat(x, *x, axis=0)", &["E0214", "list the arguments"]),
        ("concat(x, xs=x, axis=0)", &["E0205", "`xs` is given twice"]),
    ] {
        let program = format!("{head}{call}");
        check(&[(call, &[("p.kina", program.as_bytes())], "grad p.kina", 1, words)]);
    }
}

#[test]
fn a_variadic_operand_is_concluded_element_by_element() {
    let program = differentiated(
        &[&[2, 1], &[2, 1], &[2, 1]],
        "let y = concat(a, b, a * c, axis=1) in (y * y * b.broadcast([2, 3])).sum()",
    );
    for level in ["-O0", "-O2"] {
        let out = with(&program, &concat_rule(), &format!("run p.kina --interpret --check {level}")).ok();
        assert!(out.contains("g_c") && out.contains("passed"), "{out}");
        let graph = with(&program, &concat_rule(), &format!("grad p.kina {level}")).ok();
        assert!(level == "-O2" || graph.contains("r.rules:2 vjp concat, for y"), "{graph}");
    }
    // The rule does not cover other sizes.
    let other = differentiated(&[&[2, 3], &[2, 1]], "concat(a, b, axis=1)");
    with(&other, &concat_rule(), "grad p.kina")
        .refusal(1, &["E0501", "operand `xs[0]`", "does not cover", "y = concat(*xs, axis)", "g_xs[i] = TODO"])
        .unwrap();
    // Second order.
    let second = "let f = fn(a: tensor<F64, [2, 1], @host>, b: tensor<F64, [2, 1], @host>) {
          let h = fn(c: tensor<F64, [2, 1], @host>) { let y = concat(c, b, c, axis=1) in (y * y * y).sum() } in
          let (v, g) = handle h(a) with reverseMode in (g * g * b).sum() } in
        let a = tensor<F64, [2, 1], @host> in let b = tensor<F64, [2, 1], @host> in handle f(a, b) with reverseMode";
    let rules = format!(
        "{}/// Read at the place of i.\noverride vjp take_along_axis {{\n  y = take_along_axis(values, indices, axis)\n  ---\n  \
         g_values = scatter_along_axis(axis, g_y, indices, type(values))\n  g_indices = none\n}}\n",
        concat_rule()
    );
    let out = with(second, &rules, "run p.kina --interpret --check").ok();
    assert!(out.contains("passed"), "{out}");
}

#[test]
fn lists_of_tensors_in_rules() {
    let rule = |lines: &str| {
        let keyword = if concat_rule().contains("override") { "override " } else { "" };
        format!("/// d\n{keyword}vjp concat {{\n  y = concat(*xs, axis)\n  ---\n{lines}\n}}\n")
    };
    refused(&[
        ("no index", &rule("  g_xs = g_y"), &["E0411", "r.rules:5:3", "each of several tensors", "`g_xs[i] = ..`"]),
        (
            "a list as a value",
            &rule("  g_xs[i] = xs"),
            &["E0408", "r.rules:5:13", "`xs` is a list of tensors", "`xs[i]`"],
        ),
        ("an index twice", &rule("  i = 1\n  g_xs[i] = g_y"), &["E0406", "r.rules:6:8", "`i` is bound twice"]),
        ("the index elsewhere", &rule("  g_xs[i] = g_y\n  k = i"), &["E0401", "r.rules:6:7", "`i` is not bound"]),
        (
            "beyond the list",
            &rule("  g_xs[i] = xs[i + len(xs)]"),
            &["E0407", "r.rules:5:16", "outside a list of 2 tensors", "for xs: [tensor<F32, [2]"],
        ),
        ("a wrong type", &rule("  g_xs[i] = xs[0]"), &["E0407", "r.rules:5:13", "concludes tensor<F32"]),
        (
            "a tensor of a comprehension",
            &rule("  s = [x for x in xs]\n  g_xs[i] = xs[i]"),
            &["E0408", "r.rules:5:8", "`dim(x, axis)`"],
        ),
        (
            "a spread for one value",
            &rule("  g_xs[i] = exp(*xs)"),
            &["E0403", "r.rules:5:18", "`x` of `exp` is one value"],
        ),
        (
            "a spread of one tensor",
            &rule("  g_xs[i] = concat(*y, axis)"),
            &["E0403", "r.rules:5:21", "before a list of tensors"],
        ),
        (
            "a premise without its star",
            "/// d\noverride vjp concat {\n  y = concat(xs, axis)\n  ---\n  g_xs[i] = g_y\n}",
            &["E0410", "r.rules:3:7", "`y = concat(*xs, axis)`"],
        ),
        (
            "a star before one operand",
            "/// d\noverride vjp exp {\n  y = exp(*x)\n  ---\n  g_x = g_y\n}",
            &["E0410", "r.rules:3:7", "`y = exp(x)`"],
        ),
        (
            "an index on one operand",
            "/// d\noverride vjp exp {\n  y = exp(x)\n  ---\n  g_x[i] = g_y\n}",
            &["E0411", "r.rules:5:3", "`x` is one tensor", "`g_x = ..`"],
        ),
        (
            "a list in a left side",
            "/// d\nrewrite r [exact] {\n  -concat(*xs, axis) => concat(*xs, axis)\n}",
            &["E0410", "r.rules:3:12", "cannot be matched", "`concat(a, b, ..)`"],
        ),
        ("a def with a list", "/// d\ndef f(*xs) {\n  => 1.0\n}", &["E0101", "r.rules:2:7"]),
    ]);
    // None of several, all at once in a call, and the number of them.
    let program = differentiated(&[&[2], &[2]], "concat(a, b, a, axis=0)");
    let rules = rule("  g_xs = none");
    let graph = with(&program, &rules, "grad p.kina").ok();
    assert!(graph.contains("g_a") && !graph.contains("vjp concat"), "{graph}");
    let rules = rule("  all = concat(*xs, *xs, axis)\n  g_xs[i] = xs[i] * (sum(all) * len(xs) * (i + 1))");
    let rules = rules.replace("(sum(all)", "broadcast(sum(all) ").replace("(i + 1))", "(i + 1), shape(xs[i]))");
    let place = directory(&[("p.kina", program.as_str()), ("r.rules", &rules)]);
    for way in ways() {
        let found = results(place.path(), &format!("--rules r.rules {way}"));
        let y = &found["primal"].values;
        let all = 2.0 * y.iter().sum::<f64>();
        // a stands first and third: 3 * 1 + 3 * 3.
        let want: Vec<f64> = y[..2].iter().map(|a| a * all * 12.0).collect();
        assert_close(way, &found["g_a"].values, &want, 1e-12);
        let want: Vec<f64> = y[2..4].iter().map(|b| b * all * 6.0).collect();
        assert_close(way, &found["g_b"].values, &want, 1e-12);
    }
}

#[test]
fn left_sides_match_so_many_operands() {
    let rules = "/// One tensor is itself.\nrewrite concat_of_one_here [exact] {\n  concat(x, axis=axis) => x\n}\n\
        /// Two of the same.\nrewrite twice [exact] {\n  concat(x, x, axis) => concat(x, x, axis)\n}\n\
        /// A sign is taken off each of two.\nrewrite signs [exact] {\n  concat(-x, -z, axis) => -concat(x, z, axis)\n}\n";
    let program = "let x = tensor<F32, [2], @host> in (concat(x, axis=0), concat(-(x + x), -(x * x), axis=0), concat(-x, -x, -x, axis=0))";
    let graph = with(program, rules, "grad p.kina -O1").ok();
    assert!(graph.contains("rewrite") || graph.contains("signs"), "{graph}");
    assert_eq!(graph.matches("= concat(").count(), 2, "{graph}");
    assert_eq!(graph.matches("= neg(").count(), 2, "{graph}");
}

/// A `def` whose attribute is a word.
const SCALED: &str = "/// x, or a multiple of it.\ndef scaled(x, factor = none|two|minus) {\n  \
    => if factor == none then x else if factor != minus then x + x else -x\n}\n";

#[test]
fn a_word_is_the_value_of_an_attribute() {
    let program = "let x = tensor<F32, [2], @host> in
        (x.scaled(), x.scaled(factor=none), scaled(x, two), scaled(factor=minus, x=x), thrice(x), thrice(x, factor=two))";
    let rules = format!(
        "{SCALED}/// The words of another `def`, with another default.\ndef thrice(x, factor = minus) {{\n  \
         => scaled(x, factor) + scaled(x, factor=two)\n}}\n"
    );
    let place = directory(&[
        ("p.kina", program.as_bytes().to_vec()),
        ("r.rules", rules.into_bytes()),
        ("x.npy", crate::support::npy_f32(&[2], &[1.0, 2.0])),
    ]);
    for form in ["kina", "sexpr"] {
        let text = kina(place.path(), &format!("emit p.kina --stage program --format {form} --rules r.rules")).ok();
        assert!(text.contains("none"), "{text}");
        std::fs::write(place.path().join("p.kina"), text).unwrap();
        let found = results(place.path(), "--rules r.rules --interpret --input x=x.npy");
        for (i, factor) in [1.0, 1.0, 2.0, -1.0, 1.0, 4.0].into_iter().enumerate() {
            assert_close(form, &found[&format!("result_{i}")].values, &[factor, 2.0 * factor], 0.0);
        }
    }
    let head = "let x = tensor<F32, [2], @host> in let two = x + 1.0 in\n";
    for (call, words) in [
        (
            "scaled(x, factor=minsu)",
            &["E0306", "2:18", "must be `none`, `two` or `minus`", "did you mean `minus`?"][..],
        ),
        ("scaled(x, factor=2)", &["E0306", "2:18", "must be `none`, `two` or `minus`, not a number"]),
        ("scaled(x, factor=two)", &["E0306", "2:18", "local names win over words", "rename the local `two`"]),
        ("scaled(x, factor=x)", &["E0306", "2:18", "not a tensor<F32"]),
        ("exp(none)", &["E0214", "2:5", "`none` belongs to rule files"]),
    ] {
        let files: &[(&str, &[u8])] =
            &[("p.kina", &[head, call].concat().into_bytes()), ("r.rules", SCALED.as_bytes())];
        check(&[(call, files, "grad p.kina --rules r.rules", 1, words)]);
    }
}

#[test]
fn words_in_rules() {
    let user = |call: &str| format!("{SCALED}/// d\ndef user(x, f = none|two) {{\n  two = 1\n  => {call}\n}}\n");
    refused(&[
        (
            "unknown word",
            &user("scaled(x, factor=tow)"),
            &["E0408", "r.rules:8:23", "`none`, `two` or `minus`", "did you mean `two`?"],
        ),
        (
            "compared with no word",
            &user("if f == minus then x else -x"),
            &["E0408", "r.rules:8:14", "`f` is `none` or `two`"],
        ),
        (
            "hidden by a local name",
            &user("scaled(x, two)"),
            &["E0408", "r.rules:8:16", "names of the rule win over words"],
        ),
        ("a number", &user("scaled(x, 1)"), &["E0408", "r.rules:8:16", "not a word"]),
        (
            "more words than its use",
            &format!("{SCALED}/// d\ndef user(x, f = none|one) {{\n  => scaled(x, f)\n}}\n"),
            &["E0408", "r.rules:6:13", "used as `none`, `two` or `minus`, but it may be `none` or `one`"],
        ),
        (
            "twice the same",
            "/// d\ndef user(x, f = a|b|a) {\n  => x\n}\n",
            &["E0406", "r.rules:2:21", "`a` is bound twice", "first here"],
        ),
        (
            "one word",
            "/// d\ndef user(x, f = a) {\n  => x\n}\n",
            &["E0408", "r.rules:2:17", "`reduction = none|mean|sum`"],
        ),
        ("a bar too many", "/// d\ndef user(x, f = a||b) {\n  => x\n}\n", &["r.rules:2:17"]),
    ]);
    // A `def` with a VJP: the premise names the word, or binds it; a left side has one.
    let rules = format!(
        "{SCALED}/// d\nvjp scaled {{\n  y = scaled(x, factor)\n  ---\n  g_x = g_y * (if factor == two then 2.0 else if factor == none then 1.0 else -1.0)\n}}\n\
         /// d\nvjp scaled as doubled {{\n  y = scaled(x, factor=two)\n  ---\n  g_x = g_y + g_y\n}}\n\
         /// d\nrewrite same [exact] {{\n  scaled(x, factor=none) => x\n}}\n"
    );
    let program = differentiated(&[&[3], &[3]], "scaled(a, factor=two) + scaled(b, factor=minus) * b.scaled()");
    for level in ["-O0", "-O2"] {
        let out = with(&program, &rules, &format!("run p.kina --interpret --check {level}")).ok();
        assert!(out.contains("passed"), "{out}");
    }
}

#[test]
fn concat_is_closed_to_third_order() {
    let tensor = |shape: &str| format!("tensor<F64, {shape}, @host>");
    let (a, b) = (tensor("[2, 3, 1]"), tensor("[2, 1, 1]"));
    let program = format!(
        "let f3 = fn(a: {a}, b: {b}) {{
           let f2 = fn(c: {a}, d: {b}) {{
             let f1 = fn(e: {a}) {{ let y = concat(d, e, d * d, axis=-2) in (y * y * y * y).sum() }} in
             let (v, g) = handle f1(c) with reverseMode in (concat(g, d, axis=1) * concat(d, c, axis=1)).sum() }} in
           let (v, g, h) = handle f2(a, b) with reverseMode in (g * g * a).sum() + (h * h * b).sum() }} in
         let a = {a} in let b = {b} in handle f3(a, b) with reverseMode"
    );
    let place = directory(&[("p.kina", program)]);
    for way in ["-O0 --interpret", "-O2 --interpret"] {
        let out = kina(place.path(), &format!("run p.kina --check {way}")).ok();
        assert_eq!(out.matches("passed").count(), 5, "{way}: {out}");
    }
    let mixed = differentiated(&[&[2, 3], &[2, 0], &[2, 1]], "let y = concat(a, b, c, a, axis=1) in y * y * y");
    let place = directory(&[("p.kina", mixed)]);
    for way in ways() {
        let out = kina(place.path(), &format!("run p.kina --check {way}")).ok();
        assert!(out.contains("passed") && !out.contains("FAILED"), "{way}: {out}");
    }
}
