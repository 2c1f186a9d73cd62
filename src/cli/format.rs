//! `kina-ad rules fmt`

use std::path::{Path, PathBuf};

use similar::TextDiff;

use super::output::write_data;
use super::{Failure, unreadable};
use crate::Refusal;
use crate::diagnostics::{Diagnostic, Diagnostics, SourceMap};
use crate::rules::rule_files;
use crate::syntax::{format_rules, read_text, text_of};

/// A text that is to be formatted.
struct Source {
    /// `None` for stdin.
    path: Option<PathBuf>,
    name: String,
    text: String,
}

/// Formats files in place, or without files stdin to stdout. A syntax error anywhere leaves all files as they are.
pub fn format(files: &[PathBuf], check: bool) -> Result<(), Failure> {
    let texts = read(files)?;
    let mut sources = SourceMap::new();
    let mut bag = Diagnostics::new();
    let mut formatted = Vec::new();
    for source in &texts {
        let file = sources.add(&source.name, &source.text);
        formatted.extend(format_rules(&sources, file, &mut bag));
    }
    if bag.has_errors() {
        return Err(Refusal { diagnostics: bag, sources }.into());
    }
    let mut different = Vec::new();
    for (source, new) in texts.iter().zip(&formatted) {
        let is_different = source.text != *new;
        match &source.path {
            _ if check && is_different => {
                let diff = TextDiff::from_lines(source.text.as_str(), new.as_str());
                let diff = diff.unified_diff().context_radius(1).header(&source.name, "formatted").to_string();
                write_data(diff.as_bytes(), None)?;
                different.push(format!("`{}`", source.name));
            }
            _ if check => {}
            None => write_data(new.as_bytes(), None)?,
            Some(path) if is_different => write_data(new.as_bytes(), Some(path))?,
            Some(_) => {}
        }
    }
    if different.is_empty() {
        return Ok(());
    }
    Err(Diagnostic::error("E0912", format!("not formatted: {}", different.join(", ")))
        .help("`kina-ad rules fmt` with the same files formats them")
        .into())
}

fn read(files: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    if files.is_empty() {
        let name = "stdin".to_owned();
        let text = text_of("", &name, std::io::stdin()).map_err(|diagnostic| Failure::from(*diagnostic))?;
        return Ok(vec![Source { path: None, name, text }]);
    }
    let mut out = Vec::new();
    for path in files {
        let name = |path: &Path| path.display().to_string();
        let inside = if path.is_dir() {
            rule_files(path).map_err(|error| unreadable(&name(path), &error.to_string()))?
        } else {
            vec![path.clone()]
        };
        for path in inside {
            let name = name(&path);
            let text = read_text("", &path).map_err(|diagnostic| Failure::from(*diagnostic))?;
            out.push(Source { path: Some(path), name, text });
        }
    }
    Ok(out)
}
