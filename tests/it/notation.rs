//! The notation of rule files, sentence by sentence of DESIGN §3: each form does what it says, and has a refusal where it is
//! used wrongly.

use kina_ad::{CheckOptions, Level, RuleOptions, Session};

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

/// The names of the rewrites that apply to a program, with these rules and no others.
fn applied(program: &str, rules: &str, level: Level) -> Vec<String> {
    let place = directory(&[("r.rules", rules)]);
    let files = vec![place.path().join("r.rules")];
    let options = RuleOptions { no_default_rules: true, files, ..RuleOptions::default() };
    let mut session = Session::new(&options).unwrap_or_else(|refusal| panic!("{rules}\n{refusal}"));
    let graph = session.check("p.kina", program, &CheckOptions::default()).unwrap();
    let mut program = session.differentiate(&graph).unwrap();
    let report = session.optimise(&mut program, level).unwrap().report.unwrap();
    report.applications.into_keys().map(|name| name.to_string()).collect()
}

#[test]
fn every_form_of_the_attribute_language() {
    let conditions = [
        "shape(x) == [2, 3, 4]",
        "dtype(x) == F32",
        "rank(x) == 3",
        "dim(x, 1) == 3",
        "type(x) == with_dtype(type(x), F32)",
        "1 + 2 * 3 - 7 % 4 == 4",
        "7 / 2 == 3 && -7 / 2 == -3",
        "7.0 / 2 == 3.5 && 2e-1 == 0.2 && 1 == 1.0",
        "[1, 2] ++ [3] ++ [] == [1, 2, 3]",
        "shape(x)[1] == 3 && ([5] ++ [6])[1] == 6",
        "range(3) == [0, 1, 2] && range(0) == []",
        "prod(shape(x)) == 24 && prod([]) == 1",
        "sum(shape(x)) == 9",
        "len(shape(x)) == 3",
        "offsets([2, 3]) == [0, 2, 5]",
        "count(shape(x), [0, 2]) == 8",
        "ones_at(shape(x), axes) == [2, 1, 4]",
        "without(shape(x), axes) == [2, 4]",
        "expanded([3, 1], shape(x)) == [0, 2]",
        "others(axes, rank(x)) == [0, 2]",
        "invert([2, 0, 1]) == [1, 2, 0]",
        "swap_last(3) == [0, 2, 1]",
        "[i * i for i in range(4) if i % 2 == 1] == [1, 9]",
        "[sum([i * j for j in range(i)]) for i in range(4)] == [0, 0, 2, 9]",
        "(if rank(x) > 2 then 1 else 1 / 0) == 1",
        "1 < 2 && 2 <= 2 && 3 > 2 && 2 >= 2 && 1 != 2",
        "!(1 == 2) && (false || true)",
        "true || 1 / 0 == 1",
        "!(false && 1 / 0 == 1)",
        "abs(-3) == 3 && abs(-0.5) == 0.5",
        "is_float(type(x)) && is_float(dtype(x)) && !is_float(I64)",
        "keepdims == false && axes == [1]",
        "shape(t) == [5] && rank(t) == 1 && dim(t, 0) == 5 && dtype(t) == F32",
        "n == 24",
        "inf > 1e300 && nan != nan",
    ];
    let program = "let x = tensor<F32, [2, 3, 4], @host> in (-x).sum(axis=1)";
    let rule = |condition: &str| {
        format!(
            "/// d\nrewrite sum_of_neg [exact] {{\n  sum(-x, axes, keepdims) => -sum(x, axes, keepdims)\n  \
             t = with_shape(type(x), [5])\n  n = prod(shape(x))\n  where rank(x) == 3 && axes == [1]\n  where {condition}\n}}\n"
        )
    };
    for condition in conditions {
        assert_eq!(applied(program, &rule(condition), Level::O1), ["sum_of_neg"], "{condition}");
        assert!(applied(program, &rule(&format!("!({condition})")), Level::O1).is_empty(), "not {condition}");
    }
    // What has no value is a fault of the rule, at its place.
    for (condition, words) in [
        ("1 / 0 == 1", "integer overflow or division by zero"),
        ("shape(x)[7] == 1", "index 7 is outside a list of"),
        ("9223372036854775807 + 1 == 0", "integer overflow"),
        ("dim(x, 9) == 1", "axis 9 is outside a tensor of rank"),
        ("rank(x)", "a condition must be true or false, not an integer"),
        ("range(100000) == []", "a list of 100000 elements"),
        ("invert([0, 0]) == []", "is not a permutation"),
        ("axes + 1 == 2", "arithmetic on a list of integers"),
    ] {
        refused(&[(condition, &rule(condition), &["E0407", "r.rules:7:", words])]);
    }
    refused(&[
        ("a function that is none", &rule("size(x) == 1"), &["E0402", "r.rules:7:9", "`size`"]),
        ("too many arguments", &rule("len([1], 2) == 1"), &["E0403", "r.rules:7:9", "`len(list)`"]),
        ("a name for an argument", &rule("len(list=[1]) == 1"), &["E0403", "r.rules:7:9"]),
        (
            "a reserved name",
            "/// d\ndef offsets(x) {\n  => x\n}\n",
            &["E0406", "r.rules:2:5", "function of the attribute language"],
        ),
        ("another one", "/// d\ndef rank(x) {\n  => x\n}\n", &["E0406", "r.rules:2:5", "this name is taken"]),
        ("a tensor for an attribute", &rule("len(x) == 1"), &["E0408", "r.rules:7:9"]),
    ]);
}

