//! The kernel written by hand in C: compiled with clang, loaded, and called.

use std::error::Error;
use std::path::Path;
use std::process::Command;

use libloading::{Library, Symbol};

use crate::problem::{Gradient, Problem, floats};

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
    /// Compiles and loads `source`, which must define `nll_reference` as `nll_reference.c` beside this file does.
    pub fn compile(source: &Path) -> Result<Reference, Box<dyn Error>> {
        let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libnll_reference.so");
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
        let library = unsafe { Library::new(&object)? };
        let reference = Reference { library };
        reference.kernel()?;
        Ok(reference)
    }

    fn kernel(&self) -> Result<Symbol<'_, Kernel>, libloading::Error> {
        // SAFETY: the symbol is a function of this signature; `compile` asks for it.
        unsafe { self.library.get(b"nll_reference\0") }
    }

    pub fn run(&self, problem: &Problem, out: &mut Gradient) -> Result<(), Box<dyn Error>> {
        let kernel = self.kernel()?;
        let [loss, gradient] = &mut out.tensors[..] else { return Err("two results are wanted".into()) };
        // SAFETY: the slices have the lengths that the kernel's contract names, and every target is in bounds.
        unsafe {
            kernel(
                problem.rows as i64,
                problem.classes as i64,
                floats(&problem.logits).as_ptr(),
                problem.targets().as_ptr(),
                floats(&problem.cotangent).as_ptr(),
                loss.as_bytes_mut().as_mut_ptr().cast(),
                gradient.as_bytes_mut().as_mut_ptr().cast(),
            );
        }
        Ok(())
    }
}
