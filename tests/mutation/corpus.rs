//! The rule files that are mutated, and rule sets of changed files.

use std::path::{Path, PathBuf};

use kina_ad::diagnostics::{Diagnostics, SourceMap, Span, Style, render};
use kina_ad::rules::{RuleOptions, RuleSet, load};
use kina_ad::syntax::ast::Item;
use kina_ad::syntax::parse_rules;

/// A rule file with its items.
pub struct File {
    /// `rules/softmax.rules`
    pub name: String,
    pub text: String,
    pub items: Vec<Item>,
    /// Are its rules mutated? The others only come along.
    pub mutated: bool,
}

pub struct Corpus {
    pub files: Vec<File>,
    pub rules: RuleSet,
    pub sources: SourceMap,
}

impl Corpus {
    /// All of `rules/`, whose rules are mutated, or only those of `given`, which are added to it.
    pub fn read(given: &[PathBuf]) -> Result<Corpus, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut paths: Vec<PathBuf> = std::fs::read_dir(root.join("rules"))
            .map_err(|e| e.to_string())?
            .filter_map(|entry| entry.ok().map(|e| e.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "rules"))
            .collect();
        paths.sort();
        let own = paths.len();
        let canonical = |p: &PathBuf| p.canonicalize().unwrap_or_else(|_| p.clone());
        let wanted: Vec<PathBuf> = given.iter().map(canonical).collect();
        for path in &wanted {
            if !paths[..own].iter().any(|p| canonical(p) == *path) {
                paths.push(path.clone());
            }
        }
        let mut files = Vec::new();
        for path in paths {
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            let (mut sources, mut bag) = (SourceMap::new(), Diagnostics::new());
            let file = sources.add(&name, &text);
            let items = parse_rules(&sources, file, &mut bag).items;
            if bag.has_errors() {
                return Err(render(&bag, &sources, Style::Plain));
            }
            let mutated = wanted.is_empty() || wanted.contains(&canonical(&path));
            files.push(File { name, text, items, mutated });
        }
        let (rules, sources) = Loader::new(&files)?.load(None)?;
        Ok(Corpus { files, rules, sources })
    }
}

/// A directory with the files, one of which can be another than it is.
pub struct Loader {
    directory: tempfile::TempDir,
    texts: Vec<(PathBuf, String)>,
}

impl Loader {
    pub fn new(files: &[File]) -> Result<Loader, String> {
        let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mut texts = Vec::new();
        for (i, file) in files.iter().enumerate() {
            let base = Path::new(&file.name).file_name().map_or_else(Default::default, |n| n.to_string_lossy());
            let path = directory.path().join(format!("{i:03}-{base}"));
            std::fs::write(&path, &file.text).map_err(|e| e.to_string())?;
            texts.push((path, file.text.clone()));
        }
        Ok(Loader { directory, texts })
    }

    /// The rule set with one file's text changed; what loading says if it refuses.
    pub fn load(&self, changed: Option<(usize, &str)>) -> Result<(RuleSet, SourceMap), String> {
        let write = |file: usize, text: &str| std::fs::write(&self.texts[file].0, text).map_err(|e| e.to_string());
        if let Some((file, text)) = changed {
            write(file, text)?;
        }
        let options = RuleOptions {
            no_default_rules: true,
            files: vec![self.directory.path().to_owned()],
            ..RuleOptions::default()
        };
        let (mut sources, mut bag) = (SourceMap::new(), Diagnostics::new());
        let rules = load(&options, &mut sources, &mut bag);
        if let Some((file, _)) = changed {
            write(file, &self.texts[file].1)?;
        }
        let first = bag.iter().find(|d| d.code.starts_with('E')).map(|d| format!("{}: {}", d.code, d.message));
        let rules = rules.ok_or_else(|| first.unwrap_or_else(|| "refused without a reason".into()))?;
        Ok((rules, sources))
    }
}

/// A part of a file's text.
pub fn slice(text: &str, span: Span) -> &str {
    &text[span.start as usize..span.end as usize]
}
