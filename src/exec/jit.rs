//! Compiled code, run in this process.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::fmt;
use std::ptr::{self, NonNull};

use melior::StringRef;
use melior::ir::Module;
use mlir_sys::{
    MlirExecutionEngine, mlirExecutionEngineCreate, mlirExecutionEngineDestroy, mlirExecutionEngineLookupPacked,
};

use super::tensor::{Tensor, TensorError};
use crate::ir::{Graph, Level, Registry, TensorType};
use crate::lower::{self, LowerError, LowerOptions, TrapMode};
use crate::schedule::{self, ScheduleError};

/// Alignment of the workspace in bytes, as the buffer plan assumes.
const ALIGN: usize = 64;

/// Why a graph cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// LLVM made no code. It says why on standard error only.
    #[error("LLVM could not compile the program")]
    Engine,
}

/// Why a call did not give results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// A bounds check failed: `take_along_axis index out of bounds`.
    #[error("{message}")]
    Trap { message: String },
    #[error("the program has {expected} {role}(s), not {given}")]
    Count { role: Role, expected: usize, given: usize },
    /// A tensor of another dtype or shape than the program's.
    #[error("{role} {index} (`{name}`) must be {expected}, not {given}")]
    Type { role: Role, index: usize, name: String, expected: String, given: String },
    #[error("not enough memory: the program needs a workspace of {bytes} bytes")]
    Workspace { bytes: u64 },
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// What a tensor is to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Input,
    Output,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Input => "input",
            Role::Output => "output",
        })
    }
}

/// The wrapper that the engine makes for each function: it takes the addresses of all arguments and of the result.
type Entry = unsafe extern "C" fn(*mut *mut c_void);

/// A named place in the signature.
struct Port {
    name: String,
    ty: TensorType,
}

/// A program compiled for this machine.
///
/// ```
/// use kina_ad::exec::{Data, Tensor, jit::Compiled};
/// use kina_ad::ir::{DType, Graph, Level, Node, NodeKind, Origin, Output, Placement, Registry, Shape, TensorType};
/// let ty = TensorType::new(DType::F32, Shape::new(vec![2])?, Placement::Host);
/// let origin = || Origin::Accumulate { serves: vec![] };
/// let mut graph = Graph::new();
/// let x = graph.push(Node { kind: NodeKind::Input, ty, name: Some("x".into()), origin: origin() });
/// let registry = Registry::builtin();
/// let mul = registry.id("mul").expect("built in");
/// let y = graph.add(&registry, mul, vec![x, x], vec![], origin())?;
/// graph.inputs.push(x);
/// graph.outputs.push(Output { name: "result".into(), node: y });
/// let square = Compiled::new(&graph, &registry, Level::O2)?;
/// let x = Tensor::new(Shape::new(vec![2])?, Data::F32(vec![3.0, -0.5]))?;
/// assert_eq!(square.call(&[&x])?[0].data(), &Data::F32(vec![9.0, 0.25]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Compiled {
    entry: Entry,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    workspace: u64,
    /// Message of each status, from 1.
    traps: Vec<String>,
    /// Owns the code at `entry`. It has an LLVM context of its own, so nothing of MLIR need outlive the compilation.
    _engine: Engine,
}

// SAFETY: after construction the engine is only kept alive and destroyed, once, which any thread may do. The code at
// `entry` has no state: it reads and writes what its arguments point to, and each call brings its own workspace.
unsafe impl Send for Compiled {}
// SAFETY: as above; `&Compiled` gives no access to the engine.
unsafe impl Sync for Compiled {}

impl Compiled {
    /// Schedules, lowers and compiles `graph`.
    ///
    /// # Errors
    /// A graph without a schedule, operators on the device, or a failure of MLIR or LLVM.
    pub fn new(graph: &Graph, registry: &Registry, level: Level) -> Result<Compiled, CompileError> {
        let schedule = schedule::schedule(graph, registry, level)?;
        let context = lower::context();
        let options = LowerOptions::new(level, TrapMode::Status);
        let mut module = lower::lower(&context, graph, registry, &schedule, &options)?;
        lower::llvm_dialect(&context, &mut module, TrapMode::Status)?;
        let engine = Engine::new(&module, if level.fuses() { 3 } else { 2 }).ok_or(CompileError::Engine)?;
        let entry = engine.lookup(lower::ENTRY).ok_or(CompileError::Engine)?;
        let port =
            |node, name: Option<&str>| Port { name: name.unwrap_or_default().to_owned(), ty: graph.ty(node).clone() };
        Ok(Compiled {
            entry,
            inputs: graph.inputs.iter().map(|i| port(*i, graph.node(*i).name.as_deref())).collect(),
            outputs: graph.outputs.iter().map(|o| port(o.node, Some(&o.name))).collect(),
            workspace: schedule.workspace,
            traps: schedule.sites.iter().map(schedule::Site::message).collect(),
            _engine: engine,
        })
    }

    /// Bytes of temporaries that each call allocates.
    pub fn workspace(&self) -> u64 {
        self.workspace
    }

