//! What messages propose: names that were meant, and calls that mend what is wrong.

use kina_ad::diagnostics::{Diagnostic, Span};
use kina_ad::syntax::Form;
use kina_ad::{CheckOptions, RuleOptions, Session};

use crate::bad_input::check;

const HEAD: &str = "let logits = tensor<F32, [2, 3], @host> in\nlet targets = tensor<I64, [2], @host> in\n\
                    let loss_of = fn(values: tensor<F32, [2, 3], @host>) { values.sum() } in\n";

#[test]
fn slips_of_the_pen_are_named() {
    for (slip, code, meant) in [
        ("logit.exp()", "E0201", "`logits`"),
        ("Logits.exp()", "E0201", "`logits`"),
        ("exp(logitss)", "E0201", "`logits`"),
        ("logits.epx()", "E0202", "`exp`"),
        ("logits.logSoftmax(axis=1)", "E0202", "`log_softmax`"),
        ("logits.RELU()", "E0202", "`relu`"),
        ("loss_off(logits)", "E0202", "`loss_of`"),
        ("logits.sum(axes=0)", "E0205", "`axis`"),
        ("logits.sum(keep_dims=true)", "E0205", "`keepdims`"),
        ("logits.sum(keepdims=ture)", "E0201", "`true`"),
        ("loss_of(value=logits)", "E0205", "`values`"),
        ("handle loss_of(valeus=logits) with reverseMode", "E0205", "`values`"),
        ("handle los_of(logits) with reverseMode", "E0201", "`loss_of`"),
        ("handle loss_of(logits) with reversemode", "E0212", "`reverseMode`"),
        ("logits.cast(dtype=f64)", "E0203", "`F64`"),
        ("logits.cast(dtype=F46)", "E0203", "`F64`"),
        ("tensor<f32, [2], @host>", "E0203", "`F32`"),
        ("tensor<BOOL, [2], @host>", "E0203", "`Bool`"),
        ("tensor<F32, [2], @hots>", "E0203", "`@host`"),
        ("tensor<F32, [2], @Device>", "E0203", "`@device`"),
    ] {
        let program = format!("{HEAD}{slip}");
        let files: &[(&str, &[u8])] = &[("p.kina", program.as_bytes())];
        let meant = format!("did you mean {meant}?");
        check(&[(slip, files, "grad p.kina", 1, &[code, "p.kina:4:", &meant])]);
    }
}

#[test]
fn slips_in_rules_are_named() {
    let sum = |lines: &str| format!("/// d\noverride vjp sum {{\n  y = sum(x, axis, keepdims)\n  ---\n{lines}\n}}\n");
    let right = "  g_x = broadcast(reshape(g_y, ones_at(shape(x), axis)), shape(x))";
    for (rules, code, meant) in [
        (sum("  scaled = g_y * 2.0\n  g_x = broadcast(scald, shape(x))"), "E0401", "`scaled`"),
        (sum("  g_x = broadcast(g_y, [d for dm in shape(x) if dn > 1])"), "E0401", "`dm`"),
        (sum(&format!("  where dtype(x) == f32\n{right}")), "E0401", "`F32`"),
        (sum("  g_x = broadcst(g_y, shape(x))"), "E0402", "`broadcast`"),
        (sum("  g_x = g_y.broadcst(shape(x))"), "E0402", "`broadcast`"),
        (sum("  g_x = broadcast(g_y, shpe(x))"), "E0402", "`shape`"),
        (sum("  g_x = broadcast(g_y, one_at(shape(x), axis))"), "E0402", "`ones_at`"),
        (sum("  g_x = sum(g_y, axiss=[0])"), "E0403", "`axis`"),
        (sum("  gx = broadcast(g_y, shape(x))"), "E0404", "`g_x`"),
        (sum(&format!("{right}\n  g_axs = none")), "E0405", ""),
        (sum(&format!("  wher rank(x) > 0\n{right}")), "E0101", "`where`"),
        (sum(&format!("  knik x == 0.0: g_x = 0.0\n{right}")), "E0101", "`kink`"),
        ("/// d\noverride vjp smu {\n  y = smu(x)\n  ---\n  g_x = g_y\n}".to_owned(), "E0402", "`sum`"),
        ("/// d\nrewrite r [exat] {\n  -(-a) => a\n}".to_owned(), "E0409", "`exact`"),
        ("/// d\nrewrit r [exact] {\n  -(-a) => a\n}".to_owned(), "E0101", "`rewrite`"),
        ("/// d\ndef f(x) {\n  => x\n}\n/// e\nvpj exp {\n  y = exp(x)\n}".to_owned(), "E0101", "`vjp`"),
    ] {
        let files: &[(&str, &[u8])] = &[("p.kina", b"tensor<F32, [2], @host>"), ("r.rules", rules.as_bytes())];
        let meant = if meant.is_empty() { String::new() } else { format!("did you mean {meant}?") };
        check(&[(&rules, files, "grad p.kina --rules r.rules", 1, &[code, "r.rules:", &meant])]);
    }
}

