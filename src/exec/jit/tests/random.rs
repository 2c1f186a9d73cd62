//! Random programs: compiled code at every level against the reference semantics.

use super::*;
use crate::ir::Placement;

/// A program under construction.
struct Program<'r> {
    registry: &'r Registry,
    graph: Graph,
    random: Random,
    dtype: DType,
    floats: Vec<NodeId>,
}

impl Program<'_> {
    fn new(registry: &Registry, seed: u64) -> Program<'_> {
        let dtype = if seed.is_multiple_of(2) { DType::F32 } else { DType::F64 };
        let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut program = Program { registry, graph: Graph::new(), random, dtype, floats: Vec::new() };
        for (i, dims) in [[2, 3, 4], [2, 1, 4], [3, 2, 4]].iter().enumerate() {
            let ty = TensorType::new(dtype, Shape::new(dims.to_vec()).unwrap(), Placement::Host);
            let id = input(&mut program.graph, &format!("x{i}"), &ty);
            program.floats.push(id);
        }
        program
    }

    fn call(&mut self, op: &str, operands: &[NodeId], attrs: &[AttrValue]) -> NodeId {
        let id = self.registry.id(op).unwrap();
        let node = self.graph.add(self.registry, id, operands.to_vec(), attrs.to_vec(), origin()).unwrap();
        if let Some(check) = self.graph.check_of(self.registry, node) {
            self.graph.checks.add(check);
        }
        node
    }

    fn any(&mut self) -> NodeId {
        self.floats[self.random.below(self.floats.len() as u64) as usize]
    }

    /// A value of the type of `like`, if possible not itself.
    fn partner(&mut self, like: NodeId) -> NodeId {
        let same: Vec<NodeId> =
            self.floats.iter().copied().filter(|f| self.graph.ty(*f) == self.graph.ty(like)).collect();
        same[self.random.below(same.len() as u64) as usize]
    }

    fn axis(&mut self, x: NodeId) -> Option<i64> {
        let rank = self.graph.ty(x).rank() as u64;
        (rank > 0).then(|| self.random.below(rank) as i64)
    }

    fn indices(&mut self, shape: Shape) -> NodeId {
        let ty = TensorType::new(DType::I64, shape, Placement::Host);
        let known = self.graph.inputs.iter().copied().find(|i| *self.graph.ty(*i) == ty);
        let name = format!("i{}", self.graph.inputs.len());
        known.unwrap_or_else(|| input(&mut self.graph, &name, &ty))
    }

    /// Adds one value. Values stay small, so that errors do too.
    fn step(&mut self) {
        let x = self.any();
        let shape = self.graph.ty(x).shape.clone();
        let ints = |dims: &[u64]| AttrValue::Ints(dims.iter().map(|d| *d as i64).collect());
        let new = match self.random.below(16) {
            0 => self.call("neg", &[x], &[]),
            14 => {
                // Nothing of it is stored, whatever it is reduced or looked up by.
                let ty = AttrValue::Type(self.graph.ty(x).clone());
                self.call("splat", &[], &[AttrValue::float(1.5), ty])
            }
            15 => {
                let (Some(axis), true) = (self.axis(x), shape.rank() > 1) else { return };
                let last = shape.rank() - 1;
                if axis as usize == last || shape[last] != shape[axis as usize] {
                    let mut perm: Vec<i64> = (0..shape.rank() as i64).collect();
                    perm.swap(last, last - 1);
                    let t = self.call("transpose", &[x], &[AttrValue::Ints(perm)]);
                    self.call("matmul", &[x, t], &[])
                } else {
                    return;
                }
            }
            1 => {
                let t = self.call("tanh", &[x], &[]);
                self.call("exp", &[t], &[])
            }
            2 => {
                let y = self.partner(x);
                self.call("sub", &[x, y], &[])
            }
            3 | 4 => {
                let y = self.partner(x);
                let t = self.call("tanh", &[y], &[]);
                self.call("mul", &[x, t], &[])
            }
            5 => {
                let y = self.partner(x);
                self.call("maximum", &[x, y], &[])
            }
            6 => {
                let y = self.partner(x);
                let c = self.call("greater", &[x, y], &[]);
                let n = self.call("neg", &[y], &[]);
                self.call("select", &[c, x, n], &[])
            }
            7 | 8 => {
                let Some(axis) = self.axis(x) else { return };
                let op = ["sum", "max", "mean"][self.random.below(3) as usize];
                let keep = self.random.below(2) == 0;
                let r = self.call(op, &[x], &[AttrValue::Ints(vec![axis]), AttrValue::Bool(keep)]);
                if keep { self.call("broadcast", &[r], &[ints(&shape)]) } else { r }
            }
            9 => {
                let perm: Vec<i64> = (0..shape.rank() as i64).rev().collect();
                self.call("transpose", &[x], &[AttrValue::Ints(perm)])
            }
            10 => self.call("reshape", &[x], &[ints(&[shape.elements()])]),
            11 => {
                let mut dims = shape.to_vec();
                dims.insert(self.random.below(shape.rank() as u64 + 1) as usize, 1);
                self.call("reshape", &[x], &[ints(&dims)])
            }
            12 => {
                let Some(axis) = self.axis(x).filter(|_| shape.rank() > 1) else { return };
                let indices = self.indices(shape.without(axis as usize));
                self.call("take_along_axis", &[x, indices], &[AttrValue::Int(axis)])
            }
            _ => {
                let indices = self.indices(shape.clone());
                let mut dims = shape.to_vec();
                let axis = self.random.below(dims.len() as u64 + 1) as usize;
                dims.insert(axis, 3);
                if dims.len() < 2 {
                    return;
                }
                let ty = TensorType::new(self.dtype, Shape::new(dims).unwrap(), Placement::Host);
                self.call("scatter_along_axis", &[x, indices], &[AttrValue::Int(axis as i64), AttrValue::Type(ty)])
            }
        };
        if self.graph.ty(new).shape.elements() <= 300 {
            self.floats.push(new);
        }
    }

    fn finish(&mut self, outputs: u64) {
        for i in 0..outputs {
            let node = self.any();
            self.graph.outputs.push(Output { name: format!("result_{i}").into(), node });
        }
    }
}

