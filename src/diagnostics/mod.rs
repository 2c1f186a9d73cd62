//! One diagnostic type for every stage.
//!
//! A stage never prints and never stops at its first complaint: it pushes [`Diagnostic`]s into a
//! [`Diagnostics`] bag, with spans into the [`SourceMap`], and the bag is rendered once, by
//! [`render()`] for people or by [`to_json`] for programs.

mod json;
mod render;
mod source;

pub use json::{JSON_VERSION, to_json};
pub(crate) use render::is_unseen;
pub use render::{Style, render};
use smallvec::{SmallVec, smallvec};
pub use source::{FileId, Position, SourceFile, SourceMap, Span};

/// How bad it is. Only [`Severity::Error`] refuses the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Error,
    Warning,
}

/// A place the diagnostic speaks of, with what is to be said there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

/// One complaint: what is wrong, where, why, and the way out.
///
/// ```
/// use kina_ad::diagnostics::{Diagnostic, Diagnostics, SourceMap, Style, render};
/// let mut sources = SourceMap::new();
/// let file = sources.add("a.kina", "let x = 1 in y");
/// let mut bag = Diagnostics::new();
/// bag.push(
///     Diagnostic::error("E0201", "unknown name `y`")
///         .at(sources.span(file, 13, 14), "not bound here")
///         .help("did you mean `x`?"),
/// );
/// let text = render(&bag, &sources, Style::Plain);
/// assert!(text.contains("a.kina:1:14"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable across releases, e.g. `E0201`; documented in `docs/diagnostics.md`.
    pub code: &'static str,
    pub severity: Severity,
    pub message: String,
    /// Where the fault is. `None` only for faults outside any text (a file that cannot be read).
    pub primary: Option<Label>,
    /// Other places that explain it.
    pub secondary: Vec<Label>,
    pub notes: Vec<String>,
    /// The way out.
    pub help: Vec<String>,
}

impl Diagnostic {
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            severity,
            message: message.into(),
            primary: None,
            secondary: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// Sets the primary place.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.primary = Some(Label { span, text: text.into() });
        self
    }

    /// Adds a secondary place.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// Adds a "did you mean" help if one of `candidates` is close to `wrong`.
    #[must_use]
    pub fn did_you_mean<'a>(self, wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Self {
        match closest(wrong, candidates) {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// As [`did_you_mean`](Self::did_you_mean); the help is `otherwise` if none of them is close.
    #[must_use]
    pub fn did_you_mean_or<'a>(
        self,
        wrong: &str,
        candidates: impl IntoIterator<Item = &'a str>,
        otherwise: impl Into<String>,
    ) -> Self {
        match closest(wrong, candidates) {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None => self.help(otherwise),
        }
    }
}

/// The way out where no operator of a name is known, nor any of a name near it.
pub const UNKNOWN_OPERATOR: &str =
    "a `def` in a rule file adds one; `kina-ad rules list` prints the rules and `def`s that are loaded";

/// Diagnostics of one severity that a bag keeps. What a person reads is far less, and showing one takes time that grows
/// with the text that it is about.
pub const MAX_KEPT: usize = 100;

/// The bag that a stage fills. Order is the order of discovery, which is deterministic. Of each severity the first
/// [`MAX_KEPT`] are kept; the others are only counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
}

impl Diagnostics {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, diagnostic: Diagnostic) {
        let count = match diagnostic.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        *count += 1;
        if *count <= MAX_KEPT {
            self.list.push(diagnostic);
        }
    }

    pub fn extend(&mut self, other: Diagnostics) {
        let (errors, warnings) = (self.errors + other.errors, self.warnings + other.warnings);
        other.list.into_iter().for_each(|d| self.push(d));
        (self.errors, self.warnings) = (errors, warnings);
    }

    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// How many errors there were, those that were not kept included.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Would further errors not be kept? Then there is no use in looking for them.
    pub fn is_full(&self) -> bool {
        self.errors >= MAX_KEPT
    }

    /// How many diagnostics were not kept.
    pub fn omitted(&self) -> usize {
        self.errors + self.warnings - self.list.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        let mut bag = Self::new();
        bag.push(diagnostic);
        bag
    }
}

/// The candidate nearest to `wrong` by edit distance, if it is near enough to be a slip of the pen. Upper and lower case
/// are one; a name of one letter is near to no other. Ties go to the alphabetically first.
pub fn closest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters: Vec<char> = wrong.chars().map(|c| c.to_ascii_lowercase()).collect();
    let limit = if letters.len() < 2 { 0 } else { (letters.len() / 3).max(1) };
    candidates
        .into_iter()
        .filter(|c| *c != wrong)
        // Of candidates equally near, one that is begun comes first: letters are left out more often than mistaken.
        .filter_map(|c| Some((edit_distance(&letters, c, limit)?, !c.starts_with(wrong), c)))
        .min()
        .map(|(_, _, c)| c)
}

