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
    /// The check of these gradients failed; what it found is printed already. Exit 1.
    #[error("a check failed")]
    CheckFailed(Vec<String>),
    /// Two things that were compared differ, as the data says. Exit 1, without a message.
    #[error("there is a difference")]
    Different,
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

/// What a command has to say beside its data, on stderr. For people at once; as JSON all of it as one value, at the end.
pub struct Messages {
    json: bool,
    /// Warnings that wait for the end.
    waiting: Option<Refusal>,
}

impl Messages {
    pub fn new(json: bool) -> Messages {
        Messages { json, waiting: None }
    }

    /// The warnings of rule loading.
    pub fn warn(&mut self, session: &crate::Session) {
        if session.warnings.is_empty() {
            return;
        }
        let warnings = session.refusal(session.warnings.clone());
        if self.json {
            self.waiting = Some(warnings);
        } else {
            say(&warnings.render(style()));
        }
    }

    /// Says something about what went well.
    pub fn remark(&mut self, remarks: Refusal) {
        if remarks.diagnostics.is_empty() {
            return;
        }
        if self.json {
            self.waiting = Some(match self.waiting.take() {
                Some(mut waiting) => {
                    waiting.diagnostics.extend(remarks.diagnostics);
                    Refusal { sources: remarks.sources, ..waiting }
                }
                None => remarks,
            });
        } else {
            say(&remarks.render(style()));
        }
    }

    /// Says why a command failed, and gives the exit code.
    pub fn finish(self, result: Result<(), Failure>) -> ExitCode {
        let (code, refusal) = match result {
            Ok(()) => (ExitCode::SUCCESS, None),
            Err(Failure::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => (ExitCode::SUCCESS, None),
            Err(failure @ Failure::Different) => (ExitCode::from(failure.exit_code()), None),
            Err(failure) => (ExitCode::from(failure.exit_code()), Some(failure.into_refusal())),
        };
        if !self.json {
            if let Some(refusal) = refusal {
                say(&refusal.render(style()));
            }
            return code;
        }
        // Texts are only ever added to a session, so that those of a failure cover its warnings.
        let all = match (self.waiting, refusal) {
            (Some(mut warnings), Some(failure)) => {
                warnings.diagnostics.extend(failure.diagnostics);
                if failure.sources.files().next().is_some() {
                    warnings.sources = failure.sources;
                }
                Some(warnings)
            }
            (warnings, failure) => warnings.or(failure),
        };
        if let Some(all) = all {
            say(&format!("{:#}\n", to_json(&all.diagnostics, &all.sources)));
        }
        code
    }
}

impl Failure {
    fn exit_code(&self) -> u8 {
        match self {
            Failure::Refused(refusal) if refusal.is_io() => 4,
            Failure::Refused(_) | Failure::CheckFailed(_) | Failure::Different => 1,
            Failure::Trap(_) => 3,
            Failure::Io(_) => 4,
        }
    }

    fn into_refusal(self) -> Refusal {
        let diagnostic = match self {
            Failure::Refused(refusal) => return refusal,
            // The data has said all.
            Failure::Different => return Refusal { diagnostics: Diagnostics::new(), sources: crate::diagnostics::SourceMap::new() },
            Failure::CheckFailed(gradients) => {
                Diagnostic::error("E0901", format!("the gradient check failed for {}", gradients.join(", ")))
                    .help("`kina-ad grad` shows the rule behind every value of the gradient")
            }
            Failure::Trap(message) => Diagnostic::error("E0801", message)
                .help("an index must lie between 0 and the size of the dimension it indexes; negative indices do not count from the end"),
            Failure::Io(error) => Diagnostic::error("E0702", format!("cannot write the output: {error}"))
                .help("check that there is room, and that the output can be written"),
        };
        Refusal { diagnostics: diagnostic.into(), sources: crate::diagnostics::SourceMap::new() }
    }
}

/// A message that cannot be written has nowhere else to go.
pub fn say(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes());
    let _ = err.flush();
}

/// Colour only on a terminal.
pub fn style() -> Style {
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
