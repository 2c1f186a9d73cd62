use super::super::safetensors::{read_safetensors, write_safetensors};
use super::*;

/// What reading all tensors of a file with this header and so many bytes of elements says.
fn refusal(dir: &Dir, header: &str, elements: usize) -> ArrayErrorCause {
    read_safetensors(&dir.file(&bytes(header, &vec![0; elements]))).unwrap_err().cause
}

fn bytes(header: &str, elements: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), elements].concat()
}

fn entry(name: &str, dtype: &str, shape: &str, begin: u64, end: u64) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":[{shape}],"data_offsets":[{begin},{end}]}}"#)
}

#[test]
fn round_trips_with_the_same_bytes_whatever_the_order() {
    let dir = Dir::new();
    let mut arrays = samples();
    arrays.push(("a \"b\"", tensor(&[1], Data::F32(vec![2.0]))));
    let (a, b) = (dir.path("a"), dir.path("b"));
    write_safetensors(&a, arrays.iter().map(|(n, t)| (*n, t))).unwrap();
    write_safetensors(&b, arrays.iter().rev().map(|(n, t)| (*n, t))).unwrap();
    assert_eq!(fs::read(&a).unwrap(), fs::read(&b).unwrap());
    let back = read_safetensors(&a).unwrap();
    assert_eq!(back.keys().collect::<Vec<_>>(), ["i64", "f64", "a \"b\"", "f32", "i32", "bool"]);
    for (name, tensor) in &arrays {
        assert_eq!((back[*name].shape(), back[*name].dtype()), (tensor.shape(), tensor.dtype()));
        assert_eq!(back[*name].as_bytes(), tensor.as_bytes());
    }
}

/// What the format's own package writes for these arrays, byte for byte.
#[test]
fn writes_what_the_python_package_writes() {
    let dir = Dir::new();
    let path = dir.path("x");
    let (b, x) = (tensor(&[1], Data::Bool(vec![1])), tensor(&[1, 2], Data::F32(vec![1.0, -2.0])));
    write_safetensors(&path, [("b", &b), ("x", &x)]).unwrap();
    let mut want = Vec::from(b"\x70\0\0\0\0\0\0\0");
    want.extend(br#"{"x":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtype":"BOOL","shape":[1],"data_offsets":[8,9]}}"#);
    want.extend(vec![b' '; 8 + 112 - want.len()]);
    want.extend([0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 1]);
    assert_eq!(fs::read(&path).unwrap(), want);
    write_safetensors(&path, []).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes("{}      ", &[]));
    assert!(read_safetensors(&path).unwrap().is_empty());
}

#[test]
fn what_cannot_be_written_is_refused_and_leaves_no_file() {
    let dir = Dir::new();
    let one = tensor(&[1], Data::F32(vec![1.0]));
    let path = dir.path("x");
    let twice = write_safetensors(&path, [("x", &one), ("x", &one)]).unwrap_err();
    assert!(matches!(twice.cause, ArrayErrorCause::Duplicate), "{twice}");
    let reserved = write_safetensors(&path, [("__metadata__", &one)]).unwrap_err();
    assert!(matches!(reserved.cause, ArrayErrorCause::Reserved), "{reserved}");
    assert!(!path.exists());
}

/// Legal, though this writer does none of it: metadata, a header of any order and length, tensors that are not aligned,
/// bytes other than 0 and 1 for Bool.
#[test]
fn what_others_write_is_read() {
    let dir = Dir::new();
    let header = format!(
        "{{ {},\"__metadata__\":{{\"format\":\"pt\"}},\n {}, {}}}",
        entry("x", "F32", "1", 3, 7),
        entry("b", "BOOL", "3", 0, 3),
        entry("nothing", "I64", "2,0", 3, 3),
    );
    let elements = [&[0, 1, 255][..], &1.5_f32.to_le_bytes()].concat();
    let back = read_safetensors(&dir.file(&bytes(&header, &elements))).unwrap();
    assert_eq!(back.keys().collect::<Vec<_>>(), ["x", "b", "nothing"]);
    assert_eq!(back["x"].data(), &Data::F32(vec![1.5]));
    assert_eq!(back["b"].as_bytes(), [0, 1, 1]);
    assert_eq!(&**back["nothing"].shape(), &[2, 0]);
}

#[track_caller]
fn malformed_with(cause: &ArrayErrorCause, words: &str) {
    match cause {
        ArrayErrorCause::Header { format: "safetensors", what } => assert!(what.contains(words), "{what}"),
        other => panic!("{other}"),
    }
}

