//! What is said of an operator without a VJP.

use std::sync::Arc;

use super::differentiate::Walk;
use crate::diagnostics::Diagnostic;
use crate::ir::{NodeId, NodeKind, OpId, Origin, Registry};
use crate::rules::stub;

impl Walk<'_> {
    /// The source name of a value, or its operator.
    pub(super) fn shown(&self, id: NodeId) -> Arc<str> {
        let node = self.tape.graph.node(id);
        match (&node.name, &node.kind) {
            (Some(name), _) => name.clone(),
            (None, NodeKind::Op { op, .. }) => self.rules.registry.op(*op).name().into(),
            (None, _) => "a parameter".into(),
        }
    }

    /// The values from a parameter to the use that has no rule.
    pub(super) fn path(&self, operand: NodeId, user: NodeId, params: &[NodeId]) -> Vec<Arc<str>> {
        // The nearest parameter by breadth-first search backwards.
        let mut from: Vec<Option<NodeId>> = vec![None; user.index() + 1];
        let mut queue = std::collections::VecDeque::from([operand]);
        from[operand.index()] = Some(user);
        while let Some(id) = queue.pop_front() {
            if params.contains(&id) {
                let mut path = vec![self.shown(id)];
                let mut at = id;
                while let Some(next) = from[at.index()].filter(|_| at != user) {
                    path.push(self.shown(next));
                    at = next;
                }
                return path;
            }
            for o in self.tape.graph.node(id).operands() {
                if from[o.index()].is_none() {
                    from[o.index()] = Some(id);
                    queue.push_back(o);
                }
            }
        }
        Vec::new()
    }

    pub(super) fn missing(&mut self, id: NodeId, op: OpId, operand: usize, path: &[Arc<str>]) {
        let registry: &Registry = &self.rules.registry;
        let operator = registry.op(op);
        let count = self.tape.graph.node(id).operands().count();
        let operand_name = operator.signature().operand_label(operand, count);
        let name = operator.name().to_owned();
        let mut diagnostic =
            Diagnostic::error("E0501", format!("no VJP for `{name}` with respect to its operand `{operand_name}`"));
        match &self.tape.graph.node(id).origin {
            Origin::Program(span) | Origin::Handler(span) => {
                diagnostic = diagnostic.at(*span, "differentiated here");
            }
            Origin::Rule { rule, .. } => {
                diagnostic = diagnostic.note(format!("the call comes from {rule}"));
            }
            Origin::Accumulate { .. } => {}
        }
        if !path.is_empty() {
            diagnostic = diagnostic.note(format!("it is active through {}", path.join(" -> ")));
        }
        if let Some(vjp) = self.rules.vjps(op).first() {
            diagnostic = diagnostic.note(format!("{} does not cover these attributes and types", vjp.head.rule));
        }
        self.bag.push(diagnostic.help(format!(
            "write the rule into a file and pass it with `--rules FILE`:\n{}",
            stub(op, registry).trim_end()
        )));
    }
}
