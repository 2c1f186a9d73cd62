//! `kina-ad bisect`

use clap::Args;

use super::output::{Messages, write_data};
use super::run::failure;
use super::{Failure, GivenArgs, ProgramArgs};
use crate::exec::Tensor;
use crate::exec::inputs::gather;
use crate::exec::summary;
use crate::explore::bisect::{BisectError, Event, Question, as_json, bisect as search};

/// Find the rule that makes the gradient check fail or the results change, and the step at which it does.
#[derive(Debug, Args)]
#[command(after_help = "Example: kina-ad bisect examples/storylm0_nll.kina --rules my.rules")]
pub struct BisectArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    #[command(flatten)]
    given: GivenArgs,
}

pub fn bisect(args: &BisectArgs, messages: &mut Messages) -> Result<(), Failure> {
    let (session, graph) = args.program.load(messages)?;
    let (seed, json) = (args.program.rules.seed, args.program.rules.json);
    // The inputs that `run` would take: which integers index something is known when the program is differentiated.
    let tape = session.differentiate(&graph)?.tape;
    let given = args.given.read(&tape)?;
    let inputs = gather(&tape, given, seed).map_err(|e| Failure::from(e.diagnostic()))?;
    let tensors: Vec<&Tensor> = inputs.iter().map(|i| &i.tensor).collect();
    // A search takes its time: every step is shown when it is done.
    let mut written = Ok(());
    let mut show = |text: String| {
        if !json && written.is_ok() {
            written = write_data(text.as_bytes(), None);
        }
    };
    let lines = inputs.iter().map(|input| format!("  {}", summary::input_line(input, seed)));
    show(format!("inputs\n{}", lines.collect::<String>()));
    let question = Question { session: &session, graph: &graph, level: args.program.level(), inputs: &tensors, seed };
    let answer = search(&question, &mut |event: Event<'_>| show(event.to_string()));
    let answer = answer.map_err(|error| match error {
        BisectError::Refused(refusal) => Failure::from(refusal),
        BisectError::Run(error) => failure(error),
    })?;
    show(answer.conclusion());
    written?;
    if json {
        write_data(format!("{:#}\n", as_json(&answer, &session)).as_bytes(), None)?;
    }
    let found = answer.diagnostics(&session);
    match answer.trap {
        _ if found.has_errors() => Err(session.refusal(found).into()),
        Some(message) => Err(Failure::Trap(message)),
        None => Ok(()),
    }
}
