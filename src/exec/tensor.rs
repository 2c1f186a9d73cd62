//! Host tensors: what array files hold and compiled code reads and writes.

use std::alloc::{Layout, alloc_zeroed};
use std::fmt;

use crate::ir::{Array, DType, Shape, TensorType, Values, memory};

/// Elements in row-major order, in the layout that compiled code sees. Bool is one byte, 0 or 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    Bool(Vec<u8>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// A dense, row-major tensor in host memory.
///
/// Comparing two tensors compares elements as `==` does: NaN differs from itself, -0 equals 0. Compare
/// [`as_bytes`](Tensor::as_bytes) for identity.
///
/// ```
/// use kina_ad::exec::{Data, Tensor};
/// use kina_ad::ir::{DType, Shape};
/// let t = Tensor::new(Shape::new(vec![2, 1])?, Data::F32(vec![1.0, 2.0]))?;
/// assert_eq!(t.dtype(), DType::F32);
/// assert_eq!(t.as_bytes().len(), 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    shape: Shape,
    data: Data,
}

/// Why a tensor cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The allocator refused.
    #[error("not enough memory: a {dtype} tensor of shape {shape} takes {bytes} bytes")]
    OutOfMemory { dtype: DType, shape: Shape, bytes: u64 },
    #[error("{given} elements do not fill a tensor of shape {shape}, which has {}", shape.elements())]
    ElementCount { shape: Shape, given: usize },
    /// An interpreter array whose values are of another kind than the dtype asked for.
    #[error("{kind} values cannot become a tensor of {dtype}")]
    Kind { dtype: DType, kind: &'static str },
    #[error("the integer {value} does not fit in I32")]
    IntRange { value: i64 },
}

/// Types of which a tensor stores elements. All bits zero must be a value.
trait Element: Copy {}
impl Element for u8 {}
impl Element for i32 {}
impl Element for i64 {}
impl Element for f32 {}
impl Element for f64 {}

/// `count` zeros, or `None` if there is no such memory. The pages come from the system untouched, so memory is
/// committed as it is written, by the thread that writes it.
fn zeroed<T: Element>(count: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(count).ok()?;
    if layout.size() == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the layout is not of size zero. It is that of `count` elements of `T`, for which all bits zero is a
    // value (`Element`), and the memory is of the global allocator, as `Vec` asks.
    unsafe {
        let start = alloc_zeroed(layout).cast::<T>();
        (!start.is_null()).then(|| Vec::from_raw_parts(start, count, count))
    }
}

fn bytes<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: elements are plain numbers without padding; any alignment suits bytes.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

