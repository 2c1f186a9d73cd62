//! Arrays of the reference semantics: row-major, floats kept as `f64` unless something better is asked for.

use super::memory::{self, OutOfMemory};
use super::types::{DType, Shape, volume};

/// In which precision the reference semantics compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Every float in f64, whatever its dtype: the oracle.
    Double,
    /// Every result rounded to its dtype. Rounding the f64 result of `+ - * /` and `sqrt` on f32 operands
    /// is the correctly rounded f32 result (53 >= 2 * 24 + 2).
    Typed,
}

impl Precision {
    pub fn round(self, dtype: DType, value: f64) -> f64 {
        match (self, dtype) {
            (Precision::Typed, DType::F32) => f64::from(value as f32),
            _ => value,
        }
    }
}

/// Elements in row-major order. `F` is what floats are kept as.
#[derive(Clone, Debug, PartialEq)]
pub enum Values<F = f64> {
    Float(Vec<F>),
    Int(Vec<i64>),
    Bool(Vec<bool>),
}

impl<F: Copy> Values<F> {
    pub fn len(&self) -> usize {
        match self {
            Values::Float(v) => v.len(),
            Values::Int(v) => v.len(),
            Values::Bool(v) => v.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Elements in the order of `places`, `count` linear indices.
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub fn pick(&self, count: u64, places: impl Iterator<Item = usize>) -> Result<Values<F>, OutOfMemory> {
        match self {
            Values::Float(v) => memory::collect(count, places.map(|i| v[i])).map(Values::Float),
            Values::Int(v) => memory::collect(count, places.map(|i| v[i])).map(Values::Int),
            Values::Bool(v) => memory::collect(count, places.map(|i| v[i])).map(Values::Bool),
        }
    }

    /// A copy of all elements.
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub fn copy(&self) -> Result<Values<F>, OutOfMemory> {
        match self {
            Values::Float(v) => memory::copy(v).map(Values::Float),
            Values::Int(v) => memory::copy(v).map(Values::Int),
            Values::Bool(v) => memory::copy(v).map(Values::Bool),
        }
    }
}

/// An array of the interpreter.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<F = f64> {
    pub shape: Shape,
    pub values: Values<F>,
}

impl<F: Copy> Array<F> {
    /// `values` must hold exactly the shape's number of elements.
    pub fn new(shape: Shape, values: Values<F>) -> Array<F> {
        debug_assert_eq!(shape.elements(), values.len() as u64);
        Array { shape, values }
    }

    /// A copy, which unlike `clone` may be refused.
    ///
    /// # Errors
    /// [`OutOfMemory`]
    pub fn copy(&self) -> Result<Array<F>, OutOfMemory> {
        Ok(Array::new(self.shape.clone(), self.values.copy()?))
    }

    pub fn floats(&self) -> &[F] {
        match &self.values {
            Values::Float(v) => v,
            _ => &[],
        }
    }

    pub fn ints(&self) -> &[i64] {
        match &self.values {
            Values::Int(v) => v,
            _ => &[],
        }
    }

    pub fn bools(&self) -> &[bool] {
        match &self.values {
            Values::Bool(v) => v,
            _ => &[],
        }
    }
}

/// All points of a box in row-major order.
///
/// ```
/// use kina_ad::ir::array::points;
/// let all: Vec<Vec<u64>> = points(&[2, 2]).collect();
/// assert_eq!(all, [[0, 0], [0, 1], [1, 0], [1, 1]]);
/// assert_eq!(points(&[]).count(), 1);
/// assert_eq!(points(&[3, 0]).count(), 0);
/// ```
pub fn points(shape: &[u64]) -> impl Iterator<Item = Vec<u64>> + use<> {
    let shape = shape.to_vec();
    let total = volume(&shape);
    (0..total).map(move |mut linear| {
        let mut point = vec![0; shape.len()];
        for (p, d) in point.iter_mut().zip(&shape).rev() {
            *p = linear % d;
            linear /= d;
        }
        point
    })
}

/// The linear index of `point` in a row-major array of `shape`.
pub fn linear(shape: &[u64], point: impl IntoIterator<Item = u64>) -> usize {
    shape.iter().zip(point).fold(0, |acc, (d, p)| acc * d + p) as usize
}
