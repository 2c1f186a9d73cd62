//! Texts written to break the front: strange characters in every position, brackets and chains without end, floods of
//! faults. Each is refused with a code and a place, or works; nothing panics, overflows the stack or floods the terminal.

use std::time::{Duration, Instant};

use kina_ad::diagnostics::{Diagnostics, SourceMap, Style, render};
use kina_ad::syntax::{Form, MAX_TEXT, parse_program, parse_rules};

use crate::bad_input::check;
use crate::support::{directory, kina};

/// Codes of the faults of a text, and how they are shown.
fn faults(
    text: &str,
    parse: impl Fn(&SourceMap, kina_ad::diagnostics::FileId, &mut Diagnostics),
) -> (Vec<&'static str>, String) {
    let mut sources = SourceMap::new();
    let file = sources.add("t", text);
    let mut bag = Diagnostics::new();
    parse(&sources, file, &mut bag);
    (bag.iter().map(|d| d.code).collect(), render(&bag, &sources, Style::Plain))
}

fn program(text: &str) -> (Vec<&'static str>, String) {
    faults(text, |sources, file, bag| {
        parse_program(sources, file, bag);
    })
}

fn rules(text: &str) -> (Vec<&'static str>, String) {
    faults(text, |sources, file, bag| {
        parse_rules(sources, file, bag);
    })
}

const MANY: usize = 100_000;

#[test]
fn brackets_and_operators_without_end_meet_a_stated_limit() {
    // What opens, what closes it, and the codes it may be refused with.
    let nested = [
        ("(", ")"),
        ("[", "]"),
        ("fn() {", "}"),
        ("f(", ")"),
        ("x.f(", ")"),
        ("(1, ", ")"),
        ("f(a=", ")"),
        ("f(*", ")"),
        ("x[", "]"),
        ("[x for x in ", "]"),
        ("handle f(", ") with r"),
        ("let a = ", " in a"),
        ("let a = (", ") in a"),
        ("if a then b else ", ""),
        ("if ", " then a else b"),
        ("tensor<F32, [", "], @host>"),
    ];
    let repeated = [
        "- ", "!", "+ x ", "x + ", "x < ", "x && ", "x.f().", ".f()", "[0]", ",", "in ", "let ", "<", ">", ")", "]",
        "}", ":", "@",
    ];
    let limits = ["E0101", "E0102", "E0103", "E0109"];
    for (open, close) in nested {
        for text in [open.repeat(MANY), format!("{}x{}", open.repeat(MANY), close.repeat(MANY))] {
            for (codes, shown) in [program(&text), rules(&format!("vjp f {{\n y = f(x)\n ---\n g_x = {text}\n}}"))] {
                assert!(!codes.is_empty() && codes.iter().all(|c| limits.contains(c)), "{open}: {codes:?}");
                assert!(shown.len() < 100_000, "{open}: {} bytes", shown.len());
            }
        }
    }
    for part in repeated {
        for text in [part.repeat(MANY), format!("x {}x", part.repeat(MANY))] {
            for (codes, shown) in [program(&text), rules(&format!("rewrite r [real] {{\n {text} => x\n}}"))] {
                assert!(!codes.is_empty() && codes.iter().all(|c| limits.contains(c)), "{part}: {codes:?}");
                assert!(shown.len() < 100_000, "{part}: {} bytes", shown.len());
            }
        }
    }
    for part in ["(", "[", "(f ", "(+ 1 ", "(let ((x ", "(fn () ", "[1 ", "(- ", "(, 1 ", "(handle (f ", "(.f "] {
        for text in
            [format!("(program {}", part.repeat(MANY)), format!("(program {}x{})", part.repeat(MANY), ")".repeat(MANY))]
        {
            let (codes, shown) = program(&text);
            assert_eq!(codes, ["E0102"], "{part}");
            assert!(shown.len() < 100_000, "{part}");
        }
    }
}

