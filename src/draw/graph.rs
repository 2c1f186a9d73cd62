//! A typed graph as a picture.

use std::collections::BTreeMap;

use super::Options;
use super::assemble::{Mark, Subject, assemble, some};
use super::fold::{self, Item, Operand};
use super::linear::linear;
use super::picture::{Kind, Line, Node, Picture, Pin, Style};
use super::text::{cells, shorten};
use crate::ir::attr::format_float;
use crate::ir::print::Printer;
use crate::ir::{AttrValue, DType, Graph, NodeId, NodeKind, Origin, TensorType};

/// Most cells of a line, of an operand's name and of an attribute in it.
const MOST: usize = 42;
const OPERAND: usize = 18;
const ATTRIBUTE: usize = 20;

/// The picture of a graph.
pub fn picture(printer: &Printer<'_>, title: &str, options: Options) -> Picture {
    let graph = printer.graph;
    let values = Values::new(printer);
    let reads = values.reads();
    let keys = values.keys();
    let linear = linear(graph, &values.backward, &keys, &reads);
    let items: Vec<Item> = reads_with_places(graph)
        .into_iter()
        .zip(keys.iter().zip(&linear.floats))
        .map(|(operands, (key, floats))| Item {
            key: *key,
            operands: operands.into_iter().map(|item| Operand { item, result: 0 }).collect(),
            floats: *floats,
        })
        .collect();
    let blocks = if options.fold { fold::blocks(&items, &linear.order) } else { Vec::new() };
    let mut picture = assemble(&values, &items, &blocks, &values.marks());
    let backward = (0..graph.len()).filter(|v| values.backward[*v]).count();
    picture.title = title.to_owned();
    picture.notes = vec![format!(
        "{} values, of which {backward} are there for a gradient; {} results",
        graph.len(),
        graph.outputs.len()
    )];
    let hidden: usize = blocks.iter().map(|b| (b.copies.len() - 1) * b.copies[0].len()).sum();
    if hidden > 0 {
        picture.notes.push(format!(
            "{hidden} values are hidden in {} frame(s), which say how many each; --unfold draws them",
            blocks.len()
        ));
    }
    picture.legend = vec![
        (Kind::Input, "input"),
        (Kind::Forward, "value of the program"),
        (Kind::Backward, "value for a gradient"),
        (Kind::Result, "result"),
    ];
    if !graph.checks.is_empty() {
        picture.legend.push((Kind::Check, "bounds check"));
    }
    if !blocks.is_empty() {
        picture.legend.push((Kind::Reference, "from outside a copy, or to the next"));
    }
    picture
}

/// What a node reads, operand by operand. The gradient of a handler comes from its primal.
fn reads_with_places(graph: &Graph) -> Vec<Vec<usize>> {
    let read = |(id, node): (NodeId, &crate::ir::Node)| match &node.kind {
        NodeKind::Gradient { handler, .. } => {
            let primal = graph.handlers.get(*handler).map(|h| h.primal);
            primal.filter(|p| *p < id).map(NodeId::index).into_iter().collect()
        }
        _ => node.operands().map(NodeId::index).collect(),
    };
    graph.iter().map(read).collect()
}

/// Which values are there for a gradient: what a VJP, a handler or a sum of cotangents made, and what a rewrite made of such a value or
/// for such values alone. What the program says itself is a value of the program, whatever it computes with.
pub fn backward(graph: &Graph) -> Vec<bool> {
    let mut backward = vec![false; graph.len()];
    let rewritten =
        |node: &crate::ir::Node| matches!(&node.origin, Origin::Rule { rule, .. } if !rule.name.starts_with("vjp "));
    for (id, node) in graph.iter() {
        backward[id.index()] = match &node.origin {
            Origin::Program(_) => matches!(node.kind, NodeKind::Gradient { .. }),
            Origin::Handler(_) | Origin::Accumulate { .. } => true,
            Origin::Rule { .. } => !rewritten(node) || node.operands().any(|o| backward[o.index()]),
        };
    }
    // For such values alone.
    let mut used = vec![(false, false); graph.len()];
    for (id, node) in graph.iter().rev() {
        let (by_forward, by_backward) = used[id.index()];
        if rewritten(node) && by_backward && !by_forward {
            backward[id.index()] = true;
        }
        for o in node.operands() {
            let used = &mut used[o.index()];
            if backward[id.index()] { used.1 = true } else { used.0 = true }
        }
    }
    backward
}

