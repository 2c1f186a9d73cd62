//! Parsing programs; those in Kina text with recovery at `let`s.
//!
//! pest stops at its first error. To report more than one, the smallest part around the fault (the value of a `let`, or
//! the `let` itself) is overwritten by a marker of the same length, which the grammar reads as an expression, and the
//! text is parsed again.

use std::collections::HashSet;

use pest::Parser;

use super::ast::{Expr, ExprKind, Program};
use super::depth::{on_big_stack, refuse};
use super::error::{offset, syntax_error};
use super::expr::Builder;
use super::form::Form;
use super::grammar::{KinaParser, Rule};
use super::scan::{Kind, Token, scan};
use super::sexpr;
use crate::diagnostics::{Diagnostics, FileId, SourceMap};

/// Syntax errors reported per program: more would be noise, and each costs a parse.
const MAX_ERRORS: usize = 20;

/// Parses a program of either form. Syntax errors (E01xx) go to the bag; the program is then not to be checked.
pub fn parse_program(sources: &SourceMap, file: FileId, bag: &mut Diagnostics) -> Program {
    on_big_stack(|| match Form::of(&sources.file(file).text) {
        Form::Kina => parse(sources, file, bag),
        Form::Sexpr => sexpr::parse(sources, file, bag),
    })
}

fn parse(sources: &SourceMap, file: FileId, bag: &mut Diagnostics) -> Program {
    let text = &*sources.file(file).text;
    let nothing = Program { body: Expr { kind: ExprKind::Error, span: sources.span(file, 0, text.len()) } };
    let tokens = scan(text, Form::Kina);
    if let Some(refusal) = refuse(sources, file, Form::Kina, &tokens) {
        bag.push(refusal);
        return nothing;
    }
    let mut masked = text.to_string();
    let mut masks: Vec<(usize, usize)> = Vec::new();
    let mut last_error = None;
    let mut strange: HashSet<&str> = HashSet::new();
    for _ in 0..MAX_ERRORS {
        match KinaParser::parse(Rule::program, &masked) {
            Ok(pairs) => {
                let mut builder = Builder { sources, file, base: 0, bag, too_high: false };
                let expr = pairs.flatten().find(|p| p.as_rule() == Rule::expr);
                return expr.map_or(nothing, |p| Program { body: builder.expr(p).expr });
            }
            Err(error) => {
                let at = offset(&error);
                // Behind a mask errors come in order; one before or directly behind it is a consequence of it.
                let behind_mask = masks.last().and_then(|(_, end)| tokens.iter().find(|t| t.start >= *end));
                // A name that is none is one fault, however often it is used.
                let found = tokens.iter().find(|t| t.end > at).filter(|t| t.kind == Kind::Stray);
                let is_word = |t: &&Token| t.text(text).contains(char::is_alphanumeric);
                let is_new = found.filter(is_word).is_none_or(|t| strange.insert(t.text(text)));
                if is_new && last_error.is_none_or(|last| at > last) && behind_mask.is_none_or(|t| t.start != at) {
                    bag.push(syntax_error(sources, file, &error, at, text.len(), &tokens, None));
                }
                last_error = Some(last_error.map_or(at, |last: usize| last.max(at)));
                let Some(mask) = widening(&tokens, text, at, &masks) else { break };
                masks.push(mask);
                overwrite(&mut masked, mask);
            }
        }
    }
    nothing
}

/// A `let` as far as tokens tell.
struct LetTokens {
    start: usize,
    /// Behind its `=`.
    value: Option<usize>,
    /// Start and end of its `in`.
    in_word: Option<(usize, usize)>,
}

fn lets(tokens: &[Token], text: &str) -> Vec<LetTokens> {
    enum Open {
        Bracket(u8),
        Let(usize),
    }
    let mut found: Vec<LetTokens> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for (i, t) in tokens.iter().enumerate() {
        match (t.kind, t.text(text)) {
            (Kind::Open(bracket), _) => open.push(Open::Bracket(bracket)),
            (Kind::Close(bracket), _) => {
                if let Some(i) = open.iter().rposition(|o| matches!(o, Open::Bracket(b) if *b == bracket)) {
                    open.truncate(i);
                }
            }
            (Kind::Word, "let") => {
                open.push(Open::Let(found.len()));
                found.push(LetTokens { start: t.start, value: None, in_word: None });
            }
            (Kind::Word, "in") => {
                // `for name in` is no end of a `let`; any other `in` is, whatever bracket was forgotten before it.
                let is_for = i >= 2 && tokens[i - 2].text(text) == "for";
                let ended = open.iter().rposition(|o| matches!(o, Open::Let(_))).filter(|_| !is_for);
                if let Some(Open::Let(which)) = ended.and_then(|depth| open.drain(depth..).next()) {
                    found[which].in_word = Some((t.start, t.end));
                }
            }
            (Kind::Punctuation, "=") => {
                if let Some(Open::Let(which)) = open.last() {
                    found[*which].value.get_or_insert(t.end);
                }
            }
            _ => {}
        }
    }
    found
}

