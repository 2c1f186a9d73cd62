//! Compiled code, run in this process.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::fmt;
use std::num::NonZero;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, Ordering};

use melior::StringRef;
use melior::ir::Module;
use mlir_sys::{
    MlirExecutionEngine, mlirExecutionEngineCreate, mlirExecutionEngineDestroy, mlirExecutionEngineLookupPacked,
};
use smallvec::SmallVec;

use super::team;
use super::tensor::{Tensor, TensorError};
use crate::ir::{Graph, Level, Registry, TensorType, memory};
use crate::lower::{self, LowerError, LowerOptions, TrapMode};
use crate::schedule::{self, ScheduleError};

/// The alignment of temporaries that the buffer plan assumes: a cache line.
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; 64]);

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

impl CompileError {
    /// The diagnostic code.
    pub fn code(&self) -> &'static str {
        match self {
            CompileError::Schedule(error) => error.code(),
            CompileError::Lower(error) => error.code(),
            CompileError::Engine => "E0601",
        }
    }

    /// The way out.
    pub fn help(&self) -> &'static str {
        match self {
            CompileError::Schedule(error) => error.help(),
            CompileError::Lower(error) => error.help(),
            CompileError::Engine => "this is a fault of kina-ad: please report it with the program and the rule files",
        }
    }

    /// Had the graph no schedule?
    pub fn schedule(&self) -> Option<&ScheduleError> {
        match self {
            CompileError::Schedule(error) | CompileError::Lower(LowerError::Schedule(error)) => Some(error),
            _ => None,
        }
    }
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
    #[error("not enough memory: the program takes {bytes} bytes for results and temporaries")]
    OutOfMemory { bytes: u64 },
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

/// One function of the compiled program.
struct Phase {
    entry: Entry,
    /// See [`schedule::Phase::rows`].
    rows: Option<u64>,
    grain: u64,
}

/// A named place in the signature.
struct Port {
    name: String,
    ty: TensorType,
}

/// A program compiled for this machine.
///
/// It has no state: any number of threads may call it at once, each with tensors of its own. A call that traps returns an
/// error, and the process lives.
///
/// ```
/// use kina_ad::{CallError, CheckOptions, Data, Level, RuleOptions, Session, Tensor};
/// use kina_ad::ir::Shape;
///
/// let mut session = Session::new(&RuleOptions::default())?;
/// let program = "let table = tensor<F32, [2, 3], @host> in
///                let ids = tensor<I64, [2], @host> in
///                table.take_along_axis(ids, axis=1)";
/// let graph = session.check("take.kina", program, &CheckOptions::default())?;
/// let mut differentiated = session.differentiate(&graph)?;
/// let take = session.compile(&session.optimise(&mut differentiated, Level::O2)?)?;
///
/// let table = Tensor::new(Shape::new(vec![2, 3])?, Data::F32(vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]))?;
/// let ids = |ids: [i64; 2]| Ok::<_, Box<dyn std::error::Error>>(Tensor::new(Shape::new(vec![2])?, Data::I64(ids.to_vec()))?);
/// let (good, bad) = (ids([2, 0])?, ids([2, 3])?);
/// std::thread::scope(|scope| {
///     let other = scope.spawn(|| take.call(&[&table, &bad]));
///     let results = take.call(&[&table, &good]).expect("the indices are in range");
///     assert_eq!(results[0].data(), &Data::F32(vec![2.0, 3.0]));
///     let error = other.join().expect("no panic").expect_err("3 is out of range");
///     assert_eq!(error, CallError::Trap { message: "take_along_axis index out of bounds".into() });
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Compiled {
    phases: Vec<Phase>,
    /// How many threads a call may use.
    threads: NonZero<usize>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    /// See [`Schedule::workspace`](schedule::Schedule::workspace) and [`scratch`](schedule::Schedule::scratch).
    workspace: u64,
    scratch: u64,
    /// Message of each status, from 1.
    traps: Vec<String>,
    /// Owns the code of the phases. It has an LLVM context of its own, so nothing of MLIR need outlive the compilation.
    _engine: Engine,
}