#[test]
fn a_domain_is_proved_by_what_is_known_of_values() {
    let rule = |domain: &str| format!("/// d\nrewrite guarded [real] {{\n  relu(x) => x\n  domain {domain}\n}}\n");
    let cases: [(&str, &str, bool); 22] = [
        ("x >= 0", "x.exp()", true),
        ("x > 0", "x.exp()", false),
        ("x > 0", "x.tanh().exp()", true),
        ("x >= 0 && x <= 1", "x.softmax(axis=0)", true),
        ("x < 1", "x.softmax(axis=0)", false),
        ("0 <= x", "x.abs()", true),
        ("x >= 0.0", "x", false),
        ("x >= 0", "x * x", true),
        ("x >= 0", "x * (x + 1.0)", false),
        ("x >= 0", "x.softmax(axis=0).sum(axis=0, keepdims=true).broadcast([3])", true),
        ("x >= 0", "(x * x).sum(axis=0, keepdims=true).broadcast([3])", true),
        ("x >= 0", "x.sqrt()", true),
        ("x >= 2", "splat(2.0, like=x)", true),
        ("x > 2", "splat(2.0, like=x)", false),
        ("x >= 1 + 1", "splat(2.5, like=x)", true),
        ("x >= rank(x)", "splat(1.0, like=x)", true),
        ("x >= 0", "select(x > 0.0, x.exp(), x * x)", true),
        ("x >= 0", "select(x > 0.0, x.exp(), x)", false),
        ("x >= 0", "concat(x.exp(), x * x, axis=0)", true),
        ("x <= 0", "x.log_softmax(axis=0)", true),
        ("x >= -1 && x <= 1", "x.tanh() * x.sin()", true),
        ("x <= 1", "x.abs() / x.abs()", true),
    ];
    for (domain, value, proved) in cases {
        let program = format!("let x = tensor<F32, [3], @host> in relu({value})");
        let found = applied(&program, &rule(domain), Level::O2);
        assert_eq!(!found.is_empty(), proved, "{domain} of {value}");
        // It is a promise over the reals only.
        assert!(applied(&program, &rule(domain), Level::O1).is_empty());
    }
    refused(&[
        ("no comparison", &rule("x"), &["E0411", "r.rules:4:10", "compares a named tensor with a number"]),
        ("or", &rule("x > 0 || x < 1"), &["E0411", "r.rules:4:10"]),
        ("a call", &rule("exp(x) > 0"), &["E0411", "r.rules:4:10"]),
        (
            "a local",
            &rule("z > 0").replace("  domain", "  z = x * x\n  domain"),
            &["E0411", "r.rules:5:10", "`z` is a local"],
        ),
        (
            "an attribute",
            "/// d\nrewrite r [real] {\n  sum(x, axes, keepdims) => sum(x, axes, keepdims)\n  domain keepdims > 0\n}",
            &["E0411", "r.rules:4:10", "`keepdims` is an attribute", "write `where`"],
        ),
    ]);
}

