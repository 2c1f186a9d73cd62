//! Why a rule was not used: for every place where it might have been, what failed first, or what it cost.
//!
//! The program is compiled as it always is, with a record of the saturation. A place is a class of the saturated e-graph that holds a call of
//! the operator at the root of the rule's left side: whether the program wrote it, the result computes it, or only other rules made it.
//! Nothing is rewritten to answer: left sides are looked for again, right sides are looked up.

mod conditions;
mod context;
mod defs;
mod fate;
mod names;
mod rewrites;
mod select;
mod text;
mod unmatched;
mod value;
mod vjps;

use std::collections::BTreeMap;

use crate::egraph::cost::Cost;
use crate::egraph::{Budget, Stop};
use crate::ir::{Level, RuleRef};

pub use select::why_not;

/// How a question is asked.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    pub level: Level,
    pub budget: Budget,
    /// One value only: a name as `grad` prints it, a name of the program, or `FILE:LINE`.
    pub at: Option<&'a str>,
    /// Places that are told of each outcome.
    pub shown: usize,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { level: Level::O2, budget: Budget::default(), at: None, shown: 5 }
    }
}

/// The answer of all rules that a name means.
#[derive(Clone, Debug)]
pub struct Answer {
    pub level: Level,
    /// Of the result; `None` at -O0.
    pub cost: Option<Cost>,
    /// How the saturation ended; `None` at -O0.
    pub stop: Option<Stop>,
    pub at: Option<String>,
    pub rules: Vec<RuleAnswer>,
}

/// The answer of one rule, or of one direction of one.
#[derive(Clone, Debug)]
pub struct RuleAnswer {
    /// `vjp`, `exact`, `real`, `def`.
    pub kind: &'static str,
    pub rule: RuleRef,
    pub doc: String,
    /// What is to be said of the rule as a whole.
    pub remarks: Vec<String>,
    /// How many places each outcome has, in the order in which they are told.
    pub outcomes: BTreeMap<Outcome, usize>,
    /// Of each outcome the first ones.
    pub places: Vec<Place>,
}

impl RuleAnswer {
    fn new(kind: &'static str, rule: &RuleRef, doc: &str) -> RuleAnswer {
        let doc = doc.lines().next().unwrap_or_default().to_owned();
        let (remarks, outcomes, places) = (Vec::new(), BTreeMap::new(), Vec::new());
        RuleAnswer { kind, rule: rule.clone(), doc, remarks, outcomes, places }
    }

    /// All places.
    pub fn count(&self) -> usize {
        self.outcomes.values().sum()
    }

    /// Counts places by their outcome. Returns those that are to be told: the first `shown` of each outcome, by outcome.
    fn count_in<'t, T>(&mut self, all: &'t [T], shown: usize, outcome: impl Fn(&T) -> Outcome) -> Vec<&'t T> {
        let mut told: Vec<&T> = Vec::new();
        for one in all {
            let count = self.outcomes.entry(outcome(one)).or_default();
            *count += 1;
            if *count <= shown {
                told.push(one);
            }
        }
        told.sort_by_key(|one| outcome(one));
        told
    }
}

/// A place where a rule might have been used.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub value: String,
    /// The number of its class in the e-graph.
    pub class: usize,
    /// The call that the rule looked at.
    pub form: String,
    /// Of a VJP: the operand whose cotangent it would conclude.
    pub operand: Option<String>,
    /// Does the program, its gradient before rewriting included, have the call?
    pub in_program: bool,
    /// Does the result compute the value?
    pub in_result: bool,
    /// Where the call stands, or the rule that made it.
    pub origin: String,
    pub outcome: Outcome,
    pub detail: Detail,
}

/// What came of a rule at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It was used, and the result computes the value so.
    Chosen,
    /// It was used, and another form is cheaper.
    Cost,
    /// It was used, and nothing in the result needs the value.
    NotReached,
    /// A definition, which stands for its operators.
    Expanded,
    /// Both sides were one value already.
    AlreadyEqual,
    /// The sides are different constants.
    Constants,
    /// The level has no such rules.
    Level,
    /// The saturation ended before.
    Budget,
    /// What proves its `domain` was found only after the last look.
    Late,
    Domain,
    When,
    Where,
    Type,
    Attribute,
    /// A name that stands for two values.
    Name,
    Pattern,
    /// Too many ways to match.
    Fuel,
    /// The rule only says that an operator commutes.
    Commutes,
    /// The VJP says `none`.
    NoConclusion,
    /// No cotangent arrives.
    NoCotangent,
    /// The operand depends on no parameter.
    Inactive,
    /// No handler differentiates it.
    NotDifferentiated,
}

