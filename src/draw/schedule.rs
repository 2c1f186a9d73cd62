//! A schedule as a picture: its steps in order, each fusion group a box with its nests.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Options;
use super::assemble::{Mark, Subject, assemble, some};
use super::fold::{self, Item, Operand};
use super::graph::{backward, short_type};
use super::picture::{Kind, Line, Node, Part, Picture, Pin, Style};
use super::text::{cells, list, shorten};
use crate::ir::print::Printer;
use crate::ir::{NodeId, NodeKind};
use crate::schedule::{Group, GroupKind, Nest, Place, Schedule, Sequence, Step, ValueId};

/// Most cells of a line, and of a name in it.
const MOST: usize = 52;
const NAME: usize = 24;
/// Most lines for what a nest reads and computes.
const LINES: usize = 3;
/// Most nests of a group that are drawn; the tooltip has them all.
const NESTS: usize = 10;

/// The picture of a schedule.
pub fn picture(schedule: &Schedule, printer: &Printer<'_>, title: &str, options: Options) -> Picture {
    let steps = Steps::new(schedule, printer);
    let items = steps.items();
    let order: Vec<usize> = (steps.inputs.len()..items.len()).collect();
    let blocks = if options.fold { fold::blocks(&items, &order) } else { Vec::new() };
    let mut picture = assemble(&steps, &items, &blocks, &steps.marks());
    picture.title = title.to_owned();
    let (groups, checks) =
        (schedule.groups.len(), schedule.steps.iter().filter(|s| matches!(s, Step::Check(_))).count());
    picture.notes = vec![
        format!("{groups} groups and {checks} checks in {} steps, numbered in their order", schedule.steps.len()),
        format!("workspace {} bytes, scratch {} bytes for each thread", schedule.workspace, schedule.scratch),
    ];
    let hidden: usize = blocks.iter().map(|b| (b.copies.len() - 1) * b.copies[0].len()).sum();
    if hidden > 0 {
        picture.notes.push(format!(
            "{hidden} steps and inputs are hidden in {} frame(s), which say how many each; --unfold draws them",
            blocks.len()
        ));
    }
    picture.legend = vec![
        (Kind::Input, "input"),
        (Kind::Step, "fusion group"),
        (Kind::Forward, "its nests"),
        (Kind::Backward, "nest for a gradient"),
        (Kind::Result, "result"),
    ];
    if checks > 0 {
        picture.legend.push((Kind::Check, "bounds check"));
    }
    if !blocks.is_empty() {
        picture.legend.push((Kind::Reference, "from outside a copy, or to the next"));
    }
    picture
}

/// Inputs and steps as items: inputs first, then the steps in their order.
struct Steps<'a> {
    schedule: &'a Schedule,
    printer: &'a Printer<'a>,
    backward: Vec<bool>,
    inputs: Vec<ValueId>,
    /// Who writes each value last, and which of its results that is.
    writer: Vec<Option<Operand>>,
}

impl<'a> Steps<'a> {
    fn new(schedule: &'a Schedule, printer: &'a Printer<'a>) -> Steps<'a> {
        let mut steps = Steps {
            schedule,
            printer,
            backward: backward(printer.graph),
            inputs: Vec::new(),
            writer: vec![None; schedule.values.len()],
        };
        for (v, value) in schedule.values.iter().enumerate() {
            if let Place::Input(_) = value.place
                && printer.graph.node(value.node).kind == NodeKind::Input
            {
                steps.writer[v] = Some(Operand { item: steps.inputs.len(), result: 0 });
                steps.inputs.push(ValueId(v as u32));
            }
        }
        steps
    }

    /// The step that an item is.
    fn step(&self, item: usize) -> Option<(usize, Step)> {
        let step = item.checked_sub(self.inputs.len())?;
        Some((step, *self.schedule.steps.get(step)?))
    }

    fn group(&self, item: usize) -> Option<&'a Group> {
        match self.step(item)?.1 {
            Step::Run(g) => self.schedule.groups.get(g),
            _ => None,
        }
    }