/// The smallest part around the error at `at` that is not masked yet.
fn widening(tokens: &[Token], text: &str, at: usize, masks: &[(usize, usize)]) -> Option<(usize, usize)> {
    let mut candidates: Vec<(usize, usize)> = Vec::new();
    for l in lets(tokens, text).iter().rev().filter(|l| l.start < at) {
        match l.in_word {
            Some((_, end)) if end <= at => continue,
            Some((start, end)) => {
                candidates.extend(l.value.filter(|v| *v <= at && *v < start).map(|v| (v, start)));
                candidates.push((l.start, end));
            }
            // Its `in` is missing: the `let` up to the fault.
            None => candidates.push((l.start, at)),
        }
    }
    candidates.retain(|c| !masks.contains(c));
    candidates.first().copied()
}

/// Overwrites a part: a value becomes the marker, a whole `let` becomes blank.
fn overwrite(masked: &mut String, (start, end): (usize, usize)) {
    let is_let = masked.get(start..end).is_some_and(|part| part.starts_with("let"));
    let mut blank = " ".repeat(end - start);
    if !is_let {
        blank.replace_range(..1, "\u{1A}");
    }
    masked.replace_range(start..end, &blank);
}

#[cfg(test)]
mod tests {
    use super::super::print::print_expr;
    use super::*;

    fn parse_text(text: &str) -> (Program, Diagnostics) {
        let mut sources = SourceMap::new();
        let file = sources.add("t.kina", text);
        let mut bag = Diagnostics::new();
        let program = parse_program(&sources, file, &mut bag);
        (program, bag)
    }

    fn printed(text: &str) -> String {
        let (program, bag) = parse_text(text);
        assert!(!bag.has_errors(), "{text}: {:?}", bag.iter().next());
        print_expr(&program.body, Form::Kina)
    }