#[test]
fn strange_characters_are_named_wherever_they_stand() {
    let positions = [
        "let @ = tensor<F32, [2], @host> in 1",
        "let x@ = 1 in x",
        "let x = @ in 1",
        "let x = tensor<@, [2], @host> in x",
        "let x = tensor<F32, [@], @host> in x",
        "let x = tensor<F32, [2], @@> in x",
        "let x = 1 in x.@()",
        "let x = 1 in sum(x, @=1)",
        "let x = 1 in sum(x, axis=@)",
        "let x = 1 in x @ x",
        "let x = 1 in x @",
        "@ let x = 1 in x",
        "let x = 1 @ in x",
        "fn(@: tensor<F32, [2], @host>) { 1 }",
        "handle f(1) with @",
        "1@2",
        "0.@5",
    ];
    let forms =
        ["(program @)", "(program (@ x))", "(program (f x@))", "(program (f :@ 1))", "(@ program x)", "(program x) @"];
    let strange = [
        ("\0", "U+0000", "cannot be seen"),
        ("\u{1B}", "U+001B", "cannot be seen"),
        ("\u{7F}", "U+007F", "cannot be seen"),
        ("\u{C}", "U+000C", "plain space"),
        ("\u{A0}", "U+00A0", "plain space"),
        ("\u{2028}", "U+2028", "plain space"),
        ("\u{200B}", "U+200B", "cannot be seen"),
        ("\u{202E}", "U+202E", "cannot be seen"),
        ("\u{FEFF}", "U+FEFF", "cannot be seen"),
        ("é", "é", "ASCII"),
        ("名", "名", "ASCII"),
        ("−", "−", "`-`"),
        ("（", "（", "`(`"),
        ("“", "“", "`\"`"),
        ("🦀", "🦀", "ASCII"),
    ];
    for (character, shown_as, help) in strange {
        let texts = positions
            .iter()
            .map(|p| (p.replacen("@host", "#host", 1), true))
            .chain(forms.map(|f| (f.to_owned(), false)));
        for (position, is_kina) in texts {
            let text = position
                .replace('@', character)
                .replace("#host", "@host")
                .replace(&format!("{character}{character}>"), &format!("@{character}>"));
            // At the start it is a byte order mark.
            if text.starts_with('\u{FEFF}') {
                continue;
            }
            let (codes, shown) = program(&text);
            assert!(codes.contains(&"E0101") && codes.iter().all(|c| *c == "E0101"), "{text:?}: {codes:?}");
            assert!(shown.contains(shown_as), "{text:?}: {shown}");
            // A bracket that is none, at the start of a line, is the first thing that is missing there.
            if is_kina || Form::of(&text) == Form::Sexpr {
                assert!(shown.contains(help), "{text:?}: {shown}");
            }
            assert!(!shown.contains(['\u{1B}', '\0', '\u{202E}', '\u{7F}']), "{text:?}");
        }
        let body = format!(
            "vjp f {{\n  y = f(x)\n  ---\n  g_x = g_y {character}\n}}\nvjp {character} {{\n  y = f(x)\n  ---\n  g_x = g_y\n}}"
        );
        let (codes, shown) = rules(&body);
        assert_eq!(codes, ["E0101", "E0101"], "{character:?}: {shown}");
        assert!(shown.contains(shown_as) && shown.contains(help), "{character:?}: {shown}");
    }
    // In comments everything may stand.
    let all: String = strange.iter().map(|(c, ..)| *c).collect();
    for text in [format!("// {all}\n1 // {all}"), format!("; {all}\n(program 1) ; {all}")] {
        assert_eq!(program(&text).0, [""; 0], "{text:?}");
    }
    assert_eq!(rules(&format!("/// {all}\ndef f(x) {{ // {all}\n  => x\n}}")).0, [""; 0]);
}

#[test]
fn texts_that_end_too_early_are_refused_at_their_end() {
    let kina_text = include_str!("../../examples/storylm0_nll.kina");
    let sexpr = "(program\n  (let\n    ((f (fn ((x (tensor F32 [2] @host))) -> (tensor F32 [] @host) (.sum x :axis [0])))\n     \
                 ((, a b) (handle (f (tensor F32 [2] @host)) reverseMode)))\n    (, a (- b))))";
    let rule_text = "/// d\noverride vjp tanh {\n  y = tanh(x)\n  ---\n  where rank(x) > 0\n  s = if rank(x) == 1 then y else [d for d in shape(x)][0]\n  g_x = g_y * (1.0 - y * y)\n}\nimport \"a.rules\"\n";
    for (text, is_rules) in [(kina_text, false), (sexpr, false), (rule_text, true)] {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let cut = &text[..end];
            let (codes, shown) = if is_rules { rules(cut) } else { program(cut) };
            assert!(codes.len() <= 2, "{cut}: {shown}");
            assert!(codes.iter().all(|c| c.starts_with("E01")), "{cut}: {shown}");
        }
    }
}

