//! The kernel written by hand in C: compiled with clang, loaded, and called.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use kina_ad::ir::DType;
use kina_ad::{Data, Tensor};
use libloading::{Library, Symbol};

use crate::contest::Contestant;
use crate::job::Job;

type Kernel = unsafe extern "C" fn(
    rows: i64,
    classes: i64,
    logits: *const f32,
    targets: *const i64,
    cotangent: *const f32,
    loss: *mut f32,
    gradient: *mut f32,
);

/// `nll_reference` of a C file.
pub struct Reference {
    library: Library,
}

impl Reference {
    /// The file that compiled code is measured against.
    pub fn source() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/common/nll_reference.c")
    }

    /// Compiles and loads `source`, which must define `nll_reference` as `nll_reference.c` beside this file does.
    ///
    /// # Errors
    /// No clang, or a file that it does not compile.
    pub fn compile(source: &Path) -> Result<Reference, Box<dyn Error>> {
        // Of this process, so that two benches do not load each other's.
        let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libnll_reference-{}.so", std::process::id()));
        let status = Command::new("clang-19")
            .args(["-O3", "-march=native", "-ffast-math", "-fveclib=libmvec", "-fopenmp", "-shared", "-fPIC"])
            .arg(source)
            .arg("-o")
            .arg(&object)
            .args(["-lmvec", "-lm"])
            .status()
            .map_err(|e| format!("clang-19 cannot be run: {e}"))?;
        if !status.success() {
            return Err(format!("clang-19 does not compile {}", source.display()).into());
        }
        // SAFETY: the library has no initialisers of its own; those of OpenMP are safe to run.
        let library = unsafe { Library::new(&object) };
        std::fs::remove_file(&object)?;
        let reference = Reference { library: library? };
        reference.kernel()?;
        Ok(reference)
    }

    fn kernel(&self) -> Result<Symbol<'_, Kernel>, libloading::Error> {
        // SAFETY: the symbol is a function of this signature; `compile` asks for it.
        unsafe { self.library.get(b"nll_reference\0") }
    }

    /// The kernel as a contestant for an NLL of the inputs `x` (F32 `[.., classes]`), `targets` (I64 `[..]`, in bounds) and
    /// `cotangent` (F32 `[..]`).
    ///
    /// # Errors
    /// A job that is none.
    pub fn contestant<'j>(&'j self, job: &'j Job) -> Result<ByHand<'j>, Box<dyn Error>> {
        let (x, targets, cotangent) = (job.input("x")?, job.input("targets")?, job.input("cotangent")?);
        let classes = x.shape().last().copied().unwrap_or(1).max(1);
        let rows = targets.shape().elements();
        let outputs = job.outputs()?;
        let fits = x.shape().elements() == rows * classes
            && cotangent.shape() == targets.shape()
            && matches!(&outputs[..], [value, gradient] if value.shape() == targets.shape() && gradient.shape() == x.shape())
            && outputs.iter().chain([x, cotangent]).all(|t| t.dtype() == DType::F32);
        let Data::I64(indices) = targets.data() else { return Err("targets are I64".into()) };
        if !fits || indices.iter().any(|i| !(0..classes as i64).contains(i)) {
            return Err("not a job for the kernel".into());
        }
        Ok(ByHand {
            kernel: self.kernel()?,
            rows: rows as i64,
            classes: classes as i64,
            x,
            indices,
            cotangent,
            outputs,
        })
    }
}

/// The kernel with its arguments.
pub struct ByHand<'j> {
    kernel: Symbol<'j, Kernel>,
    rows: i64,
    classes: i64,
    x: &'j Tensor,
    indices: &'j [i64],
    cotangent: &'j Tensor,
    outputs: Vec<Tensor>,
}

impl Contestant for ByHand<'_> {
    fn name(&self) -> &str {
        "C by hand"
    }

    fn time(&mut self, repeats: u32) -> Result<f64, Box<dyn Error>> {
        let [loss, gradient] = &mut self.outputs[..] else { return Err("two results are wanted".into()) };
        let start = Instant::now();
        for _ in 0..repeats {
            // SAFETY: `contestant` has compared the lengths with what the kernel's contract names, and every index is in
            // bounds. The outputs are exclusively borrowed.
            unsafe {
                (self.kernel)(
                    self.rows,
                    self.classes,
                    self.x.as_bytes().as_ptr().cast(),
                    self.indices.as_ptr(),
                    self.cotangent.as_bytes().as_ptr().cast(),
                    loss.as_bytes_mut().as_mut_ptr().cast(),
                    gradient.as_bytes_mut().as_mut_ptr().cast(),
                );
            }
        }
        Ok(start.elapsed().as_secs_f64())
    }

    fn results(&mut self) -> Result<Vec<Tensor>, Box<dyn Error>> {
        self.time(1)?;
        Ok(self.outputs.clone())
    }
}
