//! Snapshots checked and accepted.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::Settings;
use super::files::snapshot_of;
use super::meaning::{Difference, commutative, compare};
use super::snapshot::{Snapshot, is_snapshot};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::exec::files::write_atomically;
use crate::ir::Level;
use crate::syntax::read_text;
use crate::{Refusal, Session};

/// What was asked for. What was not, is as in the snapshot, or otherwise as for a run of the program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    pub level: Option<Level>,
    pub cotangent_input: Option<bool>,
    pub seed: Option<u64>,
    /// Do not look at numbers.
    pub no_check: bool,
}

impl Wanted {
    fn settings(&self, old: Option<&Snapshot>) -> Settings {
        let old = old.map(Snapshot::settings);
        Settings {
            level: self.level.or(old.map(|s| s.level)).unwrap_or_default(),
            cotangent_input: self.cotangent_input.or(old.map(|s| s.cotangent_input)).unwrap_or(false),
            seed: self.seed.or(old.map(|s| s.seed)).unwrap_or(0),
            check: !self.no_check,
        }
    }
}

/// What became of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The snapshot means what the program is.
    Same,
    Different,
    /// There is no snapshot.
    Missing,
    /// There is no answer: the program or the snapshot is refused, or may not be accepted.
    Refused,
    /// The snapshot was written.
    Accepted,
    /// The snapshot is there already, letter by letter.
    Unchanged,
}

impl Status {
    pub const ALL: [Status; 6] =
        [Status::Same, Status::Different, Status::Missing, Status::Refused, Status::Accepted, Status::Unchanged];

    pub fn word(self) -> &'static str {
        match self {
            Status::Same => "same",
            Status::Different => "different",
            Status::Missing => "missing",
            Status::Refused => "refused",
            Status::Accepted => "accepted",
            Status::Unchanged => "unchanged",
        }
    }
}

/// One program.
#[derive(Debug)]
pub struct Entry {
    pub program: String,
    pub snapshot: PathBuf,
    pub status: Status,
    /// What was accepted before, and what is now.
    pub old: Option<Snapshot>,
    pub new: Option<Snapshot>,
    /// Between the two, if there are two.
    pub difference: Option<Difference>,
    /// What is worth saying and no difference.
    pub remarks: Vec<String>,
}

/// The text of the snapshot of a program; `None` if there is none.
fn snapshot_text(path: &Path) -> Result<Option<String>, Box<Diagnostic>> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // A pipe would be waited for.
        Ok(_) if path.exists() && !path.is_file() => {
            let message = format!("`{}` is not a regular file", path.display());
            Err(Box::new(Diagnostic::error("E0915", message).help("move it away: a snapshot is to stand there")))
        }
        _ => read_text("the snapshot ", path).map(Some),
    }
}

/// A program of which nothing is known yet.
fn unknown(path: &Path) -> Entry {
    Entry {
        program: path.display().to_string(),
        snapshot: snapshot_of(path),
        status: Status::Refused,
        old: None,
        new: None,
        difference: None,
        remarks: Vec::new(),
    }
}

/// The snapshot that a program would have now.
fn now(session: &mut Session, path: &Path, settings: &Settings) -> Result<Snapshot, Refusal> {
    let name = path.display().to_string();
    let text = read_text("", path).map_err(|diagnostic| session.refusal((*diagnostic).into()))?;
    let program = session.parse(&name, &text)?;
    Snapshot::take(session, &name, &program, settings)
}

/// Compares a program with its snapshot. Nothing is written.
pub fn check(session: &mut Session, path: &Path, wanted: &Wanted, bag: &mut Diagnostics) -> Entry {
    let mut entry = unknown(path);
    let shown = entry.snapshot.display().to_string();
    let read = match snapshot_text(&entry.snapshot) {
        Ok(text) => text.map(|text| Snapshot::read(&mut session.sources, &shown, &text)).transpose(),
        Err(diagnostic) => Err(diagnostic),
    };
    let old = match read {
        Ok(old) => old,
        Err(diagnostic) => {
            bag.push(*diagnostic);
            return entry;
        }
    };
    let mut settings = wanted.settings(old.as_ref());
    // What was accepted unchecked is not checked either: it may be too large for that.
    settings.check &= old.as_ref().is_some_and(|old| !old.verdict.is_unwanted());
    let new = match now(session, path, &settings) {
        Ok(new) => new,
        Err(refusal) => {
            bag.extend(refusal.diagnostics);
            return entry;
        }
    };
    let Some(old) = old else {
        entry.status = Status::Missing;
        entry.new = Some(new);
        return entry;
    };
    entry.remarks = remarks(&old, &new);
    let difference = compare(&old.record, &new.record, &commutative(&session.rules));
    let verdict_differs = !new.verdict.is_unwanted() && old.verdict.outcomes() != new.verdict.outcomes();
    let is_same = difference.is_none()
        && old.measure == new.measure
        && !verdict_differs
        && (old.level, old.cotangent_input) == (new.level, new.cotangent_input);
    entry.status = if is_same { Status::Same } else { Status::Different };
    if !old.verdict.passed() {
        let (what, help) = match old.verdict.is_unwanted() {
            true => ("was accepted unchecked", "`kina-ad snapshot accept` without `--no-check` checks it"),
            false => ("was accepted although a check failed", "mend the rule and accept it again"),
        };
        let mut warning = Diagnostic::warning("E0919", format!("`{shown}` {what}")).help(help);
        warning.notes = old.verdict.complaints().into_iter().map(str::to_owned).collect();
        bag.push(warning);
    }
    entry.difference = Some(difference);
    entry.old = Some(old);
    entry.new = Some(new);
    entry
}