/// Faults without end cost little time and few lines.
#[test]
fn floods_of_faults_stay_small() {
    let flood = |part: &str| part.repeat(MANY);
    let before = Instant::now();
    let programs = [
        format!("f({}1)", flood("1e999, ")),
        format!("f({}1)", flood("x < x < x, ")),
        format!("f({}1)", flood("(x,), ")),
        format!("1{}", flood(" é")),
        format!("(program (f {}))", flood("é ")),
        format!("(program (f {}))", flood("(+) ")),
        format!("(program (f {}))", flood("1e999 ")),
        format!("(program (let ({}) x))", flood("(a) ")),
        (0..MANY).map(|i| format!("let a{i} = + in ")).collect(),
    ];
    for text in programs {
        let (codes, shown) = program(&text);
        assert!((1..=100).contains(&codes.len()), "{}", &text[..40]);
        assert!(shown.len() < 200_000, "{}: {} bytes", &text[..40], shown.len());
    }
    for text in
        [flood("vjp f {\n"), flood("hello "), flood("vjp f { + }\n"), format!("vjp f {{\n{}}}", flood("  a = +\n"))]
    {
        let (codes, shown) = rules(&text);
        assert!((1..=100).contains(&codes.len()), "{}", &text[..10]);
        assert!(shown.len() < 200_000, "{}: {} bytes", &text[..10], shown.len());
    }
    assert!(before.elapsed() < Duration::from_secs(300), "{:?}", before.elapsed());
}

#[test]
fn huge_words_and_numbers_are_short_messages() {
    let long = |c: &str| c.repeat(1_000_000);
    for (text, code) in [
        (long("a"), "E0112"),
        (format!("let {} = 1 in 1", long("a")), "E0112"),
        (format!("(program {})", long("a")), "E0112"),
        (long("9"), "E0104"),
        (format!("1e{}", long("9")), "E0104"),
        (format!("(program -1e{})", long("9")), "E0104"),
        (format!("\"{}", long("a")), "E0101"),
        (format!("é{}", long("a")), "E0101"),
        (format!("2{}", long("x")), "E0101"),
    ] {
        let (codes, shown) = program(&text);
        assert_eq!(codes, [code], "{}", &text[..20]);
        assert!(shown.len() < 5000, "{}: {} bytes", &text[..20], shown.len());
    }
    assert_eq!(program(&format!("tensor<F32, [{}], @host>", long("9"))).0, [""; 0], "the checker refuses it");
    check(&[(
        "a dimension",
        &[("p.kina", format!("tensor<F32, [{}], @host>", long("9")).as_bytes())],
        "grad p.kina",
        1,
        &["E0307", "too large"],
    )]);
    let (codes, _) = program(&" ".repeat(MAX_TEXT + 1));
    assert_eq!(codes, ["E0108"]);
    assert_eq!(rules(&format!("vjp {} {{", long("a"))).0, ["E0112"]);
}

/// Long chains are no fault: of `let`s in both forms, of rules, of statements in a rule.
#[test]
fn long_chains_work() {
    let lets: String = (0..MANY).map(|i| format!("let a{i} = x in\n")).collect();
    let bindings: String = (0..MANY).map(|i| format!("(a{i} x)\n")).collect();
    let rule_items: String = (0..MANY).map(|i| format!("/// d\nrewrite r{i} [exact] {{\n  -(-x) => x\n}}\n")).collect();
    let lines: String = (0..MANY).map(|i| format!("  s{i} = g_y\n")).collect();
    let place = directory(&[
        ("p.kina", format!("let x = tensor<F32, [2], @host> in\n{lets}x.relu()")),
        ("s.kina", format!("(program (let ((x (tensor F32 [2] @host))\n{bindings}) (.relu x)))")),
        ("q.kina", "tensor<F32, [2], @host>.relu()".to_owned()),
        ("items.rules", rule_items),
        ("lines.rules", format!("/// d\noverride vjp exp {{\n  y = exp(x)\n  ---\n{lines}  g_x = g_y * y\n}}\n")),
    ]);
    let outputs: Vec<String> =
        ["p.kina", "s.kina"].map(|f| kina(place.path(), &format!("emit {f} --stage program")).ok()).into();
    assert_eq!(outputs[0], outputs[1]);
    kina(place.path(), "grad q.kina --rules items.rules").ok();
    kina(place.path(), "grad q.kina --rules lines.rules").ok();
}

