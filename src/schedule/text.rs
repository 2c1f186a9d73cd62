//! A schedule as text and as a DOT graph. Both depend on the schedule and the names only.

use std::collections::BTreeMap;
use std::fmt::Write;

use petgraph::dot::{Config, Dot};
use petgraph::graph::DiGraph;

use super::nest::{Nest, Sequence, ValueId};
use super::{Group, GroupKind, Place, Schedule, Step};

impl Schedule {
    pub(crate) fn name(&self, names: &[String], id: ValueId) -> String {
        match names.get(id.index()) {
            Some(name) => name.clone(),
            None => format!("tmp_{}", self.temporary(id)),
        }
    }

    /// Temporaries of kernels are counted from 0, whatever the number of nodes.
    fn temporary(&self, id: ValueId) -> usize {
        let first = self.values.iter().enumerate().position(|(i, v)| v.node.index() != i).unwrap_or(0);
        id.index() - first.min(id.index())
    }

    pub(crate) fn place(&self, names: &[String], id: ValueId) -> String {
        match self.value(id).place {
            Place::Inlined => "nowhere".into(),
            Place::Input(i) => format!("input {i}"),
            Place::Output(i) => format!("output {i}"),
            Place::Slot(at) => format!("workspace+{at}"),
            Place::Row(at) => format!("row at scratch+{at}"),
            Place::Register => "register".into(),
            Place::View(of) => format!("view of {}", self.name(names, of)),
        }
    }

    fn nest_text(&self, names: &[String], nest: &Nest) -> String {
        let mut text = format!("over {:?}", nest.domain);
        let all = |values: Vec<ValueId>| values.into_iter().map(|v| self.name(names, v)).collect::<Vec<_>>().join(", ");
        let _ = write!(text, " reads ({})", all(nest.operands()));
        for r in &nest.results {
            let order = match nest.sequence {
                Some(Sequence::Scan(_)) => " scan",
                Some(Sequence::Scatter(_)) => " scatter",
                None => "",
            };
            let how = r.reduce.map_or_else(|| "=".to_owned(), |c| format!("{c:?} into").to_lowercase());
            let name = self.name(names, r.value);
            let _ = write!(text, "{order} {how} {name} [{}]", self.place(names, r.value));
        }
        text
    }

    /// The schedule for people: steps with their groups, places of values, and the peak memory (ARCHITECTURE.md says how to
    /// read it). `names` are the names
    /// of the graph's nodes by index.
    pub fn to_text(&self, names: &[String]) -> String {
        let mut text = format!(
            "schedule {}: {} group(s), {} check(s), workspace {} bytes, scratch {} bytes for each thread\n",
            self.level,
            self.groups.len(),
            self.steps.iter().filter(|s| matches!(s, Step::Check(_))).count(),
            self.workspace,
            self.scratch
        );
        for step in &self.steps {
            match step {
                Step::Check(i) => {
                    let site = &self.sites[*i];
                    let indices = self.name(names, site.indices);
                    let _ = writeln!(text, "check {indices} in 0..{}: {}", site.size, site.message());
                }
                Step::Copy { from, output } => {
                    let _ = writeln!(text, "copy {} to output {output}", self.name(names, *from));
                }
                Step::Run(g) => {
                    let group = &self.groups[*g];
                    let _ = writeln!(text, "group {g} {}", self.group_head(names, group));
                    for nest in &group.nests {
                        let _ = writeln!(text, "  {}", self.nest_text(names, nest));
                    }
                }
            }
        }
        let (inputs, outputs) = self.inputs_and_outputs();
        let temporaries = self.temporaries(1);
        let _ = writeln!(text, "inputs {inputs} bytes, outputs {outputs} bytes, temporaries {temporaries} bytes");
        let _ = writeln!(text, "peak {} bytes with one thread", self.peak());
        text
    }

    /// Bytes of inputs, outputs and temporaries of a call with one thread. Saturating.
    pub fn peak(&self) -> u64 {
        let (inputs, outputs) = self.inputs_and_outputs();
        inputs.saturating_add(outputs).saturating_add(self.temporaries(1))
    }

    /// Bytes of the caller's buffers. Saturating.
    fn inputs_and_outputs(&self) -> (u64, u64) {
        let (mut inputs, mut outputs) = (BTreeMap::new(), BTreeMap::new());
        for v in &self.values {
            match v.place {
                Place::Input(i) => inputs.insert(i, v.ty.bytes()),
                Place::Output(j) => outputs.insert(j, v.ty.bytes()),
                _ => None,
            };
        }
        for step in &self.steps {
            if let Step::Copy { from, output } = step {
                outputs.insert(*output, self.value(*from).ty.bytes());
            }
        }
        let sum = |bytes: BTreeMap<usize, u64>| bytes.into_values().fold(0, u64::saturating_add);
        (sum(inputs), sum(outputs))
    }

    fn group_head(&self, names: &[String], group: &Group) -> String {
        let kind = match &group.kind {
            GroupKind::Single => "single".to_owned(),
            GroupKind::Loops => "loops".to_owned(),
            GroupKind::Rows(rows) => match group.strip {
                None if rows.is_empty() => "one row".to_owned(),
                None => format!("rows {rows:?}"),
                Some(strip) => format!("rows {rows:?} in strips of {} lanes", strip.width),
            },
        };
        let nodes: Vec<String> = group.nodes.iter().map(|n| self.name(names, (*n).into())).collect();
        format!("{kind}: {}", nodes.join(", "))
    }

    /// The groups as a graph: an edge where one reads what another wrote.
    pub fn to_graph(&self, names: &[String]) -> DiGraph<String, String> {
        let mut graph = DiGraph::new();
        let mut writer = vec![None; self.values.len()];
        for (v, value) in self.values.iter().enumerate() {
            if let Place::Input(_) = value.place {
                writer[v] = Some(graph.add_node(self.name(names, ValueId(v as u32))));
            }
        }
        for step in &self.steps {
            let (label, reads) = match step {
                Step::Check(i) => (self.sites[*i].message(), vec![self.sites[*i].indices]),
                Step::Copy { from, output } => (format!("copy to output {output}"), vec![*from]),
                Step::Run(g) => {
                    let group = &self.groups[*g];
                    let mut reads: Vec<ValueId> = group.nests.iter().flat_map(Nest::operands).collect();
                    reads.sort_unstable();
                    reads.dedup();
                    (self.group_head(names, group), reads)
                }
            };
            let here = graph.add_node(label);
            for v in reads {
                if let Some(from) = writer[self.root(v).index()] {
                    graph.add_edge(from, here, self.name(names, v));
                }
            }
            if let Step::Run(g) = step {
                for r in self.groups[*g].nests.iter().flat_map(|n| &n.results) {
                    writer[r.value.index()] = Some(here);
                }
            }
        }
        graph
    }

    /// [`to_graph`](Schedule::to_graph) in the DOT language.
    pub fn to_dot(&self, names: &[String]) -> String {
        let graph = self.to_graph(names);
        format!(
            "{}",
            Dot::with_attr_getters(&graph, &[Config::GraphContentOnly], &|_, _| String::new(), &|_, _| String::new())
        )
        .lines()
        .fold("digraph schedule {\n    node [shape=box]\n".to_owned(), |all, line| all + line + "\n")
            + "}\n"
    }
}
