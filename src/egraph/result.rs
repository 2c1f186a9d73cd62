//! From an extraction back to a typed graph with names and provenance.

use std::collections::BTreeMap;
use std::sync::Arc;

use egg::{Id, Language};
use rustc_hash::FxHashMap;

use super::Differentiated;
use super::cost::Cost;
use super::extract::{Problem, Solution};
use super::language::{ENode, split_call};
use crate::ir::{Check, Graph, Node, NodeId, NodeKind, Origin, Output};

/// The cheapest form of a program.
#[derive(Clone, Debug)]
pub struct Extracted {
    pub graph: Graph,
    /// In the units of the cost model.
    pub cost: Cost,
    /// Did the search for it end by itself, and not because it ran out of steps?
    pub complete: bool,
    /// The class of each node of the graph.
    pub classes: Vec<Id>,
}

/// What is to be extracted from a program: what its checks look at, then its outputs.
pub fn problem(program: &Differentiated) -> Problem {
    let class_of = |id: NodeId| program.space.egraph.find(program.classes[id.index()]);
    // Checks first: what they need runs before everything else.
    let mut roots: Vec<Id> = program.tape.checks.iter().map(|c| class_of(c.indices)).collect();
    roots.extend(program.tape.outputs.iter().map(|o| class_of(o.node)));
    Problem::new(&program.space, &roots)
}

/// Extracts outputs and checks. `None` if a root has no computable form, which a tape without missing rules excludes.
pub fn extract(program: &Differentiated) -> Option<Extracted> {
    extract_with(program).map(|(extracted, _)| extracted)
}

/// The same, with the form that was chosen for every class.
pub fn extract_with(program: &Differentiated) -> Option<(Extracted, Solution)> {
    let solution = problem(program).solve()?;
    Some((assemble(program, &solution)?, solution))
}

/// The graph of a solution of a program's extraction problem.
pub fn assemble(program: &Differentiated, solution: &Solution) -> Option<Extracted> {
    let space = &program.space;
    let egraph = &space.egraph;
    let tape = &program.tape;
    let current = |node: &ENode| node.clone().map_children(|child| egraph.find(child));
    let class_of = |id: NodeId| egraph.find(program.classes[id.index()]);

    // A class takes the source name of the first tape node in it that has one.
    let mut names: BTreeMap<Id, Arc<str>> = BTreeMap::new();
    for (id, node) in tape.iter() {
        if let (Some(name), false) = (&node.name, matches!(node.kind, NodeKind::Param { .. })) {
            names.entry(class_of(id)).or_insert_with(|| name.clone());
        }
    }
    // The first origin of each e-node that was chosen, in the form it has now.
    let nodes: Vec<(Id, &ENode)> = solution.nodes().collect();
    let mut origins: FxHashMap<ENode, Option<&Origin>> = nodes.iter().map(|(_, node)| (current(node), None)).collect();
    for (node, origin) in space.log() {
        if let Some(first @ None) = origins.get_mut(&current(node)) {
            *first = Some(origin);
        }
    }
    let mut graph = Graph::new();
    let mut classes: Vec<Id> = Vec::new();
    let mut map: BTreeMap<Id, NodeId> = BTreeMap::new();
    for id in &tape.inputs {
        let new = graph.push(tape.node(*id).clone());
        graph.inputs.push(new);
        classes.push(class_of(*id));
        map.insert(class_of(*id), new);
    }
    for (id, node) in nodes {
        if map.contains_key(&id) {
            continue;
        }
        let ENode::Op(op, children) = node else { continue };
        let (operands, attrs) = split_call(egraph, *op, children);
        let operands = operands.iter().map(|o| map.get(&egraph.find(*o)).copied()).collect::<Option<Vec<_>>>()?;
        let origin = (*origins.get(&current(node))?)?.clone();
        let new = graph.push(Node {
            kind: NodeKind::Op { op: *op, operands, attrs },
            ty: (**space.ty(id)?).clone(),
            name: names.get(&id).cloned(),
            origin,
        });
        classes.push(id);
        map.insert(id, new);
    }
    for check in &tape.checks {
        let indices = *map.get(&class_of(check.indices))?;
        graph.checks.add(Check { indices, ..check.clone() });
    }
    for output in &tape.outputs {
        graph.outputs.push(Output { name: output.name.clone(), node: *map.get(&class_of(output.node))? });
    }
    Some(Extracted { graph, cost: solution.cost, complete: solution.complete, classes })
}
