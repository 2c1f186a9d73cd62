use std::io::Write;

use ::zip::write::SimpleFileOptions;
use ::zip::{CompressionMethod, ZipWriter};

use super::*;

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
    let error = Npz::open(&a).unwrap().read("f3", None).unwrap_err();
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

/// An archive of one deflated entry.
fn deflated(name: &str, npy: &[u8]) -> Vec<u8> {
    let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file(name, SimpleFileOptions::DEFAULT.compression_method(CompressionMethod::Deflated)).unwrap();
    zip.write_all(npy).unwrap();
    zip.finish().unwrap().into_inner()
}

/// Writes `size` where the local and the central header of the first entry announce the inflated size.
fn announce(archive: &[u8], size: u32) -> Vec<u8> {
    let mut lying = archive.to_vec();
    let central = archive.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    for at in [22, central + 24] {
        lying[at..at + 4].copy_from_slice(&size.to_le_bytes());
    }
    lying
}

/// An entry that inflates to more than it announces, or to less; and one that keeps its word but is not what the
/// program takes, so that nobody inflates it.
#[test]
fn zip_bombs_are_refused() {
    let dir = Dir::new();
    let elements = vec![0; 1 << 20];
    let npy = npy_bytes(1, &dictionary("<i8", false, "131072,"), &elements);
    let bomb = deflated("x.npy", &npy);
    assert!(bomb.len() < 4096 && read_npz(&dir.file(&bomb)).is_ok());
    let refusal = |bytes: &[u8]| read_npz(&dir.file(bytes)).unwrap_err();
    for size in [0, 8, 200] {
        let error = refusal(&announce(&bomb, size));
        assert!(matches!(error.code(), "E0703" | "E0705" | "E0707"), "{size}: {error}");
    }
    for size in [npy.len() as u32 + 1, u32::MAX - 1] {
        let error = refusal(&announce(&bomb, size));
        assert_eq!(error.code(), "E0705", "{size}: {error}");
    }
    // The array announces little, the entry holds much.
    let surplus = [npy_bytes(1, &dictionary("<i8", false, "1,"), &[0; 8]), elements].concat();
    assert!(matches!(refusal(&deflated("x.npy", &surplus)).cause, ArrayErrorCause::TooLong { announced: 8 }));
    // The entry announces what its array announces, and inflates to less.
    let little = npy_bytes(1, &dictionary("<i8", false, "131072,"), &[0; 800]);
    let lying = announce(&deflated("x.npy", &little), npy.len() as u32);
    assert!(matches!(refusal(&lying).code(), "E0705" | "E0707"));
    let ty = input(DType::I64, &[2]);
    let error = read_input(&dir.file(&bomb), Wanted { name: "x", ty: &ty }).unwrap_err();
    assert_eq!(error.code(), "E0708", "{error}");
}

/// `numpy.savez` writes every entry in the form for large files.
#[test]
fn zip64_entries_are_read() {
    let dir = Dir::new();
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let options = SimpleFileOptions::DEFAULT.compression_method(method).large_file(true);
        zip.start_file("x.npy", options).unwrap();
        zip.write_all(&npy_bytes(1, &dictionary("<i4", false, "2,"), &[1, 0, 0, 0, 2, 0, 0, 0])).unwrap();
        let back = read_npz(&dir.file(&zip.finish().unwrap().into_inner())).unwrap();
        assert_eq!(back["x"].data(), &Data::I32(vec![1, 2]));
    }
}

#[test]
fn entries_that_cannot_be_read_are_refused() {
    let dir = Dir::new();
    let bytes = deflated("x.npy", &npy_bytes(1, &dictionary("<i4", false, "1,"), &[0; 4]));
    let central = bytes.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    // Method 14 is LZMA; bit 0 of the flags says encrypted.
    for (local, offset, value) in [(8, 10, 14), (6, 8, 1)] {
        let mut other = bytes.clone();
        other[local] = value;
        other[central + offset] = value;
        let error = read_npz(&dir.file(&other)).unwrap_err();
        assert!(matches!(error.cause, ArrayErrorCause::Archive(_)), "{error}");
    }
    // Directories are no arrays; `x` and `x.npy` are one name.
    let two = |a: &str, b: &str| {
        let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for name in [a, b] {
            zip.start_file(name, SimpleFileOptions::DEFAULT).unwrap();
            zip.write_all(&npy_bytes(1, &dictionary("<i4", false, "1,"), &[0; 4])).unwrap();
        }
        zip.finish().unwrap().into_inner()
    };
    assert!(matches!(read_npz(&dir.file(&two("x", "x.npy"))).unwrap_err().cause, ArrayErrorCause::Duplicate));
    let names: Vec<String> = read_npz(&dir.file(&two("x", "../y.npy"))).unwrap().into_keys().collect();
    assert_eq!(names, ["x", "../y"]);
    let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.add_directory("folder/", SimpleFileOptions::DEFAULT).unwrap();
    assert!(read_npz(&dir.file(&zip.finish().unwrap().into_inner())).unwrap().is_empty());
}
