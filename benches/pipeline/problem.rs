//! The problem that is timed, and what a contestant fills in.

use std::error::Error;

use kina_ad::exec::generate::generate;
use kina_ad::exec::{Data, Tensor};
use kina_ad::ir::{DType, Placement, Shape, TensorType};

/// Value and gradient of the negative log-likelihood of `rows` sites over `classes` classes.
pub struct Problem {
    pub rows: usize,
    pub classes: usize,
    /// F32 `[rows, classes]`
    pub logits: Tensor,
    /// I64 `[rows]`
    pub targets: Tensor,
    /// F32 `[rows]`, ones. An input on both sides: neither may assume it.
    pub cotangent: Tensor,
}

/// The results, allocated beforehand: the loss `[rows]`, then the gradient `[rows, classes]`.
pub struct Gradient {
    pub tensors: Vec<Tensor>,
}

impl Problem {
    pub fn new(rows: usize, classes: usize) -> Result<Problem, Box<dyn Error>> {
        let ty =
            |dtype, dims: Vec<u64>| Ok::<_, Box<dyn Error>>(TensorType::new(dtype, Shape::new(dims)?, Placement::Host));
        Ok(Problem {
            rows,
            classes,
            logits: generate("logits", &ty(DType::F32, vec![rows as u64, classes as u64])?, None, 0)?,
            targets: generate("targets", &ty(DType::I64, vec![rows as u64])?, Some(classes as u64), 0)?,
            cotangent: Tensor::new(Shape::new(vec![rows as u64])?, Data::F32(vec![1.0; rows]))?,
        })
    }

    pub fn targets(&self) -> &[i64] {
        match self.targets.data() {
            Data::I64(v) => v,
            other => unreachable!("{}", other.dtype()),
        }
    }

    pub fn gradient(&self) -> Result<Gradient, Box<dyn Error>> {
        let (rows, classes) = (self.rows as u64, self.classes as u64);
        let zeros = |dims| Ok::<_, Box<dyn Error>>(Tensor::zeros(DType::F32, Shape::new(dims)?)?);
        Ok(Gradient { tensors: vec![zeros(vec![rows])?, zeros(vec![rows, classes])?] })
    }
}

/// The elements of an F32 tensor.
pub fn floats(tensor: &Tensor) -> &[f32] {
    match tensor.data() {
        Data::F32(v) => v,
        other => unreachable!("{}", other.dtype()),
    }
}

impl Gradient {
    /// The largest difference from `other`, relative to the larger of 1 and the value.
    pub fn distance(&self, other: &Gradient) -> f32 {
        let pairs = self.tensors.iter().zip(&other.tensors).flat_map(|(a, b)| floats(a).iter().zip(floats(b)));
        pairs.map(|(a, b)| (a - b).abs() / a.abs().max(1.0)).fold(0.0, |m, d| if d > m || d.is_nan() { d } else { m })
    }
}
