//! How far apart two right answers may be: stochastic arithmetic.
//!
//! Two evaluations of one program that round differently (other rewrites, another order of a sum, another exponential)
//! agree only as well as the program is conditioned. So the program is evaluated a few times more with every rounding
//! made worse at random, operands and results alike. Elements that hardly move must agree; those that jump (behind a
//! comparison, at an overflow) say nothing.

use kina_ad::Graph;
use kina_ad::ir::kernel::{Combine, Scalar, UnaryFn};
use kina_ad::ir::operator::{Eval, Operator};
use kina_ad::ir::{Array, Call, DType, Kernel, NodeKind, Precision, Registry, TensorType, Values};

/// Evaluations with noise.
const RUNS: u64 = 3;
/// Units in the last place by which each rounding is made worse, at most.
const ULPS: f64 = 4.0;
/// Differences beyond the spread that was seen are accepted up to this multiple of it: with three runs it may be seen
/// too small.
const SLACK: f64 = 64.0;

/// The values of the outputs of a graph, each element with how far it may be off.
pub struct Bounds(Vec<Vec<Element>>);

/// One element of one output.
#[derive(Clone, Copy, Debug)]
enum Element {
    /// Within that much of the value.
    Near(f64, f64),
    /// Rounding decides what it is.
    Unstable,
}

impl Bounds {
    /// Evaluates `graph` with noise. `exact` are its outputs without.
    pub fn new(graph: &Graph, registry: &Registry, inputs: &[Array], exact: &[Array]) -> Bounds {
        let mut bounds: Vec<Vec<Element>> =
            exact.iter().map(|a| a.floats().iter().map(|v| Element::Near(*v, 0.0)).collect()).collect();
        for run in 1..=RUNS {
            let noisy = evaluate(graph, registry, inputs, &mut Random(run << 32 | 0x9E37_79B9));
            for (elements, array) in bounds.iter_mut().zip(&noisy) {
                for (element, value) in elements.iter_mut().zip(array.floats()) {
                    *element = element.met(*value);
                }
            }
        }
        Bounds(bounds)
    }

    /// The first element of output `output` in which `found` is off.
    pub fn violation(&self, output: usize, dtype: DType, found: &[f64]) -> Option<String> {
        self.0[output].iter().zip(found).enumerate().find_map(|(i, (element, found))| {
            let complaint = || Some(format!("element {i} is {found:e}, not {element:?}"));
            match element {
                Element::Unstable => None,
                Element::Near(value, _) if value.is_nan() => if found.is_nan() { None } else { complaint() },
                Element::Near(value, _) if value.is_infinite() => if found == value { None } else { complaint() },
                Element::Near(value, spread) => {
                    let (epsilon, least) = precision(dtype);
                    let allowed = SLACK * (spread + ULPS * epsilon * value.abs() + least);
                    if (found - value).abs() <= allowed { None } else { complaint() }
                }
            }
        })
    }
}

impl Element {
    /// The element once a noisy evaluation gave `noisy`.
    fn met(self, noisy: f64) -> Element {
        match self {
            Element::Near(value, _) if value.is_nan() && noisy.is_nan() => self,
            Element::Near(value, _) if value.is_infinite() && noisy == value => self,
            Element::Near(value, spread) if value.is_finite() && noisy.is_finite() => {
                Element::Near(value, spread.max((noisy - value).abs()))
            }
            _ => Element::Unstable,
        }
    }
}

/// The distance from 1 to the next number, and the least normal number.
fn precision(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F32 => (f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE)),
        _ => (f64::EPSILON, f64::MIN_POSITIVE),
    }
}

struct Random(u64);

impl Random {
    /// Uniform in -1..1.
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

/// The outputs, with noise. Indices are never noisy, so nothing traps that did not before.
fn evaluate(graph: &Graph, registry: &Registry, inputs: &[Array], random: &mut Random) -> Vec<Array> {
    let mut values: Vec<Array> = Vec::with_capacity(graph.len());
    for (id, node) in graph.iter() {
        let NodeKind::Op { operands, .. } = &node.kind else {
            let place = graph.inputs.iter().position(|i| *i == id).expect("a differentiated graph has inputs and calls");
            values.push(inputs[place].clone());
            continue;
        };
        let value = graph.with_call(id, |op, call| {
            let op = registry.op(op);
            let rounds = rounds(op, call, &node.ty);
            let mut args: Vec<Array> = operands.iter().map(|o| values[o.index()].clone()).collect();
            if rounds {
                args.iter_mut().zip(call.operands).for_each(|(a, ty)| disturb(a, ty.dtype, random));
            }
            let args: Vec<&Array> = args.iter().collect();
            let eval = Eval { call, args: &args, result: &node.ty, precision: Precision::Typed };
            let mut value = op.reference(&eval).unwrap_or_else(|_| zeros(&node.ty));
            if rounds {
                disturb(&mut value, node.ty.dtype, random);
            }
            value
        });
        values.push(value.expect("a call"));
    }
    graph.outputs.iter().map(|o| values[o.node.index()].clone()).collect()
}

/// What stands for a value behind a trap.
fn zeros(ty: &TensorType) -> Array {
    let n = ty.shape.elements() as usize;
    let values = match ty.dtype {
        DType::F32 | DType::F64 => Values::Float(vec![0.0; n]),
        DType::I32 | DType::I64 => Values::Int(vec![0; n]),
        DType::Bool => Values::Bool(vec![false; n]),
    };
    Array::new(ty.shape.clone(), values)
}

/// Moves every float by a few units in the last place. Zeros are mostly exact (masks, sums of nothing) and stay.
fn disturb(array: &mut Array, dtype: DType, random: &mut Random) {
    let Values::Float(values) = &mut array.values else { return };
    let (epsilon, least) = precision(dtype);
    for v in values.iter_mut().filter(|v| **v != 0.0 && v.is_finite()) {
        // The absolute part is the last place of subnormal numbers.
        let moved = *v + ULPS * epsilon * (v.abs() + least) * random.unit();
        *v = Precision::Typed.round(dtype, moved);
    }
}

/// Does the call compute floats that are not exact?
fn rounds(op: &dyn Operator, call: Call<'_>, result: &TensorType) -> bool {
    let float = result.dtype.is_float() || call.operands.iter().any(|o| o.dtype.is_float());
    float
        && match op.kernel(call, result) {
            Kernel::Reshape => false,
            Kernel::Composite => true,
            Kernel::Loops(loops) => loops.iter().any(|l| {
                matches!(l.reduce, Some(Combine::Add | Combine::Mul)) || computes(&l.body)
            }),
        }
}

/// Does the body do arithmetic, or does it only choose?
fn computes(body: &Scalar) -> bool {
    match body {
        Scalar::Input(_) | Scalar::Index(_) | Scalar::Constant(..) | Scalar::Gather(..) => false,
        Scalar::Unary(UnaryFn::Neg | UnaryFn::Abs | UnaryFn::Not, a) => computes(a),
        Scalar::Unary(..) => true,
        Scalar::Binary(f, a, b) => {
            use kina_ad::ir::kernel::BinaryFn as B;
            !matches!(f, B::Max | B::Min | B::And | B::Or) || computes(a) || computes(b)
        }
        Scalar::Compare(_, a, b) => computes(a) || computes(b),
        Scalar::Select(c, a, b) => computes(c) || computes(a) || computes(b),
        Scalar::Cast(..) => true,
    }
}
