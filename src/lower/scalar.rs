//! Scalar bodies as `arith` and `math` operations.

use melior::ir::Value;

use super::builder::Builder;
use super::{LowerError, cast, elementary};
use crate::ir::kernel::{BinaryFn, Combine, CompareFn, UnaryFn};
use crate::ir::{DType, Level, elementary as functions};
use crate::schedule::{Inst, InstId, Nest, Schedule};

/// Where the instructions of a body get their elements and indices from.
pub(super) trait Point<'c, 'a> {
    /// The element of `reads[i]`, as stored.
    fn input(&self, b: &Builder<'c, 'a>, i: usize) -> Result<Value<'c, 'a>, LowerError>;
    /// The iteration index `d`, of type `index`.
    fn index(&self, b: &Builder<'c, 'a>, d: usize) -> Result<Value<'c, 'a>, LowerError>;
    /// What the nest wrote at the point before this one, as stored.
    fn previous(&self, b: &Builder<'c, 'a>) -> Result<Value<'c, 'a>, LowerError>;
    /// May indices be compared in 32 bits? Emitted text keeps the form of the specification (§7.3) instead.
    fn narrow_indices(&self) -> bool;
    /// The outcome of the comparison that is instruction `i`, where it is known.
    fn outcome(&self, i: usize) -> Option<bool>;
    /// An element of `gathers[i]` at coordinates of type `index`, as stored.
    fn gather(&self, b: &Builder<'c, 'a>, i: usize, at: &[Value<'c, 'a>]) -> Result<Value<'c, 'a>, LowerError>;
}

/// Emits what the nest's roots need; returns one value per root, as computed with.
pub(super) fn body<'c, 'a>(
    b: &Builder<'c, 'a>,
    schedule: &Schedule,
    nest: &Nest,
    level: Level,
    point: &dyn Point<'c, 'a>,
) -> Result<Vec<Value<'c, 'a>>, LowerError> {
    values(b, schedule, nest, &nest.roots(), level, point)
}

/// Emits what some instructions of a nest need; returns one value for each of them, as computed with.
pub(super) fn values<'c, 'a>(
    b: &Builder<'c, 'a>,
    schedule: &Schedule,
    nest: &Nest,
    roots: &[InstId],
    level: Level,
    point: &dyn Point<'c, 'a>,
) -> Result<Vec<Value<'c, 'a>>, LowerError> {
    let needed = nest.body.needed(roots.iter().copied());
    let mut values: Vec<Option<(Value<'c, 'a>, DType)>> = vec![None; needed.len()];
    for (i, inst) in nest.body.insts().iter().enumerate() {
        if !needed[i] {
            continue;
        }
        // Operands are earlier instructions and needed with their user.
        let get = |id: &InstId| {
            values.get(id.index()).copied().flatten().ok_or_else(|| super::builder::refused("a body out of order"))
        };
        let value = match inst {
            Inst::Input(r) => {
                let dtype = schedule.value(nest.reads[*r].value).ty.dtype;
                (load(b, point.input(b, *r)?, dtype)?, dtype)
            }
            Inst::Index(d) => {
                let index = point.index(b, *d)?;
                (b.value("arith.index_cast", &[index], b.int_type(64), &[])?, DType::I64)
            }
            Inst::Constant(v, dtype) => (constant(b, v.get(), *dtype)?, *dtype),
            Inst::Previous => {
                let dtype = nest.results.first().map_or(DType::F32, |r| schedule.value(r.value).ty.dtype);
                (load(b, point.previous(b)?, dtype)?, dtype)
            }
            Inst::Unary(f, x) => {
                let (x, dtype) = get(x)?;
                (unary(b, *f, x, dtype, level)?, dtype)
            }
            Inst::Binary(f, x, y) => {
                let ((x, dtype), (y, _)) = (get(x)?, get(y)?);
                (binary(b, *f, x, y, dtype)?, dtype)
            }
            Inst::Compare(..) if let Some(outcome) = point.outcome(i) => {
                (constant(b, f64::from(u8::from(outcome)), DType::Bool)?, DType::Bool)
            }
            Inst::Compare(f, x, y) => {
                let short = (*f == CompareFn::Eq && level.fuses() && point.narrow_indices()).then(|| narrow(nest, *x));
                let value = match short.flatten() {
                    Some((d, extent)) => index_equals(b, point.index(b, d)?, extent, get(y)?.0)?,
                    None => compare(b, *f, get(x)?.0, get(y)?.0, get(x)?.1)?,
                };
                (value, DType::Bool)
            }
            Inst::Select(c, x, y) => {
                let ((c, _), (x, dtype), (y, _)) = (get(c)?, get(x)?, get(y)?);
                (b.select(c, x, y, b.computed(dtype))?, dtype)
            }
            Inst::Cast(x, to) => {
                let (x, from) = get(x)?;
                (cast::cast(b, x, from, *to)?, *to)
            }
            Inst::Gather(g, coords) => {
                let dtype = schedule.value(nest.gathers[*g]).ty.dtype;
                let mut at = Vec::with_capacity(coords.len());
                for c in coords {
                    at.push(b.value("arith.index_cast", &[get(c)?.0], b.index_type(), &[])?);
                }
                (load(b, point.gather(b, *g, &at)?, dtype)?, dtype)
            }
        };
        values[i] = Some(value);
    }
    let root = |id: InstId| values[id.index()].map(|(v, _)| v).ok_or_else(|| super::builder::refused("an empty body"));
    roots.iter().map(|id| root(*id)).collect()
}

