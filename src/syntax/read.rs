//! Reading the texts of programs and rule files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::depth::MAX_TEXT;
use super::strange::utf8;
use crate::diagnostics::Diagnostic;

/// The text of a program or rule file; `what` says in messages what it is. No more than [`MAX_TEXT`] bytes are read of
/// it, since what has the name may be a device or a pipe without end.
///
/// # Errors
/// E0701 if it cannot be read, E0108 if it is longer, E0110 if it is not UTF-8.
pub fn read_text(what: &str, path: &Path) -> Result<String, Box<Diagnostic>> {
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => text_of(what, &name, file),
        Err(error) => Err(unreadable(what, &name, &error)),
    }
}

fn unreadable(what: &str, name: &str, error: &std::io::Error) -> Box<Diagnostic> {
    let message = format!("cannot read {what}`{name}`: {error}");
    Box::new(Diagnostic::error("E0701", message).help("check the path and its permissions"))
}

/// The same from what is open already.
///
/// # Errors
/// Those of [`read_text`].
pub fn text_of(what: &str, name: &str, reader: impl Read) -> Result<String, Box<Diagnostic>> {
    let mut bytes = Vec::new();
    if let Err(error) = reader.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes) {
        return Err(unreadable(what, name, &error));
    }
    if bytes.len() > MAX_TEXT {
        let message = format!("`{name}` has more than {MAX_TEXT} bytes, which is the limit");
        return Err(Box::new(Diagnostic::error("E0108", message).help("split it")));
    }
    utf8(name, bytes)
}
