//! Facts about values that `domain` lines ask for, proved of terms.
//!
//! As [`ranges`](crate::egraph) does for e-classes: from the registry's ranges of operators, some levels down. What is known of a
//! term is known of every term that is equal to it, but only by equations older than the step that asks, so that no step supports itself.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::bank::{Bank, Head, TermId};
use super::closure::Closure;
use crate::ir::{Call, Range, TensorType};
use crate::rules::DomainCompare;

/// How far below a term its operands are looked at.
const DEPTH: usize = 8;
/// How many terms are looked at for one fact.
const TERMS: usize = 512;
/// How many terms of a class.
const MEMBERS: usize = 64;

/// What is known of terms.
pub(super) struct Facts<'a> {
    bank: &'a Bank,
    /// Which terms are equal, if that may be used.
    equal: Option<&'a Closure>,
    // Looked up only, never iterated.
    ranges: FxHashMap<TermId, Range>,
    numbers: FxHashMap<TermId, bool>,
    /// The equalities that were used.
    pub used: BTreeSet<(TermId, TermId)>,
}

impl<'a> Facts<'a> {
    pub fn new(bank: &'a Bank, equal: Option<&'a Closure>) -> Facts<'a> {
        Facts { bank, equal, ranges: FxHashMap::default(), numbers: FxHashMap::default(), used: BTreeSet::new() }
    }

    /// Is `term <compare> bound` for every element that is not NaN?
    pub fn holds(&mut self, term: TermId, compare: DomainCompare, bound: f64) -> bool {
        let range = self.range(term, DEPTH);
        match compare {
            DomainCompare::Lt => range.hi < bound,
            DomainCompare::Le => range.hi <= bound,
            DomainCompare::Gt => range.lo > bound,
            DomainCompare::Ge => range.lo >= bound,
        }
    }

    /// Is no element NaN?
    pub fn never_nan(&mut self, term: TermId) -> bool {
        self.is_number(term, DEPTH)
    }

    /// The term, and what is known to be equal to it.
    fn forms(&self, term: TermId) -> Vec<TermId> {
        let others = self.equal.map_or(&[][..], |closure| closure.members(term));
        std::iter::once(term).chain(others.iter().copied().filter(|t| *t != term).take(MEMBERS)).collect()
    }

    fn range(&mut self, term: TermId, depth: usize) -> Range {
        let ty = self.bank.ty(term).clone();
        if let Some(known) = self.ranges.get(&term) {
            return *known;
        }
        let mut range = Range::of_type(&ty);
        if depth == 0 || self.ranges.len() >= TERMS {
            return range;
        }
        // On the way back to itself only its type is known.
        self.ranges.insert(term, range);
        for form in self.forms(term) {
            let narrower = range.intersect(self.call(form, &ty, depth));
            if narrower != range && form != term {
                self.used.insert((term, form));
            }
            range = narrower;
        }
        self.ranges.insert(term, range);
        range
    }

    fn call(&mut self, term: TermId, ty: &TensorType, depth: usize) -> Range {
        let bank = self.bank;
        let Head::Op(op, attrs) = bank.head(term) else { return Range::of_type(ty) };
        let operands = bank.operands(term);
        let ranges: Vec<Range> = operands.iter().map(|o| self.range(*o, depth - 1)).collect();
        let types: Vec<&TensorType> = operands.iter().map(|o| &**bank.ty(*o)).collect();
        let call = Call { operands: &types, attrs };
        let operator = bank.registry().op(*op);
        match (&ranges[..], operands) {
            ([first, _, ..], [one, rest @ ..]) if rest.iter().all(|o| o == one) => {
                operator.range_of_one(*first, call, ty)
            }
            _ => operator.range(&ranges, call, ty),
        }
    }

    fn is_number(&mut self, term: TermId, depth: usize) -> bool {
        if !self.bank.ty(term).dtype.is_float() {
            return true;
        }
        if let Some(known) = self.numbers.get(&term) {
            return *known;
        }
        if depth == 0 || self.numbers.len() >= TERMS {
            return false;
        }
        // On the way back to itself a term proves nothing.
        self.numbers.insert(term, false);
        let bank = self.bank;
        let proved = self.forms(term).into_iter().find(|form| {
            let Head::Op(op, attrs) = bank.head(*form) else { return false };
            let types: Vec<&TensorType> = bank.operands(*form).iter().map(|o| &**bank.ty(*o)).collect();
            bank.registry().op(*op).keeps_numbers(Call { operands: &types, attrs })
                && bank.operands(*form).iter().all(|o| self.is_number(*o, depth - 1))
        });
        if let Some(form) = proved.filter(|form| *form != term) {
            self.used.insert((term, form));
        }
        self.numbers.insert(term, proved.is_some());
        proved.is_some()
    }
}
