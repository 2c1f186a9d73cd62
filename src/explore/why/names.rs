//! What terms are called: values by their names, everything else by a short expression.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::egraph::explain::Explainer;
use crate::egraph::explain::bank::{Head, TermId};
use crate::ir::print::Printer;
use crate::ir::{AttrValue, NodeId, NodeKind, Param};

/// How many calls within each other a short expression shows.
const DEPTH: usize = 2;
/// How many characters a short expression may have.
const WIDTH: usize = 44;

/// Names of terms.
pub(super) struct Names {
    // Looked up only, never iterated.
    known: FxHashMap<TermId, String>,
    extracted: FxHashSet<TermId>,
}

/// A part of a call, in the order in which it is written.
pub(super) enum Piece {
    /// Operand by number.
    Operand(usize),
    Attr(String),
}

impl Names {
    pub fn new(explainer: &Explainer<'_>, printer: &Printer<'_>) -> Names {
        let mut known: FxHashMap<TermId, String> = FxHashMap::default();
        let mut taken: FxHashSet<String> = FxHashSet::default();
        for (term, name) in explainer.extracted.iter().zip(printer.names()) {
            taken.insert(name.clone());
            known.entry(*term).or_insert_with(|| name.clone());
        }
        let tape = &explainer.program.tape;
        for ((_, node), term) in tape.iter().zip(&explainer.tape) {
            if let (Some(name), false) = (&node.name, matches!(node.kind, NodeKind::Param { .. }))
                && !known.contains_key(term)
                && taken.insert(name.to_string())
            {
                known.insert(*term, name.to_string());
            }
        }
        // A cotangent is called as gradients are: g_ and the name of its value.
        for used in &explainer.program.concluded {
            let term = explainer.tape[used.cotangent.index()];
            if let (Some(name), false) = (&tape.node(used.call).name, known.contains_key(&term)) {
                let name = format!("g_{name}");
                if taken.insert(name.clone()) {
                    known.insert(term, name);
                }
            }
        }
        let extracted = explainer.extracted.iter().copied().collect();
        Names { known, extracted }
    }

    /// The name of a value.
    pub fn get(&self, term: TermId) -> Option<&str> {
        self.known.get(&term).map(String::as_str)
    }

    /// Is it a value of the extracted graph?
    pub fn is_extracted(&self, term: TermId) -> bool {
        self.extracted.contains(&term)
    }

    /// The name, or a short expression.
    pub fn label(&self, explainer: &Explainer<'_>, term: TermId) -> String {
        self.short(explainer, term, DEPTH).unwrap_or_else(|| "..".to_owned())
    }

    fn short(&self, explainer: &Explainer<'_>, term: TermId, depth: usize) -> Option<String> {
        if let Some(name) = self.get(term) {
            return Some(name.to_owned());
        }
        if let Some(number) = constant(explainer, term) {
            return Some(number);
        }
        let (name, _) = pieces(explainer, term);
        let elided = || format!("{name}(..)");
        if depth == 0 {
            return Some(elided());
        }
        let whole = self.written(explainer, term, |operand| self.short(explainer, operand, depth - 1));
        Some(whole.filter(|text| text.chars().count() <= WIDTH).unwrap_or_else(elided))
    }

    /// `name = call`, or the call alone.
    pub fn definition(&self, explainer: &Explainer<'_>, term: TermId) -> String {
        let call = self.call(explainer, term);
        match self.get(term) {
            Some(name) => format!("{name} = {call}"),
            None => call,
        }
    }

    /// The same of a node of the tape, by the name that it has there.
    pub fn definition_of(&self, explainer: &Explainer<'_>, node: NodeId) -> String {
        let term = explainer.tape[node.index()];
        match &explainer.program.tape.node(node).name {
            Some(name) => format!("{name} = {}", self.call(explainer, term)),
            None => self.definition(explainer, term),
        }
    }

    fn call(&self, explainer: &Explainer<'_>, term: TermId) -> String {
        match explainer.bank.head(term) {
            Head::Input(_) => "input".to_owned(),
            _ => constant(explainer, term)
                .or_else(|| self.written(explainer, term, |o| self.short(explainer, o, DEPTH)))
                .unwrap_or_else(|| "..".to_owned()),
        }
    }

    fn written(
        &self,
        explainer: &Explainer<'_>,
        term: TermId,
        mut operand: impl FnMut(TermId) -> Option<String>,
    ) -> Option<String> {
        let (name, pieces) = pieces(explainer, term);
        let operands = explainer.bank.operands(term);
        let mut parts = Vec::with_capacity(pieces.len());
        for piece in pieces {
            parts.push(match piece {
                Piece::Operand(i) => operand(*operands.get(i)?)?,
                Piece::Attr(text) => text,
            });
        }
        Some(format!("{name}({})", parts.join(", ")))
    }
}

/// A constant, as its number.
pub(super) fn constant(explainer: &Explainer<'_>, term: TermId) -> Option<String> {
    let (op, attrs) = explainer.bank.call(term)?;
    if Some(op) != explainer.bank.registry().id("splat") {
        return None;
    }
    attrs.first().map(AttrValue::to_string)
}

/// The name of a call and its parts in the order in which they are written.
pub(super) fn pieces(explainer: &Explainer<'_>, term: TermId) -> (String, Vec<Piece>) {
    let bank = &explainer.bank;
    let count = bank.operands(term).len();
    match bank.head(term) {
        Head::Input(number) => (format!("input {number}"), Vec::new()),
        Head::Cotangent(op, operand, _) => {
            let operator = bank.registry().op(*op);
            // The primal and the incoming cotangent are the last two.
            let label = operator.signature().operand_label(*operand as usize, count.saturating_sub(2));
            (format!("vjp:{}:{label}", operator.name()), (0..count).map(Piece::Operand).collect())
        }
        Head::Op(op, attrs) => {
            let operator = bank.registry().op(*op);
            let places: Vec<usize> = (0..count).collect();
            let (mut operands, mut attrs) = (operator.signature().split(&places).into_iter(), attrs.iter());
            let mut parts = Vec::new();
            for param in operator.signature().params() {
                match param {
                    Param::Operand(_) | Param::Variadic(_) => {
                        parts.extend(operands.next().into_iter().flatten().map(|i| Piece::Operand(*i)));
                    }
                    Param::Attr { name, .. } => {
                        parts.extend(attrs.next().map(|value| Piece::Attr(format!("{name}={value}"))));
                    }
                }
            }
            (operator.name().to_owned(), parts)
        }
    }
}
