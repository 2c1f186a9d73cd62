//! From a schedule to MLIR: `linalg` built by API, the pass pipeline, and the stages as text.
//!
//! One module has one of two forms ([`TrapMode`]):
//!
//! - `Assert`: `func.func @main`, tensors in and out as the specification has it, bounds checks as `cf.assert`.
//! - `Status`: one `func.func @kina_phase_N` for each [`Phase`](crate::schedule::Phase) of the schedule, buffers in and out
//!   and an `i32` status, for callers that must survive a trap.
//!   It allocates nothing: results go to the caller's buffers, temporaries to a workspace that the caller passes, at the
//!   offsets of the schedule's buffer plan.

mod builder;
mod cast;
mod elementary;
mod emit;
mod forall;
mod function;
mod gather;
mod llvm;
mod nest;
mod object;
mod part;
mod scalar;
mod sequence;
mod split;
mod stages;

use std::sync::{Arc, Mutex};

use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::Module;
use melior::ir::operation::OperationPrintingFlags;
use melior::utility::{register_all_dialects, register_all_llvm_translations, register_all_passes};

pub use function::entry;
pub use llvm::FileKind;
pub use object::{header, object, symbol};
pub use stages::{llvm_dialect, llvm_ir};

use crate::ir::{Graph, Level, NodeKind, Placement, Registry};
use crate::schedule::{Schedule, ScheduleError};

/// What a failed bounds check does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrapMode {
    /// `cf.assert`, the specification's: the process ends.
    Assert,
    /// The function returns 1 + the index of the site in [`Schedule::sites`], 0 meaning success; nothing is read out
    /// of range.
    Status,
}

/// What [`lower`] needs besides the graph and its schedule.
#[derive(Clone, Debug)]
pub struct LowerOptions {
    pub level: Level,
    pub traps: TrapMode,
    /// Source file and line by node index; nodes beyond its end have no location.
    pub locations: Vec<Option<(Arc<str>, u32)>>,
    /// Status form only: one function of this name, without the range of rows, instead of one for each phase.
    pub symbol: Option<String>,
}

impl LowerOptions {
    pub fn new(level: Level, traps: TrapMode) -> Self {
        LowerOptions { level, traps, locations: Vec::new(), symbol: None }
    }
}

/// Why a graph cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// One line for each operator on the device, in program order, each operator once.
    #[error("{}", .0.join("\n"))]
    Device(Vec<String>),
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// A fault of this compiler: MLIR refused what it built.
    #[error("MLIR does not accept the {stage}: {message}")]
    Invalid { stage: &'static str, message: String },
}

/// A context with every dialect, translation and pass that the pipeline needs.
pub fn context() -> Context {
    register_all_passes();
    let registry = DialectRegistry::new();
    register_all_dialects(&registry);
    let context = Context::new();
    context.append_dialect_registry(&registry);
    context.load_all_available_dialects();
    register_all_llvm_translations(&context);
    // Threads of the pass manager cost more than they save on one function.
    context.enable_multi_threading(false);
    context
}

/// Refuses what has no device lowering.
///
/// # Errors
/// [`LowerError::Device`] with every operator on the device.
pub fn check_placement(graph: &Graph, registry: &Registry) -> Result<(), LowerError> {
    let live = graph.live();
    let mut refused: Vec<String> = Vec::new();
    for (id, node) in graph.iter().filter(|(id, _)| live[id.index()]) {
        let NodeKind::Op { op, operands, .. } = &node.kind else { continue };
        let placements = operands.iter().map(|o| graph.ty(*o).placement).chain([node.ty.placement]);
        if placements.into_iter().all(|p| p == Placement::Host) {
            continue;
        }
        let name = registry.op(*op).name();
        let message = if graph.check_of(registry, id).is_some() {
            format!("{name}: checked device lowering is not available")
        } else {
            format!("{name}: device lowering is not available")
        };
        if !refused.contains(&message) {
            refused.push(message);
        }
    }
    if refused.is_empty() { Ok(()) } else { Err(LowerError::Device(refused)) }
}

