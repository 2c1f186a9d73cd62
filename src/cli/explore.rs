//! `kina-ad explore`

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;

use super::output::Messages;
use super::{Failure, ProgramArgs, unreadable};
use crate::diagnostics::Diagnostic;
use crate::explore::tour::{Tour, script, terminal};

/// Walk through the rewriting of a program's gradient, step by step.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: kina-ad explore examples/storylm0_nll.kina\n         echo 'next 3' | kina-ad explore examples/storylm0_nll.kina --script -"
)]
pub struct ExploreArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Read commands from a file or, with `-`, from stdin, and print the answers instead of drawing on the terminal. `help` lists
    /// them. Commands that are refused are told at the end, with exit 1.
    #[arg(long, value_name = "FILE|-")]
    script: Option<PathBuf>,
    /// Draw without colours, as with NO_COLOR.
    #[arg(long)]
    no_color: bool,
}

pub fn explore(args: &ExploreArgs, messages: &mut Messages) -> Result<(), Failure> {
    if args.script.is_none() {
        if args.program.rules.json {
            return Err(Diagnostic::error("E0933", "`--json` is for answers of commands")
                .help("add `--script FILE`, or `--script -` for commands from stdin")
                .into());
        }
        terminal::check()?;
    }
    let commands: Option<Box<dyn io::BufRead>> = match &args.script {
        None => None,
        Some(path) if path.as_path() == Path::new("-") => Some(Box::new(io::stdin().lock())),
        Some(path) => {
            let file = File::open(path).map_err(|e| unreadable(&path.display().to_string(), &e.to_string()))?;
            Some(Box::new(BufReader::new(file)))
        }
    };
    let (session, graph) = args.program.load(messages)?;
    let file = args.program.file.display().to_string();
    let mut tour = Tour::open(session, &graph, &file, args.program.level())?;
    let Some(commands) = commands else {
        return Ok(terminal::run(&mut tour, terminal::has_colour(args.no_color))?);
    };
    let name = args.script.as_ref().map_or_else(String::new, |p| match p.as_path() == Path::new("-") {
        true => "stdin".to_owned(),
        false => p.display().to_string(),
    });
    let refused = script::run(&mut tour, &name, commands, &mut io::stdout().lock(), args.program.rules.json)?;
    refused.map_or(Ok(()), |refusal| Err(refusal.into()))
}
