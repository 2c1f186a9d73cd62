//! `kina-ad rules`

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::check_rules;
use super::output::{Messages, write_data};
use super::{Failure, RuleArgs};
use crate::diagnostics::Diagnostic;
use crate::rules::listing::{Entry, entries};

/// List or show the loaded rules.
#[derive(Debug, Args)]
pub struct RulesArgs {
    #[command(subcommand)]
    command: RulesCommand,
}

#[derive(Debug, Subcommand)]
enum RulesCommand {
    /// One line for each rule: its kind, its name, where it stands.
    #[command(after_help = "Example: kina-ad rules list --profile phase1")]
    List {
        #[command(flatten)]
        rules: RuleArgs,
    },
    /// Verify every rule without a test written for it: VJPs against finite differences, rewrites against what their class promises.
    ///
    /// Given files, their rules are candidates: each is checked in the place of a loaded rule of its name. Verdicts go to the
    /// standard output; refusals, with the point at which a rule is wrong, to the standard error. Exit 1 if one is refused.
    #[command(after_help = "Example: kina-ad rules check my.rules --watch")]
    Check(check_rules::CheckArgs),
    /// Operator by operator: its VJP, how often it can be differentiated, the verdict and the worst error.
    #[command(after_help = "Example: kina-ad rules coverage --rules my.rules")]
    Coverage {
        #[command(flatten)]
        rules: RuleArgs,
    },
    /// The source of a rule, by the name that `list` prints or by operator.
    #[command(after_help = "Example: kina-ad rules show log_softmax")]
    Show {
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        rules: RuleArgs,
    },
}

impl RulesArgs {
    pub fn rules(&self) -> &RuleArgs {
        match &self.command {
            RulesCommand::List { rules } | RulesCommand::Show { rules, .. } | RulesCommand::Coverage { rules } => rules,
            RulesCommand::Check(args) => &args.rules,
        }
    }
}

pub fn rules(args: &RulesArgs, messages: &mut Messages) -> Result<(), Failure> {
    match &args.command {
        RulesCommand::Check(args) => return check_rules::check(args, messages),
        RulesCommand::Coverage { rules } => return check_rules::coverage(rules, messages),
        _ => {}
    }
    let session = args.rules().session()?;
    messages.warn(&session);
    let all = entries(&session.rules);
    let chosen: Vec<&Entry> = match &args.command {
        RulesCommand::Show { name, .. } => {
            let found: Vec<&Entry> = all.iter().filter(|e| e.answers_to(name)).collect();
            if found.is_empty() {
                let names: Vec<&str> = all.iter().flat_map(|e| [&*e.rule.name, e.subject()]).collect();
                return Err(Diagnostic::error("E0402", format!("there is no rule named `{name}`"))
                    .did_you_mean(name, names)
                    .help("`kina-ad rules list` prints all names")
                    .into());
            }
            found
        }
        _ => all.iter().collect(),
    };
    let show = matches!(args.command, RulesCommand::Show { .. });
    if args.rules().json {
        let list: Vec<Value> = chosen
            .iter()
            .map(|e| {
                json!({
                    "kind": e.kind, "name": &*e.rule.name, "location": &*e.rule.location, "doc": e.doc,
                    "source": session.sources.text(e.span),
                })
            })
            .collect();
        let text = format!("{:#}\n", json!({ "version": 1, "rules": list }));
        return write_data(text.as_bytes(), None);
    }
    let mut out = String::new();
    for entry in chosen {
        if show {
            out.push_str(&entry.show(&session.sources));
        } else {
            out.push_str(&entry.line());
        }
    }
    write_data(out.as_bytes(), None)
}