    fn label(&self, v: ValueId) -> String {
        self.schedule.name(self.printer.names(), v)
    }

    fn place(&self, v: ValueId) -> String {
        self.schedule.place(self.printer.names(), v)
    }

    /// The items with what they read. Values are followed in the order of the steps: one may be written more than once.
    fn items(&self) -> Vec<Item> {
        let mut known: BTreeMap<String, u32> = BTreeMap::new();
        let mut key = |what: String| {
            let next = known.len() as u32;
            *known.entry(what).or_insert(next)
        };
        let mut items: Vec<Item> = Vec::new();
        for v in &self.inputs {
            let key = key(format!("input {}", self.schedule.value(*v).ty));
            items.push(Item { key, operands: Vec::new(), floats: true });
        }
        let mut writer = self.writer.clone();
        for step in &self.schedule.steps {
            let here = items.len();
            let reads: Vec<ValueId> = match step {
                Step::Check(i) => vec![self.schedule.sites[*i].indices],
                Step::Copy { from, .. } => vec![*from],
                Step::Run(g) => reads(&self.schedule.groups[*g]).collect(),
            };
            let operands = reads.iter().filter_map(|v| writer[self.schedule.root(*v).index()]).collect();
            items.push(Item { key: key(self.what(step)), operands, floats: false });
            if let Step::Run(g) = step {
                let results = self.schedule.groups[*g].nests.iter().flat_map(|n| &n.results);
                results
                    .enumerate()
                    .for_each(|(i, r)| writer[r.value.index()] = Some(Operand { item: here, result: i as u32 }));
            }
        }
        items
    }

    /// What a step does, without the names of what it does it to.
    fn what(&self, step: &Step) -> String {
        let kind = |v: ValueId| match self.schedule.value(v).place {
            Place::Inlined => "inlined",
            Place::Input(_) => "input",
            Place::Output(_) => "output",
            Place::Slot(_) => "slot",
            Place::Row(_) => "row",
            Place::Register => "register",
            Place::View(_) => "view",
        };
        let g = match step {
            Step::Check(i) => {
                return format!("check {} {}", self.schedule.sites[*i].size, self.schedule.sites[*i].operator);
            }
            Step::Copy { from, .. } => return format!("copy {}", self.schedule.value(*from).ty),
            Step::Run(g) => &self.schedule.groups[*g],
        };
        let mut what = format!("{:?} {:?}", g.kind, g.strip);
        for nest in &g.nests {
            let _ = write!(what, " over {:?} {:?} {:?}", nest.domain, nest.sequence, nest.body.insts());
            for read in &nest.reads {
                let _ = write!(what, " read {:?}", read.map);
            }
            for r in &nest.results {
                let ty = &self.schedule.value(r.value).ty;
                let _ = write!(what, " write {:?} {:?} {:?} {} {ty}", r.map, r.root, r.reduce, kind(r.value));
            }
            // The operators too: different ones may have one kernel.
            for n in &nest.nodes {
                let _ = write!(what, " {}{}", self.operator(*n), u8::from(self.backward[n.index()]));
            }
        }
        what
    }

    fn operator(&self, node: NodeId) -> &str {
        match &self.printer.graph.node(node).kind {
            NodeKind::Op { op, .. } => self.printer.registry.op(*op).name(),
            _ => "",
        }
    }

    fn marks(&self) -> Vec<Mark> {
        let mut writer = self.writer.clone();
        let mut copies: BTreeMap<usize, Operand> = BTreeMap::new();
        for (s, step) in self.schedule.steps.iter().enumerate() {
            let item = self.inputs.len() + s;
            match step {
                Step::Copy { output, .. } => {
                    copies.insert(*output, Operand { item, result: 0 });
                }
                Step::Run(g) => {
                    let results = self.schedule.groups[*g].nests.iter().flat_map(|n| &n.results);
                    results
                        .enumerate()
                        .for_each(|(i, r)| writer[r.value.index()] = Some(Operand { item, result: i as u32 }));
                }
                Step::Check(_) => {}
            }
        }
        let graph = self.printer.graph;
        let mut marks = Vec::new();
        for (j, output) in graph.outputs.iter().enumerate() {
            let written = writer[self.schedule.root(output.node.into()).index()];
            let Some(of) = copies.get(&j).copied().or(written) else { continue };
            marks.push(Mark {
                of,
                kind: Kind::Result,
                name: output.name.to_string(),
                tooltip: format!("output {j}: {} : {}", self.label(output.node.into()), graph.ty(output.node)),
                data: vec![("result", output.name.to_string())],
            });
        }
        marks
    }

