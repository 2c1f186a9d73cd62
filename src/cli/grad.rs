//! `kina-ad grad`

use clap::{Args, ValueEnum};
use serde_json::json;

use super::output::{Messages, write_data};
use super::{Failure, ProgramArgs};
use crate::DrawOptions;
use crate::check::graph_text;
use crate::egraph::cost;
use crate::ir::print::{PrintOptions, Printer};
use crate::syntax::Form;

/// Print the graph that a program's gradient is computed by.
#[derive(Debug, Args)]
#[command(after_help = "Example: kina-ad grad examples/storylm0_nll.kina --format svg > nll.svg")]
pub struct GradArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Draw every copy of what repeats (the layers of a network), and every edge, not one copy in a frame (SVG only).
    #[arg(long)]
    unfold: bool,
    /// Print the cost model after the graph.
    #[arg(long)]
    explain_cost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Dot,
    /// A drawing: docs/drawings.md says how to read it.
    Svg,
    /// A Kina program: one `let` for each value.
    Kina,
    /// The same program as an S-expression.
    Sexpr,
}

pub fn grad(args: &GradArgs, messages: &mut Messages) -> Result<(), Failure> {
    let (session, graph) = args.program.load(messages)?;
    let mut program = session.differentiate(&graph)?;
    let optimised = session.optimise(&mut program, args.program.level())?;
    let printer = Printer::new(&optimised.graph, &session.rules.registry, &session.sources);
    let format = if args.program.rules.json { Format::Json } else { args.format };
    let mut out = match format {
        Format::Text => {
            let mut out = printer.text(PrintOptions { origins: true });
            out.push_str(&optimised.summary());
            out
        }
        Format::Json => {
            let mut value = printer.json();
            value["cost"] = json!(optimised.cost);
            value["bytes"] = json!(optimised.bytes());
            format!("{value:#}\n")
        }
        Format::Dot => printer.dot(),
        Format::Svg => {
            let title = args.program.title("the gradient", true);
            session.draw_graph(&optimised.graph, &title, DrawOptions { fold: !args.unfold })?
        }
        Format::Kina => graph_text(&printer, Form::Kina, PrintOptions { origins: true }),
        Format::Sexpr => graph_text(&printer, Form::Sexpr, PrintOptions { origins: true }),
    };
    if args.explain_cost && format == Format::Text {
        out.push_str("cost model\n");
        out.push_str(&cost::describe());
    }
    write_data(out.as_bytes(), None)
}
