//! Source texts and places in them.

use std::sync::Arc;

/// A file of a [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

/// A byte range of one file. `start <= end`, both on character boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    pub file: FileId,
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// The smallest span that holds both; they must be of one file.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// Line and column, both counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// A text with the name it is shown under.
#[derive(Clone, Debug)]
pub struct SourceFile {
    pub name: Arc<str>,
    pub text: Arc<str>,
    /// Byte offset at which each line starts.
    line_starts: Vec<u32>,
}

/// Whole lines of a file.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// Of the first line, from 1.
    pub number: usize,
    pub count: usize,
    /// Offset of `text` in the file.
    pub start: usize,
    pub text: &'a str,
}

/// All texts of one compilation. Files are only ever added.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text. A byte order mark is part of the text (the grammars skip it), so that offsets stay true.
    pub fn add(&mut self, name: &str, text: &str) -> FileId {
        let mut line_starts = vec![0];
        let bytes = text.as_bytes();
        for (i, b) in bytes.iter().enumerate() {
            // CRLF ends one line, a lone CR one as well.
            if *b == b'\n' || (*b == b'\r' && bytes.get(i + 1) != Some(&b'\n')) {
                line_starts.push(i as u32 + 1);
            }
        }
        let id = FileId(self.files.len() as u32);
        self.files.push(SourceFile { name: name.into(), text: text.into(), line_starts });
        id
    }

    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    pub fn files(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter().enumerate().map(|(i, f)| (FileId(i as u32), f))
    }

    /// A span of `file`; ends beyond the text are pulled in.
    pub fn span(&self, file: FileId, start: usize, end: usize) -> Span {
        let len = self.file(file).text.len();
        let start = start.min(len);
        Span { file, start: start as u32, end: end.clamp(start, len) as u32 }
    }

    /// A line of a file, counted from 0, without its end; the last one if there are fewer.
    pub fn line(&self, file: FileId, number: usize) -> Span {
        let starts = &self.file(file).line_starts;
        let number = number.min(starts.len() - 1);
        let start = starts[number] as usize;
        let end = starts.get(number + 1).map_or(self.file(file).text.len(), |next| *next as usize);
        let text = self.file(file).text[start..end].trim_end_matches(['\n', '\r']);
        self.span(file, start, start + text.len())
    }

    pub fn text(&self, span: Span) -> &str {
        &self.file(span.file).text[span.start as usize..span.end as usize]
    }

    pub fn position(&self, span: Span) -> Position {
        let file = self.file(span.file);
        let line = file.line_starts.partition_point(|s| *s <= span.start) - 1;
        let start = file.line_starts[line] as usize;
        let column = file.text[start..span.start as usize].chars().count();
        Position { line: line as u32 + 1, column: column as u32 + 1 }
    }

    /// The lines that a span touches, as a text of its own.
    pub fn lines(&self, span: Span) -> Lines<'_> {
        let file = self.file(span.file);
        let first = file.line_starts.partition_point(|s| *s <= span.start) - 1;
        let next = file.line_starts.partition_point(|s| *s < span.end.max(span.start + 1));
        let start = file.line_starts[first] as usize;
        let end = file.line_starts.get(next).map_or(file.text.len(), |s| *s as usize);
        Lines { number: first + 1, count: next - first, start, text: &file.text[start..end] }
    }

    /// `name:line`, the form in which provenance is shown.
    pub fn file_line(&self, span: Span) -> String {
        format!("{}:{}", self.file(span.file).name, self.position(span).line)
    }
}
