//! Commands only: no logic that a library user would miss.
//!
//! Data goes to stdout, messages to stderr. Exit codes: 0 success; 1 a refused input or a failed check; 2 wrong usage;
//! 3 a trap at run time; 4 a file that cannot be read or written.

mod bisect;
mod check_rules;
mod diff;
mod emit;
mod explore;
mod format;
mod grad;
mod output;
mod rules;
mod run;
mod snapshot;
mod why;
mod why_not;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::exec::Tensor;
use crate::exec::inputs::read;
use crate::ir::{Graph, Level};
use crate::rules::{Profile, RuleOptions};
use crate::syntax::ast::Program;
use crate::syntax::read_text;
use crate::{CheckOptions, Refusal, Session};

pub use output::Failure;
use output::Messages;

/// Reverse-mode AD for Kina programs, by rules that stand in files.
#[derive(Debug, Parser)]
#[command(name = "kina-ad", version, about, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a program and print (or write) its results.
    Run(run::RunArgs),
    /// Print the graph that a program's gradient is computed by, with the rule behind every node.
    Grad(grad::GradArgs),
    /// Print one stage of the compilation.
    Emit(emit::EmitArgs),
    /// Find the rule that makes the gradient check fail or the results change.
    Bisect(bisect::BisectArgs),
    /// Walk through the rewriting of a program's gradient, step by step.
    Explore(explore::ExploreArgs),
    /// List or show the loaded rules, write new ones, format rule files.
    Rules(rules::RulesArgs),
    /// Compare a program under two rule sets, or two programs, by meaning.
    Diff(diff::DiffArgs),
    /// Check or accept snapshots of extracted graphs, beside their programs.
    Snapshot(snapshot::SnapshotArgs),
    /// Say why a value is computed the way it is: the derivation from its operator and rule to what was chosen.
    Why(why::WhyArgs),
    /// Say why a rule was not used in a program: at each place what failed first, or what it cost.
    WhyNot(why_not::WhyNotArgs),
}

/// Which rules are loaded.
#[derive(Debug, Args)]
struct LoadedArgs {
    /// Add a rule file, or every .rules file of a directory. May be repeated.
    #[arg(long, value_name = "FILE|DIR")]
    rules: Vec<PathBuf>,
    /// Start from no rules instead of the profile's.
    #[arg(long)]
    no_default_rules: bool,
    /// The rules to start from: `phase1` is the restricted pass of Section 10 and adds no other derivative.
    #[arg(long, value_enum, default_value_t = ProfileArg::Default)]
    profile: ProfileArg,
}

/// The same, and what every command that uses rules takes.
#[derive(Debug, Args)]
struct RuleArgs {
    #[command(flatten)]
    loaded: LoadedArgs,
    /// Seed of generated inputs and sampled checks.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Print data and diagnostics as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ProfileArg {
    Phase1,
    Default,
}

impl ProfileArg {
    fn profile(self) -> Profile {
        match self {
            ProfileArg::Phase1 => Profile::Phase1,
            ProfileArg::Default => Profile::Default,
        }
    }
}

impl LoadedArgs {
    fn options(&self) -> RuleOptions {
        RuleOptions {
            profile: self.profile.profile(),
            no_default_rules: self.no_default_rules,
            files: self.rules.clone(),
            ..RuleOptions::default()
        }
    }
}

impl RuleArgs {
    fn options(&self) -> RuleOptions {
        self.loaded.options()
    }

    fn session(&self) -> Result<Session, Refusal> {
        Session::new(&self.options())
    }
}

/// A program and how to compile it.
#[derive(Debug, Args)]
struct ProgramArgs {
    /// The program, as Kina text or as an S-expression.
    #[arg(value_name = "FILE.kina")]
    file: PathBuf,
    /// 0: no rewrites, the literal lowering; 1: rewrites that are equal on every float; 2: all.
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=2))]
    level: u8,
    /// Where the cotangent comes from: ones, or an input of that name.
    #[arg(long, value_enum, default_value_t = CotangentArg::Ones)]
    cotangent: CotangentArg,
    #[command(flatten)]
    rules: RuleArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CotangentArg {
    Ones,
    Input,
}

impl ProgramArgs {
    fn level(&self) -> Level {
        match self.level {
            0 => Level::O0,
            1 => Level::O1,
            _ => Level::O2,
        }
    }