#[test]
fn each_fault_of_a_rule_is_shown_once() {
    let sum = |lines: &str| format!("/// d\noverride vjp sum {{\n  y = sum(x, axis, keepdims)\n  ---\n{lines}\n}}\n");
    for (text, places) in [
        // Syntax.
        (sum("  a = exp(,)\n  b = 3 4\n  g_x = ) g_y"), &["5:11", "6:9", "7:9"][..]),
        (sum("  a = exp(g_y +)\n  g_x = broadcast(g_y, shape(x)"), &["5:16", "7:1"]),
        (sum("  a = g_y +\n  b = g_y\n  c = * g_y\n  g_x = b"), &["6:3", "7:7"]),
        (sum("  where rank(x) >\n  kink x == : g_x = 0\n  g_x = f(a,\n    b=1,\n    c=)"), &["6:3", "6:13", "9:7"]),
        ("vjp f {\n  y = f(x) + 1\n  ---\n  g_x = +\n}\nvjp h {\n  y = h(x)\n  ---\n  g_x = -\n}".to_owned(), &["2:12", "4:9", "10:1"]),
        ("rewrite r [real] {\n  a + => b\n  where 1 >\n}\ndef d(x) {\n  a = +\n  => *\n}".to_owned(), &["2:7", "4:1", "6:7", "7:6"]),
        ("vjp f g {\n  y = f(x)\n  ---\n  g_x = +\n}".to_owned(), &["1:7", "4:9"]),
        ("hello\ndef f(x) {\n  => x\n} world\ndef g(x) {\n  => x\n}\nvpj".to_owned(), &["1:1", "4:3", "8:1"]),
        // Names and types.
        (sum("  a = exp(g_z)\n  b = fooo(g_z)\n  g_x = broadcst(a, shap(q))"), &["5:11", "6:7", "7:9", "7:21", "7:26"]),
        (
            "/// d\ndef one(x) {\n  => twoo(x)\n}\n/// e\ndef two(x) {\n  => one(one(x))\n}\n/// f\nvjp one {\n  y = one(x)\n  ---\n  g_x = two(g_y)\n}".to_owned(),
            &["3:6"],
        ),
        ("/// d\ndef f(x, a = x) {\n  => sum(x, a)\n}".to_owned(), &["2:14"]),
    ] {
        let place = directory(&[("p.kina", "tensor<F32, [2], @host>"), ("r.rules", &text)]);
        let outcome = kina(place.path(), "grad p.kina --rules r.rules");
        let found: Vec<&str> = outcome.stderr.lines().filter_map(|l| l.trim_start().strip_prefix("--> r.rules:")).collect();
        assert_eq!(found, places, "{text}\n{}", outcome.stderr);
    }
}

#[test]
fn each_fault_of_a_program_is_shown_once() {
    for (text, places) in [
        (
            "let a = 1 + in\nlet b = f(2 in\nlet c = g(a, , b) in\nlet d = 3 4 in\nlet e = (5 in\na +",
            &["1:13", "2:13", "3:14", "4:11", "5:12", "6:4"][..],
        ),
        ("let x = tensor<F32, [2], @host> in\nlet a = y in\nlet b = a.exp() in\nb.foo(a, z)", &["2:9", "4:3", "4:10"]),
        ("let x = tensor<F31, [2], @hots> in\nlet y = x.exp() in\ny.sum(axis=q)", &["1:16", "1:27", "3:12"]),
        (
            "(program\n  (let ((a (+ 1))\n        (b (f :axis))\n        (c 2y))\n    (g a b c)))",
            &["2:16", "3:16", "4:12"],
        ),
        (
            "let f = fn(x: tensor<F32, [2], @host>) { x + y } in\nlet x = tensor<F32, [2], @host> in\nf(x) + f(x)",
            &["1:46"],
        ),
    ] {
        let place = directory(&[("p.kina", text)]);
        let outcome = kina(place.path(), "grad p.kina");
        let found: Vec<&str> =
            outcome.stderr.lines().filter_map(|l| l.trim_start().strip_prefix("--> p.kina:")).collect();
        assert_eq!(found, places, "{text}\n{}", outcome.stderr);
    }
}
