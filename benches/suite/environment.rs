//! The virtual environment that the peers live in.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine;

/// Why there is no virtual environment.
#[derive(Debug, thiserror::Error)]
#[error("no virtual environment: {0}")]
pub struct EnvironmentError(String);

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
    pub fn new(folder: PathBuf) -> Result<Environment, EnvironmentError> {
        let fail = |what: &str, error: &dyn std::fmt::Display| EnvironmentError(format!("{what}: {error}"));
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

    fn install(&self, command: &mut Command) -> Result<(), EnvironmentError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let output = command.output().map_err(|error| EnvironmentError(format!("{program} cannot be run: {error}")))?;
        if output.status.success() {
            return Ok(());
        }
        // `venv` complains on standard output.
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        let said: Vec<&str> = said.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        Err(EnvironmentError(said.last().map_or("nothing was said", |l| *l).to_owned()))
    }

    fn python(&self) -> Command {
        machine::unbound(self.folder.join("bin/python"))
    }

    /// The program of a framework, which may use every core.
    ///
    /// # Errors
    /// A log that cannot be written.
    pub fn command(&self, framework: &Framework) -> Result<Command, EnvironmentError> {
        let log = File::options().create(true).append(true).open(&self.log);
        let cores = machine::cores().to_string();
        let mut command = self.python();
        command
            .arg("-B")
            .arg(scripts().join(framework.script))
            .env("OMP_NUM_THREADS", cores)
            // Those of the C kernel and of compiled code are not the peers': bound, PyTorch is up to 2.5 times slower.
            .env_remove("KMP_BLOCKTIME")
            .env_remove("OMP_PROC_BIND")
            .env("TORCHINDUCTOR_CACHE_DIR", self.folder.with_file_name("peers-inductor"))
            .stderr(log.map_err(|e| EnvironmentError(format!("{}: {e}", self.log.display())))?);
        Ok(command)
    }
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers")
}
