//! Array files in and out, by way of the program.

use crate::bad_input::{NLL, check};
use crate::support::{directory, kina, npy, npy_f32, npy_i64, npz, read_results, read_safetensors, safetensors};

#[test]
fn arrays_must_be_what_the_program_declares() {
    let five = npy_i64(&[1, 5], &[0; 5]);
    let good = npy_i64(&[1, 4], &[0, 1, 2, 3]);
    let int32 = npy("<i4", &[1, 4], &[0; 16]);
    let cut = npy("<i8", &[1, 4], &[0; 24]);
    let complex = npy("<c8", &[1, 4], &[0; 32]);
    let floats = npy_f32(&[1, 4, 8], &[0.0; 32]);
    let header = |dtype: &str, end, begin| {
        format!(
            "{{\"logits\":{{\"dtype\":\"{dtype}\",\"shape\":[1,4,8],\"data_offsets\":[0,{end}]}},\
             \"targets\":{{\"dtype\":\"I64\",\"shape\":[1,4],\"data_offsets\":[{begin},{}]}}}}",
            begin + 32
        )
    };
    let half = safetensors(&header("BF16", 64, 64), &[0; 96]);
    let overlap = safetensors(&header("F32", 128, 64), &[0; 128]);
    let six = safetensors("{\"x\":{\"dtype\":\"I64\",\"shape\":[6],\"data_offsets\":[0,48]}}", &[0; 48]);
    let archive = npz(&[("targets", good.clone()), ("surplus", floats.clone())]);
    let files: &[(&str, &[u8])] = &[
        ("p.kina", NLL),
        ("five.npy", &five),
        ("good.npy", &good),
        ("int32.npy", &int32),
        ("cut.npy", &cut),
        ("complex.npy", &complex),
        ("floats.npy", &floats),
        ("text.npy", b"logits"),
        ("two.npz", &archive),
        ("half.npz", &archive[..archive.len() / 2]),
        ("half.safetensors", &half),
        ("overlap.safetensors", &overlap),
        ("six.safetensors", &six),
    ];
    check(&[
        (
            "shape",
            files,
            "run p.kina --input targets=five.npy",
            1,
            &["E0708", "`targets` must be tensor<I64, [1, 4], @host>", "I64 [1, 5]", "give an array of shape [1, 4]"],
        ),
        (
            "dtype",
            files,
            "run p.kina --input targets=int32.npy",
            1,
            &["E0708", "`targets` must be tensor<I64, [1, 4], @host>", "I32 [1, 4]", "never converted silently"],
        ),
        (
            "cut off",
            files,
            "run p.kina --input targets=cut.npy",
            1,
            &["E0705", "cut.npy", "32 bytes", "24", "write it again"],
        ),
        ("no array", files, "run p.kina --input targets=text.npy", 1, &["E0703", "text.npy", "numpy.save"]),
        ("no archive", files, "run p.kina --inputs text.npy", 1, &["E0703", "text.npy", "safetensors"]),
        (
            "array as archive",
            files,
            "run p.kina --inputs good.npy",
            1,
            &["E0703", "good.npy", "not an archive", "`--input NAME=FILE.npy`"],
        ),
        ("complex", files, "run p.kina --input targets=complex.npy", 1, &["E0704", "complex.npy", "c8"]),
        (
            "archive without the name",
            files,
            "run p.kina --input logits=two.npz",
            1,
            &["E0707", "two.npz (logits)", "which holds `targets`, `surplus`"],
        ),
        (
            "half precision",
            files,
            "run p.kina --inputs half.safetensors",
            1,
            &["E0704", "half.safetensors (logits)", "'BF16' (bfloat16)", "x.to(torch.float32)"],
        ),
        (
            "an overlap",
            files,
            "run p.kina --inputs overlap.safetensors",
            1,
            &["E0703", "malformed safetensors header", "`targets` begins at byte 64, within another tensor"],
        ),
        (
            "shape in .safetensors",
            files,
            "run p.kina --input targets=six.safetensors",
            1,
            &["E0708", "six.safetensors (x)", "`targets` must be tensor<I64, [1, 4], @host>", "I64 [6]"],
        ),
        ("damaged archive", files, "run p.kina --inputs half.npz", 1, &["E0707", "half.npz", "numpy.savez"]),
        (
            "surplus in an archive",
            files,
            "run p.kina --inputs two.npz",
            1,
            &["E0709", "no input `surplus`", "logits, targets"],
        ),
        (
            "unknown input",
            files,
            "run p.kina --input target=good.npy",
            1,
            &["E0709", "no input `target`", "its inputs are: logits, targets", "did you mean `targets`?"],
        ),
        (
            "given twice",
            files,
            "run p.kina --input targets=good.npy --input targets=good.npy",
            1,
            &["E0709", "`targets` is given twice", "give each input once"],
        ),
    ]);
}