#[test]
fn premises_mean_what_they_say_and_nothing_more() {
    let program = |call: &str| format!("let x = tensor<F32, [2, 3], @host> in relu(x).{call}");
    let rule =
        |left: &str, rest: &str| format!("/// d\nrewrite seen [exact] {{\n  {left} => {left}.relu()\n{rest}}}\n");
    for (left, rest, call, fires) in [
        ("sum(relu(x), axes)", "", "sum(axis=1)", true),
        ("sum(relu(x), axes)", "", "sum(axis=1, keepdims=true)", false),
        ("sum(relu(x), axes, keepdims=true)", "", "sum(axis=1, keepdims=true)", true),
        ("sum(relu(x), [1], keepdims)", "", "sum(axis=1, keepdims=true)", true),
        ("sum(relu(x), axis=[0], keepdims=k)", "", "sum(axis=1)", false),
        ("sum(relu(x), [rank(x) - 1], keepdims)", "", "sum(axis=1)", true),
        ("sum(relu(x), [rank(x) - 2], keepdims)", "", "sum(axis=1)", false),
        ("sum(relu(x), axes, keepdims)", "  where dtype(x) == F64\n", "sum(axis=1)", false),
        ("sum(relu(x), axes, keepdims)", "  where axes == [1]\n  where !keepdims\n", "sum(axis=1)", true),
        ("relu(x) * 2.0", "", "neg() * 2.0", false),
        ("relu(x) * 2.0", "", "relu() * 2.0", true),
        ("relu(x) * 2", "", "relu() * 2.0", true),
        ("relu(x) - relu(x)", "", "relu() - x", false),
    ] {
        let rules = rule(left, rest);
        assert_eq!(!applied(&program(call), &rules, Level::O1).is_empty(), fires, "{left} {rest} on {call}");
    }
    refused(&[
        ("a default of the operand", &rule("sum(x)", ""), &["E0410", "r.rules:3:3", "must name `axis`"]),
        (
            "the same in a premise",
            "/// d\noverride vjp sum {\n  y = sum(x)\n  ---\n  g_x = g_y\n}",
            &["E0410", "r.rules:3:7", "must name `axis`"],
        ),
        ("no name", "/// d\noverride vjp sum {\n  y = sum(x, [0])\n  ---\n  g_x = g_y\n}", &["E0106", "r.rules:3:14"]),
        ("one word for two", &rule("take_along_axis(softmax(x, axis), i, axis)", "  where axis\n"), &["r.rules:4:9"]),
    ]);
    // A VJP of some calls only: for the others the operator has none.
    let rules = "/// The last axis, kept.\noverride vjp softmax {\n  y = softmax(x, axis=1)\n  ---\n  where dtype(x) == F64\n  g_x = y * g_y\n}\n";
    for (dtype, axis, covered) in [("F64", 1, true), ("F64", 0, false), ("F32", 1, false)] {
        let text = differentiated(&[&[2, 2]], &format!("a.softmax(axis={axis})")).replace("F64", dtype);
        let outcome = with(&text, rules, "grad p.kina -O0");
        match covered {
            true => assert!(outcome.ok().contains("r.rules:2 vjp softmax")),
            false => outcome.refusal(1, &["E0501", "does not cover these attributes and types"]).unwrap(),
        }
    }
}

