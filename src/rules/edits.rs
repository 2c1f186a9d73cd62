//! What differs between two rule sets, rule by rule, and the rule sets between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::RuleSet;
use super::hash::{Content, Effective};
use super::load::assemble;
use crate::diagnostics::{Diagnostics, SourceMap, Span};
use crate::syntax::ast::Item;

/// What became of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    Removed,
    Changed,
}

impl Change {
    pub fn word(self) -> &'static str {
        match self {
            Change::Added => "added",
            Change::Removed => "removed",
            Change::Changed => "changed",
        }
    }
}

/// A rule that two sets do not have in the same form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// `vjp exp`, `rewrite exp_of_log`, `def layer_norm`.
    pub name: String,
    pub change: Change,
    /// `file:line` in the first set, as provenance has it, and the whole rule.
    pub before: Option<(Arc<str>, Span)>,
    /// The same in the second set.
    pub after: Option<(Arc<str>, Span)>,
}

/// Two rule sets, compared by what their rules say. Layout, comments, documentation, places and the order of rules are no
/// difference, and a VJP that an `override` replaces has no part in it.
pub struct Edits<'a> {
    before: BTreeMap<String, Effective<'a>>,
    after: BTreeMap<String, Effective<'a>>,
    list: Vec<Edit>,
}

impl<'a> Edits<'a> {
    /// The places of both must be of `sources`.
    pub fn between(before: &'a RuleSet, after: &'a RuleSet, sources: &SourceMap) -> Edits<'a> {
        let (before, after) = (before.content.effective(), after.content.effective());
        let place = |rule: &Effective<'_>| (Arc::from(sources.file_line(rule.name)), rule.span);
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let list = names.into_iter().filter_map(|name| {
            let (old, new) = (before.get(name), after.get(name));
            let change = match (old, new) {
                (Some(old), Some(new)) if old.text == new.text => return None,
                (Some(_), Some(_)) => Change::Changed,
                (Some(_), None) => Change::Removed,
                (None, _) => Change::Added,
            };
            Some(Edit { name: name.clone(), change, before: old.map(place), after: new.map(place) })
        });
        let list = list.collect();
        Edits { before, after, list }
    }

    /// By the names of the rules.
    pub fn list(&self) -> &[Edit] {
        &self.list
    }

    /// The first rule set with some of the edits: those for whose index in [`list`](Edits::list) `is_made` says so. `None` if these
    /// rules cannot be loaded together, for example because a `def` is gone that another one calls.
    pub fn apply(&self, is_made: impl Fn(usize) -> bool, sources: &SourceMap) -> Option<RuleSet> {
        let mut chosen = self.before.clone();
        for (i, edit) in self.list.iter().enumerate() {
            if is_made(i) {
                match self.after.get(&edit.name) {
                    Some(rule) => chosen.insert(edit.name.clone(), rule.clone()),
                    None => chosen.remove(&edit.name),
                };
            }
        }
        let items: Vec<Item> = chosen.into_values().map(|rule| standing_alone(rule.item)).collect();
        let mut bag = Diagnostics::new();
        // Every rule was typed when its own set was loaded.
        let mut rules = assemble(&items, items.len(), BTreeSet::new(), sources, &mut bag)?;
        rules.content = Arc::new(Content::new(items));
        if bag.has_errors() { None } else { Some(rules) }
    }
}

/// A rule that an `override` replaces is not in the set, so that nothing is left to override.
fn standing_alone(item: &Item) -> Item {
    let mut item = item.clone();
    if let Item::Vjp(vjp) = &mut item {
        vjp.is_override = false;
    }
    item
}