    /// Runs the program: inputs in the order of the graph's inputs, results in the order of its outputs.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>, CallError> {
        check(Role::Input, &self.inputs, inputs.iter().copied())?;
        let outputs = self.outputs.iter().map(|o| Tensor::zeros(o.ty.dtype, o.ty.shape.clone()));
        let mut outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        self.call_into(inputs, &mut outputs)?;
        Ok(outputs)
    }

    /// Runs the program into tensors that are there already. After an error they hold anything.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call_into(&self, inputs: &[&Tensor], outputs: &mut [Tensor]) -> Result<(), CallError> {
        check(Role::Input, &self.inputs, inputs.iter().copied())?;
        check(Role::Output, &self.outputs, outputs.iter())?;
        let workspace = Workspace::new(self.workspace)?;
        let mut arguments: Vec<*mut c_void> = Vec::with_capacity(inputs.len() + outputs.len() + 1);
        arguments.extend(inputs.iter().map(|t| t.as_bytes().as_ptr().cast_mut().cast::<c_void>()));
        arguments.extend(outputs.iter_mut().map(|t| t.as_bytes_mut().as_mut_ptr().cast::<c_void>()));
        arguments.push(workspace.start.as_ptr().cast());
        let mut status: i32 = 0;
        let mut addresses: Vec<*mut c_void> = arguments.iter_mut().map(|a| ptr::from_mut(a).cast()).collect();
        addresses.push(ptr::from_mut(&mut status).cast());
        // SAFETY: the wrapper reads one address per argument of the entry, then that of the result, which is what
        // `addresses` holds, in this order (bare pointers, i32). The tensors have exactly the dtypes and shapes the
        // code was compiled for (checked above). Inputs are only read; outputs are exclusively borrowed, and the
        // workspace is this call's own, so what the code assumes not to overlap does not.
        unsafe { (self.entry)(addresses.as_mut_ptr()) };
        match usize::try_from(status) {
            Ok(0) => Ok(()),
            other => {
                let site = other.ok().and_then(|s| s.checked_sub(1));
                let message = site.and_then(|s| self.traps.get(s)).cloned();
                Err(CallError::Trap { message: message.unwrap_or_else(|| format!("unknown status {status}")) })
            }
        }
    }
}

/// An execution engine that exists. (melior's does not say whether its creation failed, and must not be asked anything
/// then.)
struct Engine(MlirExecutionEngine);

impl Engine {
    /// Compiles a module in the LLVM dialect with LLVM's optimisation level `effort`, 0 to 3.
    fn new(module: &Module<'_>, effort: i32) -> Option<Engine> {
        // SAFETY: the module lives through the call, which translates it into an LLVM context of the engine's own. There
        // are no library paths, so the null pointer is not read.
        let raw = unsafe { mlirExecutionEngineCreate(module.to_raw(), effort, 0, ptr::null(), false) };
        (!raw.ptr.is_null()).then_some(Engine(raw))
    }

    fn lookup(&self, name: &str) -> Option<Entry> {
        // SAFETY: the engine exists, and the name lives through the call.
        let entry = unsafe { mlirExecutionEngineLookupPacked(self.0, StringRef::new(name).to_raw()) };
        // SAFETY: null is `None`, which has the representation of a null pointer; any other result is the wrapper of
        // the function, which has this type.
        unsafe { std::mem::transmute::<*mut c_void, Option<Entry>>(entry) }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: the engine exists and is destroyed once; `Entry`s do not leave the `Compiled` that owns it.
        unsafe { mlirExecutionEngineDestroy(self.0) }
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types = |ports: &[Port]| ports.iter().map(|p| p.ty.to_string()).collect::<Vec<_>>().join(", ");
        write!(f, "Compiled(({}) -> ({}))", types(&self.inputs), types(&self.outputs))
    }
}

fn check<'t>(role: Role, ports: &[Port], tensors: impl ExactSizeIterator<Item = &'t Tensor>) -> Result<(), CallError> {
    if ports.len() != tensors.len() {
        return Err(CallError::Count { role, expected: ports.len(), given: tensors.len() });
    }
    for (index, (port, tensor)) in ports.iter().zip(tensors).enumerate() {
        if !tensor.is_of(&port.ty) {
            return Err(CallError::Type {
                role,
                index,
                name: port.name.clone(),
                expected: format!("{} {}", port.ty.dtype, port.ty.shape),
                given: tensor.to_string(),
            });
        }
    }
    Ok(())
}

/// Memory for the temporaries of one call, not initialised.
struct Workspace {
    start: NonNull<u8>,
    layout: Layout,
}

impl Workspace {
    fn new(bytes: u64) -> Result<Workspace, CallError> {
        let refused = || CallError::Workspace { bytes };
        let size = usize::try_from(bytes.max(1)).map_err(|_| refused())?;
        let layout = Layout::from_size_align(size, ALIGN).map_err(|_| refused())?;
        // SAFETY: the layout is not of size zero.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or_else(refused)?;
        Ok(Workspace { start, layout })
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests;