/// A name that nothing has is one fault, however often it is used; one letter is near to no other.
#[test]
fn nothing_is_said_twice_and_nothing_is_guessed() {
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    for (program, codes) in [
        ("let a = y in let b = y in a + b + y", vec!["E0201"]),
        ("let x = tensor<F32, [2], @host> in x.foo() + x.foo().bar() + foo(x)", vec!["E0202", "E0202"]),
        ("let x = tensor<F32, [2], @host> in let größe = x in größe + größe", vec!["E0101"]),
        ("(program (let ((größe 1)) (+ größe größe)))", vec!["E0101"]),
    ] {
        let refusal = session.check("p", program, &CheckOptions::default()).unwrap_err();
        let found: Vec<&str> = refusal.diagnostics.iter().map(|d| d.code).collect();
        assert_eq!(found, codes, "{refusal}");
        assert!(!refusal.to_string().contains("did you mean"), "{refusal}");
    }
}

/// The one diagnostic of a program.
fn refused(session: &mut Session, program: &str) -> Diagnostic {
    let refusal = session.check("p", program, &CheckOptions::default()).expect_err(program);
    assert_eq!(refusal.diagnostics.iter().count(), 1, "{refusal}");
    refusal.diagnostics.iter().next().unwrap().clone()
}

/// The program with the proposed calls in the places that the message points at.
fn mended(program: &str, diagnostic: &Diagnostic) -> (Vec<String>, String) {
    let help = diagnostic.help.iter().find(|h| h.contains("broadcasting is explicit")).expect("a proposal");
    let calls: Vec<String> = help.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let labels = diagnostic.primary.iter().chain(&diagnostic.secondary);
    let mut spans: Vec<Span> = labels.map(|l| l.span).collect();
    spans.sort();
    // One proposal is for the operand that the message points at, otherwise they are for the first ones in order of
    // the text.
    if let [_] = calls.as_slice() {
        spans = diagnostic.primary.iter().map(|l| l.span).collect();
    }
    let mut text = program.to_owned();
    for (span, call) in spans.iter().zip(&calls).rev() {
        text.replace_range(span.start as usize..span.end as usize, call);
    }
    (calls, text)
}

