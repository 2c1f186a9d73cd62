//! What one application of a rewrite did, with the values of this program.

use std::collections::BTreeMap;
use std::sync::Arc;

use egg::Id;

use crate::egraph::mirror::Mirror;
use crate::egraph::record::{Application, Cause};
use crate::egraph::{Differentiated, resolve};
use crate::interp::expected::{expectation, outcome};
use crate::interp::{Evaluator, InterpError};
use crate::ir::names::value_names;
use crate::ir::{
    Array, AttrValue, Graph, Level, Node, NodeId, NodeKind, Origin, Output, Precision, Registry, RuleRef, TensorType,
};
use crate::rules::term::{Bindings, Builder};
use crate::rules::{AttrPattern, GraphBuilder, Pattern, Rewrite, RewriteClass};

use super::premise::{Bench, Seen};

/// Applications whose sides are compared to find one that is wrong.
const LOOKED_AT: usize = 500;
/// The longest side that is printed whole.
const LONGEST: usize = 160;

/// One application.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewriting {
    pub rule: RuleRef,
    /// From 1, and how many there are.
    pub number: usize,
    pub of: usize,
    pub iteration: usize,
    /// The name of the value that got another form.
    pub value: String,
    /// The forward values it serves.
    pub serves: Vec<Arc<str>>,
    /// Both sides, with names of values for metavariables.
    pub left: String,
    pub right: String,
    /// How the right side differs from the left one at the values of this program. `None` if it does not, or they could not be
    /// computed.
    pub difference: Option<Seen>,
}

/// A saturated program whose e-nodes have values.
pub struct Scene<'a> {
    bench: &'a Bench<'a>,
    program: &'a Differentiated,
    mirror: Mirror,
    names: Vec<String>,
}

/// Both sides of an application as a graph whose inputs are the values that metavariables stand for.
struct Sides {
    graph: Graph,
    left: NodeId,
    right: NodeId,
    /// By input: the node of the mirror.
    inputs: Vec<NodeId>,
    class: RewriteClass,
}

