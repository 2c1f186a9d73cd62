//! Straight-line code as data, and the handles that write it.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};

use rustc_hash::FxHashMap;

use crate::ir::attr::F64Bits;
use crate::ir::kernel::CompareFn;
use crate::ir::types::DType;

/// Index of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepId(u32);

impl StepId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a step computes; operands are earlier steps. Floats round once, to the nearest, ties to even.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// The operand of the function.
    Operand,
    Float(F64Bits),
    Int(i64),
    /// -x of a float.
    Neg(StepId),
    Abs(StepId),
    Sqrt(StepId),
    /// To the nearest integer, halves to the even one.
    Round(StepId),
    /// Of floats, or of integers, which wrap around.
    Add(StepId, StepId),
    Sub(StepId, StepId),
    Mul(StepId, StepId),
    /// Of floats only.
    Div(StepId, StepId),
    /// a b + c of floats, rounded once.
    Fma(StepId, StepId, StepId),
    /// Of integers only.
    And(StepId, StepId),
    Or(StepId, StepId),
    Xor(StepId, StepId),
    /// Shifts by a constant below the width.
    Shl(StepId, u32),
    /// Zeros come in.
    Shr(StepId, u32),
    /// Of floats: false on NaN, but `Ne` is true. Of integers: with their signs.
    Compare(CompareFn, StepId, StepId),
    /// a < b of integers without signs.
    Below(StepId, StepId),
    Select(StepId, StepId, StepId),
    /// The bits of a float as an integer of its width, or back.
    Bitcast(StepId),
    /// A float as one of the other width.
    Convert(StepId),
}

/// A step with the dtype of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    pub op: Op,
    pub dtype: DType,
}

/// A function of one float as straight-line code: no branch, no call, no table.
#[derive(Clone, Debug)]
pub struct Code {
    /// No two are equal.
    pub steps: Vec<Step>,
    pub result: StepId,
}

impl Code {
    /// Records what `f` does to an operand of type `dtype`.
    pub(super) fn record(dtype: DType, f: impl for<'t> FnOnce(Var<'t>) -> Var<'t>) -> Code {
        let tape = Tape::default();
        let result = f(tape.push(Op::Operand, dtype)).id;
        Code { steps: tape.0.into_inner().steps, result }
    }
}

#[derive(Default)]
struct Recorded {
    steps: Vec<Step>,
    /// Looked up only, never iterated over.
    known: FxHashMap<Step, StepId>,
}

/// Steps as they are recorded, each once.
#[derive(Default)]
struct Tape(RefCell<Recorded>);

impl Tape {
    fn push(&self, op: Op, dtype: DType) -> Var<'_> {
        let recorded = &mut *self.0.borrow_mut();
        let step = Step { op, dtype };
        let next = StepId(recorded.steps.len() as u32);
        let id = *recorded.known.entry(step).or_insert_with(|| {
            recorded.steps.push(step);
            next
        });
        Var { tape: self, id, dtype }
    }
}

/// A value of the code that is being recorded. A number beside one stands for a constant of its dtype.
#[derive(Clone, Copy)]
pub(super) struct Var<'t> {
    tape: &'t Tape,
    id: StepId,
    dtype: DType,
}

impl fmt::Debug for Var<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}: {}", self.id.0, self.dtype)
    }
}

impl<'t> Var<'t> {
    pub fn dtype(self) -> DType {
        self.dtype
    }

