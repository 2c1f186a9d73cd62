//! `kina-ad emit`

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::output::{Messages, write_data};
use super::{Failure, ProgramArgs};
use crate::DrawOptions;
use crate::check::graph_text;
use crate::diagnostics::Diagnostic;
use crate::ir::print::{PrintOptions, Printer};
use crate::syntax::Form;

/// Print one stage of the compilation.
#[derive(Debug, Args)]
#[command(after_help = "Examples: kina-ad emit examples/storylm0_nll.kina --stage linalg -O0
          kina-ad emit examples/mlp.kina --stage schedule --format svg -o mlp.svg")]
pub struct EmitArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Which stage.
    #[arg(long, value_enum)]
    stage: Stage,
    /// Write to a file instead of stdout; it appears whole or not at all.
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Text, or for the program, the graph and the schedule DOT or a drawing, or for the program and the graph one of the
    /// forms in which programs are written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Draw every copy of what repeats (the layers of a network), and every edge, not one copy in a frame (SVG only).
    #[arg(long)]
    unfold: bool,
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
    /// A drawing: docs/drawings.md says how to read it.
    Svg,
    /// Kina text, comments kept.
    Kina,
    /// An S-expression, comments kept.
    Sexpr,
}

impl Format {
    /// The written form that it is.
    fn form(self) -> Option<Form> {
        match self {
            Format::Text | Format::Dot | Format::Svg => None,
            Format::Kina => Some(Form::Kina),
            Format::Sexpr => Some(Form::Sexpr),
        }
    }
}

pub fn emit(args: &EmitArgs, messages: &mut Messages) -> Result<(), Failure> {
    let stages: &[Stage] = match args.format {
        Format::Text => Stage::value_variants(),
        Format::Dot | Format::Svg => &[Stage::Program, Stage::Graph, Stage::Schedule],
        Format::Kina | Format::Sexpr => &[Stage::Program, Stage::Graph],
    };
    if !stages.contains(&args.stage) {
        let names: Vec<String> =
            stages.iter().filter_map(|s| s.to_possible_value()).map(|v| format!("`{}`", v.get_name())).collect();
        return Err(Diagnostic::error("E0603", "this stage has no such format")
            .help(format!("leave `--format` out; the stages with this format are {}", names.join(", ")))
            .into());
    }
    let (session, tree, graph) = args.program.load_with_tree(messages)?;
    let registry = &session.rules.registry;
    let drawing = DrawOptions { fold: !args.unfold };
    let is_drawn = args.format == Format::Svg && !args.program.rules.json;
    if args.stage == Stage::Program && is_drawn {
        let text = session.draw_graph(&graph, &args.program.title("the program", false), drawing)?;
        return write_data(text.as_bytes(), args.output.as_deref());
    }
    if args.stage == Stage::Program {
        let text = match args.format.form().filter(|_| !args.program.rules.json) {
            Some(form) => session.print(&tree, form),
            None => printed(args, &Printer::new(&graph, registry, &session.sources), PrintOptions { origins: false }),
        };
        return write_data(text.as_bytes(), args.output.as_deref());
    }
    let mut program = session.differentiate(&graph)?;
    let optimised = session.optimise(&mut program, args.program.level())?;
    let graph = &optimised.graph;
    let printer = Printer::new(graph, registry, &session.sources);
    let text = match args.stage {
        Stage::Graph if is_drawn => session.draw_graph(graph, &args.program.title("the graph", true), drawing)?,
        Stage::Program | Stage::Graph => printed(args, &printer, PrintOptions { origins: true }),
        Stage::Schedule if args.format == Format::Svg => {
            session.draw_schedule(&optimised, &args.program.title("the schedule", true), drawing)?
        }
        Stage::Schedule => {
            let schedule = session.schedule(&optimised)?;
            match args.format {
                Format::Dot => schedule.to_dot(printer.names()),
                _ => schedule.to_text(printer.names()),
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
        (false, Format::Text | Format::Svg) => printer.text(options),
        (false, Format::Dot) => printer.dot(),
        (false, Format::Kina) => graph_text(printer, Form::Kina, options),
        (false, Format::Sexpr) => graph_text(printer, Form::Sexpr, options),
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
        .map_err(|e| Failure::from(Diagnostic::error(e.code(), e.to_string()).help(e.help())))
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
    .map_err(|e| Failure::from(Diagnostic::error(e.code(), e.to_string()).help(e.help())))
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
