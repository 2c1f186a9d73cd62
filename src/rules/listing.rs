//! Rules as lists for people.

use std::fmt::Write as _;

use super::RuleSet;
use super::rule::RewriteClass;
use crate::diagnostics::{SourceMap, Span};
use crate::ir::RuleRef;

/// One rule of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// `vjp`, `exact`, `real`, `def`.
    pub kind: &'static str,
    pub rule: RuleRef,
    pub doc: String,
    pub span: Span,
}

/// All rules: VJPs by operator, rewrites by name, composites by name. A rule of both directions is one entry.
pub fn entries(rules: &RuleSet) -> Vec<Entry> {
    let entry =
        |kind, head: &super::RuleHead| Entry { kind, rule: head.rule.clone(), doc: head.doc.clone(), span: head.span };
    let vjps = rules.all_vjps().map(|v| entry("vjp", &v.head));
    let rewrites = rules.rewrites().iter().map(|r| {
        let kind = match r.class {
            RewriteClass::Exact => "exact",
            RewriteClass::Real => "real",
        };
        entry(kind, &r.head)
    });
    let defs = rules.defs().map(|d| entry("def", &d.head));
    let mut all: Vec<Entry> = vjps.chain(rewrites).chain(defs).collect();
    all.dedup_by(|b, a| a.span == b.span);
    all
}

impl Entry {
    /// The name without its kind: `log_softmax` of `vjp log_softmax`.
    pub fn subject(&self) -> &str {
        self.rule.name.strip_prefix("vjp ").unwrap_or(&self.rule.name)
    }

    /// Is it what a person means by `name`?
    pub fn answers_to(&self, name: &str) -> bool {
        &*self.rule.name == name || self.subject() == name || self.subject().split(' ').next() == Some(name)
    }

    /// `vjp    log_softmax   rules/phase1.rules:20  Log-domain softmax cotangent; ..`
    pub fn line(&self) -> String {
        let first = self.doc.lines().next().unwrap_or("");
        format!("{:6} {:28} {:28} {first}\n", self.kind, self.subject(), self.rule.location)
    }

    /// Where it stands, its documentation and its source.
    pub fn show(&self, sources: &SourceMap) -> String {
        let mut out = format!("{}\n", self.rule.location);
        for line in self.doc.lines() {
            let _ = writeln!(out, "/// {line}");
        }
        let _ = writeln!(out, "{}\n", sources.text(self.span));
        out
    }
}
