//! From the tape to a graph that can run: parameters stand for their arguments, composites for their definitions.

use crate::ir::{Check, Graph, Node, NodeId, NodeKind, Output, TypeError};
use crate::rules::RuleSet;

/// Resolves parameters and expands composites; drops what no output and no check needs.
///
/// # Errors
/// A definition that is not well-typed for its operands (its typing rule accepted them, so this is a fault).
pub fn resolve(tape: &Graph, rules: &RuleSet) -> Result<Graph, TypeError> {
    let live = tape.live();
    let mut graph = Graph::new();
    let mut map: Vec<Option<NodeId>> = vec![None; tape.len()];
    for (id, node) in tape.iter() {
        let is_input = node.kind == NodeKind::Input;
        if !live[id.index()] && !is_input {
            continue;
        }
        let mapped = |o: &NodeId| map[o.index()].unwrap_or(*o);
        let new = match &node.kind {
            NodeKind::Input => {
                let new = graph.push(node.clone());
                graph.inputs.push(new);
                new
            }
            NodeKind::Param { argument, .. } => mapped(argument),
            NodeKind::Gradient { .. } => continue,
            NodeKind::Op { op, operands, attrs } => {
                let operands: Vec<NodeId> = operands.iter().map(mapped).collect();
                let name = rules.registry.op(*op).name();
                match rules.def(name) {
                    Some(_) => {
                        let shown = node.name.clone().unwrap_or_else(|| name.into());
                        match rules.expand(name, &mut graph, &operands, attrs, vec![shown])? {
                            Some(new) => new,
                            None => continue,
                        }
                    }
                    None => {
                        let kind = NodeKind::Op { op: *op, operands, attrs: attrs.clone() };
                        graph.push(Node { kind, ..node.clone() })
                    }
                }
            }
        };
        map[id.index()] = Some(new);
    }
    let inner_checks = std::mem::take(&mut graph.checks);
    for check in &tape.checks {
        if let Some(indices) = map[check.indices.index()] {
            graph.checks.add(Check { indices, ..check.clone() });
        }
    }
    for check in inner_checks {
        graph.checks.add(check);
    }
    for output in &tape.outputs {
        if let Some(node) = map[output.node.index()] {
            graph.outputs.push(Output { name: output.name.clone(), node });
        }
    }
    Ok(graph)
}
