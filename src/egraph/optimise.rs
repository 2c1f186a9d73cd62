//! Equality saturation under counted budgets.
//!
//! Each iteration searches a left side only in classes that changed in the last one, and in their users as far above as it
//! is deep; rules are indexed by the operator at their root and applied in name order. Time plays no part: the outcome
//! depends on the input alone.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use egg::Id;

use super::language::{Discriminant, ENode, split_call};
use super::matching::{Fuel, Match, matches};
use super::patterns::{Variant, commutes, levels, variants};
use super::record::{Application, Cause, Iteration};
use super::space::{Space, SpaceBuilder};
use super::{Differentiated, ranges};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::ir::{AttrValue, Level, OpId, Origin};
use crate::rules::term::{Bindings, TermError, expand};
use crate::rules::{Rewrite, RewriteClass, RuleSet};

/// Limits of a saturation. All are counts, so that results do not depend on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// E-nodes in all, beyond a multiple of the program's own.
    pub nodes: usize,
    /// E-nodes per e-node of the program.
    pub nodes_per_node: usize,
    pub iterations: usize,
    /// Applications that changed something.
    pub applications: usize,
    /// Steps of matching, of computing attributes and of building right sides, in all, beyond a multiple of the
    /// program's size.
    pub steps: usize,
    /// Steps per e-node of the program.
    pub steps_per_node: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            nodes: 20_000,
            nodes_per_node: 12,
            iterations: 24,
            applications: 4_000_000,
            steps: 4_000_000,
            steps_per_node: 1_000,
        }
    }
}

impl Budget {
    /// Steps for a program of so many nodes.
    pub fn steps_of(&self, nodes: usize) -> usize {
        self.steps + self.steps_per_node * nodes
    }
}

/// Why the saturation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Nothing more to rewrite.
    Saturated,
    Nodes,
    Iterations,
    Applications,
    Steps,
}

/// What a saturation did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub stop: Stop,
    pub iterations: usize,
    /// Left sides that were looked for in a class.
    pub searches: usize,
    /// Applications that changed something, by rule.
    pub applications: BTreeMap<Arc<str>, usize>,
    pub nodes: usize,
    pub classes: usize,
    /// Did the extraction end by itself, and not because it ran out of steps?
    pub extracted: bool,
}

/// A rewrite ready to run.
struct Prepared<'r> {
    rule: &'r Arc<Rewrite>,
    /// Widened when an operator at the root of the left side is first met: most programs meet few of them.
    patterns: OnceCell<Vec<Variant>>,
    root: OpId,
    /// How many levels below its root decide whether it fires: those of its left side, but all that any rule looks at if
    /// facts about values decide as well.
    reach: u8,
}

/// Too far above anything that has changed to match anew.
const FAR: u8 = u8::MAX;

impl Prepared<'_> {
    fn patterns(&self, commutative: &BTreeSet<OpId>) -> &[Variant] {
        self.patterns.get_or_init(|| variants(&self.rule.left, commutative))
    }
}

