//! From profiles and paths to a [`RuleSet`].

mod unique;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::RuleSet;
use super::compile::compile_rewrite;
use super::composite::Composite;
use super::define::compile_def;
use super::example::{self, Example};
use super::hash::Content;
use super::numbers;
use super::rule::{Def, Vjp};
use super::scope::Library;
use super::typecheck::{self, Ahead};
use super::vjp::compile_vjp;
use crate::diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};
use crate::ir::{Operator, Registry};
use crate::syntax::ast::{Item, Line, RuleFile};
use crate::syntax::{parse_rule_files, parse_rules, read_text};

use unique::{as_vjp, definition_order, orphans, unique_defs, unique_rewrites, unique_vjps};

/// Which embedded files are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The restricted pass of the specification: the VJPs of `rules/phase1.rules` and no other, with the rewrites.
    Phase1,
    /// Everything.
    #[default]
    Default,
}

/// Which rules a compilation uses.
#[derive(Clone, Debug, Default)]
pub struct RuleOptions {
    pub profile: Profile,
    /// Start empty instead of with the profile.
    pub no_default_rules: bool,
    /// Files, or directories of `.rules` files, added to the profile. Their order does not matter.
    pub files: Vec<PathBuf>,
    /// Files, or directories, whose rules are candidates: each takes the place of a loaded rule of its name, as if it said
    /// `override`, and a warning says that it would have to.
    pub candidates: Vec<PathBuf>,
    /// Type the embedded files as well, which otherwise only the tests do.
    pub check_embedded: bool,
}

/// Composites by name.
type Defs = BTreeMap<Arc<str>, Arc<Def>>;

/// An embedded rule file. `derivatives` tells that it has VJPs beyond the restricted pass.
struct Embedded {
    name: &'static str,
    text: &'static str,
    derivatives: bool,
}

const EMBEDDED: &[Embedded] = &[
    Embedded { name: "rules/phase1.rules", text: include_str!("../../rules/phase1.rules"), derivatives: false },
    Embedded {
        name: "rules/elementwise.rules",
        text: include_str!("../../rules/elementwise.rules"),
        derivatives: true,
    },
    Embedded { name: "rules/elementary.rules", text: include_str!("../../rules/elementary.rules"), derivatives: true },
    Embedded {
        name: "rules/activations.rules",
        text: include_str!("../../rules/activations.rules"),
        derivatives: true,
    },
    Embedded { name: "rules/reductions.rules", text: include_str!("../../rules/reductions.rules"), derivatives: true },
    Embedded { name: "rules/indexing.rules", text: include_str!("../../rules/indexing.rules"), derivatives: true },
    Embedded { name: "rules/windows.rules", text: include_str!("../../rules/windows.rules"), derivatives: true },
    Embedded { name: "rules/losses.rules", text: include_str!("../../rules/losses.rules"), derivatives: true },
    Embedded { name: "rules/algebra.rules", text: include_str!("../../rules/algebra.rules"), derivatives: false },
    Embedded { name: "rules/movement.rules", text: include_str!("../../rules/movement.rules"), derivatives: false },
    Embedded { name: "rules/softmax.rules", text: include_str!("../../rules/softmax.rules"), derivatives: false },
];

/// Is that the name of an embedded rule file?
pub fn is_embedded(name: &str) -> bool {
    EMBEDDED.iter().any(|file| file.name == name)
}

/// Loads, compiles and checks the rules of `options`. `None` if there were errors, which are in the bag with
/// their places.
pub fn load(options: &RuleOptions, sources: &mut SourceMap, bag: &mut Diagnostics) -> Option<RuleSet> {
    let (seen, faulty) = (BTreeSet::new(), BTreeSet::new());
    let mut files = Files { sources, bag, seen, items: Vec::new(), embedded: 0, depth: 0, faulty, is_unread: false };
    if !options.no_default_rules {
        files.embed(EMBEDDED.iter().filter(|file| options.profile == Profile::Default || !file.derivatives));
    }
    files.embedded = files.items.len();
    // In the order of their names: which of two rules came first must not depend on the order in which files are given.
    let mut given: Vec<&PathBuf> = options.files.iter().collect();
    given.sort();
    for path in given {
        files.path(path, Named::Directly);
    }
    let loaded = files.items.len();
    let mut given: Vec<&PathBuf> = options.candidates.iter().collect();
    given.sort();
    for path in given {
        files.path(path, Named::Directly);
    }
    let mut embedded = files.embedded;
    let (mut items, mut candidates) = {
        let mut items = std::mem::take(&mut files.items);
        let candidates = items.split_off(loaded);
        (items, candidates)
    };
    give_way(&mut items, &mut embedded, &mut candidates, files.sources, files.bag);
    let candidate_spans: BTreeSet<Span> = candidates.iter().filter_map(item_span).collect();
    items.extend(candidates);
    // The embedded files are the same in every run: a test of this crate has typed them.
    let typed_already = if options.check_embedded { 0 } else { embedded };
    let Files { faulty, is_unread, .. } = files;
    // Faults of syntax do not hide those of names and types, unless it is unknown what a whole file would define.
    if is_unread || bag.is_full() {
        return None;
    }
    let mut rules = assemble(&items, typed_already, faulty, sources, bag)?;
    rules.candidates = (!options.candidates.is_empty()).then_some(candidate_spans);
    rules.content = Arc::new(Content::new(items));
    if bag.has_errors() { None } else { Some(rules) }
}

