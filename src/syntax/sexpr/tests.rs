use super::super::print::print_expr;
use super::super::{MAX_BRACKETS, parse_program};
use super::*;

fn parse_text(text: &str) -> (Program, Diagnostics) {
    let mut sources = SourceMap::new();
    let file = sources.add("t.kina", text);
    let mut bag = Diagnostics::new();
    let program = parse_program(&sources, file, &mut bag);
    (program, bag)
}

/// The body of `(program text)`.
#[track_caller]
fn kina(text: &str) -> String {
    let text = format!("(program {text})");
    let (program, bag) = parse_text(&text);
    assert!(bag.is_empty(), "{text}: {:?}", bag.iter().next());
    print_expr(&program.body, Form::Kina)
}

#[test]
fn every_form_reads_as_its_kina_text() {
    for (text, expected) in [
        ("x", "x"),
        ("(f)", "f()"),
        ("(f x :axis -1 y)", "f(x, axis=-1, y)"),
        ("(.f x :axis [0 -1])", "x.f(axis=[0, -1])"),
        ("(f *xs * ys *:axis 1 *(g x))", "f(*xs, *ys, *axis=1, *g(x))"),
        ("(program x)", "program(x)"),
        ("(+ (- a) (- b c))", "-a + (b - c)"),
        ("(- -9223372036854775808)", "- -9223372036854775808"),
        ("(- 9223372036854775808)", "-9.223372036854776e18"),
        ("(, 1.5e3 inf -inf nan true none)", "(1500.0, inf, -inf, nan, true, none)"),
        ("(<= (== a b) (!= a (! c)))", "(a == b) <= (a != !c)"),
        ("(|| (&& a b) (> (% a b) (++ a b)))", "a && b || a % b > a ++ b"),
        ("(let ((x 1) ((, y z) (f x))) z)", "let x = 1 in\nlet (y, z) = f(x) in\nz"),
        ("(fn () 1)", "fn() {\n  1\n}"),
        (
            "(fn ((x (tensor F32 [] @host))) -> (tensor Bool [2 0] @device) x)",
            "fn(x: tensor<F32, [], @host>) -> tensor<Bool, [2, 0], @device> {\n  x\n}",
        ),
        ("(handle (f x :y 2) reverseMode)", "handle f(x, y=2) with reverseMode"),
        ("(if c a b)", "if c then a else b"),
        ("(for x xs (* x 2))", "[x * 2 for x in xs]"),
        ("(for x xs (> x 0) x)", "[x for x in xs if x > 0]"),
        ("(@ (f x) 0)", "f(x)[0]"),
    ] {
        assert_eq!(kina(text), expected, "{text}");
    }
}

#[test]
fn text_of_any_form() {
    for text in [
        "\u{FEFF}(program (+ x 1))",
        "; ünï \u{1A}\r\n(program\r\n(+ x;c\r1))",
        "( ;c\n program(+\tx 1));;",
        "//c\r(program (+ x 1)); end",
    ] {
        let (program, bag) = parse_text(text);
        // A comment of Kina is the one thing that is wrong.
        let codes: Vec<&str> = bag.iter().flat_map(|d| d.help.iter().map(String::as_str)).collect();
        if text.starts_with("//") {
            assert_eq!(codes, ["comments start with `;`"]);
        } else {
            assert!(bag.is_empty(), "{text:?}: {:?}", bag.iter().next());
            assert_eq!(print_expr(&program.body, Form::Kina), "x + 1", "{text:?}");
        }
    }
}

#[test]
fn spans_are_those_of_the_lists() {
    let text = "(program (let ((x ( + a 1 ) )) (.f x)))";
    let (program, _) = parse_text(text);
    let ExprKind::Block(lets, body) = &program.body.kind else { panic!() };
    let at = |span: Span| &text[span.start as usize..span.end as usize];
    assert_eq!((at(lets[0].value.span), at(body.span)), ("( + a 1 )", "(.f x)"));
    let ExprKind::Call { callee, .. } = &body.kind else { panic!() };
    assert_eq!(at(callee.span), "f");
}

