//! Array files: `.npy` and `.npz` as NumPy writes them, and `.safetensors`.
//!
//! Files are untrusted. Sizes are compared before memory is asked for, headers are bounded, and nothing in a file
//! can panic or abort the process. What a file is, its content says, not its name. A dtype is never converted: a file
//! that does not have the dtype and shape that the program asks for is refused ([`Wanted`]), before its elements are
//! read. The only liberty is layout: big-endian and Fortran-order files are read into the one layout that [`Tensor`] has.

mod elements;
mod error;
mod header;
mod npy;
mod npz;
mod safetensors;

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use super::files::write_atomically;
use super::tensor::Tensor;
use crate::ir::{DType, Shape, TensorType};

pub(super) use error::shown;
pub use error::{ArrayError, ArrayErrorCause, Mismatch};
pub use npz::{Npz, read_npz, write_npz};
pub use safetensors::{Safetensors, read_safetensors, write_safetensors};

/// What an array is read for: a program input, whose dtype and shape it must have.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub name: &'a str,
    pub ty: &'a TensorType,
}

impl Wanted<'_> {
    /// Can an array of this dtype and shape be the input?
    ///
    /// # Errors
    /// If the dtype or the shape differs.
    pub fn check(&self, dtype: DType, shape: &Shape) -> Result<(), Mismatch> {
        if dtype == self.ty.dtype && *shape == self.ty.shape {
            return Ok(());
        }
        Err(Mismatch { name: self.name.to_owned(), wanted: self.ty.clone(), dtype, shape: shape.clone() })
    }
}

/// A format that holds several arrays by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveFormat {
    Npz,
    Safetensors,
}

impl ArchiveFormat {
    pub const ALL: [ArchiveFormat; 2] = [ArchiveFormat::Npz, ArchiveFormat::Safetensors];

    pub fn extension(self) -> &'static str {
        match self {
            ArchiveFormat::Npz => "npz",
            ArchiveFormat::Safetensors => "safetensors",
        }
    }

    /// The format that a file to be written has by its name.
    pub fn of(path: &Path) -> Option<ArchiveFormat> {
        let extension = path.extension()?;
        ArchiveFormat::ALL.into_iter().find(|format| extension.eq_ignore_ascii_case(format.extension()))
    }

    /// Writes arrays, atomically. Equal arrays of equal names in equal order give equal bytes.
    ///
    /// # Errors
    /// An I/O error, two arrays of one name, or a name that the format keeps for itself.
    pub fn write<'a>(
        self,
        path: &Path,
        arrays: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    ) -> Result<(), ArrayError> {
        match self {
            ArchiveFormat::Npz => write_npz(path, arrays),
            ArchiveFormat::Safetensors => write_safetensors(path, arrays),
        }
    }
}

/// An open archive, in whichever format its content shows.
pub enum Archive {
    Npz(Npz),
    Safetensors(Safetensors),
}

impl Archive {
    /// Opens an archive and lists its arrays, without reading their elements.
    ///
    /// # Errors
    /// A file that cannot be read or is no archive, two arrays of one name.
    pub fn open(path: &Path) -> Result<Archive, ArrayError> {
        match recognise(path)? {
            Recognised::Archive(archive) => Ok(archive),
            Recognised::Npy(..) => Err(ArrayError::new(path, ArrayErrorCause::NotAnArchive)),
        }
    }

    /// The names of the arrays, in the order of the archive.
    pub fn names(&self) -> Vec<String> {
        match self {
            Archive::Npz(archive) => archive.names().map(str::to_owned).collect(),
            Archive::Safetensors(archive) => archive.names().map(str::to_owned).collect(),
        }
    }

    /// Reads one array, if it is what is wanted.
    ///
    /// # Errors
    /// If there is none of that name, or as for [`read_npy`].
    pub fn read(&mut self, name: &str, wanted: Option<Wanted<'_>>) -> Result<Tensor, ArrayError> {
        match self {
            Archive::Npz(archive) => archive.read(name, wanted),
            Archive::Safetensors(archive) => archive.read(name, wanted),
        }
    }
}

/// What a file is, by its first bytes.
enum Recognised {
    /// The bytes taken already, and the rest: a pipe cannot be read twice.
    Npy(Vec<u8>, File),
    Archive(Archive),
}

fn recognise(path: &Path) -> Result<Recognised, ArrayError> {
    let fail = |e| ArrayError::new(path, ArrayErrorCause::Read(e));
    let mut file = File::open(path).map_err(fail)?;
    let mut start = [0; 9];
    let found = elements::read_until_full(&mut file, &mut start).map_err(fail)? as usize;
    let start = &start[..found];
    if start.starts_with(npy::MAGIC) {
        return Ok(Recognised::Npy(start.to_vec(), file));
    }
    // The first entry, or the end of an archive without entries.
    let zip = start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06");
    // A length, then JSON.
    let safetensors = start.get(8) == Some(&b'{');
    if !zip && !safetensors {
        return Err(ArrayError::new(path, ArrayErrorCause::Unrecognised));
    }
    file.rewind().map_err(fail)?;
    Ok(Recognised::Archive(match zip {
        true => Archive::Npz(Npz::from_file(path, file)?),
        false => Archive::Safetensors(Safetensors::from_file(path, file)?),
    }))
}

/// Reads an array for the program input `wanted` from a file of any format: the array of an `.npy` file; of an archive
/// the array that has the input's name, or the only one.
///
/// # Errors
/// A file that cannot be read or is malformed; an archive of several arrays of other names; an array of another
/// dtype or shape, or larger than memory.
pub fn read_input(path: &Path, wanted: Wanted<'_>) -> Result<Tensor, ArrayError> {
    let mut archive = match recognise(path)? {
        Recognised::Npy(start, file) => {
            let length = length(&file).map_err(|e| ArrayError::new(path, ArrayErrorCause::Read(e)))?;
            return npy::read(&mut start.chain(file), length, Some(wanted)).map_err(|e| ArrayError::new(path, e));
        }
        Recognised::Archive(archive) => archive,
    };
    let names = archive.names();
    let name = match names.as_slice() {
        [only] => only,
        _ => wanted.name,
    };
    archive.read(name, Some(wanted))
}

/// Reads an `.npy` file.
///
/// # Errors
/// An unreadable, malformed or truncated file, a dtype that Kina does not have, an array larger than memory.
pub fn read_npy(path: &Path) -> Result<Tensor, ArrayError> {
    let fail = |cause| ArrayError::new(path, cause);
    let mut file = File::open(path).map_err(ArrayErrorCause::Read).map_err(fail)?;
    let length = length(&file).map_err(ArrayErrorCause::Read).map_err(fail)?;
    npy::read(&mut file, length, None).map_err(fail)
}

/// How many bytes a file has. A pipe does not say how much will come.
fn length(file: &File) -> io::Result<Option<u64>> {
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some(metadata.len()))
}

/// Writes an `.npy` file, atomically. Equal tensors give equal bytes.
///
/// # Errors
/// An I/O error.
pub fn write_npy(path: &Path, tensor: &Tensor) -> Result<(), ArrayError> {
    write_atomically(path, |w| -> io::Result<()> {
        w.write_all(&header::encode(tensor.dtype(), tensor.shape()))?;
        elements::write(w, tensor, elements::Order::Little)
    })
    .map_err(|e| ArrayError::new(path, ArrayErrorCause::Write(e)))
}

#[cfg(test)]
mod tests;
