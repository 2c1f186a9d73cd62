//! Whatever is extracted is proved equal to what is on the tape, and the proof holds when it is replayed.

use super::*;
use crate::egraph::explain::check::check;
use crate::{CheckOptions, Level, RuleOptions, Session};

fn all_proved(name: &str, text: &str, level: Level) -> (usize, usize) {
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    let graph = session.check(name, text, &CheckOptions::default()).unwrap();
    let mut program = session.differentiate(&graph).unwrap();
    if level != Level::O0 {
        program.keep_record();
    }
    let optimised = session.optimise(&mut program, level).unwrap();
    let mut explainer = Explainer::new(&program, &session.rules, &optimised.graph);
    let mut goals = Vec::new();
    for (tape, extracted) in program.tape.outputs.iter().zip(&optimised.graph.outputs) {
        let (a, b) = (explainer.tape[tape.node.index()], explainer.extracted[extracted.node.index()]);
        goals.push(explainer.prove(a, b).unwrap_or_else(|| panic!("{name}: {} is not proved", tape.name)));
    }
    let checked = check(&mut explainer, level, &[], &goals).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    (explainer.proof().lemmas.len(), checked.steps)
}

#[test]
fn results_of_the_examples_are_proved() {
    for (name, text) in [
        ("nll", include_str!("../../../examples/storylm0_nll.kina")),
        ("mean", include_str!("../../../examples/storylm0_nll_mean.kina")),
        ("mlp", include_str!("../../../examples/mlp.kina")),
        ("story", include_str!("../../../examples/story/story.kina")),
    ] {
        for level in [Level::O0, Level::O1, Level::O2] {
            let (lemmas, steps) = all_proved(name, text, level);
            eprintln!("{name} {level:?}: {lemmas} lemmas, {steps} steps");
            assert!(level != Level::O2 || steps > 0);
        }
    }
}
