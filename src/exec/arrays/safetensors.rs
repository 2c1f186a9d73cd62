//! Archives in the safetensors format: the length of a JSON header, the header, and all elements without gaps.
//!
//! The reader is our own: the crate of the format's authors (0.8) takes the last of two tensors of one name, overflows on
//! offsets made for it, and reads a file whole.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::json;

use super::elements::{self, Order, read_until_full};
use super::{ArrayError, ArrayErrorCause, Tensor, Wanted, shown, write_atomically};
use crate::ir::types::MAX_RANK;
use crate::ir::{DType, Shape, memory};

/// Longest header that is read, as for the format's other readers.
const MAX_HEADER: u64 = 100_000_000;
/// Bytes that say how long the header is.
const LENGTH: u64 = 8;
/// The key that is no tensor: texts by name, which mean nothing here.
const METADATA: &str = "__metadata__";

fn malformed(what: impl Into<String>) -> ArrayErrorCause {
    ArrayErrorCause::Header { format: "safetensors", what: what.into() }
}

/// An open `.safetensors`.
pub struct Safetensors {
    path: PathBuf,
    file: BufReader<File>,
    /// Where in the file the elements begin.
    start: u64,
    /// In the order of the header.
    tensors: IndexMap<String, Entry>,
}

/// What the header says of a tensor.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    /// First byte of its elements, counted from the end of the header, and the byte after its last.
    data_offsets: (u64, u64),
}

impl Entry {
    fn bytes(&self) -> u64 {
        self.data_offsets.1.saturating_sub(self.data_offsets.0)
    }

    /// Dtype and shape, if they are those of a tensor of Kina of as many bytes as the entry has.
    fn parsed(&self) -> Result<(DType, Shape), ArrayErrorCause> {
        let dtype = dtype(&self.dtype)?;
        if self.shape.len() > MAX_RANK {
            return Err(malformed(format!("more than {MAX_RANK} dimensions")));
        }
        let shape = Shape::new(self.shape.clone())?;
        let announced = shape.elements() * dtype.size();
        if announced != self.bytes() {
            let (dtype, bytes) = (&self.dtype, self.bytes());
            return Err(malformed(format!(
                "{dtype} {shape} takes {announced} bytes, but {bytes} are set aside for it"
            )));
        }
        Ok((dtype, shape))
    }
}

fn dtype(name: &str) -> Result<DType, ArrayErrorCause> {
    let (what, convert) = match name {
        "BOOL" => return Ok(DType::Bool),
        "I32" => return Ok(DType::I32),
        "I64" => return Ok(DType::I64),
        "F32" => return Ok(DType::F32),
        "F64" => return Ok(DType::F64),
        "F16" => ("half precision", Some("float32")),
        "BF16" => ("bfloat16", Some("float32")),
        "I8" | "I16" => ("small integers", Some("int32")),
        "U8" | "U16" => ("unsigned integers", Some("int32")),
        "U32" | "U64" => ("unsigned integers", Some("int64")),
        "C64" => ("complex numbers", None),
        name if name.starts_with("F8_") => ("floats of 8 bits", Some("float32")),
        name if name.starts_with("F4") || name.starts_with("F6_") => ("floats of less than 8 bits", None),
        _ => ("unknown", None),
    };
    // NumPy has no word for some of these; PyTorch has.
    let convert = convert.map(|to| match name.starts_with('F') || name == "BF16" {
        true => format!("x.to(torch.{to})"),
        false => format!("x.astype(numpy.{to})"),
    });
    Err(ArrayErrorCause::DType { name: format!("'{}'", shown(name)), what, convert })
}

