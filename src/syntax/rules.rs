//! Parsing rule files, item by item.
//!
//! A file is cut at its item keywords before pest sees it, so that a faulty item does not hide the next one: those words
//! start an item wherever they are the first of a line and no punctuation follows.

use std::sync::Arc;

use pest::Parser;

use super::ast::{Arg, DefItem, DefParam, Expr, ExprKind, Ident, Item, Line, RewriteItem, RuleFile, VjpItem};
use super::depth::{all_on_big_stacks, on_big_stack, refuse};
use super::error::{offset, syntax_error};
use super::expr::{Builder, Node};
use super::form::Form;
use super::grammar::{KinaParser, Rule};
use super::scan::{Kind, Token, scan};
use super::statements::{body_end, item_word, report_faults};
use super::strange::Found;
use crate::diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};

/// Parses a rule file. Faulty items are reported (E01xx) and left out.
pub fn parse_rules(sources: &SourceMap, file: FileId, bag: &mut Diagnostics) -> RuleFile {
    on_big_stack(|| parse(sources, file, bag))
}

/// Parses several rule files at a time, each with a bag of its own.
pub fn parse_rule_files(sources: &SourceMap, files: &[FileId]) -> Vec<(RuleFile, Diagnostics)> {
    all_on_big_stacks(files, |file| {
        let mut bag = Diagnostics::new();
        (parse(sources, file, &mut bag), bag)
    })
}

fn parse(sources: &SourceMap, file: FileId, bag: &mut Diagnostics) -> RuleFile {
    let text = &*sources.file(file).text;
    let tokens = scan(text, Form::Kina);
    let mut items = RuleFile::default();
    if let Some(refusal) = refuse(sources, file, Form::Kina, &tokens) {
        bag.push(refusal);
        items.is_refused = true;
        return items;
    }
    let starts = item_starts(&tokens, text);
    let first = starts.first().copied().unwrap_or(tokens.len());
    let word = |token: Option<&Token>| token.map_or("", |t| t.text(text));
    let name_of = |tokens: &[Token]| word(tokens.get(1 + usize::from(word(tokens.first()) == "override"))).into();
    let stray = |tokens: &[Token], faulty: &mut Vec<Arc<str>>, bag: &mut Diagnostics| {
        if let Some(first) = tokens.first() {
            // `vpj sin {`: what it was to be, others may use.
            faulty.push(word(tokens.get(1)).into());
            bag.push(no_item(sources, file, first, word(tokens.get(1))));
        }
    };
    stray(&tokens[..first], &mut items.faulty, bag);
    for (i, start) in starts.iter().enumerate() {
        let end = starts.get(i + 1).copied().unwrap_or(tokens.len());
        let (tokens, behind) = tokens[*start..end].split_at(item_end(&tokens[*start..end]));
        let (Some(head), Some(last)) = (tokens.first(), tokens.last()) else { continue };
        match KinaParser::parse(Rule::item, &text[head.start..last.end]) {
            Ok(pairs) => {
                let builder = Builder { sources, file, base: head.start, bag, too_high: false };
                let mut reader = ItemReader { builder, doc: doc_above(text, head.start) };
                let rules = [Rule::import, Rule::vjp, Rule::rewrite, Rule::def];
                let item = pairs.flatten().find(|p| rules.contains(&p.as_rule()));
                let errors = reader.builder.bag.error_count();
                let item = item.and_then(|p| reader.item(p));
                if reader.builder.bag.error_count() == errors {
                    items.items.extend(item);
                } else {
                    items.faulty.push(name_of(tokens));
                }
            }
            Err(error) => {
                let at = head.start + offset(&error);
                let fault = syntax_error(sources, file, &error, at, last.end, tokens, Some(item_word(tokens, text)));
                report_faults(sources, file, tokens, (at, fault), bag);
                items.faulty.push(name_of(tokens));
            }
        }
        stray(behind, &mut items.faulty, bag);
    }
    items
}

/// How many of the tokens from an item's keyword to the next item's belong to it: with its closing brace it ends.
pub(super) fn item_end(tokens: &[Token]) -> usize {
    match tokens.iter().position(|t| t.kind == Kind::Open(b'{')) {
        Some(open) => (body_end(tokens, open) + 1).min(tokens.len()),
        None => tokens.len(),
    }
}

