//! Kernels computed as data.
//!
//! An operator states its meaning twice: as a reference and as a [`Kernel`], which is what gets lowered and fused. This
//! evaluator runs the second, point by point, so that the two can be compared without a code generator between them, and
//! in any [`Arithmetic`]. It also checks what the code generator relies on: that maps stay inside what they read and write.

use std::cell::Cell;

use super::arithmetic::Arithmetic;
use crate::ir::array::{linear, points};
use crate::ir::kernel::{BinaryFn, Combine, CompareFn, MapDim, Scalar, Sequence, Source, UnaryFn};
use crate::ir::{Array, Call, DType, Kernel, Loop, OutOfMemory, Shape, TensorType, Values, memory};

/// Why a kernel has no value. [`Malformed`](KernelError::Malformed) is a defect of the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// Composite operators are expanded before they are lowered.
    #[error("a composite operator has no kernel of its own")]
    Composite,
    #[error("loop {at}: {what}")]
    Malformed { at: usize, what: &'static str },
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// Why one loop has no value.
enum Fault {
    Malformed(&'static str),
    OutOfMemory(OutOfMemory),
}

impl From<&'static str> for Fault {
    fn from(what: &'static str) -> Fault {
        Fault::Malformed(what)
    }
}

impl From<OutOfMemory> for Fault {
    fn from(error: OutOfMemory) -> Fault {
        Fault::OutOfMemory(error)
    }
}

/// One scalar with its dtype.
#[derive(Clone, Copy, Debug)]
enum Element<F> {
    Float(F, DType),
    Int(i64, DType),
    Bool(bool),
}

/// An operand or temporary, with its dtype.
struct Tensor<'a, F: Copy> {
    dtype: DType,
    array: std::borrow::Cow<'a, Array<F>>,
}

/// The result of the kernel of `call`, whose operands are `args`. Bounds checks are not part of a kernel: indices must
/// lie in their bound.
///
/// # Errors
/// A kernel that is not what [`Kernel`] documents, or a composite operator.
pub fn run<A: Arithmetic>(
    kernel: &Kernel,
    call: Call<'_>,
    args: &[&Array<A::Float>],
    result: &TensorType,
    arithmetic: A,
) -> Result<Array<A::Float>, KernelError> {
    let loops = match kernel {
        Kernel::Loops(loops) => loops,
        Kernel::Reshape => {
            let malformed = KernelError::Malformed { at: 0, what: "a reshape needs one operand of as many elements" };
            let x = args.first().filter(|x| x.values.len() as u64 == result.shape.elements()).ok_or(malformed)?;
            return Ok(Array::new(result.shape.clone(), x.values.copy()?));
        }
        Kernel::Composite => return Err(KernelError::Composite),
    };
    let operands: Vec<Tensor<'_, A::Float>> = call
        .operands
        .iter()
        .zip(args)
        .map(|(ty, array)| Tensor { dtype: ty.dtype, array: std::borrow::Cow::Borrowed(*array) })
        .collect();
    let mut temporaries: Vec<Tensor<'_, A::Float>> = Vec::new();
    for (at, l) in loops.iter().enumerate() {
        let previous = Cell::new(None);
        let nest = Nest { l, operands: &operands, temporaries: &temporaries, arithmetic, previous };
        let array = nest.run().map_err(|fault| match fault {
            Fault::Malformed(what) => KernelError::Malformed { at, what },
            Fault::OutOfMemory(error) => KernelError::OutOfMemory(error),
        })?;
        temporaries.push(Tensor { dtype: l.dtype, array: std::borrow::Cow::Owned(array) });
    }
    match temporaries.pop() {
        Some(last) if last.dtype == result.dtype && last.array.shape == result.shape => Ok(last.array.into_owned()),
        _ => {
            let at = loops.len().saturating_sub(1);
            Err(KernelError::Malformed { at, what: "the last loop must compute the result" })
        }
    }
}

/// One loop with what it reads.
struct Nest<'a, A: Arithmetic> {
    l: &'a Loop,
    operands: &'a [Tensor<'a, A::Float>],
    temporaries: &'a [Tensor<'a, A::Float>],
    arithmetic: A,
    /// What [`Scalar::Previous`] reads.
    previous: Cell<Option<Element<A::Float>>>,
}