/// The header, as far as JSON goes. A map would keep the last of two entries of one name, so this is a list.
struct Entries(Vec<(String, Entry)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries, D::Error> {
        struct Header;

        impl<'de> Visitor<'de> for Header {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tensors by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let (mut entries, mut metadata) = (Vec::new(), None);
                while let Some(name) = map.next_key::<String>()? {
                    if name != METADATA {
                        entries.push((name, map.next_value()?));
                    } else if metadata.replace(map.next_value::<BTreeMap<String, String>>()?).is_some() {
                        return Err(A::Error::duplicate_field(METADATA));
                    }
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Header)
    }
}

impl Safetensors {
    /// Opens an archive and checks its header, without reading elements.
    ///
    /// # Errors
    /// A file that cannot be read; a header that is malformed or does not describe the whole file; two tensors of one
    /// name. A dtype that Kina does not have is an error only when its tensor is read.
    pub fn open(path: &Path) -> Result<Safetensors, ArrayError> {
        let file = File::open(path).map_err(|e| ArrayError::new(path, ArrayErrorCause::Read(e)))?;
        Safetensors::from_file(path, file)
    }

    pub(super) fn from_file(path: &Path, file: File) -> Result<Safetensors, ArrayError> {
        let fail = |cause| ArrayError::new(path, cause);
        let mut file = BufReader::new(file);
        let length = file.seek(SeekFrom::End(0)).and_then(|length| file.rewind().map(|()| length));
        let length = length.map_err(ArrayErrorCause::Read).map_err(fail)?;
        let (text, start) = read_header(&mut file, length).map_err(fail)?;
        let Entries(entries) = serde_json::from_slice(&text).map_err(|e| fail(malformed(shown(&e.to_string()))))?;
        check_offsets(&entries, length - start).map_err(fail)?;
        let mut tensors = IndexMap::with_capacity(entries.len());
        for (name, entry) in entries {
            match entry.parsed() {
                Ok(_) | Err(ArrayErrorCause::DType { .. }) => {}
                Err(cause) => return Err(ArrayError::entry(path, &name, cause)),
            }
            if tensors.contains_key(&name) {
                return Err(ArrayError::entry(path, &name, ArrayErrorCause::Duplicate));
            }
            tensors.insert(name, entry);
        }
        Ok(Safetensors { path: path.to_owned(), file, start, tensors })
    }

    /// The tensors, in the order of the header.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Reads one tensor, if it is what is wanted.
    ///
    /// # Errors
    /// If there is none of that name, or if it has a dtype that Kina does not have or is not what is wanted.
    pub fn read(&mut self, name: &str, wanted: Option<Wanted<'_>>) -> Result<Tensor, ArrayError> {
        let fail = |cause| ArrayError::entry(&self.path, name, cause);
        let Some(entry) = self.tensors.get(name) else {
            return Err(fail(ArrayErrorCause::NoSuchArray { names: self.tensors.keys().cloned().collect() }));
        };
        let (dtype, shape) = entry.parsed().map_err(fail)?;
        if let Some(wanted) = wanted {
            wanted.check(dtype, &shape).map_err(|e| fail(e.into()))?;
        }
        let place = SeekFrom::Start(self.start + entry.data_offsets.0);
        self.file.seek(place).map_err(|e| fail(ArrayErrorCause::Read(e)))?;
        elements::read(&mut self.file, dtype, shape, Order::Little).map_err(fail)
    }
}

/// The text of the header of a file of `length` bytes, and where the elements begin.
fn read_header(file: &mut impl Read, length: u64) -> Result<(Vec<u8>, u64), ArrayErrorCause> {
    let mut announced = [0; LENGTH as usize];
    if read_until_full(file, &mut announced).map_err(ArrayErrorCause::Read)? < LENGTH {
        return Err(malformed("the file ends within its length"));
    }
    let announced = u64::from_le_bytes(announced);
    if announced > MAX_HEADER {
        return Err(malformed(format!("{announced} bytes long, more than {MAX_HEADER}")));
    }
    if announced > length.saturating_sub(LENGTH) {
        return Err(malformed(format!("{announced} bytes long, more than the file")));
    }
    let mut text = memory::filled(announced, 0).map_err(|e| malformed(e.to_string()))?;
    if read_until_full(file, &mut text).map_err(ArrayErrorCause::Read)? < announced {
        return Err(malformed("the file ends within it"));
    }
    if text.first() != Some(&b'{') {
        return Err(malformed("it does not start with `{`"));
    }
    Ok((text, LENGTH + announced))
}

/// Checks that the tensors cover the `length` bytes after the header, each byte once.
fn check_offsets(entries: &[(String, Entry)], length: u64) -> Result<(), ArrayErrorCause> {
    let name = |name: &str| format!("`{}`", shown(name));
    let mut order: Vec<&(String, Entry)> = entries.iter().collect();
    order.sort_by_key(|(_, entry)| entry.data_offsets);
    let mut covered = 0;
    for (n, entry) in order {
        let (begin, end) = entry.data_offsets;
        if begin > end {
            return Err(malformed(format!("{} ends at byte {end}, before it begins at {begin}", name(n))));
        }
        if begin < covered {
            return Err(malformed(format!("{} begins at byte {begin}, within another tensor", name(n))));
        }
        if begin > covered {
            return Err(malformed(format!("the bytes {covered}..{begin} before {} belong to no tensor", name(n))));
        }
        covered = end;
    }
    match covered.cmp(&length) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(ArrayErrorCause::Truncated { announced: covered, found: length }),
        std::cmp::Ordering::Less => Err(ArrayErrorCause::TooLong { announced: covered }),
    }
}

