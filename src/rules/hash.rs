//! The hash of a rule set: of what its rules say, in a text that has one form.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::Hasher;
use std::sync::OnceLock;

use siphasher::sip::SipHasher24;

use super::load::identity;
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

    /// The items that have an effect, by what they are known by: a VJP that an override replaces is none of them.
    pub fn effective(&self) -> BTreeMap<String, Effective<'_>> {
        on_big_stack(|| effective(&self.items))
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
            let mut texts: Vec<String> = self.effective().into_values().map(|rule| rule.text).collect();
            texts.sort();
            for text in texts {
                hasher.write_u64(text.len() as u64);
                hasher.write(text.as_bytes());
            }
            hasher.finish()
        })
    }
}

/// An item that has an effect.
#[derive(Clone, Debug)]
pub struct Effective<'a> {
    pub item: &'a Item,
    /// What it says, in a text that has one form.
    pub text: String,
    /// The place of its name, and all of it.
    pub name: Span,
    pub span: Span,
}

/// The items that have an effect, by what they are known by.
fn effective(items: &[Item]) -> BTreeMap<String, Effective<'_>> {
    let key = |vjp: &VjpItem| (vjp.op.name.clone(), vjp.alternative.as_ref().map(|a| a.name.clone()));
    let replaced: BTreeSet<_> = items
        .iter()
        .filter_map(|item| match item {
            Item::Vjp(vjp) if vjp.is_override => Some(key(vjp)),
            _ => None,
        })
        .collect();
    let rules = items.iter().filter_map(|item| {
        let (text, span) = match item {
            Item::Import { .. } => return None,
            Item::Vjp(vjp) if !vjp.is_override && replaced.contains(&key(vjp)) => return None,
            Item::Vjp(vjp) => (vjp_text(vjp), vjp.span),
            Item::Rewrite(rewrite) => (rewrite_text(rewrite), rewrite.span),
            Item::Def(def) => (def_text(def), def.span),
        };
        let (name, place) = identity(item)?;
        Some((name, Effective { item, text, name: place, span }))
    });
    rules.collect()
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
