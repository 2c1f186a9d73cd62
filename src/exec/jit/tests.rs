//! Every operator against its reference semantics.

use super::*;
use crate::exec::Data;
use crate::ir::kernel::{Combine, Kernel, Scalar};
use crate::ir::operator::Eval;
use crate::ir::{
    Array, AttrValue, Call, DType, Node, NodeId, NodeKind, OpId, Operator, Origin, Output, Precision, Shape,
};

fn origin() -> Origin {
    Origin::Accumulate { serves: vec![] }
}

fn input(graph: &mut Graph, name: &str, ty: &TensorType) -> NodeId {
    let node = Node { kind: NodeKind::Input, ty: ty.clone(), name: Some(name.into()), origin: origin() };
    let id = graph.push(node);
    graph.inputs.push(id);
    id
}

/// The graph of one call, every operand an input.
fn single(registry: &Registry, op: OpId, operands: &[TensorType], attrs: &[AttrValue]) -> Graph {
    let mut graph = Graph::new();
    let inputs = operands.iter().enumerate().map(|(i, t)| input(&mut graph, &format!("x{i}"), t)).collect();
    let node = graph.add(registry, op, inputs, attrs.to_vec(), origin()).unwrap();
    graph.outputs.push(Output { name: "result".into(), node });
    if let Some(check) = graph.check_of(registry, node) {
        graph.checks.add(check);
    }
    graph
}

/// A small generator (xorshift); the quality of the numbers does not matter.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n.max(1)
    }

    fn float(&mut self, special: bool, huge: bool) -> f64 {
        const SPECIAL: [f64; 8] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e-40, -1e-40, 1.0];
        const HUGE: [f64; 4] = [3e9, -3e9, 1e19, -1e30];
        match self.below(3) {
            0 if special => SPECIAL[self.below(8) as usize],
            1 if special && huge => HUGE[self.below(4) as usize],
            _ => self.below(16_000) as f64 / 1000.0 - 8.0,
        }
    }

    fn tensor(&mut self, ty: &TensorType, bound: Option<u64>, special: bool, huge: bool) -> Tensor {
        let n = ty.shape.elements() as usize;
        let int = |r: &mut Random| match bound {
            Some(size) => r.below(size) as i64,
            None if special => [0, -1, i64::MAX, i64::MIN, 5][r.below(5) as usize],
            None => r.below(19) as i64 - 9,
        };
        let data = match ty.dtype {
            DType::Bool => Data::Bool((0..n).map(|_| self.below(2) as u8).collect()),
            DType::I32 => {
                let narrow = |v: i64| v.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
                Data::I32((0..n).map(|_| narrow(int(self))).collect())
            }
            DType::I64 => Data::I64((0..n).map(|_| int(self)).collect()),
            DType::F32 => Data::F32((0..n).map(|_| self.float(special, huge) as f32).collect()),
            DType::F64 => Data::F64((0..n).map(|_| self.float(special, huge)).collect()),
        };
        Tensor::new(ty.shape.clone(), data).unwrap()
    }
}

/// Does the call add up elements (in an order that levels may change)?
fn adds(kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::Loops(loops) if loops.iter().any(|l| matches!(l.reduce, Some(Combine::Add | Combine::Mul))))
}

/// Does the call compute elementary functions, which libraries round differently?
fn is_transcendental(kernel: &Kernel) -> bool {
    fn any(body: &Scalar) -> bool {
        match body {
            Scalar::Unary(f, x) => f.is_transcendental() || any(x),
            Scalar::Binary(f, x, y) => f.is_transcendental() || any(x) || any(y),
            Scalar::Compare(_, x, y) => any(x) || any(y),
            Scalar::Select(c, x, y) => any(c) || any(x) || any(y),
            Scalar::Cast(x, _) => any(x),
            Scalar::Input(_) | Scalar::Index(_) | Scalar::Constant(..) | Scalar::Previous | Scalar::Gather(..) => false,
        }
    }
    matches!(kernel, Kernel::Loops(loops) if loops.iter().any(|l| any(&l.body)))
}

/// How far results may be from the reference.
#[derive(Clone, Copy)]
struct Tolerance {
    ulps: f64,
    absolute: f64,
}

fn tolerance(op: &dyn Operator, kernel: &Kernel) -> Tolerance {
    match op.name() {
        _ if adds(kernel) => Tolerance { ulps: 16.0, absolute: 1e-4 },
        "rsqrt" => Tolerance { ulps: 3.0, absolute: 0.0 },
        _ if is_transcendental(kernel) => Tolerance { ulps: 3.0, absolute: 0.0 },
        _ => Tolerance { ulps: 0.0, absolute: 0.0 },
    }
}