    #[test]
    fn the_specification_example_parses() {
        let text = "let nll = fn(logits: tensor<F32, [1, 4, 8], @host>) -> tensor<F32, [1, 4], @host> {
              let targets = tensor<I64, [1, 4], @host> in
              let log_probs = logits.log_softmax(axis=2) in
              let picked = log_probs.take_along_axis(targets, axis=2) in
              let loss = -picked in
              loss
            } in
            let logits = tensor<F32, [1, 4, 8], @host> in
            handle nll(logits) with reverseMode";
        let (program, bag) = parse_text(text);
        assert!(bag.is_empty());
        let ExprKind::Block(lets, body) = &program.body.kind else { panic!("{program:?}") };
        assert_eq!(lets.len(), 2);
        assert!(matches!(&body.kind, ExprKind::Handle { callee, .. } if &*callee.name == "nll"));
        // What is printed reads back as the same text.
        let once = print_expr(&program.body, Form::Kina);
        assert_eq!(printed(&once), once);
    }

    #[test]
    fn precedence() {
        for (text, expected, printed_text) in [
            ("-a.exp() * b", "(* (- (.exp a)) b)", "-a.exp() * b"),
            ("(-a).exp()", "(.exp (- a))", "(-a).exp()"),
            ("a - b - c", "(- (- a b) c)", "a - b - c"),
            ("a - (b - c)", "(- a (- b c))", "a - (b - c)"),
            ("a + (b * c)", "(+ a (* b c))", "a + b * c"),
            ("a * b + c < d - e && f || g", "(|| (&& (< (+ (* a b) c) (- d e)) f) g)", "a * b + c < d - e && f || g"),
            ("(a < b) == c", "(== (< a b) c)", "(a < b) == c"),
            ("a --b", "(- a (- b))", "a - -b"),
            ("!a && b", "(&& (! a) b)", "!a && b"),
            ("- -(-a)", "(- (- (- a)))", "- - -a"),
            ("-(-1)", "(- -1)", "- -1"),
            ("[1] ++ xs[0]", "(++ [1] (@ xs 0))", "[1] ++ xs[0]"),
            ("-9223372036854775808", "-9223372036854775808", "-9223372036854775808"),
            ("(-9223372036854775808).f()", "(.f -9223372036854775808)", "(-9223372036854775808).f()"),
            (
                "[i + 1 for i in l if i % 2 == 0]",
                "(for i l (== (% i 2) 0) (+ i 1))",
                "[i + 1 for i in l if i % 2 == 0]",
            ),
            ("1.5e3.exp()", "(.exp 1500.0)", "1500.0.exp()"),
            ("(if a then b else c) + d", "(+ (if a b c) d)", "(if a then b else c) + d"),
            ("handle f(x) with r + 1", "(+ (handle (f x) r) 1)", "handle f(x) with r + 1"),
            ("f(*a, b=-inf)", "(f *a :b -inf)", "f(*a, b=-inf)"),
        ] {
            let (program, bag) = parse_text(text);
            assert!(bag.is_empty(), "{text}");
            assert_eq!(print_expr(&program.body, Form::Sexpr), expected, "{text}");
            assert_eq!(print_expr(&program.body, Form::Kina), printed_text, "{text}");
            assert_eq!(printed(printed_text), printed_text);
        }
    }

    #[test]
    fn blocks() {
        for (text, expected) in [
            ("let (a, b) = (1, 2,) in f(a, axis=b)", "let (a, b) = (1, 2) in\nf(a, axis=b)"),
            ("let domain = input_vjp in domain", "let domain = input_vjp in\ndomain"),
            ("let a = 1 in (let b = a in b)", "let a = 1 in\n(let b = a in\n b)"),
            ("let a = let b = 1 in b in a", "let a =\n  let b = 1 in\n  b\nin\na"),
            ("fn() { let a = 1 in a }", "fn() {\n  let a = 1 in\n  a\n}"),
        ] {
            assert_eq!(printed(text), expected, "{text}");
            assert_eq!(printed(expected), expected, "{text}");
        }
    }

    #[test]
    fn the_least_integer_is_a_literal() {
        let (program, _) = parse_text("-9223372036854775808");
        assert_eq!(program.body.kind, ExprKind::Int(i64::MIN));
        let (program, _) = parse_text("-1");
        assert!(matches!(program.body.kind, ExprKind::Unary(..)));
    }

    #[test]
    fn spans_end_where_the_expression_ends() {
        let text = "let x = a + b // c\n in x";
        let (program, _) = parse_text(text);
        let ExprKind::Block(lets, _) = &program.body.kind else { panic!() };
        let span = lets[0].value.span;
        assert_eq!(&text[span.start as usize..span.end as usize], "a + b");
    }

    #[test]
    fn text_of_any_form() {
        for text in ["\u{FEFF}x", "// ünï\r\nx", "// a\rx", "x // end", "\t\r\n x \r"] {
            assert_eq!(printed(text), "x", "{text:?}");
        }
    }

    #[test]
    fn messages() {
        for (text, code, words) in [
            ("let x = 1 let y = 2 in x", "E0101", "expected `in`, found `let`"),
            ("let x 1 in x", "E0101", "expected `=`, found `1`"),
            ("let in = 1 in x", "E0101", "found `in`"),
            ("f(a, b", "E0101", "found the end"),
            ("", "E0101", "expected an expression, found the end"),
            ("x = 3", "E0101", "found `x`"),
            ("a + * b", "E0101", "expected an expression, found `*`"),
            ("2x", "E0101", "found `2x`"),
            ("é", "E0101", "found `é`"),
            ("a --- b", "E0101", "found `---`"),
            ("tensor<F32, [2 3], @host>", "E0101", "found `3`"),
            ("tensor<F32, [-1], @host>", "E0101", "dimension"),
            ("tensor<F32, [1]>", "E0101", "found `>`"),
            ("handle f(x)", "E0101", "`with`"),
            ("x \u{1A}", "E0101", "control character"),
            ("1e999", "E0104", "too large"),
            ("(a,)", "E0105", "at least two"),
            ("a < b < c", "E0109", "do not chain"),
        ] {
            let (_, bag) = parse_text(text);
            let all: Vec<String> = bag.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
            assert_eq!(bag.error_count(), 1, "{text}: {all:?}");
            assert!(all[0].starts_with(code) && all[0].contains(words), "{text}: {all:?}");
        }
    }

    #[test]
    fn several_errors_are_reported() {
        let text = "let a = 1 + in\nlet b = f(2 in\nlet c = g(a, , b) in\nlet d = 3 4 in\nlet e = 5\nlet f = 6 in\na +";
        let (_, bag) = parse_text(text);
        let starts: Vec<u32> = bag.iter().filter_map(|d| d.primary.as_ref()).map(|l| l.span.start).collect();
        let places: Vec<usize> =
            ["in\nlet b", "in\nlet c", ", b", "4 in"].iter().filter_map(|t| text.find(t)).collect();
        for place in places {
            assert!(starts.contains(&(place as u32)), "{place} not in {starts:?}");
        }
    }

    #[test]
    fn long_chains_and_deep_texts() {
        let lets: String = (0..100_000).map(|i| format!("let a{i} = x in\n")).collect();
        let (program, bag) = parse_text(&format!("{lets} x"));
        assert!(bag.is_empty());
        assert!(matches!(&program.body.kind, ExprKind::Block(lets, _) if lets.len() == 100_000));

        let (_, bag) = parse_text(&vec!["a"; 900].join(" + "));
        assert!(bag.is_empty());
        for text in
            [vec!["a"; 100_000].join(" + "), format!("x{}", ".f()".repeat(2000)), format!("{}x", "- ".repeat(2000))]
        {
            let (_, bag) = parse_text(&text);
            let codes: Vec<&str> = bag.iter().map(|d| d.code).collect();
            assert_eq!(codes, ["E0103"]);
        }
        for text in ["(", "[", "f(", "let a = ", "fn() {", "if a then b else "] {
            let (_, bag) = parse_text(&text.repeat(100_000));
            let codes: Vec<&str> = bag.iter().map(|d| d.code).collect();
            assert_eq!(codes, ["E0102"], "{text}");
        }
        let deep = format!("{}x{}", "(".repeat(250), ")".repeat(250));
        let (_, bag) = parse_text(&deep);
        assert!(bag.is_empty());
    }
}