    fn nest(&self, nest: &Nest) -> Part {
        let mut lines = Vec::new();
        for r in &nest.results {
            lines.push(Line::new(
                Style::Name,
                format!("{} [{}]", shorten(&self.label(r.value), NAME), shorten(&self.place(r.value), NAME)),
            ));
            let how = match (nest.sequence, r.reduce) {
                (Some(Sequence::Scan(_)), _) => "scan".to_owned(),
                (Some(Sequence::Scatter(_)), Some(c)) => format!("scatter, {c:?}").to_lowercase(),
                (_, Some(c)) => format!("{c:?}").to_lowercase(),
                (_, None) => "map".to_owned(),
            };
            lines.push(Line::new(Style::Plain, shorten(&format!("{how} over {:?}", nest.domain), MOST)));
        }
        let read: Vec<String> = nest
            .operands()
            .into_iter()
            .map(|v| format!("{} [{}]", shorten(&self.label(v), NAME), self.place(v)))
            .collect();
        lines.extend(wrap("reads ", &read));
        let mut operators: Vec<String> = Vec::new();
        for n in &nest.nodes {
            operators.push(self.operator(*n).to_owned());
        }
        lines.extend(wrap("computes ", &operators));
        Part { lines, backward: nest.nodes.iter().all(|n| self.backward[n.index()]) }
    }

    fn group_node(&self, step: usize, g: usize) -> Node {
        let group = &self.schedule.groups[g];
        let kind = match &group.kind {
            GroupKind::Single => "single".to_owned(),
            GroupKind::Loops => "loops".to_owned(),
            GroupKind::Rows(rows) if rows.is_empty() => "one row".to_owned(),
            GroupKind::Rows(rows) => format!("rows {rows:?}"),
        };
        let mut lines = vec![Line::new(Style::Name, shorten(&format!("{}. group {g}: {kind}", step + 1), MOST))];
        if let Some(strip) = group.strip {
            lines.push(Line::new(Style::Note, format!("in strips of {} of {} lanes", strip.width, strip.extent)));
        }
        let mut parts: Vec<Part> = group.nests.iter().take(NESTS).map(|n| self.nest(n)).collect();
        if group.nests.len() > NESTS {
            let more = format!("and {} nests more", group.nests.len() - NESTS);
            parts.push(Part { lines: vec![Line::new(Style::Note, more)], backward: false });
        }
        let nodes: Vec<String> = group.nodes.iter().map(|n| self.label((*n).into())).collect();
        Node {
            kind: Kind::Step,
            lines,
            parts,
            tooltip: format!("group {g} computes {}", some(&nodes)),
            pin: Pin::Free,
            frame: None,
            data: vec![("group", g.to_string())],
        }
    }
}

/// What the nests of a group read of what other steps write, in a fixed order.
fn reads(group: &Group) -> impl Iterator<Item = ValueId> + '_ {
    let written: std::collections::BTreeSet<ValueId> =
        group.nests.iter().flat_map(|n| n.results.iter().map(|r| r.value)).collect();
    let all = group.nests.iter().flat_map(|n| n.reads.iter().map(|r| r.value).chain(n.gathers.iter().copied()));
    all.filter(move |v| !written.contains(v))
}