/// Reports what stands between items.
fn no_item(sources: &SourceMap, file: FileId, token: &Token, next: &str) -> Diagnostic {
    let found = token.text(&sources.file(file).text);
    let message = format!("expected `vjp`, `rewrite`, `def` or `import`, found {}", Found(found));
    let otherwise = match (found, next) {
        ("}", _) => "remove it: the item before it has ended",
        ("#", _) | ("/", "*") => "comments start with `//`",
        _ => "a rule file is a list of `vjp`, `rewrite` and `def` items",
    };
    Diagnostic::error("E0101", message)
        .at(sources.span(file, token.start, token.end), "not the start of a rule")
        .did_you_mean_or(found, ["vjp", "rewrite", "def", "import", "override"], otherwise)
}

/// Indices of the tokens that start an item.
pub(super) fn item_starts(tokens: &[Token], text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    for (i, t) in tokens.iter().enumerate() {
        let previous_end = i.checked_sub(1).map_or(0, |p| tokens[p].end);
        let first_of_line = i == 0 || text[previous_end..t.start].contains(['\n', '\r']);
        let closed = i.checked_sub(1).is_some_and(|p| tokens[p].kind == Kind::Close(b'{'));
        if t.kind != Kind::Word || !(first_of_line || closed) {
            continue;
        }
        let next = tokens.get(i + 1);
        let is_start = match t.text(text) {
            "vjp" | "rewrite" | "def" | "override" | "import" => next.is_none_or(|n| n.kind != Kind::Punctuation),
            _ => false,
        };
        if is_start {
            starts.push(i);
        }
    }
    starts
}

/// The `///` lines directly above byte `start`. What shares its line with the end of another item has none.
fn doc_above(text: &str, start: usize) -> String {
    let mut line_start = text[..start].rfind(['\n', '\r']).map_or(0, |i| i + 1);
    if !text[line_start..start].trim_start_matches('\u{FEFF}').trim().is_empty() {
        return String::new();
    }
    let mut lines: Vec<&str> = Vec::new();
    while line_start > 0 {
        let above = &text[..line_start];
        let above = above.strip_suffix("\r\n").or(above.strip_suffix(['\n', '\r'])).unwrap_or(above);
        line_start = above.rfind(['\n', '\r']).map_or(0, |i| i + 1);
        let line = above[line_start..].trim_start_matches('\u{FEFF}').trim();
        match line.strip_prefix("///") {
            Some(doc) if !doc.starts_with('/') => lines.push(doc.strip_prefix(' ').unwrap_or(doc)),
            _ => break,
        }
    }
    lines.reverse();
    lines.join("\n")
}

struct ItemReader<'a> {
    builder: Builder<'a>,
    doc: String,
}