#[test]
fn the_broadcast_that_is_proposed_mends_the_program() {
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    for (x, y, call, proposals) in [
        ("[2, 3]", "[3]", "x + y", &["broadcast(y, shape=[2, 3])"][..]),
        ("[3]", "[2, 3]", "x + y", &["broadcast(x, shape=[2, 3])"]),
        ("[2, 3]", "[]", "x * y", &["broadcast(y, shape=[2, 3])"]),
        ("[2, 3]", "[2]", "x + y", &["broadcast(reshape(y, shape=[2, 1]), shape=[2, 3])"]),
        ("[2]", "[2, 3]", "x < y", &["broadcast(reshape(x, shape=[2, 1]), shape=[2, 3])"]),
        ("[2, 1]", "[1, 3]", "x - y", &["broadcast(x, shape=[2, 3])", "broadcast(y, shape=[2, 3])"]),
        ("[2, 3]", "[3]", "x.exp() + y.exp() * 2.0", &["broadcast(y.exp() * 2.0, shape=[2, 3])"]),
        ("[2, 3]", "[3]", "x + (y + y)", &["broadcast(y + y, shape=[2, 3])"]),
        ("[2, 3]", "[3]", "x + -y", &["broadcast(-y, shape=[2, 3])"]),
        // A call by a point gets one, whichever operand it is.
        ("[2, 3]", "[3]", "x.maximum(y)", &["y.broadcast(shape=[2, 3])"]),
        ("[3]", "[2, 3]", "x.maximum(y)", &["x.broadcast(shape=[2, 3])"]),
        ("[2]", "[2, 3]", "x.maximum(y)", &["x.reshape(shape=[2, 1]).broadcast(shape=[2, 3])"]),
        ("[2, 1]", "[3]", "x.minimum(y)", &["x.broadcast(shape=[2, 3])", "y.broadcast(shape=[2, 3])"]),
        ("[3]", "[2, 3]", "(x + x).maximum(y)", &["(x + x).broadcast(shape=[2, 3])"]),
        ("[3]", "[2, 3]", "maximum(x, y)", &["broadcast(x, shape=[2, 3])"]),
        ("[3]", "[2, 3]", "maximum(b=x, a=y)", &["broadcast(x, shape=[2, 3])"]),
        ("[3]", "[2, 3]", "select(x > 0.0, y, y)", &["broadcast(x > 0.0, shape=[2, 3])"]),
    ] {
        let program = format!("let x = tensor<F32, {x}, @host> in let y = tensor<F32, {y}, @host> in\n{call}");
        let diagnostic = refused(&mut session, &program);
        assert_eq!(diagnostic.code, "E0303", "{program}");
        let (calls, text) = mended(&program, &diagnostic);
        assert_eq!(calls, proposals, "{program}");
        if let Err(refusal) = session.check("p", &text, &CheckOptions::default()) {
            panic!("{text}\n{refusal}");
        }
        // The same in the other form, whose proposals are in that form.
        let tree = session.parse("p", &program).unwrap();
        let sexpr = session.print(&tree, Form::Sexpr);
        let diagnostic = refused(&mut session, &sexpr);
        let (calls, text) = mended(&sexpr, &diagnostic);
        assert!(calls.len() == proposals.len() && calls.iter().all(|c| c.starts_with('(')), "{calls:?}");
        if let Err(refusal) = session.check("p", &text, &CheckOptions::default()) {
            panic!("{text}\n{refusal}");
        }
    }
}

#[test]
fn where_no_broadcast_helps_the_message_says_why() {
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    for (x, y, why) in [
        ("[2, 3]", "[4]", "counted from the last dimension, 3 meets 4"),
        ("[2, 3]", "[3, 2]", "3 meets 2"),
        ("[5, 2, 3]", "[4, 1, 3]", "5 meets 4"),
        ("[0]", "[2]", "0 meets 2"),
    ] {
        for call in ["x + y", "x.maximum(y)"] {
            let program = format!("let x = tensor<F32, {x}, @host> in let y = tensor<F32, {y}, @host> in\n{call}");
            let diagnostic = refused(&mut session, &program);
            assert!(diagnostic.notes.iter().any(|n| n.contains(why)), "{program}: {diagnostic:?}");
            assert!(diagnostic.help.iter().all(|h| !h.contains("`broadcast(")), "{program}: {diagnostic:?}");
            let labels: Vec<&str> =
                diagnostic.primary.iter().chain(&diagnostic.secondary).map(|l| l.text.as_str()).collect();
            assert_eq!(labels, [format!("this has the shape {y}"), format!("this has the shape {x}")]);
        }
    }
}
