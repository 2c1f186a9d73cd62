//! Which edits of rules make a difference for a program: found by leaving edits out and looking what remains of it.

use std::collections::BTreeSet;

use super::meaning::{Difference, compare};
use super::record::{Maker, Record};
use super::{Settings, Subject};
use crate::Session;
use crate::rules::edits::{Edit, Edits};
use crate::syntax::ast::Program;

/// How often a program is compiled at most to find the edits that matter. Above that the answer says that it is not the last word.
const MOST_TRIALS: usize = 120;
/// The least for a large program, and what all trials together may compile, in values.
const LEAST_TRIALS: usize = 12;
const WORK: usize = 2_000_000;

/// What is left where an edit is undone, and the others that matter stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Without {
    /// The graph of the first rule set.
    Nothing,
    /// Another graph, neither that of the first nor that of the second rule set.
    Another,
    /// No graph: the rules do not load, or the program is refused, with the code of the first error.
    Refused(Option<&'static str>),
    /// It was not tried, for want of trials.
    Untried,
}

/// The edits of a rule set that make a difference for a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Responsible {
    /// How many edits there are.
    pub edits: usize,
    /// With these alone the graph is that of the second rule set, and without any one of them it is not.
    pub matter: Vec<(Edit, Without)>,
    /// Was every one of them tried? Otherwise some of them may have no part in it.
    pub complete: bool,
    /// How often the program was compiled.
    pub trials: usize,
}

impl Responsible {
    /// Of edits that make no difference for the program together.
    pub fn none(edits: usize) -> Responsible {
        Responsible { edits, matter: Vec::new(), complete: true, trials: 0 }
    }

    /// Of two programs the second of which is refused under the first rule set: what the edits alone do to it cannot be said.
    pub fn unknown(edits: usize) -> Responsible {
        Responsible { complete: false, ..Responsible::none(edits) }
    }
}

/// What a program is under some of the edits.
enum Trial {
    Graph(Record),
    Refused(Option<&'static str>),
}

/// A search at work.
struct Search<'a> {
    edits: &'a Edits<'a>,
    /// Of the second rule set: its texts hold those of the first.
    session: &'a Session,
    program: &'a Program,
    name: &'a str,
    settings: &'a Settings,
    commutative: &'a BTreeSet<String>,
    /// The graph under all edits, and under none.
    goal: &'a Record,
    origin: &'a Record,
    trials: usize,
    most: usize,
}

/// The two graphs of a program whose rules were edited, and what they differ in.
pub struct Case<'a> {
    pub program: &'a Program,
    pub name: &'a str,
    pub settings: &'a Settings,
    pub commutative: &'a BTreeSet<String>,
    /// Under the first rule set and under the second.
    pub left: &'a Record,
    pub right: &'a Record,
    pub difference: &'a Difference,
}