/// A text with its one fault, the code, what the message and the help say, and what the place is.
#[test]
fn faults_have_a_code_a_place_and_a_way_out() {
    for (text, code, message, help, place) in [
        // Brackets.
        ("(program (f x)", "E0101", "expected `)`, found the end", "", ""),
        ("(program (f [1 2)", "E0101", "expected `]`, found `)`", "", ")"),
        ("(program (f x)))", "E0101", "expected the end, found `)`", "", ")"),
        ("(program", "E0101", "expected `)`, found the end", "", ""),
        ("; only", "E0101", "expected `(program expression)`, found the end", "`;` comment", ""),
        // The program.
        (
            "; c\n(let ((x 1)) x)",
            "E0101",
            "expected `(program expression)`",
            "begins with `(program`",
            "(let ((x 1)) x)",
        ),
        ("(program)", "E0111", "`program` takes one expression, not 0", "`(program expression)`", ")"),
        ("(program x y)", "E0111", "`program` takes one expression, not 2", "`(program expression)`", "y"),
        ("(program x) y", "E0101", "expected the end, found `y`", "one `(program expression)`", "y"),
        // Heads.
        ("(program ())", "E0101", "expected a name or an operator, found `)`", "empty list", ")"),
        ("(program ((f x) y))", "E0101", "expected a name or an operator, found `(f x)`", "a call is", "(f x)"),
        ("(program (1 2))", "E0101", "expected a name or an operator, found `1`", "`[1 2]`", "1"),
        ("(program (with x))", "E0101", "expected a name or an operator, found `with`", "`(f a b)`", "with"),
        ("(program (lte ((x 1)) x))", "E0101", "found `lte`", "did you mean `let`?", "lte"),
        ("(program (fun () -> x))", "E0101", "found `fun`", "did you mean `fn`?", "fun"),
        // Arity.
        ("(program (+ a))", "E0111", "`+` takes two expressions, not 1", "`(+ a b)`", ")"),
        ("(program (+ a b c))", "E0111", "`+` takes two expressions, not 3", "`(+ (+ a b) c)`", "c"),
        ("(program (-))", "E0111", "`-` takes one or two", "`(- a)` or `(- a b)`", ")"),
        ("(program (! a b))", "E0111", "`!` takes one expression, not 2", "`(! a)`", "b"),
        ("(program (, a))", "E0105", "at least two", "`(, a b)`", "(, a)"),
        ("(program (@ a))", "E0111", "`@` takes", "`(@ list index)`", ")"),
        ("(program (if a b))", "E0111", "`if` takes three", "`(if condition a b)`", ")"),
        ("(program (for x y))", "E0111", "`for` takes", "(for name list element)", ")"),
        ("(program (.f))", "E0111", "`.f` takes the tensor it is called on", "`(.f x)`", ")"),
        ("(program (.f :x 1))", "E0101", "the tensor that `.f` is called on", "`(.f x)`", "x"),
        ("(program (f x :axis))", "E0101", "an argument without a value", "`:name value`", "axis"),
        ("(program (f :a :b 1))", "E0101", "expected an expression, found `:b`", "stands in a call", ":b"),
        // Binding forms.
        ("(program (let ((x 1))))", "E0111", "`let` takes bindings and one expression, not 1", "(let ((name", ")"),
        ("(program (let ((x 1)) x y))", "E0111", "`let` takes bindings and one expression, not 3", "(let ((name", "y"),
        ("(program (let () x))", "E0101", "expected a binding `(name value)`, found `)`", "(let ((name", ")"),
        ("(program (let (x 1) x))", "E0101", "expected a binding `(name value)`, found `x`", "(let ((name", "x"),
        ("(program (let x x))", "E0101", "expected bindings", "(let ((name", "x"),
        ("(program (let ((x 1) y) x))", "E0101", "expected a binding `(name value)`, found `y`", "(let ((name", "y"),
        ("(program (let ((x 1 2)) x))", "E0111", "a name and a value in each binding, not 3", "(let ((name", "2"),
        ("(program (let ((x)) x))", "E0111", "a name and a value in each binding, not 1", "(let ((name", ")"),
        ("(program (let ((in 1)) x))", "E0101", "expected a name, found `in`", "reserved word", "in"),
        ("(program (let (((a b) 1)) x))", "E0101", "expected `,`, found `a`", "`(, a b)`", "a"),
        ("(program (let (((, a) 1)) x))", "E0105", "at least two", "`(, a b)`", "(, a)"),
        ("(program (fn ((x (tensor F32 [2] @host)))))", "E0111", "`fn` takes", "(fn ((name type)", ")"),
        ("(program (fn x x))", "E0101", "expected parameters", "(fn ((name type)", "x"),
        ("(program (fn (x) x))", "E0101", "expected a parameter `(name type)`", "(fn ((name type)", "x"),
        ("(program (fn ((x)) x))", "E0101", "expected a type, found `)`", "(tensor F32 [2 3] @host)", ")"),
        ("(program (handle f reverseMode))", "E0101", "expected a call such as `(f x)`", "(handle (f x)", "f"),
        ("(program (handle (f x)))", "E0111", "`handle` takes a call and a handler, not 1", "(handle (f x)", ")"),
        ("(program (handle (.f x) r))", "E0101", "expected a call such as `(f x)`", "(handle (f x)", "(.f x)"),
        ("(program (tensor F32 [2]))", "E0111", "`tensor` takes", "(tensor F32 [2 3] @host)", ")"),
        ("(program (tensor 1 [2] @host))", "E0101", "expected a dtype, found `1`", "(tensor F32", "1"),
        ("(program (tensor F32 (2) @host))", "E0101", "expected dimensions", "(tensor F32", "(2)"),
        ("(program (tensor F32 [-2] @host))", "E0101", "expected a dimension", "(tensor F32", "-2"),
        ("(program (tensor F32 [2] host))", "E0101", "expected a placement", "(tensor F32", "host"),
        // Atoms.
        ("(program let)", "E0101", "expected an expression, found `let`", "first in a list of its own", "let"),
        ("(program @host)", "E0101", "expected an expression, found `@host`", "in a type", "@host"),
        ("(program (f .g))", "E0101", "expected an expression, found `.g`", "first in its list", ".g"),
        ("(program (f a + b))", "E0101", "expected an expression, found `+`", "`(+ a b)`", "+"),
        ("(program 2x)", "E0101", "unexpected `2x`", "numbers look like", "2x"),
        ("(program -x)", "E0101", "unexpected `-x`", "`(- x)`", "-x"),
        ("(program a+b)", "E0101", "unexpected `a+b`", "stand first", "a+b"),
        ("(program (f axis=1))", "E0101", "unexpected `axis=1`", "`:axis value`", "axis=1"),
        ("(program é)", "E0101", "unexpected `é`", "ASCII", "é"),
        ("(program \"a ( b\")", "E0101", "unexpected `\"a ( b\"`", "quotes", "\"a ( b\""),
        ("(program {x})", "E0101", "unexpected `{x}`", "`[ ]`", "{x}"),
        ("(program \u{0})", "E0101", "unexpected `U+0000`", "", "\u{0}"),
        ("(program 1e999)", "E0104", "too large", "`inf`", "1e999"),
        ("(program x \u{1A})", "E0101", "control character U+001A", "remove it", "\u{1A}"),
    ] {
        let (_, bag) = parse_text(text);
        let all: Vec<String> = bag.iter().map(|d| format!("{} {} {:?}", d.code, d.message, d.help)).collect();
        let (Some(d), 1) = (bag.iter().next(), bag.error_count()) else { panic!("{text}: {all:?}") };
        assert!(d.code == code && d.message.contains(message), "{text}: {all:?}");
        assert!(d.help.iter().any(|h| h.contains(help)) || help.is_empty(), "{text}: {all:?}");
        let span = d.primary.as_ref().expect("a place").span;
        assert_eq!(&text[span.start as usize..span.end as usize], place, "{text}");
    }
}

