//! `kina-ad emit`

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::output::{say_warnings, write_data};
use super::{Failure, ProgramArgs};
use crate::diagnostics::Diagnostic;
use crate::ir::print::{PrintOptions, Printer};
use crate::schedule::schedule;

/// Print one stage of the compilation.
#[derive(Debug, Args)]
#[command(after_help = "Example: kina-ad emit examples/storylm0_nll.kina --stage linalg -O0")]
pub struct EmitArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Which stage.
    #[arg(long, value_enum)]
    stage: Stage,
    /// Write to a file instead of stdout; it appears whole or not at all.
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Text, or for the graph and the schedule DOT.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Say behind each MLIR operation which program or rule line it came from.
    #[arg(long)]
    locations: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// The typed program as it was written, handlers not yet differentiated.
    Program,
    /// The graph that computes value and gradients, with the rule behind every node.
    Graph,
    /// Order, fusion groups, buffers.
    Schedule,
    /// MLIR: linalg on tensors.
    Linalg,
    /// MLIR: the LLVM dialect.
    Llvm,
    /// LLVM IR.
    LlvmIr,
    /// Assembly of a function with a C interface.
    Asm,
    /// An object file with that function.
    Object,
    /// The C header that declares it.
    Header,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Dot,
}

pub fn emit(args: &EmitArgs) -> Result<(), Failure> {
    if args.format == Format::Dot && !matches!(args.stage, Stage::Program | Stage::Graph | Stage::Schedule) {
        return Err(Diagnostic::error("E0603", "only the program, the graph and the schedule have a DOT form")
            .help("leave `--format dot` out")
            .into());
    }
    let (session, graph) = args.program.load()?;
    say_warnings(&session);
    let registry = &session.rules.registry;
    if args.stage == Stage::Program {
        let printer = Printer::new(&graph, registry, &session.sources);
        let text = printed(args, &printer, PrintOptions { origins: false });
        return write_data(text.as_bytes(), args.output.as_deref());
    }
    let mut program = session.differentiate(&graph)?;
    let optimised = session.optimise(&mut program, args.program.level())?;
    let graph = &optimised.graph;
    let printer = Printer::new(graph, registry, &session.sources);
    let text = match args.stage {
        Stage::Program | Stage::Graph => printed(args, &printer, PrintOptions { origins: true }),
        Stage::Schedule => {
            let schedule = schedule(graph, registry, args.program.level())
                .map_err(|e| Failure::from(Diagnostic::error("E0604", e.to_string())))?;
            match args.format {
                Format::Text => schedule.to_text(printer.names()),
                Format::Dot => schedule.to_dot(printer.names()),
            }
        }
        Stage::Linalg | Stage::Llvm | Stage::LlvmIr => mlir(args, &session, graph)?,
        Stage::Asm | Stage::Object | Stage::Header => {
            let file = c_interface(args, &session, graph)?;
            return write_data(&file, args.output.as_deref());
        }
    };
    write_data(text.as_bytes(), args.output.as_deref())
}

fn printed(args: &EmitArgs, printer: &Printer<'_>, options: PrintOptions) -> String {
    match (args.program.rules.json, args.format) {
        (true, _) => format!("{:#}\n", json!(printer.json())),
        (false, Format::Text) => printer.text(options),
        (false, Format::Dot) => printer.dot(),
    }
}

#[cfg(feature = "codegen")]
fn mlir(args: &EmitArgs, session: &crate::Session, graph: &crate::Graph) -> Result<String, Failure> {
    use crate::lower::{Stage as Form, emit};

    let form = match args.stage {
        Stage::Llvm => Form::LlvmDialect,
        Stage::LlvmIr => Form::LlvmIr,
        _ => Form::Linalg,
    };
    let locations = session.locations(graph);
    emit(graph, &session.rules.registry, args.program.level(), form, locations, args.locations)
        .map_err(|e| Failure::from(Diagnostic::error("E0601", e.to_string()).help(e.help())))
}

/// The function is named after the program's file.
#[cfg(feature = "codegen")]
fn c_interface(args: &EmitArgs, session: &crate::Session, graph: &crate::Graph) -> Result<Vec<u8>, Failure> {
    use crate::lower::{FileKind, header, object, symbol};

    let stem = args.program.file.file_stem().unwrap_or_default().to_string_lossy();
    let (name, registry, level) = (symbol(&stem), &session.rules.registry, args.program.level());
    match args.stage {
        Stage::Asm => object(graph, registry, level, &name, FileKind::Assembly),
        Stage::Object => object(graph, registry, level, &name, FileKind::Object),
        _ => header(graph, registry, level, &name).map(String::into_bytes),
    }
    .map_err(|e| Failure::from(Diagnostic::error("E0601", e.to_string()).help(e.help())))
}

#[cfg(not(feature = "codegen"))]
fn c_interface(_: &EmitArgs, _: &crate::Session, _: &crate::Graph) -> Result<Vec<u8>, Failure> {
    Err(without_codegen())
}

#[cfg(not(feature = "codegen"))]
fn mlir(_: &EmitArgs, _: &crate::Session, _: &crate::Graph) -> Result<String, Failure> {
    Err(without_codegen())
}

#[cfg(not(feature = "codegen"))]
fn without_codegen() -> Failure {
    Diagnostic::error("E0602", "this kina-ad was built without code generation")
        .help("build with the feature `codegen`")
        .into()
}