/// Rewrites until nothing changes or a budget ends.
///
/// # Errors
/// A rule whose right side is ill-typed where it fired, or that merged values of different type.
pub fn saturate(
    program: &mut Differentiated,
    rules: &RuleSet,
    level: Level,
    budget: Budget,
) -> Result<Report, Diagnostics> {
    let space = &mut program.space;
    if level == Level::O2 {
        for (primary, alternative) in &program.alternatives {
            if space.egraph.union(*primary, *alternative) {
                note(space, 0, *primary, *alternative, || Cause::Alternative);
            }
        }
    }
    let allowed = |class: RewriteClass| match level {
        Level::O0 => false,
        Level::O1 => class == RewriteClass::Exact,
        Level::O2 => true,
    };
    let enabled: Vec<&Arc<Rewrite>> = rules.rewrites().iter().filter(|r| allowed(r.class)).collect();
    let commutative: BTreeMap<OpId, Arc<Rewrite>> =
        enabled.iter().rev().filter_map(|r| Some((commutes(r)?, Arc::clone(r)))).collect();
    let mut prepared: Vec<Prepared<'_>> = Vec::new();
    let depth = enabled.iter().map(|r| levels(&r.left)).max().unwrap_or(1);
    for rule in enabled.iter().filter(|r| commutes(r).is_none()) {
        let Some(root) = rule.left.root() else { continue };
        let reach = if rule.head.domain.is_empty() { levels(&rule.left) } else { depth };
        prepared.push(Prepared { rule, patterns: OnceCell::new(), root, reach: u8::try_from(reach).unwrap_or(FAR) });
    }
    let mut by_root: BTreeMap<OpId, Vec<usize>> = BTreeMap::new();
    for (i, p) in prepared.iter().enumerate() {
        by_root.entry(p.root).or_default().push(i);
    }
    // Values are spoken of by the name that the program gives them.
    let mut names: BTreeMap<Id, Arc<str>> = BTreeMap::new();
    for ((_, node), class) in program.tape.iter().zip(&program.classes) {
        if let Some(name) = &node.name {
            names.entry(space.egraph.find(*class)).or_insert_with(|| name.clone());
        }
    }
    let (applications, applied) = (BTreeMap::new(), 0);
    let mut run = Run {
        space,
        names,
        rules,
        turnable: commutative.keys().copied().collect(),
        commutative,
        iteration: 0,
        applications,
        applied,
        searches: 0,
        node_limit: 0,
        fuel: Fuel(0),
        budget,
    };
    run.space.egraph.rebuild();
    let size = run.space.egraph.total_size();
    run.node_limit = budget.nodes + budget.nodes_per_node * size;
    run.fuel = Fuel(budget.steps_of(size));
    let mut stop = Stop::Iterations;
    let mut iterations = 0;
    // At first everything counts as changed.
    let mut changed: Vec<Id> = run.space.egraph.classes().map(|c| c.id).collect();
    changed.sort_unstable();
    run.space.egraph.analysis.changed.get_mut().clear();
    while iterations < budget.iterations {
        iterations += 1;
        run.begin(iterations);
        run.expand_composites(&changed)?;
        changed = run.rebuild(changed);
        run.merge_commuted(&changed);
        changed = run.rebuild(changed);
        let near = run.near(&changed, depth);
        let ended = run.iteration(&prepared, &by_root, &near)?;
        changed = run.rebuild(Vec::new());
        run.end();
        run.conflict(None)?;
        if let Some(reason) = ended {
            stop = reason;
            break;
        }
        if changed.is_empty() {
            stop = Stop::Saturated;
            break;
        }
    }
    let report = Report {
        stop,
        iterations,
        searches: run.searches,
        applications: run.applications,
        nodes: run.space.egraph.total_size(),
        classes: run.space.egraph.number_of_classes(),
        extracted: true,
    };
    Ok(report)
}

struct Run<'a> {
    space: &'a mut Space,
    rules: &'a RuleSet,
    /// Source names of classes, as the classes were before the first merge.
    names: BTreeMap<Id, Arc<str>>,
    /// The operators whose operands may change places, each by the first rule that says so.
    commutative: BTreeMap<OpId, Arc<Rewrite>>,
    turnable: BTreeSet<OpId>,
    applications: BTreeMap<Arc<str>, usize>,
    applied: usize,
    /// Numbered from 1.
    iteration: usize,
    searches: usize,
    node_limit: usize,
    fuel: Fuel,
    budget: Budget,
}

/// Records an application, if a record is kept.
fn note(space: &mut Space, iteration: usize, class: Id, value: Id, cause: impl FnOnce() -> Cause) {
    let after = space.moment();
    if let Some(record) = &mut space.record {
        record.applications.push(Application { cause: cause(), iteration, class, value, after });
    }
}