#[test]
fn an_index_into_nothing_cannot_be_generated() {
    let program: &[u8] = b"let x = tensor<F32, [2, 0], @host> in\nlet i = tensor<I64, [2], @host> in\n\
        x.take_along_axis(i, axis=1)";
    let words = &["E0710", "input `i` cannot be generated", "a dimension of size 0", "give `i` by `--input`"];
    check(&[("index into nothing", &[("p.kina", program)], "run p.kina --interpret", 1, words)]);
}

/// The results are the same arrays in either format, and inputs are the same from any.
#[test]
fn formats_hold_the_same_arrays() {
    let logits: Vec<f32> = (0..32_u8).map(|i| f32::from(i) / 8.0 - 2.0).collect();
    let targets = [0, 7, 3, 3];
    let (l, t) = (npy_f32(&[1, 4, 8], &logits), npy_i64(&[1, 4], &targets));
    let elements: Vec<u8> =
        targets.iter().flat_map(|v| v.to_le_bytes()).chain(logits.iter().flat_map(|v| v.to_le_bytes())).collect();
    let header = "{\"logits\":{\"dtype\":\"F32\",\"shape\":[1,4,8],\"data_offsets\":[32,160]},\
                  \"__metadata__\":{\"by\":\"hand\"},\
                  \"targets\":{\"dtype\":\"I64\",\"shape\":[1,4],\"data_offsets\":[0,32]}}";
    let place = directory(&[
        ("p.kina", NLL.to_vec()),
        ("l.npy", l.clone()),
        ("t.npy", t.clone()),
        ("one.npz", npz(&[("whatever", t.clone())])),
        ("both.npz", npz(&[("logits", l), ("targets", t)])),
        ("both.safetensors", safetensors(header, &elements)),
    ]);
    let engine = if cfg!(feature = "codegen") { "" } else { "--interpret" };
    let mut outputs = Vec::new();
    for (i, inputs) in [
        "--input logits=l.npy --input targets=t.npy",
        "--input targets=one.npz --input logits=l.npy",
        "--inputs both.npz",
        "--inputs both.safetensors",
        "--input logits=both.npz --input targets=both.safetensors",
    ]
    .into_iter()
    .enumerate()
    {
        for format in ["npz", "safetensors"] {
            let name = format!("r{i}.{format}");
            let run = format!("run p.kina {engine} {inputs} --output {name}");
            let printed = kina(place.path(), &run).ok();
            assert!(!printed.contains("generated"), "{run}: {printed}");
            outputs.push(std::fs::read(place.path().join(name)).unwrap());
        }
    }
    for pair in outputs.chunks(2) {
        assert_eq!(pair, &outputs[..2], "equal arrays give equal bytes");
    }
    let results = read_safetensors(&place.path().join("r0.safetensors"));
    assert_eq!(results.keys().collect::<Vec<_>>(), ["g_logits", "primal"]);
    assert_eq!(results, read_results(&place.path().join("r0.npz")));
    // What was written is read: a gradient as the next logits.
    let run = format!("run p.kina {engine} --input targets=t.npy --input");
    let from = |file: &str| {
        std::fs::write(place.path().join(file), only(&place.path().join("r0.safetensors"), "g_logits")).unwrap();
        kina(place.path(), &format!("{run} logits={file}")).ok()
    };
    assert!(from("g.safetensors").contains("logits       F32 [1, 4, 8]  given"));
}

/// A file of one tensor, taken out of another one as it stands.
fn only(path: &std::path::Path, name: &str) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let mut entry = header[name].clone();
    let place = |i: usize| entry["data_offsets"][i].as_u64().unwrap() as usize;
    let data = bytes[8 + length..][place(0)..place(1)].to_vec();
    entry["data_offsets"] = serde_json::json!([0, data.len()]);
    safetensors(&serde_json::json!({ "other": entry }).to_string(), &data)
}