/// Items in a few lines, behind a word.
fn wrap(word: &str, items: &[String]) -> Vec<Line> {
    let room = (MOST * 6).div_ceil(5);
    let mut lines: Vec<String> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let item = if i + 1 < items.len() { format!("{item}, ") } else { item.clone() };
        let full = lines.len() == LINES;
        match lines.last_mut() {
            Some(line) if cells(line) + cells(&item) <= room => line.push_str(&item),
            Some(line) if full => {
                let _ = write!(line, ".. {} more", items.len() - i);
                break;
            }
            Some(_) => lines.push(format!("  {item}")),
            None => lines.push(format!("{word}{item}")),
        }
    }
    lines.into_iter().map(|l| Line::new(Style::Note, l)).collect()
}

impl Subject for Steps<'_> {
    fn node(&self, copies: &[usize]) -> Node {
        let item = copies.first().copied().unwrap_or(0);
        let mut node = match self.step(item) {
            None => {
                let v = self.inputs.get(item).copied().unwrap_or(ValueId(0));
                let ty = &self.schedule.value(v).ty;
                Node {
                    kind: Kind::Input,
                    lines: vec![
                        Line::new(Style::Name, shorten(&self.label(v), NAME)),
                        Line::new(Style::Plain, shorten(&short_type(ty), MOST)),
                        Line::new(Style::Note, self.place(v)),
                    ],
                    parts: Vec::new(),
                    tooltip: format!("{} : {ty}", self.label(v)),
                    pin: Pin::Free,
                    frame: None,
                    data: vec![("value", self.label(v))],
                }
            }
            Some((step, Step::Run(g))) => self.group_node(step, g),
            Some((step, Step::Check(i))) => {
                let site = &self.schedule.sites[i];
                let label = self.label(site.indices);
                Node {
                    kind: Kind::Check,
                    lines: vec![
                        Line::new(Style::Name, format!("{}. check", step + 1)),
                        Line::new(Style::Plain, format!("0 <= {} < {}", shorten(&label, NAME), site.size)),
                    ],
                    parts: Vec::new(),
                    tooltip: format!("0 <= {label} < {}, or trap: {}", site.size, site.message()),
                    pin: Pin::Free,
                    frame: None,
                    data: vec![("check", i.to_string())],
                }
            }
            Some((step, Step::Copy { from, output })) => Node {
                kind: Kind::Forward,
                lines: vec![
                    Line::new(Style::Name, format!("{}. copy", step + 1)),
                    Line::new(Style::Plain, format!("{} to output {output}", shorten(&self.label(from), NAME))),
                ],
                parts: Vec::new(),
                tooltip: format!("{} is copied to output {output}", self.label(from)),
                pin: Pin::Free,
                frame: None,
                data: vec![("copy", output.to_string())],
            },
        };
        if copies.len() > 1 {
            let names: Vec<String> = copies.iter().map(|c| self.name(Operand { item: *c, result: 0 })).collect();
            let _ = write!(node.tooltip, "\n{} copies: {}", copies.len(), some(&names));
            if self.step(item).is_some() {
                let steps: Vec<String> =
                    copies.iter().filter_map(|c| self.step(*c)).map(|(s, _)| (s + 1).to_string()).collect();
                node.lines
                    .insert(1.min(node.lines.len()), Line::new(Style::Note, format!("steps {}", list(&steps, NAME))));
            }
        }
        node
    }

    /// An input, a value that a group writes, or the step.
    fn name(&self, operand: Operand) -> String {
        let value = match self.group(operand.item) {
            Some(group) => group.nests.iter().flat_map(|n| &n.results).nth(operand.result as usize).map(|r| r.value),
            None => self.inputs.get(operand.item).copied(),
        };
        match (value, self.step(operand.item)) {
            (Some(v), _) => self.label(v),
            (None, Some((step, _))) => format!("step_{}", step + 1),
            (None, None) => String::new(),
        }
    }

    fn is_within(&self, _: usize) -> bool {
        false
    }

    fn is_backward(&self, item: usize) -> bool {
        self.group(item).is_some_and(|g| g.nodes.iter().all(|n| self.backward[n.index()]))
    }

    fn plural(&self) -> &'static str {
        "steps and inputs"
    }
}