#[test]
fn numbers_take_the_type_of_what_they_meet() {
    let rules = "/// A number alone has the type of the left side, one beside a tensor that of the tensor.\n\
        rewrite numbers [exact] {\n  select(c, exp(x), exp(exp(x))) => select(c, 1.5, if is_float(type(x)) then x + 2 else 3)\n}\n\
        /// An attribute is a number too.\ndef times(x, factor = 0.5) {\n  half = factor / 2\n  => x * factor + half\n}\n";
    let program =
        "let x = tensor<F64, [2], @host> in (select(x > 0.0, x.exp(), x.exp().exp()), x.times(), x.times(factor=3))";
    let place = directory(&[
        ("p.kina", program.as_bytes().to_vec()),
        ("r.rules", rules.as_bytes().to_vec()),
        ("x.npy", crate::support::npy_f64(&[2], &[-4.0, 5.0])),
    ]);
    let found = results(place.path(), "--rules r.rules --interpret -O1 --input x=x.npy");
    for (name, want) in [("result_0", [-2.0, 1.5]), ("result_1", [-1.75, 2.75]), ("result_2", [-10.5, 16.5])] {
        assert_close(name, &found[name].values, &want, 0.0);
    }
    refused(&[(
        "no type for a number",
        "/// d\nrewrite r [exact] {\n  exp(x) => x * sum(matmul(1.0, 2.0), [0, 1])\n}\n",
        &["E0407", "r.rules:3:21", "no type fits the number", "`splat(number, type(x))`"],
    )]);
}

#[test]
fn alternatives_enter_the_e_graph_and_cost_decides() {
    let program = differentiated(&[&[3]], "a.tanh()");
    let rules = |conclusion: &str, line: &str| {
        format!("/// d\nvjp tanh as other {{\n  y = tanh(x)\n  ---\n{line}  g_x = {conclusion}\n}}\n")
    };
    // The primary's (1 - y)(1 + y) takes more operators than the first, and is cheaper than the second.
    let (cheap, dear) = ("g_y * abs(y)", "g_y * exp(log(abs(y)))");
    for (conclusion, line, level, used) in [
        (cheap, "", "-O0", false),
        (cheap, "", "-O1", false),
        (cheap, "", "-O2", true),
        (dear, "", "-O2", false),
        (cheap, "  domain x >= 0\n", "-O2", false),
        (cheap, "  where rank(x) > 1\n", "-O2", false),
        (cheap, "  where rank(x) == 1\n", "-O2", true),
    ] {
        let graph = with(&program, &rules(conclusion, line), &format!("grad p.kina {level}")).ok();
        assert_eq!(graph.contains("vjp tanh as other"), used, "{conclusion} {line} {level}: {graph}");
        assert_eq!(graph.contains("elementwise.rules"), !used, "{conclusion} {line} {level}: {graph}");
    }
    // A proved domain.
    let squares = differentiated(&[&[3]], "(a * a).tanh()");
    let graph = with(&squares, &rules(cheap, "  domain x >= 0\n"), "grad p.kina -O2").ok();
    // tanh(a * a) is its own magnitude, so that nothing of the alternative is left but the form it gave.
    assert!(!graph.contains("elementwise.rules") && !graph.contains("abs("), "{graph}");
    // On the tape of a second handler as well, and where a mask goes through.
    let nested = "let f = fn(x: tensor<F64, [3], @host>) {
          let h = fn(z: tensor<F64, [3], @host>) { select(z > 0.0, z.tanh(), z) } in
          let (v, g) = handle h(x) with reverseMode in g } in
        let x = tensor<F64, [3], @host> in handle f(x) with reverseMode";
    let right = "/// d\nvjp tanh as other {\n  y = tanh(x)\n  ---\n  g_x = g_y - g_y * (y * y)\n}\n";
    for level in ["-O0", "-O2"] {
        let out = with(nested, right, &format!("run p.kina --interpret --check {level}")).ok();
        assert!(out.contains("passed") && !out.contains("FAILED"), "{out}");
    }
    refused(&[
        ("twice the same", &[right, right].concat(), &["E0406", "r.rules:8:5", "stands twice"]),
        (
            "of nothing",
            "/// d\ndef f(x) {\n  => exp(x)\n}\n/// d\nvjp f as other {\n  y = f(x)\n  ---\n  g_x = g_y\n}\n",
            &["E0412", "alternative to a VJP that does not exist"],
        ),
    ]);
}