/// What a rule is known by, and the place of its name.
pub(super) fn identity(item: &Item) -> Option<(String, Span)> {
    match item {
        Item::Import { .. } => None,
        Item::Vjp(vjp) => {
            let alternative = vjp.alternative.as_ref().map_or_else(String::new, |a| format!(" as {}", a.name));
            Some((format!("vjp {}{alternative}", vjp.op.name), vjp.op.span))
        }
        Item::Rewrite(rewrite) => Some((format!("rewrite {}", rewrite.name.name), rewrite.name.span)),
        Item::Def(def) => Some((format!("def {}", def.name.name), def.name.span)),
    }
}

/// Removes the loaded rules whose place candidates take. A candidate that says something else than the rule that it replaces, and
/// does not say `override`, is warned about.
fn give_way(
    items: &mut Vec<Item>,
    embedded: &mut usize,
    candidates: &mut [Item],
    sources: &SourceMap,
    bag: &mut Diagnostics,
) {
    let mut gone: BTreeSet<String> = BTreeSet::new();
    let names: BTreeMap<String, &Item> = candidates.iter().filter_map(|c| Some((identity(c)?.0, c))).collect();
    let mut index = 0;
    items.retain(|item| {
        let was_embedded = index < *embedded;
        index += 1;
        let replaced = identity(item).and_then(|(name, place)| Some((names.get(&name)?, name, place)));
        let Some((candidate, name, first)) = replaced else { return true };
        let overrides = matches!(candidate, Item::Vjp(vjp) if vjp.is_override);
        let text = |item: &Item| item_span(item).map(|span| sources.text(span).to_owned());
        if !overrides && text(candidate) != text(item) {
            let place = identity(candidate).map_or(first, |(_, place)| place);
            let help = match candidate {
                Item::Vjp(vjp) => format!("to load it with the profile, write `override vjp {}`", vjp.op.name),
                _ => "to load it with the profile, give it another name".to_owned(),
            };
            bag.push(
                Diagnostic::warning("E0419", format!("there is a `{name}` already: this one would need `override`"))
                    .at(place, "checked in its place")
                    .also(first, "loaded is this one")
                    .help(help),
            );
        }
        // The count is of items that stay.
        if was_embedded {
            *embedded -= 1;
            index -= 1;
        }
        gone.insert(name);
        false
    });
    // What stands in the place of another has nothing left to override.
    for candidate in candidates {
        let replaces = identity(candidate).is_some_and(|(name, _)| gone.contains(&name));
        if let (Item::Vjp(vjp), true) = (candidate, replaces) {
            vjp.is_override = false;
        }
    }
}

/// The `.rules` files of a directory, by name.
///
/// # Errors
/// The directory cannot be read.
pub fn rule_files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|e| e.path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "rules"));
    files.sort();
    Ok(files)
}

/// Reading and parsing, each file once.
struct Files<'a> {
    sources: &'a mut SourceMap,
    bag: &'a mut Diagnostics,
    seen: BTreeSet<PathBuf>,
    items: Vec<Item>,
    /// How many of the items are embedded ones.
    embedded: usize,
    /// Files that import each other, down to the one that is read.
    depth: usize,
    /// What items with syntax errors were to define.
    faulty: BTreeSet<Arc<str>>,
    /// Is there a file that could not be read?
    is_unread: bool,
}

/// Most rule files that import each other in a chain, and most rule files in all.
const MAX_IMPORTS: usize = 64;
const MAX_FILES: usize = 1000;

/// Who names a file.
#[derive(Clone, Copy)]
enum Named {
    /// The user, who may name a pipe.
    Directly,
    /// A directory that the user names.
    ByDirectory,
    ByImport(Span),
}

impl Named {
    fn tell(self, diagnostic: Diagnostic) -> Diagnostic {
        match self {
            Named::ByImport(span) if diagnostic.code == "E0701" => Diagnostic { help: Vec::new(), ..diagnostic }
                .at(span, "imported here")
                .help("a path begins at the directory of the file that imports; check its spelling and permissions"),
            Named::ByImport(span) => diagnostic.at(span, "imported here"),
            Named::Directly | Named::ByDirectory => diagnostic,
        }
    }
}

