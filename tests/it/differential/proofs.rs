//! Every value of a generated program has a derivation, and its proof holds when it is replayed.

use kina_ad::explore::why::{Options, Why};
use kina_ad::ir::print::Printer;
use kina_ad::{CheckOptions, Level};

use super::compare::Disagreement;
use super::{config, counterexample, keep, session};

#[test]
fn every_value_of_generated_programs_is_proved() {
    keep(counterexample(config(40, 61), session(&[]), false, |session, case| {
        let wrong = |what: String| Disagreement { way: None, what };
        let graph = session
            .check("case.kina", &case.to_string(), &CheckOptions::default())
            .map_err(|refusal| wrong(refusal.to_string()))?;
        for level in [Level::O0, Level::O1, Level::O2] {
            let Ok(mut program) = session.differentiate(&graph) else { return Ok(()) };
            if level != Level::O0 {
                program.keep_record();
            }
            let optimised = session.optimise(&mut program, level).map_err(|r| wrong(r.to_string()))?;
            let printer = Printer::new(&optimised.graph, &session.rules.registry, &session.sources);
            let names: Vec<String> = printer.names().to_vec();
            let mut why = Why::new(&program, &optimised, &session.rules, &session.sources);
            for name in &names {
                let all = name.len() % 2 == 0;
                match why.answer(name, Options { proof: true, all }) {
                    Ok(answer) if answer.checked.is_some() => {}
                    Ok(_) => return Err(wrong(format!("{level:?}: `{name}` was not replayed"))),
                    Err(diagnostic) => return Err(wrong(format!("{level:?}: {}", diagnostic.message))),
                }
            }
        }
        Ok(())
    }));
}
