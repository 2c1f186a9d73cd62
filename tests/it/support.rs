//! Running `kina-ad` in a directory of its own, and arrays for it.
//!
//! The `.npy` encoder and decoder here are written from NumPy's format description, independently of the library's.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run of the program left.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Stdout of a run that must succeed.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "stderr: {}\nstdout: {}", self.stderr, self.stdout);
        self.stdout
    }

    /// Everything that a refusal must have: the exit code, all `words` on stderr, nothing on stdout, no panic.
    pub fn refusal(&self, code: i32, words: &[&str]) -> Result<(), String> {
        let mut complaints = Vec::new();
        if self.code != Some(code) {
            complaints.push(format!("exit {:?} instead of {code}", self.code));
        }
        for word in words.iter().filter(|w| !self.stderr.contains(**w)) {
            complaints.push(format!("stderr does not say `{word}`"));
        }
        if !self.stdout.is_empty() {
            complaints.push(format!("stdout is not empty: {}", self.stdout));
        }
        if self.stderr.contains("panicked") {
            complaints.push("it panicked".to_owned());
        }
        if complaints.is_empty() { Ok(()) } else { Err(format!("{}\n{}", complaints.join("; "), self.stderr)) }
    }
}

/// Runs the program in `directory` with `arguments` separated by spaces.
pub fn kina(directory: &Path, arguments: &str) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kina-ad"));
    let output = command
        .args(arguments.split_whitespace())
        .current_dir(directory)
        // Verdicts of the tests are their own.
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null())
        .output()
        .expect("the binary of this package runs");
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

/// A new directory with the given files.
pub fn directory<C: AsRef<[u8]>>(files: &[(&str, C)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).expect("a file in a temporary directory");
    }
    directory
}

/// The bytes of an `.npy` file, format version 1.0.
pub fn npy(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let dims: String = shape.iter().map(|d| format!("{d}, ")).collect();
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}");
    let padding = (64 - (10 + header.len() + 1) % 64) % 64;
    header.push_str(&" ".repeat(padding));
    header.push('\n');
    let length = u16::try_from(header.len()).expect("a short header");
    [b"\x93NUMPY\x01\x00", &length.to_le_bytes()[..], header.as_bytes(), data].concat()
}

pub fn npy_f32(shape: &[usize], values: &[f32]) -> Vec<u8> {
    npy("<f4", shape, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
}

pub fn npy_f64(shape: &[usize], values: &[f64]) -> Vec<u8> {
    npy("<f8", shape, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
}

pub fn npy_i64(shape: &[usize], values: &[i64]) -> Vec<u8> {
    npy("<i8", shape, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
}

/// The bytes of a `.safetensors` file with this header.
pub fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

/// An array of floats as a result file holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Floats {
    pub descr: String,
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

/// The float arrays of an `.npz` file.
pub fn read_results(path: &Path) -> BTreeMap<String, Floats> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).expect("the result file")).expect("an archive");
    let mut results = BTreeMap::new();
    for i in 0..archive.len() {
        let mut entry = archive.by_index(i).expect("an entry");
        let name = entry.name().expect("a UTF-8 name").strip_suffix(".npy").expect("entries are .npy files").to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("the entry's bytes");
        results.insert(name, decode(&bytes));
    }
    results
}

/// The float arrays of a `.safetensors` file.
pub fn read_safetensors(path: &Path) -> BTreeMap<String, Floats> {
    let bytes = std::fs::read(path).expect("the result file");
    let (length, rest) = bytes.split_first_chunk::<8>().expect("a length");
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    assert_eq!((header.len() % 8, header[0]), (0, b'{'));
    let header: serde_json::Value = serde_json::from_slice(header).expect("the header is JSON");
    let numbers = |value: &serde_json::Value| -> Vec<usize> {
        value.as_array().expect("a list").iter().map(|n| n.as_u64().expect("a number") as usize).collect()
    };
    let tensors = header.as_object().expect("tensors by name").iter().map(|(name, entry)| {
        let place = numbers(&entry["data_offsets"]);
        let descr = match entry["dtype"].as_str() {
            Some("F32") => "<f4",
            Some("F64") => "<f8",
            other => panic!("results of dtype {other:?}"),
        };
        let values = floats(descr, &data[place[0]..place[1]]);
        (name.clone(), Floats { descr: descr.to_owned(), shape: numbers(&entry["shape"]), values })
    });
    tensors.collect()
}

fn floats(descr: &str, data: &[u8]) -> Vec<f64> {
    match descr {
        "<f4" => data.as_chunks::<4>().0.iter().map(|c| f64::from(f32::from_le_bytes(*c))).collect(),
        "<f8" => data.as_chunks::<8>().0.iter().map(|c| f64::from_le_bytes(*c)).collect(),
        other => panic!("results of dtype {other}"),
    }
}

fn decode(bytes: &[u8]) -> Floats {
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..end]).expect("the header is text");
    assert!(header.contains("'fortran_order': False"), "{header}");
    let between = |from: &str, to: &str| {
        let rest = header.split_once(from).expect("the header has its keys").1;
        rest.split_once(to).expect("the header is closed").0
    };
    let descr = between("'descr': '", "'").to_owned();
    let dims = between("'shape': (", ")").split(',').map(str::trim).filter(|d| !d.is_empty());
    let shape: Vec<usize> = dims.map(|d| d.parse().expect("a dimension")).collect();
    let values = floats(&descr, &bytes[end..]);
    assert_eq!(values.len(), shape.iter().product::<usize>());
    Floats { descr, shape, values }
}

/// The bytes of an `.npz` file with the given `.npy` files.
pub fn npz(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        zip.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).expect("an entry");
        zip.write_all(bytes).expect("bytes in memory");
    }
    zip.finish().expect("an archive in memory").into_inner()
}
