//! Verdicts known from earlier runs.
//!
//! A verdict depends on the rule's text, on the texts of the rules that its own names reach, on the seed and on this very build of
//! the program. The fingerprint of all that is the key; only rules that passed are kept, since a refusal must show its
//! counterexample. The file is a convenience: if it cannot be read or written, rules are checked again.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::report::Findings;
use super::{Subject, subjects};
use crate::diagnostics::{SourceMap, Span};
use crate::exec::files::write_atomically;
use crate::rules::RuleSet;

/// Entries kept; the file stays below a megabyte.
const MOST: usize = 4_000;

/// What is kept of the findings on a rule that passed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Entry {
    points: usize,
    worst: f64,
    kinks: usize,
    examples: usize,
    second_points: usize,
    second: f64,
    policy: bool,
    not_compared: Option<String>,
    values: usize,
    ulps: f64,
    not_second: Option<String>,
}

/// The file of known verdicts.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    path: Option<PathBuf>,
    known: BTreeMap<String, Entry>,
    changed: bool,
}

impl Cache {
    /// Knows nothing and keeps nothing.
    pub fn none() -> Cache {
        Cache::default()
    }

    /// The verdicts of a file, which need not be there.
    pub fn at(path: &Path) -> Cache {
        let known = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Cache { path: Some(path.to_owned()), known, changed: false }
    }

    pub fn get(&self, key: &str) -> Option<Findings> {
        let entry = self.known.get(key)?.clone();
        Some(Findings {
            points: entry.points,
            worst: entry.worst,
            kinks: entry.kinks,
            examples: entry.examples,
            second_points: entry.second_points,
            second: entry.second,
            policy: entry.policy,
            not_compared: entry.not_compared,
            values: entry.values,
            ulps: entry.ulps,
            not_second: entry.not_second,
            ..Findings::default()
        })
    }

    /// Keeps the findings on a rule that passed.
    pub fn put(&mut self, key: String, findings: &Findings) {
        if findings.is_refused() || !findings.warnings.is_empty() || self.path.is_none() {
            return;
        }
        let entry = Entry {
            points: findings.points,
            worst: findings.worst,
            kinks: findings.kinks,
            examples: findings.examples,
            second_points: findings.second_points,
            second: findings.second,
            policy: findings.policy,
            not_compared: findings.not_compared.clone(),
            values: findings.values,
            ulps: findings.ulps,
            not_second: findings.not_second.clone(),
        };
        // What is no number has no JSON.
        if entry.worst.is_finite() && entry.second.is_finite() {
            self.known.insert(key, entry);
            self.changed = true;
        }
    }

    /// Writes what is new. What another process wrote meanwhile is lost, and found again.
    pub fn save(&mut self) {
        let Some(path) = &self.path else { return };
        if !self.changed {
            return;
        }
        if self.known.len() > MOST {
            self.known.clear();
            return;
        }
        let Ok(text) = serde_json::to_vec(&self.known) else { return };
        if let Some(directory) = path.parent() {
            let _ = std::fs::create_dir_all(directory);
        }
        let _: Result<(), std::io::Error> = write_atomically(path, |w| w.write_all(&text));
        self.changed = false;
    }
}

/// What every verdict of this run depends on besides rules: the build of the program, and the seed.
fn stamp(seed: u64) -> String {
    let executable = std::env::current_exe().and_then(std::fs::metadata).ok();
    let written = executable.as_ref().and_then(|m| m.modified().ok());
    let written = written.and_then(|t| t.duration_since(UNIX_EPOCH).ok()).map_or(0, |d| d.as_nanos());
    let length = executable.map_or(0, |m| m.len());
    format!("{} {written} {length} {seed}", env!("CARGO_PKG_VERSION"))
}

/// Keys of all rules of a set.
pub struct Keys {
    stamp: String,
    /// The texts of all rules about an operator or composite of that name.
    about: BTreeMap<String, BTreeSet<String>>,
}

impl Keys {
    pub fn new(rules: &RuleSet, sources: &SourceMap, seed: u64) -> Keys {
        let mut about: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for subject in subjects(rules) {
            let name = match &subject {
                Subject::Vjp(vjp) => rules.registry.op(vjp.op).name().to_owned(),
                Subject::Def(def) => def.name.to_string(),
                Subject::Rewrite(_) => continue,
            };
            about.entry(name).or_default().insert(sources.text(subject.head().span).to_owned());
        }
        Keys { stamp: stamp(seed), about }
    }

    /// The key of a rule.
    pub fn of(&self, rule: Span, sources: &SourceMap) -> String {
        let own = sources.text(rule).to_owned();
        let mut texts = BTreeSet::new();
        let mut names: BTreeSet<&str> = BTreeSet::new();
        // Signs of operators are no words.
        let mut waiting: Vec<&str> = vec!["add", "sub", "mul", "div", "neg", "select", "sum"];
        waiting.extend(words(&own));
        while let Some(name) = waiting.pop() {
            let Some((name, about)) = self.about.get_key_value(name) else { continue };
            if names.insert(name) {
                for text in about {
                    texts.insert(text.as_str());
                    waiting.extend(words(text));
                }
            }
        }
        fingerprint(&(&self.stamp, &own, texts))
    }

    /// The key of the whole set.
    pub fn of_set(&self, rules: &RuleSet, sources: &SourceMap) -> String {
        let texts: BTreeSet<&str> = subjects(rules).iter().map(|s| sources.text(s.head().span)).collect();
        fingerprint(&(&self.stamp, texts))
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

/// 128 bits of two unrelated hashes.
fn fingerprint(value: &impl Hash) -> String {
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        value.hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", hash(1), hash(2))
}