impl ItemReader<'_> {
    fn item(&mut self, pair: Node<'_>) -> Option<Item> {
        let span = self.builder.span(&pair);
        self.one_statement_per_line(&pair);
        match pair.as_rule() {
            Rule::import => {
                let path = pair.into_inner().find(|p| p.as_rule() == Rule::path)?;
                Some(Item::Import { path: path.as_str().trim_matches('"').into(), span: self.builder.span(&path) })
            }
            Rule::vjp => self.vjp(pair, span).map(Item::Vjp),
            Rule::rewrite => self.rewrite(pair, span).map(Item::Rewrite),
            Rule::def => self.def(pair, span).map(Item::Def),
            _ => None,
        }
    }

    /// Statements start on new lines, so that a forgotten operator is an error and not two statements.
    fn one_statement_per_line(&mut self, item: &Node<'_>) {
        let base = self.builder.base;
        let text = self.builder.sources.file(self.builder.file).text.clone();
        for part in item.clone().into_inner().filter(|p| matches!(p.as_rule(), Rule::line | Rule::bar)) {
            let start = base + part.as_span().start();
            let line_start = text[..start].rfind(['\n', '\r']).map_or(0, |i| i + 1);
            let before = text[line_start..start].trim_end();
            if !before.trim().is_empty() && !before.ends_with('{') {
                let span = self.builder.span(&part);
                let diagnostic = match part.as_rule() {
                    Rule::bar => Diagnostic::error("E0107", "a bar has a line of its own")
                        .at(span, "behind something else")
                        .help("put the bar on the next line"),
                    _ => Diagnostic::error("E0107", "each statement starts on a line of its own")
                        .at(Span { end: span.start + 1, ..span }, "a second statement on this line")
                        .help("break the line here, or join the parts with an operator"),
                };
                self.builder.bag.push(diagnostic);
            }
        }
    }

    fn expr(&mut self, pair: Node<'_>) -> Expr {
        self.builder.expr(pair).expr
    }

    fn vjp(&mut self, pair: Node<'_>, span: Span) -> Option<VjpItem> {
        let (mut idents, mut lines, mut premise, mut is_override) = (Vec::new(), Vec::new(), None, false);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::kw_override => is_override = true,
                Rule::ident => idents.push(self.builder.ident(&part)),
                Rule::premise => premise = self.premise(part),
                Rule::line => lines.extend(self.line(part)),
                _ => {}
            }
        }
        let (result, premise) = premise?;
        let mut idents = idents.into_iter();
        let doc = std::mem::take(&mut self.doc);
        Some(VjpItem { doc, is_override, op: idents.next()?, alternative: idents.next(), result, premise, lines, span })
    }

    /// `y = op(x, *xs, axis, keepdims=false)`: names, and constants by name.
    fn premise(&mut self, pair: Node<'_>) -> Option<(Ident, Expr)> {
        let mut parts = pair.into_inner();
        let result = parts.next().map(|p| self.builder.ident(&p))?;
        let callee = parts.find(|p| p.as_rule() == Rule::ident).map(|p| self.builder.ident(&p))?;
        let args = parts.find(|p| p.as_rule() == Rule::args)?;
        let span = callee.span.to(self.builder.span(&args));
        let mut height = 0;
        let args = self.builder.args(args, &mut height);
        for arg in &args {
            if !is_premise_arg(arg) {
                self.builder.bag.push(
                    Diagnostic::error("E0106", "a premise holds names, and constants given by name")
                        .at(arg.value.span, "not a plain name")
                        .help("write `y = op(x, axis)`, or `keepdims=false` to fix an attribute"),
                );
            }
        }
        let kind = ExprKind::Call { callee, args, method: false };
        Some((result, Expr { kind, span }))
    }

    fn rewrite(&mut self, pair: Node<'_>, span: Span) -> Option<RewriteItem> {
        let (mut idents, mut sides, mut lines, mut both_ways) = (Vec::new(), Vec::new(), Vec::new(), false);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => idents.push(self.builder.ident(&part)),
                Rule::both_ways => both_ways = true,
                Rule::expr => sides.push(self.expr(part)),
                Rule::line => lines.extend(self.line(part)),
                _ => {}
            }
        }
        let (mut idents, mut sides) = (idents.into_iter(), sides.into_iter());
        Some(RewriteItem {
            doc: std::mem::take(&mut self.doc),
            name: idents.next()?,
            class: idents.next()?,
            left: sides.next()?,
            right: sides.next()?,
            both_ways,
            lines,
            span,
        })
    }

    fn def(&mut self, pair: Node<'_>, span: Span) -> Option<DefItem> {
        let (mut name, mut params, mut lines, mut result) = (None, Vec::new(), Vec::new(), None);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => name = Some(self.builder.ident(&part)),
                Rule::def_param => {
                    let mut parts = part.into_inner();
                    let name = parts.next().map(|p| self.builder.ident(&p))?;
                    let (mut default, mut words) = (None, Vec::new());
                    for part in parts {
                        match part.as_rule() {
                            Rule::expr => default = Some(self.expr(part)),
                            Rule::words => {
                                let all = part.into_inner().filter(|p| p.as_rule() == Rule::word_of);
                                words.extend(all.map(|p| self.builder.ident(&p)));
                            }
                            _ => {}
                        }
                    }
                    params.push(DefParam { name, default, words });
                }
                Rule::line => lines.extend(self.line(part)),
                Rule::expr => result = Some(self.expr(part)),
                _ => {}
            }
        }
        let doc = std::mem::take(&mut self.doc);
        Some(DefItem { doc, name: name?, params, lines, result: result?, span })
    }

    fn line(&mut self, pair: Node<'_>) -> Option<Line> {
        let pair = pair.into_inner().next()?;
        let rule = pair.as_rule();
        let span = self.builder.span(&pair);
        let (mut idents, mut exprs) = (Vec::new(), Vec::new());
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => idents.push(self.builder.ident(&part)),
                Rule::expr => exprs.push(self.expr(part)),
                _ => {}
            }
        }
        let (mut idents, mut exprs) = (idents.into_iter(), exprs.into_iter());
        Some(match rule {
            Rule::where_line => Line::Where(exprs.next()?),
            Rule::when_line => Line::When(exprs.next()?),
            Rule::domain => Line::Domain(exprs.next()?),
            Rule::example => {
                let condition = exprs.next()?;
                let conclusion = idents.next().zip(exprs.next());
                let end = conclusion.as_ref().map_or(condition.span.end, |(_, value)| value.span.end);
                Line::Example { condition, conclusion, span: Span { end, ..span } }
            }
            Rule::kw_not_a_derivative => Line::NotADerivative(span),
            Rule::kink => {
                let (condition, name, value) = (exprs.next()?, idents.next()?, exprs.next()?);
                let span = Span { end: value.span.end, ..span };
                Line::Kink { condition, name, value, span }
            }
            Rule::bind_each => Line::BindIndexed { name: idents.next()?, index: idents.next()?, value: exprs.next()? },
            _ => Line::Bind { name: idents.next()?, value: exprs.next()? },
        })
    }
}

