//! Tensor types: dtype, static shape, placement.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Element types of the Kina slice (DESIGN §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    Bool,
    I32,
    I64,
    F32,
    F64,
}

impl DType {
    pub const ALL: [DType; 5] = [DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64];

    pub fn name(self) -> &'static str {
        match self {
            DType::Bool => "Bool",
            DType::I32 => "I32",
            DType::I64 => "I64",
            DType::F32 => "F32",
            DType::F64 => "F64",
        }
    }

    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }

    /// Only float tensors carry cotangents.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    pub fn is_int(self) -> bool {
        matches!(self, DType::I32 | DType::I64)
    }

    /// Bytes of one stored element; Bool is stored as one byte (DESIGN §7).
    pub fn size(self) -> u64 {
        match self {
            DType::Bool => 1,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a tensor lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    Host,
    Device,
}

impl Placement {
    pub const ALL: [Placement; 2] = [Placement::Host, Placement::Device];

    pub fn name(self) -> &'static str {
        match self {
            Placement::Host => "host",
            Placement::Device => "device",
        }
    }

    pub fn from_name(name: &str) -> Option<Placement> {
        Placement::ALL.into_iter().find(|p| p.name() == name)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.name())
    }
}

/// The sizes do not fit: see [`Shape::new`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shape {0:?} has too many elements: the product of its dimensions must stay below 2^63 bytes")]
pub struct ShapeOverflow(pub Vec<u64>);

/// Number of points of a box of any sizes. Unlike the elements of a [`Shape`] they may be too many to count (those of a
/// matrix product are), and are `u64::MAX` then.
pub fn volume(dims: &[u64]) -> u64 {
    dims.iter().fold(1, |points: u64, d| points.saturating_mul(*d))
}

/// More dimensions than [`MAX_RANK`].
pub const MAX_RANK: usize = 64;

/// A static shape. Its dimensions times eight bytes never exceed 2^63 - 1, even with zero dimensions
/// counted as one, so that strides and byte sizes can be computed without overflow everywhere. Clones share the dimensions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape(Arc<[u64]>);

impl Shape {
    /// Checks the product.
    ///
    /// # Errors
    /// [`ShapeOverflow`] if the tensor would not be addressable or has more than [`MAX_RANK`] dimensions.
    pub fn new(dims: Vec<u64>) -> Result<Shape, ShapeOverflow> {
        let mut bytes: u64 = 8;
        for d in &dims {
            match bytes.checked_mul((*d).max(1)) {
                Some(b) if b <= i64::MAX as u64 => bytes = b,
                _ => return Err(ShapeOverflow(dims)),
            }
        }
        if dims.len() > MAX_RANK {
            return Err(ShapeOverflow(dims));
        }
        Ok(Shape(dims.into()))
    }

    /// The shape of a rank-0 tensor.
    pub fn scalar() -> Shape {
        Shape(Arc::default())
    }

    pub fn rank(&self) -> usize {
        self.0.len()
    }

    pub fn elements(&self) -> u64 {
        self.0.iter().product()
    }

    /// The shape without dimension `axis`. `axis` must be below the rank.
    #[must_use]
    pub fn without(&self, axis: usize) -> Shape {
        let mut dims = self.0.to_vec();
        dims.remove(axis);
        Shape(dims.into())
    }

    /// The shape with dimension `axis` set to 1. `axis` must be below the rank.
    #[must_use]
    pub fn with_one(&self, axis: usize) -> Shape {
        let mut dims = self.0.to_vec();
        dims[axis] = 1;
        Shape(dims.into())
    }

    /// Row-major strides in elements.
    pub fn strides(&self) -> Vec<u64> {
        let mut strides = vec![1; self.0.len()];
        for i in (1..self.0.len()).rev() {
            strides[i - 1] = strides[i] * self.0[i].max(1);
        }
        strides
    }
}

impl Deref for Shape {
    type Target = [u64];
    fn deref(&self) -> &[u64] {
        &self.0
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str("]")
    }
}

/// `tensor<F32, [1, 4, 8], @host>`. Equality is structural (Section 9).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorType {
    pub dtype: DType,
    pub shape: Shape,
    pub placement: Placement,
}

impl TensorType {
    pub fn new(dtype: DType, shape: Shape, placement: Placement) -> Self {
        Self { dtype, shape, placement }
    }

    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    pub fn bytes(&self) -> u64 {
        self.shape.elements() * self.dtype.size()
    }

    #[must_use]
    pub fn with_shape(&self, shape: Shape) -> TensorType {
        TensorType { shape, ..self.clone() }
    }

    #[must_use]
    pub fn with_dtype(&self, dtype: DType) -> TensorType {
        TensorType { dtype, ..self.clone() }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensor<{}, {}, {}>", self.dtype, self.shape, self.placement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_stay_addressable() {
        assert!(Shape::new(vec![1 << 59]).is_ok());
        assert!(Shape::new(vec![1 << 60]).is_err());
        assert!(Shape::new(vec![0, 1 << 40, 1 << 40]).is_err());
        assert!(Shape::new(vec![1; MAX_RANK + 1]).is_err());
        assert_eq!(Shape::new(vec![2, 0, 3]).unwrap().elements(), 0);
        assert_eq!(Shape::new(vec![2, 3, 4]).unwrap().strides(), vec![12, 4, 1]);
        assert_eq!((volume(&[2, 3]), volume(&[]), volume(&[1 << 40, 1 << 40])), (6, 1, u64::MAX));
        assert_eq!(volume(&[1 << 40, 1 << 40, 0]), 0);
    }
}
