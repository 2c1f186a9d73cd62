//! Replays proofs, trusting neither egg nor whoever found them.
//!
//! A lemma's links must join its sides. A link by a rule is written out once more from the rule's text: left side, conditions, attributes,
//! right side, types; its facts are proved of the very terms. A link by operands needs equal heads, and lemmas for the operands that differ.

use std::collections::{BTreeMap, BTreeSet};

use super::bank::TermId;
use super::closure::{Closure, EquationId};
use super::facts::Facts;
use super::ground::{Ground, GroundError};
use super::proof::{By, LemmaId, Proof, Prover};
use super::{Equation, Explainer};
use crate::egraph::patterns::commutes;
use crate::ir::{Level, OpId, RuleRef};
use crate::rules::term::{Bindings, TermError};
use crate::rules::{DomainFact, Pattern, Rewrite, RewriteClass};

/// What a replay went through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    pub lemmas: usize,
    /// Rule instances.
    pub steps: usize,
    /// Conditions that were computed again.
    pub conditions: usize,
    /// Facts of domains that were proved again.
    pub facts: usize,
    /// Each rule with the number of its instances.
    pub rules: BTreeMap<RuleRef, usize>,
}

/// Why a proof is none. Each is a fault of kina-ad.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Fault {
    #[error("lemma {0} is used before it is proved")]
    Order(LemmaId),
    #[error("the links of lemma {0} do not join its sides")]
    Gap(LemmaId),
    #[error("`{0}` is not among the rules in effect")]
    Unknown(RuleRef),
    #[error("`{0}` is not what it is said to be here")]
    Sides(RuleRef),
    #[error("`{0}` joins values of different type")]
    Types(RuleRef),
    #[error("`{0}` is used with operands the other way round, and no rule says that they may be")]
    Turned(RuleRef),
    #[error("`{rule}` needs a fact about its operands that is not proved")]
    Fact { rule: RuleRef },
    #[error("`{rule}`: {error}")]
    Ground { rule: RuleRef, error: Box<GroundError> },
    #[error("operands differ without a lemma that they are equal, in lemma {0}")]
    Operands(LemmaId),
}

struct Checker<'e, 'a> {
    explainer: &'e mut Explainer<'a>,
    level: Level,
    /// Operators that a rule in effect says to be commutative.
    commutative: BTreeSet<OpId>,
    equations: BTreeSet<EquationId>,
    checked: Checked,
}

/// Replays some instances of rules, and everything that some lemmas of an explainer's proofs rest on.
///
/// # Errors
/// The first step that does not hold.
pub fn check(
    explainer: &mut Explainer<'_>,
    level: Level,
    instances: &[EquationId],
    goals: &[LemmaId],
) -> Result<Checked, Fault> {
    let allowed = |r: &Rewrite| level == Level::O2 || r.class == RewriteClass::Exact;
    let commutative = explainer.rules.rewrites().iter().filter(|r| allowed(r)).filter_map(|r| commutes(r)).collect();
    let mut checker =
        Checker { explainer, level, commutative, equations: BTreeSet::new(), checked: Checked::default() };
    for instance in instances {
        checker.equation(*instance)?;
    }
    let proof = checker.explainer.proof().clone();
    checker.proof(&proof, goals)?;
    Ok(checker.checked)
}

impl Checker<'_, '_> {
    fn proof(&mut self, proof: &Proof, goals: &[LemmaId]) -> Result<(), Fault> {
        // Lemmas come after those that they use, so that one walk downwards finds all that are needed.
        let mut needed = vec![false; proof.lemmas.len()];
        for goal in goals {
            *needed.get_mut(*goal).ok_or(Fault::Order(*goal))? = true;
        }
        for id in (0..proof.lemmas.len()).rev() {
            if needed[id] {
                self.lemma(proof, id, &mut needed)?;
            }
        }
        Ok(())
    }

    fn lemma(&mut self, proof: &Proof, id: LemmaId, needed: &mut [bool]) -> Result<(), Fault> {
        let lemma = &proof.lemmas[id];
        self.checked.lemmas += 1;
        let mut at = lemma.left;
        for link in &lemma.links {
            if link.from != at {
                return Err(Fault::Gap(id));
            }
            match &link.by {
                By::Rule { equation, reversed } => {
                    let sides = self.equation(*equation)?;
                    let wanted = if *reversed { (link.to, link.from) } else { (link.from, link.to) };
                    if sides != wanted {
                        return Err(Fault::Gap(id));
                    }
                }
                By::Operands(lemmas) => self.operands(proof, id, (link.from, link.to), lemmas, needed)?,
            }
            at = link.to;
        }
        if at == lemma.right { Ok(()) } else { Err(Fault::Gap(id)) }
    }

    fn operands(
        &self,
        proof: &Proof,
        id: LemmaId,
        (from, to): (TermId, TermId),
        lemmas: &[(usize, LemmaId)],
        needed: &mut [bool],
    ) -> Result<(), Fault> {
        let bank = &self.explainer.bank;
        let (before, after) = (bank.operands(from), bank.operands(to));
        if bank.head(from) != bank.head(to) || before.len() != after.len() {
            return Err(Fault::Operands(id));
        }
        for (place, (a, b)) in before.iter().zip(after).enumerate() {
            if a == b {
                continue;
            }
            let Some((_, used)) = lemmas.iter().find(|(p, _)| *p == place) else { return Err(Fault::Operands(id)) };
            // What is proved before cannot rest on this.
            if *used >= id {
                return Err(Fault::Order(*used));
            }
            if (proof.lemmas[*used].left, proof.lemmas[*used].right) != (*a, *b) {
                return Err(Fault::Operands(id));
            }
            needed[*used] = true;
        }
        Ok(())
    }