#[test]
fn several_faults_are_reported_each_once() {
    let text = "(program
      (let ((a (+ 1))
            (b (f :axis))
            (in 1)
            (c é)
            (d (tensor F32 [x] host)))
        (g a b c d 2y)))";
    let (_, bag) = parse_text(text);
    let places: Vec<&str> = bag
        .iter()
        .filter_map(|d| d.primary.as_ref())
        .map(|l| &text[l.span.start as usize..l.span.end as usize])
        .collect();
    assert_eq!(places, [")", "axis", "in", "é", "x", "host", "2y"]);
    // Noise is cut off.
    let many: String = (0..1000).map(|i| format!("{i}x ")).collect();
    let (_, bag) = parse_text(&format!("(program (f {many}))"));
    assert!(bag.iter().count() <= 100 && bag.omitted() > 0);
}

#[test]
fn a_missing_bracket_is_looked_for_by_the_indentation() {
    let text = "(program\n  (let\n    ((a (f x)\n     (b (f a)))\n    b))";
    let (_, bag) = parse_text(text);
    let d = bag.iter().next().unwrap();
    let hints: Vec<u32> = d.secondary.iter().filter(|l| l.text.contains("indentation")).map(|l| l.span.start).collect();
    assert_eq!((d.code, hints), ("E0101", vec![text.find("(b").unwrap() as u32]));
    // It says nothing where brackets are too many, or all on one line.
    for text in ["(program\n x\n))", "(program (f x)"] {
        let (_, bag) = parse_text(text);
        assert!(bag.iter().all(|d| d.secondary.iter().all(|l| !l.text.contains("indentation"))), "{text}");
    }
}

#[test]
fn long_and_deep_texts_meet_stated_limits() {
    for (text, code) in [
        ("(".repeat(100_000), "E0102"),
        ("(program ".to_owned() + &"[".repeat(100_000), "E0102"),
        (format!("(program {}x{})", "(f ".repeat(100_000), ")".repeat(100_000)), "E0102"),
        (format!("(program {}x{})", "(f ".repeat(MAX_BRACKETS - 1), ")".repeat(MAX_BRACKETS - 1)), "E0103"),
        ("(program ".to_owned() + &"((x".repeat(100_000), "E0102"),
        (")".repeat(100_000), "E0101"),
    ] {
        let text = if text.starts_with("(program") { text } else { format!("; c\n{text}") };
        let (_, bag) = parse_text(&text);
        let codes: Vec<&str> = bag.iter().map(|d| d.code).collect();
        assert_eq!(codes, [code]);
    }
    // Long lines and many lists take linear time.
    let (_, bag) = parse_text(&format!("(program (f {}", "() ".repeat(300_000)));
    assert_eq!(bag.error_count(), 1);
}
