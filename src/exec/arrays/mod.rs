//! Array files: `.npy` and `.npz`, as NumPy writes them.
//!
//! Files are untrusted. Sizes are compared before memory is asked for, headers are bounded, and nothing in a file
//! can panic or abort the process. A dtype is never converted: a file that does not have the dtype and shape that the
//! program asks for is refused ([`expect`]). The only liberty is layout: big-endian and Fortran-order files are read
//! into the one layout that [`Tensor`] has.

mod header;
mod npy;
mod npz;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::files::write_atomically;
use super::tensor::{Tensor, TensorError};
use crate::diagnostics::{Diagnostic, closest};
use crate::ir::{DType, Shape, TensorType};

pub use npz::{Npz, read_npz, write_npz};

/// An array file that cannot be read, written or used.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {cause}", path.display(), entry.as_ref().map(|e| format!(" ({e})")).unwrap_or_default())]
pub struct ArrayError {
    pub path: PathBuf,
    /// The array within an archive.
    pub entry: Option<String>,
    #[source]
    pub cause: ArrayErrorCause,
}

/// What is the matter with an array file. Codes are documented in `docs/diagnostics.md`.
#[derive(Debug, thiserror::Error)]
pub enum ArrayErrorCause {
    #[error("cannot be read: {0}")]
    Read(io::Error),
    #[error("cannot be written: {0}")]
    Write(io::Error),
    #[error("not an .npy file: it does not start with \\x93NUMPY")]
    NotNpy {
        /// It starts as a zip archive does.
        archive: bool,
    },
    #[error("version {major}.{minor} of the .npy format is not known")]
    Version { major: u8, minor: u8 },
    #[error("malformed .npy header: {0}")]
    Header(String),
    #[error("dtype {descr} ({what}) is not a dtype of Kina")]
    DType { descr: String, what: &'static str, convert: Option<&'static str> },
    #[error("truncated: the header announces {announced} bytes of elements, the file has {found}")]
    Truncated { announced: u64, found: u64 },
    #[error("the file goes on after the {announced} bytes of elements that its header announces")]
    TooLong { announced: u64 },
    #[error("announces {announced} bytes, more than its {compressed} compressed bytes can hold")]
    Inflated { announced: u64, compressed: u64 },
    #[error(transparent)]
    Shape(#[from] crate::ir::ShapeOverflow),
    #[error(transparent)]
    Memory(#[from] TensorError),
    #[error("damaged or unsupported archive: {0}")]
    Archive(String),
    #[error("the archive has two arrays of one name")]
    Duplicate,
    #[error("no array of this name in the archive, which holds {}", list(.names))]
    NoSuchArray { names: Vec<String> },
}

impl ArrayError {
    fn new(path: &Path, cause: impl Into<ArrayErrorCause>) -> ArrayError {
        ArrayError { path: path.to_owned(), entry: None, cause: cause.into() }
    }

    fn entry(path: &Path, entry: &str, cause: impl Into<ArrayErrorCause>) -> ArrayError {
        ArrayError { path: path.to_owned(), entry: Some(entry.to_owned()), cause: cause.into() }
    }

    /// Could the file itself not be read or written (exit code 4), rather than its content not be used (1)?
    pub fn is_io(&self) -> bool {
        matches!(self.cause, ArrayErrorCause::Read(_) | ArrayErrorCause::Write(_))
    }

    pub fn code(&self) -> &'static str {
        match &self.cause {
            ArrayErrorCause::Read(_) => "E0701",
            ArrayErrorCause::Write(_) => "E0702",
            ArrayErrorCause::NotNpy { .. } | ArrayErrorCause::Version { .. } | ArrayErrorCause::Header(_) => "E0703",
            ArrayErrorCause::DType { .. } => "E0704",
            ArrayErrorCause::Truncated { .. } | ArrayErrorCause::TooLong { .. } | ArrayErrorCause::Inflated { .. } => {
                "E0705"
            }
            ArrayErrorCause::Shape(_) | ArrayErrorCause::Memory(_) => "E0706",
            ArrayErrorCause::Archive(_) | ArrayErrorCause::Duplicate | ArrayErrorCause::NoSuchArray { .. } => "E0707",
        }
    }

    /// The way out.
    pub fn help(&self) -> Option<String> {
        Some(match &self.cause {
            ArrayErrorCause::Read(_) => "check the path and its permissions".into(),
            ArrayErrorCause::Write(_) => "check that the directory exists and can be written".into(),
            ArrayErrorCause::NotNpy { archive: true } => {
                "this is an .npz archive: give it with `--inputs FILE.npz`".into()
            }
            ArrayErrorCause::NotNpy { archive: false } | ArrayErrorCause::Header(_) => {
                "write arrays with `numpy.save` or `numpy.savez`".into()
            }
            ArrayErrorCause::Version { .. } => "versions 1.0, 2.0 and 3.0 can be read".into(),
            ArrayErrorCause::DType { convert: Some(name), .. } => {
                format!("convert it before saving: `x.astype(numpy.{name})`")
            }
            ArrayErrorCause::DType { convert: None, .. } => {
                "arrays must be float32, float64, int32, int64 or bool".into()
            }
            ArrayErrorCause::Truncated { .. } | ArrayErrorCause::TooLong { .. } | ArrayErrorCause::Inflated { .. } => {
                "the file was cut off, appended to or damaged: write it again".into()
            }
            ArrayErrorCause::Archive(_) => {
                "archives are read as `numpy.savez` and `savez_compressed` write them".into()
            }
            ArrayErrorCause::NoSuchArray { names } => {
                let close = closest(self.entry.as_deref()?, names.iter().map(String::as_str))?;
                format!("did you mean `{close}`?")
            }
            _ => return None,
        })
    }

    pub fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.code(), self.to_string());
        match self.help() {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".into();
    }
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

/// A tensor that is not what the program's input asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input `{name}` must be {wanted}, but the array given is {dtype} {shape}")]
pub struct Mismatch {
    pub name: String,
    pub wanted: TensorType,
    pub dtype: DType,
    pub shape: Shape,
}

impl Mismatch {
    /// The way out: the NumPy expression that makes the array fit, where there is an obvious one.
    pub fn help(&self) -> String {
        if self.shape != self.wanted.shape {
            let same = self.shape.elements() == self.wanted.shape.elements();
            return if same {
                format!(
                    "it has as many elements: reshape it to {} before saving, or change the type",
                    self.wanted.shape
                )
            } else {
                format!("give an array of shape {}, or change the type in the program", self.wanted.shape)
            };
        }
        let numpy = match self.wanted.dtype {
            DType::Bool => "bool_",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::F32 => "float32",
            DType::F64 => "float64",
        };
        format!(
            "dtypes are never converted silently: save `x.astype(numpy.{numpy})`, or change the type in the program"
        )
    }

    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::error("E0708", self.to_string()).help(self.help())
    }
}