impl<A: Arithmetic> Nest<'_, A> {
    fn run(&self) -> Result<Array<A::Float>, Fault> {
        let l = self.l;
        let shape = Shape::new(l.shape.clone()).map_err(|_| "the shape overflows")?;
        let mapped = match l.sequence {
            Some(Sequence::Scatter(_)) if l.reduce.is_none() => return Err("scatters without combining".into()),
            Some(Sequence::Scatter(_)) => l.shape.get(1..).ok_or("scatters into a scalar")?,
            Some(Sequence::Scan(d)) if l.reduce.is_some() || d >= l.domain.len() => {
                return Err("scans along no dimension, or reduces".into());
            }
            _ => &l.shape,
        };
        self.check_map(&l.result_map, mapped)?;
        for read in &l.inputs {
            self.check_map(&read.map, &self.source(read.source)?.array.shape)?;
        }
        if l.reduce.is_none() && !l.reduction_dims().iter().all(|d| l.domain[*d] == 1) {
            return Err("writes one place several times without combining".into());
        }
        let start = self.neutral()?;
        let count = shape.elements();
        let mut out = memory::filled(count, start)?;
        let mut written = memory::filled(count, false)?;
        for point in points(&l.domain) {
            let mut coordinates: Vec<u64> = through(&l.result_map, &point).collect();
            match &l.sequence {
                Some(Sequence::Scan(d)) => {
                    let mut before = point.clone();
                    self.previous.set(Some(match before[*d].checked_sub(1) {
                        Some(i) => {
                            before[*d] = i;
                            out[linear(&l.shape, through(&l.result_map, &before))]
                        }
                        None => start,
                    }));
                }
                Some(Sequence::Scatter(row)) => match self.eval(row, &point)? {
                    Element::Int(i, DType::I64) if u64::try_from(i).is_ok_and(|i| i < l.shape[0]) => {
                        coordinates.insert(0, i as u64);
                    }
                    _ => return Err("scatters outside its result".into()),
                },
                None => {}
            }
            let value = self.eval(&l.body, &point)?;
            let place = linear(&l.shape, coordinates);
            out[place] = match l.reduce {
                None => value,
                Some(combine) => {
                    let function = match combine {
                        Combine::Add => BinaryFn::Add,
                        Combine::Mul => BinaryFn::Mul,
                        Combine::Max => BinaryFn::Max,
                        Combine::Min => BinaryFn::Min,
                    };
                    self.binary(function, out[place], value)?
                }
            };
            if dtype(out[place]) != l.dtype {
                return Err("the body has another dtype than the loop".into());
            }
            written[place] = true;
        }
        if l.reduce.is_none() && !written.into_iter().all(|w| w) {
            return Err("leaves places unwritten".into());
        }
        let mut values = match l.dtype {
            DType::F32 | DType::F64 => Values::Float(memory::reserve(count)?),
            DType::I32 | DType::I64 => Values::Int(memory::reserve(count)?),
            DType::Bool => Values::Bool(memory::reserve(count)?),
        };
        for element in out {
            match (&mut values, element) {
                (Values::Float(v), Element::Float(x, _)) => v.push(x),
                (Values::Int(v), Element::Int(x, _)) => v.push(x),
                (Values::Bool(v), Element::Bool(x)) => v.push(x),
                _ => return Err("the body has another dtype than the loop".into()),
            }
        }
        Ok(Array::new(shape, values))
    }

    /// Every dimension is walked exactly, or pinned to its only place.
    fn check_map(&self, map: &[MapDim], shape: &[u64]) -> Result<(), &'static str> {
        if map.len() != shape.len() {
            return Err("a map has another rank than what it leads to");
        }
        let fits = map.iter().zip(shape).all(|(m, extent)| match m {
            MapDim::Dim(d) => self.l.domain.get(*d) == Some(extent),
            MapDim::Zero => *extent == 1,
        });
        if fits { Ok(()) } else { Err("a map leaves what it leads to") }
    }

    fn source(&self, source: Source) -> Result<&Tensor<'_, A::Float>, &'static str> {
        match source {
            Source::Operand(i) => self.operands.get(i),
            Source::Temporary(i) => self.temporaries.get(i),
        }
        .ok_or("reads an operand or temporary that is not there")
    }

    fn neutral(&self) -> Result<Element<A::Float>, &'static str> {
        let dtype = self.l.dtype;
        let (float, int) = match (self.l.reduce, dtype) {
            (None | Some(Combine::Add), _) => (0.0, 0),
            (Some(Combine::Mul), _) => (1.0, 1),
            (Some(Combine::Max), DType::I32) => (f64::NEG_INFINITY, i32::MIN.into()),
            (Some(Combine::Max), _) => (f64::NEG_INFINITY, i64::MIN),
            (Some(Combine::Min), DType::I32) => (f64::INFINITY, i32::MAX.into()),
            (Some(Combine::Min), _) => (f64::INFINITY, i64::MAX),
        };
        match dtype {
            DType::F32 | DType::F64 => Ok(Element::Float(self.arithmetic.constant(float, dtype), dtype)),
            DType::I32 | DType::I64 => Ok(Element::Int(int, dtype)),
            DType::Bool if self.l.reduce.is_none() => Ok(Element::Bool(false)),
            DType::Bool => Err("combines Bools"),
        }
    }

    fn eval(&self, scalar: &Scalar, point: &[u64]) -> Result<Element<A::Float>, &'static str> {
        Ok(match scalar {
            Scalar::Input(i) => {
                let read = self.l.inputs.get(*i).ok_or("reads an input that is not there")?;
                let tensor = self.source(read.source)?;
                element(tensor, linear(&tensor.array.shape, through(&read.map, point)))?
            }
            Scalar::Index(d) => {
                let index = point.get(*d).ok_or("names an iteration dimension that is not there")?;
                Element::Int(*index as i64, DType::I64)
            }
            Scalar::Constant(value, dtype) => match dtype {
                DType::F32 | DType::F64 => Element::Float(self.arithmetic.constant(*value, *dtype), *dtype),
                DType::I32 | DType::I64 => Element::Int(*value as i64, *dtype),
                DType::Bool => Element::Bool(*value != 0.0),
            },
            Scalar::Previous => self.previous.get().ok_or("reads the point before, but does not scan")?,
            Scalar::Unary(f, x) => self.unary(*f, self.eval(x, point)?)?,
            Scalar::Binary(f, a, b) => self.binary(*f, self.eval(a, point)?, self.eval(b, point)?)?,
            Scalar::Compare(f, a, b) => Element::Bool(compare(*f, self.eval(a, point)?, self.eval(b, point)?)?),
            Scalar::Select(c, a, b) => {
                let (a, b) = (self.eval(a, point)?, self.eval(b, point)?);
                match self.eval(c, point)? {
                    _ if dtype(a) != dtype(b) => return Err("selects between two dtypes"),
                    Element::Bool(c) => return Ok(if c { a } else { b }),
                    _ => return Err("selects by what is not a Bool"),
                }
            }
            Scalar::Cast(x, to) => self.cast(self.eval(x, point)?, *to),
            Scalar::Gather(source, coordinates) => {
                let tensor = self.source(*source)?;
                let shape = &tensor.array.shape;
                if coordinates.len() != shape.rank() {
                    return Err("gathers with coordinates of another rank");
                }
                let mut at = Vec::with_capacity(coordinates.len());
                for (coordinate, extent) in coordinates.iter().zip(shape.iter()) {
                    if matches!(coordinate, Scalar::Index(d) if self.l.domain.get(*d) != Some(extent)) {
                        return Err("gathers along an index that does not walk all of the axis");
                    }
                    match self.eval(coordinate, point)? {
                        Element::Int(i, DType::I64) if u64::try_from(i).is_ok_and(|i| i < *extent) => at.push(i as u64),
                        _ => return Err("gathers outside its source"),
                    }
                }
                element(tensor, linear(shape, at))?
            }
        })
    }

    fn unary(&self, f: UnaryFn, x: Element<A::Float>) -> Result<Element<A::Float>, &'static str> {
        Ok(match (f, x) {
            (UnaryFn::Neg, Element::Int(x, dtype)) => wrapped(x.wrapping_neg(), dtype),
            (UnaryFn::Abs, Element::Int(x, dtype)) => wrapped(x.wrapping_abs(), dtype),
            (UnaryFn::Not, Element::Bool(x)) => Element::Bool(!x),
            (UnaryFn::Not, Element::Float(..)) => return Err("negates a float logically"),
            (_, Element::Float(x, dtype)) => Element::Float(self.arithmetic.unary(f, x, dtype), dtype),
            _ => return Err("a function of floats reads something else"),
        })
    }

    fn binary(
        &self,
        f: BinaryFn,
        a: Element<A::Float>,
        b: Element<A::Float>,
    ) -> Result<Element<A::Float>, &'static str> {
        Ok(match (a, b) {
            (Element::Float(..), Element::Float(..)) if matches!(f, BinaryFn::And | BinaryFn::Or) => {
                return Err("a function of Bools reads floats");
            }
            (Element::Float(a, dtype), Element::Float(b, other)) if dtype == other => {
                Element::Float(self.arithmetic.binary(f, a, b, dtype), dtype)
            }
            (Element::Int(a, dtype), Element::Int(b, other)) if dtype == other => {
                let y = match f {
                    BinaryFn::Add => a.wrapping_add(b),
                    BinaryFn::Sub => a.wrapping_sub(b),
                    BinaryFn::Mul => a.wrapping_mul(b),
                    BinaryFn::Div => a.checked_div(b).unwrap_or(if b == 0 { 0 } else { a }),
                    BinaryFn::Max => a.max(b),
                    BinaryFn::Min => a.min(b),
                    BinaryFn::And | BinaryFn::Or => return Err("a function of Bools reads integers"),
                    BinaryFn::Pow | BinaryFn::Atan2 => return Err("a function of floats reads integers"),
                };
                wrapped(y, dtype)
            }
            (Element::Bool(a), Element::Bool(b)) => match f {
                BinaryFn::And => Element::Bool(a && b),
                BinaryFn::Or => Element::Bool(a || b),
                _ => return Err("arithmetic on Bools"),
            },
            _ => return Err("a function of one dtype reads two"),
        })
    }

    fn cast(&self, x: Element<A::Float>, to: DType) -> Element<A::Float> {
        let arithmetic = &self.arithmetic;
        match (x, to) {
            (Element::Float(x, _), DType::F32 | DType::F64) => Element::Float(arithmetic.round(x, to), to),
            (Element::Float(x, _), DType::I32) => {
                Element::Int(arithmetic.to_i64(x).clamp(i32::MIN.into(), i32::MAX.into()), to)
            }
            (Element::Float(x, _), DType::I64) => Element::Int(arithmetic.to_i64(x), to),
            (Element::Float(x, _), DType::Bool) => Element::Bool(x != arithmetic.constant(0.0, to)),
            (Element::Int(x, _), DType::F32 | DType::F64) => Element::Float(arithmetic.of_i64(x, to), to),
            (Element::Int(x, _), DType::I32) => Element::Int(x.clamp(i32::MIN.into(), i32::MAX.into()), to),
            (Element::Int(x, _), DType::I64) => Element::Int(x, to),
            (Element::Int(x, _), DType::Bool) => Element::Bool(x != 0),
            (Element::Bool(x), DType::F32 | DType::F64) => Element::Float(arithmetic.of_i64(x.into(), to), to),
            (Element::Bool(x), DType::I32 | DType::I64) => Element::Int(x.into(), to),
            (Element::Bool(x), DType::Bool) => Element::Bool(x),
        }
    }
}