fn close(got: f64, want: f64, dtype: DType, tolerance: Tolerance) -> bool {
    if got.is_nan() || want.is_nan() {
        return got.is_nan() && want.is_nan();
    }
    if got == want {
        // -0 and +0 differ.
        return tolerance.absolute > 0.0 || got.is_sign_negative() == want.is_sign_negative();
    }
    let unit = match dtype {
        DType::F32 => f64::from(f32::EPSILON) * want.abs().max(f64::from(f32::MIN_POSITIVE)),
        _ => f64::EPSILON * want.abs().max(f64::MIN_POSITIVE),
    };
    (got - want).abs() <= tolerance.ulps * unit + tolerance.absolute
}

fn assert_close(got: &Tensor, want: &Array, tolerance: Tolerance, what: &str) {
    assert_eq!(*got.shape(), want.shape, "{what}");
    let got_array = got.to_array().unwrap();
    if got.dtype().is_float() {
        for (i, (g, w)) in got_array.floats().iter().zip(want.floats()).enumerate() {
            assert!(close(*g, *w, got.dtype(), tolerance), "{what}: element {i} is {g:e}, not {w:e}");
        }
    } else {
        assert_eq!(&got_array, want, "{what}");
    }
}

/// Calls with the shapes that instances leave out: nothing to do, and rows of one element.
fn every_operator(level: Level) {
    let registry = Registry::builtin();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut compiled_operators = 0;
    for (id, op) in registry.iter() {
        for (operands, attrs) in op.instances() {
            let types: Vec<&TensorType> = operands.iter().collect();
            let call = Call { operands: &types, attrs: &attrs };
            let result = registry.infer(id, &types, &attrs).unwrap();
            let kernel = op.kernel(call, &result);
            if kernel == Kernel::Composite {
                continue;
            }
            compiled_operators += 1;
            let shapes = operands.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let what = format!("{level} {}({shapes}; {attrs:?})", op.name());
            let graph = single(&registry, id, &operands, &attrs);
            let compiled = Compiled::new(&graph, &registry, level).unwrap_or_else(|e| panic!("{what}: {e}"));
            for special in [false, true] {
                let bound = |i: usize| op.bound(call).filter(|b| b.operand == i).map(|b| b.size);
                let tensors: Vec<Tensor> = (0..operands.len())
                    .map(|i| random.tensor(&operands[i], bound(i), special, !adds(&kernel)))
                    .collect();
                let arrays: Vec<Array> = tensors.iter().map(|t| t.to_array().unwrap()).collect();
                let args: Vec<&Array> = arrays.iter().collect();
                let eval = Eval { call, args: &args, result: &result, precision: Precision::Typed };
                let want = op.reference(&eval).unwrap();
                let got = compiled.call(&tensors.iter().collect::<Vec<_>>()).unwrap();
                assert_close(&got[0], &want, tolerance(op, &kernel), &what);
            }
            if let Some(bound) = op.bound(call) {
                for outside in [-1, bound.size as i64] {
                    traps(&compiled, &operands, bound.operand, outside, op.name());
                }
            }
        }
    }
    assert!(compiled_operators > 30);
}

/// Sets the last index out of range, all others to 0.
fn traps(compiled: &Compiled, operands: &[TensorType], indices: usize, outside: i64, operator: &str) {
    let mut tensors: Vec<Tensor> = operands.iter().map(|t| Tensor::zeros(t.dtype, t.shape.clone()).unwrap()).collect();
    let wrong = match operands[indices].dtype {
        DType::I32 => (outside as i32).to_ne_bytes().to_vec(),
        _ => outside.to_ne_bytes().to_vec(),
    };
    let bytes = tensors[indices].as_bytes_mut();
    let Some(last) = bytes.len().checked_sub(wrong.len()) else { return };
    bytes[last..].copy_from_slice(&wrong);
    let error = compiled.call(&tensors.iter().collect::<Vec<_>>()).unwrap_err();
    assert_eq!(error, CallError::Trap { message: format!("{operator} index out of bounds") });
}

#[test]
fn every_operator_equals_its_reference_unfused() {
    every_operator(Level::O0);
}

#[test]
fn every_operator_equals_its_reference_fused() {
    every_operator(Level::O2);
}

#[test]
fn calls_with_wrong_tensors_are_errors() {
    let registry = Registry::builtin();
    let ty = TensorType::new(DType::F32, Shape::new(vec![2]).unwrap(), crate::ir::Placement::Host);
    let graph = single(&registry, registry.id("neg").unwrap(), std::slice::from_ref(&ty), &[]);
    let compiled = Compiled::new(&graph, &registry, Level::O1).unwrap();
    let count = CallError::Count { role: Role::Input, expected: 1, given: 0 };
    assert_eq!(compiled.call(&[]).unwrap_err(), count);
    let other = Tensor::zeros(DType::F64, ty.shape.clone()).unwrap();
    let error = compiled.call(&[&other]).unwrap_err();
    assert_eq!(error.to_string(), "input 0 (`x0`) must be F32 [2], not F64 [2]");
    let right = Tensor::zeros(DType::F32, ty.shape.clone()).unwrap();
    assert!(matches!(compiled.call_into(&[&right], &mut [other]), Err(CallError::Type { role: Role::Output, .. })));
}

mod graphs;
mod tensors;
