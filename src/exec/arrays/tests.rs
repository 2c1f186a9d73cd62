use std::fs;
use std::io::Write;
use std::path::PathBuf;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;
use crate::exec::Data;
use crate::ir::Placement;

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

    /// What reading a file of these bytes says.
    fn refusal(&self, bytes: &[u8]) -> ArrayErrorCause {
        read_npy(&self.file(bytes)).unwrap_err().cause
    }
}

fn shape(dims: &[u64]) -> Shape {
    Shape::new(dims.to_vec()).unwrap()
}

fn samples() -> Vec<(&'static str, Tensor)> {
    let make = |dims: &[u64], data| Tensor::new(shape(dims), data).unwrap();
    vec![
        ("f32", make(&[2, 3], Data::F32(vec![0.5, -0.0, f32::INFINITY, 1e-40, -3.0, 7.0]))),
        ("f64", make(&[], Data::F64(vec![std::f64::consts::PI]))),
        ("i32", make(&[1, 0, 4], Data::I32(vec![]))),
        ("i64", make(&[2], Data::I64(vec![i64::MIN, i64::MAX]))),
        ("bool", make(&[3], Data::Bool(vec![1, 0, 1]))),
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
fn npy_round_trips() {
    let dir = Dir::new();
    for (name, tensor) in samples() {
        let path = dir.path(name);
        write_npy(&path, &tensor).unwrap();
        let back = read_npy(&path).unwrap();
        assert_eq!((back.shape(), back.dtype()), (tensor.shape(), tensor.dtype()));
        assert_eq!(back.as_bytes(), tensor.as_bytes());
    }
}

#[test]
fn versions_byte_orders_and_layouts() {
    let dir = Dir::new();
    for version in 1..=3 {
        let big: Vec<u8> = [1_i32, -2].iter().flat_map(|v| v.to_be_bytes()).collect();
        let t = read_npy(&dir.file(&npy_bytes(version, &dictionary(">i4", false, "2,"), &big))).unwrap();
        assert_eq!(t.data(), &Data::I32(vec![1, -2]));
    }
    // Element (i, j, k) of [2, 3, 2] is 100 i + 10 j + k, stored first axis fastest.
    let mut stored = Vec::new();
    for (k, j, i) in (0..2).flat_map(|k| (0..3).flat_map(move |j| (0..2).map(move |i| (k, j, i)))) {
        stored.extend(f64::from(100 * i + 10 * j + k).to_le_bytes());
    }
    let t = read_npy(&dir.file(&npy_bytes(1, &dictionary("<f8", true, "2, 3, 2"), &stored))).unwrap();
    let row_major = [0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121].map(f64::from);
    assert_eq!(t.data(), &Data::F64(row_major.to_vec()));
    let empty = read_npy(&dir.file(&npy_bytes(1, &dictionary("<f8", true, "2, 0"), &[]))).unwrap();
    assert_eq!(&**empty.shape(), &[2, 0]);
    let truths = read_npy(&dir.file(&npy_bytes(1, &dictionary("|b1", false, "3,"), &[0, 1, 255]))).unwrap();
    assert_eq!(truths.as_bytes(), [0, 1, 1]);
}

#[test]
fn malformed_files_are_refused_for_what_they_are() {
    let dir = Dir::new();
    let ok = npy_bytes(1, &dictionary("<f4", false, "2,"), &[0; 8]);
    assert!(read_npy(&dir.file(&ok)).is_ok());
    let long = [&ok[..], &[0]].concat();
    assert!(matches!(dir.refusal(&long), ArrayErrorCause::TooLong { announced: 8 }));
    let short = &ok[..ok.len() - 1];
    assert!(matches!(dir.refusal(short), ArrayErrorCause::Truncated { announced: 8, found: 7 }));
    assert!(matches!(dir.refusal(b""), ArrayErrorCause::NotNpy { archive: false }));
    assert!(matches!(dir.refusal(b"PK\x03\x04 and more"), ArrayErrorCause::NotNpy { archive: true }));
    assert!(matches!(dir.refusal(&npy_bytes(4, "{}", &[])), ArrayErrorCause::Version { major: 4, minor: 0 }));
    assert!(matches!(dir.refusal(&ok[..40]), ArrayErrorCause::Header(_)));
    // 4 GB of header, and 2^60 bytes of elements, are not believed.
    assert!(matches!(dir.refusal(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{"), ArrayErrorCause::Header(_)));
    let huge = npy_bytes(1, &dictionary("<f4", false, "288230376151711744,"), &[0; 8]);
    assert!(matches!(dir.refusal(&huge), ArrayErrorCause::Truncated { found: 8, .. }));

    let absent = read_npy(&dir.path("absent.npy")).unwrap_err();
    assert!(absent.is_io() && absent.to_string().contains("absent.npy"), "{absent}");
    assert!(read_npy(dir.0.path()).unwrap_err().is_io(), "a directory");
}

#[test]
fn npz_round_trips_with_the_same_bytes_every_time() {
    let dir = Dir::new();
    let arrays = samples();
    let write = |name| {
        let path = dir.path(name);
        write_npz(&path, arrays.iter().map(|(n, t)| (*n, t))).unwrap();
        path
    };
    let (a, b) = (write("a.npz"), write("b.npz"));
    assert_eq!(fs::read(&a).unwrap(), fs::read(&b).unwrap());
    let back = read_npz(&a).unwrap();
    assert_eq!(back.keys().collect::<Vec<_>>(), ["f32", "f64", "i32", "i64", "bool"]);
    for (name, tensor) in &arrays {
        assert_eq!(&back[*name], tensor);
    }
    let error = Npz::open(&a).unwrap().read("f3").unwrap_err();
    assert!(matches!(&error.cause, ArrayErrorCause::NoSuchArray { .. }));
    assert_eq!(error.help().unwrap(), "did you mean `f32`?");

    let one = &arrays[0].1;
    let twice = write_npz(&dir.path("c.npz"), [("x", one), ("x", one)]).unwrap_err();
    assert!(matches!(twice.cause, ArrayErrorCause::Duplicate), "{twice}");
    assert!(!dir.path("c.npz").exists());
}

#[test]
fn deflated_archives_are_read_and_damaged_ones_refused() {
    let dir = Dir::new();
    let path = dir.path("deflated.npz");
    let mut zip = ZipWriter::new(fs::File::create(&path).unwrap());
    zip.start_file("x.npy", SimpleFileOptions::DEFAULT.compression_method(CompressionMethod::Deflated)).unwrap();
    zip.write_all(&npy_bytes(1, &dictionary("<i8", false, "4096,"), &[0; 32768])).unwrap();
    zip.finish().unwrap();
    let back = read_npz(&path).unwrap();
    assert_eq!(back["x"].data(), &Data::I64(vec![0; 4096]));

    let stored = dir.path("stored.npz");
    let t = Tensor::new(shape(&[4]), Data::F32(vec![1.0; 4])).unwrap();
    write_npz(&stored, [("x", &t)]).unwrap();
    let bytes = fs::read(&stored).unwrap();
    let place = bytes.windows(4).position(|w| w == 1.0_f32.to_le_bytes()).unwrap();
    let mut damaged = bytes.clone();
    damaged[place] ^= 1;
    let error = read_npz(&dir.file(&damaged)).unwrap_err();
    assert!(matches!(error.cause, ArrayErrorCause::Archive(_)), "the checksum is compared: {error}");
    assert!(read_npz(&dir.file(b"no archive")).is_err());

    // A central directory that announces 4 GB for an entry of 144 bytes.
    let central = bytes.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    let mut lying = bytes.clone();
    lying[central + 24..central + 28].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    let error = read_npz(&dir.file(&lying)).unwrap_err();
    assert!(matches!(error.cause, ArrayErrorCause::Inflated { .. } | ArrayErrorCause::Archive(_)), "{error}");
}

/// A zip64 trailer that announces 2^40 entries, and an archive with one name twice.
#[test]
fn lying_directories_are_refused() {
    let dir = Dir::new();
    let path = dir.path("x.npz");
    let t = Tensor::new(shape(&[2]), Data::I32(vec![1, 2])).unwrap();
    write_npz(&path, [("x", &t), ("y", &t)]).unwrap();
    let bytes = fs::read(&path).unwrap();

    let end = bytes.windows(4).rposition(|w| w == b"PK\x05\x06").unwrap();
    for entries in [1_u64 << 20, 1 << 40, u64::MAX / 64] {
        let mut lying = bytes[..end].to_vec();
        lying.extend(b"PK\x06\x06");
        lying.extend(44_u64.to_le_bytes());
        lying.extend([45, 3, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for field in [entries, entries, entries.saturating_mul(60), entries.saturating_mul(2)] {
            lying.extend(field.to_le_bytes());
        }
        lying.extend(b"PK\x06\x07\0\0\0\0");
        lying.extend((end as u64).to_le_bytes());
        lying.extend(1_u32.to_le_bytes());
        lying.extend(b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0");
        assert!(read_npz(&dir.file(&lying)).is_err(), "{entries} entries");
    }

    let mut twice = bytes.clone();
    for at in (0..twice.len() - 5).filter(|at| &bytes[*at..*at + 5] == b"y.npy") {
        twice[at] = b'x';
    }
    assert!(matches!(read_npz(&dir.file(&twice)).unwrap_err().cause, ArrayErrorCause::Duplicate));
}

/// No byte of a file can make reading panic: every byte is replaced in turn, and every prefix is tried.
#[test]
fn any_damage_is_an_error_or_another_array() {
    let dir = Dir::new();
    let t = Tensor::new(shape(&[2]), Data::I32(vec![1, 2])).unwrap();
    let (npy, npz) = (dir.path("x.npy"), dir.path("x.npz"));
    write_npy(&npy, &t).unwrap();
    write_npz(&npz, [("x", &t)]).unwrap();
    let (npy, npz) = (fs::read(npy).unwrap(), fs::read(npz).unwrap());
    for value in [0x00, 0xff] {
        for (bytes, archive) in [(&npy, false), (&npz, true)] {
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let path = dir.file(&damaged);
                let _ = if archive { read_npz(&path).map(|_| ()) } else { read_npy(&path).map(|_| ()) };
            }
        }
    }
    for end in 0..npz.len() {
        assert!(read_npz(&dir.file(&npz[..end])).is_err(), "cut at {end}");
    }
    for end in 0..npy.len() {
        assert!(read_npy(&dir.file(&npy[..end])).is_err(), "cut at {end}");
    }
}

#[test]
fn mismatches_say_what_is_wanted_and_given() {
    let t = Tensor::new(shape(&[2, 3]), Data::F64(vec![0.0; 6])).unwrap();
    let ty = |dtype, dims: &[u64]| TensorType::new(dtype, shape(dims), Placement::Host);
    assert!(expect("x", &t, &ty(DType::F64, &[2, 3])).is_ok());
    let dtype = expect("x", &t, &ty(DType::F32, &[2, 3])).unwrap_err();
    assert_eq!(dtype.to_string(), "input `x` must be tensor<F32, [2, 3], @host>, but the array given is F64 [2, 3]");
    assert!(dtype.help().contains("astype(numpy.float32)"));
    let same_count = expect("x", &t, &ty(DType::F64, &[6])).unwrap_err();
    assert!(same_count.help().contains("reshape it to [6]"));
    let other = expect("x", &t, &ty(DType::F64, &[7])).unwrap_err();
    assert!(other.help().contains("of shape [7]"));
}
