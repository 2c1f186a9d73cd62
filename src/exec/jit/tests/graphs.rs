//! Programs of several operators: aliased results, checks, empty and scalar tensors, and the negative log-likelihood.

use super::*;
use crate::ir::Placement;
use crate::schedule::tests::{Program, nll, ty};

fn compile(p: &Program, level: Level) -> Compiled {
    Compiled::new(&p.graph, &p.registry, level).unwrap()
}

fn floats(dims: &[u64], values: &[f32]) -> Tensor {
    Tensor::new(Shape::new(dims.to_vec()).unwrap(), Data::F32(values.to_vec())).unwrap()
}

fn ints(dims: &[u64], values: &[i64]) -> Tensor {
    Tensor::new(Shape::new(dims.to_vec()).unwrap(), Data::I64(values.to_vec())).unwrap()
}

#[test]
fn results_may_be_inputs_and_each_other() {
    let mut p = Program::new();
    let x = p.input("x", DType::F32, &[2, 2]);
    let y = p.call("neg", &[x], &[]);
    let flat = p.call("reshape", &[y], &[AttrValue::Ints(vec![4])]);
    for (name, node) in [("a", x), ("b", y), ("c", y), ("d", flat), ("e", x)] {
        p.output(name, node);
    }
    let value = floats(&[2, 2], &[1.0, -2.0, 3.0, 0.0]);
    let negated = [-1.0, 2.0, -3.0, -0.0];
    for level in Level::ALL {
        let got = compile(&p, level).call(&[&value]).unwrap();
        let want = [
            value.clone(),
            floats(&[2, 2], &negated),
            floats(&[2, 2], &negated),
            floats(&[4], &negated),
            value.clone(),
        ];
        for (g, w) in got.iter().zip(&want) {
            assert_eq!((g.shape(), g.as_bytes()), (w.shape(), w.as_bytes()), "{level}");
        }
    }
}

#[test]
fn unused_lookups_trap_in_program_order() {
    let mut p = Program::new();
    let x = p.input("x", DType::F32, &[2, 3]);
    let i = p.input("i", DType::I64, &[2]);
    let j = p.input("j", DType::I64, &[2]);
    let u = p.input("u", DType::F32, &[2]);
    p.call("take_along_axis", &[x, i], &[AttrValue::Int(1)]);
    let dest = AttrValue::Type(ty(DType::F32, &[2, 3]));
    let s = p.call("scatter_along_axis", &[u, j], &[AttrValue::Int(1), dest]);
    let y = p.call("neg", &[x], &[]);
    p.output("y", y);
    p.output("s", s);
    let (x, u) = (floats(&[2, 3], &[1.0; 6]), floats(&[2], &[5.0, 6.0]));
    let (good, bad) = (ints(&[2], &[0, 2]), ints(&[2], &[0, 3]));
    let trap = |op: &str| Err(CallError::Trap { message: format!("{op} index out of bounds") });
    for level in Level::ALL {
        let compiled = compile(&p, level);
        assert_eq!(compiled.call(&[&x, &bad, &good, &u]), trap("take_along_axis"), "{level}");
        assert_eq!(compiled.call(&[&x, &good, &bad, &u]), trap("scatter_along_axis"), "{level}");
        assert_eq!(compiled.call(&[&x, &bad, &bad, &u]), trap("take_along_axis"), "{level}");
        let got = compiled.call(&[&x, &good, &good, &u]).unwrap();
        assert_eq!(got[1], floats(&[2, 3], &[5.0, 0.0, 0.0, 0.0, 0.0, 6.0]), "{level}");
    }
}

