//! `kina-ad diff`

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::output::{Messages, write_data};
use super::{CotangentArg, Failure, ProfileArg, ProgramArgs};
use crate::review::Settings;
use crate::review::diff::{Input, diff as compare};
use crate::rules::RuleOptions;
use crate::syntax::read_text;

const HELP: &str = "\
The first side (-) is FILE under the rules of --rules, --profile and --no-default-rules. The second side (+) is OTHER if it is given, \
or else FILE again. Its rules are those that the --against- options give together, or if there are none those of the first side. \
Names, comments, numbering and the order of lines and rules are no difference.

Exit 0 without a difference, 1 with one. A refused program or rule set is exit 1 with a message and nothing on the standard output. \
A check of numbers that fails on either side is told on the standard error.

Examples:
  kina-ad diff nll.kina --against-rules my.rules   what my.rules changes
  kina-ad diff nll.kina other.kina                 two programs
  kina-ad diff nll.kina --no-default-rules --rules old --against-no-default-rules --against-rules new";

/// Compare a program under two rule sets, or two programs, by meaning.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("against").required(true).multiple(true)
        .args(["other", "against_rules", "against_profile", "against_no_default_rules"])),
    after_help = HELP
)]
pub struct DiffArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// The program of the second side.
    #[arg(value_name = "OTHER.kina")]
    other: Option<PathBuf>,
    /// Rules of the second side, besides its profile. May be repeated.
    #[arg(long, value_name = "FILE|DIR")]
    against_rules: Vec<PathBuf>,
    /// The profile of the second side; that of the first if it is not given.
    #[arg(long, value_enum, value_name = "PROFILE")]
    against_profile: Option<ProfileArg>,
    /// Start from no rules on the second side.
    #[arg(long)]
    against_no_default_rules: bool,
    /// Do not look at numbers: no gradient check, no comparison of results.
    #[arg(long)]
    no_check: bool,
    /// Show everything, however long.
    #[arg(long)]
    all: bool,
}

impl DiffArgs {
    /// The rules of the second side, if they are other ones.
    fn against(&self) -> Option<RuleOptions> {
        let is_given =
            !self.against_rules.is_empty() || self.against_profile.is_some() || self.against_no_default_rules;
        is_given.then(|| RuleOptions {
            profile: self.against_profile.unwrap_or(self.program.rules.loaded.profile).profile(),
            no_default_rules: self.against_no_default_rules,
            files: self.against_rules.clone(),
            ..RuleOptions::default()
        })
    }
}

pub fn diff(args: &DiffArgs, messages: &mut Messages) -> Result<(), Failure> {
    let settings = Settings {
        level: args.program.level(),
        cotangent_input: args.program.cotangent == CotangentArg::Input,
        seed: args.program.rules.seed,
        check: !args.no_check,
    };
    let (left, program, _) = args.program.load_with_tree(messages)?;
    let name = args.program.file.display().to_string();
    let mut right = match args.against() {
        Some(options) => {
            let right = left.beside(&options)?;
            messages.remark(right.refusal(right.warnings.clone()));
            right
        }
        None => left.clone(),
    };
    let other = match &args.other {
        Some(path) => {
            let name = path.display().to_string();
            let text = read_text("", path).map_err(|diagnostic| right.refusal((*diagnostic).into()))?;
            Some((right.parse(&name, &text)?, name))
        }
        None => None,
    };
    let first = Input { session: &left, name: &name, program: &program };
    let second = match &other {
        Some((program, name)) => Input { session: &right, name, program },
        None => Input { session: &right, ..first },
    };
    let report = compare(first, second, &settings)?;
    let text = match args.program.rules.json {
        true => format!("{:#}\n", report.json()),
        false => report.text(args.all),
    };
    write_data(text.as_bytes(), None)?;
    // A failing check is no difference where both sides have it, and must not be overlooked.
    messages.remark(right.refusal(report.warnings()));
    if report.differs() { Err(Failure::Different) } else { Ok(()) }
}
