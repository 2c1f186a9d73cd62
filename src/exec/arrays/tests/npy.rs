use super::*;

/// What reading a file of these bytes says.
fn refusal(dir: &Dir, bytes: &[u8]) -> ArrayErrorCause {
    read_npy(&dir.file(bytes)).unwrap_err().cause
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
    assert!(matches!(refusal(&dir, &long), ArrayErrorCause::TooLong { announced: 8 }));
    let short = &ok[..ok.len() - 1];
    assert!(matches!(refusal(&dir, short), ArrayErrorCause::Truncated { announced: 8, found: 7 }));
    assert!(matches!(refusal(&dir, b""), ArrayErrorCause::NotNpy));
    assert!(matches!(refusal(&dir, &npy_bytes(4, "{}", &[])), ArrayErrorCause::Version { major: 4, minor: 0 }));
    assert!(matches!(refusal(&dir, &ok[..40]), ArrayErrorCause::Header { .. }));
    // 4 GB of header, and 2^60 bytes of elements, are not believed.
    assert!(matches!(refusal(&dir, b"\x93NUMPY\x02\x00\xff\xff\xff\xff{"), ArrayErrorCause::Header { .. }));
    let huge = npy_bytes(1, &dictionary("<f4", false, "288230376151711744,"), &[0; 8]);
    assert!(matches!(refusal(&dir, &huge), ArrayErrorCause::Truncated { found: 8, .. }));

    let absent = read_npy(&dir.path("absent.npy")).unwrap_err();
    assert!(absent.is_io() && absent.to_string().contains("absent.npy"), "{absent}");
    assert!(read_npy(dir.0.path()).unwrap_err().is_io(), "a directory");
}

/// Headers made to hurt whoever reads them; each is refused for what it is, in no time.
#[test]
fn hostile_headers_are_refused() {
    let dir = Dir::new();
    let header = |dictionary: &str| npy_bytes(2, dictionary, &[0; 16]);
    let with = |descr: &str, shape: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}");
    let (open, close) = ("(".repeat(30_000), ")".repeat(30_000));
    for (dictionary, words) in [
        (with("'<f4'", &format!("{open}{close}")), "a dimension is not a number"),
        (with("'<f4'", &"(".repeat(60_000)), "a dimension is not a number"),
        (format!("{}1{}", "{".repeat(30_000), "}".repeat(30_000)), "expected a string"),
        (with("'<f4'", &format!("({})", "1,".repeat(10_000))), "more than 64 dimensions"),
        (with("'<f4'", &format!("({},)", "9".repeat(10_000))), "is too large"),
        (with("'<f4'", "(1,), 'shape': (1,)"), "the key 'shape' is there twice"),
        (with("'<f4'", "(1,), 'descr': '<f4'"), "the key 'descr' is there twice"),
        (with("'<f4'", "(0x10,)"), "expected"),
        (with("'<f4'", "(1e3,)"), "expected"),
        (with("'<f4'", "(1 + 1,)"), "expected"),
        (with("'<f4'", "(__import__('os'),)"), "a dimension is not a number"),
        (with("'<f4'", "(-1,)"), "a dimension is not a number"),
        (with("'<f4'", "[4]"), "expected '('"),
        (with("'<f4'", "4"), "expected '('"),
        (with("'<f4'", "(4,)} {"), "something follows the dictionary"),
        (with("4", "(4,)"), "expected a string"),
        ("\0".repeat(100), "expected '{'"),
    ] {
        match refusal(&dir, &header(&dictionary)) {
            ArrayErrorCause::Header { format: "npy", what } => assert!(what.contains(words), "{what}"),
            other => panic!("{words}: {other}"),
        }
    }
    for shape in ["(4294967296, 4294967296)", "(0, 4294967296, 4294967296)", "(9223372036854775808,)"] {
        assert!(matches!(refusal(&dir, &header(&with("'<f4'", shape))), ArrayErrorCause::Shape(_)), "{shape}");
    }
    // A length that reaches beyond the file, and one that is not believed.
    let cut = [&b"\x93NUMPY\x01\x00\xff\xff"[..], with("'<f4'", "(4,)").as_bytes()].concat();
    assert!(refusal(&dir, &cut).to_string().contains("the file ends within it"));
    let long = [&b"\x93NUMPY\x03\x00\xff\xff\xff\x7f"[..], &[b' '; 100]].concat();
    assert!(refusal(&dir, &long).to_string().contains("more than 65536"));
}

#[test]
fn dtypes_that_kina_does_not_have_are_refused_by_name() {
    let dir = Dir::new();
    for (descr, words) in [
        ("'|O'", "Python objects"),
        ("'<U3'", "unicode text"),
        ("'|S3'", "byte strings"),
        ("'<M8[s]'", "dates or times"),
        ("'>c16'", "complex numbers"),
        ("'<f2'", "half precision"),
        ("'<f16'", "extended precision"),
        ("'|u1'", "unsigned integers"),
        ("'|i1'", "small integers"),
        ("'\u{e9}\u{1b}[31m'", "'\\xc3\\xa9\\x1b[31m' (unknown)"),
        ("[('a', '<f4'), ('b', '<i4')]", "a structured dtype"),
        ("[('a', [('b', [('c', '<f4')])])]", "a structured dtype"),
    ] {
        let dictionary = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}\n");
        // What NumPy stores of objects is a pickle: code that must never run.
        let error = read_npy(&dir.file(&npy_bytes(3, &dictionary, b"\x80\x04cos\nsystem\n."))).unwrap_err();
        assert_eq!(error.code(), "E0704", "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// The elements of what is not wanted are not looked at: there need not be memory for them.
#[test]
fn types_are_compared_before_elements_are_read() {
    let dir = Dir::new();
    let huge = npy_bytes(1, &dictionary("<f8", false, "1099511627776,"), &[]);
    let ty = input(DType::F64, &[2]);
    let error = read_input(&dir.file(&huge), Wanted { name: "x", ty: &ty }).unwrap_err();
    assert_eq!(error.code(), "E0708", "{error}");
}

/// `--input x=<(..)`: what is read need not be a file that says how long it is.
#[cfg(unix)]
#[test]
fn arrays_come_through_pipes() {
    use std::os::fd::AsRawFd;

    let t = tensor(&[2], Data::I32(vec![1, 2]));
    let dir = Dir::new();
    write_npy(&dir.path("x"), &t).unwrap();
    let whole = fs::read(dir.path("x")).unwrap();
    let ty = input(DType::I32, &[2]);
    let through = |bytes: &[u8]| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(bytes).unwrap();
        drop(writer);
        read_input(Path::new(&format!("/dev/fd/{}", reader.as_raw_fd())), Wanted { name: "x", ty: &ty })
    };
    assert_eq!(through(&whole).unwrap(), t);
    let short = through(&whole[..whole.len() - 3]).unwrap_err();
    assert!(matches!(short.cause, ArrayErrorCause::Truncated { announced: 8, found: 5 }), "{short}");
    let long = through(&[&whole[..], &[0]].concat()).unwrap_err();
    assert!(matches!(long.cause, ArrayErrorCause::TooLong { announced: 8 }), "{long}");
    // An archive must be read back and forth.
    write_npz(&dir.path("z"), [("x", &t)]).unwrap();
    assert!(through(&fs::read(dir.path("z")).unwrap()).unwrap_err().is_io());
}
