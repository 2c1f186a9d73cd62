//! Answers as text and as JSON.

use std::fmt::{self, Write as _};

use serde_json::{Value, json};

use crate::Session;
use crate::diagnostics::Span;
use crate::interp::{GradReport, Verdict, bucket};
use crate::ir::RuleRef;
use crate::verify::{Measured, number};

use super::application::Rewriting;
use super::premise::{Agreement, Check, Seen};
use super::rewrites::RewriteFindings;
use super::search::Purpose;
use super::vjps::{VjpFindings, WrongVjp};
use super::{Answer, Event, StepDone};

/// `1 rule`, `2 rules`.
pub(super) fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Check(check) => write!(f, "{check}"),
            Event::Agreement(level, agreement) => match agreement {
                Agreement::Literal => writeln!(f, "results: those of -O0, which uses no rewrite"),
                Agreement::Agrees => writeln!(f, "results: {level} agrees with -O0"),
                Agreement::Open => writeln!(f, "results: not compared, rounding decides whether the program traps"),
                Agreement::Differs(seen) => writeln!(f, "results: {level} DIFFERS from -O0: {seen}"),
                Agreement::Refused(diagnostics) => {
                    let message = diagnostics.iter().next().map_or("refused", |d| d.message.as_str());
                    writeln!(f, "results: {level} is REFUSED: {message}")
                }
            },
            Event::Vjps(findings) => write!(f, "{findings}"),
            Event::Step(step) => writeln!(f, "{step}"),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = |f: &mut fmt::Formatter<'_>, report: &GradReport| {
            report.to_string().lines().try_for_each(|line| writeln!(f, "  {line}"))
        };
        match self {
            Check::Nothing => writeln!(f, "gradient check: the program has no gradient"),
            Check::Passed(report) => {
                writeln!(f, "gradient check: passed")?;
                lines(f, report)
            }
            Check::Failed(report) => {
                writeln!(f, "gradient check: FAILED")?;
                lines(f, report)
            }
            Check::Trap(message) => writeln!(f, "gradient check: none, the program traps: {message}"),
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, element)) = &self.result {
            write!(f, "`{name}`, element {element}: ")?;
        }
        write!(f, "{}, not {}", self.found, self.literal)?;
        match self.radius {
            Some(radius) if radius > 0.0 && radius.is_finite() => write!(f, " (rounding may move it by {radius:.0e})"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for VjpFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrong = self.wrong.len() + self.broken.len();
        let verdict = match wrong {
            0 => "none is wrong".to_owned(),
            n => format!("{} WRONG", if n == 1 { "1 rule is".to_owned() } else { format!("{n} rules are") }),
        };
        let of = if self.compared < self.calls { format!("{} of ", self.compared) } else { String::new() };
        writeln!(
            f,
            "VJPs, step 1 of 1: {of}{} compared with difference quotients, at {}: {verdict}",
            counted(self.calls, "operator call"),
            counted(self.elements, "element")
        )
    }
}

impl fmt::Display for StepDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (head, what) = if self.applications { ("applications", "application") } else { ("rewrites", "rule") };
        match self.purpose {
            Purpose::Halving => {
                write!(f, "{head}, step {} of at most {}: ", self.number, self.at_most)?;
                write!(f, "{} of {}", self.tried, counted(self.of, what))?;
                // Those that were cleared stay on: the suspects may need them.
                if self.on > self.tried {
                    write!(f, ", after {}", self.on - self.tried)?;
                }
            }
            Purpose::Alone => {
                let more = if self.on > 1 { format!(" and {} more", self.on - 1) } else { String::new() };
                write!(f, "{head}: `{}`{more} without any other", self.rule.as_deref().unwrap_or_default())?;
            }
            Purpose::Companion => {
                write!(f, "{head}, what that takes, step {} of at most {}: ", self.number, self.at_most)?;
                write!(f, "{} of {}", self.tried, counted(self.of, what))?;
            }
            Purpose::Without => write!(f, "{head}: those without `{}`", self.rule.as_deref().unwrap_or_default())?,
        }
        write!(f, ": {}", if self.differs { "differs" } else { "agrees" })
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measured::Slope(value) => write!(f, "finite differences give {}", number(*value)),
            Measured::Between { left, right } => {
                write!(f, "the slope is {} on the left and {} on the right", number(*left), number(*right))
            }
            Measured::Stated(value) => write!(f, "its kink states {}", number(*value)),
        }
    }
}

