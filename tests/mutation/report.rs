//! docs/mutation.md: what came of the mutants.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::judge::Judgement;
use super::meaning::{At, Meaning};
use super::mutants::Mutant;

/// Between these lines of docs/mutation.md people write.
const BY_HAND: &str = "<!-- by hand: from here -->";
const BY_HAND_END: &str = "<!-- by hand: to here -->";

/// Share of the mutants that mean something else which the checker must refuse.
pub const WANTED: f64 = 0.99;

/// A mutant with what is known of it. What loading refused has no meaning to decide.
pub struct Outcome {
    pub mutant: Mutant,
    pub meaning: Option<Meaning>,
    pub judgement: Option<Judgement>,
}

impl Outcome {
    pub fn is_equal(&self) -> bool {
        matches!(self.meaning, Some(Meaning::Same(_)))
    }

    fn not_loaded(&self) -> bool {
        matches!(self.judgement, Some(Judgement::NotLoaded(_)))
    }

    fn refused(&self) -> bool {
        matches!(self.judgement, Some(Judgement::Refused(_)))
    }

    pub fn survived(&self) -> bool {
        !self.is_equal() && !self.not_loaded() && !self.refused()
    }
}

/// Mutants that mean the same for a reason given by hand: name and reason, as `- NAME: REASON` in docs/mutation.md.
pub struct ByHand {
    text: String,
}

impl ByHand {
    pub fn read(document: &str) -> ByHand {
        let inside = document.split_once(BY_HAND).and_then(|(_, rest)| rest.split_once(BY_HAND_END));
        ByHand { text: inside.map_or_else(String::new, |(text, _)| text.trim().to_owned()) }
    }

    pub fn has(&self, mutant: &Mutant) -> bool {
        let start = format!("- {}: ", mutant.name());
        self.text.lines().any(|line| line.starts_with(&start) && line.len() > start.len())
    }
}

#[derive(Default)]
struct Count {
    all: usize,
    equal: usize,
    by_hand: usize,
    not_loaded: usize,
    refused: usize,
    survived: usize,
}

impl Count {
    fn add(&mut self, outcome: &Outcome, by_hand: &ByHand) {
        self.all += 1;
        let slot = if outcome.not_loaded() {
            &mut self.not_loaded
        } else if outcome.is_equal() {
            &mut self.equal
        } else if outcome.refused() {
            &mut self.refused
        } else if by_hand.has(&outcome.mutant) {
            &mut self.by_hand
        } else {
            &mut self.survived
        };
        *slot += 1;
    }

    /// Of those that mean something else, the share that was refused.
    fn score(&self) -> f64 {
        let killed = self.not_loaded + self.refused;
        if killed + self.survived == 0 { 1.0 } else { killed as f64 / (killed + self.survived) as f64 }
    }

    fn row(&self, name: &str) -> String {
        let Count { all, equal, by_hand, not_loaded, refused, survived } = self;
        format!("| {name} | {all} | {} | {not_loaded} | {refused} | {survived} |\n", equal + by_hand)
    }
}

/// The score, and the document.
pub fn document(outcomes: &[Outcome], by_hand: &ByHand) -> (f64, String) {
    let mut total = Count::default();
    let mut rules: BTreeMap<String, Count> = BTreeMap::new();
    let mut operators: BTreeMap<&str, Count> = BTreeMap::new();
    let mut at: BTreeMap<At, Count> = BTreeMap::new();
    for outcome in outcomes {
        total.add(outcome, by_hand);
        rules.entry(outcome.mutant.rule.name()).or_default().add(outcome, by_hand);
        operators.entry(outcome.mutant.operator).or_default().add(outcome, by_hand);
        if let Some(Meaning::Changed { at: place, .. }) = &outcome.meaning {
            at.entry(*place).or_default().add(outcome, by_hand);
        }
    }
    let mut out = String::from(
        "# The mutation score of the rule checker\n\n\
         Written by `./x mutate`, but for the list by hand.\n\n\
         Every rule of `rules/` is changed in the ways in which a slip of the pen changes it, one change at a time: a sign flipped, a\n\
         constant changed, operands swapped, a term dropped, a reduction dropped or moved, an axis or a flag changed, a `where` or\n\
         `domain` left out, an operator exchanged for its sibling, a name for another name, an arm of a `select` dropped, a promise\n\
         raised from `[real]` to `[exact]`. A mutant that then means something else must be refused, by loading or by `rules check`.\n\n\
         Whether it means something else is decided by values, not by the checker: the original and the mutant are built over\n\
         instances of the operator and compared at 10,000 elements or more, ordinary ones, ties, huge and tiny ones, zeros of both\n\
         signs, infinities and NaN, with 256 bits. A rewrite makes one claim, that its sides are equal: its mutant means\n\
         something else if its own sides differ, or if it never fires; a mutant that is another true identity does not. `[exact]`\n\
         claims every bit of F32 and F64 too. A kink states what is concluded where its condition holds; its mutant means something\n\
         else if that is not so, or if the condition holds nowhere.\n\n",
    );
    let checked = Count { not_loaded: 0, refused: total.refused, survived: total.survived, ..Count::default() };
    let _ = write!(
        out,
        "**{:.2} %** of the {} mutants that mean something else are refused; of the {} that load, {:.2} %.\n\n",
        100.0 * total.score(),
        total.not_loaded + total.refused + total.survived,
        total.refused + total.survived,
        100.0 * checked.score(),
    );
    let head = |what: &str| {
        format!(
            "| {what} | mutants | equal | refused by loading | refused by the check | accepted |\n|---|---|---|---|---|---|\n"
        )
    };
    out.push_str(&head("all"));
    out.push_str(&total.row("all rules"));
    out.push_str("\n## By change\n\n");
    out.push_str(&head("change"));
    operators.iter().for_each(|(name, count)| out.push_str(&count.row(name)));
    out.push_str("\n## By what shows the difference\n\n");
    out.push_str(&head("first shown"));
    for (place, count) in &at {
        let name = match place {
            At::Types => "by types, or where the rule fires",
            At::Ordinary => "at ordinary points",
            At::Ties => "at ties, kinks and multiples of a half only",
            At::Special => "at zeros, infinities and NaN only",
            At::Bits => "in the last bits of F32 or F64 only",
        };
        out.push_str(&count.row(name));
    }
    out.push_str("\n## By rule\n\n");
    out.push_str(&head("rule"));
    rules.iter().for_each(|(name, count)| out.push_str(&count.row(name)));
    out.push_str("\n## Accepted, though they mean something else\n\n");
    for outcome in outcomes.iter().filter(|o| o.survived() && !by_hand.has(&o.mutant)) {
        let shown = match (&outcome.meaning, &outcome.judgement) {
            (_, Some(Judgement::Panicked)) => "the checker failed",
            (Some(Meaning::Changed { shown, .. }), _) => shown,
            _ => "",
        };
        let _ = writeln!(out, "- {}: {shown}", outcome.mutant.name());
    }
    let _ = write!(
        out,
        "\n## Equal, by hand\n\nWhat the comparison tells apart and yet is no other rule, with the reason: `- NAME: REASON`.\n\n\
         {BY_HAND}\n{}\n{BY_HAND_END}\n",
        by_hand.text
    );
    out.push_str("\n## Equal, by comparison\n\nWith the least number of elements at which they were compared.\n\n");
    for outcome in outcomes {
        if let Some(Meaning::Same(points)) = outcome.meaning {
            let _ = writeln!(out, "- {}: {points}", outcome.mutant.name());
        }
    }
    (total.score(), out)
}
