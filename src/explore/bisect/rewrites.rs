//! The rewrites that fired, halved until those are left that make the difference.

use std::collections::BTreeSet;

use crate::diagnostics::{Diagnostics, Span};
use crate::egraph::record::Cause;
use crate::egraph::{Differentiated, Optimised, Stop, commutes};
use crate::interp::InterpError;
use crate::ir::{Level, RuleRef};
use crate::rules::{RewriteClass, RuleHead, RuleSet};
use crate::run::RunError;

use super::application::{Rewriting, Scene};
use super::premise::{Bench, Ran, Seen};
use super::search;
use super::vjps::{self, WrongVjp};
use super::{Event, StepDone};

/// A rule that may be it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub rule: RuleRef,
    pub span: Span,
    /// A VJP beside the primary one, which the rewriter may choose.
    pub is_alternative: bool,
}

/// What the rewrites do.
#[derive(Clone, Debug)]
pub struct RewriteFindings {
    /// Rules that fired, or all that could where the rewriting ended before it was done.
    pub candidates: usize,
    /// There is a difference without any of them.
    pub without_any: Option<Box<Seen>>,
    /// The rule at fault, then those that it takes besides. Without any of them there is no difference.
    pub culprits: Vec<Candidate>,
    /// The difference that they make without any other, or what the rules are refused for.
    pub difference: Option<Box<Seen>>,
    pub refusal: Option<Diagnostics>,
    /// The first application that makes the difference.
    pub application: Option<Box<Rewriting>>,
    /// For an alternative VJP: the call at which it is wrong.
    pub call: Option<Box<WrongVjp>>,
}

