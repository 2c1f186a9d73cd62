//! Formatting a rule file changes its white space only, and a second time nothing: rule files of the project, texts that
//! were written to be hard, generated trees with comments and line ends in every gap.

use std::path::Path;

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::ast::{Expr, RuleFile};
use super::roundtrip::{names, trees, without_places};
use super::{Form, comments, format_rules, parse_rules, print_expr};
use crate::diagnostics::{Diagnostics, SourceMap, Style, render};

fn read(text: &str) -> (RuleFile, Diagnostics, SourceMap) {
    let mut sources = SourceMap::new();
    let file = sources.add("t.rules", text);
    let mut bag = Diagnostics::new();
    let rules = parse_rules(&sources, file, &mut bag);
    (rules, bag, sources)
}

fn format(text: &str) -> Result<String, String> {
    let mut sources = SourceMap::new();
    let file = sources.add("t.rules", text);
    let mut bag = Diagnostics::new();
    format_rules(&sources, file, &mut bag).ok_or_else(|| render(&bag, &sources, Style::Plain))
}

/// What must stay: the trees with their documentation, and the comments.
fn content(text: &str) -> (String, Vec<String>) {
    let (rules, bag, sources) = read(text);
    assert!(bag.is_empty(), "{}\n{text}", render(&bag, &sources, Style::Plain));
    let found = comments(text).into_iter().map(|c| c.text).collect();
    (without_places(&format!("{:?}", rules.items)), found)
}

/// Formats a text, and checks everything that holds of every text.
fn check(text: &str) -> Result<String, String> {
    let once = format(text)?;
    let twice = format(&once)?;
    if once != twice {
        return Err(format!("not idempotent:\n{text}\n-- once\n{once}\n-- twice\n{twice}"));
    }
    if content(text) != content(&once) {
        return Err(format!("another content:\n{text}\n-- formatted\n{once}"));
    }
    let is_clean = |line: &str| line.trim_end() == line && !line.contains(['\t', '\r']);
    if !once.lines().all(|l| l.contains("//") || is_clean(l)) || once.contains("\n\n\n") || once.starts_with('\n') {
        return Err(format!("stray white space:\n{once}"));
    }
    Ok(once)
}

#[test]
fn the_rule_files_of_the_project_are_formatted() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
    let mut seen = 0;
    for path in crate::rules::rule_files(&directory).unwrap() {
        let text = std::fs::read_to_string(&path).unwrap();
        let formatted = check(&text).unwrap();
        assert!(formatted == text, "kina-ad rules fmt {}", path.display());
        seen += 1;
    }
    assert!(seen >= 9);
}

