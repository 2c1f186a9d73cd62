//! Two programs, or one program under two rule sets.

use std::collections::{BTreeMap, BTreeSet};

use super::edits::{Case, Responsible, responsible};
use super::meaning::{Difference, Interface, commutative, compare};
use super::measure::{Measure, Numbers, Side, Verdict, numbers};
use super::record::{Maker, Record};
use super::{Settings, Subject};
use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::ir::{Graph, Origin};
use crate::rules::edits::Edits;
use crate::syntax::ast::Program;
use crate::{Refusal, Session};

/// A program, the session that parsed it, and what it is called.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub session: &'a Session,
    pub name: &'a str,
    pub program: &'a Program,
}

/// What is known of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub name: String,
    /// The hash of the rule set.
    pub rules: String,
    pub record: Record,
    pub measure: Measure,
    pub verdict: Verdict,
}

/// A line of a program whose values the other program does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub number: u32,
    pub text: String,
}

/// All that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub settings: Settings,
    pub left: Summary,
    pub right: Summary,
    pub difference: Difference,
    /// The results of both at the same inputs; `None` if numbers are not looked at.
    pub numbers: Option<Numbers>,
    /// Of two programs: the lines of each that make the difference.
    pub lines: Option<[Vec<Line>; 2]>,
    /// Of two rule sets: how they differ, and which of the edits make the difference.
    pub rules: Option<Responsible>,
}

impl Report {
    /// Is there a difference of any kind? That nobody looked at the numbers is none, and neither is the peak of equal graphs: it depends
    /// on the order of their values.
    pub fn differs(&self) -> bool {
        let (left, right) = (&self.left.measure, &self.right.measure);
        !self.difference.is_none()
            || (left.cost, left.bytes) != (right.cost, right.bytes)
            || self.left.verdict.outcomes() != self.right.verdict.outcomes()
            || self.numbers.as_ref().is_some_and(Numbers::differ)
    }
}

impl Report {
    /// What is known to be wrong with the numbers of a side, or was not found out.
    pub fn warnings(&self) -> Diagnostics {
        let mut warnings = Diagnostics::new();
        for (side, summary) in [("first", &self.left), ("second", &self.right)] {
            let verdict = &summary.verdict;
            if verdict.passed() || verdict.is_unwanted() {
                continue;
            }
            let message = format!("the numbers of the {side} side are not right, or could not be checked");
            let mut warning = Diagnostic::warning("E0919", message)
                .help("`kina-ad rules check` finds what is wrong with a rule without a program");
            warning.notes = verdict.complaints().into_iter().map(str::to_owned).collect();
            warnings.push(warning);
        }
        warnings
    }
}

/// Compares. The texts of the right session must hold those of the left one: see [`Session::beside`].
///
/// # Errors
/// A program that is refused on either side.
pub fn diff(left: Input<'_>, right: Input<'_>, settings: &Settings) -> Result<Report, Refusal> {
    let subject = |input: &Input<'_>, side: &str| {
        let subject = Subject::new(input.session, input.name, input.program, settings);
        subject.map_err(|refusal| on_side(refusal, side, input))
    };
    let (first, second) = (subject(&left, "first")?, subject(&right, "second")?);
    let mut exchangeable = commutative(&left.session.rules);
    exchangeable.extend(commutative(&right.session.rules));
    let difference = compare(&first.record, &second.record, &exchangeable);
    let sides = [(&left, &first), (&right, &second)].map(|(input, subject)| Side {
        session: input.session,
        tape: &subject.tape,
        optimised: &subject.optimised,
    });
    let numbers = settings.check.then(|| numbers(&sides[0], &sides[1], settings.seed));
    let two_programs = left.program != right.program;
    let lines = two_programs.then(|| program_lines([(&left, &first), (&right, &second)], &exchangeable));
    let rules = rule_edits(&left, &right, [&first, &second], &difference, settings, &exchangeable)?;
    Ok(Report {
        settings: *settings,
        left: summary(&left, first, settings)?,
        right: summary(&right, second, settings)?,
        difference,
        numbers,
        lines,
        rules,
    })
}

/// Says which side was refused.
fn on_side(refusal: Refusal, side: &str, input: &Input<'_>) -> Refusal {
    let note = format!("on the {side} side: `{}` with rules {}", input.name, input.session.rules.hash());
    let mut diagnostics = Diagnostics::new();
    for (i, diagnostic) in refusal.diagnostics.iter().enumerate() {
        let diagnostic = diagnostic.clone();
        diagnostics.push(if i == 0 { diagnostic.note(&note) } else { diagnostic });
    }
    Refusal { diagnostics, ..refusal }
}