/// Reads every tensor of an archive, in the order of its header.
///
/// # Errors
/// As for [`Safetensors::open`] and [`Safetensors::read`].
pub fn read_safetensors(path: &Path) -> Result<IndexMap<String, Tensor>, ArrayError> {
    let mut archive = Safetensors::open(path)?;
    let names: Vec<String> = archive.names().map(str::to_owned).collect();
    names.into_iter().map(|name| archive.read(&name, None).map(|tensor| (name, tensor))).collect()
}

/// Writes an archive, atomically, byte for byte as `safetensors.numpy.save_file` does: wide dtypes first, so that every
/// tensor is aligned, then by name. Equal arrays of equal names give equal bytes, in whatever order they come.
///
/// # Errors
/// An I/O error, two arrays of one name, or one named `__metadata__`.
pub fn write_safetensors<'a>(
    path: &Path,
    arrays: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
) -> Result<(), ArrayError> {
    let mut arrays: Vec<(&str, &Tensor)> = arrays.into_iter().collect();
    arrays.sort_by_key(|(name, tensor)| (rank(tensor.dtype()), *name));
    let mut header = serde_json::Map::new();
    let mut offset = 0;
    for (name, tensor) in &arrays {
        let end = offset + tensor.as_bytes().len() as u64;
        let (dtype, shape) = (stored_name(tensor.dtype()), tensor.shape().to_vec());
        let entry = json!({ "dtype": dtype, "shape": shape, "data_offsets": [offset, end] });
        if *name == METADATA {
            return Err(ArrayError::entry(path, name, ArrayErrorCause::Reserved));
        }
        if header.insert((*name).to_owned(), entry).is_some() {
            return Err(ArrayError::entry(path, name, ArrayErrorCause::Duplicate));
        }
        offset = end;
    }
    let mut header = serde_json::Value::Object(header).to_string();
    // The elements begin at a multiple of eight bytes.
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    write_atomically(path, |writer| -> io::Result<()> {
        writer.write_all(&(header.len() as u64).to_le_bytes())?;
        writer.write_all(header.as_bytes())?;
        arrays.iter().try_for_each(|(_, tensor)| elements::write(writer, tensor, Order::Little))
    })
    .map_err(|e| ArrayError::new(path, ArrayErrorCause::Write(e)))
}

fn stored_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "BOOL",
        DType::I32 => "I32",
        DType::I64 => "I64",
        DType::F32 => "F32",
        DType::F64 => "F64",
    }
}

/// Where a dtype stands in the order of the format's own writer.
fn rank(dtype: DType) -> u8 {
    match dtype {
        DType::I64 => 0,
        DType::F64 => 1,
        DType::F32 => 2,
        DType::I32 => 3,
        DType::Bool => 4,
    }
}
