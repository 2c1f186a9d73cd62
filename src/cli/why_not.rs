//! `kina-ad why-not`

use clap::Args;

use super::output::{Messages, write_data};
use super::{Failure, ProgramArgs};
use crate::explore::why_not::{Options, why_not as answer};

/// Say why a rule was not used in a program: at each place what failed first, or what it cost.
#[derive(Debug, Args)]
#[command(after_help = "Example: kina-ad why-not examples/storylm0_nll.kina exp_of_log_softmax")]
pub struct WhyNotArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// A rule as `kina-ad rules list` names it, an operator, whose VJPs it then means, or the place of a rule.
    #[arg(value_name = "RULE", required = true, num_args = 1..=4)]
    rule: Vec<String>,
    /// One value only: by the name that `kina-ad grad` prints, by its name in the program, or by the line on which it begins.
    #[arg(long, value_name = "VALUE|FILE:LINE")]
    at: Option<String>,
    /// Show all places, and not only the first few of each outcome.
    #[arg(long)]
    all: bool,
}

pub fn why_not(args: &WhyNotArgs, messages: &mut Messages) -> Result<(), Failure> {
    let (session, graph) = args.program.load(messages)?;
    let mut options = Options { level: args.program.level(), at: args.at.as_deref(), ..Options::default() };
    if args.all {
        options.shown = usize::MAX;
    }
    let answer = answer(&session, &graph, &args.rule.join(" "), &options)?;
    let out = if args.program.rules.json { format!("{:#}\n", answer.json()) } else { answer.text() };
    write_data(out.as_bytes(), None)
}