/// The iteration dimension whose index `id` is, with its extent, if its indices fit 32 bits.
fn narrow(nest: &Nest, id: InstId) -> Option<(usize, u64)> {
    let Inst::Index(d) = nest.body.inst(id) else { return None };
    let extent = *nest.domain.get(*d)?;
    (extent <= i32::MAX as u64).then_some((*d, extent))
}

/// `index == y` for an index below `extent`, in 32 bits, which vectorises twice as wide as the 64 of `y`. A `y` that is no
/// index at all becomes -1, which no index equals; where it does not vary in the loop, that happens outside.
fn index_equals<'c, 'a>(
    b: &Builder<'c, 'a>,
    index: Value<'c, 'a>,
    extent: u64,
    y: Value<'c, 'a>,
) -> Result<Value<'c, 'a>, LowerError> {
    let (wide, short) = (b.int_type(64), b.int_type(32));
    let index = b.value("arith.index_cast", &[index], short, &[])?;
    let inside = b.cmpi(6, y, b.constant_int(extent as i64, wide)?)?;
    let low = b.value("arith.trunci", &[y], short, &[])?;
    let y = b.select(inside, low, b.constant_int(-1, short)?, short)?;
    b.cmpi(0, index, y)
}

/// From how an element is stored to how it is computed with.
pub(super) fn load<'c, 'a>(b: &Builder<'c, 'a>, v: Value<'c, 'a>, dtype: DType) -> Result<Value<'c, 'a>, LowerError> {
    match dtype {
        DType::Bool => b.cmpi(1, v, b.constant_int(0, b.int_type(8))?),
        _ => Ok(v),
    }
}

/// From how a scalar is computed with to how it is stored.
pub(super) fn store<'c, 'a>(b: &Builder<'c, 'a>, v: Value<'c, 'a>, dtype: DType) -> Result<Value<'c, 'a>, LowerError> {
    match dtype {
        DType::Bool => b.value("arith.extui", &[v], b.int_type(8), &[]),
        _ => Ok(v),
    }
}

/// A constant, as computed with.
pub(super) fn constant<'c, 'a>(b: &Builder<'c, 'a>, v: f64, dtype: DType) -> Result<Value<'c, 'a>, LowerError> {
    let ty = b.computed(dtype);
    match dtype {
        DType::Bool => b.constant_int(i64::from(v != 0.0), ty),
        DType::I32 | DType::I64 => b.constant_int(v as i64, ty),
        DType::F32 | DType::F64 => b.constant_float(v, ty),
    }
}

/// The neutral element of a reduction, as computed with.
pub(super) fn neutral<'c, 'a>(
    b: &Builder<'c, 'a>,
    combine: Combine,
    dtype: DType,
) -> Result<Value<'c, 'a>, LowerError> {
    let ty = b.computed(dtype);
    let extreme = |float: f64, i32: i32, i64: i64, bool: i64| match dtype {
        DType::F32 | DType::F64 => b.constant_float(float, ty),
        DType::I32 => b.constant_int(i64::from(i32), ty),
        DType::I64 => b.constant_int(i64, ty),
        DType::Bool => b.constant_int(bool, ty),
    };
    match combine {
        Combine::Add => constant(b, 0.0, dtype),
        Combine::Mul => constant(b, 1.0, dtype),
        Combine::Max => extreme(f64::NEG_INFINITY, i32::MIN, i64::MIN, 0),
        Combine::Min => extreme(f64::INFINITY, i32::MAX, i64::MAX, 1),
    }
}

