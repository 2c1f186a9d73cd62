//! `kina-ad rules`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::check_rules;
use super::output::{Messages, write_data};
use super::{Failure, RuleArgs, format};
use crate::Session;
use crate::diagnostics::Diagnostic;
use crate::rules::listing::{Entry, entries};
use crate::rules::stub_of;

/// List or show the loaded rules, write new ones.
#[derive(Debug, Args)]
pub struct RulesArgs {
    #[command(subcommand)]
    command: RulesCommand,
}

#[derive(Debug, Subcommand)]
enum RulesCommand {
    /// One line for each rule: its kind, its name, where it stands. The last line has the hash of all.
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
        /// `markdown` is the whole reference of operators: docs/operators.md.
        #[arg(long, value_enum, default_value_t = check_rules::CoverageFormat::Text)]
        format: check_rules::CoverageFormat,
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
    /// The VJP of an operator or a `def`, to be filled in.
    #[command(after_help = "Example: kina-ad rules stub erf > my.rules")]
    Stub {
        #[arg(value_name = "OP", required = true)]
        operators: Vec<String>,
        #[command(flatten)]
        rules: RuleArgs,
    },
    /// Format rule files in place. Tokens and comments stay as they are; without files, stdin to stdout.
    #[command(after_help = "Example: kina-ad rules fmt --check rules")]
    Fmt {
        /// Rule files, or directories of .rules files.
        #[arg(value_name = "FILE|DIR")]
        files: Vec<PathBuf>,
        /// Write nothing: print what would change, and fail if anything would.
        #[arg(long)]
        check: bool,
        /// Print diagnostics as JSON.
        #[arg(long)]
        json: bool,
    },
}

impl RulesArgs {
    pub fn json(&self) -> bool {
        match &self.command {
            RulesCommand::List { rules }
            | RulesCommand::Show { rules, .. }
            | RulesCommand::Stub { rules, .. }
            | RulesCommand::Coverage { rules, .. } => rules.json,
            RulesCommand::Check(args) => args.rules.json,
            RulesCommand::Fmt { json, .. } => *json,
        }
    }
}

pub fn rules(args: &RulesArgs, messages: &mut Messages) -> Result<(), Failure> {
    match &args.command {
        RulesCommand::List { rules } => list(rules, messages),
        RulesCommand::Show { name, rules } => show(name, rules, messages),
        RulesCommand::Stub { operators, rules } => stub(operators, rules, messages),
        RulesCommand::Check(args) => check_rules::check(args, messages),
        RulesCommand::Coverage { format, rules } => check_rules::coverage(*format, rules, messages),
        RulesCommand::Fmt { files, check, .. } => format::format(files, *check),
    }
}

fn load(args: &RuleArgs, messages: &mut Messages) -> Result<Session, Failure> {
    let session = args.session()?;
    messages.warn(&session);
    Ok(session)
}

fn list(args: &RuleArgs, messages: &mut Messages) -> Result<(), Failure> {
    let session = load(args, messages)?;
    let all = entries(&session.rules);
    let hash = session.rules.hash();
    if args.json {
        return as_json(&all.iter().collect::<Vec<_>>(), &session, Some(&hash));
    }
    let mut out: String = all.iter().map(Entry::line).collect();
    out.push_str(&format!("rules {hash}\n"));
    write_data(out.as_bytes(), None)
}

fn show(name: &str, args: &RuleArgs, messages: &mut Messages) -> Result<(), Failure> {
    let session = load(args, messages)?;
    let all = entries(&session.rules);
    let found: Vec<&Entry> = all.iter().filter(|e| e.answers_to(name)).collect();
    if found.is_empty() {
        let names: Vec<&str> = all.iter().flat_map(|e| [&*e.rule.name, e.subject()]).collect();
        return Err(Diagnostic::error("E0402", format!("there is no rule named `{name}`"))
            .did_you_mean(name, names)
            .help("`kina-ad rules list` prints all names")
            .into());
    }
    if args.json {
        return as_json(&found, &session, None);
    }
    let out: String = found.iter().map(|e| e.show(&session.sources)).collect();
    write_data(out.as_bytes(), None)
}

fn as_json(entries: &[&Entry], session: &Session, hash: Option<&str>) -> Result<(), Failure> {
    let list: Vec<Value> = entries
        .iter()
        .map(|e| {
            json!({
                "kind": e.kind, "name": &*e.rule.name, "location": &*e.rule.location, "doc": e.doc,
                "source": session.sources.text(e.span),
            })
        })
        .collect();
    let mut value = json!({ "version": 1, "rules": list });
    if let Some(hash) = hash {
        value["hash"] = json!(hash);
    }
    write_data(format!("{value:#}\n").as_bytes(), None)
}

fn stub(operators: &[String], args: &RuleArgs, messages: &mut Messages) -> Result<(), Failure> {
    let mut session = load(args, messages)?;
    let mut unknown = crate::Diagnostics::new();
    let mut remarks = crate::Diagnostics::new();
    let mut stubs = Vec::new();
    for name in operators {
        let Some(stub) = stub_of(name, &session.rules) else {
            let names = session.rules.registry.iter().map(|(_, op)| op.name());
            let names: Vec<&str> = names.chain(session.rules.defs().map(|d| &*d.name)).collect();
            unknown.push(
                Diagnostic::error("E0402", format!("there is no operator or `def` named `{name}`")).did_you_mean_or(
                    name,
                    names,
                    "`kina-ad rules list` prints the rules and `def`s that are loaded",
                ),
            );
            continue;
        };
        if let Some(vjp) = &stub.replaces {
            remarks.push(
                Diagnostic::warning("E0418", format!("`{name}` has a VJP already"))
                    .at(vjp.head.span, "this one")
                    .help(format!("the stub replaces it; `vjp {name} as NAME` would stand beside it")),
            );
        } else if !stub.is_needed {
            remarks.push(
                Diagnostic::warning("E0418", format!("`{name}` needs no VJP: its result carries no cotangent"))
                    .help("leave the rule out"),
            );
        }
        stubs.push((name, stub));
    }
    if unknown.has_errors() {
        return Err(session.refusal(unknown).into());
    }
    session.warnings = remarks;
    messages.warn(&session);
    let out = if args.json {
        let list: Vec<Value> = stubs.iter().map(|(name, stub)| json!({ "name": name, "text": stub.text })).collect();
        format!("{:#}\n", json!({ "version": 1, "stubs": list }))
    } else {
        stubs.iter().map(|(_, stub)| stub.text.as_str()).collect::<Vec<_>>().join("\n")
    };
    write_data(out.as_bytes(), None)
}