/// Finds the rules that make a level differ from -O0. `full` is the program rewritten by all, if they made one.
///
/// # Errors
/// Memory that does not suffice.
pub fn find(
    bench: &Bench<'_>,
    full: Option<&(Differentiated, Optimised)>,
    watch: &mut dyn FnMut(Event<'_>),
    steps: &mut Vec<StepDone>,
) -> Result<RewriteFindings, RunError> {
    let rules = &bench.question.session.rules;
    let candidates = candidates(bench.question.level, rules, full);
    let mut findings = RewriteFindings {
        candidates: candidates.len(),
        without_any: None,
        culprits: Vec::new(),
        difference: None,
        refusal: None,
        application: None,
        call: None,
    };
    match bench.run(&rules.only(|_| false))? {
        Ran::Agrees => {}
        Ran::Differs(difference) => {
            let literal = full.map(|(_, optimised)| &optimised.graph).unwrap_or(bench.question.graph);
            findings.without_any = Some(Box::new(Seen::new(&difference, literal)));
            return Ok(findings);
        }
        Ran::Refused(diagnostics) => {
            findings.refusal = Some(diagnostics);
            return Ok(findings);
        }
    }
    let found = search::fewest(candidates.len(), |step| -> Result<bool, InterpError> {
        let on: BTreeSet<&RuleRef> = step.on.iter().map(|i| &candidates[*i].rule).collect();
        let differs = !matches!(bench.run(&only(rules, &on))?, Ran::Agrees);
        let done = StepDone::new(step, on.len(), differs, step.about.and_then(|i| candidates.get(i)));
        watch(Event::Step(&done));
        steps.push(done);
        Ok(differs)
    })?;
    findings.culprits = found.into_iter().map(|i| candidates[i].clone()).collect();
    let on: BTreeSet<&RuleRef> = findings.culprits.iter().map(|c| &c.rule).collect();
    let (program, optimised) = match bench.optimised(&only(rules, &on)) {
        Ok(made) => made,
        Err(diagnostics) => {
            findings.refusal = Some(diagnostics);
            return Ok(findings);
        }
    };
    let difference = bench.compare(&optimised.graph)?;
    findings.difference = difference.map(|d| Box::new(Seen::new(&d, &optimised.graph)));
    if let Some(rewriting) = first_application(bench, &program, watch, steps)? {
        // Of several rules, the one whose sides differ is at fault.
        if let Some(at) = findings.culprits.iter().position(|c| c.rule == rewriting.rule)
            && rewriting.difference.is_some()
        {
            let guilty = findings.culprits.remove(at);
            findings.culprits.insert(0, guilty);
        }
        findings.application = Some(Box::new(rewriting));
    }
    if let Some(alternative) = findings.culprits.iter().find(|c| c.is_alternative) {
        let wrong = vjps::check_alternative(bench.question, &program, &alternative.rule)?.wrong;
        findings.call = wrong.into_iter().next().map(Box::new);
    }
    Ok(findings)
}

fn only(rules: &RuleSet, on: &BTreeSet<&RuleRef>) -> RuleSet {
    rules.only(|head| on.contains(&head.rule))
}

/// The rules that changed something, those of the default set first: what is wrong is more often what was added to them, and is
/// then found together with whatever it needs of them.
fn candidates(level: Level, rules: &RuleSet, full: Option<&(Differentiated, Optimised)>) -> Vec<Candidate> {
    let may = |class: RewriteClass| level == Level::O2 || (level == Level::O1 && class == RewriteClass::Exact);
    let enabled = rules.rewrites().iter().filter(|r| may(r.class));
    let complete = full.filter(|(_, optimised)| {
        optimised.report.as_ref().is_some_and(|report| report.stop == Stop::Saturated && report.extracted)
    });
    let mut fired: BTreeSet<&RuleRef> = BTreeSet::new();
    let mut alternatives = level == Level::O2;
    if let Some(record) = complete.and_then(|(program, _)| program.record()) {
        fired.extend(record.applications.iter().filter_map(|a| a.cause.rule()));
        alternatives &= record.applications.iter().any(|a| matches!(a.cause, Cause::Alternative));
    }
    // A rule that says that an operator commutes widens the left sides of others as well.
    let fires = |head: &RuleHead| complete.is_none() || fired.contains(&head.rule);
    let mut out: Vec<Candidate> = enabled
        .filter(|r| fires(&r.head) || commutes(r).is_some())
        .map(|r| Candidate { rule: r.head.rule.clone(), span: r.head.span, is_alternative: false })
        .collect();
    let concluded: BTreeSet<&RuleRef> =
        full.map(|(program, _)| program.concluded.iter().map(|c| &c.rule.head.rule).collect()).unwrap_or_default();
    let alternative = rules.all_vjps().filter(|v| alternatives && v.alternative.is_some());
    out.extend(alternative.filter(|v| full.is_none() || concluded.contains(&v.head.rule)).map(|v| Candidate {
        rule: v.head.rule.clone(),
        span: v.head.span,
        is_alternative: true,
    }));
    // Files are numbered in the order of their names, the default ones before all others.
    out.sort_by(|a, b| (a.span.file, a.span.start, &a.rule).cmp(&(b.span.file, b.span.start, &b.rule)));
    out
}

/// Halves the applications of a program that differs from -O0, and looks at what the one that makes the difference did.
fn first_application(
    bench: &Bench<'_>,
    program: &Differentiated,
    watch: &mut dyn FnMut(Event<'_>),
    steps: &mut Vec<StepDone>,
) -> Result<Option<Rewriting>, RunError> {
    let count = program.record().map_or(0, |record| record.applications.len());
    if count == 0 {
        return Ok(None);
    }
    let first = search::first(count, |step, on| -> Result<bool, InterpError> {
        let differs = match crate::egraph::extract(&program.at(on)) {
            Some(extracted) => bench.compare(&extracted.graph)?.is_some(),
            None => false,
        };
        let done = StepDone { applications: true, on, ..StepDone::new(step, on, differs, None) };
        watch(Event::Step(&done));
        steps.push(done);
        Ok(differs)
    })?;
    Ok(Scene::new(bench, program).guilty(first)?)
}

impl StepDone {
    fn new(step: &search::Step, on: usize, differs: bool, about: Option<&Candidate>) -> StepDone {
        StepDone {
            purpose: step.purpose,
            applications: false,
            number: step.number,
            at_most: step.at_most,
            tried: step.tried,
            of: step.of,
            on,
            rule: about.map(|c| c.rule.name.clone()),
            differs,
        }
    }
}
