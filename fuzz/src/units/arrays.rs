//! Array files: read from a file, from a pipe and from within archives, written and read again.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;

use kina_ad::exec::Tensor;
use kina_ad::exec::arrays::{Archive, ArchiveFormat, ArrayError, read_npy, read_npz, read_safetensors, write_npy};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

/// What a pipe takes without a reader at its other end.
const PIPE: usize = 1 << 16;

pub fn run(data: &[u8]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("input");
    write(&path, data);
    npy(&path, data, directory.path());
    archive(&path, read_npz(&path), ArchiveFormat::Npz, directory.path());
    archive(&path, read_safetensors(&path), ArchiveFormat::Safetensors, directory.path());
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
        let copy = directory.join("copy.npy");
        write_npy(&copy, &tensor).expect("an array that was read");
        assert!(identical(&tensor, &read_npy(&copy).expect("what was written")));
    }
}

/// As an archive, read as a whole and array by array, and written in its own format again.
fn archive<A>(path: &Path, arrays: Result<A, ArrayError>, format: ArchiveFormat, directory: &Path)
where
    A: IntoIterator<Item = (String, Tensor)>,
{
    shown(&arrays);
    let Ok(arrays) = arrays else { return };
    let arrays: Vec<(String, Tensor)> = arrays.into_iter().collect();
    holds(path, &arrays);
    let copy = directory.join("copy").with_extension(format.extension());
    let named = arrays.iter().map(|(name, tensor)| (name.as_str(), tensor));
    format.write(&copy, named).expect("arrays that were read");
    holds(&copy, &arrays);
}

/// Does the archive hold exactly these arrays? The formats have orders of their own.
fn holds(path: &Path, arrays: &[(String, Tensor)]) {
    let mut archive = match Archive::open(path) {
        Ok(archive) => archive,
        // What precedes the first entry of a zip archive hides its format, not its arrays.
        Err(error) => return shown::<()>(&Err(error)),
    };
    let mut names = archive.names();
    names.sort();
    let mut wanted: Vec<&String> = arrays.iter().map(|(name, _)| name).collect();
    wanted.sort();
    assert!(names.iter().eq(wanted));
    for (name, tensor) in arrays {
        assert!(identical(tensor, &archive.read(name, None).expect("an array that was read before")));
    }
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
        let diagnostic = error.diagnostic();
        assert!(!diagnostic.message.is_empty());
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
