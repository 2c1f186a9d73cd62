//! How an operator computes, as data: the lowering that stands beside its typing rule.
//!
//! A [`Kernel`] is a short list of perfect loop nests, nearly all of which are what one `linalg.generic` can say:
//! a box of iterations, index maps for what is read and written, a scalar body, and at most one
//! reduction. Where points depend on each other in another way ([`Sequence`]), they are visited in order. The IR stays free of MLIR this way, the cost model reads the same description as the code
//! generator, and fusing two operators is substituting one body into another.

use super::types::{DType, volume};

/// The lowering of one operator call.
#[derive(Clone, Debug, PartialEq)]
pub enum Kernel {
    /// Loops in order; the last one computes the result, earlier ones are temporaries.
    Loops(Vec<Loop>),
    /// The result is operand 0 seen under another shape, element order kept.
    Reshape,
    /// No lowering: a composite operator, which is expanded before lowering.
    Composite,
}

/// What a [`Loop`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Operand of the call.
    Operand(usize),
    /// Result of an earlier loop of the same kernel.
    Temporary(usize),
}

/// One perfect loop nest.
///
/// It means: for every point `d` of the box `domain`, in row-major order,
/// `out[result_map(d)] = body(d)`, or with a reduction, `out[result_map(d)] = combine(out[..], body(d))`
/// starting at the combiner's neutral element.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Extent of each iteration dimension.
    pub domain: Vec<u64>,
    pub inputs: Vec<Read>,
    /// Dtype and shape of what is written.
    pub dtype: DType,
    pub shape: Vec<u64>,
    /// Every iteration dimension that does not occur in it is a reduction dimension.
    pub result_map: Vec<MapDim>,
    pub body: Scalar,
    pub reduce: Option<Combine>,
    /// `None`: the points may be visited in any order (but for how sums round).
    pub sequence: Option<Sequence>,
}

/// How the points of a loop depend on earlier ones, in row-major order. Such a loop has no `linalg.generic`, works in place and takes
/// time in proportion to its points.
#[derive(Clone, Debug, PartialEq)]
pub enum Sequence {
    /// Along that iteration dimension each point may read what the point before it wrote, by [`Scalar::Previous`]. The loop does
    /// not reduce, and writes every point to a place of its own.
    Scan(usize),
    /// The first coordinate of the result is computed: an I64 that a bounds check has proved in range. The loop reduces, and its
    /// `result_map` leads to the other coordinates.
    Scatter(Scalar),
}

/// An input with the place read at each point. Its dtype is that of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    pub source: Source,
    pub map: Vec<MapDim>,
}

/// One coordinate of an index map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapDim {
    /// The iteration dimension.
    Dim(usize),
    /// Always 0 (a stretched dimension of size 1).
    Zero,
}

/// How a reduction combines. NaN propagates through all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// Starts at 0.
    Add,
    /// Starts at 1.
    Mul,
    /// Starts at -inf (the least integer).
    Max,
    /// Starts at +inf (the greatest integer).
    Min,
}

/// The scalar body of a loop.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// The element that `inputs[i]` reads at this point.
    Input(usize),
    /// The iteration index, as I64.
    Index(usize),
    /// A constant of a dtype (integers and Bool are stored as their exact value).
    Constant(f64, DType),
    Unary(UnaryFn, Box<Scalar>),
    Binary(BinaryFn, Box<Scalar>, Box<Scalar>),
    /// Bool result. On floats every comparison with NaN is false, but `Ne` is true.
    Compare(CompareFn, Box<Scalar>, Box<Scalar>),
    /// Condition is Bool; both arms have one dtype.
    Select(Box<Scalar>, Box<Scalar>, Box<Scalar>),
    /// The value converted to another dtype. Bool gives 0 or 1; a number gives Bool by `x != 0` (NaN is true). Floats
    /// to integers: truncated, saturating, NaN gives 0. I64 to I32: saturating. To floats: rounded once.
    Cast(Box<Scalar>, DType),
    /// What the loop wrote at the point before this one along the dimension of its scan; 0 at the first.
    Previous,
    /// An element of `source` at computed I64 coordinates, which a bounds check has proved in range. A coordinate that is an
    /// [`Index`](Scalar::Index) alone walks all of its axis.
    Gather(Source, Vec<Scalar>),
}

/// Functions of one float (Neg and Abs also of integers, where they wrap around; Not of one Bool).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryFn {
    Neg,
    Abs,
    Sqrt,
    Rsqrt,
    Floor,
    Ceil,
    /// To the nearest integer, halves to the even one.
    Round,
    Exp,
    Exp2,
    /// e^x - 1, of full relative accuracy near 0.
    Expm1,
    Log,
    /// ln(1 + x), of full relative accuracy near 0.
    Log1p,
    Cbrt,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    /// 1 / (1 + e^-x).
    Sigmoid,
    Erf,
    /// 1 - erf(x), of full relative accuracy where erf(x) is near 1.
    Erfc,
    /// Of Bool only.
    Not,
}

impl UnaryFn {
    /// Elementary functions cost many instructions; the others one.
    pub fn is_transcendental(self) -> bool {
        use UnaryFn::{Abs, Ceil, Floor, Neg, Not, Round, Rsqrt, Sqrt};
        !matches!(self, Neg | Abs | Sqrt | Rsqrt | Floor | Ceil | Round | Not)
    }
}

/// Functions of two operands of one dtype. `Max` and `Min` propagate NaN; -0 < +0 for them. Integer `Add`, `Sub` and
/// `Mul` wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryFn {
    Add,
    Sub,
    Mul,
    /// Floats: IEEE. Integers: truncated; division by zero gives 0 and the least integer by -1 itself.
    Div,
    Max,
    Min,
    /// Of floats only: IEEE 754 `pow`.
    Pow,
    /// Of floats only: IEEE 754 `atan2`, the angle of the point (b, a).
    Atan2,
    /// Of Bool only.
    And,
    /// Of Bool only.
    Or,
}

