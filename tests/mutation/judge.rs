//! What the checker says of a mutant.

use std::collections::BTreeSet;
use std::path::Path;

use kina_ad::diagnostics::{Diagnostic, Severity, SourceMap};
use kina_ad::rules::RuleSet;
use kina_ad::verify::cache::Cache;
use kina_ad::verify::{Options, Report, Subject, check, subjects};

use super::corpus::Corpus;
use super::mutants::{Mutant, Rule};

#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// By loading, with what it says.
    NotLoaded(String),
    /// By the check of the rule itself, or of another rule of the set, or of all together: the code.
    Refused(String),
    Accepted,
    /// The checker failed.
    Panicked,
}

/// What the checker says of the rules as they are.
pub struct Baseline {
    /// Verdicts, which a mutant leaves as they were unless they depend on it.
    cache: Cache,
    /// Names of rules that are refused without being changed: nothing can be learnt from them.
    refused: BTreeSet<String>,
    /// Do the others pass together?
    together: bool,
}

impl Baseline {
    pub fn new(corpus: &Corpus, directory: &Path) -> Baseline {
        let mut cache = Cache::at(&directory.join("verdicts"));
        let report = check(&subjects(&corpus.rules), &corpus.rules, &corpus.sources, &options(2), &mut cache);
        let refused: BTreeSet<String> =
            report.verdicts.iter().filter(|v| !v.passed()).map(|v| v.rule.name.to_string()).collect();
        let others: Vec<Subject> =
            subjects(&corpus.rules).into_iter().filter(|s| !refused.contains(&*s.head().rule.name)).collect();
        let report = check(&others, &corpus.rules, &corpus.sources, &options(2), &mut cache);
        Baseline { cache, refused, together: !report.together.has_errors() }
    }

    /// What is wrong with the rules before anything is changed.
    pub fn complaints(&self) -> Vec<String> {
        let mut all: Vec<String> = self.refused.iter().map(|name| format!("`{name}` is refused as it is")).collect();
        if !self.together {
            all.push("the rules as they are contradict each other".into());
        }
        all
    }

    /// Can its mutants be judged?
    pub fn knows(&self, rule: &Rule) -> bool {
        let name = rule.name();
        !self
            .refused
            .iter()
            .any(|r| *r == name || name.strip_prefix("rewrite ").or(name.strip_prefix("def ")) == Some(r.as_str()))
    }
}

fn options(threads: usize) -> Options<'static> {
    Options { threads, ..Options::default() }
}

/// The first refusal.
fn refusal(report: &Report, together: bool) -> Option<String> {
    let show = |d: &Diagnostic| format!("{}: {}", d.code, d.message);
    if let Some(verdict) = report.verdicts.iter().find(|v| !v.passed()) {
        return Some(verdict.findings.refusal.as_ref().map_or_else(|| "without a reason".into(), show));
    }
    let contradiction = report.together.iter().find(|d| d.severity == Severity::Error).filter(|_| together);
    contradiction.map(show)
}

/// Checks the rule by itself, then all that depends on it, then all together.
pub fn judge(mutant: &Mutant, rules: &RuleSet, sources: &SourceMap, known: &Baseline) -> Judgement {
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let all = subjects(rules);
        let (own, related): (Vec<Subject>, Vec<Subject>) = all
            .into_iter()
            .filter(|s| !known.refused.contains(&*s.head().rule.name))
            .partition(|s| is(s, &mutant.rule, rules));
        let mut cache = known.cache.clone();
        // The rule itself first: most mutants end here. All together is the last thing that a check does.
        let mut report = check(&own, rules, sources, &options(1), &mut cache);
        if refusal(&report, known.together).is_none() {
            report = check(&related, rules, sources, &options(1), &mut cache);
        }
        refusal(&report, known.together)
    }));
    match checked {
        Ok(Some(why)) => Judgement::Refused(why),
        Ok(None) => Judgement::Accepted,
        Err(_) => Judgement::Panicked,
    }
}

/// Is it the rule that was changed (or its other direction)?
fn is(subject: &Subject, rule: &Rule, rules: &RuleSet) -> bool {
    match (subject, rule) {
        (Subject::Vjp(vjp), Rule::Vjp { op, alternative }) => {
            rules.registry.op(vjp.op).name() == op && vjp.alternative == *alternative
        }
        (Subject::Rewrite(rewrite), Rule::Rewrite(name)) => {
            let of_rule = &*rewrite.head.rule.name;
            of_rule == name || of_rule.strip_suffix("_reversed") == Some(name)
        }
        (Subject::Def(def), Rule::Def(name)) => *def.name == **name,
        _ => false,
    }
}
