//! Answers as diagnostics, at the rules that are at fault.

use crate::Session;
use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::interp::Verdict;
use crate::rules::is_embedded;
use crate::verify::number;

use super::Answer;
use super::premise::Check;
use super::report::counted;
use super::rewrites::RewriteFindings;
use super::vjps::{VjpFindings, WrongVjp};

impl Answer {
    /// What is wrong; empty if nothing is.
    pub fn diagnostics(&self, session: &Session) -> Diagnostics {
        let mut bag = Diagnostics::new();
        if let Some(findings) = &self.vjps {
            vjps(self, findings, session, &mut bag);
        }
        if let Some(findings) = &self.rewrites {
            rewrites(self, findings, session, &mut bag);
        }
        bag
    }
}

/// How to look at the rule at that place by itself.
fn verify(span: Span, session: &Session) -> String {
    let file = &session.sources.file(span.file).name;
    if is_embedded(file) {
        "`kina-ad rules check` verifies every rule by itself".to_owned()
    } else {
        format!("`kina-ad rules check {file}` verifies the rule by itself")
    }
}

fn wrong_call(message: String, wrong: &WrongVjp, session: &Session) -> Diagnostic {
    let head = &wrong.vjp.head;
    let span = wrong.fault.diagnostic.primary.as_ref().map_or(head.span, |label| label.span);
    let place = wrong.site.place.as_ref().map_or_else(String::new, |p| format!(", {p}"));
    Diagnostic::error("E0920", message)
        .at(span, format!("the rule gives {}", number(wrong.fault.given)))
        .note(wrong.fault.measured.to_string())
        .note(format!(
            "at element {} of `{}` in `{} = {}`{place}",
            wrong.fault.element, wrong.operand, wrong.site.value, wrong.site.call
        ))
        .help(format!("mend this conclusion; {}", verify(head.span, session)))
}

fn vjps(answer: &Answer, findings: &VjpFindings, session: &Session, bag: &mut Diagnostics) {
    for wrong in &findings.wrong {
        let message = format!("`{}` makes the gradient check fail", wrong.vjp.head.rule.name);
        bag.push(wrong_call(message, wrong, session));
    }
    for (vjp, refusal) in &findings.broken {
        let mut diagnostic = refusal.clone();
        diagnostic.code = "E0920";
        bag.push(diagnostic.note(format!("the gradient check fails through `{}`", vjp.head.rule.name)));
    }
    if !findings.wrong.is_empty() || !findings.broken.is_empty() {
        return;
    }
    let mut diagnostic = Diagnostic::error("E0922", "the gradient check fails, and no VJP is found to be wrong").note(
        format!("{} of {} compared at their values here", findings.compared, counted(findings.calls, "operator call")),
    );
    if let Check::Failed(report) = &answer.check {
        for gradient in &report.gradients {
            if let Verdict::NotChecked(why) = &gradient.verdict {
                diagnostic = diagnostic.note(format!("`g_{}` cannot be checked: {why}", gradient.name));
            }
        }
    }
    if let Some(handler) = answer.handler {
        diagnostic = diagnostic.at(handler, "this gradient");
    }
    for vjp in &findings.policies {
        diagnostic = diagnostic.also(vjp.head.span, "by intent no derivative");
    }
    bag.push(diagnostic.help(match findings.policies.is_empty() {
        true => "the fault shows only in the whole, or at elements that were not sampled: try other inputs with `--seed`, or `kina-ad rules check`",
        false => "through a rule that is by intent no derivative, finite differences are no measure: check a part of the program without it",
    }));
}

fn rewrites(answer: &Answer, findings: &RewriteFindings, session: &Session, bag: &mut Diagnostics) {
    let level = answer.level;
    if findings.without_any.is_some() || findings.culprits.is_empty() {
        let message = format!("{level} differs from -O0 without any rewrite");
        let mut diagnostic = Diagnostic::error("E0923", message);
        if let Some(seen) = &findings.without_any {
            diagnostic = diagnostic.note(seen.to_string());
        }
        bag.push(diagnostic.help("this is a fault of kina-ad: please report it with the program and its inputs"));
        if let Some(refusal) = &findings.refusal {
            bag.extend(refusal.clone());
        }
        return;
    }
    let Some((first, others)) = findings.culprits.split_first() else { return };
    let what = match others.len() {
        0 => format!("`{}` makes {level} differ from -O0", first.rule.name),
        _ => {
            format!("`{}`, with {} more, makes {level} differ from -O0", first.rule.name, counted(others.len(), "rule"))
        }
    };
    let mut diagnostic = match &findings.call {
        Some(wrong) => wrong_call(what, wrong, session),
        None => {
            let label = match &findings.application {
                Some(done) if done.rule == first.rule => format!("it turned `{}` into `{}`", done.left, done.right),
                _ => "without this rule there is no difference".to_owned(),
            };
            Diagnostic::error("E0921", what).at(first.span, label).help(verify(first.span, session))
        }
    };
    for other in others {
        diagnostic = diagnostic.also(other.span, "nor without this one");
    }
    if let Some(done) = &findings.application
        && let Some(seen) = &done.difference
        && let Some((_, element)) = &seen.result
    {
        diagnostic = diagnostic.note(format!(
            "element {element} of `{}` is {} on the left and {} on the right",
            done.value, seen.literal, seen.found
        ));
    }
    if let Some(seen) = &findings.difference {
        diagnostic = diagnostic.note(format!("the result is wrong at {seen}"));
    }
    bag.push(diagnostic);
    if let Some(refusal) = &findings.refusal {
        bag.extend(refusal.clone());
    }
}
