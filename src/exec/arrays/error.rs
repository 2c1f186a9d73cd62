//! What can be wrong with an array file, and the way out of it.

use std::io;
use std::path::{Path, PathBuf};

use crate::diagnostics::{Diagnostic, closest};
use crate::exec::tensor::TensorError;
use crate::ir::{DType, Shape, TensorType};

/// An array file that cannot be read, written or used.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {cause}", path.display(), entry.as_ref().map(|e| format!(" ({})", shown(e))).unwrap_or_default())]
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
    #[error("not an array file: it starts as no .npy, .npz or .safetensors file does")]
    Unrecognised,
    #[error("an .npy file, which holds one array without a name, not an archive")]
    NotAnArchive,
    #[error("not an .npy file: it does not start with \\x93NUMPY")]
    NotNpy,
    #[error("version {major}.{minor} of the .npy format is not known")]
    Version { major: u8, minor: u8 },
    #[error("malformed {format} header: {what}")]
    Header { format: &'static str, what: String },
    #[error("dtype {name} ({what}) is not a dtype of Kina")]
    DType {
        name: String,
        what: &'static str,
        /// The expression that converts an array `x` before it is saved, where there is one.
        convert: Option<String>,
    },
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
    #[error("a .safetensors file cannot have an array of this name")]
    Reserved,
    #[error("no array of this name in the archive, which holds {}", list(.names))]
    NoSuchArray { names: Vec<String> },
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

impl ArrayError {
    pub(super) fn new(path: &Path, cause: impl Into<ArrayErrorCause>) -> ArrayError {
        ArrayError { path: path.to_owned(), entry: None, cause: cause.into() }
    }

    pub(super) fn entry(path: &Path, entry: &str, cause: impl Into<ArrayErrorCause>) -> ArrayError {
        ArrayError { path: path.to_owned(), entry: Some(entry.to_owned()), cause: cause.into() }
    }

    /// Could the file itself not be read or written (exit code 4), rather than its content not be used (1)?
    pub fn is_io(&self) -> bool {
        matches!(self.cause, ArrayErrorCause::Read(_) | ArrayErrorCause::Write(_))
    }

    pub fn code(&self) -> &'static str {
        use ArrayErrorCause as C;
        match &self.cause {
            C::Read(_) => "E0701",
            C::Write(_) => "E0702",
            C::Unrecognised | C::NotAnArchive | C::NotNpy | C::Version { .. } | C::Header { .. } => "E0703",
            C::DType { .. } => "E0704",
            C::Truncated { .. } | C::TooLong { .. } | C::Inflated { .. } => "E0705",
            C::Shape(_) | C::Memory(_) => "E0706",
            C::Archive(_) | C::Duplicate | C::Reserved | C::NoSuchArray { .. } => "E0707",
            C::Mismatch(_) => "E0708",
        }
    }

    /// The way out.
    pub fn help(&self) -> Option<String> {
        use ArrayErrorCause as C;
        Some(match &self.cause {
            C::Read(_) => "check the path and its permissions".into(),
            C::Write(_) => "check that the directory exists and can be written".into(),
            C::Unrecognised | C::NotNpy | C::Header { format: "npy", .. } => {
                "write arrays with `numpy.save`, `numpy.savez` or `safetensors.numpy.save_file`".into()
            }
            C::Header { .. } => "write it with `safetensors.numpy.save_file`".into(),
            C::NotAnArchive => "give it with `--input NAME=FILE.npy`".into(),
            C::Version { .. } => "versions 1.0, 2.0 and 3.0 can be read".into(),
            C::DType { convert: Some(convert), .. } => format!("convert it before saving: `{convert}`"),
            C::DType { convert: None, .. } => "arrays must be float32, float64, int32, int64 or bool".into(),
            C::Truncated { .. } | C::TooLong { .. } | C::Inflated { .. } => {
                "the file was cut off, appended to or damaged: write it again".into()
            }
            C::Shape(_) | C::Memory(_) => "use smaller shapes, or a machine with more memory".into(),
            C::Archive(_) => "archives are read as `numpy.savez` and `savez_compressed` write them".into(),
            C::Duplicate => "give each array a name of its own".into(),
            C::Reserved => "the format keeps it for itself: give the array another name".into(),
            C::NoSuchArray { names } => {
                let close = closest(self.entry.as_deref()?, names.iter().map(String::as_str))?;
                format!("did you mean `{}`?", shown(close))
            }
            C::Mismatch(mismatch) => mismatch.help(),
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

/// A name out of a file: made printable, and no longer than a person reads.
pub(in crate::exec) fn shown(name: &str) -> String {
    const LENGTH: usize = 120;
    let start: String = name.chars().take(LENGTH).flat_map(char::escape_debug).collect();
    if name.chars().nth(LENGTH).is_some() { start + ".." } else { start }
}

fn list(names: &[String]) -> String {
    const COUNT: usize = 20;
    if names.is_empty() {
        return "none".into();
    }
    let mut list = names.iter().take(COUNT).map(|n| format!("`{}`", shown(n))).collect::<Vec<_>>().join(", ");
    if names.len() > COUNT {
        list.push_str(&format!(" and {} more", names.len() - COUNT));
    }
    list
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
