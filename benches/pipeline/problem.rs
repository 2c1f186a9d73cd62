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
    /// `[rows]`, ones.
    pub cotangent: Vec<f32>,
}

/// The results, allocated beforehand.
pub struct Gradient {
    /// `[rows]`
    pub loss: Vec<f32>,
    /// `[rows, classes]`
    pub logits: Vec<f32>,
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
            cotangent: vec![1.0; rows],
        })
    }

    pub fn logits(&self) -> &[f32] {
        match self.logits.data() {
            Data::F32(v) => v,
            other => unreachable!("{}", other.dtype()),
        }
    }

    pub fn targets(&self) -> &[i64] {
        match self.targets.data() {
            Data::I64(v) => v,
            other => unreachable!("{}", other.dtype()),
        }
    }

    pub fn gradient(&self) -> Gradient {
        Gradient { loss: vec![0.0; self.rows], logits: vec![0.0; self.rows * self.classes] }
    }
}

impl Gradient {
    /// The largest difference from `other`, relative to the larger of 1 and the value.
    pub fn distance(&self, other: &Gradient) -> f32 {
        let pairs = self.loss.iter().zip(&other.loss).chain(self.logits.iter().zip(&other.logits));
        pairs.map(|(a, b)| (a - b).abs() / a.abs().max(1.0)).fold(0.0, |m, d| if d > m || d.is_nan() { d } else { m })
    }
}