#[test]
fn one_style() {
    for (text, expected) in [
        ("", ""),
        ("\u{FEFF}\r\n  // only a comment  \r\n\r\n", "// only a comment\n"),
        (
            "import   \"a\"\nimport \"b\"\n\n\n\nimport \"c\"\ndef f(x){=>x}",
            "import \"a\"\nimport \"b\"\n\nimport \"c\"\n\ndef f(x) {\n  => x\n}\n",
        ),
        // The bar is as long as the premise; signs of bindings stand below each other.
        (
            "/// d\nvjp sum\n{ y=sum( x,axis,keepdims = false )\n───\n\n g=g_y // in\n   g_xs[ i ]=g\n\n\n a  =1e-5\n where rank (x)>0\n kink x==0.0:g_x=g\n}",
            "/// d\nvjp sum {\n  y = sum(x, axis, keepdims=false)\n  --------------------------------\n  g       = g_y  // in\n  g_xs[i] = g\n\n  a = 1e-5\n  where rank(x) > 0\n  kink x == 0.0: g_x = g\n}\n",
        ),
        // Signs before and between operands.
        (
            "def f(x, a=-1){ b = - - x- -x*- (x)\n c=[!p [0]&&a%2!=1, -1 ,  p[i]++[ 2 ]]\n=>g(*xs,axis=-1,k = x .exp( ) .sum(axis=[0,1]))}",
            "def f(x, a = -1) {\n  b = - -x - -x * -(x)\n  c = [!p[0] && a % 2 != 1, -1, p[i] ++ [2]]\n  => g(*xs, axis=-1, k=x.exp().sum(axis=[0, 1]))\n}\n",
        ),
        // Forms of programs, which are refused later.
        (
            "def f(){=>fn(x:tensor<F32,[2 , 3],@host>)->tensor<F32,[],@host>{let (a,b)=handle f(x) with r in (a)}}",
            "def f() {\n  => fn(x: tensor<F32, [2, 3], @host>) -> tensor<F32, [], @host> { let (a, b) = handle f(x) with r in (a) }\n}\n",
        ),
        // Lines stay broken where they were, comments where they stood.
        (
            "// a\n\n// b\n/// d\nvjp f { // c\n// e\ny = f(x) // g\n---  // h\n// i\n\ng_x = h(x, // j\n// k\n\n  x\n) + // l\n x // m\n// n\n} // o\n// p\n/// q\ndef r(x) { => x\n}",
            "// a\n\n// b\n/// d\nvjp f {  // c\n  // e\n  y = f(x)  // g\n  --------  // h\n  // i\n\n  g_x = h(x,  // j\n    // k\n    x\n  ) +  // l\n    x  // m\n  // n\n}  // o\n\n// p\n/// q\ndef r(x) {\n  => x\n}\n",
        ),
    ] {
        assert_eq!(check(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn long_lines_break_at_the_outermost_place() {
    let long = |part: &str, count: usize, separator: &str| vec![part; count].join(separator);
    for (body, expected) in [
        (
            format!("f({}) => g({})", long("x", 30, ", "), long("x", 30, ", ")),
            format!("  f({}) =>\n    g({})\n", long("x", 30, ", "), long("x", 30, ", ")),
        ),
        (
            format!("x => f(x, x) + {}", long("g(x, x)", 14, " * ")),
            format!("  x =>\n    f(x, x)\n    + {}\n    * {}\n", long("g(x, x)", 11, " * "), long("g(x, x)", 3, " * ")),
        ),
        // No place to break at.
        (format!("x => {}", "a".repeat(200)), format!("  x =>\n    {}\n", "a".repeat(200))),
    ] {
        let text = format!("rewrite r [real] {{\n  {body}\n}}\n");
        assert_eq!(check(&text).unwrap(), format!("rewrite r [real] {{\n{expected}}}\n"));
    }
    // Words that begin an item at the start of a line stay inside theirs.
    let words = ["vjp", "def", "rewrite", "import", "override"].map(|w| long(w, 20, ", ")).join(", ");
    check(&format!("def f(x) {{\n  => g({words})\n}}\n")).unwrap();
}

#[test]
fn faulty_files_are_refused() {
    for text in ["vjp f {\n y = f(x)\n g_x = g_y\n}", "hello", "def f(x) {\n  => x +\n}", "\"", "def f(x) { => (x }"] {
        let refused = format(text).unwrap_err();
        assert!(refused.starts_with("error[E0101]"), "{refused}");
    }
}

/// The lines of a statement, each to be broken further: items in the words of the grammar, with generated expressions.
fn items() -> impl Strategy<Value = String> {
    let name = || names().prop_map(|n| n.name.to_string());
    let text = |e: Expr| print_expr(&e, Form::Kina);
    let value = move || trees().prop_map(text);
    let line = prop_oneof![
        (name(), value()).prop_map(|(n, v)| format!("{n} = {v}")),
        (name(), name(), value()).prop_map(|(n, i, v)| format!("{n}[{i}] = {v}")),
        value().prop_map(|v| format!("where {v}")),
        value().prop_map(|v| format!("domain {v}")),
        (value(), name(), value()).prop_map(|(c, n, v)| format!("kink {c}: {n} = {v}")),
        value().prop_map(|v| format!("example {v}")),
        (value(), name(), value()).prop_map(|(c, n, v)| format!("example {c}: {n} = {v}")),
        Just("not_a_derivative".to_owned()),
    ];
    let lines = move || prop::collection::vec(line.clone(), 0..4).prop_map(|l| l.join("\n"));
    let params = prop::collection::vec((name(), prop::option::of(value())), 0..3).prop_map(|params| {
        let param = |(n, v): (String, Option<String>)| v.map_or(n.clone(), |v| format!("{n} = {v}"));
        params.into_iter().map(param).collect::<Vec<_>>().join(", ")
    });
    let item = prop_oneof![
        (name(), name(), name(), lines())
            .prop_map(|(y, f, x, l)| format!("vjp {f} {{\n{y} = {f}({x}, {x}, axis=-1)\n-----\n{l}\n}}")),
        (name(), value(), any::<bool>(), value(), lines()).prop_map(|(n, a, both, b, l)| {
            format!("rewrite {n} [exact] {{\n{a} {} {b}\n{l}\n}}", if both { "<=>" } else { "=>" })
        }),
        (name(), params, lines(), value(), lines())
            .prop_map(|(n, p, l, v, m)| format!("def {n}({p}) {{\n{l}\n=> {v}\n{m}\n}}")),
        Just("import \"a b.rules\"".to_owned()),
    ];
    (prop::option::of(Just("/// What it says.\n///  And more.\n")), item)
        .prop_map(|(doc, item)| format!("{}{item}\n", doc.unwrap_or_default()))
}

/// Puts other white space and comments into the gaps of a text; ends of lines stay where they were.
fn disturb(text: &str, choices: &[u8]) -> String {
    const LINE: [&str; 6] = ["\n", "\n\n\n", "  // beside\n", "\n // own\n", "\r\n\t", "\n\n// a\n\n// b\n"];
    const SPACE: [&str; 6] = [" ", "  ", " ", "\n ", " // in\n", "\n//own\n"];
    let mut out = String::new();
    let mut choices = choices.iter().cycle().map(|c| usize::from(*c));
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        // Documentation stays whole, and directly above its item.
        if line.starts_with("///") {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let mut words = line.split(' ').peekable();
        while let Some(word) = words.next() {
            out.push_str(word);
            let choice = choices.next().unwrap_or(0);
            let in_text = line.contains('"');
            match (words.peek().is_some(), lines.peek()) {
                (true, _) if in_text => out.push(' '),
                (true, _) => out.push_str(SPACE[choice % SPACE.len()]),
                (false, Some(next)) if next.starts_with("///") => out.push('\n'),
                (false, _) => out.push_str(LINE[choice % LINE.len()]),
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_files_keep_their_content(
        items in prop::collection::vec(items(), 0..4),
        choices in prop::collection::vec(any::<u8>(), 1..40),
        calm in any::<bool>(),
    ) {
        let text = items.concat();
        let text = if calm { text } else { disturb(&text, &choices) };
        // Generated expressions may be what no rule may say.
        if read(&text).1.is_empty() {
            prop_assert_eq!(check(&text).map(|_| ()), Ok(()));
        }
    }
}

/// Most of the generated files are read without a fault: the property above is no empty one.
#[test]
fn generated_files_are_mostly_valid() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = (prop::collection::vec(items(), 1..4), prop::collection::vec(any::<u8>(), 1..40));
    let valid = (0..100).filter(|_| {
        let (items, choices) = strategy.new_tree(&mut runner).unwrap().current();
        read(&disturb(&items.concat(), &choices)).1.is_empty()
    });
    let valid = valid.count();
    assert!(valid >= 60, "{valid} of 100");
}