fn summary(input: &Input<'_>, subject: Subject, settings: &Settings) -> Result<Summary, Refusal> {
    let measure = subject.measure(input.session)?;
    let verdict = subject.verdict(input.session, settings);
    Ok(Summary {
        name: input.name.to_owned(),
        rules: input.session.rules.hash(),
        record: subject.record,
        measure,
        verdict,
    })
}

/// Which edits make the difference; of two programs, that of the second one under the two rule sets.
fn rule_edits(
    left: &Input<'_>,
    right: &Input<'_>,
    subjects: [&Subject; 2],
    difference: &Difference,
    settings: &Settings,
    exchangeable: &BTreeSet<String>,
) -> Result<Option<Responsible>, Refusal> {
    let session = right.session;
    let edits = Edits::between(&left.session.rules, &session.rules, &session.sources);
    if edits.list().is_empty() {
        return Ok(None);
    }
    let [first, second] = subjects;
    let before;
    let (origin, difference) = if left.program == right.program {
        (&first.record, difference)
    } else {
        let rules = Session { rules: left.session.rules.clone(), ..session.clone() };
        let Ok(subject) = Subject::new(&rules, right.name, right.program, settings) else {
            return Ok(Some(Responsible::unknown(edits.list().len())));
        };
        let difference = compare(&subject.record, &second.record, exchangeable);
        before = (subject.record, difference);
        (&before.0, &before.1)
    };
    if difference.is_none() {
        return Ok(Some(Responsible::none(edits.list().len())));
    }
    let case = Case {
        program: right.program,
        name: right.name,
        settings,
        commutative: exchangeable,
        left: origin,
        right: &second.record,
        difference,
    };
    Ok(Some(responsible(&edits, session, &case)))
}

/// The lines of two programs whose values differ, before anything is done with them.
fn program_lines(sides: [(&Input<'_>, &Subject); 2], exchangeable: &BTreeSet<String>) -> [Vec<Line>; 2] {
    let records = sides.map(|(input, subject)| {
        Record::new(&subject.graph, &input.session.rules.registry, &input.session.sources, input.name)
    });
    let difference = compare(&records[0], &records[1], exchangeable);
    let changed = difference.changed.iter();
    let values = [
        difference.removed.iter().copied().chain(changed.clone().map(|c| c.left)).collect::<Vec<_>>(),
        difference.added.iter().copied().chain(changed.map(|c| c.right)).collect(),
    ];
    // A gradient is another one where its function is: the line of the handler says something only where nothing else does.
    let is_gradient =
        |side: usize, index: usize| records[side].values[index].call.as_ref().is_some_and(|call| call.op == "gradient");
    let is_told = |side: usize| values[side].iter().any(|index| !is_gradient(side, *index));
    let leave_out = is_told(0) || is_told(1) || !difference.interface.is_empty();
    let mut out = [Vec::new(), Vec::new()];
    for (side, (input, subject)) in sides.iter().enumerate() {
        let sources = &input.session.sources;
        let mut numbers: BTreeSet<u32> = BTreeSet::new();
        for index in values[side].iter().filter(|index| !(leave_out && is_gradient(side, **index))) {
            if let Some(Maker::Program(place)) = &records[side].values[*index].maker {
                numbers.extend(line_number(place));
            }
        }
        let inputs = input_lines(&subject.graph);
        for part in &difference.interface {
            let name = match part {
                Interface::Retyped { what: "input", name, .. } => name,
                Interface::Removed { what: "input", text } | Interface::Added { what: "input", text } => text,
                _ => continue,
            };
            let name = name.split(' ').next().unwrap_or(name);
            numbers.extend(inputs.get(name).map(|span| sources.position(*span).line));
        }
        let text = &sources.file(input.program.body.span.file).text;
        let lines: Vec<&str> = text.lines().collect();
        out[side] = numbers
            .into_iter()
            .filter_map(|number| {
                let text = lines.get((number as usize).checked_sub(1)?)?;
                Some(Line { number, text: text.trim().to_owned() })
            })
            .collect();
    }
    out
}

/// The line of `nll.kina:12` or `nll.kina:12 handler`.
fn line_number(place: &str) -> Option<u32> {
    place.strip_suffix(" handler").unwrap_or(place).rsplit_once(':')?.1.parse().ok()
}

/// Where each input is declared.
fn input_lines(graph: &Graph) -> BTreeMap<&str, Span> {
    let inputs = graph.inputs.iter().filter_map(|id| {
        let node = graph.node(*id);
        match (&node.name, &node.origin) {
            (Some(name), Origin::Program(span) | Origin::Handler(span)) => Some((&**name, *span)),
            _ => None,
        }
    });
    inputs.collect()
}
