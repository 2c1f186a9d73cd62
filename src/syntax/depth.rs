//! What is refused before pest sees a text, and the stack on which the rest may recurse.

use super::form::Form;
use super::scan::{Kind, Token};
use crate::diagnostics::{Diagnostic, FileId, SourceMap};

/// How deep brackets, `let`s inside the value of a `let` and `if`s may nest in Kina text and in rule files. Somewhat
/// more than [`super::MAX_HEIGHT`], so that every program that was read, in whatever form, can be written in Kina.
pub const MAX_NESTING: usize = 1024;

/// How deep the brackets of an S-expression may nest: a level of the tree takes three at most, in the value of a `let`.
pub const MAX_BRACKETS: usize = 3 * MAX_NESTING;

/// Largest text in bytes.
pub const MAX_TEXT: usize = 64 << 20;

/// Longest name in characters. Messages show names in full.
pub const MAX_NAME: usize = 255;

/// Enough for [`MAX_NESTING`] levels of an unoptimised pest parser, for [`MAX_BRACKETS`] of its simplest rules and for [`super::MAX_HEIGHT`] levels of any walk
/// over trees, several times over. The memory is only reserved; what is not used costs nothing.
const STACK: usize = 512 << 20;

/// Runs `f` on a thread with a fixed, big stack, so that what is accepted does not depend on the caller's stack.
/// If the system refuses such a thread, `f` runs where it is.
pub fn on_big_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    let mut f = Some(f);
    let mut result = None;
    std::thread::scope(|scope| {
        let (f, result) = (&mut f, &mut result);
        let body = move || *result = f.take().map(|f| f());
        // A panic of the body is propagated by the scope when it joins.
        let _ = std::thread::Builder::new().name("kina-front".into()).stack_size(STACK).spawn_scoped(scope, body);
    });
    match (result, f) {
        (Some(value), _) => value,
        (None, Some(f)) => f(),
        (None, None) => unreachable!("a panic inside was propagated by the scope"),
    }
}

/// Threads that [`all_on_big_stacks`] has at most.
const WORKERS: usize = 4;

/// Results of `f` in the order of `inputs`, several at a time, as [`on_big_stack`] for each.
pub(super) fn all_on_big_stacks<I: Copy + Sync, T: Send>(inputs: &[I], f: impl Fn(I) -> T + Sync) -> Vec<T> {
    let workers = WORKERS.min(inputs.len());
    let mut results: Vec<Vec<T>> = Vec::new();
    results.resize_with(workers, Vec::new);
    std::thread::scope(|scope| {
        for (worker, results) in results.iter_mut().enumerate() {
            let own = inputs.iter().skip(worker).step_by(workers);
            let body = || results.extend(own.map(|input| f(*input)));
            // Whoever is refused leaves its share undone.
            let _ = std::thread::Builder::new().name("kina-front".into()).stack_size(STACK).spawn_scoped(scope, body);
        }
    });
    let mut results: Vec<_> = results.into_iter().map(Vec::into_iter).collect();
    let each = inputs.iter().enumerate();
    each.map(|(i, input)| results[i % workers].next().unwrap_or_else(|| on_big_stack(|| f(*input)))).collect()
}

/// Refuses a text that is too large, too deep, has a name that is too long, or contains the character that recovery uses as a marker.
pub(super) fn refuse(sources: &SourceMap, file: FileId, form: Form, tokens: &[Token]) -> Option<Diagnostic> {
    let text = &*sources.file(file).text;
    if text.len() > MAX_TEXT {
        return Some(
            Diagnostic::error("E0108", format!("the file has {} bytes, the limit is {MAX_TEXT}", text.len()))
                .at(sources.span(file, 0, 0), "this file")
                .help("split it"),
        );
    }
    for t in tokens {
        if t.kind == Kind::Word && t.end - t.start > MAX_NAME {
            return Some(
                Diagnostic::error(
                    "E0112",
                    format!("a name of {} characters, the limit is {MAX_NAME}", t.end - t.start),
                )
                .at(sources.span(file, t.start, t.start + MAX_NAME), "too long")
                .help("choose a shorter name"),
            );
        }
        if t.kind == Kind::Stray && t.text(text).starts_with('\u{1A}') {
            return Some(
                Diagnostic::error("E0101", "unexpected control character U+001A")
                    .at(sources.span(file, t.start, t.end), "here")
                    .help("remove it"),
            );
        }
    }
    let (deep, limit) = match form {
        Form::Kina => (too_deep(text, tokens)?, MAX_NESTING),
        Form::Sexpr => (too_many_brackets(tokens)?, MAX_BRACKETS),
    };
    Some(
        Diagnostic::error("E0102", format!("nested more than {limit} levels deep"))
            .at(sources.span(file, deep.start, deep.end), "the limit is reached here")
            .help("bind inner parts with `let` (in rules: with `name = expression` lines)"),
    )
}