impl Outcome {
    /// As JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Chosen => "chosen",
            Outcome::Cost => "cost",
            Outcome::NotReached => "not_reached",
            Outcome::Expanded => "expanded",
            Outcome::AlreadyEqual => "already_equal",
            Outcome::Constants => "constants",
            Outcome::Level => "level",
            Outcome::Budget => "budget",
            Outcome::Late => "late",
            Outcome::Domain => "domain",
            Outcome::When => "when",
            Outcome::Where => "where",
            Outcome::Type => "type",
            Outcome::Attribute => "attribute",
            Outcome::Name => "name",
            Outcome::Pattern => "pattern",
            Outcome::Fuel => "fuel",
            Outcome::Commutes => "commutes",
            Outcome::NoConclusion => "none",
            Outcome::NoCotangent => "no_cotangent",
            Outcome::Inactive => "inactive",
            Outcome::NotDifferentiated => "not_differentiated",
        }
    }

    /// As a heading.
    pub fn title(self) -> &'static str {
        match self {
            Outcome::Chosen => "fired, chosen",
            Outcome::Cost => "fired, lost on cost",
            Outcome::NotReached => "fired, not reached",
            Outcome::Expanded => "expanded",
            Outcome::AlreadyEqual => "no news: both sides were equal already",
            Outcome::Constants => "the sides are different constants",
            Outcome::Level => "not at this level",
            Outcome::Budget => "the budget ended before",
            Outcome::Late => "known too late",
            Outcome::Domain => "`domain` not proved",
            Outcome::When => "`when` does not hold",
            Outcome::Where => "`where` does not hold",
            Outcome::Type => "another type",
            Outcome::Attribute => "another attribute",
            Outcome::Name => "one name, two values",
            Outcome::Pattern => "another form",
            Outcome::Fuel => "too many ways to match",
            Outcome::Commutes => "left to the matching of other rules",
            Outcome::NoConclusion => "the rule says `none`",
            Outcome::NoCotangent => "no cotangent arrives",
            Outcome::Inactive => "depends on no parameter",
            Outcome::NotDifferentiated => "not differentiated",
        }
    }

    /// Was the rule used?
    pub fn fired(self) -> bool {
        matches!(self, Outcome::Chosen | Outcome::Cost | Outcome::NotReached)
    }
}

/// What there is to say of an outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// The title says all.
    Nothing,
    /// The ends of those ways to match that got furthest.
    Mismatches(Vec<Unmatched>),
    Condition {
        /// `where axis == rank(x) - 1`
        line: String,
        location: String,
        values: Vec<(String, String)>,
    },
    Domain {
        line: String,
        location: String,
        value: String,
        /// Where its elements are known to lie.
        range: (f64, f64),
        /// The rule needs to know that none is NaN, and that is not proved.
        may_be_nan: bool,
    },
    /// What the rule would make, or why it cannot.
    Would {
        made: Option<String>,
        why: Option<String>,
    },
    Constants {
        left: String,
        right: String,
    },
    Fired(Fired),
}

/// A part of a left side that does not fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmatched {
    /// `log_softmax(x, axis)`, `keepdims = true`, `a`
    pub wanted: String,
    /// `operand x of exp`, or the operator of an attribute; `None` for the value itself.
    pub place: Option<String>,
    /// Is it an attribute that is wanted?
    pub is_attribute: bool,
    pub found: Vec<String>,
    /// Forms that are not told.
    pub more: usize,
}

/// A rule that was used.
#[derive(Clone, Debug, PartialEq)]
pub struct Fired {
    /// The form that it made.
    pub made: String,
    /// The form that the result has, and who made it.
    pub chosen: Option<(String, String)>,
    pub chosen_rule: Option<RuleRef>,
    /// Of the result.
    pub cost: Option<Cost>,
    pub restricted: Option<Instead>,
    /// The nearest value above that the result has and computes without this one.
    pub user: Option<User>,
}

/// The result with the form that the rule made in place of the one that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    Cost {
        cost: Cost,
        /// The cheapest graph then does without the value.
        unused: bool,
        /// The search for it ended by itself.
        complete: bool,
    },
    /// It can only be computed from the value itself, or not at all.
    Impossible,
}

/// A value that is computed without one that it could need.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    pub value: String,
    pub form: String,
    pub origin: String,
    pub rule: Option<RuleRef>,
}