impl Run<'_> {
    fn begin(&mut self, iteration: usize) {
        self.iteration = iteration;
        if let Some(record) = &mut self.space.record {
            let first = record.applications.len();
            let end = record.end;
            record.iterations.push(Iteration { applications: (first, first), matches: 0, end });
        }
    }

    fn end(&mut self) {
        let moment = self.space.moment();
        let Some(record) = &mut self.space.record else { return };
        record.end = moment;
        let count = record.applications.len();
        if let Some(iteration) = record.iterations.last_mut() {
            iteration.applications.1 = count;
            iteration.end = moment;
        }
    }

    /// Restores the e-graph's invariants. Returns the classes that have changed since they last held, and `changed`,
    /// ascending.
    fn rebuild(&mut self, mut changed: Vec<Id>) -> Vec<Id> {
        let egraph = &mut self.space.egraph;
        // That goes over the whole e-graph.
        if !egraph.clean {
            egraph.rebuild();
        }
        changed.append(egraph.analysis.changed.get_mut());
        for id in &mut changed {
            *id = egraph.find(*id);
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// How far above a changed class each class stands, for left sides of up to `depth` levels; `FAR` for others.
    fn near(&self, changed: &[Id], depth: usize) -> Vec<u8> {
        let egraph = &self.space.egraph;
        let mut near = vec![FAR; egraph.nodes().len()];
        for id in changed {
            near[usize::from(*id)] = 0;
        }
        let mut level: Vec<Id> = changed.to_vec();
        for distance in 1..depth.min(usize::from(FAR)) {
            let mut next = Vec::new();
            for id in level {
                // Attributes have many users and never change.
                if egraph[id].data.attr().is_some() {
                    continue;
                }
                for parent in egraph[id].parents() {
                    let parent = egraph.find(parent);
                    let place = &mut near[usize::from(parent)];
                    if *place == FAR {
                        *place = distance as u8;
                        next.push(parent);
                    }
                }
            }
            level = next;
        }
        near
    }

    /// One round: search everything, then apply in (rule name, class) order.
    fn iteration(
        &mut self,
        prepared: &[Prepared<'_>],
        by_root: &BTreeMap<OpId, Vec<usize>>,
        near: &[u8],
    ) -> Result<Option<Stop>, Diagnostics> {
        let (nodes, made) = (self.space.egraph.total_number_of_nodes(), self.space.egraph.nodes().len());
        let mut found: Vec<(usize, Id, Arc<[bool]>, Match)> = Vec::new();
        for (root, rules) in by_root {
            let Some(classes) = self.space.egraph.classes_for_op(&Discriminant::Op(*root)) else { continue };
            let mut classes: Vec<Id> = classes.filter(|c| near[usize::from(*c)] != FAR).collect();
            classes.sort_unstable();
            for class in classes {
                for rule in rules.iter().filter(|r| near[usize::from(class)] < prepared[**r].reach) {
                    for variant in prepared[*rule].patterns(&self.turnable) {
                        let vars = prepared[*rule].rule.head.vars.len();
                        self.searches += 1;
                        let here = matches(&self.space.egraph, &variant.pattern, vars, class, &mut self.fuel);
                        found.extend(here.into_iter().map(|m| (*rule, class, variant.swapped.clone(), m)));
                    }
                }
            }
        }
        found.sort_by_key(|(rule, class, ..)| (*rule, *class));
        if let Some(iteration) = self.space.record.as_mut().and_then(|r| r.iterations.last_mut()) {
            iteration.matches = found.len();
        }
        for (rule, class, swapped, matched) in found {
            if self.fuel.0 == 0 {
                return Ok(Some(Stop::Steps));
            }
            let rule = prepared[rule].rule;
            if self.apply(rule, class, &matched, &swapped)? {
                self.applied += 1;
                *self.applications.entry(rule.head.rule.name.clone()).or_default() += 1;
            }
            if self.applied >= self.budget.applications {
                return Ok(Some(Stop::Applications));
            }
            // Counted after every application, so that no rule overshoots. No e-node goes before the graph is rebuilt.
            if nodes + self.space.egraph.nodes().len() - made > self.node_limit {
                return Ok(Some(Stop::Nodes));
            }
        }
        // Matching may have ended before it found anything.
        Ok((self.fuel.0 == 0).then_some(Stop::Steps))
    }

    /// Instantiates the right side of one match. True if it was news.
    fn apply(
        &mut self,
        rule: &Arc<Rewrite>,
        class: Id,
        matched: &Match,
        swapped: &Arc<[bool]>,
    ) -> Result<bool, Diagnostics> {
        let mut bindings = Bindings::new(rule.head.vars.len(), &rule.head.locals);
        for (i, id) in matched.iter().enumerate() {
            let Some(id) = id else { continue };
            match self.space.egraph[*id].data.attr() {
                Some(value) => bindings.attrs[i] = Some(value.clone()),
                None => bindings.tensors[i] = Some(*id),
            }
        }
        let Some(wanted) = self.space.ty(class).cloned() else { return Ok(false) };
        bindings.expected = Some((*wanted).clone());
        let serves = self.serves(class);
        let origin = self.space.origin(Origin::Rule { rule: rule.head.rule.clone(), serves });
        let mut builder = SpaceBuilder { space: self.space, origin };
        let fires = fires(rule, &mut bindings, &mut builder);
        self.fuel.spend(bindings.steps());
        if !fires? {
            return Ok(false);
        }
        let steps = bindings.steps();
        let value = bindings.build(&rule.right, &mut builder).map_err(|e| ill_typed(rule, &e))?;
        self.fuel.spend(bindings.steps() - steps + rule.head.extent.calls as usize);
        let found = self.space.ty(value).cloned();
        if found.as_ref() != Some(&wanted) {
            let found = found.map_or_else(|| "no tensor".to_owned(), |t| t.to_string());
            return Err(Diagnostic::error("E0503", format!("`{}` turns {wanted} into {found}", rule.head.rule.name))
                .at(rule.right.span, "the right side has another type here")
                .help("restrict the rule with `where`, or mend its right side")
                .into());
        }
        // Over the reals 0 and -0 are one value, and so are two roundings of one; but whatever else uses one of two
        // constants must not get the other.
        let constants = [class, value].map(|id| self.constant(id));
        if matches!(constants, [Some(a), Some(b)] if a != b) {
            return Ok(false);
        }
        let news = self.space.egraph.union(class, value);
        self.conflict(Some(rule))?;
        if news {
            note(self.space, self.iteration, class, value, || Cause::Rewrite {
                rule: rule.clone(),
                bindings: matched.clone(),
                swapped: swapped.clone(),
            });
        }
        Ok(news)
    }

    /// The value of a class that is known to be a constant.
    fn constant(&self, class: Id) -> Option<AttrValue> {
        let splat = self.rules.registry.id("splat")?;
        self.space.egraph[class].nodes.iter().find_map(|node| match node {
            ENode::Op(op, children) if *op == splat => {
                children.first().and_then(|c| self.space.egraph[*c].data.attr().cloned())
            }
            _ => None,
        })
    }

    /// The forward values that a class serves, as the e-node says for which it was made.
    fn serves(&self, class: Id) -> Vec<Arc<str>> {
        if let Some(name) = self.names.get(&class) {
            return vec![name.clone()];
        }
        match self.space.class_origin(class) {
            Some(Origin::Rule { serves, .. } | Origin::Accumulate { serves }) => serves.clone(),
            _ => match self.space.egraph[class].nodes.first() {
                Some(ENode::Op(op, _)) => vec![self.rules.registry.op(*op).name().into()],
                _ => Vec::new(),
            },
        }
    }

    /// A merge of values of different type ends the compilation.
    fn conflict(&mut self, rule: Option<&Rewrite>) -> Result<(), Diagnostics> {
        let Some(conflict) = self.space.egraph.analysis.conflict.take() else { return Ok(()) };
        let message = format!("values of different type were merged: {:?} and {:?}", conflict.left, conflict.right);
        let diagnostic =
            Diagnostic::error("E0504", message).help("a rewrite in effect claims that two constants are equal");
        Err(match rule {
            Some(rule) => diagnostic.at(rule.head.span, format!("by `{}`", rule.head.rule.name)).into(),
            None => diagnostic.into(),
        })
    }

    /// Merges `a*b` with `b*a` where both stand.
    fn merge_commuted(&mut self, changed: &[Id]) {
        let mut pairs = Vec::new();
        for (op, rule) in &self.commutative {
            let Some(classes) = self.space.egraph.classes_for_op(&Discriminant::Op(*op)) else { continue };
            let mut classes: Vec<Id> = classes.filter(|c| changed.binary_search(c).is_ok()).collect();
            classes.sort_unstable();
            for class in classes {
                for node in &self.space.egraph[class].nodes {
                    let ENode::Op(o, children) = node else { continue };
                    if o != op || children.len() != 2 {
                        continue;
                    }
                    let mut swapped = ENode::Op(*op, [children[1], children[0]].into_iter().collect());
                    if let Some(other) = self.space.egraph.lookup(&mut swapped) {
                        pairs.push((class, other, rule.clone(), *op, [children[0], children[1]]));
                    }
                }
            }
        }
        for (a, b, rule, op, operands) in pairs {
            if self.space.egraph.union(a, b) {
                note(self.space, self.iteration, a, b, || Cause::Commutes { rule, op, operands });
            }
        }
    }

    /// Composites become available as their definitions.
    fn expand_composites(&mut self, changed: &[Id]) -> Result<(), Diagnostics> {
        for def in self.rules.defs() {
            let Some(op) = self.rules.registry.id(&def.name) else { continue };
            let Some(classes) = self.space.egraph.classes_for_op(&Discriminant::Op(op)) else { continue };
            let mut classes: Vec<Id> = classes.filter(|c| changed.binary_search(c).is_ok()).collect();
            classes.sort_unstable();
            for class in classes {
                let nodes: Vec<ENode> = self.space.egraph[class].nodes.clone();
                for node in nodes {
                    let ENode::Op(o, children) = node else { continue };
                    if o != op {
                        continue;
                    }
                    let (operands, attrs) = split_call(&self.space.egraph, op, &children);
                    let serves = self.serves(class);
                    let origin = self.space.origin(Origin::Rule { rule: def.head.rule.clone(), serves });
                    let mut builder = SpaceBuilder { space: self.space, origin };
                    let value = expand(def, &operands, &attrs, &mut builder).map_err(|error| {
                        Diagnostics::from(
                            Diagnostic::error("E0503", format!("`{}` is ill-typed here: {error}", def.name))
                                .at(error.span, "in this definition")
                                .help("restrict the definition with `where`, or mend it"),
                        )
                    })?;
                    if self.space.egraph.union(class, value) {
                        note(self.space, self.iteration, class, value, || Cause::Definition {
                            def: def.clone(),
                            operands: operands.to_vec(),
                            attrs: children[operands.len()..].to_vec(),
                        });
                    }
                }
            }
        }
        Ok(())
    }
}

/// Do the conditions of a rule hold for a match, and is it worth trying there?
fn fires(rule: &Rewrite, bindings: &mut Bindings<'_, Id>, builder: &mut SpaceBuilder<'_>) -> Result<bool, Diagnostics> {
    for condition in rule.head.conditions.iter().chain(&rule.head.worth) {
        if !bindings.condition(condition, builder).map_err(|e| ill_typed(rule, &e))? {
            return Ok(false);
        }
    }
    for fact in &rule.head.domain {
        let bound = bindings.attr(&fact.bound, builder).map_err(|e| ill_typed(rule, &e))?;
        let proved = match (bindings.tensors[fact.tensor.0 as usize], bound.as_float()) {
            (Some(tensor), Some(bound)) => {
                ranges::holds(builder.space, tensor, fact.compare, bound)
                    && (!rule.needs_numbers || ranges::never_nan(builder.space, tensor))
            }
            _ => false,
        };
        if !proved {
            return Ok(false);
        }
    }
    Ok(true)
}

fn ill_typed(rule: &Rewrite, error: &TermError) -> Diagnostics {
    Diagnostic::error("E0503", format!("`{}` is ill-typed where it fired: {error}", rule.head.rule.name))
        .at(error.span, "ill-typed here")
        .help("restrict the rule with `where`, or mend its right side")
        .into()
}