    /// The title of a drawing of one stage, with the level if that matters to it.
    fn title(&self, stage: &str, levels: bool) -> String {
        let level = if levels { format!(" {}", self.level()) } else { String::new() };
        format!("{}: {stage}{level}", self.file.display())
    }

    /// Loads the rules and checks the program.
    fn load(&self, messages: &mut Messages) -> Result<(Session, Graph), Failure> {
        let (session, _, graph) = self.load_with_tree(messages)?;
        Ok((session, graph))
    }

    /// The same, with the program's syntax tree.
    fn load_with_tree(&self, messages: &mut Messages) -> Result<(Session, Program, Graph), Failure> {
        let mut session = self.rules.session()?;
        messages.warn(&session);
        let name = self.file.display().to_string();
        let text = read_text("", &self.file).map_err(|diagnostic| session.refusal((*diagnostic).into()))?;
        let options = CheckOptions { cotangent_input: self.cotangent == CotangentArg::Input };
        let program = session.parse(&name, &text)?;
        let graph = session.check_tree(&program, &options)?;
        Ok((session, program, graph))
    }
}

/// Inputs of a program that come from files.
#[derive(Debug, Args)]
struct GivenArgs {
    /// Take an input from an .npy file, or from an .npz or .safetensors archive that holds it by its name or holds
    /// nothing else. Inputs not given are generated. May be repeated.
    #[arg(long, value_name = "NAME=FILE", value_parser = name_and_file)]
    input: Vec<(String, PathBuf)>,
    /// Take inputs from an .npz or .safetensors archive, by their names in it.
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
}

impl GivenArgs {
    fn read(&self, program: &Graph) -> Result<Vec<(String, Tensor)>, Failure> {
        read(program, self.inputs.as_deref(), &self.input).map_err(|e| Failure::from(e.diagnostic()))
    }
}

fn name_and_file(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err("expected NAME=FILE".to_owned()),
    }
}

/// A refusal for a file that cannot be read.
fn unreadable(name: &str, error: &str) -> Failure {
    let diagnostics = Diagnostics::from(
        Diagnostic::error("E0701", format!("cannot read `{name}`: {error}")).help("check the path and its permissions"),
    );
    Failure::Refused(Refusal { diagnostics, sources: crate::diagnostics::SourceMap::new() })
}

/// `kina-ad 0.1.0 (rules 0123456789abcdef)`: the hash is that of the default profile.
fn print_version() -> Result<(), Failure> {
    let session = Session::new(&RuleOptions::default())?;
    let text = format!("kina-ad {} (rules {})\n", env!("CARGO_PKG_VERSION"), session.rules.hash());
    output::write_data(text.as_bytes(), None)
}

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // The hash costs the loading of all rules: only who asks for it waits.
        Err(error) if error.kind() == ErrorKind::DisplayVersion => {
            return Messages::new(false).finish(print_version());
        }
        Err(error) => {
            // Help and version are data, everything else is wrong usage.
            let code = if error.use_stderr() { 2 } else { 0 };
            return match error.print() {
                Ok(()) => ExitCode::from(code),
                Err(_) => ExitCode::SUCCESS,
            };
        }
    };
    let json = match &cli.command {
        Command::Run(args) => args.program.rules.json,
        Command::Grad(args) => args.program.rules.json,
        Command::Emit(args) => args.program.rules.json,
        Command::Bisect(args) => args.program.rules.json,
        Command::Explore(args) => args.program.rules.json,
        Command::Rules(args) => args.json(),
        Command::Diff(args) => args.program.rules.json,
        Command::Snapshot(args) => args.json(),
        Command::Why(args) => args.program.rules.json,
        Command::WhyNot(args) => args.program.rules.json,
    };
    let mut messages = Messages::new(json);
    let result = match cli.command {
        Command::Run(args) => run::run(&args, &mut messages),
        Command::Grad(args) => grad::grad(&args, &mut messages),
        Command::Emit(args) => emit::emit(&args, &mut messages),
        Command::Bisect(args) => bisect::bisect(&args, &mut messages),
        Command::Explore(args) => explore::explore(&args, &mut messages),
        Command::Rules(args) => rules::rules(&args, &mut messages),
        Command::Diff(args) => diff::diff(&args, &mut messages),
        Command::Snapshot(args) => snapshot::snapshot(&args, &mut messages),
        Command::Why(args) => why::why(&args, &mut messages),
        Command::WhyNot(args) => why_not::why_not(&args, &mut messages),
    };
    messages.finish(result)
}
