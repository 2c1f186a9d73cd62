//! Programs and their snapshots in the file system.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::snapshot::HEAD;
use crate::diagnostics::Diagnostic;

/// What was found under the paths that were given.
#[derive(Debug, Default)]
pub struct Found {
    /// In the order of the paths, those of a directory by name; each once.
    pub programs: Vec<PathBuf>,
    /// Snapshots in directories whose program is not there.
    pub orphans: Vec<PathBuf>,
    /// What is wrong with the paths.
    pub faults: Vec<Diagnostic>,
}

impl Found {
    /// What is wrong with the paths, and what stands there in vain.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let orphan = |path: &PathBuf| {
            Diagnostic::warning("E0918", format!("`{}` is the snapshot of a program that is not there", path.display()))
                .help("remove it, or bring the program back")
        };
        self.faults.iter().cloned().chain(self.orphans.iter().map(orphan)).collect()
    }
}

/// The snapshot of a program: its name with another ending.
pub fn snapshot_of(program: &Path) -> PathBuf {
    program.with_extension("snap")
}

/// The programs that `paths` name, and the `.kina` files of the directories among them and of those inside, hidden ones
/// left out. A directory that is reached twice, through a link, counts once.
pub fn find(paths: &[PathBuf]) -> Found {
    let mut walk = Walk::default();
    for path in paths {
        if path.is_dir() {
            let before = walk.found.programs.len();
            let faults = walk.found.faults.len();
            walk.directory(path);
            if walk.found.programs.len() == before && walk.found.faults.len() == faults && !walk.repeated {
                let message = format!("there is no program in `{}`", path.display());
                walk.found
                    .faults
                    .push(Diagnostic::error("E0917", message).help("programs are files whose names end with `.kina`"));
            }
        } else if path.extension().is_some_and(|e| e == "snap") {
            let message = format!("`{}` is named as a snapshot", path.display());
            let help = format!("name the program instead: `{}`", path.with_extension("kina").display());
            walk.found.faults.push(Diagnostic::error("E0917", message).help(help));
        } else {
            walk.program(path);
        }
    }
    walk.found
}

#[derive(Default)]
struct Walk {
    found: Found,
    /// Directories and programs, whatever they were reached by.
    seen: BTreeSet<PathBuf>,
    /// Was something there that was seen before?
    repeated: bool,
}

impl Walk {
    fn is_new(&mut self, path: &Path) -> bool {
        let identity = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_new = self.seen.insert(identity);
        self.repeated |= !is_new;
        is_new
    }

    fn program(&mut self, path: &Path) {
        if self.is_new(path) {
            self.found.programs.push(path.to_owned());
        }
    }

    fn directory(&mut self, top: &Path) {
        // Entries that are still to be looked at, the next one last.
        let mut open = vec![top.to_owned()];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                if self.is_new(&path) {
                    match entries(&path) {
                        Ok(entries) => open.extend(entries.into_iter().rev()),
                        Err(error) => {
                            let message = format!("cannot read the directory `{}`: {error}", path.display());
                            self.found
                                .faults
                                .push(Diagnostic::error("E0701", message).help("check the path and its permissions"));
                        }
                    }
                }
            } else if path.extension().is_some_and(|e| e == "kina") && (path.is_file() || !path.exists()) {
                // A link to nothing is a program that cannot be read. A pipe is none.
                self.program(&path);
            } else if path.extension().is_some_and(|e| e == "snap") && is_orphan(&path) {
                self.found.orphans.push(path);
            }
        }
    }
}

/// By name, without those that begin with a dot.
fn entries(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    let is_hidden = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
    let mut entries: Vec<PathBuf> = entries.into_iter().filter(|e| !is_hidden(e)).map(|e| e.path()).collect();
    entries.sort();
    Ok(entries)
}

/// A snapshot of kina-ad, and not of another tool, beside which there is no program.
fn is_orphan(path: &Path) -> bool {
    if !path.is_file() || path.with_extension("kina").exists() {
        return false;
    }
    let mut start = vec![0; HEAD.len()];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok_and(|()| start == HEAD.as_bytes())
}