fn is_premise_arg(arg: &Arg) -> bool {
    match &arg.value.kind {
        ExprKind::Name(_) => true,
        ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::List(_) | ExprKind::NoCotangent => {
            arg.name.is_some() && !arg.spread
        }
        ExprKind::Unary(_, value) => {
            arg.name.is_some() && !arg.spread && matches!(value.kind, ExprKind::Int(_) | ExprKind::Float(_))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::print::print_expr;
    use super::*;

    fn parse_text(text: &str) -> (Vec<Item>, Diagnostics) {
        let mut sources = SourceMap::new();
        let file = sources.add("t.rules", text);
        let mut bag = Diagnostics::new();
        let rules = parse_rules(&sources, file, &mut bag);
        (rules.items, bag)
    }

    fn items(text: &str) -> Vec<Item> {
        let (items, bag) = parse_text(text);
        assert!(bag.is_empty(), "{text}: {:?}", bag.iter().next());
        items
    }

    const DESIGN: &str = "import \"phase1.rules\"
/// Log-domain softmax cotangent;
/// exp(y) avoids recomputing the max shift.
vjp log_softmax {
  y = log_softmax(x, axis)
  ------------------------
  s   = exp(y)   // softmax
  g_x = g_y - broadcast(sum(g_y, axis, keepdims=true), shape(x)) * s
}
vjp take_along_axis {
  y = take_along_axis(values, indices, axis)
  ─────────
  g_values  = scatter_along_axis(axis, g_y, indices, type(values))
  g_indices = none
}
rewrite exp_of_log_softmax [real] {
  exp(log_softmax(x, axis)) => softmax(x, axis)
}
override vjp abs as other {
  y = abs(x)
  ---
  where rank(x) > 0 && dtype(x) == F32
  domain x > 0
  g_x = g_y * sign(x)
  kink x == 0: g_x = 0
  example abs([1.0, -2.0])
  example x == 2.0: g_x = 1.0
  not_a_derivative
}
vjp concat { y = concat(*xs, axis)
  ---
  g_xs[i] = slice(g_y, axis, if i == 0 then 0 else [dim(x, axis) for x in xs if true][i - 1] ++ [1])
}
def layer_norm(x, axis = -1, eps = 1e-5) {
  d   = x - broadcast(mean(x, axis, keepdims=true),
                      shape(x))
  var = mean(d * d, axis,
    keepdims=true)
  => d *
     broadcast(rsqrt(var + eps), shape(x))
}
rewrite commute [exact] {
  a <= b <=> b + c
  c = a
  domain a > 0
}
def one(x) { => x }";

    #[test]
    fn the_rule_language_of_the_design() {
        let items = items(DESIGN);
        assert_eq!(items.len(), 9);
        assert!(matches!(&items[0], Item::Import { path, .. } if &**path == "phase1.rules"));
        let Item::Vjp(log_softmax) = &items[1] else { panic!() };
        assert_eq!(log_softmax.doc, "Log-domain softmax cotangent;\nexp(y) avoids recomputing the max shift.");
        assert_eq!(print_expr(&log_softmax.premise, Form::Kina), "log_softmax(x, axis)");
        let Line::Bind { name, value } = &log_softmax.lines[1] else { panic!() };
        assert_eq!(&*name.name, "g_x");
        assert_eq!(print_expr(value, Form::Kina), "g_y - broadcast(sum(g_y, axis, keepdims=true), shape(x)) * s");
        let Item::Vjp(abs) = &items[4] else { panic!() };
        assert!(abs.is_override && abs.doc.is_empty());
        assert_eq!(abs.alternative.as_ref().map(|n| &*n.name), Some("other"));
        let kinds: Vec<&str> = abs
            .lines
            .iter()
            .map(|l| match l {
                Line::Bind { .. } => "bind",
                Line::BindIndexed { .. } => "each",
                Line::Where(_) => "where",
                Line::When(_) => "when",
                Line::Domain(_) => "domain",
                Line::Kink { .. } => "kink",
                Line::Example { .. } => "example",
                Line::NotADerivative(_) => "not",
            })
            .collect();
        assert_eq!(kinds, ["where", "domain", "bind", "kink", "example", "example", "not"]);
        let Item::Vjp(concat) = &items[5] else { panic!() };
        assert_eq!(print_expr(&concat.premise, Form::Kina), "concat(*xs, axis)");
        assert!(matches!(&concat.lines[0], Line::BindIndexed { index, .. } if &*index.name == "i"));
        let Item::Def(def) = &items[6] else { panic!() };
        assert_eq!(def.params.len(), 3);
        assert_eq!(print_expr(&def.result, Form::Kina), "d * broadcast(rsqrt(var + eps), shape(x))");
        let Item::Rewrite(rewrite) = &items[3] else { panic!() };
        assert!(!rewrite.both_ways);
    }

    #[test]
    fn arrows_are_not_comparisons() {
        let items = items("rewrite r [exact] {\n a <= b <=> b >= a\n c = a\n}");
        let Item::Rewrite(rewrite) = &items[0] else { panic!() };
        assert!(rewrite.both_ways);
        assert_eq!(
            (print_expr(&rewrite.left, Form::Kina).as_str(), print_expr(&rewrite.right, Form::Kina).as_str()),
            ("a <= b", "b >= a")
        );
        assert_eq!(rewrite.lines.len(), 1);
    }

    #[test]
    fn line_ends_of_any_form() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("\u{FEFF}{}", DESIGN.replace('\n', end));
            let items = items(&text);
            assert_eq!(items.len(), 9, "{end:?}");
            let Item::Vjp(vjp) = &items[1] else { panic!() };
            assert_eq!(vjp.doc.lines().count(), 2, "{end:?}");
        }
    }

    #[test]
    fn messages() {
        for (text, code, words) in [
            ("vjp f {\n y = f(x)\n g_x = g_y\n}", "E0101", "bar"),
            ("vjp f {\n y = f(x)\n --\n g_x = g_y\n}", "E0101", "bar"),
            ("vjp f {\n y = f(x) + 1\n ---\n g_x = g_y\n}", "E0101", "found `+`"),
            ("vjp f {\n y = f(x, 2)\n ---\n g_x = g_y\n}", "E0106", "names"),
            ("vjp f {\n y = f(x)\n ---\n g_x = g_y +\n s = x\n}", "E0101", "expected an expression, found `s`"),
            ("vjp f {\n y = f(x)\n ---\n g_x = g_y s = x\n}", "E0107", "line of its own"),
            ("vjp f {\n y = f(x)\n ---\n g_x = g_y", "E0101", "`}`"),
            ("rewrite r {\n a => b\n}", "E0101", "expected `[`"),
            ("rewrite r [exact] {\n a = b\n}", "E0101", "found `a`"),
            ("def f(x) {\n a = x\n}", "E0101", "`=>`"),
            ("hello\nimport \"a\"", "E0101", "found `hello`"),
            ("import a", "E0101", "path in double quotes"),
        ] {
            let (_, bag) = parse_text(text);
            let all: Vec<String> = bag.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
            assert_eq!(bag.error_count(), 1, "{text}: {all:?}");
            assert!(all[0].starts_with(code) && all[0].contains(words), "{text}: {all:?}");
        }
    }

    #[test]
    fn one_faulty_item_does_not_hide_the_others() {
        let good = "def g(x) {\n => x\n}\n";
        let (items, bag) = parse_text(&format!("vjp f {{ (\n{good}rewrite ( {{\n}}\n{good}vjp h {{\n y = h(\n{good}"));
        assert_eq!(items.len(), 3);
        assert_eq!(bag.error_count(), 3);
    }
}
