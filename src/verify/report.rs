//! What verification found.

use std::fmt::Write as _;

use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::ir::{Array, AttrValue, RuleRef, Values, attr::format_float};

/// What the check of one rule did and found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Elements compared; of a VJP the least over its conclusions.
    pub points: usize,
    /// The worst relative error of a conclusion, or of a rewrite in units in the last place.
    pub worst: f64,
    /// Elements at which a kink was met.
    pub kinks: usize,
    pub examples: usize,
    /// Second order: elements compared, and the worst relative error.
    pub second_points: usize,
    pub second: f64,
    /// Why second order was not compared.
    pub not_second: Option<String>,
    /// A VJP that says it is no derivative.
    pub policy: bool,
    /// Why nothing was compared: such a rule is refused.
    pub not_checked: Option<String>,
    /// Why nothing was compared of a definition.
    pub not_compared: Option<String>,
    /// Of a definition: elements computed with 256 bits, and the worst error of the value in units in the last place.
    pub values: usize,
    pub ulps: f64,
    pub warnings: Vec<Diagnostic>,
    pub refusal: Option<Diagnostic>,
}

impl Findings {
    pub fn refuse(&mut self, refusal: Diagnostic) {
        self.refusal.get_or_insert(refusal);
    }

    pub fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }
}

/// What kind of rule a verdict is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Vjp,
    Exact,
    Real,
    Def,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Vjp => "vjp",
            Kind::Exact => "exact",
            Kind::Real => "real",
            Kind::Def => "def",
        }
    }
}

/// The verdict on one rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub kind: Kind,
    pub rule: RuleRef,
    pub span: Span,
    pub findings: Findings,
    /// Known from an earlier run.
    pub cached: bool,
}

impl Verdict {
    pub fn passed(&self) -> bool {
        !self.findings.is_refused()
    }

    /// The name without its kind.
    pub fn subject(&self) -> &str {
        self.rule.name.strip_prefix("vjp ").unwrap_or(&self.rule.name)
    }

    /// `verified  vjp    tanh     112 points, worst 3e-12, second order 24 points, worst 5e-11`
    pub fn line(&self) -> String {
        let f = &self.findings;
        let word = if f.is_refused() { "REFUSED" } else { "verified" };
        let mut out = format!("{word:9} {:6} {:28} ", self.kind.name(), self.subject());
        if f.is_refused() {
            let code = f.refusal.as_ref().map_or("", |d| d.code);
            let _ = write!(out, "{code} at {}", self.rule.location);
            return out;
        }
        let mut parts = Vec::new();
        if let Some(why) = &f.not_compared {
            parts.push(format!("not compared: {why}"));
        }
        if f.policy {
            parts.push("no derivative by intent".to_owned());
        }
        if f.points > 0 {
            let worst = match self.kind {
                Kind::Vjp | Kind::Def => format!("error {}", bucket(f.worst)),
                Kind::Exact => "equal bit by bit".to_owned(),
                Kind::Real => format!("at most {} ULP worse", f.worst.ceil()),
            };
            parts.push(format!("{} points, {worst}", f.points));
        }
        if f.values > 0 {
            parts.push(format!("value finite at {} large points", f.values));
        }
        if f.kinks > 0 {
            parts.push(format!("{} at kinks", f.kinks));
        }
        if f.second_points > 0 {
            parts.push(format!("second order {} points, error {}", f.second_points, bucket(f.second)));
        }
        if let Some(why) = &f.not_second {
            parts.push(format!("second order not compared: {why}"));
        }
        if f.examples > 0 {
            parts.push(counted(f.examples, "example"));
        }
        out.push_str(&parts.join("; "));
        out
    }
}

/// All verdicts of a run, by kind and name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub verdicts: Vec<Verdict>,
    /// What is wrong with the set as a whole.
    pub together: Diagnostics,
    /// E-graphs in which all rules were tried together, and e-nodes evaluated there.
    pub programs: usize,
    pub nodes: usize,
}

impl Report {
    pub fn passed(&self) -> bool {
        self.verdicts.iter().all(Verdict::passed) && !self.together.has_errors()
    }

    /// One line for all.
    pub fn summary(&self) -> String {
        let refused = self.verdicts.iter().filter(|v| !v.passed()).count();
        let mut out = format!("{}, {} refused", counted(self.verdicts.len(), "rule"), refused);
        if self.programs > 0 {
            let word = if self.together.has_errors() { "contradict each other" } else { "agree" };
            let _ = write!(out, "; together they {word} on {} e-nodes of {} programs", self.nodes, self.programs);
        }
        out.push('\n');
        out
    }

    /// Everything that was refused, and the warnings.
    pub fn diagnostics(&self) -> Diagnostics {
        let mut bag = Diagnostics::new();
        for verdict in &self.verdicts {
            verdict.findings.warnings.iter().cloned().for_each(|d| bag.push(d));
            if let Some(refusal) = &verdict.findings.refusal {
                bag.push(refusal.clone());
            }
        }
        bag.extend(self.together.clone());
        bag
    }
}

/// `1 rule`, `2 rules`.
fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A power of ten that bounds an error; machines differ below 1e-9.
pub fn bucket(error: f64) -> String {
    for exponent in (1..=9).rev() {
        if error <= 10f64.powi(-exponent) {
            return format!("<= 1e-{exponent}");
        }
    }
    if error.is_nan() { "NaN".into() } else { "> 1e-1".into() }
}

/// A number with the digits that a reader needs.
pub fn number(v: f64) -> String {
    if !v.is_finite() || v == v.trunc() && v.abs() < 1e6 {
        return format_float(v);
    }
    let magnitude = v.abs();
    if (1e-4..1e6).contains(&magnitude) { format!("{v:.9}") } else { format!("{v:.9e}") }
}

/// `, axis = 1, keepdims = false`: attributes of the call at a point, after its operands. Types can be seen from those.
pub fn describe_attrs<'a>(attrs: impl IntoIterator<Item = (&'a str, &'a AttrValue)>) -> String {
    let shown = attrs.into_iter().filter(|(_, value)| !matches!(value, AttrValue::Type(_)));
    shown.map(|(name, value)| format!(", {name} = {value}")).collect()
}

/// `x = 0.5, g_y = 1.25`, or whole arrays where no element is asked for.
pub fn describe_point(names: &[&str], arrays: &[Array], element: Option<usize>) -> String {
    let mut parts = Vec::new();
    for (name, array) in names.iter().zip(arrays) {
        let element_at = |i: usize| match &array.values {
            Values::Float(v) => v.get(i).map(|x| number(*x)),
            Values::Int(v) => v.get(i).map(ToString::to_string),
            Values::Bool(v) => v.get(i).map(ToString::to_string),
        };
        let text = element.and_then(element_at).unwrap_or_else(|| {
            let first: Vec<String> = (0..array.values.len().min(16)).filter_map(element_at).collect();
            let more = if array.values.len() > 16 { ", .." } else { "" };
            format!("{:?} [{}{more}]", array.shape.to_vec(), first.join(", "))
        });
        parts.push(format!("{name} = {text}"));
    }
    parts.join(", ")
}
