//! Inputs that are not given: pinned random numbers, the same on every machine and in every run.
//!
//! Each input has a ChaCha8 stream of its own, chosen by its name, so that adding or removing an input leaves the others
//! as they are. The numbers are fixed by the seed, the name and the versions in `Cargo.lock`.

use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

use super::tensor::{Data, Tensor, TensorError};
use crate::ir::{DType, Graph, NodeId, NodeKind, TensorType};

/// Integers that index nothing are drawn from `0..UNBOUNDED`.
const UNBOUNDED: u64 = 10;

/// An input that cannot be made up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The input indexes a dimension of size zero.
    #[error("it indexes a dimension of size 0, so no value of it is in bounds")]
    NoValidIndex,
}

/// The bound of each program input that the program uses as indices: every element must lie in `0..bound`. Of several
/// uses the narrowest counts. Inputs that reach an indexing operator only through other operators have none, but for a choice
/// between indices, such as targets of which some are ignored.
pub fn bounds(graph: &Graph) -> BTreeMap<NodeId, u64> {
    let mut bounds = BTreeMap::new();
    for check in &graph.checks {
        let mut reached = vec![check.indices];
        let mut seen = BTreeSet::new();
        while let Some(id) = reached.pop() {
            if !seen.insert(id) {
                continue;
            }
            match &graph.node(id).kind {
                NodeKind::Param { argument, .. } => reached.push(*argument),
                NodeKind::Input => {
                    let bound = bounds.entry(id).or_insert(check.size);
                    *bound = check.size.min(*bound);
                }
                NodeKind::Op { operands, .. } => reached.extend(choice(graph, id, operands)),
                NodeKind::Gradient { .. } => {}
            }
        }
    }
    bounds
}

/// The values that a value is chosen from by a condition, if it is of that form.
fn choice(graph: &Graph, id: NodeId, operands: &[NodeId]) -> Vec<NodeId> {
    let ty = graph.ty(id);
    match operands {
        [c, arms @ ..] if arms.len() == 2 && *graph.ty(*c) == ty.with_dtype(DType::Bool) => {
            arms.iter().copied().filter(|arm| graph.ty(*arm) == ty).collect()
        }
        _ => Vec::new(),
    }
}