    /// Writes an equation out again; its sides.
    fn equation(&mut self, id: EquationId) -> Result<(TermId, TermId), Fault> {
        let equation: Equation = self.explainer.equations[id as usize].clone();
        let sides = (equation.left, equation.right);
        *self.checked.rules.entry(equation.by.rule().clone()).or_default() += 1;
        self.checked.steps += 1;
        if !self.equations.insert(id) {
            return Ok(sides);
        }
        let rule = equation.by.rule().clone();
        if !self.is_in_effect(&equation.by) {
            return Err(Fault::Unknown(rule));
        }
        let again = equation.by.sides(&mut self.explainer.bank);
        let again = again.map_err(|error| Fault::Ground { rule: rule.clone(), error: Box::new(error) })?;
        if again != sides {
            return Err(Fault::Sides(rule));
        }
        if self.explainer.bank.ty(sides.0) != self.explainer.bank.ty(sides.1) {
            return Err(Fault::Types(rule));
        }
        if let Ground::Rewrite { rule: rewrite, swapped, tensors, attrs } = &equation.by {
            let (mut calls, mut turned) = (Vec::new(), swapped.iter());
            in_order(&rewrite.left, &mut calls);
            if calls.iter().any(|op| turned.next() == Some(&true) && !self.commutative.contains(op)) {
                return Err(Fault::Turned(rule));
            }
            self.checked.conditions += rewrite.head.conditions.len();
            if !rewrite.head.domain.is_empty() {
                let mut bindings = Bindings::new(rewrite.head.vars.len(), &rewrite.head.locals);
                bindings.tensors.clone_from(tensors);
                bindings.attrs.clone_from(attrs);
                for fact in &rewrite.head.domain {
                    self.fact(rewrite, fact, &mut bindings, equation.application)?;
                    self.checked.facts += 1;
                }
            }
        }
        if let Ground::Vjp { rule, .. } = &equation.by {
            self.checked.conditions += rule.head.conditions.len();
        }
        Ok(sides)
    }

    /// Is the rule one of the rule set's, and does the level have it?
    fn is_in_effect(&self, by: &Ground) -> bool {
        let rules = self.explainer.rules;
        match by {
            Ground::Rewrite { rule, .. } | Ground::Commutes { rule, .. } => {
                let allowed = match self.level {
                    Level::O0 => false,
                    Level::O1 => rule.class == RewriteClass::Exact,
                    Level::O2 => true,
                };
                allowed && rules.rewrites().iter().any(|r| std::sync::Arc::ptr_eq(r, rule))
            }
            Ground::Definition { def, .. } => {
                rules.def(&def.name).is_some_and(|known| std::sync::Arc::ptr_eq(known, def))
            }
            Ground::Vjp { rule, .. } => rules.vjps(rule.op).iter().any(|r| std::sync::Arc::ptr_eq(r, rule)),
        }
    }

    /// Proves a fact of the term that a metavariable stands for.
    fn fact(
        &mut self,
        rewrite: &Rewrite,
        fact: &DomainFact,
        bindings: &mut Bindings<'_, TermId>,
        application: Option<usize>,
    ) -> Result<(), Fault> {
        let rule = &rewrite.head.rule;
        let unproved = || Fault::Fact { rule: rule.clone() };
        let mut builder = super::bank::BankBuilder { bank: &mut self.explainer.bank };
        let bound = bindings
            .attr(&fact.bound, &mut builder)
            .map_err(|error: TermError| Fault::Ground { rule: rule.clone(), error: error.into() })?;
        let term = bindings.tensors[fact.tensor.0 as usize].ok_or_else(unproved)?;
        let bound = bound.as_float().ok_or_else(unproved)?;
        let proved = |facts: &mut Facts<'_>| {
            facts.holds(term, fact.compare, bound) && (!rewrite.needs_numbers || facts.never_nan(term))
        };
        if proved(&mut Facts::new(&self.explainer.bank, None)) {
            return Ok(());
        }
        // By another form of the same value, known before this application.
        let mut before = Closure::default();
        before.extend(&self.explainer.bank);
        for (id, equation) in self.explainer.equations.iter().enumerate() {
            if equation.application.is_none_or(|a| application.is_some_and(|this| a < this)) {
                before.equate(&self.explainer.bank, equation.left, equation.right, id as EquationId);
            }
        }
        let mut facts = Facts::new(&self.explainer.bank, Some(&before));
        if !proved(&mut facts) {
            return Err(unproved());
        }
        let mut prover = Prover::default();
        let used = std::mem::take(&mut facts.used);
        let goals = used
            .into_iter()
            .map(|(a, b)| prover.prove(&self.explainer.bank, &before, a, b))
            .collect::<Option<Vec<LemmaId>>>()
            .ok_or_else(unproved)?;
        self.proof(&prover.proof, &goals)
    }
}

/// The calls of a left side as they are written.
fn in_order(pattern: &Pattern, calls: &mut Vec<OpId>) {
    if let Pattern::Op { op, operands, .. } = pattern {
        calls.push(*op);
        operands.iter().for_each(|o| in_order(o, calls));
    }
}
