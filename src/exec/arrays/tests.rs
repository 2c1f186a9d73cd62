use std::fs;
use std::path::PathBuf;

use super::*;
use crate::exec::Data;
use crate::ir::Placement;

mod npy;
mod npz;
mod safetensors;

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Dir {
        Dir(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.path("file");
        fs::write(&path, bytes).unwrap();
        path
    }
}

fn shape(dims: &[u64]) -> Shape {
    Shape::new(dims.to_vec()).unwrap()
}

fn tensor(dims: &[u64], data: Data) -> Tensor {
    Tensor::new(shape(dims), data).unwrap()
}

fn samples() -> Vec<(&'static str, Tensor)> {
    vec![
        ("f32", tensor(&[2, 3], Data::F32(vec![0.5, -0.0, f32::INFINITY, 1e-40, -3.0, 7.0]))),
        ("f64", tensor(&[], Data::F64(vec![std::f64::consts::PI]))),
        ("i32", tensor(&[1, 0, 4], Data::I32(vec![]))),
        ("i64", tensor(&[2], Data::I64(vec![i64::MIN, i64::MAX]))),
        ("bool", tensor(&[3], Data::Bool(vec![1, 0, 1]))),
    ]
}

/// An `.npy` of this version, dictionary and elements.
fn npy_bytes(version: u8, dictionary: &str, elements: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(b"\x93NUMPY");
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((dictionary.len() as u16).to_le_bytes()),
        _ => bytes.extend((dictionary.len() as u32).to_le_bytes()),
    }
    bytes.extend(dictionary.bytes());
    bytes.extend(elements);
    bytes
}

fn dictionary(descr: &str, fortran: bool, dims: &str) -> String {
    let fortran = if fortran { "True" } else { "False" };
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({dims}), }}\n")
}

#[test]
fn mismatches_say_what_is_wanted_and_given() {
    let t = tensor(&[2, 3], Data::F64(vec![0.0; 6]));
    let check = |ty: TensorType| Wanted { name: "x", ty: &ty }.check(t.dtype(), t.shape());
    assert!(check(input(DType::F64, &[2, 3])).is_ok());
    let dtype = check(input(DType::F32, &[2, 3])).unwrap_err();
    assert_eq!(dtype.to_string(), "input `x` must be tensor<F32, [2, 3], @host>, but the array given is F64 [2, 3]");
    assert!(dtype.help().contains("astype(numpy.float32)"));
    let same_count = check(input(DType::F64, &[6])).unwrap_err();
    assert!(same_count.help().contains("reshape it to [6]"));
    let other = check(input(DType::F64, &[7])).unwrap_err();
    assert!(other.help().contains("of shape [7]"));
}

fn input(dtype: DType, dims: &[u64]) -> TensorType {
    TensorType::new(dtype, shape(dims), Placement::Host)
}

#[test]
fn an_input_comes_from_a_file_of_any_format() {
    let dir = Dir::new();
    let (x, y) = (tensor(&[2], Data::F32(vec![1.0, 2.0])), tensor(&[2], Data::F32(vec![3.0, 4.0])));
    let ty = input(DType::F32, &[2]);
    let read = |file: &str| read_input(&dir.path(file), Wanted { name: "x", ty: &ty });
    write_npy(&dir.path("npy"), &x).unwrap();
    for format in ArchiveFormat::ALL {
        // The name of a file says nothing.
        let names = |of: &str| format!("{of}.{}.txt", format.extension());
        format.write(&dir.path(&names("one")), [("other", &x)]).unwrap();
        format.write(&dir.path(&names("two")), [("x", &x), ("y", &y)]).unwrap();
        format.write(&dir.path(&names("others")), [("xx", &x), ("y", &y)]).unwrap();
        format.write(&dir.path(&names("none")), []).unwrap();
        for of in ["one", "two"] {
            assert_eq!(read(&names(of)).unwrap(), x, "{of} {format:?}");
        }
        for (of, held) in [("others", "holds `xx`, `y`"), ("none", "holds none")] {
            let error = read(&names(of)).unwrap_err();
            assert!(matches!(error.cause, ArrayErrorCause::NoSuchArray { .. }), "{error}");
            assert!(error.to_string().contains(held), "{error}");
        }
        let mut archive = Archive::open(&dir.path(&names("two"))).unwrap();
        assert_eq!(archive.names(), ["x", "y"]);
        assert_eq!(archive.read("y", None).unwrap(), y);
    }
    assert_eq!(read("npy").unwrap(), x);
    assert!(matches!(Archive::open(&dir.path("npy")).err().unwrap().cause, ArrayErrorCause::NotAnArchive));
    for text in [&b""[..], b"\x93NUMP", b"1.0 2.0", b"PK\x01\x02", &[0; 64]] {
        let error = read_input(&dir.file(text), Wanted { name: "x", ty: &ty }).unwrap_err();
        assert!(matches!(error.cause, ArrayErrorCause::Unrecognised), "{error}");
    }
    assert!(read("absent").unwrap_err().is_io());
}

#[test]
fn formats_are_known_by_extension() {
    let of = |name: &str| ArchiveFormat::of(Path::new(name));
    assert_eq!(of("a.npz"), Some(ArchiveFormat::Npz));
    assert_eq!(of("a.b/c.SafeTensors"), Some(ArchiveFormat::Safetensors));
    for other in ["npz", "a.npy", "a.npz.gz", "a", ".npz", ""] {
        assert_eq!(of(other), None, "{other}");
    }
}

/// No byte of a file can make reading panic: every byte is replaced in turn, and every prefix is tried.
#[test]
fn any_damage_is_an_error_or_another_array() {
    let dir = Dir::new();
    let ty = input(DType::I32, &[2]);
    let t = tensor(&[2], Data::I32(vec![1, 2]));
    let (npy, npz, safetensors) = (dir.path("x.npy"), dir.path("x.npz"), dir.path("x.safetensors"));
    write_npy(&npy, &t).unwrap();
    write_npz(&npz, [("x", &t)]).unwrap();
    write_safetensors(&safetensors, [("x", &t)]).unwrap();
    for path in [npy, npz, safetensors] {
        let bytes = fs::read(&path).unwrap();
        let read = |bytes: &[u8]| read_input(&dir.file(bytes), Wanted { name: "x", ty: &ty });
        assert!(read(&bytes).is_ok());
        for at in 0..bytes.len() {
            for value in [0x00, 0xff, b'9'] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = read(&damaged);
            }
            assert!(read(&bytes[..at]).is_err(), "{}: cut at {at}", path.display());
        }
    }
}
