//! Snapshots: the extracted graph of a program with its measures and its verdict, as a text beside the program. People review it,
//! and it is read back to be compared by meaning.

use std::fmt::Write as _;
use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use super::measure::{Measure, Verdict};
use super::parse::{self, Fault, Reader};
use super::record::{Record, file_name};
use super::{Settings, Subject};
use crate::diagnostics::{Diagnostic, SourceMap};
use crate::ir::Level;
use crate::syntax::ast::Program;
use crate::{Refusal, Session};

/// How every snapshot begins, before the version of its form.
pub const HEAD: &str = "kina-ad snapshot ";
const VERSION: &str = "1";
/// What says that somebody wanted a wrong one.
const DESPITE: &str = "accepted although a check failed";
/// Before the digest of all lines above.
const END: &str = "end ";

/// What is kept of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The name of its file.
    pub program: String,
    pub level: Level,
    pub cotangent_input: bool,
    pub seed: u64,
    /// The hash of the rule set.
    pub rules: String,
    pub record: Record,
    pub measure: Measure,
    pub verdict: Verdict,
    /// It was accepted although its verdict is against it.
    pub despite: bool,
}

impl Snapshot {
    /// The snapshot of a program that the session has parsed. `name` is its path.
    ///
    /// # Errors
    /// A program that is refused.
    pub fn take(session: &Session, name: &str, program: &Program, settings: &Settings) -> Result<Snapshot, Refusal> {
        let subject = Subject::new(session, name, program, settings)?;
        Ok(Snapshot {
            program: file_name(name),
            level: settings.level,
            cotangent_input: settings.cotangent_input,
            seed: settings.seed,
            rules: session.rules.hash(),
            measure: subject.measure(session)?,
            verdict: subject.verdict(session, settings),
            record: subject.record,
            despite: false,
        })
    }

    /// The settings that it was made with.
    pub fn settings(&self) -> Settings {
        Settings {
            level: self.level,
            cotangent_input: self.cotangent_input,
            seed: self.seed,
            check: !self.verdict.is_unwanted(),
        }
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut out = format!("{HEAD}{VERSION}\n");
        let cotangent = if self.cotangent_input { "input" } else { "ones" };
        let _ = writeln!(out, "program    {}", self.program);
        let _ = writeln!(out, "level      {}", self.level);
        let _ = writeln!(out, "cotangent  {cotangent}");
        let _ = writeln!(out, "seed       {}", self.seed);
        let _ = writeln!(out, "rules      {}", self.rules);
        out.push_str(&self.record.text());
        out.push_str(&self.measure.text());
        out.push_str(&self.verdict.text());
        if self.despite {
            let _ = writeln!(out, "{DESPITE}");
        }
        let digest = digest(out.lines());
        let _ = writeln!(out, "{END}{digest}");
        out
    }

    /// Reads a file's text; `name` is what messages call it.
    ///
    /// # Errors
    /// A text that no kina-ad wrote, or that was changed since, with the place.
    pub fn read(sources: &mut SourceMap, name: &str, text: &str) -> Result<Snapshot, Box<Diagnostic>> {
        let mut reader = Reader::new(text);
        let found = read(&mut reader);
        let fault = match found {
            Ok(snapshot) => return Ok(snapshot),
            Err(fault) => fault,
        };
        let file = sources.add(name, text);
        let span = sources.line(file, fault.line);
        let what = if is_snapshot(text) { "cannot be used" } else { "is not a snapshot of kina-ad" };
        let help = if is_snapshot(text) {
            "`kina-ad snapshot accept` with the program writes it anew; look at the difference in your version control"
        } else {
            "move it away if the program is to have a snapshot under this name"
        };
        let diagnostic = Diagnostic::error("E0915", format!("`{name}` {what}")).at(span, fault.message).help(help);
        Err(Box::new(diagnostic))
    }
}

/// Does the text begin like a snapshot, whatever became of the rest?
pub fn is_snapshot(text: &str) -> bool {
    text.starts_with(HEAD)
}

fn read(reader: &mut Reader<'_>) -> Result<Snapshot, Fault> {
    let version =
        reader.expect(HEAD).map_err(|fault| Fault { message: format!("a snapshot begins with `{HEAD}`"), ..fault })?;
    if version != VERSION {
        return Err(reader.fault_before(format!("this kina-ad reads version {VERSION}")));
    }
    let program = reader.expect("program ")?.to_owned();
    let text = reader.expect("level ")?;
    let level = Level::ALL.into_iter().find(|level| level.to_string() == text);
    let level = level.ok_or_else(|| reader.fault_before("there is no such level"))?;
    let cotangent_input = match reader.expect("cotangent ")? {
        "ones" => false,
        "input" => true,
        _ => return Err(reader.fault_before("the cotangent is `ones` or `input`")),
    };
    let seed = reader.expect("seed ")?.parse().map_err(|_| reader.fault_before("a seed is a number"))?;
    let rules = reader.expect("rules ")?.to_owned();
    let record = parse::record(reader)?;
    let measure = Measure::read(reader)?;
    let verdict = Verdict::read(reader)?;
    let despite = reader.take(DESPITE).is_some();
    let expected = digest(reader.before());
    let stated = reader.expect(END)?;
    if stated != expected {
        return Err(reader.fault_before("the text above is not the one that was accepted: it was edited or merged"));
    }
    if reader.peek().is_some() {
        return Err(reader.fault("nothing stands after the last line of a snapshot"));
    }
    Ok(Snapshot { program, level, cotangent_input, seed, rules, record, measure, verdict, despite })
}

/// Of lines, however they end: a version control may change that.
fn digest<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut hasher = SipHasher24::new();
    for line in lines {
        hasher.write(line.as_bytes());
        hasher.write(b"\n");
    }
    format!("{:016x}", hasher.finish())
}