impl BinaryFn {
    /// Elementary functions cost many instructions; the others one, division aside.
    pub fn is_transcendental(self) -> bool {
        matches!(self, BinaryFn::Pow | BinaryFn::Atan2)
    }
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareFn {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl CompareFn {
    /// Does it hold of two values? Of NaN only `Ne` does.
    pub fn holds<T: PartialOrd>(self, a: &T, b: &T) -> bool {
        match self {
            CompareFn::Eq => a == b,
            CompareFn::Ne => a != b,
            CompareFn::Lt => a < b,
            CompareFn::Le => a <= b,
            CompareFn::Gt => a > b,
            CompareFn::Ge => a >= b,
        }
    }
}

impl Scalar {
    pub fn unary(f: UnaryFn, x: Scalar) -> Scalar {
        Scalar::Unary(f, Box::new(x))
    }

    pub fn binary(f: BinaryFn, a: Scalar, b: Scalar) -> Scalar {
        Scalar::Binary(f, Box::new(a), Box::new(b))
    }

    pub fn compare(f: CompareFn, a: Scalar, b: Scalar) -> Scalar {
        Scalar::Compare(f, Box::new(a), Box::new(b))
    }

    /// `value` must be exact in an integer or Bool `dtype`.
    pub fn constant(value: f64, dtype: DType) -> Scalar {
        Scalar::Constant(value, dtype)
    }

    pub fn cast(x: Scalar, dtype: DType) -> Scalar {
        Scalar::Cast(Box::new(x), dtype)
    }

    pub fn select(c: Scalar, a: Scalar, b: Scalar) -> Scalar {
        Scalar::Select(Box::new(c), Box::new(a), Box::new(b))
    }

    /// Is it made of indices and constants by `+`, `-` and `*`, and if so, how far apart are its values at neighbours along
    /// dimension `d`? Places that are computed so are known from the shapes alone.
    pub fn affine(&self, d: usize) -> Option<i64> {
        let constant = |s: &Scalar| match s {
            Scalar::Constant(v, DType::I64) => Some(*v as i64),
            _ => None,
        };
        match self {
            Scalar::Index(i) => Some(i64::from(*i == d)),
            Scalar::Constant(_, DType::I64) => Some(0),
            Scalar::Binary(BinaryFn::Add, a, b) => a.affine(d)?.checked_add(b.affine(d)?),
            Scalar::Binary(BinaryFn::Sub, a, b) => a.affine(d)?.checked_sub(b.affine(d)?),
            Scalar::Binary(BinaryFn::Mul, a, b) => match (constant(a), constant(b)) {
                (_, Some(factor)) => a.affine(d)?.checked_mul(factor),
                (Some(factor), None) => b.affine(d)?.checked_mul(factor),
                (None, None) => None,
            },
            _ => None,
        }
    }

    /// Does it read at computed places?
    fn gathers(&self) -> bool {
        match self {
            Scalar::Input(_) | Scalar::Index(_) | Scalar::Constant(..) | Scalar::Previous => false,
            Scalar::Unary(_, x) | Scalar::Cast(x, _) => x.gathers(),
            Scalar::Binary(_, a, b) | Scalar::Compare(_, a, b) => a.gathers() || b.gathers(),
            Scalar::Select(c, a, b) => c.gathers() || a.gathers() || b.gathers(),
            Scalar::Gather(..) => true,
        }
    }
}

/// The map that reads a tensor of the loop's own shape: `(d0, .., dn) -> (d0, .., dn)`.
pub fn identity(rank: usize) -> Vec<MapDim> {
    (0..rank).map(MapDim::Dim).collect()
}

impl Read {
    /// Operand `i` read at the iteration's own point.
    pub fn same(operand: usize, rank: usize) -> Read {
        Read::new(Source::Operand(operand), identity(rank))
    }

    pub fn new(source: Source, map: Vec<MapDim>) -> Read {
        Read { source, map }
    }
}

impl Kernel {
    /// Does each element of the result depend on the elements of the operands at its own place alone?
    pub fn is_elementwise(&self) -> bool {
        match self {
            Kernel::Loops(loops) => loops.iter().all(Loop::is_elementwise),
            Kernel::Reshape | Kernel::Composite => false,
        }
    }
}

impl Loop {
    fn is_elementwise(&self) -> bool {
        let same = identity(self.domain.len());
        self.reduce.is_none()
            && self.sequence.is_none()
            && self.result_map == same
            && self.inputs.iter().all(|read| read.map == same)
            && !self.body.gathers()
    }

    /// `out[d] = body(inputs[0][d], inputs[1][d], ..)`: operands and result have one shape.
    pub fn elementwise(shape: &[u64], dtype: DType, operands: usize, body: Scalar) -> Loop {
        Loop {
            domain: shape.to_vec(),
            inputs: (0..operands).map(|i| Read::same(i, shape.len())).collect(),
            dtype,
            shape: shape.to_vec(),
            result_map: identity(shape.len()),
            body,
            reduce: None,
            sequence: None,
        }
    }

    /// Number of points: see [`volume`].
    pub fn points(&self) -> u64 {
        volume(&self.domain)
    }

    /// The iteration dimensions that the result does not have.
    pub fn reduction_dims(&self) -> Vec<usize> {
        (0..self.domain.len()).filter(|d| !self.result_map.contains(&MapDim::Dim(*d))).collect()
    }
}
