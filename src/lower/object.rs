//! Files for programs in other languages: an object or assembly file, and the C header that declares its function.
//!
//! The function has the status form: plain pointers to row-major arrays in and out, a workspace that the caller owns, and
//! a status. It allocates nothing, keeps no state, and never ends the process.

use std::fmt::Write as _;

use super::llvm::{FileKind, LlvmModule};
use super::{LowerError, LowerOptions, TrapMode, context, llvm_dialect, lower};
use crate::ir::{DType, Graph, Level, NodeId, Registry};
use crate::schedule::{Schedule, schedule};

/// The symbol of a program's function: its name as an identifier, with a prefix, so that it is no keyword and no name
/// of the C library.
///
/// ```
/// assert_eq!(kina_ad::lower::symbol("storylm0-nll"), "kina_storylm0_nll");
/// ```
pub fn symbol(program: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("kina_{}", program.chars().map(plain).collect::<String>())
}

/// An object or assembly file that defines `symbol`, for a fixed processor of this machine's architecture.
///
/// # Errors
/// A graph without a schedule, operators on the device, or a failure of MLIR or LLVM.
pub fn object(
    graph: &Graph,
    registry: &Registry,
    level: Level,
    symbol: &str,
    kind: FileKind,
) -> Result<Vec<u8>, LowerError> {
    super::check_placement(graph, registry)?;
    let schedule = schedule(graph, registry, level)?;
    let context = context();
    let options = LowerOptions { symbol: Some(symbol.to_owned()), ..LowerOptions::new(level, TrapMode::Status) };
    let mut module = lower(&context, graph, registry, &schedule, &options)?;
    llvm_dialect(&context, &mut module, TrapMode::Status)?;
    LlvmModule::translate(&context, &module)?.file(if level.fuses() { 3 } else { 2 }, kind)
}

/// The C header for [`object`] of the same arguments.
///
/// # Errors
/// A graph without a schedule, or operators on the device.
pub fn header(graph: &Graph, registry: &Registry, level: Level, symbol: &str) -> Result<String, LowerError> {
    super::check_placement(graph, registry)?;
    let schedule = schedule(graph, registry, level)?;
    Ok(header_text(graph, &schedule, symbol))
}

fn header_text(graph: &Graph, schedule: &Schedule, symbol: &str) -> String {
    let upper = symbol.to_ascii_uppercase();
    let mut parameters: Vec<String> = Vec::new();
    let mut comments = String::new();
    // Parameters are numbered, so that names of the program cannot collide with anything.
    let mut parameter = |id: NodeId, name: &str, role: String, constant: &str| {
        let ty = graph.ty(id);
        let c = match ty.dtype {
            DType::Bool => "uint8_t",
            DType::I32 => "int32_t",
            DType::I64 => "int64_t",
            DType::F32 => "float",
            DType::F64 => "double",
        };
        let _ = writeln!(comments, " *   {role}: {name}, {} {}", ty.dtype, ty.shape);
        parameters.push(format!("{constant}{c} *{role}"));
    };
    for (i, input) in graph.inputs.iter().enumerate() {
        let name = graph.node(*input).name.as_deref().unwrap_or("input");
        parameter(*input, name, format!("in{i}"), "const ");
    }
    for (i, output) in graph.outputs.iter().enumerate() {
        parameter(output.node, &output.name, format!("out{i}"), "");
    }
    parameters.push("void *workspace".to_owned());
    let mut traps = String::new();
    for (i, site) in schedule.sites.iter().enumerate() {
        let _ = writeln!(traps, " *   {}: {}", i + 1, site.message());
    }
    if traps.is_empty() {
        traps.push_str(" *   none\n");
    }
    format!(
        "#ifndef {upper}_H\n#define {upper}_H\n\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n\
         /* Bytes of the workspace, which must be aligned to 64. */\n\
         #define {upper}_WORKSPACE {}\n\n\
         /* Arrays are dense and row-major; Bool is one byte, 0 or 1. Results and workspace overlap nothing.\n\
         {comments} *\n * Returns 0, or the number of a failed check:\n{traps} *\n\x20* Link with -lm. */\n\
         int32_t {symbol}({});\n\n\
         #ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
        schedule.temporaries(1).max(1),
        parameters.join(", ")
    )
}
