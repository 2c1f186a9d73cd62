//! How large a rule is once it is instantiated, definitions expanded.
//!
//! Rule files are untrusted, and a few lines of `def`s that call each other twice would make a graph without end. So the
//! size is computed when a rule is compiled, and bounded; what instantiates rules may then recurse and add nodes freely.

use std::sync::Arc;

use super::rule::{Def, RuleHead};
use super::scope::Library;
use super::term::{AttrArg, AttrTerm, AttrTermKind, ListTerm, LocalId, LocalValue, Tensor, Term, TermKind};
use crate::diagnostics::{Diagnostic, Diagnostics};

/// Most operator calls that one instantiation of a rule may make.
pub const MAX_CALLS: u64 = 10_000;

/// Most levels of expressions in each other, through local definitions and composites.
pub const MAX_LEVELS: u32 = 1_000;

/// Most operator calls of a left side. It is tried in every order of its commutative operators.
pub const MAX_LEFT: usize = 64;

/// The size of a rule or of a part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Operator calls; what a local definition makes counts once, with that definition.
    pub calls: u64,
    /// Levels of expressions in each other.
    pub levels: u32,
}

impl Extent {
    /// Both, side by side.
    fn and(self, other: Extent) -> Extent {
        Extent { calls: self.calls.saturating_add(other.calls), levels: self.levels.max(other.levels) }
    }

    /// One level more around it.
    fn inside(self) -> Extent {
        Extent { levels: self.levels.saturating_add(1), ..self }
    }
}

/// Measures the terms of one rule.
struct Measure<'a> {
    library: &'a Library<'a>,
    /// Of the local definitions so far.
    locals: Vec<Extent>,
}

/// The extent of a rule of these conclusions; `None` if it is too large, which is reported.
pub(super) fn measure<'t>(
    head: &RuleHead,
    conclusions: impl IntoIterator<Item = &'t Term>,
    library: &Library<'_>,
    bag: &mut Diagnostics,
) -> Option<Extent> {
    let mut measure = Measure { library, locals: Vec::new() };
    let mut whole = Extent::default();
    for local in &head.locals {
        let extent = match &local.value {
            LocalValue::Tensor(term) => measure.term(term),
            LocalValue::Attr(term) => measure.attr(term),
        };
        measure.locals.push(extent);
        whole = whole.and(extent);
    }
    let attrs = head.conditions.iter().chain(&head.worth).chain(head.domain.iter().map(|d| &d.bound));
    whole = attrs.fold(whole, |whole, attr| whole.and(measure.attr(attr)));
    whole = conclusions.into_iter().fold(whole, |whole, term| whole.and(measure.term(term)));
    let complaint = if whole.calls > MAX_CALLS {
        format!("`{}` makes more than {MAX_CALLS} operator calls when its definitions are expanded", head.rule.name)
    } else if whole.levels > MAX_LEVELS {
        format!("`{}` nests more than {MAX_LEVELS} levels deep when its definitions are expanded", head.rule.name)
    } else {
        return Some(whole);
    };
    bag.push(
        Diagnostic::error("E0417", complaint).at(head.span, "too large").help("split it, or use fewer definitions"),
    );
    None
}

