//! Schedules of small programs. Tests of later stages use the programs too.

use super::*;
use crate::ir::{AttrValue, DType, Node, NodeKind, Origin, Output, Placement, Shape};

const ORIGIN: Origin = Origin::Accumulate { serves: Vec::new() };

pub(crate) fn ty(dtype: DType, dims: &[u64]) -> TensorType {
    TensorType::new(dtype, Shape::new(dims.to_vec()).unwrap(), Placement::Host)
}

/// A graph and a short way to write calls into it.
pub(crate) struct Program {
    pub registry: Registry,
    pub graph: Graph,
}

impl Program {
    pub fn new() -> Program {
        Program { registry: Registry::builtin(), graph: Graph::new() }
    }

    pub fn input(&mut self, name: &str, dtype: DType, dims: &[u64]) -> NodeId {
        let node = Node { kind: NodeKind::Input, ty: ty(dtype, dims), name: Some(name.into()), origin: ORIGIN };
        let id = self.graph.push(node);
        self.graph.inputs.push(id);
        id
    }

    pub fn call(&mut self, op: &str, operands: &[NodeId], attrs: &[AttrValue]) -> NodeId {
        let id = self.registry.id(op).unwrap();
        let node = self.graph.add(&self.registry, id, operands.to_vec(), attrs.to_vec(), ORIGIN).unwrap();
        if let Some(check) = self.graph.check_of(&self.registry, node) {
            self.graph.checks.add(check);
        }
        node
    }

    pub fn reduce(&mut self, op: &str, x: NodeId, axis: i64, keep: bool) -> NodeId {
        self.call(op, &[x], &[AttrValue::Ints(vec![axis]), AttrValue::Bool(keep)])
    }

    pub fn stretch(&mut self, x: NodeId, dims: &[u64]) -> NodeId {
        self.call("broadcast", &[x], &[AttrValue::Ints(dims.iter().map(|d| *d as i64).collect())])
    }

    pub fn output(&mut self, name: &str, node: NodeId) {
        self.graph.outputs.push(Output { name: name.into(), node });
    }
}

/// Loss and gradient of the negative log-likelihood, in the form that extraction finds.
pub(crate) fn nll(dims: &[u64]) -> (Registry, Graph) {
    let mut p = Program::new();
    let (rank, rows) = (dims.len(), &dims[..dims.len() - 1]);
    let axis = rank as i64 - 1;
    let x = p.input("logits", DType::F32, dims);
    let t = p.input("targets", DType::I64, rows);
    let m = p.reduce("max", x, axis, true);
    let m = p.stretch(m, dims);
    let shifted = p.call("sub", &[x, m], &[]);
    let e = p.call("exp", &[shifted], &[]);
    let s = p.reduce("sum", e, axis, true);
    let squeeze = AttrValue::Ints(rows.iter().map(|d| *d as i64).collect());
    let s_row = p.call("reshape", &[s], &[squeeze]);
    let log = p.call("log", &[s_row], &[]);
    let picked = p.call("take_along_axis", &[shifted, t], &[AttrValue::Int(axis)]);
    let loss = p.call("sub", &[log, picked], &[]);
    let minus = p.call("splat", &[], &[AttrValue::float(-1.0), AttrValue::Type(ty(DType::F32, rows))]);
    let dest = AttrValue::Type(ty(DType::F32, dims));
    let scattered = p.call("scatter_along_axis", &[minus, t], &[AttrValue::Int(axis), dest]);
    let one = p.graph.ty(s).clone();
    let one = p.call("splat", &[], &[AttrValue::float(1.0), AttrValue::Type(one)]);
    let inverse = p.call("div", &[one, s], &[]);
    let inverse = p.stretch(inverse, dims);
    let product = p.call("mul", &[e, inverse], &[]);
    let g = p.call("add", &[scattered, product], &[]);
    p.output("primal", loss);
    p.output("g_logits", g);
    (p.registry, p.graph)
}

fn texts(level: Level) -> (Schedule, String) {
    let (registry, graph) = nll(&[2, 3, 1000]);
    let schedule = schedule(&graph, &registry, level).unwrap();
    let text = schedule.to_text(&crate::ir::names::value_names(&graph, &registry));
    (schedule, text)
}