/// Checks that `tensor` can be the program input `name` of type `wanted`.
///
/// # Errors
/// If the dtype or the shape differs.
pub fn expect(name: &str, tensor: &Tensor, wanted: &TensorType) -> Result<(), Mismatch> {
    if tensor.is_of(wanted) {
        return Ok(());
    }
    Err(Mismatch {
        name: name.to_owned(),
        wanted: wanted.clone(),
        dtype: tensor.dtype(),
        shape: tensor.shape().clone(),
    })
}

/// Reads an `.npy` file.
///
/// # Errors
/// An unreadable, malformed or truncated file, a dtype that Kina does not have, an array larger than memory.
pub fn read_npy(path: &Path) -> Result<Tensor, ArrayError> {
    let fail = |cause| ArrayError::new(path, cause);
    let mut file = File::open(path).map_err(ArrayErrorCause::Read).map_err(fail)?;
    let metadata = file.metadata().map_err(ArrayErrorCause::Read).map_err(fail)?;
    // A pipe does not say how much will come.
    let length = metadata.is_file().then_some(metadata.len());
    npy::read(&mut file, length).map_err(fail)
}

/// Writes an `.npy` file, atomically. Equal tensors give equal bytes.
///
/// # Errors
/// An I/O error.
pub fn write_npy(path: &Path, tensor: &Tensor) -> Result<(), ArrayError> {
    write_atomically(path, |w| -> io::Result<()> {
        w.write_all(&header::encode(tensor.dtype(), tensor.shape()))?;
        npy::write_elements(w, tensor)
    })
    .map_err(|e| ArrayError::new(path, ArrayErrorCause::Write(e)))
}

#[cfg(test)]
mod tests;