/// One level of nesting.
#[derive(Clone, Copy)]
struct Level {
    /// The bracket, or `l` for a `let` whose `in` is still to come.
    open: u8,
    /// `if`s of the current expression: each `else` branch nests.
    ifs: usize,
}

/// The token at which nesting exceeds [`MAX_NESTING`].
fn too_deep(text: &str, tokens: &[Token]) -> Option<Token> {
    let mut levels = vec![Level { open: 0, ifs: 0 }];
    let mut ifs = 0;
    for token in tokens {
        let top = levels.last_mut()?;
        match (token.kind, token.text(text)) {
            (Kind::Open(open), _) => levels.push(Level { open, ifs: 0 }),
            (Kind::Close(open), _) => {
                if let Some(depth) = levels.iter().rposition(|l| l.open == open) {
                    ifs -= levels[depth..].iter().map(|l| l.ifs).sum::<usize>();
                    levels.truncate(depth);
                }
            }
            (Kind::Word, "let") => levels.push(Level { open: b'l', ifs: 0 }),
            (Kind::Word, "in") if top.open == b'l' => {
                ifs -= top.ifs;
                levels.pop();
            }
            (Kind::Word, "if") => {
                top.ifs += 1;
                ifs += 1;
            }
            // A new argument, element or statement.
            (Kind::Punctuation, "," | "=" | "=>") => {
                ifs -= top.ifs;
                top.ifs = 0;
            }
            _ => {}
        }
        if levels.len() - 1 + ifs > MAX_NESTING {
            return Some(*token);
        }
    }
    None
}

/// The bracket that is nested deeper than [`MAX_BRACKETS`].
fn too_many_brackets(tokens: &[Token]) -> Option<Token> {
    let mut depth = 0usize;
    for token in tokens {
        match token.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_BRACKETS {
            return Some(*token);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::scan::scan;
    use super::*;

    fn deep(text: &str) -> bool {
        too_deep(text, &scan(text, Form::Kina)).is_some()
    }

    #[test]
    fn nesting_is_counted_and_chains_are_not() {
        assert!(!deep(&"(".repeat(MAX_NESTING)));
        assert!(deep(&"(".repeat(MAX_NESTING + 1)));
        assert!(deep(&"let a = ".repeat(MAX_NESTING + 1)));
        assert!(!deep(&"let a = (1) in ".repeat(5000)));
        assert!(deep(&"if a then b else ".repeat(MAX_NESTING + 1)));
        assert!(!deep(&"x = if a then b else c\n".repeat(5000)));
        assert!(!deep(&"f(if a then b else c)".repeat(5000)));
        assert!(!deep(&")".repeat(5000)));
    }

    #[test]
    fn long_names_are_refused_and_long_comments_are_not() {
        let refused = |text: &str| {
            let mut sources = SourceMap::new();
            let file = sources.add("t", text);
            refuse(&sources, file, Form::Kina, &scan(text, Form::Kina)).map(|d| d.code)
        };
        let (name, longer) = ("n".repeat(MAX_NAME), "n".repeat(MAX_NAME + 1));
        assert_eq!(refused(&format!("x + {name}")), None);
        assert_eq!(refused(&format!("x // {longer}\n + 1{longer}")), None);
        assert_eq!(refused(&format!("x + {longer}")), Some("E0112"));
    }

    #[test]
    fn the_big_stack_returns_what_it_computed() {
        fn down(n: u32) -> u32 {
            let block = std::hint::black_box([n; 256]);
            if n == 0 { 0 } else { down(n - 1) + block[3] / n }
        }
        assert_eq!(on_big_stack(|| down(50_000)), 50_000);
        let depths: Vec<u32> = (0..11).map(|i| 20_000 + i).collect();
        assert_eq!(all_on_big_stacks(&depths, down), depths);
        assert!(all_on_big_stacks(&[], down).is_empty());
    }
}
