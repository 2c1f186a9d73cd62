//! Array files: read from a file, from a pipe and from within an archive, written and read again.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use kina_ad::exec::Tensor;
use kina_ad::exec::arrays::{ArrayError, read_npy, read_npz, write_npy, write_npz};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

/// What a pipe takes without a reader at its other end.
const PIPE: usize = 1 << 16;

pub fn run(data: &[u8]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("input");
    write(&path, data);
    npy(&path, data, directory.path());
    npz(&path, directory.path());
    // Further formats: read `path` as each, and hold what comes back to `written_and_read`.
}

/// As an `.npy` file, as the same bytes through a pipe, and as an array of an archive.
fn npy(path: &Path, data: &[u8], directory: &Path) {
    let from_file = read_npy(path);
    shown(&from_file);
    if data.len() <= PIPE {
        same(&from_file, &through_a_pipe(data), "a pipe");
    }
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let archive = directory.join("wrapped.npz");
        write(&archive, &wrapped(data, method));
        let arrays = read_npz(&archive);
        shown(&arrays);
        same(&from_file, &arrays.map(|mut a| a.swap_remove("x").expect("the array of the archive")), "an archive");
    }
    if let Ok(tensor) = from_file {
        written_and_read(&tensor, directory);
    }
}

fn npz(path: &Path, directory: &Path) {
    let arrays = read_npz(path);
    shown(&arrays);
    let Ok(arrays) = arrays else { return };
    let copy = directory.join("copy.npz");
    // Names may be what no file can be called; they are kept all the same.
    write_npz(&copy, arrays.iter().map(|(name, tensor)| (name.as_str(), tensor))).expect("arrays that were read");
    let again = read_npz(&copy).expect("what was written");
    assert!(arrays.keys().eq(again.keys()));
    assert!(arrays.values().zip(again.values()).all(|(a, b)| identical(a, b)));
}

fn written_and_read(tensor: &Tensor, directory: &Path) {
    let copy: PathBuf = directory.join("copy.npy");
    write_npy(&copy, tensor).expect("an array that was read");
    assert!(identical(tensor, &read_npy(&copy).expect("what was written")));
}

/// NaNs included.
fn identical(a: &Tensor, b: &Tensor) -> bool {
    a.dtype() == b.dtype() && a.shape() == b.shape() && a.as_bytes() == b.as_bytes()
}

/// The way by which bytes come does not change what they mean.
fn same(direct: &Result<Tensor, ArrayError>, other: &Result<Tensor, ArrayError>, way: &str) {
    match (direct, other) {
        (Ok(a), Ok(b)) => assert!(identical(a, b), "another array from {way}"),
        (Err(_), Err(_)) => {}
        (a, b) => panic!("{a:?} from a file, but {b:?} from {way}"),
    }
}

fn shown<T>(result: &Result<T, ArrayError>) {
    if let Err(error) = result {
        assert!(!error.to_string().is_empty());
        error.diagnostic();
    }
}

fn through_a_pipe(data: &[u8]) -> Result<Tensor, ArrayError> {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(data).expect("room in a pipe");
    drop(writer);
    read_npy(Path::new(&format!("/proc/self/fd/{}", reader.as_raw_fd())))
}

fn wrapped(data: &[u8], method: CompressionMethod) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    zip.start_file("x.npy", options).expect("an entry in memory");
    zip.write_all(data).expect("bytes in memory");
    zip.finish().expect("an archive in memory").into_inner()
}

fn write(path: &Path, data: &[u8]) {
    std::fs::write(path, data).expect("a file in a temporary directory");
}
