//! Syntax errors in human words.

use pest::error::{Error, ErrorVariant, InputLocation};

use super::advice::Place;
use super::grammar::{Rule, Weight, describe};
use super::scan::{Kind, Token};
use super::strange::{Found, token_hint};
use crate::diagnostics::{Diagnostic, FileId, SourceMap, closest};

/// The byte offset of an error in the text that pest was given.
pub(super) fn offset(error: &Error<Rule>) -> usize {
    match error.location {
        InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
    }
}

/// Words of expression syntax that cannot be names.
const RESERVED: [&str; 15] =
    ["let", "in", "fn", "handle", "with", "tensor", "if", "then", "else", "for", "true", "false", "inf", "nan", "none"];

/// Turns pest's error into a diagnostic. `at` is its byte offset in the file; `tokens` are those of the parsed part
/// (which ends at byte `end`), in file offsets; `item` is the keyword of the rule, in a rule file.
#[allow(clippy::too_many_arguments)]
pub(super) fn syntax_error(
    sources: &SourceMap,
    file: FileId,
    error: &Error<Rule>,
    at: usize,
    end: usize,
    tokens: &[Token],
    item: Option<&str>,
) -> Diagnostic {
    let text = &*sources.file(file).text;
    let positives = match &error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives.as_slice(),
        ErrorVariant::CustomError { .. } => &[],
    };
    let found_at = tokens.iter().position(|t| t.end > at);
    let (found_at, meant) = elsewhere(positives, found_at, tokens, text, item);
    let token = found_at.map(|i| &tokens[i]);
    let near = |offset: isize| {
        let other = found_at.and_then(|i| tokens.get(i.checked_add_signed(offset)?));
        other.map_or("", |t| t.text(text))
    };
    let place = item.map(|item| Place {
        item,
        near: [near(-1), near(0), near(1)],
        positives,
        first_of_line: found_at.is_some_and(|i| {
            i.checked_sub(1).is_none_or(|k| text[tokens[k].end..tokens[i].start].contains(['\n', '\r']))
        }),
    });
    let found = match token {
        Some(t) => Found(t.text(text)).to_string(),
        None => "the end".to_string(),
    };
    let span = match token {
        // An error inside a token (`2x`): the whole token.
        Some(t) => sources.span(file, t.start, t.end),
        None => {
            let last = tokens.iter().rev().find(|t| t.end <= at).map_or(end, |t| t.end);
            sources.span(file, last, last)
        }
    };
    // Inside a token that is none, what the grammar expected says nothing.
    let is_token = token.is_none_or(|t| t.start >= at || t.kind != Kind::Stray);
    let expected = match (&meant, &place) {
        (Some((words, _)), _) => Some((*words).to_owned()),
        (None, Some(place)) => place.expected(token.is_none()).map(str::to_owned).or_else(|| expected_words(positives)),
        (None, None) => expected_words(positives),
    };
    let expected = expected.filter(|_| is_token || meant.is_some());
    let (message, label) = match &expected {
        Some(words) => (format!("expected {words}, found {found}"), format!("expected {words}")),
        _ => (format!("unexpected {found}"), "not understood".to_owned()),
    };
    let mut d = Diagnostic::error("E0101", message).at(span, label);
    if let Some(open) = unclosed(tokens, at).filter(|_| meant.is_none()) {
        d = d.also(sources.span(file, open.start, open.end), "still open here");
        // `g_x =` in brackets that were to end before it.
        let bracket = open.text(text);
        let starts_line = place.as_ref().is_some_and(|p| p.first_of_line);
        if starts_line && near(1) == "=" && bracket != "{" && !positives.contains(&Rule::ident) {
            return d.help(format!("close the `{bracket}` before `{} =`, which starts a statement", near(0)));
        }
    }
    let help = meant.map(|(_, help)| help.to_owned());
    let touch = found_at.and_then(|i| Some(tokens[i.checked_sub(1)?].end == tokens[i].start)) == Some(true);
    let before = if touch && (near(-1), near(0)) == ("*", "*") { "**" } else { near(-1) };
    let help = help.or_else(|| hint(positives, token, place.as_ref(), [near(-2), before, near(0), near(1)]));
    d.help(help.unwrap_or_else(|| match (expected, token) {
        (Some(words), Some(_)) => format!("put {words} here, or remove {found}"),
        (Some(words), None) => format!("put {words} here"),
        (None, _) => format!("remove {found}"),
    }))
}