// SAFETY: after construction the engine is only kept alive and destroyed, once, which any thread may do. The code of
// the phases has no state: it reads and writes what its arguments point to, and each call brings its own workspace.
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
        let mut phases = Vec::new();
        for (i, phase) in schedule.phases().iter().enumerate() {
            let entry = engine.lookup(&lower::entry(i)).ok_or(CompileError::Engine)?;
            phases.push(Phase { entry, rows: phase.rows, grain: phase.grain });
        }
        let port =
            |node, name: Option<&str>| Port { name: name.unwrap_or_default().to_owned(), ty: graph.ty(node).clone() };
        Ok(Compiled {
            phases,
            threads: team::default_threads(),
            inputs: graph.inputs.iter().map(|i| port(*i, graph.node(*i).name.as_deref())).collect(),
            outputs: graph.outputs.iter().map(|o| port(o.node, Some(&o.name))).collect(),
            workspace: schedule.workspace,
            scratch: schedule.scratch,
            traps: schedule.sites.iter().map(schedule::Site::message).collect(),
            _engine: engine,
        })
    }

    /// Bytes of temporaries that each call allocates: for whole values, then for single rows of each thread.
    pub fn temporaries(&self) -> u64 {
        self.workspace.saturating_add(self.scratch.saturating_mul(self.threads.get() as u64))
    }

    /// Runs the program: inputs in the order of the graph's inputs, results in the order of its outputs.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>, CallError> {
        check(Role::Input, &self.inputs, inputs.iter().copied())?;
        // Nothing is committed before it is written, so each alone might seem to fit.
        let results = self.outputs.iter().map(|o| o.ty.bytes());
        let bytes = results.fold(self.temporaries(), u64::saturating_add);
        memory::check(bytes).map_err(|e| CallError::OutOfMemory { bytes: e.bytes })?;
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
        let memory = Memory::new(self.temporaries())?;
        let mut pointers: Pointers = SmallVec::with_capacity(inputs.len() + outputs.len() + 2);
        pointers.extend(inputs.iter().map(|t| t.as_bytes().as_ptr().cast_mut().cast::<c_void>()));
        pointers.extend(outputs.iter_mut().map(|t| t.as_bytes_mut().as_mut_ptr().cast::<c_void>()));
        pointers.push(memory.at(0));
        let arguments = Arguments { pointers, scratch: memory.at(self.workspace), scratch_bytes: self.scratch };
        for phase in &self.phases {
            // SAFETY: the tensors have exactly the dtypes and shapes the code was compiled for (checked above), and
            // the arguments are in its order. Inputs are only read; outputs are exclusively borrowed, and the temporaries
            // are this call's own and suffice for that many threads, so what the code assumes not to overlap does not.
            let status = unsafe { phase.run(&arguments, self.threads) };
            self.succeeded(status)?;
        }
        Ok(())
    }

    /// Lets calls use `threads` threads instead of as many as the machine has. Results do not depend on it.
    #[must_use]
    pub fn with_threads(self, threads: NonZero<usize>) -> Compiled {
        Compiled { threads, ..self }
    }

    /// The trap that a status stands for.
    fn succeeded(&self, status: i32) -> Result<(), CallError> {
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

/// Few enough arguments for most programs, so that a call allocates nothing.
type Pointers = SmallVec<[*mut c_void; 16]>;

/// Addresses of the tensors and the temporaries of one call.
struct Arguments {
    /// Inputs, outputs, workspace.
    pointers: Pointers,
    /// Scratch memory of the threads, one after the other.
    scratch: *mut c_void,
    /// Of one thread.
    scratch_bytes: u64,
}

// SAFETY: threads share them only to run phases of rows, in which no thread touches what another one writes, and each has
// scratch memory of its own.
unsafe impl Sync for Arguments {}

impl Phase {
    /// Runs the phase and returns its status, 0 or that of a failed check.
    ///
    /// # Safety
    /// The arguments must be those the code was compiled for: valid buffers in the order inputs, outputs, workspace, of
    /// which outputs and temporaries overlap nothing, with scratch memory for `threads` threads.
    unsafe fn run(&self, arguments: &Arguments, threads: NonZero<usize>) -> i32 {
        let status = AtomicI32::new(0);
        let rows = self.rows.unwrap_or(1);
        team::share(threads, rows, self.grain, &|member, begin, end| {
            // SAFETY: passed on; ranges are disjoint, a row reads and writes nothing of another, and every thread that works
            // at the same time is another member.
            let result = unsafe { self.rows(arguments, member, begin, end) };
            if result != 0 {
                status.store(result, Ordering::Relaxed);
            }
        });
        status.into_inner()
    }

    /// Runs the rows `begin..end` as the thread number `member`.
    ///
    /// # Safety
    /// As for [`run`](Phase::run).
    unsafe fn rows(&self, arguments: &Arguments, member: usize, begin: u64, end: u64) -> i32 {
        let (mut begin, mut end, mut status) = (begin, end, 0i32);
        // In bounds: there is scratch memory for more members than this.
        let mut scratch = arguments.scratch.wrapping_byte_add(member * arguments.scratch_bytes as usize);
        let mut pointers = arguments.pointers.clone();
        let mut addresses: Pointers = pointers.iter_mut().map(|a| ptr::from_mut(a).cast()).collect();
        addresses.push(ptr::from_mut(&mut scratch).cast());
        addresses.push(ptr::from_mut(&mut begin).cast());
        addresses.push(ptr::from_mut(&mut end).cast());
        addresses.push(ptr::from_mut(&mut status).cast());
        // SAFETY: the wrapper reads one address per argument of the phase (bare pointers, then two 64-bit indices) and
        // writes the status to the last, which is what `addresses` holds in this order. The rest is the caller's promise.
        unsafe { (self.entry)(addresses.as_mut_ptr()) };
        status
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
struct Memory {
    start: NonNull<u8>,
    /// `None` where no memory is needed.
    layout: Option<Layout>,
}

impl Memory {
    fn new(bytes: u64) -> Result<Memory, CallError> {
        if bytes == 0 {
            return Ok(Memory { start: NonNull::<Line>::dangling().cast(), layout: None });
        }
        let refused = || CallError::OutOfMemory { bytes };
        memory::check(bytes).map_err(|_| refused())?;
        let size = usize::try_from(bytes).map_err(|_| refused())?;
        let layout = Layout::from_size_align(size, align_of::<Line>()).map_err(|_| refused())?;
        // SAFETY: the layout is not of size zero.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or_else(refused)?;
        Ok(Memory { start, layout: Some(layout) })
    }

    /// The address that many bytes from the start, which must be within what was asked for.
    fn at(&self, offset: u64) -> *mut c_void {
        self.start.as_ptr().wrapping_add(offset as usize).cast()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated in `new` with this layout.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests;
