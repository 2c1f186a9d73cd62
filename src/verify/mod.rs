//! Rules verified without a test written for them.
//!
//! [`check`] takes a rule set and the rules of it that are in question, and tries each of them:
//!
//! - a [VJP](mod@vjp) against finite differences of its operator, its kinks as stated, and its conclusions differentiated again;
//! - `example` lines as written.
//!
//! A refusal is a [`Diagnostic`](crate::diagnostics::Diagnostic) with the point at which the rule is wrong.

mod compare;
mod example;
mod report;
mod sample;
mod second;
mod trial;
mod vjp;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use report::{Findings, Kind, Report, Verdict};

use crate::ir::OpId;
use crate::rules::{Def, Rewrite, RewriteClass, RuleHead, RuleSet, Vjp};

/// A rule in question.
#[derive(Clone, Debug)]
pub enum Subject {
    Vjp(Arc<Vjp>),
    Rewrite(Arc<Rewrite>),
    Def(Arc<Def>),
}

impl Subject {
    pub fn head(&self) -> &RuleHead {
        match self {
            Subject::Vjp(vjp) => &vjp.head,
            Subject::Rewrite(rewrite) => &rewrite.head,
            Subject::Def(def) => &def.head,
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Subject::Vjp(_) => Kind::Vjp,
            Subject::Rewrite(rewrite) if rewrite.class == RewriteClass::Exact => Kind::Exact,
            Subject::Rewrite(_) => Kind::Real,
            Subject::Def(_) => Kind::Def,
        }
    }
}

/// All rules of a set: VJPs by operator, rewrites by name, composites by name.
pub fn subjects(rules: &RuleSet) -> Vec<Subject> {
    let vjps = rules.all_vjps().cloned().map(Subject::Vjp);
    let rewrites = rules.rewrites().iter().cloned().map(Subject::Rewrite);
    vjps.chain(rewrites).chain(rules.defs().cloned().map(Subject::Def)).collect()
}

/// Checks one rule by itself: everything but what involves the derivatives of others.
pub fn first(subject: &Subject, rules: &RuleSet, seed: u64) -> Findings {
    match subject {
        Subject::Vjp(vjp) => vjp::first_order(vjp, rules, seed),
        Subject::Rewrite(_) | Subject::Def(_) => {
            let mut findings = Findings::default();
            for example in &subject.head().examples {
                match example::closed(example, rules) {
                    Ok(()) => findings.examples += 1,
                    Err(refusal) => findings.refuse(*refusal),
                }
            }
            findings
        }
    }
}

/// Checks rules of a set.
pub fn check(subjects: &[Subject], rules: &RuleSet, seed: u64) -> Report {
    let mut report = Report::default();
    for subject in subjects {
        let head = subject.head();
        let findings = first(subject, rules, seed);
        let verdict =
            Verdict { kind: subject.kind(), rule: head.rule.clone(), span: head.span, findings, cached: false };
        report.verdicts.push(verdict);
    }
    let refused: BTreeSet<OpId> = subjects
        .iter()
        .zip(&report.verdicts)
        .filter(|(_, verdict)| !verdict.passed())
        .filter_map(|(subject, _)| match subject {
            Subject::Vjp(vjp) => Some(vjp.op),
            _ => None,
        })
        .collect();
    for (subject, verdict) in subjects.iter().zip(&mut report.verdicts) {
        if let Subject::Vjp(vjp) = subject
            && verdict.passed()
        {
            second::second_order(vjp, rules, seed, &refused, &mut verdict.findings);
        }
    }
    report
}