#[test]
fn malformed_headers_are_refused_for_what_they_are() {
    let dir = Dir::new();
    let x = || entry("x", "F32", "2", 0, 8);
    assert!(read_safetensors(&dir.file(&bytes(&format!("{{{}}}", x()), &[0; 8]))).is_ok());
    for (header, words) in [
        ("", "does not start with `{`"),
        (" {}", "does not start with `{`"),
        ("[1]", "does not start with `{`"),
        ("{", "EOF"),
        ("{}{}", "trailing"),
        ("{'x': 1}", "line 1"),
        (r#"{"x":1}"#, "invalid type"),
        (r#"{"x":{"dtype":"F32","shape":[2]}}"#, "data_offsets"),
        (r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0]}}"#, "length"),
        (r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}}"#, "trailing"),
        (r#"{"x":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}"#, "-2"),
        (r#"{"x":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}"#, "2.0"),
        (r#"{"x":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]}}"#, "invalid"),
        (r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"strides":[1]}}"#, "strides"),
        (r#"{"x":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, "duplicate"),
        (r#"{"__metadata__":{},"__metadata__":{}}"#, "duplicate"),
        (r#"{"__metadata__":{"a":1}}"#, "invalid type"),
    ] {
        malformed_with(&refusal(&dir, header, 8), words);
    }
    let deep = format!("{{\"x\":{}", "[".repeat(100_000));
    malformed_with(&refusal(&dir, &deep, 0), "invalid type");
    let deep = format!("{{\"x\":{}", r#"{"dtype":"#.repeat(100_000));
    malformed_with(&refusal(&dir, &deep, 0), "invalid type");
    let raw = |bytes: &[u8]| read_safetensors(&dir.file(bytes)).unwrap_err().cause;
    malformed_with(&raw(b""), "ends within its length");
    malformed_with(&raw(&bytes("{}", &[])[..7]), "ends within its length");
    malformed_with(&raw(&[&8_u64.to_le_bytes()[..], b"{\"\xff\":{}}"].concat()), "unicode");
    // Lengths that are not believed: more than the file, more than anybody writes, more than memory.
    malformed_with(&raw(&[&11_u64.to_le_bytes()[..], b"{}        "].concat()), "more than the file");
    for length in [100_000_001, 1 << 40, u64::MAX] {
        malformed_with(&raw(&[&length.to_le_bytes()[..], b"{}"].concat()), "more than 100000000");
    }
}

#[test]
fn tensors_must_cover_the_file_without_gap_or_overlap() {
    let dir = Dir::new();
    let two = |a: (u64, u64), b: (u64, u64)| {
        format!("{{{},{}}}", entry("a", "F32", "2", a.0, a.1), entry("b", "F32", "1", b.0, b.1))
    };
    assert!(read_safetensors(&dir.file(&bytes(&two((4, 12), (0, 4)), &[0; 12]))).is_ok(), "in any order");
    malformed_with(&refusal(&dir, &two((0, 8), (4, 8)), 8), "`b` begins at byte 4, within another tensor");
    malformed_with(&refusal(&dir, &two((0, 8), (0, 4)), 8), "`a` begins at byte 0, within another tensor");
    malformed_with(&refusal(&dir, &two((0, 8), (9, 13)), 13), "bytes 8..9 before `b` belong to no tensor");
    malformed_with(&refusal(&dir, &two((1, 9), (9, 13)), 13), "bytes 0..1 before `a`");
    malformed_with(&refusal(&dir, &two((0, 8), (12, 8)), 12), "`b` ends at byte 8, before it begins at 12");
    let end = u64::MAX;
    let past = refusal(&dir, &two((0, 8), (8, 12)), 11);
    assert!(matches!(past, ArrayErrorCause::Truncated { announced: 12, found: 11 }), "{past}");
    let surplus = refusal(&dir, &two((0, 8), (8, 12)), 13);
    assert!(matches!(surplus, ArrayErrorCause::TooLong { announced: 12 }), "{surplus}");
    let far = refusal(&dir, &two((0, 8), (8, end)), 12);
    assert!(matches!(far, ArrayErrorCause::Truncated { announced: u64::MAX, .. }), "{far}");
    // Sizes whose sum overflows, and that overflow with the header added.
    let huge = format!("{{{},{}}}", entry("a", "U8", "1", 0, end - 1), entry("b", "U8", "1", end - 1, end));
    assert!(matches!(refusal(&dir, &huge, 4), ArrayErrorCause::Truncated { .. }));
}

#[test]
fn sizes_must_be_those_of_dtype_and_shape() {
    let dir = Dir::new();
    let one = |dtype, shape: &str, end| format!("{{{}}}", entry("x", dtype, shape, 0, end));
    malformed_with(&refusal(&dir, &one("F32", "2", 4), 4), "F32 [2] takes 8 bytes, but 4 are set aside");
    malformed_with(&refusal(&dir, &one("F64", "", 4), 4), "F64 [] takes 8 bytes, but 4");
    malformed_with(&refusal(&dir, &one("BOOL", "0", 1), 1), "takes 0 bytes, but 1");
    let overflow = refusal(&dir, &one("F32", "4294967296,4294967296", 8), 8);
    assert!(matches!(overflow, ArrayErrorCause::Shape(_)), "{overflow}");
    malformed_with(&refusal(&dir, &one("F32", &format!("1{}", ",1".repeat(64)), 4), 4), "more than 64 dimensions");
}

#[test]
fn other_dtypes_are_refused_by_name_when_they_are_wanted() {
    let dir = Dir::new();
    for (name, size, words, way_out) in [
        ("F16", 2, "half precision", "x.to(torch.float32)"),
        ("BF16", 2, "bfloat16", "x.to(torch.float32)"),
        ("F8_E4M3", 1, "floats of 8 bits", "x.to(torch.float32)"),
        ("U8", 1, "unsigned", "x.astype(numpy.int32)"),
        ("I16", 2, "small integers", "x.astype(numpy.int32)"),
        ("U64", 8, "unsigned", "x.astype(numpy.int64)"),
        ("C64", 8, "complex", "arrays must be float32"),
        ("F4", 1, "less than 8 bits", "arrays must be float32"),
        ("f32", 4, "unknown", "arrays must be float32"),
        ("\\u001b[31m", 4, "unknown", "arrays must be float32"),
    ] {
        let (first, second) = (entry("ok", "F32", "1", 0, 4), entry("x", name, "1", 4, 4 + size));
        let path = dir.file(&bytes(&format!("{{{first},{second}}}"), &vec![0; 4 + size as usize]));
        let mut archive = Safetensors::open(&path).unwrap();
        assert!(archive.read("ok", None).is_ok());
        let error = archive.read("x", None).unwrap_err();
        assert_eq!(error.code(), "E0704");
        let text = error.to_string();
        let printable = name.replace("\\u001b", "\\u{1b}");
        assert!(text.contains(&format!("dtype '{printable}'")) && text.contains(words), "{text}");
        assert!(error.help().unwrap().contains(way_out), "{:?}", error.help());
    }
}

#[test]
fn two_tensors_of_one_name_are_refused() {
    let dir = Dir::new();
    for second in [entry("x", "F32", "1", 4, 8), entry("x", "F32", "0", 0, 0), entry("\\u0078", "F32", "1", 4, 8)] {
        let header = format!("{{{},{second}}}", entry("x", "F32", "1", 0, 4));
        let elements = if second.contains("[0,0]") { 4 } else { 8 };
        let cause = refusal(&dir, &header, elements);
        assert!(matches!(cause, ArrayErrorCause::Duplicate), "{cause}");
    }
}

#[test]
fn elements_are_read_only_of_what_is_wanted() {
    let dir = Dir::new();
    let path = dir.path("x");
    let x = tensor(&[2], Data::F32(vec![1.0, 2.0]));
    write_safetensors(&path, [("x", &x)]).unwrap();
    let mut archive = Safetensors::open(&path).unwrap();
    let ty = |dtype| TensorType::new(dtype, Shape::new(vec![2]).unwrap(), Placement::Host);
    let (right, wrong) = (ty(DType::F32), ty(DType::I32));
    assert_eq!(archive.read("x", Some(Wanted { name: "x", ty: &right })).unwrap(), x);
    let error = archive.read("x", Some(Wanted { name: "x", ty: &wrong })).unwrap_err();
    assert!(matches!(error.cause, ArrayErrorCause::Mismatch(_)), "{error}");
    let absent = archive.read("y", None).unwrap_err();
    assert!(matches!(absent.cause, ArrayErrorCause::NoSuchArray { .. }) && absent.to_string().contains("holds `x`"));
}

/// No byte of a file can make reading panic: every byte is replaced in turn, and every prefix is tried.
#[test]
fn any_damage_is_an_error_or_other_tensors() {
    let dir = Dir::new();
    let path = dir.path("x");
    let (x, i) = (tensor(&[2], Data::F32(vec![1.0, 2.0])), tensor(&[1], Data::I64(vec![7])));
    write_safetensors(&path, [("x", &x), ("i", &i)]).unwrap();
    let bytes = fs::read(&path).unwrap();
    for at in 0..bytes.len() {
        for value in [0x00, 0xff, b'"', b'9', b'{', b','] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            let _ = read_safetensors(&dir.file(&damaged));
        }
        assert!(read_safetensors(&dir.file(&bytes[..at])).is_err(), "cut at {at}");
    }
}