/// Rows of a table of the size of a vocabulary: the gradient takes time in proportion to what is taken, not to its product with the
/// table. Many threads' worth of rows, and one thread at a time adds to each.
#[test]
fn duplicates_add_up_in_a_large_table() {
    let (vocabulary, taken, width) = (50_257_u64, 4_096_u64, 8_u64);
    let mut p = Program::new();
    let updates = p.input("updates", DType::F32, &[taken, width]);
    let ids = p.input("ids", DType::I64, &[taken]);
    let dest = AttrValue::Type(ty(DType::F32, &[vocabulary, width]));
    let sums = p.call("scatter_add", &[updates, ids], &[dest]);
    let twice = p.call("add", &[sums, sums], &[]);
    p.output("twice", twice);
    let row = |k: u64| (k * k + 7 * k) % 97 * 518;
    let values: Vec<f32> = (0..taken * width).map(|i| (i % 13) as f32 * 0.25 - 1.5).collect();
    let mut want = vec![0.0_f32; (vocabulary * width) as usize];
    for (k, update) in values.chunks(width as usize).enumerate() {
        let at = (row(k as u64) * width) as usize;
        want[at..].iter_mut().zip(update).for_each(|(sum, v)| *sum += v);
    }
    want.iter_mut().for_each(|v| *v *= 2.0);
    let ids = ints(&[taken], &(0..taken).map(|k| row(k) as i64).collect::<Vec<_>>());
    for level in Level::ALL {
        let got = compile(&p, level).call(&[&floats(&[taken, width], &values), &ids]).unwrap();
        assert_eq!(got, [floats(&[vocabulary, width], &want)], "{level}");
    }
}

#[test]
fn nothing_is_taken_from_nothing() {
    let mut p = Program::new();
    let table = p.input("table", DType::F32, &[0, 2]);
    let ids = p.input("ids", DType::I64, &[3]);
    let rows = p.call("gather", &[table, ids], &[]);
    let row = p.call("take_along_axis", &[rows, ids], &[AttrValue::Int(1)]);
    let total = p.reduce("sum", row, 0, false);
    p.output("rows", rows);
    p.output("total", total);
    for level in Level::ALL {
        let got = compile(&p, level).call(&[&floats(&[0, 2], &[]), &ints(&[3], &[0, 0, 0])]);
        assert_eq!(got, Err(CallError::Trap { message: "gather index out of bounds".into() }), "{level}");
    }
}

#[test]
fn scalars_and_empty_tensors() {
    let mut p = Program::new();
    let x = p.input("x", DType::F32, &[2, 0]);
    let total = p.call("sum", &[x], &[AttrValue::Ints(vec![0, 1]), AttrValue::Bool(false)]);
    let rows = p.reduce("sum", x, 1, true);
    let grown = p.stretch(rows, &[2, 3]);
    let e = p.call("exp", &[x], &[]);
    let scalar = p.call("exp", &[total], &[]);
    for (name, node) in [("total", total), ("grown", grown), ("e", e), ("scalar", scalar)] {
        p.output(name, node);
    }
    for level in Level::ALL {
        let got = compile(&p, level).call(&[&floats(&[2, 0], &[])]).unwrap();
        let want = [floats(&[], &[0.0]), floats(&[2, 3], &[0.0; 6]), floats(&[2, 0], &[]), floats(&[], &[1.0])];
        assert_eq!(got, want, "{level}");
    }
}

#[test]
fn operators_on_the_device_are_refused_by_name() {
    let registry = Registry::builtin();
    let mut graph = Graph::new();
    let device = |dtype, dims: &[u64]| TensorType { placement: Placement::Device, ..ty(dtype, dims) };
    let x = input(&mut graph, "x", &device(DType::F32, &[2, 3]));
    let i = input(&mut graph, "i", &device(DType::I64, &[2]));
    let add = |graph: &mut Graph, op: &str, operands: &[NodeId], attrs: &[AttrValue]| {
        graph.add(&registry, registry.id(op).unwrap(), operands.to_vec(), attrs.to_vec(), origin()).unwrap()
    };
    let n = add(&mut graph, "neg", &[x], &[]);
    let t = add(&mut graph, "take_along_axis", &[n, i], &[AttrValue::Int(1)]);
    graph.outputs.push(Output { name: "t".into(), node: t });
    let error = Compiled::new(&graph, &registry, Level::O2).unwrap_err();
    let text = "neg: device lowering is not available\ntake_along_axis: checked device lowering is not available";
    assert_eq!(error.to_string(), text);
}

