//! Typed graphs as text, JSON and DOT.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::graph::{Graph, NodeId, NodeKind, Origin};
use super::names::value_names;
use super::operator::{Param, Registry};
use crate::diagnostics::SourceMap;

/// What a printout shows beside the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// Who made each node.
    pub origins: bool,
}

/// A graph with what is needed to show it.
pub struct Printer<'a> {
    pub graph: &'a Graph,
    pub registry: &'a Registry,
    pub sources: &'a SourceMap,
    names: Vec<String>,
}

impl<'a> Printer<'a> {
    pub fn new(graph: &'a Graph, registry: &'a Registry, sources: &'a SourceMap) -> Self {
        Self::with_names(graph, registry, sources, value_names(graph, registry))
    }

    /// With other names of the values, one for each.
    pub fn with_names(graph: &'a Graph, registry: &'a Registry, sources: &'a SourceMap, names: Vec<String>) -> Self {
        debug_assert_eq!(names.len(), graph.len());
        Self { graph, registry, sources, names }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    fn name(&self, id: NodeId) -> &str {
        &self.names[id.index()]
    }

    /// `sum(x, axis=[1], keepdims=true)`.
    pub fn call(&self, id: NodeId) -> String {
        match &self.graph.node(id).kind {
            NodeKind::Input => "input".to_owned(),
            NodeKind::Param { argument, .. } => format!("parameter {}", self.name(*argument)),
            NodeKind::Gradient { handler, index } => format!("gradient {index} of handler {handler}"),
            NodeKind::Op { op, operands, attrs } => {
                let operator = self.registry.op(*op);
                let (mut operands, mut attrs) = (operator.signature().split(operands).into_iter(), attrs.iter());
                let mut parts = Vec::new();
                for param in operator.signature().params() {
                    match param {
                        Param::Operand(_) | Param::Variadic(_) => {
                            parts.extend(operands.next().into_iter().flatten().map(|o| self.name(*o).to_owned()));
                        }
                        Param::Attr { name, .. } => parts.extend(attrs.next().map(|a| format!("{name}={a}"))),
                    }
                }
                format!("{}({})", operator.name(), parts.join(", "))
            }
        }
    }

    /// `rules/phase1.rules:12 vjp log_softmax, for log_probs`, or the place in the program.
    pub fn origin(&self, origin: &Origin) -> String {
        match origin {
            Origin::Program(span) => self.sources.file_line(*span),
            Origin::Handler(span) => format!("{} handler", self.sources.file_line(*span)),
            Origin::Accumulate { serves } => format!("sum of the cotangents of {}", serves.join(", ")),
            Origin::Rule { rule, serves } => format!("{} {}, for {}", rule.location, rule.name, serves.join(", ")),
        }
    }

    /// Inputs, values in order, checks, results: one line each.
    pub fn text(&self, options: PrintOptions) -> String {
        let mut out = String::new();
        let graph = self.graph;
        let width = graph.iter().map(|(id, _)| self.name(id).len()).max().unwrap_or(0).min(24);
        out.push_str("inputs\n");
        for id in &graph.inputs {
            let _ = writeln!(out, "  {:width$} : {}", self.name(*id), graph.ty(*id));
        }
        out.push_str("values\n");
        for (id, node) in graph.iter() {
            if node.kind == NodeKind::Input {
                continue;
            }
            let _ = writeln!(out, "  {:width$} = {} : {}", self.name(id), self.call(id), node.ty);
            if options.origins {
                let _ = writeln!(out, "  {:width$}   // {}", "", self.origin(&node.origin));
            }
        }
        if !graph.checks.is_empty() {
            out.push_str("checks\n");
            for check in &graph.checks {
                let _ =
                    writeln!(out, "  0 <= {} < {}, or trap: {}", self.name(check.indices), check.size, check.message());
            }
        }
        out.push_str("results\n");
        for output in &graph.outputs {
            let _ = writeln!(out, "  {:width$} = {} : {}", output.name, self.name(output.node), graph.ty(output.node));
        }
        out
    }

    /// The same as a JSON value: `version`, `values` (each with `name`, `type`, `op`, `operands`, `attributes`, `bytes`,
    /// and `rule` and `serves`, or `origin`), `checks` (`indices`, `size`, `message`) and `results` (`name`, `value`).
    pub fn json(&self) -> Value {
        let graph = self.graph;
        let values: Vec<Value> = graph
            .iter()
            .map(|(id, node)| {
                let mut value = json!({ "name": self.name(id), "type": node.ty.to_string() });
                match &node.kind {
                    NodeKind::Op { op, operands, attrs } => {
                        let operator = self.registry.op(*op);
                        value["op"] = json!(operator.name());
                        value["operands"] = operands.iter().map(|o| self.name(*o)).collect();
                        value["attributes"] = operator
                            .signature()
                            .attrs()
                            .zip(attrs)
                            .map(|((name, _, _), value)| (name.to_owned(), json!(value.to_string())))
                            .collect::<serde_json::Map<_, _>>()
                            .into();
                    }
                    NodeKind::Input => value["op"] = json!("input"),
                    NodeKind::Param { .. } => value["op"] = json!("parameter"),
                    NodeKind::Gradient { .. } => value["op"] = json!("gradient"),
                }
                value["bytes"] = json!(node.ty.bytes());
                match &node.origin {
                    Origin::Rule { rule, serves } => {
                        value["rule"] = json!({ "name": &*rule.name, "location": &*rule.location });
                        value["serves"] = serves.iter().map(|s| &**s).collect();
                    }
                    origin => value["origin"] = json!(self.origin(origin)),
                }
                value
            })
            .collect();
        let checks: Vec<Value> = graph
            .checks
            .iter()
            .map(|c| json!({ "indices": self.name(c.indices), "size": c.size, "message": c.message() }))
            .collect();
        let results: Vec<Value> =
            graph.outputs.iter().map(|o| json!({ "name": &*o.name, "value": self.name(o.node) })).collect();
        json!({ "version": 1, "values": values, "checks": checks, "results": results })
    }

    /// Graphviz, backward nodes shaded.
    pub fn dot(&self) -> String {
        let mut out =
            String::from("digraph kina {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\", fontsize=10];\n");
        for (id, node) in self.graph.iter() {
            let (shape, origin) = match &node.kind {
                NodeKind::Input => (", shape=ellipse", String::new()),
                _ => (
                    if matches!(node.origin, Origin::Rule { .. }) {
                        ", style=filled, fillcolor=\"#eef3fb\""
                    } else {
                        ""
                    },
                    format!("\\n{}", escape(&self.origin(&node.origin))),
                ),
            };
            let call = escape(&self.call(id));
            let ty = escape(&node.ty.to_string());
            let name = escape(self.name(id));
            let _ = writeln!(out, "  n{} [label=\"{name} = {call}\\n{ty}{origin}\"{shape}];", id.0);
            for operand in node.operands() {
                let _ = writeln!(out, "  n{} -> n{};", operand.0, id.0);
            }
        }
        for (i, output) in self.graph.outputs.iter().enumerate() {
            let _ = writeln!(out, "  r{i} [label=\"{}\", shape=doublecircle];", escape(&output.name));
            let _ = writeln!(out, "  n{} -> r{i};", output.node.0);
        }
        out.push_str("}\n");
        out
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