struct Values<'a> {
    printer: &'a Printer<'a>,
    backward: Vec<bool>,
    /// Constants that are drawn in the boxes of their readers, as text.
    constants: Vec<Option<String>>,
}

impl<'a> Values<'a> {
    fn new(printer: &'a Printer<'a>) -> Values<'a> {
        let graph = printer.graph;
        let mut drawn = vec![true; graph.len()];
        graph.iter().flat_map(|(_, node)| node.operands()).for_each(|o| drawn[o.index()] = false);
        graph.outputs.iter().for_each(|o| drawn[o.node.index()] = true);
        graph.checks.iter().for_each(|c| drawn[c.indices.index()] = true);
        let constants = graph.iter().map(|(id, node)| constant(printer, node).filter(|_| !drawn[id.index()])).collect();
        Values { printer, backward: backward(graph), constants }
    }

    fn label(&self, item: usize) -> &str {
        self.printer.names().get(item).map_or("", String::as_str)
    }

    /// Operands, each once.
    fn reads(&self) -> Vec<Vec<usize>> {
        let mut all = reads_with_places(self.printer.graph);
        for reads in &mut all {
            let mut seen = std::collections::BTreeSet::new();
            reads.retain(|u| seen.insert(*u));
        }
        all
    }

    /// Numbers of what values do: operator, attributes, type, and whose they are.
    fn keys(&self) -> Vec<u32> {
        type What<'a> = (&'a NodeTag, &'a [AttrValue], &'a TensorType, bool);
        let tags: Vec<NodeTag> = self.printer.graph.iter().map(|(_, node)| NodeTag::of(&node.kind)).collect();
        let mut known: BTreeMap<What<'_>, u32> = BTreeMap::new();
        let mut keys = Vec::with_capacity(tags.len());
        for ((id, node), tag) in self.printer.graph.iter().zip(&tags) {
            let attrs: &[AttrValue] = match &node.kind {
                NodeKind::Op { attrs, .. } => attrs,
                _ => &[],
            };
            let next = known.len() as u32;
            keys.push(*known.entry((tag, attrs, &node.ty, self.backward[id.index()])).or_insert(next));
        }
        keys
    }

    fn marks(&self) -> Vec<Mark> {
        let graph = self.printer.graph;
        let checks = graph.checks.iter().map(|check| Mark {
            of: Operand { item: check.indices.index(), result: 0 },
            kind: Kind::Check,
            name: format!("0 <= {} < {}", shorten(self.label(check.indices.index()), OPERAND), check.size),
            tooltip: format!(
                "0 <= {} < {}, or trap: {}",
                self.label(check.indices.index()),
                check.size,
                check.message()
            ),
            data: Vec::new(),
        });
        let results = graph.outputs.iter().map(|output| Mark {
            of: Operand { item: output.node.index(), result: 0 },
            kind: Kind::Result,
            name: output.name.to_string(),
            tooltip: format!("{} = {} : {}", output.name, self.label(output.node.index()), graph.ty(output.node)),
            data: vec![("result", output.name.to_string())],
        });
        checks.chain(results).collect()
    }

    /// `sum(x, axis=[1])`: attributes that are the default, or that the type says, are left out.
    fn call(&self, id: NodeId) -> String {
        let graph = self.printer.graph;
        let node = graph.node(id);
        let NodeKind::Op { op, operands, attrs } = &node.kind else { return self.printer.call(id) };
        let operator = self.printer.registry.op(*op);
        let rank = operands.first().map_or(0, |o| graph.ty(*o).rank());
        let mut parts: Vec<String> = operands
            .iter()
            .map(|o| match self.constants.get(o.index()) {
                Some(Some(constant)) => constant.clone(),
                _ => shorten(self.label(o.index()), OPERAND),
            })
            .collect();
        for ((name, _, default), value) in operator.signature().attrs().zip(attrs) {
            let said = match value {
                AttrValue::Type(ty) => *ty == node.ty,
                AttrValue::Ints(dims) => {
                    name == "shape" && dims.iter().map(|d| *d as u64).eq(node.ty.shape.iter().copied())
                }
                AttrValue::DType(dtype) => *dtype == node.ty.dtype,
                _ => false,
            };
            let usual = default.is_some_and(|d| d.value(rank) == *value);
            if !said && !usual {
                parts.push(format!("{name}={}", shorten(&short_value(value), ATTRIBUTE)));
            }
        }
        let all = format!("{}({})", operator.name(), parts.join(", "));
        if cells(&all) <= MOST || parts.len() < 4 {
            return all;
        }
        // Of many operands the first and the last.
        let (first, last) = (&parts[0], &parts[parts.len() - 1]);
        format!("{}({first}, .. {} .., {last})", operator.name(), parts.len() - 2)
    }
}

