//! Differentiation: VJP rules run as rewrites of `vjp:op:operand(..)` e-nodes, each exactly once.
//!
//! The walk goes over the tape in reverse topological order, which is linear in the forward graph and needs no
//! matching search: the place of every rewrite is known.

use std::sync::Arc;

use super::Budget;
use super::conclude::Applied;
use super::masks::{Mask, Masks};
use super::matching::Fuel;
use super::space::{OriginId, Space};
use super::tape::{Tape, TapeBuilder, max_values};
use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::ir::{Graph, Node, NodeId, NodeKind, OpId, Origin, Output, TypeError};
use crate::rules::term::Builder;
use crate::rules::{AttrPattern, Conclusion, RuleSet, Vjp};

/// A gradient of the program, with what a numeric check of it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gradient {
    /// The parameter's name.
    pub name: Arc<str>,
    /// Nodes of [`Differentiated::tape`]: the primal, the parameter ([`NodeKind::Param`]) and its gradient.
    pub primal: NodeId,
    pub param: NodeId,
    pub gradient: NodeId,
    /// The cotangent the walk was seeded with, if it was not ones.
    pub cotangent: Option<NodeId>,
}

/// A VJP rule, used: what it concluded for one operand of one call.
#[derive(Clone, Debug)]
pub struct Concluded {
    pub rule: Arc<Vjp>,
    /// Nodes of the tape: the forward call, the cotangent of its value (out of its mask) and the conclusion.
    pub call: NodeId,
    pub cotangent: NodeId,
    pub value: NodeId,
    /// The operand of the call that `value` is the cotangent of, from this call.
    pub operand: usize,
    /// The nodes that the conclusion added to the tape, as indices from and to. Others that it needs were there.
    pub added: (usize, usize),
}

/// A program after differentiation, before any rewriting.
pub struct Differentiated {
    /// Forward and backward nodes. Parameters still stand in it, so that a numeric check can vary them; see
    /// [`program`](Self::program) for the graph to run.
    pub tape: Graph,
    /// Handlers in the order in which they were differentiated, each with its gradients.
    pub gradients: Vec<Gradient>,
    /// In the order of the walk.
    pub concluded: Vec<Concluded>,
    pub(super) space: Space,
    pub(super) classes: Vec<egg::Id>,
    /// The classes of what primary rules conclude and of what alternatives do: the same over the reals, so that only levels that may use
    /// such equations make them one.
    pub(super) alternatives: Vec<(egg::Id, egg::Id)>,
}

impl Differentiated {
    /// The e-graph.
    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    /// The class that a class of the record belongs to now.
    pub fn find(&self, class: egg::Id) -> egg::Id {
        self.space.egraph.find(class)
    }

    /// The class that a node of the tape belongs to now.
    pub(crate) fn class_of_node(&self, node: NodeId) -> egg::Id {
        self.space.egraph.find(self.classes[node.index()])
    }

    /// The graph without parameters: what -O0 runs.
    pub fn program(&self, rules: &RuleSet) -> Result<Graph, TypeError> {
        super::expand::resolve(&self.tape, rules)
    }
}

/// Differentiates all handlers of a checked program, innermost first.
///
/// # Errors
/// A missing VJP (names the operator, the operand and the path from the parameter, and prints a stub), or a rule
/// whose conclusion has the wrong type.
pub fn differentiate(graph: &Graph, rules: &RuleSet) -> Result<Differentiated, Diagnostics> {
    let mut walk = Walk {
        rules,
        masks: Masks::new(&rules.registry),
        space: Space::new(rules.registry.clone()),
        tape: Tape::new(),
        params: graph.handlers.iter().map(|h| vec![None; h.params.len()]).collect(),
        gradients: vec![None; graph.handlers.len()],
        records: Vec::new(),
        alternatives: Vec::new(),
        concluded: Vec::new(),
        limit: max_values(graph.len()),
        fuel: Fuel(Budget::default().steps_of(graph.len())),
        bag: Diagnostics::new(),
    };
    let mut map = Map(vec![None; graph.len()]);
    // Inputs first: a handler's cotangent may be an input that comes late in the program.
    for id in &graph.inputs {
        map.0[id.index()] = Some(walk.tape.input(&mut walk.space, graph.node(*id).clone()));
    }
    for (id, node) in graph.iter() {
        if map.0[id.index()].is_none() {
            map.0[id.index()] = walk.forward(graph, node, &map);
            if let Origin::Program(span) | Origin::Handler(span) = node.origin {
                walk.is_small_enough(span);
            }
        }
        if walk.bag.has_errors() {
            return Err(walk.bag);
        }
    }
    for handler in 0..graph.handlers.len() {
        walk.handler(graph, handler, &map);
    }
    if walk.bag.has_errors() {
        return Err(walk.bag);
    }
    let outputs = graph.outputs.iter().map(|o| Output { name: o.name.clone(), node: map.of(o.node) });
    let mut tape = walk.tape.graph;
    tape.outputs = outputs.collect();
    // Checks of the program first, in its order; those of the backward graph were added as they arose.
    let backward = std::mem::take(&mut tape.checks);
    for check in &graph.checks {
        tape.checks.add(crate::ir::Check { indices: map.of(check.indices), ..check.clone() });
    }
    for check in backward {
        tape.checks.add(check);
    }
    for output in tape.outputs.clone() {
        if let Some(name) = output.name.strip_prefix("g_").map(|_| output.name.clone()) {
            tape.node_mut(output.node).name.get_or_insert(name);
        }
    }
    Ok(Differentiated {
        tape,
        gradients: walk.records,
        concluded: walk.concluded,
        space: walk.space,
        classes: walk.tape.classes,
        alternatives: walk.alternatives,
    })
}

