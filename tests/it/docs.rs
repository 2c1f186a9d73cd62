//! Commands in the documentation are run, and what they print is compared.

use std::process::Command;

/// The `$ ..` commands of a Markdown text with the output that stands below each.
fn sessions(text: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside {
            match (line.strip_prefix("$ "), out.last_mut()) {
                (Some(command), _) => out.push((command.to_owned(), String::new())),
                (None, Some((_, output))) => {
                    output.push_str(line);
                    output.push('\n');
                }
                (None, None) => panic!("output without a command: {line}"),
            }
        }
    }
    out
}

#[test]
fn what_the_documentation_shows_is_what_happens() {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut checked = 0;
    for file in ["README.md"] {
        let text = std::fs::read_to_string(format!("{root}/{file}")).unwrap();
        for (command, expected) in sessions(&text) {
            let Some(arguments) = command.strip_prefix("kina-ad ").or_else(|| command.strip_prefix("./x ")) else {
                panic!("{file}: only kina-ad and ./x are run: {command}");
            };
            // `./x test` is what runs this test.
            if command == "./x test" {
                continue;
            }
            let mut arguments: Vec<&str> = arguments.split_whitespace().collect();
            if cfg!(not(feature = "codegen")) && arguments[0] == "run" {
                arguments.push("--interpret");
            }
            let output =
                Command::new(env!("CARGO_BIN_EXE_kina-ad")).args(&arguments).current_dir(root).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
            assert_eq!(printed.trim_end(), expected.trim_end(), "{file}: {command}");
            checked += 1;
        }
    }
    assert!(checked >= 1, "no command was found");
}