/// Builds and verifies the module of a schedule.
///
/// # Errors
/// Operators on the device; anything that MLIR refuses.
pub fn lower<'c>(
    context: &'c Context,
    graph: &Graph,
    registry: &Registry,
    schedule: &Schedule,
    options: &LowerOptions,
) -> Result<Module<'c>, LowerError> {
    check_placement(graph, registry)?;
    let messages = Messages::capture(context);
    let module = function::build(context, graph, schedule, options)?;
    if module.as_operation().verify() {
        Ok(module)
    } else {
        Err(LowerError::Invalid { stage: "lowered module", message: messages.take() })
    }
}

/// The module as text, `linalg` before the pipeline; with `locations`, each operation says which rule or program line
/// it came from.
///
/// # Errors
/// If MLIR cannot print it.
pub fn text(module: &Module<'_>, locations: bool) -> Result<String, LowerError> {
    let mut flags = OperationPrintingFlags::new();
    if locations {
        flags = flags.enable_debug_info(true, false);
    }
    let print = module.as_operation().to_string_with_flags(flags);
    print
        .map(|t| t.trim_end().to_owned() + "\n")
        .map_err(|e| LowerError::Invalid { stage: "module text", message: e.to_string() })
}

/// What `emit` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// `linalg` on tensors, before the pipeline.
    Linalg,
    /// The LLVM dialect, after it.
    LlvmDialect,
    LlvmIr,
}

/// The module of a graph as text, in the specification's form: `@main`, tensors in and out, `cf.assert`.
///
/// # Errors
/// A graph without a schedule, operators on the device, or a failure of MLIR.
pub fn emit(
    graph: &Graph,
    registry: &Registry,
    level: Level,
    stage: Stage,
    locations: Vec<Option<(Arc<str>, u32)>>,
    show_locations: bool,
) -> Result<String, LowerError> {
    check_placement(graph, registry)?;
    let schedule = crate::schedule::schedule(graph, registry, level)?;
    let context = context();
    let options = LowerOptions { locations, ..LowerOptions::new(level, TrapMode::Assert) };
    let mut module = lower(&context, graph, registry, &schedule, &options)?;
    if stage == Stage::Linalg {
        return text(&module, show_locations);
    }
    llvm_dialect(&context, &mut module, TrapMode::Assert)?;
    match stage {
        Stage::LlvmIr => llvm_ir(&context, &module),
        _ => text(&module, show_locations),
    }
}

impl LowerError {
    /// The diagnostic code.
    pub fn code(&self) -> &'static str {
        match self {
            LowerError::Schedule(error) => error.code(),
            LowerError::Device(_) | LowerError::Invalid { .. } => "E0601",
        }
    }

    /// The way out.
    pub fn help(&self) -> &'static str {
        match self {
            LowerError::Schedule(error) => error.help(),
            LowerError::Device(_) => {
                "programs on the device can be checked and differentiated; place the tensors `@host` to run them"
            }
            LowerError::Invalid { .. } => {
                "this is a fault of kina-ad: please report it with the program and the rule files"
            }
        }
    }
}

/// Collects what MLIR reports while it lives.
struct Messages<'c> {
    context: &'c Context,
    handler: Option<melior::diagnostic::DiagnosticHandlerId>,
    text: Arc<Mutex<String>>,
}

impl<'c> Messages<'c> {
    fn capture(context: &'c Context) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let sink = text.clone();
        let handler = context.attach_diagnostic_handler(move |diagnostic| {
            if let Ok(mut text) = sink.lock() {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&format!("{}: {diagnostic}", diagnostic.location()));
            }
            true
        });
        Self { context, handler: Some(handler), text }
    }

    fn take(&self) -> String {
        self.text.lock().map(|mut t| std::mem::take(&mut *t)).unwrap_or_default()
    }
}

impl Drop for Messages<'_> {
    fn drop(&mut self) {
        if let Some(handler) = self.handler.take() {
            self.context.detach_diagnostic_handler(handler);
        }
    }
}

#[cfg(test)]
mod tests;