/// Another token than the one at which the grammar gave up, where a slip of rule writers explains the fault: the index of
/// that token, what is expected there, and the way out.
fn elsewhere(
    positives: &[Rule],
    at: Option<usize>,
    tokens: &[Token],
    text: &str,
    item: Option<&str>,
) -> (Option<usize>, Option<(&'static str, &'static str)>) {
    let nothing = (at, None);
    let (Some(item), Some(i)) = (item, at) else { return nothing };
    let word = |i: usize| tokens.get(i).map_or("", |t| t.text(text));
    let Some(before) = i.checked_sub(1) else { return nothing };
    // `where s = shape(x)`
    if matches!(word(before), "where" | "when" | "domain" | "kink" | "example") && word(i + 1) == "=" {
        return (Some(i + 1), Some(("`==`", "conditions compare with `==`; `=` binds a name")));
    }
    // A `def` whose last line is a plain expression.
    let behind_name = positives.contains(&Rule::assign) && !positives.contains(&Rule::infix);
    let has_result = || tokens.iter().any(|t| t.text(text) == "=>");
    if item == "def" && behind_name && tokens[before].kind == Kind::Word && !has_result() {
        let help = "the last line of a `def` is its result: `=> expression`";
        return (Some(before), Some(("`=>` or a statement such as `name = expression`", help)));
    }
    nothing
}

/// `a, b or c`, the most specific expectations only, in grammar-independent order.
fn expected_words(positives: &[Rule]) -> Option<String> {
    // Behind an operand a call or an index may follow: their brackets are not what is missing.
    let behind_operand = positives.contains(&Rule::infix);
    // In an S-expression anything may stand anywhere: only closing brackets can be missing.
    let among_data = positives.contains(&Rule::stray);
    let shown = positives.iter().filter(|r| match r {
        Rule::close_paren | Rule::close_bracket | Rule::EOI => true,
        Rule::open_paren | Rule::open_bracket => !behind_operand && !among_data,
        _ => !among_data,
    });
    let described: Vec<(&str, Weight)> = shown.filter_map(|r| describe(*r)).collect();
    let weight = described.iter().map(|(_, w)| *w).max()?;
    let mut words: Vec<&str> = described.iter().filter(|(_, w)| *w == weight).map(|(words, _)| *words).collect();
    words.sort_unstable();
    words.dedup();
    if words.len() > 1 {
        words.retain(|w| *w != "the end");
    }
    let (last, head) = words.split_last()?;
    Some(if head.is_empty() { (*last).to_string() } else { format!("{} or {last}", head.join(", ")) })
}

/// The way out. `near` are the texts of the two tokens before the one that was found, of that one, and of the next.
fn hint(positives: &[Rule], token: Option<&Token>, place: Option<&Place<'_>>, near: [&str; 4]) -> Option<String> {
    let [second_last, before, found, next] = near;
    let kind = token.map(|t| t.kind);
    let wants = |rule: Rule| positives.contains(&rule);
    let special = match kind {
        Some(Kind::Stray | Kind::Number) => token_hint(found),
        Some(Kind::Bar) => {
            Some("three minus signs are the bar of a rule; write `-(-(-x))` for three negations".to_owned())
        }
        _ => None,
    };
    let behind_expression = wants(Rule::infix);
    // `wher rank(x) > 0`
    let statement = closest(before, ["where", "when", "domain", "kink", "example", "not_a_derivative"]);
    let help = if special.is_some() {
        return special;
    } else if let Some(help) = place.and_then(Place::help) {
        return Some(help);
    } else if RESERVED.contains(&found) && (wants(Rule::ident) || wants(Rule::tuple_pattern) || wants(Rule::param)) {
        return Some(format!("`{found}` is a reserved word: choose another name"));
    } else if found == "#" || (found, next) == ("/", "*") {
        "comments start with `//`"
    } else if wants(Rule::kw_in) && second_last == "for" {
        "write `[expression for name in list]`"
    } else if wants(Rule::kw_in) {
        "a `let name = value` is followed by `in`"
    } else if found == ";" {
        "nothing ends with `;`: a `let` is followed by `in`"
    } else if wants(Rule::kw_with) {
        "write `handle f(x) with reverseMode`"
    } else if (before, kind) == (".", Some(Kind::Number)) {
        "parts of a tuple get names: `let (a, b) = t in ..`"
    } else if let Some(word) = statement.filter(|_| wants(Rule::assign)) {
        return Some(format!("did you mean `{word}`?"));
    } else if next == "=" && kind == Some(Kind::Word) && !wants(Rule::ident) {
        return Some(format!(
            "`{found} =` starts a statement; is something missing before it? Equality is written `==`"
        ));
    } else if found == "=" && behind_expression {
        "equality is written `==`"
    } else if behind_expression && found == "^" || before == "**" {
        "a power is `x * x` or `pow(x, y)`"
    } else if behind_expression && ["@", "&", "|", "~", "?"].contains(&found) {
        "operators are `+ - * /` and comparisons; everything else is a call, `f(x, y)` or `x.f(y)`"
    } else {
        return None;
    };
    Some(help.to_owned())
}

/// The innermost bracket that is open at byte `at`.
fn unclosed(tokens: &[Token], at: usize) -> Option<Token> {
    let mut open: Vec<Token> = Vec::new();
    for t in tokens.iter().take_while(|t| t.start < at) {
        match t.kind {
            Kind::Open(_) => open.push(*t),
            Kind::Close(bracket) => {
                if let Some(i) = open.iter().rposition(|o| o.kind == Kind::Open(bracket)) {
                    open.truncate(i);
                }
            }
            _ => {}
        }
    }
    open.pop()
}