/// Levenshtein distance of lower-case letters with transpositions of neighbours counted as one edit, if it is at most
/// `limit`. Gives up
/// as soon as it cannot be: a program may have 100,000 names to compare with.
fn edit_distance(a: &[char], b: &str, limit: usize) -> Option<usize> {
    // A character has up to four bytes.
    if b.len() > 4 * (a.len() + limit) {
        return None;
    }
    let b: SmallVec<[char; 32]> = b.chars().map(|c| c.to_ascii_lowercase()).collect();
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut before_last: SmallVec<[usize; 32]> = smallvec![0; b.len() + 1];
    let mut last: SmallVec<[usize; 32]> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row: SmallVec<[usize; 32]> = smallvec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let substituted = last[j] + usize::from(a[i] != b[j]);
            row[j + 1] = substituted.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before_last[j - 1] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
        // A transposition reaches over one row.
        if last.iter().chain(&before_last).all(|distance| *distance > limit) {
            return None;
        }
    }
    Some(last[b.len()]).filter(|distance| *distance <= limit)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn closest_finds_slips_and_nothing_else() {
        let ops = ["log_softmax", "softmax", "sum", "sub"];
        assert_eq!(closest("log_sofmax", ops), Some("log_softmax"));
        assert_eq!(closest("smu", ops), Some("sum"));
        assert_eq!(closest("cholesky", ops), None);
        assert_eq!(closest("ab", ["ba", "abcd", "ab"]), Some("ba"));
        assert_eq!(closest("größe", ["grosse", "größer"]), Some("größer"));
        assert_eq!(closest("f32", ["F64", "F32"]), Some("F32"));
        assert_eq!(closest("LOGSOFTMAX", ops), Some("log_softmax"));
        assert_eq!(closest("X", ["y", "x"]), Some("x"));
        assert_eq!(closest("wher", ["when", "where"]), Some("where"));
        assert_eq!((closest("a", ["x", "xy", "ab"]), closest("", ["x", "xy"])), (None, None));
    }

    #[test]
    fn a_bag_keeps_the_first_of_each_severity_and_counts_the_rest() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.kina", "x");
        let mut bag = Diagnostics::new();
        for i in 0..MAX_KEPT + 5 {
            bag.push(Diagnostic::warning("E0413", format!("warning {i}")).at(sources.span(file, 0, 1), "here"));
        }
        assert!(!bag.has_errors());
        let mut more = Diagnostics::from(Diagnostic::error("E0201", "the error"));
        more.extend(bag.clone());
        bag.extend(more);
        assert_eq!((bag.error_count(), bag.iter().count(), bag.omitted()), (1, MAX_KEPT + 1, MAX_KEPT + 10));
        let text = render(&bag, &sources, Style::Plain);
        assert!(text.contains("the error") && text.contains("warning 99") && !text.contains("warning 100"));
        assert!(text.ends_with("110 or more beyond these are not shown\n"), "{text}");
        assert_eq!(to_json(&bag, &sources)["omitted"], 110);
    }

    /// Every code that stands in the source as a string is in `docs/diagnostics.md`, and the other way round.
    #[test]
    fn every_code_is_documented() {
        fn collect(directory: &Path, codes: &mut BTreeSet<String>) {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    collect(&path, codes);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    let strings = fs::read_to_string(&path).unwrap();
                    codes.extend(strings.split('"').filter(|s| is_code(s)).map(str::to_owned));
                }
            }
        }
        let is_documented = |line: &str| line.strip_prefix("| ")?.split_once(" |").map(|(code, _)| code.to_owned());
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut used = BTreeSet::new();
        collect(&root.join("src"), &mut used);
        let docs = fs::read_to_string(root.join("docs/diagnostics.md")).unwrap();
        let documented: BTreeSet<String> = docs.lines().filter_map(is_documented).filter(|c| is_code(c)).collect();
        let missing: Vec<_> = used.difference(&documented).collect();
        let stale: Vec<_> = documented.difference(&used).collect();
        assert!(missing.is_empty() && stale.is_empty(), "undocumented {missing:?}, documented but unused {stale:?}");
    }

    fn is_code(text: &str) -> bool {
        text.len() == 5 && text.starts_with('E') && text[1..].bytes().all(|b| b.is_ascii_digit())
    }
}