#[test]
fn the_negative_log_likelihood_is_one_row_group_without_temporaries() {
    for level in [Level::O1, Level::O2] {
        let (schedule, text) = texts(level);
        let kinds: Vec<&GroupKind> = schedule.groups.iter().map(|g| &g.kind).collect();
        assert_eq!(kinds, [&GroupKind::Rows(vec![2, 3])], "{text}");
        assert_eq!((schedule.workspace, schedule.groups[0].nests.len()), (0, 5), "{text}");
        assert!(text.contains("check targets in 0..1000: take_along_axis index out of bounds\n"), "{text}");
        assert_eq!(text.matches("check ").count(), 1, "{text}");
    }
}

#[test]
fn unfused_every_operator_is_alone_and_checks_its_own_indices() {
    let (schedule, text) = texts(Level::O0);
    assert!(schedule.groups.iter().all(|g| g.kind == GroupKind::Single && g.nodes.len() == 1), "{text}");
    let steps: Vec<&str> = text.lines().filter(|l| !l.starts_with(' ')).collect();
    let before = |operator: &str, check: &str| {
        let place = steps.iter().position(|s| s.contains(&format!("single: {operator}_"))).unwrap();
        assert_eq!(steps[place - 1], format!("check targets in 0..1000: {check} index out of bounds"));
    };
    before("take_along_axis", "take_along_axis");
    before("scatter_along_axis", "scatter_along_axis");
}

#[test]
fn dot_quotes_once() {
    let (registry, graph) = nll(&[2, 3, 1000]);
    let names = crate::ir::names::value_names(&graph, &registry);
    let dot = schedule(&graph, &registry, Level::O0).unwrap().to_dot(&names);
    assert!(dot.starts_with("digraph schedule {\n"), "{dot}");
    assert!(dot.contains("[ label = \"logits\" ]"), "{dot}");
    assert!(dot.contains("0 -> 2 [ label = \"logits\" ]"), "{dot}");
}

#[test]
fn only_large_row_groups_are_shared_between_threads() {
    let phases = |dims: &[u64], level| {
        let (registry, graph) = nll(dims);
        let phases = schedule(&graph, &registry, level).unwrap().phases();
        phases.into_iter().map(|p| (p.steps, p.rows)).collect::<Vec<_>>()
    };
    assert_eq!(phases(&[4, 256, 50257], Level::O2), [(0..1, None), (1..2, Some(1024))]);
    assert_eq!(phases(&[2, 3, 1000], Level::O2), [(0..2, None)]);
    assert_eq!(phases(&[4, 256, 50257], Level::O0).len(), 1);
}

/// The rows of the only group, and the domain of its only nest.
fn only_nest(p: &Program) -> (Vec<u64>, Vec<u64>) {
    let schedule = schedule(&p.graph, &p.registry, Level::O2).unwrap();
    assert_eq!((schedule.groups.len(), schedule.groups[0].nests.len()), (1, 1));
    (schedule.groups[0].rows().to_vec(), schedule.groups[0].nests[0].domain.clone())
}

#[test]
fn a_product_of_matrices_walks_along_the_rows_of_its_result() {
    let mut p = Program::new();
    let (a, b) = (p.input("a", DType::F32, &[4, 5]), p.input("b", DType::F32, &[5, 6]));
    let y = p.call("matmul", &[a, b], &[]);
    p.output("y", y);
    assert_eq!(only_nest(&p), (vec![4], vec![4, 5, 6]));
}

#[test]
fn a_product_with_a_transposed_matrix_is_dot_products() {
    let mut p = Program::new();
    let (a, b) = (p.input("a", DType::F32, &[4, 5]), p.input("b", DType::F32, &[6, 5]));
    let b = p.call("transpose", &[b], &[AttrValue::Ints(vec![1, 0])]);
    let y = p.call("matmul", &[a, b], &[]);
    p.output("y", y);
    assert_eq!(only_nest(&p), (vec![4, 6], vec![4, 6, 5]));
}

#[test]
fn a_reduction_of_rows_goes_row_by_row() {
    let mut p = Program::new();
    let x = p.input("x", DType::F32, &[4, 5]);
    let y = p.reduce("sum", x, 1, false);
    p.output("y", y);
    assert_eq!(only_nest(&p), (vec![4], vec![4, 5]));
}