impl Answer {
    /// What was found, for people.
    pub fn conclusion(&self) -> String {
        let mut out = String::new();
        if self.is_right() {
            out.push_str(match self.trap {
                Some(_) => "the program traps whatever the rules: nothing to bisect\n",
                None => "nothing to bisect\n",
            });
        }
        if let Some(findings) = &self.vjps {
            for wrong in &findings.wrong {
                let _ = writeln!(out, "culprit: {}", wrong.vjp.head.rule);
                write_wrong(&mut out, wrong);
            }
            for (vjp, refusal) in &findings.broken {
                let _ = writeln!(out, "culprit: {}", vjp.head.rule);
                let _ = writeln!(out, "  {}", refusal.message);
            }
            if findings.wrong.is_empty() && findings.broken.is_empty() {
                out.push_str("culprit: unknown. Every VJP is the derivative of its operator at the values compared\n");
                for vjp in &findings.policies {
                    let _ = writeln!(out, "  by intent no derivative: {}", vjp.head.rule);
                }
            }
        }
        if let Some(findings) = &self.rewrites {
            write_rewrites(&mut out, findings);
        }
        out
    }
}

fn write_wrong(out: &mut String, wrong: &WrongVjp) {
    let place = wrong.site.place.as_ref().map_or_else(String::new, |p| format!(" at {p}"));
    let _ = writeln!(out, "  call     {} = {}{place}", wrong.site.value, wrong.site.call);
    let _ = writeln!(out, "  operand  {}, element {}", wrong.operand, wrong.fault.element);
    let _ = writeln!(out, "  numbers  the rule gives {}, {}", number(wrong.fault.given), wrong.fault.measured);
    if wrong.calls > 1 {
        let _ = writeln!(out, "  and at {} of this operator", counted(wrong.calls - 1, "more call"));
    }
}

fn write_rewrites(out: &mut String, findings: &RewriteFindings) {
    if let Some(seen) = &findings.without_any {
        let _ = writeln!(out, "culprit: none of the rules. Without any rewrite the results differ as well: {seen}");
        return;
    }
    let Some((first, others)) = findings.culprits.split_first() else {
        out.push_str("culprit: none of the rules\n");
        return;
    };
    let _ = writeln!(out, "culprit: {}", first.rule);
    for other in others {
        let _ = writeln!(out, "  takes    {}", other.rule);
    }
    if let Some(wrong) = &findings.call {
        write_wrong(out, wrong);
    }
    if let Some(done) = &findings.application {
        let itself = matches!(&*done.serves, [] | [_]) && done.serves.iter().all(|s| **s == *done.value);
        let serves = if itself { String::new() } else { format!(", for {}", done.serves.join(", ")) };
        let rule = if done.rule == first.rule { String::new() } else { format!(", by {}", done.rule) };
        let _ = writeln!(
            out,
            "  applied  to {}{serves}, in iteration {}: application {} of {}{rule}",
            done.value, done.iteration, done.number, done.of
        );
        let _ = writeln!(out, "  left     {}", done.left);
        let _ = writeln!(out, "  right    {}", done.right);
        match &done.difference {
            Some(Seen { result: Some((_, element)), literal, found, .. }) => {
                let _ = writeln!(out, "  numbers  element {element}: {literal} on the left, {found} on the right");
            }
            _ => out.push_str("  numbers  the sides are equal here, but for rounding\n"),
        }
    }
    if let Some(seen) = &findings.difference {
        let _ = writeln!(out, "  result   {seen}");
    }
    if let Some(message) = findings.refusal.as_ref().and_then(|d| d.iter().next()) {
        let _ = writeln!(out, "  result   refused: {}", message.message);
    }
}

/// A float; NaN and infinities, which JSON lacks, as text.
fn float(v: f64) -> Value {
    if v.is_finite() { json!(v) } else { json!(v.to_string()) }
}

fn seen(seen: &Seen) -> Value {
    let (expected, found) = match seen.numbers {
        Some([expected, found]) => (float(expected), float(found)),
        None => (json!(seen.literal), json!(seen.found)),
    };
    json!({
        "result": seen.result.as_ref().map(|(name, _)| &**name),
        "element": seen.result.as_ref().map(|(_, element)| element),
        "expected": expected, "found": found, "rounding": seen.radius.map(float),
    })
}

fn rule(rule: &RuleRef, span: Span, session: &Session) -> Value {
    let position = session.sources.position(span);
    json!({ "rule": &*rule.name, "location": &*rule.location, "line": position.line, "column": position.column })
}

fn call(wrong: &WrongVjp) -> Value {
    let measured = match wrong.fault.measured {
        Measured::Slope(value) => json!({ "slope": float(value) }),
        Measured::Between { left, right } => json!({ "left": float(left), "right": float(right) }),
        Measured::Stated(value) => json!({ "stated": float(value) }),
    };
    json!({
        "kind": "vjp", "value": wrong.site.value, "call": wrong.site.call, "place": wrong.site.place,
        "operand": wrong.operand, "element": wrong.fault.element, "given": float(wrong.fault.given),
        "measured": measured, "calls": wrong.calls,
    })
}

fn rewriting(done: &Rewriting) -> Value {
    let serves: Vec<&str> = done.serves.iter().map(|s| &**s).collect();
    json!({
        "kind": "rewrite", "rule": &*done.rule.name, "number": done.number, "of": done.of,
        "iteration": done.iteration, "value": done.value, "serves": serves,
        "left": done.left, "right": done.right, "difference": done.difference.as_ref().map(seen),
    })
}

