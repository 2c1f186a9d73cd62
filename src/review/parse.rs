//! The printed form of a [`Record`], read back. What is read may be anything.

use std::collections::BTreeMap;

use super::record::{Arg, Call, Guard, Maker, Named, Record, SUM, Value};

/// Why a line cannot be read. Lines are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub line: usize,
    pub message: String,
}

/// Lines of a text, one after the other.
pub struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str) -> Reader<'a> {
        Reader { lines: text.lines().collect(), at: 0 }
    }

    /// The lines that were read.
    pub fn before(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.lines.iter().take(self.at).copied()
    }

    pub fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// What stands behind `key` on the next line, if it begins so.
    pub fn take(&mut self, key: &str) -> Option<&'a str> {
        let rest = self.peek()?.strip_prefix(key)?;
        self.at += 1;
        Some(rest.trim())
    }

    /// The next line, which must begin with `key`.
    pub fn expect(&mut self, key: &str) -> Result<&'a str, Fault> {
        self.take(key).ok_or_else(|| self.fault(format!("a line that begins with `{}` is missing here", key.trim())))
    }

    /// The next line if it is indented, without the space around it.
    pub fn entry(&mut self) -> Option<&'a str> {
        self.take("  ")
    }

    /// A fault of the line that comes next.
    pub fn fault(&self, message: impl Into<String>) -> Fault {
        Fault { line: self.at.min(self.lines.len().saturating_sub(1)), message: message.into() }
    }

    /// A fault of the line that was read last.
    pub fn fault_before(&self, message: impl Into<String>) -> Fault {
        Fault { line: self.at.saturating_sub(1), message: message.into() }
    }
}

/// The graph whose text comes next.
///
/// # Errors
/// The first line that is not what [`Record::text`] writes.
pub fn record(reader: &mut Reader<'_>) -> Result<Record, Fault> {
    let mut record = Record::default();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    reader.expect("inputs")?;
    while let Some(line) = reader.entry() {
        let (name, ty) = line.split_once(" : ").ok_or_else(|| reader.fault_before("expected `NAME : TYPE`"))?;
        let name = define(&mut names, name, record.values.len(), reader)?;
        record.values.push(Value { name, call: None, ty: ty.trim().to_owned(), maker: None });
    }
    reader.expect("values")?;
    while let Some(line) = reader.entry() {
        let wanted = || reader.fault_before("expected `NAME = OPERATOR(..) : TYPE`");
        let (name, rest) = line.split_once(" = ").ok_or_else(wanted)?;
        let (text, ty) = rest.rsplit_once(" : ").ok_or_else(wanted)?;
        let call = call(text, &names, reader)?;
        let name = define(&mut names, name, record.values.len(), reader)?;
        let comment = reader.entry().and_then(|line| line.strip_prefix("// "));
        let maker =
            comment.and_then(maker).ok_or_else(|| reader.fault_before("expected `// ` and who made the value"))?;
        record.values.push(Value { name, call: Some(call), ty: ty.to_owned(), maker: Some(maker) });
    }
    if reader.take("checks").is_some() {
        while let Some(line) = reader.entry() {
            let guard = guard(line, &names);
            record
                .checks
                .push(guard.ok_or_else(|| reader.fault_before("expected `0 <= NAME < SIZE, or trap: MESSAGE`"))?);
        }
    }
    reader.expect("results")?;
    while let Some(line) = reader.entry() {
        let parts = line.split_once(" = ").and_then(|(name, rest)| Some((name.trim(), rest.rsplit_once(" : ")?)));
        let (name, (value, ty)) = parts.ok_or_else(|| reader.fault_before("expected `NAME = VALUE : TYPE`"))?;
        let index = known(&names, value, reader)?;
        if record.values[index].ty != ty {
            return Err(reader.fault_before(format!("`{value}` is of another type above")));
        }
        record.results.push(Named { name: name.to_owned(), value: index });
    }
    Ok(record)
}

fn define<'a>(
    names: &mut BTreeMap<&'a str, usize>,
    name: &'a str,
    index: usize,
    reader: &Reader<'_>,
) -> Result<String, Fault> {
    let name = name.trim();
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(reader.fault_before(format!("`{name}` is not a name")));
    }
    match names.insert(name, index) {
        Some(_) => Err(reader.fault_before(format!("`{name}` stands twice"))),
        None => Ok(name.to_owned()),
    }
}

fn known(names: &BTreeMap<&str, usize>, name: &str, reader: &Reader<'_>) -> Result<usize, Fault> {
    names.get(name).copied().ok_or_else(|| reader.fault_before(format!("there is no value `{name}` above")))
}

fn call(text: &str, names: &BTreeMap<&str, usize>, reader: &Reader<'_>) -> Result<Call, Fault> {
    let parts = text.split_once('(').and_then(|(op, rest)| Some((op, rest.strip_suffix(')')?)));
    let (op, inside) = parts.ok_or_else(|| reader.fault_before("expected `OPERATOR(..)`"))?;
    let mut args = Vec::new();
    for part in arguments(inside) {
        args.push(match part.contains('=') {
            true => Arg::Attr(part.to_owned()),
            false => Arg::Value(known(names, part, reader)?),
        });
    }
    Ok(Call { op: op.to_owned(), args })
}

/// The parts between commas that are in no brackets.
fn arguments(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' | '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text.is_empty() {
        parts.push(text[start..].trim());
    }
    parts
}

fn maker(text: &str) -> Option<Maker> {
    if let Some(serves) = text.strip_prefix(SUM) {
        return Some(Maker::Sum { serves: serves.to_owned() });
    }
    let Some((rule, serves)) = text.rsplit_once(", for ") else { return Some(Maker::Program(text.to_owned())) };
    // A path may have spaces and colons, the name of a rule has no colon.
    let colon = rule.rfind(':')?;
    let space = colon + rule[colon..].find(' ')?;
    let (location, name) = (rule[..space].to_owned(), rule[space + 1..].to_owned());
    Some(Maker::Rule { location, name, serves: serves.to_owned() })
}

fn guard(line: &str, names: &BTreeMap<&str, usize>) -> Option<Guard> {
    let (name, rest) = line.strip_prefix("0 <= ")?.split_once(" < ")?;
    let (size, message) = rest.split_once(", or trap: ")?;
    Some(Guard { indices: *names.get(name)?, size: size.parse().ok()?, message: message.to_owned() })
}