impl Files<'_> {
    fn path(&mut self, path: &Path, named: Named) {
        if path.is_dir() {
            match rule_files(path) {
                Ok(files) => {
                    let named = match named {
                        Named::Directly => Named::ByDirectory,
                        named => named,
                    };
                    files.iter().for_each(|file| self.path(file, named));
                }
                Err(error) => {
                    let message = format!("cannot read the rule file `{}`: {error}", path.display());
                    let diagnostic = Diagnostic::error("E0701", message).help("check the path and its permissions");
                    self.unread(named, diagnostic);
                }
            }
            return;
        }
        // Opening a pipe that nobody writes to would wait for ever.
        let is_strange = std::fs::metadata(path).is_ok_and(|m| !m.is_file());
        if is_strange && !matches!(named, Named::Directly) {
            self.refuse(named, format!("`{}` is not a regular file", path.display()), "name a file of rules");
            return;
        }
        let identity = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if !self.seen.insert(identity) {
            return;
        }
        if self.seen.len() > MAX_FILES {
            if self.seen.len() == MAX_FILES + 1 {
                self.refuse(named, format!("more than {MAX_FILES} rule files"), "put several into one");
            }
            return;
        }
        if self.depth > MAX_IMPORTS {
            let message = format!("rule files import each other more than {MAX_IMPORTS} levels deep");
            self.refuse(named, message, "import the file from one nearer to the first");
            return;
        }
        match read_text("the rule file ", path) {
            Ok(text) => {
                self.depth += 1;
                self.parse(&path.display().to_string(), &text, path.parent());
                self.depth -= 1;
            }
            Err(diagnostic) => self.unread(named, *diagnostic),
        }
    }

    fn refuse(&mut self, named: Named, message: String, help: &str) {
        self.unread(named, Diagnostic::error("E0415", message).help(help));
    }

    /// Reports a file of which nothing is known.
    fn unread(&mut self, named: Named, diagnostic: Diagnostic) {
        self.is_unread = true;
        self.bag.push(named.tell(diagnostic));
    }

    /// Parses embedded files, which takes the greater part of the time to load them: several at a time.
    fn embed<'e>(&mut self, files: impl Iterator<Item = &'e Embedded>) {
        let files: Vec<FileId> = files.map(|file| self.sources.add(file.name, file.text)).collect();
        for (parsed, found) in parse_rule_files(self.sources, &files) {
            self.bag.extend(found);
            self.enter(parsed, None);
        }
    }

    /// Parses a text and follows its imports, relative to `directory`.
    fn parse(&mut self, name: &str, text: &str, directory: Option<&Path>) {
        let file = self.sources.add(name, text);
        let parsed = parse_rules(self.sources, file, self.bag);
        self.enter(parsed, directory);
    }

    /// Takes over what was parsed, and follows its imports.
    fn enter(&mut self, parsed: RuleFile, directory: Option<&Path>) {
        self.faulty.extend(parsed.faulty);
        self.is_unread |= parsed.is_refused;
        for item in parsed.items {
            match item {
                Item::Import { path, span } => match directory {
                    Some(directory) => {
                        let relative = Path::new(&*path);
                        if relative.components().any(|c| matches!(c, Component::Prefix(_))) {
                            let help = "write the path relative to this file, with `/` between its parts";
                            self.refuse(Named::ByImport(span), format!("cannot import `{path}`"), help);
                            continue;
                        }
                        self.path(&directory.join(relative), Named::ByImport(span));
                    }
                    None => self.bag.push(
                        Diagnostic::error("E0415", "an embedded rule file cannot import")
                            .at(span, "all embedded files of a profile are loaded anyway")
                            .help("remove the import"),
                    ),
                },
                item => self.items.push(item),
            }
        }
    }
}