fn compare<F: PartialOrd>(f: CompareFn, a: Element<F>, b: Element<F>) -> Result<bool, &'static str> {
    let order = match (a, b) {
        (Element::Float(a, x), Element::Float(b, y)) if x == y => a.partial_cmp(&b),
        (Element::Int(a, x), Element::Int(b, y)) if x == y => Some(a.cmp(&b)),
        (Element::Bool(a), Element::Bool(b)) => Some(a.cmp(&b)),
        _ => return Err("compares two dtypes"),
    };
    Ok(match f {
        CompareFn::Eq => order.is_some_and(|o| o.is_eq()),
        CompareFn::Ne => order.is_none_or(|o| o.is_ne()),
        CompareFn::Lt => order.is_some_and(|o| o.is_lt()),
        CompareFn::Le => order.is_some_and(|o| o.is_le()),
        CompareFn::Gt => order.is_some_and(|o| o.is_gt()),
        CompareFn::Ge => order.is_some_and(|o| o.is_ge()),
    })
}

fn wrapped<F>(x: i64, dtype: DType) -> Element<F> {
    Element::Int(if dtype == DType::I32 { i64::from(x as i32) } else { x }, dtype)
}

fn dtype<F: Copy>(x: Element<F>) -> DType {
    match x {
        Element::Float(_, dtype) | Element::Int(_, dtype) => dtype,
        Element::Bool(_) => DType::Bool,
    }
}

fn element<F: Copy>(tensor: &Tensor<'_, F>, place: usize) -> Result<Element<F>, &'static str> {
    let found = match &tensor.array.values {
        Values::Float(v) => v.get(place).map(|x| Element::Float(*x, tensor.dtype)),
        Values::Int(v) => v.get(place).map(|x| Element::Int(*x, tensor.dtype)),
        Values::Bool(v) => v.get(place).map(|x| Element::Bool(*x)),
    };
    found.ok_or("reads outside its source")
}

/// The coordinates that a map gives for a point of the box.
fn through<'a>(map: &'a [MapDim], point: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
    map.iter().map(|m| match m {
        MapDim::Dim(d) => point.get(*d).copied().unwrap_or(0),
        MapDim::Zero => 0,
    })
}

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
