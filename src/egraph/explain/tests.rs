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

/// The NLL, optimised.
struct Nll {
    session: Session,
    program: Differentiated,
    optimised: crate::Optimised,
}

impl Nll {
    fn new() -> Nll {
        let mut session = Session::new(&RuleOptions::default()).unwrap();
        let text = include_str!("../../../examples/storylm0_nll.kina");
        let graph = session.check("nll", text, &CheckOptions::default()).unwrap();
        let mut program = session.differentiate(&graph).unwrap();
        program.keep_record();
        let optimised = session.optimise(&mut program, Level::O2).unwrap();
        Nll { session, program, optimised }
    }

    /// Its results, proved.
    fn proved(&self) -> (Explainer<'_>, Vec<LemmaId>) {
        let mut explainer = Explainer::new(&self.program, &self.session.rules, &self.optimised.graph);
        let mut goals = Vec::new();
        for (tape, extracted) in self.program.tape.outputs.iter().zip(&self.optimised.graph.outputs) {
            let (a, b) = (explainer.tape[tape.node.index()], explainer.extracted[extracted.node.index()]);
            goals.push(explainer.prove(a, b).unwrap());
        }
        (explainer, goals)
    }

    /// The proof with something changed in it, by `change`, is refused.
    fn refused(&self, what: &str, change: impl Fn(&mut Explainer<'_>)) {
        let (mut explainer, goals) = self.proved();
        assert!(check(&mut explainer, Level::O2, &[], &goals).is_ok());
        change(&mut explainer);
        let outcome = check(&mut explainer, Level::O2, &[], &goals);
        assert!(outcome.is_err(), "{what} is accepted: {outcome:?}");
    }
}

/// The rule links of a proof: lemma, place in it, equation.
fn rule_links(explainer: &Explainer<'_>) -> Vec<(usize, usize, EquationId)> {
    let mut found = Vec::new();
    for (l, lemma) in explainer.proof().lemmas.iter().enumerate() {
        for (i, link) in lemma.links.iter().enumerate() {
            if let proof::By::Rule { equation, .. } = link.by {
                found.push((l, i, equation));
            }
        }
    }
    found
}

#[test]
fn whatever_is_changed_in_a_proof_is_found() {
    let nll = Nll::new();
    let count = rule_links(&nll.proved().0).len();
    assert!(count >= 8);
    for i in 0..count {
        let equation = |e: &Explainer<'_>| rule_links(e)[i].2 as usize;
        nll.refused("another right side", |e| {
            let at = equation(e);
            e.equations[at].right = e.equations[at].left;
        });
        nll.refused("a link left out", |e| {
            let (lemma, link, _) = rule_links(e)[i];
            e.prover.proof.lemmas[lemma].links.remove(link);
        });
        nll.refused("a link the other way round", |e| {
            let (lemma, link, _) = rule_links(e)[i];
            if let proof::By::Rule { reversed, .. } = &mut e.prover.proof.lemmas[lemma].links[link].by {
                *reversed = !*reversed;
            }
        });
        nll.refused("another rule", |e| {
            let (at, rules) = (equation(e), e.rules);
            if let Ground::Rewrite { rule, .. } = &mut e.equations[at].by {
                *rule = rules.rewrites().iter().find(|r| r.head.rule.name != rule.head.rule.name).unwrap().clone();
            }
        });
        nll.refused("a rule that is none of the rule set", |e| {
            let at = equation(e);
            if let Ground::Rewrite { rule, .. } = &mut e.equations[at].by {
                *rule = Arc::new((**rule).clone());
            }
        });
        nll.refused("a metavariable that stands for something else", |e| {
            let at = equation(e);
            let terms: Vec<TermId> = (0..e.bank.len()).map(|t| TermId(t as u32)).collect();
            if let Ground::Rewrite { tensors, attrs, .. } = &mut e.equations[at].by {
                match tensors.iter_mut().flatten().next() {
                    Some(term) => *term = *terms.iter().find(|t| *t != term).unwrap(),
                    None => attrs.iter_mut().for_each(|a| *a = Some(AttrValue::Int(77))),
                }
            }
        });
    }
    nll.refused("a lemma that rests on itself", |e| {
        let goal = e.prover.proof.lemmas.len() - 1;
        for link in &mut e.prover.proof.lemmas[goal].links {
            if let proof::By::Operands(lemmas) = &mut link.by {
                lemmas.iter_mut().for_each(|(_, lemma)| *lemma = goal);
            }
        }
    });
}

/// A chain of rewrites at every level of a deep term shares its lemmas: neither the proof nor the time for it explodes.
#[test]
fn a_value_that_is_used_twice_at_every_level_is_proved_once() {
    let levels = 60;
    let mut lines = String::from("let f = fn(x: tensor<F64, [2], @host>) -> tensor<F64, [2], @host> {\n");
    lines.push_str("let y0 = x in\n");
    for i in 0..levels {
        // Each level is `a + a` with `-(-a)` in it, which one rule takes away.
        lines.push_str(&format!("let y{} = (-(-y{i})).maximum(y{i} * 0.5) in\n", i + 1));
    }
    lines.push_str(&format!("y{levels} }} in\nlet x = tensor<F64, [2], @host> in\nf(x)"));
    let (lemmas, steps) = all_proved("twice", &lines, Level::O2);
    assert!(steps >= levels && lemmas < 10 * levels, "{lemmas} lemmas, {steps} steps");
}