/// One step of a reduction. Sums of floats may be reassociated at -O2, nothing else may.
pub(super) fn combine<'c, 'a>(
    b: &Builder<'c, 'a>,
    combine: Combine,
    acc: Value<'c, 'a>,
    v: Value<'c, 'a>,
    dtype: DType,
    level: Level,
) -> Result<Value<'c, 'a>, LowerError> {
    let f = match combine {
        Combine::Add if dtype.is_float() && level == Level::O2 => {
            let fast = b.attribute("#arith.fastmath<reassoc>")?;
            return b.value("arith.addf", &[acc, v], b.computed(dtype), &[("fastmath", fast)]);
        }
        Combine::Add => BinaryFn::Add,
        Combine::Mul => BinaryFn::Mul,
        Combine::Max => BinaryFn::Max,
        Combine::Min => BinaryFn::Min,
    };
    binary(b, f, acc, v, dtype)
}

fn unary<'c, 'a>(
    b: &Builder<'c, 'a>,
    f: UnaryFn,
    x: Value<'c, 'a>,
    dtype: DType,
    level: Level,
) -> Result<Value<'c, 'a>, LowerError> {
    let ty = b.computed(dtype);
    // -O0 is literal: operations of the math dialect, which call the C library.
    if level.fuses()
        && let Some(code) = functions::code(f, dtype)
    {
        return elementary::inline(b, &code, x);
    }
    let library = |single, double| b.library_call(if dtype == DType::F32 { single } else { double }, x, ty);
    let name = match f {
        UnaryFn::Neg if !dtype.is_float() => {
            return b.value("arith.subi", &[constant(b, 0.0, dtype)?, x], ty, &[]);
        }
        UnaryFn::Abs if !dtype.is_float() => {
            let zero = constant(b, 0.0, dtype)?;
            let negated = b.value("arith.subi", &[zero, x], ty, &[])?;
            return b.select(b.cmpi(2, x, zero)?, negated, x, ty);
        }
        UnaryFn::Not => return b.value("arith.xori", &[x, constant(b, 1.0, DType::Bool)?], ty, &[]),
        UnaryFn::Rsqrt => {
            let root = b.value("math.sqrt", &[x], ty, &[])?;
            return b.value("arith.divf", &[constant(b, 1.0, dtype)?, root], ty, &[]);
        }
        UnaryFn::Neg => "arith.negf",
        UnaryFn::Abs => "math.absf",
        UnaryFn::Sqrt => "math.sqrt",
        UnaryFn::Floor => "math.floor",
        UnaryFn::Ceil => "math.ceil",
        UnaryFn::Round => "math.roundeven",
        UnaryFn::Exp => "math.exp",
        UnaryFn::Exp2 => "math.exp2",
        UnaryFn::Log => "math.log",
        UnaryFn::Cbrt => "math.cbrt",
        UnaryFn::Sin => "math.sin",
        UnaryFn::Cos => "math.cos",
        UnaryFn::Tan => "math.tan",
        UnaryFn::Asin => "math.asin",
        UnaryFn::Acos => "math.acos",
        UnaryFn::Atan => "math.atan",
        UnaryFn::Sinh => "math.sinh",
        UnaryFn::Cosh => "math.cosh",
        UnaryFn::Tanh => "math.tanh",
        UnaryFn::Erf => "math.erf",
        UnaryFn::Sigmoid => return sigmoid(b, x, dtype),
        // The math dialect has none.
        UnaryFn::Erfc => return library("erfcf", "erfc"),
        // Those of the math dialect become e^x - 1 and ln(1 + x), without accuracy near 0.
        UnaryFn::Expm1 => return library("expm1f", "expm1"),
        UnaryFn::Log1p => return library("log1pf", "log1p"),
    };
    b.value(name, &[x], ty, &[])
}