fn bytes_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes`, and every pattern of bits is a value of the element types.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), size_of_val(elements)) }
}

/// Runs `$body` with `$elements` bound to the vector of whatever type `$data` holds.
macro_rules! each {
    ($data:expr, $elements:ident => $body:expr) => {
        match $data {
            Data::Bool($elements) => $body,
            Data::I32($elements) => $body,
            Data::I64($elements) => $body,
            Data::F32($elements) => $body,
            Data::F64($elements) => $body,
        }
    };
}

impl Data {
    pub fn dtype(&self) -> DType {
        match self {
            Data::Bool(_) => DType::Bool,
            Data::I32(_) => DType::I32,
            Data::I64(_) => DType::I64,
            Data::F32(_) => DType::F32,
            Data::F64(_) => DType::F64,
        }
    }

    pub fn len(&self) -> usize {
        each!(self, v => v.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Tensor {
    /// Takes elements in row-major order. Bool elements other than 0 become 1.
    ///
    /// # Errors
    /// [`TensorError::ElementCount`] if there are more or fewer than the shape has.
    pub fn new(shape: Shape, mut data: Data) -> Result<Tensor, TensorError> {
        if shape.elements() != data.len() as u64 {
            return Err(TensorError::ElementCount { shape, given: data.len() });
        }
        if let Data::Bool(v) = &mut data {
            v.iter_mut().for_each(|b| *b = u8::from(*b != 0));
        }
        Ok(Tensor { shape, data })
    }

    /// A tensor of zeros (of `false`).
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`]; a legal shape may still be larger than memory.
    pub fn zeros(dtype: DType, shape: Shape) -> Result<Tensor, TensorError> {
        let bytes = shape.elements() * dtype.size();
        let count = memory::check(bytes).ok().and_then(|()| usize::try_from(shape.elements()).ok());
        let data = count.and_then(|n| match dtype {
            DType::Bool => zeroed(n).map(Data::Bool),
            DType::I32 => zeroed(n).map(Data::I32),
            DType::I64 => zeroed(n).map(Data::I64),
            DType::F32 => zeroed(n).map(Data::F32),
            DType::F64 => zeroed(n).map(Data::F64),
        });
        match data {
            Some(data) => Ok(Tensor { shape, data }),
            None => Err(TensorError::OutOfMemory { dtype, shape, bytes }),
        }
    }

    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn data(&self) -> &Data {
        &self.data
    }

    /// For filling in elements of the tensor's own dtype; the length stays.
    pub(super) fn data_mut(&mut self) -> &mut Data {
        &mut self.data
    }

    /// The elements, row-major, in the byte order of this machine.
    pub fn as_bytes(&self) -> &[u8] {
        each!(&self.data, v => bytes(v))
    }

    /// Writable elements. Whoever writes Bool elements writes 0 or 1.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        each!(&mut self.data, v => bytes_mut(v))
    }

    /// Has it the dtype and shape of `ty`? (Placement is a matter of programs.)
    pub fn is_of(&self, ty: &TensorType) -> bool {
        self.dtype() == ty.dtype && self.shape == ty.shape
    }

    /// Rounds (F32) or stores an array of the interpreter.
    ///
    /// # Errors
    /// If the values are of another kind than `dtype`, an integer does not fit, or memory does not suffice.
    pub fn from_array(array: &Array, dtype: DType) -> Result<Tensor, TensorError> {
        let mut tensor = Tensor::zeros(dtype, array.shape.clone())?;
        if tensor.data.len() != array.values.len() {
            return Err(TensorError::ElementCount { shape: array.shape.clone(), given: array.values.len() });
        }
        match (&mut tensor.data, &array.values) {
            (Data::F32(to), Values::Float(from)) => to.iter_mut().zip(from).for_each(|(t, f)| *t = *f as f32),
            (Data::F64(to), Values::Float(from)) => to.copy_from_slice(from),
            (Data::I64(to), Values::Int(from)) => to.copy_from_slice(from),
            (Data::I32(to), Values::Int(from)) => {
                for (t, f) in to.iter_mut().zip(from) {
                    *t = i32::try_from(*f).map_err(|_| TensorError::IntRange { value: *f })?;
                }
            }
            (Data::Bool(to), Values::Bool(from)) => to.iter_mut().zip(from).for_each(|(t, f)| *t = u8::from(*f)),
            (_, values) => {
                let kind = match values {
                    Values::Float(_) => "float",
                    Values::Int(_) => "integer",
                    Values::Bool(_) => "Bool",
                };
                return Err(TensorError::Kind { dtype, kind });
            }
        }
        Ok(tensor)
    }

    /// The array that the interpreter computes with; exact.
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`]
    pub fn to_array(&self) -> Result<Array, TensorError> {
        let values = match &self.data {
            Data::Bool(v) => memory::map(v, |b| *b != 0).map(Values::Bool),
            Data::I32(v) => memory::map(v, |i| i64::from(*i)).map(Values::Int),
            Data::I64(v) => memory::copy(v).map(Values::Int),
            Data::F32(v) => memory::map(v, |f| f64::from(*f)).map(Values::Float),
            Data::F64(v) => memory::copy(v).map(Values::Float),
        };
        let values = values.map_err(|error| TensorError::OutOfMemory {
            dtype: self.dtype(),
            shape: self.shape.clone(),
            bytes: error.bytes,
        })?;
        Ok(Array::new(self.shape.clone(), values))
    }
}

impl fmt::Display for Tensor {
    /// Dtype and shape: `F32 [2, 3]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dtype(), self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[u64]) -> Shape {
        Shape::new(dims.to_vec()).unwrap()
    }

    #[test]
    fn a_huge_legal_shape_is_an_error() {
        let huge = shape(&[1 << 30, 1 << 29]);
        let error = Tensor::zeros(DType::F64, huge).unwrap_err();
        assert!(matches!(error, TensorError::OutOfMemory { bytes, .. } if bytes == 1 << 62), "{error}");
    }

    #[test]
    fn zeros_are_zeros_and_empty_is_empty() {
        for dtype in DType::ALL {
            let t = Tensor::zeros(dtype, shape(&[3, 5])).unwrap();
            assert_eq!(t.as_bytes().len() as u64, 15 * dtype.size());
            assert!(t.as_bytes().iter().all(|b| *b == 0));
            assert!(Tensor::zeros(dtype, shape(&[3, 0])).unwrap().as_bytes().is_empty());
            assert_eq!(Tensor::zeros(dtype, Shape::scalar()).unwrap().data().len(), 1);
        }
    }

    #[test]
    fn arrays_convert_and_round() {
        let array = Array::new(shape(&[2]), Values::Float(vec![0.1, f64::INFINITY]));
        let t = Tensor::from_array(&array, DType::F32).unwrap();
        assert_eq!(t.data(), &Data::F32(vec![0.1, f32::INFINITY]));
        assert_eq!(t.to_array().unwrap().floats()[0], f64::from(0.1_f32));
        assert!(matches!(Tensor::from_array(&array, DType::I64), Err(TensorError::Kind { .. })));

        let wide = Array::new(shape(&[1]), Values::Int(vec![1 << 31]));
        assert_eq!(Tensor::from_array(&wide, DType::I32), Err(TensorError::IntRange { value: 1 << 31 }));
        assert_eq!(Tensor::from_array(&wide, DType::I64).unwrap().to_array().unwrap(), wide);

        let flags = Array::new(shape(&[2]), Values::Bool(vec![true, false]));
        assert_eq!(Tensor::from_array(&flags, DType::Bool).unwrap().to_array().unwrap(), flags);
    }

    #[test]
    fn element_counts_are_checked_and_bools_normalised() {
        assert!(Tensor::new(shape(&[2]), Data::I32(vec![1])).is_err());
        let t = Tensor::new(shape(&[2]), Data::Bool(vec![7, 0])).unwrap();
        assert_eq!(t.as_bytes(), [1, 0]);
    }

    #[test]
    fn writing_bytes_writes_elements() {
        let mut t = Tensor::zeros(DType::F32, shape(&[2])).unwrap();
        t.as_bytes_mut()[4..].copy_from_slice(&2.5_f32.to_ne_bytes());
        assert_eq!(t.data(), &Data::F32(vec![0.0, 2.5]));
    }
}