/// Compiles all items against one registry. The types of the first `typed_already` items need no check; what `faulty` names has
/// faults that were reported.
pub(super) fn assemble(
    items: &[Item],
    typed_already: usize,
    faulty: BTreeSet<Arc<str>>,
    sources: &SourceMap,
    bag: &mut Diagnostics,
) -> Option<RuleSet> {
    let builtin = Registry::builtin();
    let defs = unique_defs(items, &builtin, bag);
    let order = definition_order(&defs, bag)?;

    // First pass over the definitions: their signatures, to make operators of those that have a VJP.
    let mut drafts: Defs = BTreeMap::new();
    // Their faults are found again below.
    let mut scratch = Diagnostics::new();
    for item in &order {
        if scratch.is_full() {
            break;
        }
        let library = Library { registry: &builtin, defs: &drafts, failed: &faulty };
        if let Some(def) = compile_def(item, &library, sources, &mut scratch) {
            drafts.insert(item.name.name.clone(), Arc::new(def));
        }
    }
    let vjps = items.iter().filter_map(as_vjp).map(|vjp| &*vjp.op.name);
    let with_vjp: BTreeSet<&str> = vjps.chain(faulty.iter().map(|name| &**name)).collect();
    let mut composites: Vec<Arc<Composite>> = Vec::new();
    for (name, draft) in &drafts {
        if with_vjp.contains(&**name) {
            composites.push(Arc::new(Composite::new(name, &draft.head.doc, draft.signature.clone())));
        }
    }
    let operators = composites.iter().map(|c| c.clone() as Arc<dyn Operator>).collect();
    let registry = Arc::new(builtin.extended(operators));

    // Second pass: bodies, in which those operators are calls.
    let mut compiled: Defs = BTreeMap::new();
    let mut failed = faulty.clone();
    for item in &order {
        if bag.is_full() {
            return None;
        }
        let library = Library { registry: &registry, defs: &compiled, failed: &failed };
        match compile_def(item, &library, sources, bag) {
            Some(def) => {
                let def = Arc::new(def);
                if let Some(composite) = composites.iter().find(|c| c.name() == &*item.name.name) {
                    composite.complete(def.clone(), &registry);
                }
                compiled.insert(item.name.name.clone(), def);
            }
            None => {
                failed.insert(item.name.name.clone());
            }
        }
    }
    let mut def_examples: BTreeMap<Arc<str>, Vec<Example>> = BTreeMap::new();
    for item in &order {
        let library = Library { registry: &registry, defs: &compiled, failed: &failed };
        for line in &item.lines {
            if let Line::Example { condition, conclusion: None, span } = line {
                let example = example::compile(condition, *span, None, &library, bag);
                def_examples.entry(item.name.name.clone()).or_default().extend(example);
            }
        }
    }
    let trusted: BTreeSet<Span> = items[..typed_already].iter().filter_map(item_span).collect();
    let is_embedded = |span: Span| trusted.contains(&span);
    let library = Library { registry: &registry, defs: &compiled, failed: &failed };
    let mut rules = RuleSet {
        registry: registry.clone(),
        vjps: BTreeMap::new(),
        rewrites: Vec::new(),
        defs: BTreeMap::new(),
        candidates: None,
        def_examples,
        content: Arc::default(),
    };
    let mut ahead = Ahead::default();
    for item in unique_vjps(items, bag) {
        if bag.is_full() {
            return None;
        }
        if let Some(vjp) = compile_vjp(item, &library, sources, bag) {
            if !is_embedded(item.span) {
                typecheck::vjp(&vjp, &registry, &mut ahead, bag);
            }
            rules.vjps.entry(vjp.op).or_default().push(Arc::new(vjp));
        }
    }
    for list in rules.vjps.values_mut() {
        list.sort_by(|a: &Arc<Vjp>, b| a.alternative.cmp(&b.alternative));
    }
    for item in unique_rewrites(items, bag) {
        if bag.is_full() {
            return None;
        }
        for mut rewrite in compile_rewrite(item, &library, sources, bag) {
            rewrite.needs_numbers = numbers::needs_numbers(&rewrite, &registry);
            if !is_embedded(item.span) {
                typecheck::rewrite(&rewrite, &registry, &mut ahead, bag);
            }
            rules.rewrites.push(Arc::new(rewrite));
        }
    }
    bag.extend(ahead.report());
    rules.rewrites.sort_by(|a, b| a.head.rule.cmp(&b.head.rule));
    orphans(items, &faulty, bag);
    rules.defs = compiled;
    Some(rules)
}

fn item_span(item: &Item) -> Option<Span> {
    match item {
        Item::Import { .. } => None,
        Item::Vjp(vjp) => Some(vjp.span),
        Item::Rewrite(rewrite) => Some(rewrite.span),
        Item::Def(def) => Some(def.span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::{Style, render};

    /// Every embedded rule is well-typed over its family of instances, and fires on some.
    #[test]
    fn embedded_rules_are_well_typed() {
        for profile in [Profile::Phase1, Profile::Default] {
            let options = RuleOptions { profile, check_embedded: true, ..RuleOptions::default() };
            let (mut sources, mut bag) = (SourceMap::new(), Diagnostics::new());
            let rules = load(&options, &mut sources, &mut bag);
            assert!(bag.is_empty(), "{}", render(&bag, &sources, Style::Plain));
            assert!(rules.is_some());
        }
    }
}
