//! Archives of arrays: a zip with one `NAME.npy` per array.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use super::elements::{self, Order};
use super::{ArrayError, ArrayErrorCause, Tensor, Wanted, header, npy, write_atomically};

/// No deflate stream expands further (a match of 258 bytes takes at least two bits).
const MAX_EXPANSION: u64 = 1032;

/// An open `.npz`.
pub struct Npz {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
    /// Array names and their indices in the archive, in archive order.
    names: IndexMap<String, usize>,
}

impl Npz {
    /// Opens an archive and lists its arrays, without reading them.
    ///
    /// # Errors
    /// A file that cannot be read or is no zip archive, two arrays of one name.
    pub fn open(path: &Path) -> Result<Npz, ArrayError> {
        let file = File::open(path).map_err(|e| ArrayError::new(path, ArrayErrorCause::Read(e)))?;
        Npz::from_file(path, file)
    }

    pub(super) fn from_file(path: &Path, file: File) -> Result<Npz, ArrayError> {
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|e| ArrayError::new(path, cause(e)))?;
        // The library keeps the last of several entries of one name.
        if archive.has_duplicate_names() {
            return Err(ArrayError::new(path, ArrayErrorCause::Duplicate));
        }
        let mut names = IndexMap::new();
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(|e| ArrayError::new(path, cause(e)))?;
            let name = entry.name().map_err(|e| ArrayError::new(path, cause(e)))?;
            if name.ends_with('/') {
                continue; // a directory
            }
            let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
            if names.contains_key(&name) {
                return Err(ArrayError::entry(path, &name, ArrayErrorCause::Duplicate));
            }
            names.insert(name, index);
        }
        Ok(Npz { path: path.to_owned(), archive, names })
    }

    /// The arrays, in archive order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// Reads one array, if it is what is wanted.
    ///
    /// # Errors
    /// If there is none of that name, if it is not what is wanted, or as for [`read_npy`](super::read_npy).
    pub fn read(&mut self, name: &str, wanted: Option<Wanted<'_>>) -> Result<Tensor, ArrayError> {
        let Some(&index) = self.names.get(name) else {
            let names = self.names.keys().cloned().collect();
            return Err(ArrayError::entry(&self.path, name, ArrayErrorCause::NoSuchArray { names }));
        };
        read_entry(&mut self.archive, index, wanted).map_err(|e| ArrayError::entry(&self.path, name, e))
    }
}

fn read_entry(
    archive: &mut ZipArchive<BufReader<File>>,
    index: usize,
    wanted: Option<Wanted<'_>>,
) -> Result<Tensor, ArrayErrorCause> {
    let mut entry = archive.by_index(index).map_err(cause)?;
    let (announced, compressed) = (entry.size(), entry.compressed_size());
    let possible = match entry.compression() {
        CompressionMethod::Stored => compressed,
        _ => compressed.saturating_mul(MAX_EXPANSION),
    };
    if announced > possible {
        return Err(ArrayErrorCause::Inflated { announced, compressed });
    }
    npy::read(&mut entry, Some(announced), wanted).map_err(|e| match e {
        ArrayErrorCause::Read(e) => io_cause(e),
        other => other,
    })
}

fn cause(error: ZipError) -> ArrayErrorCause {
    match error {
        ZipError::Io(e) => io_cause(e),
        other => ArrayErrorCause::Archive(other.to_string()),
    }
}

/// What the system did not say, the library found in the archive: a bad checksum, a compressed stream that is none.
fn io_cause(error: io::Error) -> ArrayErrorCause {
    match error.kind() {
        _ if error.raw_os_error().is_some() => ArrayErrorCause::Read(error),
        io::ErrorKind::UnexpectedEof => ArrayErrorCause::Archive("it ends early".into()),
        _ => ArrayErrorCause::Archive(error.to_string()),
    }
}

/// Reads every array of an archive, in archive order.
///
/// # Errors
/// As for [`Npz::open`] and [`Npz::read`].
pub fn read_npz(path: &Path) -> Result<IndexMap<String, Tensor>, ArrayError> {
    let mut npz = Npz::open(path)?;
    let names: Vec<String> = npz.names().map(str::to_owned).collect();
    names
        .into_iter()
        .map(|name| {
            let tensor = npz.read(&name, None)?;
            Ok((name, tensor))
        })
        .collect()
}

/// Writes an archive as `numpy.savez` does (stored, not compressed), atomically. Equal arrays of equal names in equal
/// order give equal bytes.
///
/// # Errors
/// An I/O error, or two arrays of one name.
pub fn write_npz<'a>(path: &Path, arrays: impl IntoIterator<Item = (&'a str, &'a Tensor)>) -> Result<(), ArrayError> {
    let fail = |cause| ArrayError::new(path, cause);
    write_atomically(path, |writer| {
        let mut zip = ZipWriter::new(writer);
        for (name, tensor) in arrays {
            let header = header::encode(tensor.dtype(), tensor.shape());
            let size = header.len() as u64 + tensor.as_bytes().len() as u64;
            let options = SimpleFileOptions::DEFAULT
                .compression_method(CompressionMethod::Stored)
                .last_modified_time(DateTime::DEFAULT)
                .system(zip::System::Unix)
                .unix_permissions(0o644)
                .large_file(size > u64::from(u32::MAX));
            zip.start_file(format!("{name}.npy"), options).map_err(|e| match e {
                ZipError::InvalidArchive(_) => Stop::Duplicate(name.to_owned()),
                other => Stop::Io(other.into()),
            })?;
            zip.write_all(&header)?;
            elements::write(&mut zip, tensor, Order::Little)?;
        }
        zip.finish().map_err(io::Error::from)?;
        Ok(())
    })
    .map_err(|stop| match stop {
        Stop::Io(e) => fail(ArrayErrorCause::Write(e)),
        Stop::Duplicate(name) => ArrayError::entry(path, &name, ArrayErrorCause::Duplicate),
    })
}

/// Why writing stopped.
enum Stop {
    Io(io::Error),
    Duplicate(String),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Io(error)
    }
}