/// The arrays of all nodes.
pub(super) fn evaluate(graph: &Graph, registry: &Registry, inputs: &[Array]) -> Vec<Array> {
    let mut values: Vec<Array> = Vec::new();
    for (id, node) in graph.iter() {
        let value = match &node.kind {
            NodeKind::Op { op, operands, .. } => {
                let args: Vec<&Array> = operands.iter().map(|o| &values[o.index()]).collect();
                let evaluated = graph.with_call(id, |_, call| {
                    let eval = Eval { call, args: &args, result: &node.ty, precision: Precision::Typed };
                    registry.op(*op).reference(&eval).unwrap()
                });
                evaluated.unwrap()
            }
            _ => inputs[graph.inputs.iter().position(|i| *i == id).unwrap()].clone(),
        };
        values.push(value);
    }
    values
}

fn text(graph: &Graph, registry: &Registry) -> String {
    let sources = crate::diagnostics::SourceMap::default();
    let printer = crate::ir::print::Printer::new(graph, registry, &sources);
    printer.text(crate::ir::print::PrintOptions { origins: false })
}

#[test]
fn random_programs_equal_their_reference_at_every_level() {
    let registry = Registry::builtin();
    for seed in 1..=40 {
        let mut program = Program::new(&registry, seed);
        (0..4 + seed % 24).for_each(|_| program.step());
        program.finish(1 + seed % 4);
        let bounds = crate::exec::generate::bounds(&program.graph);
        let mut tensors = Vec::new();
        for i in &program.graph.inputs {
            tensors.push(program.random.tensor(program.graph.ty(*i), bounds.get(i).copied(), false, false));
        }
        let arrays: Vec<Array> = tensors.iter().map(|t| t.to_array().unwrap()).collect();
        let graph = &program.graph;
        let want = evaluate(graph, &registry, &arrays);
        for level in Level::ALL {
            let what = format!("seed {seed} {level}\n{}", text(graph, &registry));
            let compiled = Compiled::new(graph, &registry, level).unwrap_or_else(|e| panic!("{what}: {e}"));
            // The form on tensors, which is for people and other compilers, can be built of whatever can be compiled.
            let emitted = lower::emit(graph, &registry, level, lower::Stage::Linalg, Vec::new(), false);
            emitted.unwrap_or_else(|e| panic!("{what}: {e}"));
            let got = compiled.call(&tensors.iter().collect::<Vec<_>>()).unwrap();
            let absolute = if program.dtype == DType::F32 { 1e-4 } else { 1e-11 };
            for (g, o) in got.iter().zip(&graph.outputs) {
                assert_close(g, &want[o.node.index()], Tolerance { ulps: 1e3, absolute }, &what);
            }
        }
    }
}