    fn make(self, op: Op, dtype: DType) -> Var<'t> {
        self.tape.push(op, dtype)
    }

    fn same(self, op: Op) -> Var<'t> {
        self.make(op, self.dtype)
    }

    /// A float of this dtype.
    pub fn float(self, value: f64) -> Var<'t> {
        self.same(Op::Float(F64Bits::new(value)))
    }

    /// An integer of this dtype.
    pub fn int(self, value: i64) -> Var<'t> {
        self.same(Op::Int(value))
    }

    pub fn abs(self) -> Var<'t> {
        self.same(Op::Abs(self.id))
    }

    pub fn sqrt(self) -> Var<'t> {
        self.same(Op::Sqrt(self.id))
    }

    pub fn round(self) -> Var<'t> {
        self.same(Op::Round(self.id))
    }

    /// self * b + c, rounded once.
    pub fn fma(self, b: impl Operand<'t>, c: impl Operand<'t>) -> Var<'t> {
        self.same(Op::Fma(self.id, b.var(self).id, c.var(self).id))
    }

    pub fn and(self, mask: i64) -> Var<'t> {
        self.same(Op::And(self.id, self.int(mask).id))
    }

    pub fn or(self, other: Var<'t>) -> Var<'t> {
        self.same(Op::Or(self.id, other.id))
    }

    pub fn xor(self, other: Var<'t>) -> Var<'t> {
        self.same(Op::Xor(self.id, other.id))
    }

    pub fn shl(self, bits: u32) -> Var<'t> {
        self.same(Op::Shl(self.id, bits))
    }

    pub fn shr(self, bits: u32) -> Var<'t> {
        self.same(Op::Shr(self.id, bits))
    }

    fn compare(self, f: CompareFn, other: impl Operand<'t>) -> Var<'t> {
        self.make(Op::Compare(f, self.id, other.var(self).id), DType::Bool)
    }

    pub fn lt(self, other: impl Operand<'t>) -> Var<'t> {
        self.compare(CompareFn::Lt, other)
    }

    pub fn gt(self, other: impl Operand<'t>) -> Var<'t> {
        self.compare(CompareFn::Gt, other)
    }

    pub fn ge(self, other: impl Operand<'t>) -> Var<'t> {
        self.compare(CompareFn::Ge, other)
    }

    pub fn eq(self, other: impl Operand<'t>) -> Var<'t> {
        self.compare(CompareFn::Eq, other)
    }

    /// self < other without signs.
    pub fn below(self, other: Var<'t>) -> Var<'t> {
        self.make(Op::Below(self.id, other.id), DType::Bool)
    }

    /// `a` where self is true, elsewhere `b`.
    pub fn select(self, a: Var<'t>, b: impl Operand<'t>) -> Var<'t> {
        a.same(Op::Select(self.id, a.id, b.var(a).id))
    }

    /// Its bits, as an integer of its width.
    pub fn bits(self) -> Var<'t> {
        self.make(Op::Bitcast(self.id), if self.dtype == DType::F32 { DType::I32 } else { DType::I64 })
    }

    /// The float that has these bits.
    pub fn float_of_bits(self) -> Var<'t> {
        self.make(Op::Bitcast(self.id), if self.dtype == DType::I32 { DType::F32 } else { DType::F64 })
    }

    /// As a float of a dtype, its own included.
    pub fn convert(self, dtype: DType) -> Var<'t> {
        if dtype == self.dtype { self } else { self.make(Op::Convert(self.id), dtype) }
    }

    /// What is above `high` becomes `high`; NaN stays.
    pub fn at_most(self, high: f64) -> Var<'t> {
        self.gt(high).select(self.float(high), self)
    }

    /// What is below `low` becomes `low`; NaN stays.
    pub fn at_least(self, low: f64) -> Var<'t> {
        self.lt(low).select(self.float(low), self)
    }

    /// The polynomial with these coefficients, the lowest power first, by Horner's rule.
    pub fn polynomial(self, coefficients: &[f64]) -> Var<'t> {
        let mut rest = coefficients.iter().rev();
        let highest = self.float(rest.next().copied().unwrap_or(0.0));
        rest.fold(highest, |p, c| p.fma(self, *c))
    }

    /// self, which is not negative, with the sign of `sign`.
    pub fn signed_as(self, sign: Var<'t>) -> Var<'t> {
        let mask = if self.dtype == DType::F32 { i32::MIN.into() } else { i64::MIN };
        self.bits().or(sign.bits().and(mask)).float_of_bits()
    }
}

/// A [`Var`], or a constant beside one.
pub(super) trait Operand<'t> {
    /// This operand, of the dtype of `beside`.
    fn var(self, beside: Var<'t>) -> Var<'t>;
}

impl<'t> Operand<'t> for Var<'t> {
    fn var(self, _: Var<'t>) -> Var<'t> {
        self
    }
}

impl<'t> Operand<'t> for f64 {
    fn var(self, beside: Var<'t>) -> Var<'t> {
        beside.float(self)
    }
}

impl<'t> Operand<'t> for i64 {
    fn var(self, beside: Var<'t>) -> Var<'t> {
        beside.int(self)
    }
}

macro_rules! operators {
    ($($operator:ident $method:ident),*) => {$(
        impl<'t, T: Operand<'t>> $operator<T> for Var<'t> {
            type Output = Var<'t>;
            fn $method(self, other: T) -> Var<'t> {
                self.same(Op::$operator(self.id, other.var(self).id))
            }
        }
        impl<'t> $operator<Var<'t>> for f64 {
            type Output = Var<'t>;
            fn $method(self, other: Var<'t>) -> Var<'t> {
                self.var(other).$method(other)
            }
        }
    )*};
}
operators!(Add add, Sub sub, Mul mul, Div div);

impl<'t> Neg for Var<'t> {
    type Output = Var<'t>;
    fn neg(self) -> Var<'t> {
        self.same(Op::Neg(self.id))
    }
}

/// a + b and what that rounding lost, for |a| >= |b| (T. J. Dekker).
pub(super) fn fast_two_sum<'t>(a: Var<'t>, b: Var<'t>) -> (Var<'t>, Var<'t>) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// a + b and what that rounding lost (D. E. Knuth).
pub(super) fn two_sum<'t>(a: Var<'t>, b: Var<'t>) -> (Var<'t>, Var<'t>) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

/// (a + a_rest) / (b + b_rest), rounded little more than once; the rests are small beside a and b.
pub(super) fn quotient<'t>(a: Var<'t>, a_rest: Var<'t>, b: Var<'t>, b_rest: Var<'t>) -> Var<'t> {
    let (near, missing, inverse) = division(a, a_rest, b, b_rest);
    missing.fma(inverse, near)
}

/// The same quotient as a sum of two floats, the second small.
pub(super) fn quotient_parts<'t>(a: Var<'t>, a_rest: Var<'t>, b: Var<'t>, b_rest: Var<'t>) -> (Var<'t>, Var<'t>) {
    let (near, missing, inverse) = division(a, a_rest, b, b_rest);
    (near, missing * inverse)
}

/// A float near the quotient; what the dividend has beyond its product with the divisor; 1 / b.
fn division<'t>(a: Var<'t>, a_rest: Var<'t>, b: Var<'t>, b_rest: Var<'t>) -> (Var<'t>, Var<'t>, Var<'t>) {
    let inverse = 1.0 / b;
    let near = a * inverse;
    (near, (-near).fma(b, a) + (-near).fma(b_rest, a_rest), inverse)
}