/// What differs and makes no difference.
fn remarks(old: &Snapshot, new: &Snapshot) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut tell = |what: &str, old: &str, new: &str| {
        if old != new {
            remarks.push(format!("{what}: {old} -> {new}"));
        }
    };
    tell("rule set", &old.rules, &new.rules);
    tell("name of the program", &old.program, &new.program);
    tell("level", &old.level.to_string(), &new.level.to_string());
    let cotangent = |s: &Snapshot| if s.cotangent_input { "input" } else { "ones" };
    tell("cotangent", cotangent(old), cotangent(new));
    tell("seed", &old.seed.to_string(), &new.seed.to_string());
    remarks
}

/// Writes the snapshot of a program, unless a check fails or what stands in its place is no snapshot.
pub fn accept(
    session: &mut Session,
    path: &Path,
    wanted: &Wanted,
    even_if_wrong: bool,
    bag: &mut Diagnostics,
) -> Entry {
    let mut entry = unknown(path);
    let shown = entry.snapshot.display().to_string();
    let text = match snapshot_text(&entry.snapshot) {
        Ok(text) => text,
        Err(diagnostic) => {
            bag.push(*diagnostic);
            return entry;
        }
    };
    let old = match text.as_deref().map(|text| Snapshot::read(&mut session.sources, &shown, text)) {
        None => None,
        Some(Ok(old)) => Some(old),
        // A damaged one is what this mends; somebody else's file is not.
        Some(Err(_)) if text.as_deref().is_some_and(is_snapshot) => {
            entry.remarks.push("the snapshot before it could not be read".to_owned());
            None
        }
        Some(Err(diagnostic)) => {
            bag.push(*diagnostic);
            return entry;
        }
    };
    let mut new = match now(session, path, &wanted.settings(old.as_ref())) {
        Ok(new) => new,
        Err(refusal) => {
            bag.extend(refusal.diagnostics);
            return entry;
        }
    };
    new.despite = !new.verdict.passed() && !new.verdict.is_unwanted();
    if new.despite && !even_if_wrong {
        let mut refusal = Diagnostic::error("E0916", format!("`{}` may not be accepted: a check fails", entry.program))
            .help("mend the rule: `kina-ad rules check` finds what is wrong with it")
            .help("`--even-if-wrong` accepts it all the same, and the snapshot says so");
        refusal.notes = new.verdict.complaints().into_iter().map(str::to_owned).collect();
        bag.push(refusal);
    } else {
        let content = new.text();
        if text.as_deref() == Some(&*content) {
            entry.status = Status::Unchanged;
        } else {
            let written: io::Result<()> = write_atomically(&entry.snapshot, |w| w.write_all(content.as_bytes()));
            match written {
                Ok(()) => entry.status = Status::Accepted,
                Err(error) => bag.push(
                    Diagnostic::error("E0702", format!("cannot write `{shown}`: {error}"))
                        .help("check that the directory can be written"),
                ),
            }
        }
    }
    if let Some(old) = &old {
        entry.remarks.extend(remarks(old, &new));
        entry.difference = Some(compare(&old.record, &new.record, &commutative(&session.rules)));
    }
    entry.old = old;
    entry.new = Some(new);
    entry
}

/// Most programs that one message names.
const MOST_NAMED: usize = 10;

/// What stands in the way of all these programs.
pub fn summary(entries: &[Entry]) -> Diagnostics {
    let mut bag = Diagnostics::new();
    let named = |status: Status| -> Option<String> {
        let of_status = entries.iter().filter(|e| e.status == status);
        let names: Vec<String> = of_status.map(|e| format!("`{}`", e.program)).collect();
        let (first, rest) = names.split_at(names.len().min(MOST_NAMED));
        let rest = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        (!first.is_empty()).then(|| format!("{}{rest}", first.join(", ")))
    };
    if let Some(names) = named(Status::Missing) {
        bag.push(
            Diagnostic::error("E0913", format!("there is no snapshot of {names}"))
                .help("`kina-ad snapshot accept` with the programs writes it"),
        );
    }
    if let Some(names) = named(Status::Different) {
        bag.push(
            Diagnostic::error("E0914", format!("not as in the snapshot: {names}"))
                .help("if that is as it should be, `kina-ad snapshot accept` with the programs writes it"),
        );
    }
    bag
}
