//! A graph as a reader sees it: names, calls, types and who made what, as text. It can be made of a graph and be read back from what
//! was printed of one, also where operators or rules have changed since.

use std::fmt;
use std::fmt::Write as _;

use crate::diagnostics::{SourceMap, Span};
use crate::ir::{Graph, NodeId, NodeKind, Origin, Param, Registry, names::value_names};

/// A graph. Operands stand before their users, inputs before everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub values: Vec<Value>,
    pub checks: Vec<Guard>,
    pub results: Vec<Named>,
}

/// An input, or what a call computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    pub name: String,
    /// `None` for an input.
    pub call: Option<Call>,
    pub ty: String,
    /// `None` for an input.
    pub maker: Option<Maker>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub op: String,
    /// In the order of the signature.
    pub args: Vec<Arg>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// The value of that index.
    Value(usize),
    /// `axis=[1]`
    Attr(String),
}

/// Who made a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    /// A line of the program, `nll.kina:12`, or a handler on it.
    Program(String),
    Rule {
        location: String,
        name: String,
        /// Forward values, separated by commas.
        serves: String,
    },
    /// The sum of the cotangents of forward values.
    Sum { serves: String },
}

/// A bounds check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    pub indices: usize,
    pub size: u64,
    pub message: String,
}

/// A result, with the index of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    pub value: usize,
}

impl fmt::Display for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Maker::Program(line) => f.write_str(line),
            Maker::Rule { location, name, serves } => write!(f, "{location} {name}, for {serves}"),
            Maker::Sum { serves } => write!(f, "{SUM}{serves}"),
        }
    }
}

/// How a sum of cotangents begins.
pub(super) const SUM: &str = "sum of the cotangents of ";

impl Value {
    /// The operands, in order.
    pub fn operands(&self) -> impl Iterator<Item = usize> + '_ {
        let args = self.call.iter().flat_map(|call| &call.args);
        args.filter_map(|arg| match arg {
            Arg::Value(index) => Some(*index),
            Arg::Attr(_) => None,
        })
    }
}

impl Record {
    /// Places in the file `program` are shown by the last part of its name, so that they do not depend on where it is.
    pub fn new(graph: &Graph, registry: &Registry, sources: &SourceMap, program: &str) -> Record {
        let names = value_names(graph, registry);
        let mut order: Vec<NodeId> = graph.inputs.clone();
        let count = order.len();
        order.extend(graph.iter().filter(|(_, node)| node.kind != NodeKind::Input).map(|(id, _)| id));
        let mut position = vec![0; graph.len()];
        for (i, id) in order.iter().enumerate() {
            position[id.index()] = i;
        }
        let place = |span: Span| {
            let file = &*sources.file(span.file).name;
            let shown = if file == program { file_name(file) } else { file.to_owned() };
            format!("{shown}:{}", sources.position(span).line)
        };
        let describe = Describe { graph, registry, position: &position };
        let value = |(i, id): (usize, &NodeId)| {
            let node = graph.node(*id);
            let is_input = i < count;
            Value {
                name: names[id.index()].clone(),
                call: (!is_input).then(|| describe.call(*id)),
                ty: node.ty.to_string(),
                maker: (!is_input).then(|| maker(&node.origin, &place)),
            }
        };
        Record {
            values: order.iter().enumerate().map(value).collect(),
            checks: graph
                .checks
                .iter()
                .map(|c| Guard { indices: position[c.indices.index()], size: c.size, message: c.message() })
                .collect(),
            results: graph
                .outputs
                .iter()
                .map(|o| Named { name: o.name.to_string(), value: position[o.node.index()] })
                .collect(),
        }
    }

    /// `sum(x, axis=[1], keepdims=true)`
    pub fn call(&self, index: usize) -> String {
        let Some(call) = &self.values[index].call else { return "input".to_owned() };
        let args: Vec<&str> = call
            .args
            .iter()
            .map(|arg| match arg {
                Arg::Value(operand) => &*self.values[*operand].name,
                Arg::Attr(text) => text,
            })
            .collect();
        format!("{}({})", call.op, args.join(", "))
    }