/// The arrays of all nodes.
fn evaluate(graph: &Graph, registry: &Registry, inputs: &[Array]) -> Vec<Array> {
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

#[test]
fn the_negative_log_likelihood_needs_no_large_temporary() {
    let (registry, graph) = nll(&[2, 3, 1000]);
    let mut random = Random(11);
    let x = random.tensor(&ty(DType::F32, &[2, 3, 1000]), None, false, false);
    let t = random.tensor(&ty(DType::I64, &[2, 3]), Some(1000), false, false);
    let arrays = [x.to_array().unwrap(), t.to_array().unwrap()];
    let want = evaluate(&graph, &registry, &arrays);
    for level in Level::ALL {
        let compiled = Compiled::new(&graph, &registry, level).unwrap();
        let got = compiled.call(&[&x, &t]).unwrap();
        for (g, o) in got.iter().zip(&graph.outputs) {
            assert_close(g, &want[o.node.index()], Tolerance { ulps: 64.0, absolute: 1e-5 }, &format!("{level}"));
        }
        if level.fuses() {
            assert!(compiled.temporaries() < 1000, "{} bytes", compiled.temporaries());
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let dims = [4, 8, 4096];
    let (registry, graph) = nll(&dims);
    let mut random = Random(12);
    let x = random.tensor(&ty(DType::F32, &dims), None, true, false);
    let t = random.tensor(&ty(DType::I64, &dims[..2]), Some(4096), false, false);
    let run = |threads: usize| {
        let compiled = Compiled::new(&graph, &registry, Level::O2).unwrap();
        assert!(compiled.phases.iter().any(|p| p.rows == Some(32)), "nothing is shared");
        compiled.with_threads(threads.try_into().unwrap()).call(&[&x, &t]).unwrap()
    };
    let (one, several) = (run(1), run(3));
    for (a, b) in one.iter().zip(&several) {
        assert!(a.as_bytes() == b.as_bytes());
    }
    let bad = ints(&[4, 8], &[4096; 32]);
    let compiled = Compiled::new(&graph, &registry, Level::O2).unwrap();
    assert!(matches!(compiled.call(&[&x, &bad]), Err(CallError::Trap { .. })));
}

/// Each thread computes its rows of the softmax in scratch memory, which must be its own.
#[test]
fn threads_have_scratch_memory_of_their_own() {
    let dims = [64, 8192];
    let mut p = Program::new();
    let x = p.input("x", DType::F32, &dims);
    let y = p.call("softmax", &[x], &[AttrValue::Int(1)]);
    let z = p.call("mul", &[y, y], &[]);
    let s = p.reduce("sum", z, 1, false);
    p.output("result", s);
    let x = Random(14).tensor(&ty(DType::F32, &dims), None, false, false);
    let run = |threads: usize| {
        let compiled = compile(&p, Level::O2).with_threads(threads.try_into().unwrap());
        assert_eq!(compiled.temporaries(), threads as u64 * 4 * dims[1]);
        compiled.call(&[&x]).unwrap()[0].as_bytes().to_vec()
    };
    let one = run(1);
    for threads in [2, 3, 7] {
        assert!(run(threads) == one, "{threads} threads");
    }
}

#[test]
fn matrix_products_add_up_in_order_at_every_level() {
    let mut p = Program::new();
    let a = p.input("a", DType::F32, &[2, 5, 9]);
    let b = p.input("b", DType::F32, &[2, 9, 17]);
    let c = p.input("c", DType::F32, &[2, 17, 9]);
    let product = p.call("matmul", &[a, b], &[]);
    let turned = p.call("transpose", &[c], &[AttrValue::Ints(vec![0, 2, 1])]);
    let other = p.call("matmul", &[a, turned], &[]);
    let sum = p.call("add", &[product, other], &[]);
    p.output("product", product);
    p.output("sum", sum);
    let mut random = Random(13);
    let inputs: Vec<Tensor> =
        p.graph.inputs.iter().map(|i| random.tensor(p.graph.ty(*i), None, false, false)).collect();
    let arrays: Vec<Array> = inputs.iter().map(|t| t.to_array().unwrap()).collect();
    let want = evaluate(&p.graph, &p.registry, &arrays);
    for level in Level::ALL {
        let got = compile(&p, level).call(&inputs.iter().collect::<Vec<_>>()).unwrap();
        // Sums may be reassociated at -O2 only.
        let (ulps, absolute) = if level == Level::O2 { (0.0, 1e-4) } else { (0.0, 0.0) };
        assert_close(&got[0], &want[product.index()], Tolerance { ulps, absolute }, &format!("{level}"));
        assert_close(&got[1], &want[sum.index()], Tolerance { ulps, absolute }, &format!("{level}"));
    }
}

/// A fused scatter makes one point of each row an exception, which is computed apart in rows that are long enough.
#[test]
fn the_exception_of_a_row_is_the_point_that_the_scatter_writes() {
    for (dtype, width) in
        [DType::F32, DType::F64].into_iter().flat_map(|d| [1, 2, 31, 32, 33, 47, 64, 200].map(|w| (d, w)))
    {
        let dims = [3, width];
        let mut p = Program::new();
        let x = p.input("x", dtype, &dims);
        let t = p.input("t", DType::I64, &[3]);
        let u = p.input("u", dtype, &[3]);
        let e = p.call("exp", &[x], &[]);
        let dest = AttrValue::Type(ty(dtype, &dims));
        let scattered = p.call("scatter_along_axis", &[u, t], &[AttrValue::Int(1), dest]);
        let sum = p.reduce("sum", e, 1, true);
        let sum = p.stretch(sum, &dims);
        let scaled = p.call("mul", &[e, sum], &[]);
        let y = p.call("sub", &[scaled, scattered], &[]);
        let z = p.call("mul", &[scattered, x], &[]);
        p.output("y", y);
        p.output("z", z);
        let last = width as i64 - 1;
        let mut random = Random(15);
        let x = random.tensor(&ty(dtype, &dims), None, false, false);
        let u = random.tensor(&ty(dtype, &[3]), None, false, false);
        for targets in [[0, last, last / 2], [last, 0, 0]] {
            let t = ints(&[3], &targets);
            let inputs = [&x, &t, &u];
            let arrays: Vec<Array> = inputs.iter().map(|t| t.to_array().unwrap()).collect();
            let want = evaluate(&p.graph, &p.registry, &arrays);
            for level in Level::ALL {
                let got = compile(&p, level).call(&inputs).unwrap();
                let what = format!("{dtype} {width} {targets:?} {level}");
                assert_close(&got[0], &want[y.index()], Tolerance { ulps: 64.0, absolute: 1e-6 }, &what);
                assert_close(&got[1], &want[z.index()], Tolerance { ulps: 0.0, absolute: 0.0 }, &what);
            }
        }
    }
}

/// Maps of large tensors are shared along their first dimension: elements read in another order, indices, results written over
/// what they are computed from.
#[test]
fn threads_share_maps_too() {
    for dims in [vec![700, 401], vec![1, 280_707], vec![280_707], vec![7, 1, 40_101], vec![401, 1, 700]] {
        let mut p = Program::new();
        let x = p.input("x", DType::F32, &dims);
        let turned: Vec<u64> = dims.iter().rev().copied().collect();
        let z = p.input("z", DType::F32, &turned);
        let order: Vec<i64> = (0..dims.len() as i64).rev().collect();
        let z = p.call("transpose", &[z], &[AttrValue::Ints(order)]);
        let axis = dims.iter().position(|d| *d > 1).unwrap() as i64;
        let back = p.call("reverse", &[x], &[AttrValue::Ints(vec![axis])]);
        let e = p.call("exp", &[x], &[]);
        let shape = AttrValue::Ints(dims.iter().map(|d| *d as i64).collect());
        let index = p.call("iota", &[], &[shape, AttrValue::Int(axis), AttrValue::DType(DType::F32)]);
        let a = p.call("mul", &[e, z], &[]);
        let b = p.call("add", &[a, index], &[]);
        let c = p.call("sub", &[e, back], &[]);
        let d = p.call("mul", &[c, c], &[]);
        p.output("b", b);
        p.output("d", d);
        let mut random = Random(16);
        let inputs: Vec<Tensor> =
            p.graph.inputs.iter().map(|i| random.tensor(p.graph.ty(*i), None, false, false)).collect();
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let serial = compile(&p, Level::O2).with_threads(1.try_into().unwrap()).call(&inputs).unwrap();
        for threads in [2, 3, 5] {
            let compiled = compile(&p, Level::O2).with_threads(threads.try_into().unwrap());
            assert!(compiled.phases.iter().any(|p| p.rows.is_some()), "nothing is shared");
            for (a, b) in compiled.call(&inputs).unwrap().iter().zip(&serial) {
                assert!(a.as_bytes() == b.as_bytes(), "{dims:?}, {threads} threads");
            }
        }
        let literal = compile(&p, Level::O0).call(&inputs).unwrap();
        for (a, b) in literal.iter().zip(&serial) {
            assert_close(b, &a.to_array().unwrap(), Tolerance { ulps: 8.0, absolute: 1e-3 }, &format!("{dims:?}"));
        }
    }
}