#[test]
fn files_import_each_other_once() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("more")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write("p.kina", "let x = tensor<F32, [2], @host> in x.twice().thrice()");
    write("a.rules", "import \"more/b.rules\"\nimport \"./more/b.rules\"\n/// d\ndef twice(x) {\n  => x + x\n}\n");
    write("more/b.rules", "import \"../a.rules\"\n/// d\ndef thrice(x) {\n  => twice(x) + x\n}\n");
    let graph = kina(place.path(), "grad p.kina -O0 --rules a.rules").ok();
    assert!(graph.contains("more/b.rules:3 thrice"), "{graph}");
    // A chain that is too long, and one that is not.
    for (length, code) in [(64, 0), (70, 1)] {
        for i in 0..length {
            let next = if i + 1 < length { format!("import \"c{}.rules\"\n", i + 1) } else { String::new() };
            write(&format!("c{i}.rules"), &next);
        }
        let outcome = kina(place.path(), "rules list --rules c0.rules");
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        if code == 1 {
            outcome.refusal(1, &["E0415", "more than 64 levels deep", "c64.rules:1:8", "imported here"]).unwrap();
        }
    }
    write("d.rules", "import \"more\"\n");
    kina(place.path(), "rules list --rules d.rules").ok();
}

#[test]
fn limits_hold_for_any_rules() {
    // Many rules, each of which takes the search for instances long.
    let rules: String = (0..120)
        .map(|i| format!("/// d\nrewrite r{i} [real] {{\n  matmul(matmul(a, b), matmul(c, d)) => matmul(a, matmul(b, matmul(c, d)))\n  where rank(a) == 9\n}}\n"))
        .collect();
    let program = "let x = tensor<F32, [2, 2], @host> in x.matmul(x)";
    let outcome = with(program, &rules, "grad p.kina");
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("E0420") && outcome.stderr.contains("were not checked ahead"),
        "{}",
        outcome.stderr
    );
    // Handlers in each other multiply the program.
    let mut nested = "let f0 = fn(x: tensor<F64, [2], @host>) { (x.tanh() * x.sin() * x).exp().sum() } in\n".to_owned();
    for i in 1..12 {
        nested += &format!(
            "let f{i} = fn(x: tensor<F64, [2], @host>) {{ let (v, g) = handle f{}(x) with reverseMode in (g * x).sum() }} in\n",
            i - 1
        );
    }
    nested += "let x = tensor<F64, [2], @host> in handle f11(x) with reverseMode";
    let place = directory(&[("p.kina", nested.as_str())]);
    let outcome = kina(place.path(), "grad p.kina");
    outcome.refusal(1, &["E0506", "makes more than", "the limit is reached here", "nest fewer handlers"]).unwrap();
}

#[cfg(unix)]
#[test]
fn files_without_end_are_read_up_to_the_limit() {
    let place =
        directory(&[("p.kina", "let x = tensor<F32, [2], @host> in x"), ("i.rules", "import \"pipe.rules\"\n")]);
    for command in ["grad /dev/zero", "grad p.kina --rules /dev/zero"] {
        kina(place.path(), command).refusal(1, &["E0108", "`/dev/zero` has more than 67108864 bytes"]).unwrap();
    }
    let pipe = place.path().join("pipe.rules");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|s| s.success()));
    for (command, word) in [("grad p.kina --rules i.rules", "i.rules:1:8"), ("grad p.kina --rules .", "regular file")] {
        kina(place.path(), command).refusal(1, &["E0415", "pipe.rules` is not a regular file", word]).unwrap();
    }
    std::fs::remove_file(&pipe).unwrap();
    std::fs::write(place.path().join("i.rules"), "import \"/dev/zero\"\n").unwrap();
    kina(place.path(), "grad p.kina --rules i.rules")
        .refusal(1, &["E0415", "`/dev/zero` is not a regular file"])
        .unwrap();
}
