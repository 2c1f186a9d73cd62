//! Runs the jobs that are timed against others.

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use kina_ad::{RuleOptions, Session, Tensor};

use crate::contest::{Contestant, Times, Turns, compare, quantile};
use crate::environment::{Environment, Framework, JAX, PYTORCH};
use crate::job::{Job, nll, optimised};
use crate::jobs::{BY_HAND, ENTRIES, JIT, LARGE, Over, Timed};
use crate::peers::{Peer, Way};
use crate::reference::Reference;
use crate::report::{Goal, Report, Spread, Unit, contest};

/// The frameworks that are there.
pub struct Peers(Vec<(&'static str, Rc<RefCell<Peer>>)>);

impl Peers {
    /// Starts those that can be started; the report says which cannot.
    pub fn start(target: &Path, report: &mut Report) -> Peers {
        let mut peers = Peers(Vec::new());
        let environment = match Environment::new(target.join("peers")) {
            Ok(environment) => environment,
            Err(error) => {
                report.missing.push(format!("PyTorch and JAX. {error}."));
                return peers;
            }
        };
        for framework in [PYTORCH, JAX] {
            let started = environment.command(&framework).map_err(|e| e.to_string());
            match started.and_then(|command| Peer::start(framework.name, command).map_err(|e| e.to_string())) {
                Ok(peer) => {
                    let versions = peer.versions.clone().into_iter();
                    // One interpreter runs both.
                    let new: Vec<_> = versions.filter(|version| !report.about.contains(version)).collect();
                    report.about.extend(new);
                    peers.0.push((framework.name, Rc::new(RefCell::new(peer))));
                }
                Err(error) => report.missing.push(format!("{}. {error}.", framework.name)),
            }
        }
        peers
    }

    pub fn none() -> Peers {
        Peers(Vec::new())
    }

    fn get(&self, framework: &Framework) -> Option<&Rc<RefCell<Peer>>> {
        self.0.iter().find(|(name, _)| *name == framework.name).map(|(_, peer)| peer)
    }

    /// Gives everybody the inputs of a job. Who cannot take them is out from then on, and the report says so.
    fn load(&mut self, function: &str, job: &Job, folder: &Path, report: &mut Report) {
        self.0.retain(|(name, peer)| match peer.borrow_mut().load(function, &job.inputs, folder) {
            Ok(()) => true,
            Err(error) => {
                report.missing.push(format!("{name} from \"{function}\" on. {error}."));
                false
            }
        });
    }
}

/// Times one job.
///
/// # Errors
/// A failure of ours, or contestants that compute different things.
pub fn run(
    timed: &Timed,
    peers: &mut Peers,
    folder: &Path,
    rounds: usize,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    let job = Job::new(&timed.source)?;
    let reference;
    let mut contestants: Vec<Box<dyn Contestant>> = vec![Box::new(job.contestant()?)];
    if timed.by_hand {
        reference = Reference::compile(&Reference::source())?;
        contestants.push(Box::new(reference.contestant(&job)?));
    }
    peers.load(timed.function, &job, folder, report);
    for entry in &ENTRIES {
        let Some(peer) = peers.get(&entry.framework) else { continue };
        if entry.only.is_some_and(|only| only != timed.function) {
            continue;
        }
        match Way::new(entry.name, entry.way, peer.clone(), folder) {
            Ok(way) => contestants.push(Box::new(way)),
            Err(error) => report.missing.push(format!("{} in \"{}\". {error}.", entry.name, timed.title)),
        }
    }
    let times = compare(&mut contestants, &Turns::new(rounds))?;
    let [ours, others @ ..] = &times[..] else { return Ok(()) };
    for goal in timed.goals {
        let (named, name) = match &goal.over {
            Over::One(name) => (others.iter().find(|t| t.name == *name), (*name).to_owned()),
            Over::BestPeer => {
                let median = |t: &&Times| quantile(&t.rounds, 0.5);
                let peers = others.iter().filter(|t| t.name != BY_HAND);
                let best = peers.min_by(|a, b| median(a).total_cmp(&median(b)));
                (best, best.map_or("best peer".to_owned(), |b| format!("best peer, {}", b.name)))
            }
        };
        report.goals.push(Goal {
            job: format!("{} / {name}", timed.title),
            unit: Unit::Ratio,
            asked: goal.most,
            measured: named.map(|t| Spread::of(&ours.over(t))),
        });
    }
    report.sections.push(contest(&timed.title, timed.text, &times, ours));
    Ok(())
}

/// From a text to code that can be called.
struct FromSource {
    name: &'static str,
    source: String,
    /// With the rules loaded; `None` loads them every time.
    session: Option<Session>,
}

impl Contestant for FromSource {
    fn name(&self) -> &str {
        self.name
    }

    fn time(&mut self, repeats: u32) -> Result<f64, Box<dyn Error>> {
        let mut seconds = 0.0;
        for _ in 0..repeats {
            // A session keeps every text it is given.
            let loaded = self.session.clone();
            let start = Instant::now();
            let mut session = match loaded {
                Some(session) => session,
                None => Session::new(&RuleOptions::default())?,
            };
            let program = optimised(&mut session, &self.source)?;
            let code = session.compile(&program)?;
            seconds += start.elapsed().as_secs_f64();
            drop(code);
        }
        Ok(seconds)
    }

    fn results(&mut self) -> Result<Vec<Tensor>, Box<dyn Error>> {
        Ok(Vec::new())
    }
}

/// From a function that JAX has not seen to code that can be called.
struct Traced(Rc<RefCell<Peer>>);

impl Contestant for Traced {
    fn name(&self) -> &str {
        JIT
    }

    fn time(&mut self, repeats: u32) -> Result<f64, Box<dyn Error>> {
        let mut peer = self.0.borrow_mut();
        Ok((0..repeats).map(|_| peer.compile()).sum::<Result<f64, _>>()?)
    }

    fn results(&mut self) -> Result<Vec<Tensor>, Box<dyn Error>> {
        Ok(Vec::new())
    }
}

/// Times how long it takes until code can be called.
///
/// # Errors
/// A failure of ours.
pub fn compilation(peers: &mut Peers, folder: &Path, rounds: usize, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let source = nll(&LARGE);
    let from_source = |name, session| FromSource { name, source: source.clone(), session };
    let mut contestants: Vec<Box<dyn Contestant>> = vec![
        Box::new(from_source("kina-ad -O2", Some(Session::new(&RuleOptions::default())?))),
        Box::new(from_source("kina-ad -O2, loading the rules too", None)),
    ];
    peers.load("nll", &Job::new(&source)?, folder, report);
    if let Some(peer) = peers.get(&JAX) {
        contestants.push(Box::new(Traced(peer.clone())));
    }
    let times = compare(&mut contestants, &Turns::new(rounds))?;
    let [ours, others @ ..] = &times[..] else { return Ok(()) };
    let jit = others.iter().find(|t| t.name == JIT);
    report.goals.push(Goal {
        job: format!("source to callable code, NLL {LARGE:?} / {JIT}'s trace, lower and compile"),
        unit: Unit::Ratio,
        asked: ("1/2", 0.5),
        measured: jit.map(|t| Spread::of(&ours.over(t))),
    });
    let text = "From text to machine code in this process: parse, check, differentiate, optimise, extract, schedule, lower, compile. \
        For JAX: trace, lower and compile a function that it has not seen, all caches cleared.";
    report.sections.push(contest("Source to callable code", text, &times, ours));
    Ok(())
}