/// Nodes of the checked program to nodes of the tape.
struct Map(Vec<Option<NodeId>>);

impl Map {
    /// Operands come before their users, so the node of an operand is known.
    fn of(&self, id: NodeId) -> NodeId {
        self.0[id.index()].unwrap_or(id)
    }
}

/// The walk over one program.
pub(super) struct Walk<'a> {
    pub(super) rules: &'a RuleSet,
    masks: Masks,
    pub(super) space: Space,
    pub(super) tape: Tape,
    /// Tape nodes of each handler's parameters.
    params: Vec<Vec<Option<NodeId>>>,
    /// Gradients of each handler once it is differentiated.
    gradients: Vec<Option<Vec<NodeId>>>,
    records: Vec<Gradient>,
    pub(super) alternatives: Vec<(egg::Id, egg::Id)>,
    pub(super) concluded: Vec<Concluded>,
    /// Of values on the tape.
    limit: u64,
    /// For the attributes of rules.
    pub(super) fuel: Fuel,
    pub(super) bag: Diagnostics,
}

impl Walk<'_> {
    /// Puts a node of the checked program onto the tape.
    fn forward(&mut self, graph: &Graph, node: &Node, map: &Map) -> Option<NodeId> {
        match &node.kind {
            NodeKind::Input => Some(self.tape.input(&mut self.space, node.clone())),
            NodeKind::Param { handler, index, argument } => {
                let argument = map.of(*argument);
                let kind = NodeKind::Param { handler: *handler, index: *index, argument };
                let id = self.tape.param(Node { kind, ..node.clone() }, argument);
                if let Some(slot) = self.params.get_mut(*handler).and_then(|h| h.get_mut(*index)) {
                    *slot = Some(id);
                }
                Some(id)
            }
            NodeKind::Op { op, operands, attrs } => {
                let operands = operands.iter().map(|o| map.of(*o)).collect();
                let kind = NodeKind::Op { op: *op, operands, attrs: attrs.clone() };
                match self.tape.program_call(&mut self.space, Node { kind, ..node.clone() }) {
                    Ok(id) => Some(id),
                    Err(error) => {
                        let diagnostic = Diagnostic::error(error.kind.code(), error.message)
                            .help("the program was checked with other operators: check it with these rules");
                        self.bag.push(match node.origin {
                            Origin::Program(span) => diagnostic.at(span, "ill-typed here"),
                            _ => diagnostic,
                        });
                        None
                    }
                }
            }
            NodeKind::Gradient { handler, index } => {
                self.handler(graph, *handler, map);
                let id = self.gradients.get(*handler)?.as_ref()?.get(*index).copied()?;
                if let Some(name) = &node.name {
                    self.tape.graph.node_mut(id).name.get_or_insert_with(|| name.clone());
                }
                Some(id)
            }
        }
    }

    /// Differentiates one handler, unless that was done.
    fn handler(&mut self, graph: &Graph, index: usize, map: &Map) {
        if self.gradients[index].is_some() {
            return;
        }
        let handler = &graph.handlers[index];
        let primal = map.of(handler.primal);
        let cotangent = handler.cotangent.map(|c| map.of(c));
        let params: Vec<NodeId> = self.params[index].iter().flatten().copied().collect();
        let seed_origin = self.space.origin(Origin::Handler(handler.span));
        let ty = self.tape.graph.ty(primal).clone();
        let seed = match cotangent {
            Some(c) => c,
            None => match self.builder(seed_origin).splat(1.0, ty) {
                Ok(seed) => seed,
                Err(error) => {
                    self.bag.push(
                        Diagnostic::error("E0502", error.message)
                            .at(handler.span, "no cotangent to start with")
                            .help("give the cotangent as an input: `--cotangent input`"),
                    );
                    return;
                }
            },
        };
        let cotangents = self.backward(primal, seed, &params, handler.span);
        let mut gradients = Vec::new();
        for (param, spec) in params.iter().zip(&handler.params) {
            let gradient = match cotangents.get(param.index()).copied().flatten() {
                Some(g) => g,
                None => {
                    let ty = self.tape.graph.ty(*param).clone();
                    match self.builder(seed_origin).splat(0.0, ty) {
                        Ok(zero) => zero,
                        Err(_) => *param,
                    }
                }
            };
            gradients.push(gradient);
            self.records.push(Gradient { name: spec.name.clone(), primal, param: *param, gradient, cotangent });
        }
        self.gradients[index] = Some(gradients);
    }

    pub(super) fn builder(&mut self, origin: OriginId) -> TapeBuilder<'_> {
        TapeBuilder { tape: &mut self.tape, space: &mut self.space, origin }
    }

    /// The reverse walk from `primal`. Returns the accumulated cotangent of each tape node that has one.
    fn backward(&mut self, primal: NodeId, seed: NodeId, params: &[NodeId], span: Span) -> Vec<Option<NodeId>> {
        let last = primal.index();
        // Active: the value depends on a parameter. Only active operands need a rule.
        let mut is_param = vec![false; last + 1];
        for param in params {
            if param.index() <= last {
                is_param[param.index()] = true;
            }
        }
        let mut active = is_param.clone();
        for (id, node) in self.tape.graph.iter().take(last + 1) {
            let depends = match &node.kind {
                NodeKind::Op { op, operands, .. } => {
                    let count = operands.len();
                    operands.iter().enumerate().any(|(i, o)| active[o.index()] && !stops(self.rules, *op, i, count))
                }
                _ => node.operands().any(|o| active[o.index()]),
            };
            active[id.index()] |= depends && node.ty.dtype.is_float();
        }
        let mut incoming: Vec<Vec<NodeId>> = vec![Vec::new(); last + 1];
        let mut total: Vec<Option<NodeId>> = vec![None; last + 1];
        let mut missing: Vec<(OpId, usize)> = Vec::new();
        incoming[last].push(seed);
        for index in (0..=last).rev() {
            if !active[index] || incoming[index].is_empty() {
                continue;
            }
            if !self.is_small_enough(span) {
                break;
            }
            let id = NodeId(index as u32);
            let contributions = std::mem::take(&mut incoming[index]);
            let Some(cotangent) = self.accumulate(id, &contributions, span) else { continue };
            total[index] = Some(cotangent);
            if is_param[index] {
                continue;
            }
            match self.tape.graph.node(id).kind.clone() {
                NodeKind::Param { argument, .. } => incoming[argument.index()].push(cotangent),
                NodeKind::Op { op, operands, .. } => {
                    let Some((mask, cotangent)) = self.unmask(id, cotangent, span) else { continue };
                    for (i, operand) in operands.iter().enumerate() {
                        if !active[operand.index()] {
                            continue;
                        }
                        match self.apply(id, op, i, cotangent) {
                            Applied::Cotangent(g) => {
                                incoming[operand.index()].extend(self.mask(mask, g, span));
                            }
                            Applied::Nothing | Applied::Refused => {}
                            Applied::Missing => {
                                // One report for an operator and parameter, at its first use met.
                                let param = self.rules.registry.op(op).signature().param_of(i, operands.len()).0;
                                if !missing.contains(&(op, param)) {
                                    missing.push((op, param));
                                    let path = self.path(*operand, id, params);
                                    self.missing(id, op, i, &path);
                                }
                            }
                        }
                    }
                }
                NodeKind::Input | NodeKind::Gradient { .. } => {}
            }
        }
        total
    }

    /// Is there still room on the tape? Otherwise that is reported.
    fn is_small_enough(&mut self, span: Span) -> bool {
        let what = if self.tape.values(self.rules) > self.limit {
            format!("more than {} values", self.limit)
        } else if self.fuel.0 == 0 {
            "more steps than there is time for".to_owned()
        } else {
            return true;
        };
        if !self.bag.has_errors() {
            self.bag.push(
                Diagnostic::error("E0506", format!("differentiating this program makes {what}"))
                    .at(span, "the limit is reached here")
                    .note("every handler inside another one multiplies the program; so do rules that build large terms")
                    .help("nest fewer handlers, or make the rules' conclusions smaller"),
            );
        }
        false
    }

    /// Adds up the cotangents of a value with several uses.
    fn accumulate(&mut self, value: NodeId, contributions: &[NodeId], span: Span) -> Option<NodeId> {
        let (first, rest) = contributions.split_first()?;
        if rest.is_empty() {
            return Some(*first);
        }
        // If every contribution is masked, so is the sum; that costs an operator, so only where it can matter.
        if self.passes_masks(value) && contributions.iter().all(|c| self.masks.is_masked(&self.tape.graph, *c)) {
            return self.accumulate_masked(value, contributions, span);
        }
        self.sum(value, contributions, span)
    }

    /// Adds up cotangents that are all masked: those of one mask within it, others as they are.
    fn accumulate_masked(&mut self, value: NodeId, contributions: &[NodeId], span: Span) -> Option<NodeId> {
        let mut summands = Vec::with_capacity(contributions.len());
        for contribution in contributions {
            match self.masks.unmask(&mut self.tape, &mut self.space, *contribution) {
                Ok(masked) => summands.extend(masked),
                Err(error) => return self.refuse_cotangent(error, span),
            }
        }
        let mask = match self.masks.of_sum(&mut self.tape, &mut self.space, &summands) {
            Ok(mask) => mask,
            Err(error) => return self.refuse_cotangent(error, span),
        };
        let inner: Vec<NodeId> = if summands.iter().all(|s| mask.is_some_and(|m| m.same(&s.mask))) {
            summands.iter().map(|s| s.cotangent).collect()
        } else {
            contributions.to_vec()
        };
        let sum = self.sum(value, &inner, span)?;
        self.mask(mask, sum, span)
    }

    fn refuse_cotangent<T>(&mut self, error: TypeError, span: Span) -> Option<T> {
        self.bag.push(Diagnostic::error("E0502", error.message).at(span, "a cotangent cannot be formed").help(
            "a fault of kina-ad or of a rule in effect: `kina-ad grad` with `-O0` and fewer rule files shows which",
        ));
        None
    }

    /// Do VJPs of this value's node work point by point, so that a mask on its cotangent passes through them?
    fn passes_masks(&self, id: NodeId) -> bool {
        match &self.tape.graph.node(id).kind {
            NodeKind::Op { .. } => {
                let ty = self.tape.graph.ty(id);
                let registry = &self.rules.registry;
                self.tape.graph.with_call(id, |op, call| registry.op(op).is_elementwise(call, ty)).unwrap_or(false)
            }
            NodeKind::Param { .. } => true,
            NodeKind::Input | NodeKind::Gradient { .. } => false,
        }
    }

    /// Takes the cotangent of an elementwise operator's value out of its mask. `None` is a refusal, reported.
    fn unmask(&mut self, id: NodeId, cotangent: NodeId, span: Span) -> Option<(Option<Mask>, NodeId)> {
        if !self.masks.is_masked(&self.tape.graph, cotangent) || !self.passes_masks(id) {
            return Some((None, cotangent));
        }
        match self.masks.unmask(&mut self.tape, &mut self.space, cotangent) {
            Ok(Some(masked)) => Some((Some(masked.mask), masked.cotangent)),
            Ok(None) => Some((None, cotangent)),
            Err(error) => self.refuse_cotangent(error, span),
        }
    }

    /// Puts the mask back on. `None` is a refusal, reported.
    fn mask(&mut self, mask: Option<Mask>, cotangent: NodeId, span: Span) -> Option<NodeId> {
        let Some(mask) = mask else { return Some(cotangent) };
        match self.masks.mask(&mut self.tape, &mut self.space, mask, cotangent) {
            Ok(masked) => Some(masked),
            Err(error) => self.refuse_cotangent(error, span),
        }
    }

    fn sum(&mut self, value: NodeId, contributions: &[NodeId], span: Span) -> Option<NodeId> {
        let (first, rest) = contributions.split_first()?;
        let serves = vec![self.shown(value)];
        let origin = self.space.origin(Origin::Accumulate { serves });
        let Some(add) = self.rules.registry.id("add") else {
            self.bag.push(
                Diagnostic::error("E0502", "adding up cotangents needs the operator `add`")
                    .at(span, "here")
                    .help("use a registry that has it"),
            );
            return None;
        };
        let mut sum = *first;
        for contribution in rest {
            sum = match self.builder(origin).op(add, &[sum, *contribution], Vec::new()) {
                Ok(sum) => sum,
                Err(error) => {
                    self.bag.push(
                        Diagnostic::error("E0502", error.message)
                            .at(span, "cotangents of one value differ")
                            .help("a cotangent has dtype, shape and placement of its operand: mend the rule"),
                    );
                    return None;
                }
            };
        }
        Some(sum)
    }
}

/// Does the rule of an operator say that no cotangent flows to an operand, whatever the call? What is computed
/// from the result then needs no rule for the operand's sake.
pub(crate) fn stops(rules: &RuleSet, op: OpId, operand: usize, count: usize) -> bool {
    let (param, _) = rules.registry.op(op).signature().param_of(operand, count);
    rules.vjps(op).first().is_some_and(|vjp| {
        let always = vjp.head.conditions.is_empty() && vjp.attrs.iter().all(|a| matches!(a, AttrPattern::Var(_)));
        always && matches!(vjp.conclusions.get(param), Some(Conclusion::NoCotangent(_)))
    })
}
