//! The tensor form, which `emit` prints: run here through its C interface and held against the form on buffers.

use super::*;
use crate::schedule::tests::{nll, ty};
use crate::{CheckOptions, RuleOptions, Session};

/// What MLIR calls a ranked memref in C: allocated and aligned address, offset, sizes, strides, all of 8 bytes.
fn descriptor(ty: &TensorType, address: u64) -> Vec<u64> {
    let shape = &ty.shape;
    [address, address, 0].into_iter().chain(shape.iter().copied()).chain(shape.strides()).collect()
}

/// Compiles `@main` and calls it. Its results are allocated by the code; they are copied and not freed.
fn run_main(graph: &Graph, registry: &Registry, level: Level, inputs: &[&Tensor]) -> Vec<Tensor> {
    let schedule = schedule::schedule(graph, registry, level).unwrap();
    let context = lower::context();
    let options = LowerOptions::new(level, TrapMode::Assert);
    let mut module = lower::lower(&context, graph, registry, &schedule, &options).unwrap();
    lower::llvm_dialect(&context, &mut module, TrapMode::Assert).unwrap();
    let engine = Engine::new(&module, 2).unwrap();
    let entry = engine.lookup("_mlir_ciface_main").unwrap();
    let results: Vec<TensorType> = graph.outputs.iter().map(|o| graph.ty(o.node).clone()).collect();
    let mut filled: Vec<u64> = results.iter().flat_map(|ty| descriptor(ty, 0)).collect();
    let mut descriptors: Vec<Vec<u64>> =
        inputs.iter().zip(&graph.inputs).map(|(t, i)| descriptor(graph.ty(*i), t.as_bytes().as_ptr() as u64)).collect();
    let mut pointers: Vec<*mut c_void> = vec![filled.as_mut_ptr().cast()];
    pointers.extend(descriptors.iter_mut().map(|d| d.as_mut_ptr().cast::<c_void>()));
    let mut addresses: Vec<*mut c_void> = pointers.iter_mut().map(|p| ptr::from_mut(p).cast()).collect();
    // SAFETY: the function takes a pointer to the descriptors of its results and one to that of each input, in this order,
    // and the wrapper takes the addresses of these pointers. The inputs are of its types and outlive the call.
    unsafe { entry(addresses.as_mut_ptr()) };
    let mut rest = &filled[..];
    let mut tensors = Vec::new();
    for ty in &results {
        let (own, behind) = rest.split_at(3 + 2 * ty.shape.rank());
        rest = behind;
        let mut tensor = Tensor::zeros(ty.dtype, ty.shape.clone()).unwrap();
        let to = tensor.as_bytes_mut();
        let from = (own[1] as usize + own[2] as usize * ty.dtype.size() as usize) as *const u8;
        if !to.is_empty() {
            // SAFETY: the code returned a dense array of the result's type there.
            unsafe { ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
        }
        tensors.push(tensor);
    }
    tensors
}

fn compare(graph: &Graph, registry: &Registry, level: Level, inputs: &[&Tensor], what: &str) {
    let buffers = Compiled::new(graph, registry, level).unwrap().call(inputs).unwrap();
    let tensors = run_main(graph, registry, level, inputs);
    assert_eq!(tensors.len(), buffers.len(), "{what}");
    for (got, want) in tensors.iter().zip(&buffers) {
        // Both do the same operations; only how a sum is vectorised may differ.
        assert_close(got, &want.to_array().unwrap(), Tolerance { ulps: 16.0, absolute: 1e-5 }, what);
    }
}

#[test]
fn the_loss_runs_on_tensors() {
    for dims in [[2, 3, 1000], [1, 1, 5], [7, 1, 64]] {
        let (registry, graph) = nll(&dims);
        let mut random = Random(21);
        let x = random.tensor(&ty(DType::F32, &dims), None, true, false);
        let t = random.tensor(&ty(DType::I64, &dims[..2]), Some(dims[2]), false, false);
        for level in Level::ALL {
            compare(&graph, &registry, level, &[&x, &t], &format!("{level} {dims:?}"));
        }
    }
}

/// Value and gradient of rows of many kinds: in rows, in strips, without elements, of one element.
#[test]
fn programs_run_on_tensors() {
    let calls = [
        "softmax(axis=AXIS)",
        "layer_norm(axis=AXIS)",
        "rms_norm(axis=AXIS)",
        "logsumexp(axis=AXIS)",
        "cumsum(axis=AXIS)",
    ];
    let shapes: [(&[u64], usize); 7] =
        [(&[6, 40], 1), (&[40, 6], 0), (&[3, 5, 130], 1), (&[4, 1], 1), (&[0, 5], 1), (&[2, 1, 3, 4, 5], 2), (&[9], 0)];
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    for call in calls {
        for (dims, axis) in shapes {
            let program = format!(
                "let f = fn(x: tensor<F32, {dims:?}, @host>) {{ x.{} }} in
                 let x = tensor<F32, {dims:?}, @host> in handle f(x) with reverseMode",
                call.replace("AXIS", &axis.to_string())
            );
            let graph = session.check("p.kina", &program, &CheckOptions { cotangent_input: true }).unwrap();
            let mut differentiated = session.differentiate(&graph).unwrap();
            let optimised = session.optimise(&mut differentiated, Level::O2).unwrap().graph;
            let mut random = Random(22);
            let inputs: Vec<Tensor> =
                optimised.inputs.iter().map(|i| random.tensor(optimised.ty(*i), None, false, false)).collect();
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            compare(&optimised, &session.rules.registry, Level::O2, &inputs, &format!("{call} {dims:?} {axis}"));
        }
    }
}