/// The input `name` of type `ty`: floats are standard normal, integers uniform in `0..bound` (in `0..10` where there is
/// no bound), Bool a fair coin.
///
/// ```
/// use kina_ad::exec::generate::generate;
/// use kina_ad::ir::{DType, Placement, Shape, TensorType};
/// let ty = TensorType::new(DType::I64, Shape::new(vec![4])?, Placement::Host);
/// assert_eq!(generate("targets", &ty, Some(8), 0)?, generate("targets", &ty, Some(8), 0)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If memory does not suffice, or if no index can be in bounds.
pub fn generate(name: &str, ty: &TensorType, bound: Option<u64>, seed: u64) -> Result<Tensor, GenerateError> {
    if ty.dtype.is_int() && bound == Some(0) && ty.shape.elements() > 0 {
        return Err(GenerateError::NoValidIndex);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(fnv1a(name.as_bytes()));
    let bound = bound.unwrap_or(UNBOUNDED).max(1);
    let mut tensor = Tensor::zeros(ty.dtype, ty.shape.clone())?;
    match tensor.data_mut() {
        Data::F32(v) => v.iter_mut().for_each(|x| *x = StandardNormal.sample(&mut rng)),
        Data::F64(v) => v.iter_mut().for_each(|x| *x = StandardNormal.sample(&mut rng)),
        Data::I64(v) => {
            let bound = bound.min(i64::MAX as u64);
            v.iter_mut().for_each(|x| *x = below(bound, &mut rng) as i64);
        }
        Data::I32(v) => {
            let bound = bound.min(i32::MAX as u64);
            v.iter_mut().for_each(|x| *x = below(bound, &mut rng) as i32);
        }
        Data::Bool(v) => v.iter_mut().for_each(|x| *x = (rng.next_u32() >> 31) as u8),
    }
    Ok(tensor)
}

/// Uniform in `0..bound` without bias, by Lemire's multiplication with rejection ("Fast random integer generation in an
/// interval", 2019). Written out because the sampler of the rand crates is not promised to be stable.
fn below(bound: u64, rng: &mut ChaCha8Rng) -> u64 {
    let threshold = bound.wrapping_neg() % bound;
    loop {
        let product = u128::from(rng.next_u64()) * u128::from(bound);
        if product as u64 >= threshold {
            return (product >> 64) as u64;
        }
    }
}

/// The 64-bit FNV-1a hash. (The hasher of the standard library may change between releases.)
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::diagnostics::SourceMap;
    use crate::ir::{Check, Node, Origin, Placement, Shape};

    fn ty(dtype: DType, dims: &[u64]) -> TensorType {
        TensorType::new(dtype, Shape::new(dims.to_vec()).unwrap(), Placement::Host)
    }

    fn floats(name: &str, seed: u64, count: u64) -> Vec<f64> {
        match generate(name, &ty(DType::F64, &[count]), None, seed).unwrap().data() {
            Data::F64(v) => v.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn hashes_as_published() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn floats_are_standard_normal_and_pinned() {
        let v = floats("logits", 0, 100_000);
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        let variance = v.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / v.len() as f64;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
        let golden = [0.04739024180992467, 0.05750981864941035, -0.2933342415896235, 0.020761327793717588];
        for (x, g) in v.iter().zip(golden) {
            assert!((x - g).abs() < 1e-12, "{:?}", &v[..4]);
        }
        match generate("logits", &ty(DType::F32, &[4]), None, 0).unwrap().data() {
            Data::F32(single) => assert!(single.iter().zip(&v).all(|(s, d)| *s == *d as f32)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn streams_depend_on_name_and_seed_only() {
        assert_ne!(floats("x", 0, 4), floats("y", 0, 4));
        assert_ne!(floats("x", 0, 4), floats("x", 1, 4));
        assert_eq!(floats("x", 0, 8)[..4], floats("x", 0, 4)[..]);
    }

    #[test]
    fn integers_fill_their_bound() {
        for dtype in [DType::I32, DType::I64] {
            for (bound, range) in [(Some(3), 3), (None, 10), (Some(1), 1)] {
                let t = generate("i", &ty(dtype, &[400]), bound, 7).unwrap().to_array().unwrap();
                for value in 0..range {
                    let count = t.ints().iter().filter(|i| **i == value).count() as i64;
                    assert!((count - 400 / range).abs() < 75, "{count} of {value}");
                }
                assert!(t.ints().iter().all(|i| (0..range).contains(i)));
            }
        }
        let wide = generate("i", &ty(DType::I32, &[50]), Some(u64::MAX), 7).unwrap().to_array().unwrap();
        assert!(wide.ints().iter().all(|i| *i >= 0));
        assert_eq!(generate("i", &ty(DType::I64, &[1]), Some(0), 7), Err(GenerateError::NoValidIndex));
        assert!(generate("i", &ty(DType::I64, &[0]), Some(0), 7).is_ok());
        let coins = generate("b", &ty(DType::Bool, &[400]), None, 7).unwrap();
        let heads = coins.as_bytes().iter().filter(|b| **b == 1).count();
        assert!((150..250).contains(&heads), "{heads}");
    }

    #[test]
    fn the_narrowest_direct_use_bounds_an_input() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.kina", "x");
        let mut graph = Graph::new();
        let mut push = |kind| {
            let origin = Origin::Program(sources.span(file, 0, 1));
            graph.push(Node { kind, ty: ty(DType::I64, &[2]), name: None, origin })
        };
        let (used, unused) = (push(NodeKind::Input), push(NodeKind::Input));
        let param = push(NodeKind::Param { handler: 0, index: 0, argument: used });
        let operator: Arc<str> = "take_along_axis".into();
        for (indices, size) in [(used, 9), (param, 5), (used, 7)] {
            graph.checks.add(Check { indices, size, operator: operator.clone() });
        }
        let bounds = bounds(&graph);
        assert_eq!(bounds.get(&used), Some(&5));
        assert_eq!(bounds.get(&unused), None);
    }
}
