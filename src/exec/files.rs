//! Output files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

/// Creates or replaces `path` with what `fill` writes. The content goes to a temporary file in the same directory,
/// which takes the place of `path` in one step: whoever reads `path` sees the old content or the new, and nothing
/// is left behind if `fill` fails. Permissions of a replaced file are kept, symbolic links are followed. What is
/// not a regular file (`/dev/stdout`, a pipe) is written to, not replaced, once `fill` has succeeded.
///
/// # Errors
/// What `fill` returns, or an I/O error of the file system.
pub fn write_atomically<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> Result<(), E>,
) -> Result<(), E> {
    let existing = fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|m| !m.is_file()) {
        // Opened first, so that a directory or a file without permission is refused before the work.
        let mut target = File::options().write(true).open(path)?;
        let mut content = tempfile::tempfile()?;
        write_to(&content, fill)?;
        content.rewind()?;
        io::copy(&mut content, &mut target)?;
        return Ok(());
    }
    let target = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".kina-ad-");
    #[cfg(unix)]
    let permissions = {
        use std::os::unix::fs::PermissionsExt;
        fs::Permissions::from_mode(0o666) // less the umask, like any other new file
    };
    #[cfg(unix)]
    builder.permissions(permissions);
    // The plain error of the system, which the temporary file's own would hide behind its random name.
    fs::metadata(directory)?;
    let file = builder.tempfile_in(directory).map_err(|e| io::Error::from(e.kind()))?;
    write_to(file.as_file(), fill)?;
    if let Some(existing) = existing {
        file.as_file().set_permissions(existing.permissions())?;
    }
    file.persist(&target).map_err(|e| e.error)?;
    Ok(())
}

fn write_to<E: From<io::Error>>(
    file: &File,
    fill: impl FnOnce(&mut BufWriter<&File>) -> Result<(), E>,
) -> Result<(), E> {
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    fill(&mut writer)?;
    writer.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        write_atomically(path, |w| w.write_all(text.as_bytes()))
    }

    #[test]
    fn replaces_whole_files_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        write(&path, "first").unwrap();
        write(&path, "second").unwrap();
        let failed: io::Result<()> = write_atomically(&path, |w| {
            w.write_all(b"half")?;
            Err(io::Error::other("no"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no");
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write(&dir.path().join("absent/out"), "x").is_err());
        assert!(write(dir.path(), "x").is_err(), "a directory is not replaced");
    }

    #[cfg(unix)]
    #[test]
    fn keeps_permissions_and_follows_links() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("out"), dir.path().join("link"));
        write(&path, "first").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("out", &link).unwrap();
        write(&link, "second").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