/// Finds a smallest set of edits that is enough for the difference: first by leaving out at once all that no value with a difference
/// names, then by halves, then one by one. `session` has the second rule set.
pub fn responsible(edits: &Edits<'_>, session: &Session, case: &Case<'_>) -> Responsible {
    let count = edits.list().len();
    let mut search = Search {
        edits,
        session,
        program: case.program,
        name: case.name,
        settings: case.settings,
        commutative: case.commutative,
        goal: case.right,
        origin: case.left,
        trials: 0,
        most: (WORK / case.right.values.len().max(1)).clamp(LEAST_TRIALS, MOST_TRIALS),
    };
    let named = named(edits.list(), case);
    // Those that no differing value names come first, since the search leaves out from the front.
    let mut kept: Vec<usize> = (0..count).filter(|i| !named.contains(i)).collect();
    kept.extend(&named);
    let guess: Vec<usize> = named.iter().copied().collect();
    if guess.len() < kept.len() && search.reaches(&guess) {
        kept = guess;
    }
    let mut size = kept.len() / 2;
    while size > 1 {
        let mut at = 0;
        while at < kept.len() && search.may_go_on() {
            let rest: Vec<usize> = kept.iter().take(at).chain(kept.iter().skip(at + size)).copied().collect();
            if search.reaches(&rest) {
                kept = rest;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    let (outcomes, complete) = search.one_by_one(&mut kept);
    let mut found: Vec<(usize, Without)> = kept.into_iter().zip(outcomes).collect();
    found.sort_by_key(|(edit, _)| *edit);
    let matter = found.into_iter().map(|(edit, without)| (edits.list()[edit].clone(), without)).collect();
    Responsible { edits: count, matter, complete, trials: search.trials }
}

impl Search<'_> {
    fn may_go_on(&self) -> bool {
        self.trials < self.most
    }

    fn attempt(&mut self, made: &[usize]) -> Trial {
        self.trials += 1;
        let made: BTreeSet<usize> = made.iter().copied().collect();
        let Some(rules) = self.edits.apply(|edit| made.contains(&edit), &self.session.sources) else {
            return Trial::Refused(None);
        };
        let session = Session { rules, sources: self.session.sources.clone(), warnings: Default::default() };
        match Subject::new(&session, self.name, self.program, self.settings) {
            Ok(subject) => Trial::Graph(subject.record),
            Err(refusal) => Trial::Refused(refusal.diagnostics.iter().next().map(|d| d.code)),
        }
    }

    fn is_same(&self, a: &Record, b: &Record) -> bool {
        compare(a, b, self.commutative).is_none()
    }

    /// Do these edits alone give the graph of all of them?
    fn reaches(&mut self, made: &[usize]) -> bool {
        match self.attempt(made) {
            Trial::Graph(record) => self.is_same(&record, self.goal),
            Trial::Refused(_) => false,
        }
    }

    /// Leaves out each edit without which the graph stays the same, until none is left. What the graph is without each of the others,
    /// and whether all of them were tried.
    fn one_by_one(&mut self, kept: &mut Vec<usize>) -> (Vec<Without>, bool) {
        let mut states = vec![State::Untried; kept.len()];
        loop {
            let untried = states.iter().position(|s| *s == State::Untried);
            let next = untried.or_else(|| states.iter().position(|s| *s == State::Void));
            let Some(next) = next.filter(|_| self.may_go_on()) else { break };
            let rest: Vec<usize> = kept.iter().enumerate().filter(|(i, _)| *i != next).map(|(_, e)| *e).collect();
            let without = match self.attempt(&rest) {
                Trial::Graph(record) if self.is_same(&record, self.goal) => {
                    *kept = rest;
                    states.remove(next);
                    // What is known of an edit holds only while the others stand.
                    states.iter_mut().filter(|s| matches!(s, State::Known(_))).for_each(|s| *s = State::Void);
                    continue;
                }
                Trial::Graph(record) if self.is_same(&record, self.origin) => Without::Nothing,
                Trial::Graph(_) => Without::Another,
                Trial::Refused(code) => Without::Refused(code),
            };
            states[next] = State::Known(without);
        }
        let is_complete = states.iter().all(|s| matches!(s, State::Known(_)));
        let outcome = |state| match state {
            State::Known(without) => without,
            State::Untried | State::Void => Without::Untried,
        };
        (states.into_iter().map(outcome).collect(), is_complete)
    }
}

/// What is known of an edit while edits are left out one by one.
#[derive(Clone, PartialEq)]
enum State {
    Untried,
    /// Another edit was left out since it was tried.
    Void,
    Known(Without),
}

/// The edits whose rules made a value that differs, of either side.
fn named(edits: &[Edit], case: &Case<'_>) -> BTreeSet<usize> {
    let difference = case.difference;
    let made = |record: &Record, values: &mut dyn Iterator<Item = usize>| -> BTreeSet<String> {
        let rules = values.filter_map(|index| match record.values.get(index)?.maker.as_ref()? {
            Maker::Rule { location, .. } => Some(location.clone()),
            _ => None,
        });
        rules.collect()
    };
    let lefts =
        made(case.left, &mut difference.removed.iter().copied().chain(difference.changed.iter().map(|c| c.left)));
    let rights =
        made(case.right, &mut difference.added.iter().copied().chain(difference.changed.iter().map(|c| c.right)));
    let is_named = |edit: &Edit| {
        let before = edit.before.as_ref().is_some_and(|(place, _)| lefts.contains(&**place));
        before || edit.after.as_ref().is_some_and(|(place, _)| rights.contains(&**place))
    };
    edits.iter().enumerate().filter(|(_, edit)| is_named(edit)).map(|(i, _)| i).collect()
}
