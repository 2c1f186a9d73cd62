//! The hash of a rule set: of what its rules say, in a text that has one form.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::hash::Hasher;
use std::sync::OnceLock;

use siphasher::sip::SipHasher24;

use crate::diagnostics::Span;
use crate::syntax::ast::{DefItem, Expr, Item, Line, RewriteItem, VjpItem};
use crate::syntax::{Form, on_big_stack, print_expr};

/// The items that a rule set was compiled from, and their hash once it was asked for.
#[derive(Debug, Default)]
pub struct Content {
    items: Vec<Item>,
    hash: OnceLock<u64>,
}

impl Content {
    pub fn new(items: Vec<Item>) -> Self {
        Content { items, hash: OnceLock::new() }
    }

    /// The place of the VJP that an `override` with this name replaces.
    pub fn replaced(&self, op: &str, alternative: Option<&str>) -> Option<Span> {
        let mut same = self.items.iter().filter_map(|item| match item {
            Item::Vjp(vjp) if &*vjp.op.name == op => {
                (vjp.alternative.as_ref().map(|a| &*a.name) == alternative).then_some(vjp)
            }
            _ => None,
        });
        let is_overridden = same.clone().any(|vjp| vjp.is_override);
        same.find(|vjp| is_overridden && !vjp.is_override).map(|vjp| vjp.op.span)
    }

    pub fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| {
            let mut hasher = SipHasher24::new();
            for text in on_big_stack(|| canonical(&self.items)) {
                hasher.write_u64(text.len() as u64);
                hasher.write(text.as_bytes());
            }
            hasher.finish()
        })
    }
}

/// The texts of all items that have an effect, sorted.
fn canonical(items: &[Item]) -> Vec<String> {
    let key = |vjp: &VjpItem| (vjp.op.name.clone(), vjp.alternative.as_ref().map(|a| a.name.clone()));
    let replaced: BTreeSet<_> = items
        .iter()
        .filter_map(|item| match item {
            Item::Vjp(vjp) if vjp.is_override => Some(key(vjp)),
            _ => None,
        })
        .collect();
    let mut texts: Vec<String> = items
        .iter()
        .filter_map(|item| match item {
            Item::Import { .. } => None,
            Item::Vjp(vjp) if !vjp.is_override && replaced.contains(&key(vjp)) => None,
            Item::Vjp(vjp) => Some(vjp_text(vjp)),
            Item::Rewrite(rewrite) => Some(rewrite_text(rewrite)),
            Item::Def(def) => Some(def_text(def)),
        })
        .collect();
    texts.sort();
    texts
}

fn text(expr: &Expr) -> String {
    print_expr(expr, Form::Kina)
}

fn vjp_text(vjp: &VjpItem) -> String {
    let alternative = vjp.alternative.as_ref().map(|a| format!(" as {}", a.name)).unwrap_or_default();
    let premise = text(&vjp.premise);
    let mut out = format!("vjp {}{alternative}\n{} = {premise}\n", vjp.op.name, vjp.result.name);
    lines(&mut out, &vjp.lines);
    out
}

fn rewrite_text(rewrite: &RewriteItem) -> String {
    let arrow = if rewrite.both_ways { "<=>" } else { "=>" };
    let (left, right) = (text(&rewrite.left), text(&rewrite.right));
    let mut out = format!("rewrite {} [{}]\n{left} {arrow} {right}\n", rewrite.name.name, rewrite.class.name);
    lines(&mut out, &rewrite.lines);
    out
}

fn def_text(def: &DefItem) -> String {
    let mut out = format!("def {}\n", def.name.name);
    for param in &def.params {
        let default = param.default.as_ref().map(|d| format!(" = {}", text(d))).unwrap_or_default();
        let _ = writeln!(out, "{}{default}", param.name.name);
    }
    lines(&mut out, &def.lines);
    let _ = writeln!(out, "=> {}", text(&def.result));
    out
}

fn lines(out: &mut String, lines: &[Line]) {
    for line in lines {
        let line = match line {
            Line::Bind { name, value } => format!("{} = {}", name.name, text(value)),
            Line::BindIndexed { name, index, value } => format!("{}[{}] = {}", name.name, index.name, text(value)),
            Line::Where(condition) => format!("where {}", text(condition)),
            Line::When(condition) => format!("when {}", text(condition)),
            Line::Domain(condition) => format!("domain {}", text(condition)),
            Line::Kink { condition, name, value, .. } => {
                format!("kink {}: {} = {}", text(condition), name.name, text(value))
            }
            Line::Example { condition, conclusion, .. } => {
                let stated = conclusion.as_ref().map(|(name, value)| format!(": {} = {}", name.name, text(value)));
                format!("example {}{}", text(condition), stated.unwrap_or_default())
            }
            Line::NotADerivative(_) => "not_a_derivative".to_owned(),
        };
        out.push_str(&line);
        out.push('\n');
    }
}
