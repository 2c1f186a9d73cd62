//! The peers: a virtual environment for them, one process per framework, and each way to use it as a contestant.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use kina_ad::Tensor;
use kina_ad::exec::arrays::{ArrayError, read_npy, write_npy};
use kina_ad::exec::inputs::Input;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::contest::Contestant;

/// Why a peer cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    #[error("no virtual environment: {0}")]
    Environment(String),
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

/// A framework: its script, and what it can be asked to compete as.
pub struct Framework {
    pub name: &'static str,
    script: &'static str,
}

pub const PYTORCH: Framework = Framework { name: "PyTorch", script: "peer_torch.py" };
pub const JAX: Framework = Framework { name: "JAX", script: "peer_jax.py" };

/// The virtual environment of the peers.
pub struct Environment {
    folder: PathBuf,
    log: PathBuf,
}

impl Environment {
    /// The environment in this folder, made or brought up to the list of packages if need be.
    ///
    /// # Errors
    /// No Python, no module venv, no network when it is needed.
    pub fn new(folder: PathBuf) -> Result<Environment, PeerError> {
        let fail = |what: &str, error: &dyn std::fmt::Display| PeerError::Environment(format!("{what}: {error}"));
        let list = scripts().join("requirements.txt");
        let wanted = std::fs::read_to_string(&list).map_err(|e| fail("benches/peers/requirements.txt", &e))?;
        let log = folder.with_file_name("peers-log.txt");
        let environment = Environment { folder, log };
        // Written when everything is installed.
        let stamp = environment.folder.join("installed.txt");
        if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return Ok(environment);
        }
        eprintln!("bench: installing the peers into {}; several GB", environment.folder.display());
        let mut venv = Command::new("python3");
        environment.install(venv.args(["-m", "venv"]).arg(&environment.folder))?;
        let mut pip = environment.python();
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "-r"]);
        environment.install(pip.arg(&list))?;
        std::fs::write(&stamp, wanted).map_err(|e| fail("the environment", &e))?;
        Ok(environment)
    }

    fn install(&self, command: &mut Command) -> Result<(), PeerError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let output =
            command.output().map_err(|error| PeerError::Environment(format!("{program} cannot be run: {error}")))?;
        if output.status.success() {
            return Ok(());
        }
        // `venv` complains on standard output.
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        let said: Vec<&str> = said.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        Err(PeerError::Environment(said.last().map_or("nothing was said", |l| *l).to_owned()))
    }

    fn python(&self) -> Command {
        Command::new(self.folder.join("bin/python"))
    }
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers")
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
    /// # Errors
    /// A framework that does not start.
    pub fn start(environment: &Environment, framework: &Framework) -> Result<Peer, PeerError> {
        let name = framework.name;
        let pipe = |error| PeerError::Pipe { peer: name, error };
        let log = File::options().create(true).append(true).open(&environment.log).map_err(pipe)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from).to_string();
        let mut process = environment
            .python()
            .arg("-B")
            .arg(scripts().join(framework.script))
            .env("OMP_NUM_THREADS", cores)
            .env("TORCHINDUCTOR_CACHE_DIR", environment.folder.with_file_name("peers-inductor"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(pipe)?;
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
