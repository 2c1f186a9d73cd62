//! Questions on the command line, as whole processes: from the start of `kina-ad` to the end of its answer.

use std::error::Error;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use serde_json::json;

use crate::report::{Goal, Report, Section, Spread, Table, Unit, cells};
use crate::{generators, machine};

/// A question about the 12-layer transformer.
struct Question {
    title: &'static str,
    /// Follows `kina-ad`; `FILE` is the program.
    arguments: &'static [&'static str],
    /// On standard input.
    input: &'static str,
    asked: (&'static str, f64),
}

const FAST: (&str, f64) = ("50 ms", 0.050);

const QUESTIONS: [Question; 6] = [
    Question { title: "why, a gradient", arguments: &["why", "FILE", "g_table"], input: "", asked: FAST },
    Question { title: "why, the loss", arguments: &["why", "FILE", "primal"], input: "", asked: FAST },
    Question { title: "why --proof", arguments: &["why", "FILE", "g_table", "--proof"], input: "", asked: FAST },
    Question {
        title: "why-not, all places",
        arguments: &["why-not", "FILE", "exp_of_log_softmax"],
        input: "",
        asked: FAST,
    },
    Question {
        title: "why-not, one place",
        arguments: &["why-not", "FILE", "neg_of_sub", "--at", "primal"],
        input: "",
        asked: FAST,
    },
    Question {
        // Costs of the graph before and after that step too, which the first screen does not wait for.
        title: "explore, to its first step",
        arguments: &["explore", "FILE", "--script", "-"],
        input: "goto 1\nquit\n",
        asked: ("300 ms", 0.300),
    },
];

/// Times the questions, each `rounds` times, in turns.
///
/// # Errors
/// A command that cannot be run or that fails.
pub fn answers(rounds: usize, folder: &Path, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let file = folder.join("transformer.kina");
    std::fs::write(&file, generators::transformer(12))?;
    let input = folder.join("input");
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); QUESTIONS.len()];
    for _ in 0..rounds {
        for (question, times) in QUESTIONS.iter().zip(&mut times) {
            std::fs::write(&input, question.input)?;
            let mut command = machine::unbound(env!("CARGO_BIN_EXE_kina-ad"));
            for argument in question.arguments {
                match *argument {
                    "FILE" => command.arg(&file),
                    other => command.arg(other),
                };
            }
            let stdin = std::fs::File::open(&input)?;
            let start = Instant::now();
            let output = command.stdin(stdin).stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
            times.push(start.elapsed().as_secs_f64());
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(format!("`kina-ad {}` fails: {said}", question.arguments.join(" ")).into());
            }
        }
    }
    let mut table = Table::new(&["", "median", "quartiles", "least", "most"]);
    let mut data = Vec::new();
    for (question, times) in QUESTIONS.iter().zip(&times) {
        let spread = Spread::of(times);
        let mut row = vec![question.title.to_owned()];
        row.extend(cells(Unit::Seconds, &spread));
        table.rows.push(row);
        report.goals.push(Goal {
            job: format!("12-layer transformer: {}", question.title),
            unit: Unit::Seconds,
            asked: question.asked,
            measured: Some(spread),
        });
        data.push(json!({ "question": question.title, "seconds": times }));
    }
    report.sections.push(Section {
        title: "Questions on the command line".to_owned(),
        text: "Whole processes of `kina-ad` on the 12-layer transformer with its loss: loading the rules, checking, differentiating and \
            rewriting the program are part of each."
            .to_owned(),
        tables: vec![table],
        data: data.into(),
    });
    Ok(())
}
