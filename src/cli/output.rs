//! What a command prints, and how it ends.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::Refusal;
use crate::diagnostics::{Diagnostic, Diagnostics, Style, to_json};
use crate::exec::files::write_atomically;

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Exit 1, or 4 where a file is the cause.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A check failed; what it found is printed already. Exit 1.
    #[error("a check failed")]
    CheckFailed,
    /// Exit 3.
    #[error("{0}")]
    Trap(String),
    /// Exit 4, or a quiet end where the reader of a pipe went away.
    #[error("cannot write the output: {0}")]
    Io(#[from] io::Error),
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Failure::Refused(Refusal {
            diagnostics: Diagnostics::from(diagnostic),
            sources: crate::diagnostics::SourceMap::new(),
        })
    }
}

/// Prints messages and gives the exit code.
pub fn finish(result: Result<(), Failure>, json: bool) -> ExitCode {
    let failure = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(failure) => failure,
    };
    match failure {
        Failure::Refused(refusal) => {
            say_refusal(&refusal, json);
            ExitCode::from(if refusal.is_io() { 4 } else { 1 })
        }
        Failure::CheckFailed => ExitCode::from(1),
        Failure::Trap(message) => {
            let diagnostic = Diagnostic::error("E0801", message)
                .help("an index must lie between 0 and the size of the dimension it indexes; negative indices do not count from the end");
            let refusal = Refusal { diagnostics: diagnostic.into(), sources: crate::diagnostics::SourceMap::new() };
            say_refusal(&refusal, json);
            ExitCode::from(3)
        }
        Failure::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Failure::Io(error) => {
            let diagnostic = Diagnostic::error("E0702", format!("cannot write the output: {error}"));
            let refusal = Refusal { diagnostics: diagnostic.into(), sources: crate::diagnostics::SourceMap::new() };
            say_refusal(&refusal, json);
            ExitCode::from(4)
        }
    }
}

fn say_refusal(refusal: &Refusal, json: bool) {
    let mut err = io::stderr().lock();
    // A message that cannot be written has nowhere else to go.
    let _ = if json {
        writeln!(err, "{:#}", to_json(&refusal.diagnostics, &refusal.sources))
    } else {
        write!(err, "{}", refusal.render(style()))
    };
    let _ = err.flush();
}

/// Prints warnings to stderr.
pub fn say_warnings(session: &crate::Session) {
    if !session.warnings.is_empty() {
        say_refusal(&session.refusal(session.warnings.clone()), false);
    }
}

/// Colour only on a terminal.
fn style() -> Style {
    if io::stderr().is_terminal() { Style::Colour } else { Style::Plain }
}

/// Data to stdout, or to a file that appears whole or not at all.
pub fn write_data(data: &[u8], to: Option<&Path>) -> Result<(), Failure> {
    match to {
        None => {
            let mut out = io::stdout().lock();
            out.write_all(data)?;
            out.flush()?;
            Ok(())
        }
        Some(path) => write_atomically(path, |w| w.write_all(data)).map_err(|error: io::Error| {
            Diagnostic::error("E0702", format!("cannot write `{}`: {error}", path.display()))
                .help("check that the directory exists and can be written")
                .into()
        }),
    }
}
