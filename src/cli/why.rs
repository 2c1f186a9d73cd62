//! `kina-ad why`

use clap::Args;

use super::output::{Messages, write_data};
use super::{Failure, ProgramArgs};
use crate::explore::why::{Options, Why};
use crate::ir::Level;

/// Say why a value is computed the way it is: from its operator and VJP rule through each rewrite to what was chosen.
#[derive(Debug, Args)]
#[command(after_help = "Example: kina-ad why examples/storylm0_nll.kina g_logits --proof")]
pub struct WhyArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// The value, by the name that `grad` prints, or a name of the program or of a result.
    #[arg(value_name = "VALUE")]
    value: String,
    /// Replay every step of the derivation, operands included: sides, conditions, attributes, types and facts of domains.
    #[arg(long)]
    proof: bool,
    /// Show all steps, and the derivations of operands, each once.
    #[arg(long)]
    all: bool,
}

pub fn why(args: &WhyArgs, messages: &mut Messages) -> Result<(), Failure> {
    let (session, graph) = args.program.load(messages)?;
    let mut program = session.differentiate(&graph)?;
    if args.program.level() != Level::O0 {
        program.keep_record();
    }
    let optimised = session.optimise(&mut program, args.program.level())?;
    let options = Options { proof: args.proof, all: args.all };
    let answer = Why::new(&program, &optimised, &session.rules, &session.sources)
        .answer(&args.value, options)
        .map_err(|diagnostic| session.refusal((*diagnostic).into()))?;
    let text = if args.program.rules.json { format!("{:#}\n", answer.to_json()) } else { answer.to_text() };
    write_data(text.as_bytes(), None)
}