impl<'a> Scene<'a> {
    /// Of a program with its record.
    pub fn new(bench: &'a Bench<'a>, program: &'a Differentiated) -> Scene<'a> {
        let mirror = Mirror::new(program);
        let names = value_names(&mirror.graph, bench.registry());
        Scene { bench, program, mirror, names }
    }

    /// The application at fault, if the program differs from -O0 after the one at `last` and not before: that one, or the first
    /// one whose sides differ, which may be an earlier one that had not come into the result.
    ///
    /// # Errors
    /// Memory that does not suffice.
    pub fn guilty(&self, last: usize) -> Result<Option<Rewriting>, InterpError> {
        let Some(record) = self.program.record() else { return Ok(None) };
        let count = record.applications.len();
        let copies = self.bench.inputs.iter().map(Array::copy).collect::<Result<Vec<_>, _>>()?;
        let mut values = Evaluator::new(&self.mirror.graph, self.bench.registry(), copies, Precision::Typed)?;
        let own = self.look(last, count, &mut values);
        if own.as_ref().is_none_or(|own| own.difference.is_none()) {
            for index in (0..last).take(LOOKED_AT) {
                if let Some(other) = self.look(index, count, &mut values)
                    && other.difference.is_some()
                {
                    return Ok(Some(other));
                }
            }
        }
        Ok(own)
    }

    /// What an application did.
    fn look(&self, index: usize, of: usize, values: &mut Evaluator<'_>) -> Option<Rewriting> {
        let record = self.program.record()?;
        let application = record.applications.get(index)?;
        let rule = application.cause.rule()?.clone();
        let sides = self.sides(application)?;
        let value = self.names.get(self.mirror.node(application.class)?.index())?.clone();
        let before = match index.checked_sub(1).and_then(|i| record.applications.get(i)) {
            Some(previous) => previous.after,
            None => record.start,
        };
        // It was made for the forward values that what it made serves.
        let made = Mirror::made_between(self.program, before, application.after);
        let made = made.or_else(|| Some(self.mirror.graph.node(self.mirror.node(application.value)?).origin.clone()));
        let serves = match (&self.mirror.graph.node(self.mirror.node(application.class)?).name, made) {
            (Some(name), _) => vec![name.clone()],
            (None, Some(Origin::Rule { serves, .. } | Origin::Accumulate { serves })) => serves,
            _ => Vec::new(),
        };
        let shown = inline(&sides.graph, self.bench.registry());
        let difference = self.difference(&sides, &value, values).ok().flatten();
        Some(Rewriting {
            rule,
            number: index + 1,
            of,
            iteration: application.iteration,
            value,
            serves,
            left: shown[sides.left.index()].clone(),
            right: shown[sides.right.index()].clone(),
            difference,
        })
    }

    /// Builds both sides over the values of the metavariables.
    fn sides(&self, application: &Application) -> Option<Sides> {
        let registry = self.bench.registry();
        match &application.cause {
            Cause::Rewrite { rule, bindings, swapped } => {
                let mut graph = Graph::new();
                let mut inputs = Inputs::default();
                let mut bound: Bindings<'_, NodeId> = Bindings::new(rule.head.vars.len(), &rule.head.locals);
                for (i, id) in bindings.iter().enumerate() {
                    let Some(id) = id else { continue };
                    match self.mirror.attr(*id) {
                        Some(value) => bound.attrs[i] = Some(value.clone()),
                        None => bound.tensors[i] = Some(self.input(*id, &mut graph, &mut inputs)?),
                    }
                }
                let mut builder = builder(registry, &mut graph, rule);
                let left = left(&rule.left, &bound, &mut swapped.iter(), &mut builder)?;
                bound.expected = Some(builder.ty(left));
                let right = bound.build(&rule.right, &mut builder).ok()?;
                Some(Sides { graph, left, right, inputs: inputs.nodes, class: rule.class })
            }
            Cause::Commutes { rule, op, operands: [a, b] } => {
                let mut graph = Graph::new();
                let mut inputs = Inputs::default();
                let (a, b) = (self.input(*a, &mut graph, &mut inputs)?, self.input(*b, &mut graph, &mut inputs)?);
                let mut builder = builder(registry, &mut graph, rule);
                let left = builder.op(*op, &[a, b], Vec::new()).ok()?;
                let right = builder.op(*op, &[b, a], Vec::new()).ok()?;
                Some(Sides { graph, left, right, inputs: inputs.nodes, class: rule.class })
            }
            Cause::Definition { .. } | Cause::Alternative => None,
        }
    }

    /// The input that stands for an e-node.
    fn input(&self, id: Id, graph: &mut Graph, inputs: &mut Inputs) -> Option<NodeId> {
        let node = self.mirror.node(id)?;
        if let Some(known) = inputs.known.get(&node) {
            return Some(*known);
        }
        let made = self.mirror.graph.node(node);
        let ty: TensorType = made.ty.clone();
        let name = Some(self.names.get(node.index())?.as_str().into());
        let input = graph.push(Node { kind: NodeKind::Input, ty, name, origin: made.origin.clone() });
        graph.inputs.push(input);
        inputs.known.insert(node, input);
        inputs.nodes.push(node);
        Some(input)
    }

    /// Computes both sides and compares them as a level is compared with -O0.
    fn difference(&self, sides: &Sides, value: &str, values: &mut Evaluator<'_>) -> Result<Option<Seen>, InterpError> {
        let rules = &self.bench.question.session.rules;
        let registry = &rules.registry;
        let mut inputs = Vec::with_capacity(sides.inputs.len());
        for node in &sides.inputs {
            inputs.push(values.require(*node)?.copy()?);
        }
        let side = |node: NodeId| {
            let mut graph = sides.graph.clone();
            graph.outputs = vec![Output { name: value.into(), node }];
            // A definition stands for its composite.
            resolve(&graph, rules).map_err(|_| InterpError::NotDifferentiated)
        };
        let (left, right) = (side(sides.left)?, side(sides.right)?);
        let level = if sides.class == RewriteClass::Exact { Level::O1 } else { Level::O2 };
        let Some(expected) = expectation(&left, registry, &inputs, level)?.expected else { return Ok(None) };
        let found = outcome(&right, registry, &inputs, Precision::Typed)?;
        Ok(expected.admits(&found).err().map(|difference| Seen::new(&difference, &right)))
    }
}

/// Inputs of both sides.
#[derive(Default)]
struct Inputs {
    known: BTreeMap<NodeId, NodeId>,
    nodes: Vec<NodeId>,
}

fn builder<'b>(registry: &'b Registry, graph: &'b mut Graph, rule: &Rewrite) -> GraphBuilder<'b> {
    GraphBuilder { registry, graph, rule: rule.head.rule.clone(), serves: Vec::new() }
}

/// The left side as it was found: operands of commuting operators may have stood the other way round.
fn left<'s>(
    pattern: &Pattern,
    bindings: &Bindings<'_, NodeId>,
    swapped: &mut impl Iterator<Item = &'s bool>,
    builder: &mut GraphBuilder<'_>,
) -> Option<NodeId> {
    match pattern {
        Pattern::Var(v) => bindings.tensors[v.0 as usize],
        Pattern::Op { op, operands, attrs } => {
            let turned = swapped.next().copied().unwrap_or(false);
            let mut built = Vec::with_capacity(operands.len());
            for operand in operands {
                built.push(left(operand, bindings, swapped, builder)?);
            }
            if turned {
                built.reverse();
            }
            let attrs = attrs.iter().map(|a| match a {
                AttrPattern::Const(v) => Some(v.clone()),
                AttrPattern::Var(v) => bindings.attrs[v.0 as usize].clone(),
            });
            builder.op(*op, &built, attrs.collect::<Option<_>>()?).ok()
        }
    }
}

/// Every node as one expression over the inputs, shortened where that would be long.
fn inline(graph: &Graph, registry: &Registry) -> Vec<String> {
    let mut texts: Vec<String> = Vec::with_capacity(graph.len());
    for (_, node) in graph.iter() {
        texts.push(match &node.kind {
            NodeKind::Op { op, operands, attrs } => {
                let operator = registry.op(*op);
                match (operator.name(), attrs.as_slice()) {
                    ("splat", [value @ AttrValue::Float(_), _]) => value.to_string(),
                    (name, attrs) => {
                        let shown = operands.iter().map(|o| texts[o.index()].clone());
                        let named =
                            operator.signature().attrs().zip(attrs).map(|((name, ..), v)| format!("{name}={v}"));
                        let arguments = shown.chain(named).collect::<Vec<_>>().join(", ");
                        if arguments.len() > LONGEST { format!("{name}(..)") } else { format!("{name}({arguments})") }
                    }
                }
            }
            _ => node.name.as_deref().unwrap_or("x").to_owned(),
        });
    }
    texts
}