/// 1 / (1 + e) where x is not negative, elsewhere e / (1 + e), with e = e^-|x|.
fn sigmoid<'c, 'a>(b: &Builder<'c, 'a>, x: Value<'c, 'a>, dtype: DType) -> Result<Value<'c, 'a>, LowerError> {
    let ty = b.computed(dtype);
    let op = |name, operands: &[Value<'c, 'a>]| b.value(name, operands, ty, &[]);
    let (zero, one) = (constant(b, 0.0, dtype)?, constant(b, 1.0, dtype)?);
    let e = op("math.exp", &[op("arith.negf", &[op("math.absf", &[x])?])?])?;
    let above = b.select(compare(b, CompareFn::Ge, x, zero, dtype)?, one, e, ty)?;
    op("arith.divf", &[above, op("arith.addf", &[one, e])?])
}

fn binary<'c, 'a>(
    b: &Builder<'c, 'a>,
    f: BinaryFn,
    x: Value<'c, 'a>,
    y: Value<'c, 'a>,
    dtype: DType,
) -> Result<Value<'c, 'a>, LowerError> {
    let ty = b.computed(dtype);
    let name = match (f, dtype) {
        (BinaryFn::Add, DType::F32 | DType::F64) => "arith.addf",
        (BinaryFn::Sub, DType::F32 | DType::F64) => "arith.subf",
        (BinaryFn::Mul, DType::F32 | DType::F64) => "arith.mulf",
        (BinaryFn::Div, DType::F32 | DType::F64) => "arith.divf",
        (BinaryFn::Max, DType::F32 | DType::F64) => "arith.maximumf",
        (BinaryFn::Min, DType::F32 | DType::F64) => "arith.minimumf",
        (BinaryFn::Pow, _) => "math.powf",
        (BinaryFn::Atan2, _) => "math.atan2",
        (BinaryFn::Or, _) | (BinaryFn::Add | BinaryFn::Max, DType::Bool) => "arith.ori",
        (BinaryFn::And, _) | (BinaryFn::Mul | BinaryFn::Min, DType::Bool) => "arith.andi",
        (BinaryFn::Sub, DType::Bool) => "arith.xori",
        (BinaryFn::Add, _) => "arith.addi",
        (BinaryFn::Sub, _) => "arith.subi",
        (BinaryFn::Mul, _) => "arith.muli",
        (BinaryFn::Div, _) => return divide(b, x, y, dtype),
        (BinaryFn::Max, _) => "arith.maxsi",
        (BinaryFn::Min, _) => "arith.minsi",
    };
    b.value(name, &[x, y], ty, &[])
}

/// Integer division, defined everywhere: by 0 it gives 0, and the least integer by -1 gives itself.
fn divide<'c, 'a>(
    b: &Builder<'c, 'a>,
    x: Value<'c, 'a>,
    y: Value<'c, 'a>,
    dtype: DType,
) -> Result<Value<'c, 'a>, LowerError> {
    let ty = b.computed(dtype);
    let zero = constant(b, 0.0, dtype)?;
    let one = constant(b, 1.0, dtype)?;
    if dtype == DType::Bool {
        return b.value("arith.andi", &[x, y], ty, &[]);
    }
    let by_zero = b.cmpi(0, y, zero)?;
    let by_minus_one = b.cmpi(0, y, b.constant_int(-1, ty)?)?;
    let special = b.value("arith.ori", &[by_zero, by_minus_one], b.int_type(1), &[])?;
    let quotient = b.value("arith.divsi", &[x, b.select(special, one, y, ty)?], ty, &[])?;
    let negated = b.value("arith.subi", &[zero, x], ty, &[])?;
    let quotient = b.select(by_minus_one, negated, quotient, ty)?;
    b.select(by_zero, zero, quotient, ty)
}

pub(super) fn compare<'c, 'a>(
    b: &Builder<'c, 'a>,
    f: CompareFn,
    x: Value<'c, 'a>,
    y: Value<'c, 'a>,
    dtype: DType,
) -> Result<Value<'c, 'a>, LowerError> {
    // (float, signed, unsigned): ordered comparisons are false on NaN, only `ne` is unordered.
    let (float, signed, unsigned) = match f {
        CompareFn::Eq => (1, 0, 0),
        CompareFn::Ne => (13, 1, 1),
        CompareFn::Lt => (4, 2, 6),
        CompareFn::Le => (5, 3, 7),
        CompareFn::Gt => (2, 4, 8),
        CompareFn::Ge => (3, 5, 9),
    };
    match dtype {
        DType::F32 | DType::F64 => b.cmpf(float, x, y),
        DType::I32 | DType::I64 => b.cmpi(signed, x, y),
        DType::Bool => b.cmpi(unsigned, x, y),
    }
}