    /// The text that `kina-ad grad` prints of the same graph.
    pub fn text(&self) -> String {
        let mut out = String::from("inputs\n");
        let width = self.values.iter().map(|v| v.name.len()).max().unwrap_or(0).min(24);
        for value in self.values.iter().filter(|v| v.call.is_none()) {
            let _ = writeln!(out, "  {:width$} : {}", value.name, value.ty);
        }
        out.push_str("values\n");
        for (i, value) in self.values.iter().enumerate().filter(|(_, v)| v.call.is_some()) {
            let _ = writeln!(out, "  {:width$} = {} : {}", value.name, self.call(i), value.ty);
            if let Some(maker) = &value.maker {
                let _ = writeln!(out, "  {:width$}   // {maker}", "");
            }
        }
        if !self.checks.is_empty() {
            out.push_str("checks\n");
        }
        for check in &self.checks {
            let _ = writeln!(out, "  {}", self.check(check));
        }
        out.push_str("results\n");
        for result in &self.results {
            let value = &self.values[result.value];
            let _ = writeln!(out, "  {:width$} = {} : {}", result.name, value.name, value.ty);
        }
        out
    }

    /// `0 <= targets < 8, or trap: take_along_axis index out of bounds`
    pub fn check(&self, check: &Guard) -> String {
        format!("0 <= {} < {}, or trap: {}", self.values[check.indices].name, check.size, check.message)
    }
}

/// The last part of a path.
pub fn file_name(path: &str) -> String {
    let name = std::path::Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path);
    one_line(name)
}

/// Names of files may hold anything; what is printed of them stays on its line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn maker(origin: &Origin, place: &dyn Fn(Span) -> String) -> Maker {
    match origin {
        Origin::Program(span) => Maker::Program(one_line(&place(*span))),
        Origin::Handler(span) => Maker::Program(one_line(&format!("{} handler", place(*span)))),
        Origin::Accumulate { serves } => Maker::Sum { serves: serves.join(", ") },
        Origin::Rule { rule, serves } => {
            Maker::Rule { location: one_line(&rule.location), name: rule.name.to_string(), serves: serves.join(", ") }
        }
    }
}

/// Nodes as calls.
struct Describe<'a> {
    graph: &'a Graph,
    registry: &'a Registry,
    position: &'a [usize],
}

impl Describe<'_> {
    fn value(&self, id: NodeId) -> Arg {
        Arg::Value(self.position[id.index()])
    }

    fn call(&self, id: NodeId) -> Call {
        match &self.graph.node(id).kind {
            NodeKind::Input => Call { op: "input".to_owned(), args: Vec::new() },
            // What a parameter is called tells it from another one of the same argument.
            NodeKind::Param { argument, handler, index } => {
                let name = self.graph.handlers.get(*handler).and_then(|h| h.params.get(*index));
                let name = name.map_or_else(|| index.to_string(), |p| p.name.to_string());
                Call {
                    op: "parameter".to_owned(),
                    args: vec![self.value(*argument), Arg::Attr(format!("name={name}"))],
                }
            }
            NodeKind::Gradient { handler, index } => {
                let handler = self.graph.handlers.get(*handler);
                let nodes = handler.into_iter().flat_map(|h| {
                    let param = h.params.get(*index).map(|p| p.node);
                    [Some(h.primal), param, h.cotangent].into_iter().flatten()
                });
                Call { op: "gradient".to_owned(), args: nodes.map(|id| self.value(id)).collect() }
            }
            NodeKind::Op { op, operands, attrs } => {
                let operator = self.registry.op(*op);
                let (mut operands, mut attrs) = (operator.signature().split(operands).into_iter(), attrs.iter());
                let mut args = Vec::new();
                for param in operator.signature().params() {
                    match param {
                        Param::Operand(_) | Param::Variadic(_) => {
                            args.extend(operands.next().into_iter().flatten().map(|o| self.value(*o)));
                        }
                        Param::Attr { name, .. } => args.extend(attrs.next().map(|a| Arg::Attr(format!("{name}={a}")))),
                    }
                }
                Call { op: operator.name().to_owned(), args }
            }
        }
    }
}