/// What a node is, of what keys compare.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum NodeTag {
    Input,
    Param,
    Gradient,
    Op(crate::ir::OpId),
}

impl NodeTag {
    fn of(kind: &NodeKind) -> NodeTag {
        match kind {
            NodeKind::Input => NodeTag::Input,
            NodeKind::Param { .. } => NodeTag::Param,
            NodeKind::Gradient { .. } => NodeTag::Gradient,
            NodeKind::Op { op, .. } => NodeTag::Op(*op),
        }
    }
}

/// A constant as its readers show it.
fn constant(printer: &Printer<'_>, node: &crate::ir::Node) -> Option<String> {
    let NodeKind::Op { op, operands, attrs } = &node.kind else { return None };
    let operator = printer.registry.op(*op);
    if operator.name() != "splat" || !operands.is_empty() {
        return None;
    }
    let value = attrs.iter().find_map(AttrValue::as_float)?;
    Some(match node.ty.dtype {
        DType::Bool => (value != 0.0).to_string(),
        DType::I32 | DType::I64 => format!("{value}"),
        DType::F32 if value.is_finite() => format!("{:?}", value as f32),
        DType::F32 | DType::F64 => format_float(value),
    })
}

/// An attribute without what is long in it.
fn short_value(value: &AttrValue) -> String {
    match value {
        AttrValue::Type(ty) => short_type(ty),
        value => value.to_string(),
    }
}

/// `F32 [1, 4, 8]`; the place only where it is not the host.
pub fn short_type(ty: &TensorType) -> String {
    let place = if ty.placement == crate::ir::Placement::Host { "" } else { " @device" };
    format!("{} {}{place}", ty.dtype, ty.shape)
}

impl Subject for Values<'_> {
    fn node(&self, copies: &[usize]) -> Node {
        let item = copies.first().copied().unwrap_or(0);
        let id = NodeId(item as u32);
        let node = self.printer.graph.node(id);
        let names: Vec<String> = copies.iter().map(|c| self.label(*c).to_owned()).collect();
        let mut lines = vec![Line::new(Style::Name, shorten(self.label(item), MOST - 4))];
        let kind = match (&node.kind, self.backward[item]) {
            (NodeKind::Input, _) => Kind::Input,
            (_, true) => Kind::Backward,
            (_, false) => Kind::Forward,
        };
        let (call, full) = (self.call(id), self.printer.call(id));
        if kind != Kind::Input {
            lines.push(Line::new(Style::Plain, shorten(&call, MOST)));
        }
        lines.push(Line::new(Style::Plain, shorten(&short_type(&node.ty), MOST)));
        let origin = self.printer.origin(&node.origin);
        match &node.origin {
            Origin::Rule { rule, .. } => {
                let both = format!("{} {}", rule.location, rule.name);
                if cells(&both) <= MOST + 8 {
                    lines.push(Line::new(Style::Note, both));
                } else {
                    lines.push(Line::new(Style::Note, shorten(&rule.location, MOST + 8)));
                    lines.push(Line::new(Style::Note, shorten(&rule.name, MOST + 8)));
                }
            }
            Origin::Accumulate { .. } => lines.push(Line::new(Style::Note, "sum of cotangents")),
            Origin::Handler(_) => lines.push(Line::new(Style::Note, shorten(&origin, MOST + 8))),
            Origin::Program(_) => {}
        }
        let mut tooltip = format!("{} = {full}\n{}\n{origin}", self.label(item), node.ty);
        if copies.len() > 1 {
            tooltip.push_str(&format!("\n{} copies: {}", copies.len(), some(&names)));
        }
        let mut data = vec![("value", self.label(item).to_owned())];
        let constants: Vec<&str> = node
            .operands()
            .map(NodeId::index)
            .filter(|o| self.constants[*o].is_some())
            .map(|o| self.label(o))
            .collect();
        if !constants.is_empty() {
            data.push(("constants", constants.join(" ")));
        }
        Node { kind, lines, parts: Vec::new(), tooltip, pin: Pin::Free, frame: None, data }
    }

    fn name(&self, operand: Operand) -> String {
        self.label(operand.item).to_owned()
    }

    fn is_within(&self, item: usize) -> bool {
        self.constants[item].is_some()
    }

    fn is_backward(&self, item: usize) -> bool {
        self.backward[item]
    }

    fn plural(&self) -> &'static str {
        "values"
    }
}