/// Every culprit with what it did.
fn culprits(answer: &Answer, session: &Session) -> Vec<(Value, Value)> {
    let mut out = Vec::new();
    if let Some(findings) = &answer.vjps {
        for wrong in &findings.wrong {
            let mut culprit = rule(&wrong.vjp.head.rule, wrong.vjp.head.span, session);
            (culprit["kind"], culprit["takes"]) = ("vjp".into(), json!([]));
            out.push((culprit, call(wrong)));
        }
        for (vjp, refusal) in &findings.broken {
            let mut culprit = rule(&vjp.head.rule, vjp.head.span, session);
            (culprit["kind"], culprit["takes"]) = ("vjp".into(), json!([]));
            out.push((culprit, json!({ "kind": "example", "message": refusal.message })));
        }
    }
    if let Some(findings) = &answer.rewrites {
        let Some((first, others)) = findings.culprits.split_first() else { return out };
        let mut culprit = rule(&first.rule, first.span, session);
        culprit["kind"] = if first.is_alternative { "alternative" } else { "rewrite" }.into();
        culprit["takes"] = others.iter().map(|other| rule(&other.rule, other.span, session)).collect();
        culprit["difference"] = json!(findings.difference.as_deref().map(seen));
        let application = match (&findings.call, &findings.application) {
            (Some(wrong), _) => call(wrong),
            (None, Some(done)) => rewriting(done),
            (None, None) => Value::Null,
        };
        out.push((culprit, application));
    }
    out
}

/// The answer as JSON, version 1.
pub fn as_json(answer: &Answer, session: &Session) -> Value {
    let gradients = |report: &GradReport| -> Vec<Value> {
        let of = |g: &crate::interp::GradientResult| {
            let (passed, reason) = match &g.verdict {
                Verdict::NotChecked(why) => (false, Some(why.clone())),
                verdict => (*verdict == Verdict::Passed, None),
            };
            json!({
                "name": format!("g_{}", g.name), "passed": passed, "not_checked": reason,
                "error": bucket(g.worst), "element": g.worst_at,
            })
        };
        report.gradients.iter().map(of).collect()
    };
    let check = match &answer.check {
        Check::Nothing => json!({ "outcome": "nothing" }),
        Check::Passed(report) => json!({ "outcome": "passed", "gradients": gradients(report) }),
        Check::Failed(report) => json!({ "outcome": "failed", "gradients": gradients(report) }),
        Check::Trap(message) => json!({ "outcome": "trap", "message": message }),
    };
    let results = match &answer.agreement {
        Agreement::Literal => json!({ "outcome": "literal" }),
        Agreement::Agrees => json!({ "outcome": "agrees" }),
        Agreement::Open => json!({ "outcome": "open" }),
        Agreement::Differs(difference) => json!({ "outcome": "differs", "difference": seen(difference) }),
        Agreement::Refused(diagnostics) => {
            json!({ "outcome": "refused", "codes": diagnostics.iter().map(|d| d.code).collect::<Vec<_>>() })
        }
    };
    let vjps = answer.vjps.as_ref().map(|f| {
        let policies: Vec<String> = f.policies.iter().map(|vjp| vjp.head.rule.to_string()).collect();
        json!({
            "stage": "vjps", "number": 1, "at_most": 1, "calls": f.calls, "compared": f.compared,
            "elements": f.elements, "differs": !(f.wrong.is_empty() && f.broken.is_empty()),
            "not_derivatives": policies,
        })
    });
    let steps = answer.steps.iter().map(|s| {
        let stage = match (s.applications, s.purpose) {
            (true, _) => "applications",
            (false, Purpose::Halving) => "rewrites",
            (false, Purpose::Alone) => "alone",
            (false, Purpose::Companion) => "companions",
            (false, Purpose::Without) => "without",
        };
        json!({
            "stage": stage, "number": s.number, "at_most": s.at_most, "tried": s.tried, "of": s.of, "on": s.on,
            "rule": s.rule.as_deref(), "differs": s.differs,
        })
    });
    let steps: Vec<Value> = vjps.into_iter().chain(steps).collect();
    let mut all = culprits(answer, session).into_iter();
    let (culprit, application) = all.next().unwrap_or((Value::Null, Value::Null));
    let others: Vec<Value> = all.map(|(c, a)| json!({ "culprit": c, "application": a })).collect();
    json!({
        "version": 1, "rules": session.rules.hash(), "level": answer.level.to_string(),
        "premise": { "check": check, "results": results, "trap": answer.trap },
        "candidates": answer.rewrites.as_ref().map(|r| r.candidates), "steps": steps,
        "right": answer.is_right(), "culprit": culprit, "application": application, "others": others,
    })
}