impl Measure<'_> {
    fn term(&self, term: &Term) -> Extent {
        match &term.kind {
            TermKind::Var(_) | TermKind::All(_) => Extent::default(),
            TermKind::Element(_, index) => self.attr(index),
            TermKind::Local(local) => self.local(*local),
            TermKind::Literal(attr) => Extent { calls: 1, ..self.attr(attr) },
            TermKind::If(condition, yes, no) => self.attr(condition).and(self.term(yes)).and(self.term(no)),
            TermKind::Op { op, operands, attrs } => {
                let body = self.library.defs.get(self.library.registry.op(*op).name());
                self.call(body, operands, attrs)
            }
            TermKind::Composite { def, operands, attrs } => self.call(Some(def), operands, attrs),
        }
        .inside()
    }

    /// A call of an operator, or of a definition, whose body stands where the call stands.
    fn call(&self, def: Option<&Arc<Def>>, operands: &[Term], attrs: &[AttrArg]) -> Extent {
        let own = def.map_or(Extent { calls: 1, levels: 0 }, |def| def.head.extent);
        let inner = operands.iter().fold(Extent::default(), |all, o| all.and(self.term(o)));
        let inner = attrs.iter().fold(inner, |all, a| match a {
            AttrArg::Given(attr) => all.and(self.attr(attr)),
            AttrArg::Default(_) => all,
        });
        own.and(inner)
    }

    fn attr(&self, term: &AttrTerm) -> Extent {
        use AttrTermKind as K;
        let none = Extent::default();
        match &term.kind {
            K::Const(_) | K::Var(_) | K::Element(_) | K::Count(_) => none,
            K::Local(local) => self.local(*local),
            K::Of(_, tensor) => self.named(tensor),
            K::Dim(tensor, axis) => self.named(tensor).and(self.attr(axis)),
            K::As(_, a) | K::Neg(a) | K::Not(a) => self.attr(a),
            K::Binary(_, a, b) | K::Index(a, b) => self.attr(a).and(self.attr(b)),
            K::If(c, a, b) => self.attr(c).and(self.attr(a)).and(self.attr(b)),
            K::List(items) | K::Call(_, items) => items.iter().fold(none, |all, i| all.and(self.attr(i))),
            K::Comprehension { element, list, condition } => {
                let condition = condition.as_ref().map_or(none, |c| self.attr(c));
                let list = match list {
                    ListTerm::Attr(list) => self.attr(list),
                    ListTerm::Tensors(_) => none,
                };
                self.attr(element).and(list).and(condition)
            }
        }
        .inside()
    }

    fn named(&self, tensor: &Tensor) -> Extent {
        match tensor {
            Tensor::Var(_) => Extent::default(),
            Tensor::Local(local) => self.local(*local),
            Tensor::Element(_, attr) | Tensor::Type(attr) => self.attr(attr),
        }
    }

    /// A local definition where it is used: its calls were counted already, but it is computed on demand, so its levels are
    /// those of its user.
    fn local(&self, local: LocalId) -> Extent {
        let levels = self.locals.get(local.0 as usize).map_or(0, |e| e.levels);
        Extent { calls: 0, levels }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;
    use crate::rules::RuleOptions;

    /// The codes of the errors of a rule file, and the session if there are none.
    fn load(rules: &str) -> Result<Session, Vec<&'static str>> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("r.rules");
        std::fs::write(&file, rules).unwrap();
        let options = RuleOptions { no_default_rules: true, files: vec![file], ..RuleOptions::default() };
        Session::new(&options).map_err(|refusal| refusal.diagnostics.iter().map(|d| d.code).collect())
    }

    #[test]
    fn calls_are_counted_through_definitions_and_once_for_locals() {
        let session = load(
            "/// Two.\ndef two(x) {\n  => exp(x) + 1.0\n}\n/// Locals.\ndef many(x) {\n  a = two(x)\n  b = a * a\n  => b + b\n}",
        );
        let session = session.unwrap();
        let extent = |name: &str| session.rules.def(name).unwrap().head.extent;
        // exp, the literal, add
        assert_eq!(extent("two"), Extent { calls: 3, levels: 3 });
        // those, mul, add
        assert_eq!(extent("many"), Extent { calls: 5, levels: 8 });
    }

    #[test]
    fn hostile_definitions_are_refused() {
        let chain = |n: usize, body: &dyn Fn(usize) -> String| {
            let rest = (1..n).map(|i| format!("def d{i}(x) {{\n  => {}\n}}\n", body(i))).collect::<String>();
            format!("def d0(x) {{\n  => x + x\n}}\n{rest}")
        };
        let doubling = chain(40, &|i| format!("d{0}(d{0}(x))", i - 1));
        let deep = chain(1200, &|i| format!("d{}(x)", i - 1));
        let locals: String = (1..1200).map(|i| format!("  a{i} = a{} + x\n", i - 1)).collect();
        let locals = format!("def d(x) {{\n  a0 = x\n{locals}  => a1199\n}}");
        let attrs: String = (1..1200).map(|i| format!("  a{i} = a{} + 1\n", i - 1)).collect();
        let attrs = format!("rewrite r [real] {{\n  exp(x) => x\n  a0 = 1\n{attrs}  where a1199 == 3\n}}");
        let conclusion = format!("{doubling}rewrite r [real] {{\n  exp(x) => d12(d12(d12(x)))\n}}");
        let left = format!("rewrite r [real] {{\n  x{} => x\n}}", " + x".repeat(MAX_LEFT + 1));
        for rules in [doubling, deep, locals, attrs, conclusion, left] {
            let codes = load(&rules).unwrap_err();
            assert!(codes.contains(&"E0417"), "{codes:?}: {}", &rules[..80]);
        }
        assert!(load(&chain(300, &|i| format!("d{}(x)", i - 1))).is_ok());
    }
}
