//! How messages leave the program: as JSON on request, and not at all into a pipe that nobody reads.

use crate::bad_input::NLL;
use crate::support::{Outcome, directory, kina, npy_i64};

#[test]
fn diagnostics_are_json_on_request() {
    let over = npy_i64(&[1, 4], &[9; 4]);
    let files: &[(&str, &[u8])] =
        &[("p.kina", NLL), ("over.npy", &over), ("bad.kina", b"let x = tensor<F32, [2], @host> in\nx.rleu()")];
    let place = directory(files);
    let parse = |outcome: &Outcome| -> serde_json::Value { serde_json::from_str(&outcome.stderr).expect("JSON") };
    let refused = kina(place.path(), "grad bad.kina --json");
    refused.refusal(1, &[]).unwrap();
    let json = parse(&refused);
    assert_eq!(json["version"], 1);
    let first = &json["diagnostics"][0];
    assert_eq!((&first["code"], &first["severity"]), (&"E0202".into(), &"error".into()));
    assert_eq!(first["help"][0], "did you mean `relu`?");
    let place_of = &first["primary"];
    assert_eq!(
        (&place_of["file"], &place_of["line"], &place_of["column"], &place_of["start"], &place_of["end"]),
        (&"bad.kina".into(), &2.into(), &3.into(), &37.into(), &41.into())
    );
    for (command, code, name) in [
        ("run p.kina --interpret --json --input targets=over.npy", 3, "E0801"),
        ("run absent.kina --json", 4, "E0701"),
        ("run p.kina --json --input logits=absent.npy", 4, "E0701"),
        ("run p.kina --interpret --json --output absent/x.npz", 4, "E0702"),
        ("rules show nothing_like_it --json", 1, "E0402"),
    ] {
        let outcome = kina(place.path(), command);
        outcome.refusal(code, &[]).unwrap();
        let json = parse(&outcome);
        assert_eq!((&json["version"], &json["diagnostics"][0]["code"]), (&1.into(), &name.into()), "{command}");
    }
}

/// `kina-ad .. | head -0`: the reader goes away before anything is written.
#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_quietly() {
    use std::process::{Command, Stdio};

    let place = directory(&[("p.kina", NLL)]);
    for arguments in [&["grad", "p.kina"][..], &["rules", "list"], &["run", "p.kina", "--interpret"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_kina-ad"))
            .args(arguments)
            .current_dir(place.path())
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}
