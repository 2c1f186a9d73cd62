//! `kina-ad snapshot`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::output::{Messages, write_data};
use super::{CotangentArg, Failure, LoadedArgs};
use crate::diagnostics::Diagnostics;
use crate::ir::Level;
use crate::review::files::find;
use crate::review::gate::{Entry, Wanted, accept, check, summary};
use crate::review::show;
use crate::{Refusal, Session};

/// Check or accept snapshots of extracted graphs.
///
/// The snapshot of NAME.kina is NAME.snap beside it: a text with the extracted graph, the rule behind every value, cost, bytes, peak
/// memory and the verdict on the numbers.
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    #[command(subcommand)]
    command: SnapshotCommand,
}

#[derive(Debug, Subcommand)]
enum SnapshotCommand {
    /// Compare programs with their snapshots by meaning; exit 1 if one differs or is missing. Nothing is written.
    ///
    /// Level, cotangent and seed are those of the snapshot unless given.
    #[command(after_help = "Example: kina-ad snapshot check examples --rules my.rules")]
    Check(CommonArgs),
    /// Write the snapshots of programs. One whose gradient check fails is refused.
    #[command(after_help = "Example: kina-ad snapshot accept examples/mlp.kina")]
    Accept {
        /// Accept also what a check says is wrong. The snapshot records it, and `snapshot check` goes on telling.
        #[arg(long)]
        even_if_wrong: bool,
        #[command(flatten)]
        common: CommonArgs,
    },
}

#[derive(Debug, Args)]
struct CommonArgs {
    /// Programs, or directories: all .kina files in them and below, hidden ones left out.
    #[arg(value_name = "FILE|DIR", default_value = ".")]
    paths: Vec<PathBuf>,
    /// 0: no rewrites, the literal lowering; 1: rewrites that are equal on every float; 2: all. As in the snapshot, or 2.
    #[arg(short = 'O', value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=2))]
    level: Option<u8>,
    /// Where the cotangent comes from: ones, or an input of that name. As in the snapshot, or ones.
    #[arg(long, value_enum)]
    cotangent: Option<CotangentArg>,
    /// Do not look at numbers, where that takes too long. An accepted snapshot says that it was not checked.
    #[arg(long)]
    no_check: bool,
    /// Show everything that differs, however long.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    loaded: LoadedArgs,
    /// Seed of generated inputs and sampled checks. As in the snapshot, or 0.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print data and diagnostics as JSON.
    #[arg(long)]
    json: bool,
}

impl SnapshotArgs {
    fn common(&self) -> &CommonArgs {
        match &self.command {
            SnapshotCommand::Check(common) | SnapshotCommand::Accept { common, .. } => common,
        }
    }

    pub fn json(&self) -> bool {
        self.common().json
    }
}

impl CommonArgs {
    fn session(&self) -> Result<Session, Refusal> {
        Session::new(&self.loaded.options())
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            level: self.level.map(|level| Level::ALL[usize::from(level).min(Level::ALL.len() - 1)]),
            cotangent_input: self.cotangent.map(|c| c == CotangentArg::Input),
            seed: self.seed,
            no_check: self.no_check,
        }
    }
}

pub fn snapshot(args: &SnapshotArgs, messages: &mut Messages) -> Result<(), Failure> {
    let common = args.common();
    let mut session = common.session()?;
    messages.warn(&session);
    let found = find(&common.paths);
    let wanted = common.wanted();
    let mut bag = Diagnostics::new();
    found.diagnostics().into_iter().for_each(|fault| bag.push(fault));
    let mut entries: Vec<Entry> = Vec::new();
    for path in &found.programs {
        let entry = match &args.command {
            SnapshotCommand::Check(_) => check(&mut session, path, &wanted, &mut bag),
            SnapshotCommand::Accept { even_if_wrong, .. } => {
                accept(&mut session, path, &wanted, *even_if_wrong, &mut bag)
            }
        };
        if !common.json {
            write_data(show::entry(&entry, common.all).as_bytes(), None)?;
        }
        entries.push(entry);
    }
    let text = if common.json {
        let programs: Vec<Value> = entries.iter().map(show::entry_json).collect();
        format!("{:#}\n", json!({ "version": 1, "rules": session.rules.hash(), "programs": programs }))
    } else {
        show::totals(&entries)
    };
    write_data(text.as_bytes(), None)?;
    bag.extend(summary(&entries));
    let refusal = session.refusal(bag);
    if refusal.diagnostics.has_errors() {
        return Err(refusal.into());
    }
    messages.remark(refusal);
    Ok(())
}
