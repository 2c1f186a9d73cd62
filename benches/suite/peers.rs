//! The peers: one process per framework, and each way to use it as a contestant. What is said is in benches/peers/protocol.py.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use kina_ad::Tensor;
use kina_ad::exec::arrays::{ArrayError, read_npy, write_npy};
use kina_ad::exec::inputs::Input;
use serde::Deserialize;
use serde_json::{Value, json};

use super::contest::Contestant;

/// Why a peer cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    #[error("{peer} cannot be reached: {error}")]
    Pipe { peer: &'static str, error: io::Error },
    #[error("{0} ended; what it said last is in target/peers-log.txt")]
    Ended(&'static str),
    #[error("{peer} says {line:?}, which is no answer: {error}")]
    Answer { peer: &'static str, line: String, error: serde_json::Error },
    #[error("{peer}: {message}")]
    Refused { peer: &'static str, message: String },
    #[error(transparent)]
    Array(#[from] ArrayError),
}

/// A process of a framework, which answers one question after the other.
pub struct Peer {
    name: &'static str,
    process: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    pub versions: BTreeMap<String, String>,
}

#[derive(Deserialize)]
enum Answer {
    #[serde(rename = "ok")]
    Ok(Value),
    #[serde(rename = "error")]
    Error(String),
}

#[derive(Deserialize)]
struct Seconds {
    seconds: f64,
}

#[derive(Deserialize)]
struct Files {
    files: Vec<PathBuf>,
}

impl Peer {
    /// Starts a framework, called `name` in errors.
    ///
    /// # Errors
    /// A framework that does not start.
    pub fn start(name: &'static str, mut command: Command) -> Result<Peer, PeerError> {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = started.map_err(|error| PeerError::Pipe { peer: name, error })?;
        let (questions, Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(PeerError::Ended(name));
        };
        let versions = BTreeMap::new();
        let mut peer = Peer { name, process, questions, answers: BufReader::new(answers), versions };
        peer.versions = peer.ask(&json!({"do": "hello"}))?;
        Ok(peer)
    }

    fn ask<A: for<'a> Deserialize<'a>>(&mut self, question: &Value) -> Result<A, PeerError> {
        let peer = self.name;
        let pipe = |error| PeerError::Pipe { peer, error };
        let to = self.questions.as_mut().ok_or(PeerError::Ended(peer))?;
        writeln!(to, "{question}").and_then(|()| to.flush()).map_err(pipe)?;
        let mut line = String::new();
        if self.answers.read_line(&mut line).map_err(pipe)? == 0 {
            return Err(PeerError::Ended(peer));
        }
        let parsed = serde_json::from_str(&line).and_then(|answer| match answer {
            Answer::Ok(value) => serde_json::from_value(value).map(Ok),
            Answer::Error(message) => Ok(Err(PeerError::Refused { peer, message })),
        });
        parsed.map_err(|error| PeerError::Answer { peer, line, error })?
    }

    /// Gives it the inputs of a job, written to `folder`.
    ///
    /// # Errors
    /// Files that cannot be written or read.
    pub fn load(&mut self, job: &str, inputs: &[Input], folder: &Path) -> Result<(), PeerError> {
        let mut files = serde_json::Map::new();
        for input in inputs {
            let file = folder.join(format!("{}.npy", input.name));
            write_npy(&file, &input.tensor)?;
            files.insert(input.name.clone(), json!(file));
        }
        let _: Value = self.ask(&json!({"do": "load", "job": job, "inputs": files}))?;
        Ok(())
    }

    /// Seconds from a function that the framework has not seen to code that can be called, for the job that is loaded.
    ///
    /// # Errors
    /// A framework that refuses.
    pub fn compile(&mut self) -> Result<f64, PeerError> {
        Ok(self.ask::<Seconds>(&json!({"do": "compile"}))?.seconds)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends at the end of its input. Nothing can be done if it does not.
        self.questions = None;
        let _ = self.process.wait();
    }
}

/// A way to use a framework, as a contestant for the job that is loaded.
pub struct Way {
    name: &'static str,
    way: &'static str,
    peer: Rc<RefCell<Peer>>,
    folder: PathBuf,
}

impl Way {
    /// `name` is what the report calls it, `way` what the peer does; its results pass through `folder`.
    ///
    /// # Errors
    /// A framework that cannot do it.
    pub fn new(
        name: &'static str,
        way: &'static str,
        peer: Rc<RefCell<Peer>>,
        folder: &Path,
    ) -> Result<Way, PeerError> {
        let _: Value = peer.borrow_mut().ask(&json!({"do": "prepare", "as": way}))?;
        Ok(Way { name, way, peer, folder: folder.to_owned() })
    }
}

impl Contestant for Way {
    fn name(&self) -> &str {
        self.name
    }

    fn time(&mut self, repeats: u32) -> Result<f64, Box<dyn std::error::Error>> {
        let question = json!({"do": "time", "as": self.way, "repeats": repeats});
        Ok(self.peer.borrow_mut().ask::<Seconds>(&question)?.seconds)
    }

    fn results(&mut self) -> Result<Vec<Tensor>, Box<dyn std::error::Error>> {
        let question = json!({"do": "results", "as": self.way, "folder": self.folder});
        let Files { files } = self.peer.borrow_mut().ask(&question)?;
        Ok(files.iter().map(|file| read_npy(file)).collect::<Result<_, _>>()?)
    }
}
