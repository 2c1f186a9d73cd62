//! Rule files: loaded at run time, compiled by a chain of small passes, checked before anything uses them.
//!
//! - [`mod@load`] finds the files of a profile and of the user, with their imports, and parses them;
//! - [`mod@compile`] resolves names and operators of each item (`scope`), giving [`Vjp`]s, [`Rewrite`]s and [`Def`]s;
//! - `typecheck` types every conclusion over a family of instances;
//! - the result is a [`RuleSet`], in an order that does not depend on the order of files.
//!
//! A compiled rule instantiates its conclusions through a [`term::Builder`].

pub mod attributes;
pub mod builders;
pub mod compile;
mod composite;
mod define;
pub mod edits;
pub mod example;
pub mod extent;
pub mod family;
mod hash;
pub mod listing;
pub mod load;
pub mod numbers;
mod pattern;
pub mod rule;
mod scope;
mod stub;
pub mod term;
pub mod typecheck;
mod vjp;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use builders::{ArrayBuilder, GraphBuilder, TypeBuilder};
pub use load::{Profile, RuleOptions, is_embedded, load, rule_files};
pub use rule::{
    AttrPattern, Conclusion, Def, DomainCompare, DomainFact, Kink, Pattern, Rewrite, RewriteClass, RuleHead, VarKind,
    Vjp,
};
pub use stub::{Stub, stub, stub_of};

use crate::diagnostics::Span;
use crate::ir::{AttrValue, Graph, NodeId, OpId, Registry, TypeError};

/// All rules of a compilation, and the operators they were compiled against.
#[derive(Clone, Debug)]
pub struct RuleSet {
    /// The built-in operators and the composites that have a VJP.
    pub registry: Arc<Registry>,
    /// For each operator the VJP that differentiation uses, then its alternatives by name.
    vjps: BTreeMap<OpId, Vec<Arc<Vjp>>>,
    /// By name.
    rewrites: Vec<Arc<Rewrite>>,
    /// Composites, by name. Those that have a VJP are operators as well.
    defs: BTreeMap<Arc<str>, Arc<Def>>,
    /// `example` lines of composites, which may call any composite.
    def_examples: BTreeMap<Arc<str>, Vec<example::Example>>,
    /// The places of the rules that were loaded as candidates, if there was a file of such.
    candidates: Option<BTreeSet<Span>>,
    /// What the rules were compiled from, for their hash.
    content: Arc<hash::Content>,
}

impl RuleSet {
    /// Sixteen hexadecimal digits that tell rule sets apart. The order of files and rules, their layout, comments and
    /// documentation have no part in it, nor has a VJP that an `override` replaces. The first call does the work.
    pub fn hash(&self) -> String {
        format!("{:016x}", self.content.hash())
    }

    /// The VJPs of an operator, the primary one first.
    pub fn vjps(&self, op: OpId) -> &[Arc<Vjp>] {
        self.vjps.get(&op).map_or(&[], Vec::as_slice)
    }

    /// The place of the VJP that is loaded as well and not in effect, since this one says `override`.
    pub fn replaced(&self, vjp: &Vjp) -> Option<Span> {
        self.content.replaced(self.registry.op(vjp.op).name(), vjp.alternative.as_deref())
    }

    /// All VJPs, by operator name.
    pub fn all_vjps(&self) -> impl Iterator<Item = &Arc<Vjp>> {
        self.vjps.values().flatten()
    }

    /// All rewrites, by name.
    pub fn rewrites(&self) -> &[Arc<Rewrite>] {
        &self.rewrites
    }

    /// The same rules, but of rewrites and alternative VJPs only those that `keep` wants. Nothing is compiled anew, and
    /// [`hash`](Self::hash) stays that of the whole set.
    pub fn only(&self, keep: impl Fn(&RuleHead) -> bool) -> RuleSet {
        let mut rules = self.clone();
        rules.rewrites.retain(|rewrite| keep(&rewrite.head));
        rules.vjps.values_mut().for_each(|vjps| vjps.retain(|v| v.alternative.is_none() || keep(&v.head)));
        rules
    }

    /// All composites, by name.
    pub fn defs(&self) -> impl Iterator<Item = &Arc<Def>> {
        self.defs.values()
    }

    /// The definition of a composite.
    pub fn def(&self, name: &str) -> Option<&Arc<Def>> {
        self.defs.get(name)
    }

    /// The `example` lines of a composite.
    pub fn examples_of(&self, def: &Def) -> &[example::Example] {
        self.def_examples.get(&def.name).map_or(&[], Vec::as_slice)
    }

    /// Is the rule at that place in question: loaded as a candidate, or any rule if no file of candidates was given?
    pub fn is_in_question(&self, place: Span) -> bool {
        self.candidates.as_ref().is_none_or(|candidates| candidates.contains(&place))
    }

    /// Builds the body of a composite into a graph. The nodes say that the `def` made them.
    ///
    /// # Errors
    /// The first call in the body that is not well-typed for these operands.
    pub fn expand(
        &self,
        name: &str,
        graph: &mut Graph,
        operands: &[NodeId],
        attrs: &[AttrValue],
        serves: Vec<Arc<str>>,
    ) -> Result<Option<NodeId>, TypeError> {
        let Some(def) = self.defs.get(name) else { return Ok(None) };
        let mut builder = GraphBuilder { registry: &self.registry, graph, rule: def.head.rule.clone(), serves };
        term::expand(def, operands, attrs, &mut builder).map(Some).map_err(|e| e.into_type_error())
    }
}
