//! Rules verified without a test written for them.
//!
//! [`check`] takes a rule set and the rules of it that are in question, and tries each of them:
//!
//! - without computing ([`statics`]): closure, overlap, rules that do nothing;
//! - a VJP (`vjp`) against finite differences of its operator, with kinks as stated, and its conclusions
//!   differentiated again (`second`) by the whole set;
//! - a rewrite (`rewrite`) against what its class promises, in f32, f64 and 256 bits;
//! - a definition (`def`) differentiated through, and against overflow on the way;
//! - `example` lines as written;
//! - all rules together (`together`): every e-node of saturated e-graphs against its class.
//!
//! A refusal is a [`Diagnostic`] with the point at which the rule is wrong. Points are drawn from a
//! generator for each rule, so that a verdict depends on nothing but the rules and the seed.

pub mod cache;
mod compare;
pub mod coverage;
mod def;
pub mod document;
mod example;
pub mod point;
mod report;
mod rewrite;
mod sample;
mod second;
pub mod statics;
mod together;
mod trial;
mod vjp;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cache::{Cache, Keys};
pub use compare::{Fault, Measured};
pub use report::{Findings, Kind, Report, Verdict, number};

use crate::diagnostics::{Diagnostic, SourceMap};
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

/// How to check.
pub struct Options<'a> {
    pub seed: u64,
    /// Threads that share the rules; the verdicts do not depend on it.
    pub threads: usize,
    /// Is told how many of how many steps are done.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { seed: 0, threads: 1, progress: &|_, _| {} }
    }
}

/// Checks one rule by itself: everything but what involves the derivatives of others.
fn first(subject: &Subject, rules: &RuleSet, seed: u64) -> Findings {
    let mut findings = match subject {
        // With its examples, some of which are points of its own.
        Subject::Vjp(vjp) => return vjp::first_order(vjp, rules, seed),
        Subject::Rewrite(rewrite) => rewrite::check(rewrite, rules, seed),
        Subject::Def(def) => def::check(def, rules, seed),
    };
    let examples = match subject {
        Subject::Def(def) => rules.examples_of(def),
        _ => &subject.head().examples,
    };
    for example in examples {
        match example::closed(example, rules) {
            Ok(()) => findings.examples += 1,
            Err(refusal) => findings.refuse(*refusal),
        }
    }
    findings
}

/// A rule of which there is nothing to try is not verified.
fn never_fires(subject: &Subject, findings: &mut Findings) {
    let head = subject.head();
    if let (Some(why), 0) = (&findings.not_compared, findings.examples) {
        let message = format!("`{}` cannot be verified: {why}", head.rule.name);
        findings.refuse(
            Diagnostic::error("E0907", message)
                .at(head.span, "never seen to have a value")
                .help("mend its types, or show a call of it: `example NAME([1.0, 2.0]) == ..`"),
        );
    }
    let Some(why) = findings.not_checked.take() else { return };
    findings.refuse(
        Diagnostic::error("E0907", format!("`{}` cannot be verified: {why}", head.rule.name))
            .at(head.span, "never seen to fire")
            .help("relax its `where` lines and fixed attributes, or remove it"),
    );
}

/// Checks rules of a set. `cache` knows verdicts of earlier runs and learns those of this one.
pub fn check(
    subjects: &[Subject],
    rules: &RuleSet,
    sources: &SourceMap,
    options: &Options<'_>,
    cache: &mut Cache,
) -> Report {
    let keys_of_set = Keys::new(rules, sources, options.seed);
    let keys: Vec<String> = subjects.iter().map(|s| keys_of_set.of(s.head().span, sources)).collect();
    let known: Vec<Option<Findings>> = keys.iter().map(|key| cache.get(key)).collect();
    let total = 2 * subjects.len() + together::PROGRAMS;
    let done = AtomicUsize::new(0);
    let step = || (options.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, total);
    let findings = in_parallel(options.threads, subjects.len(), |i| {
        let found = known[i].clone().unwrap_or_else(|| {
            let mut found = first(&subjects[i], rules, options.seed);
            never_fires(&subjects[i], &mut found);
            found.warnings = statics::warnings(&subjects[i], rules);
            found
        });
        step();
        found
    });
    let refused: BTreeSet<OpId> = subjects
        .iter()
        .zip(&findings)
        .filter(|(_, findings)| findings.is_refused())
        .filter_map(|(subject, _)| match subject {
            Subject::Vjp(vjp) => Some(vjp.op),
            _ => None,
        })
        .collect();
    let findings = in_parallel(options.threads, subjects.len(), |i| {
        let mut found = findings[i].clone();
        if let Subject::Vjp(vjp) = &subjects[i]
            && !found.is_refused()
            && known[i].is_none()
        {
            second::second_order(vjp, rules, options.seed, &refused, &mut found);
        }
        step();
        found
    });
    let mut report = Report::default();
    if let Some(place) = subjects.first().map(|s| s.head().span) {
        let key = keys_of_set.of_set(rules, sources);
        let passed = refused.is_empty() && findings.iter().all(|f| !f.is_refused());
        if let (true, Some(known)) = (passed, cache.get(&key)) {
            (report.programs, report.nodes) = (together::PROGRAMS, known.points);
        } else if passed {
            let outcomes = in_parallel(options.threads, together::PROGRAMS, |i| {
                let outcome = together::check(rules, i, place, options.seed);
                step();
                outcome
            });
            for outcome in outcomes {
                report.programs += 1;
                report.nodes += outcome.nodes;
                // One contradiction is enough to look at.
                if !report.together.has_errors() {
                    report.together.extend(outcome.diagnostics);
                }
            }
            if !report.together.has_errors() {
                cache.put(key, &Findings { points: report.nodes, ..Findings::default() });
            }
        }
    }
    for (((subject, findings), key), known) in subjects.iter().zip(findings).zip(keys).zip(known) {
        let cached = known.is_some();
        // A verdict that leaves something out because of another rule is not one of this rule's text.
        if !cached && (refused.is_empty() || findings.not_second.is_none()) {
            cache.put(key, &findings);
        }
        let head = subject.head();
        report.verdicts.push(Verdict {
            kind: subject.kind(),
            rule: head.rule.clone(),
            span: head.span,
            findings,
            cached,
        });
    }
    report
}

/// `work(0)`, `work(1)`, .. shared by threads; results in that order.
fn in_parallel<T: Send>(threads: usize, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(count));
    let run = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                return;
            }
            let result = work(i);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((i, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            scope.spawn(run);
        }
        run();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, result)| result).collect()
}
