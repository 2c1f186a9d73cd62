//! Premises that the typing rules of several operators share, with one wording for each violation.

use crate::ir::operator::{Call, Signature, TypeError, TypeErrorKind, Where};
use crate::ir::types::{DType, Placement, Shape, TensorType};

/// The dtypes an operand may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accept {
    Floats,
    Numbers,
    Bools,
}

impl Accept {
    fn allows(self, dtype: DType) -> bool {
        match self {
            Accept::Floats => dtype.is_float(),
            Accept::Numbers => dtype != DType::Bool,
            Accept::Bools => dtype == DType::Bool,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Accept::Floats => "a float tensor (F32 or F64)",
            Accept::Numbers => "a tensor of numbers (F32, F64, I32 or I64)",
            Accept::Bools => "a Bool tensor",
        }
    }

    fn way_out(self, operand: &str) -> String {
        match self {
            Accept::Floats => format!("convert it first: `cast({operand}, dtype=F32)`"),
            Accept::Numbers => format!("convert it first: `cast({operand}, dtype=F32)` gives 0 and 1"),
            Accept::Bools => format!("compare it first: `not_equal({operand}, 0)`"),
        }
    }
}

/// A call whose premises are being checked.
#[derive(Clone, Copy)]
pub(super) struct Premises<'a> {
    pub name: &'a str,
    pub signature: &'a Signature,
    pub call: Call<'a>,
}

impl<'a> Premises<'a> {
    pub fn new(name: &'a str, signature: &'a Signature, call: Call<'a>) -> Self {
        Self { name, signature, call }
    }

    pub fn ty(&self, operand: usize) -> &'a TensorType {
        self.call.operands[operand]
    }

    /// The operand's name in the signature.
    pub fn operand_name(&self, operand: usize) -> String {
        self.signature.operand_label(operand, self.call.operands.len())
    }

    pub fn error(&self, kind: TypeErrorKind, place: Where, message: impl AsRef<str>) -> TypeError {
        TypeError::new(kind, place, format!("`{}` {}", self.name, message.as_ref()))
    }

    /// The shape of a result, unless it has more elements than can be counted.
    pub fn result_shape(&self, dims: Vec<u64>) -> Result<Shape, TypeError> {
        Shape::new(dims)
            .map_err(|overflow| self.error(TypeErrorKind::Overflow, Where::Call, format!("has no result: {overflow}")))
    }

    /// All operands have one placement, which the result gets.
    pub fn placement(&self) -> Result<Placement, TypeError> {
        let first = self.ty(0).placement;
        for (i, ty) in self.call.operands.iter().enumerate().skip(1) {
            if ty.placement != first {
                let (a, b) = (self.operand_name(0), self.operand_name(i));
                return Err(self
                    .error(
                        TypeErrorKind::Placement,
                        Where::Operand(i),
                        format!("needs operands of equal placement: `{a}` is {first}, but `{b}` is {}", ty.placement),
                    )
                    .help(format!("declare both inputs {first}, or both {}", ty.placement)));
            }
        }
        Ok(first)
    }

    pub fn dtype(&self, operand: usize, accept: Accept) -> Result<DType, TypeError> {
        let ty = self.ty(operand);
        if accept.allows(ty.dtype) {
            return Ok(ty.dtype);
        }
        let name = self.operand_name(operand);
        Err(self
            .error(
                TypeErrorKind::DType,
                Where::Operand(operand),
                format!("needs {}, but `{name}` is {ty}", accept.describe()),
            )
            .help(accept.way_out(&name)))
    }

    /// The operand is I64, as indices are.
    pub fn indices(&self, operand: usize) -> Result<(), TypeError> {
        let ty = self.ty(operand);
        if ty.dtype == DType::I64 {
            return Ok(());
        }
        let name = self.operand_name(operand);
        Err(self
            .error(TypeErrorKind::DType, Where::Operand(operand), format!("needs I64 indices, but `{name}` is {ty}"))
            .help(format!("convert them first: `cast({name}, dtype=I64)`")))
    }

    /// The operand is I64 or I32, as ids are.
    pub fn integers(&self, operand: usize) -> Result<(), TypeError> {
        let ty = self.ty(operand);
        if ty.dtype.is_int() {
            return Ok(());
        }
        let name = self.operand_name(operand);
        Err(self
            .error(TypeErrorKind::DType, Where::Operand(operand), format!("needs I64 or I32, but `{name}` is {ty}"))
            .help(format!("convert it first: `cast({name}, dtype=I64)`")))
    }

    pub fn equal_dtypes(&self, a: usize, b: usize) -> Result<(), TypeError> {
        let (ta, tb) = (self.ty(a), self.ty(b));
        if ta.dtype == tb.dtype {
            return Ok(());
        }
        let (na, nb) = (self.operand_name(a), self.operand_name(b));
        Err(self
            .error(
                TypeErrorKind::DType,
                Where::Operand(b),
                format!("needs operands of equal dtype: `{na}` is {}, but `{nb}` is {}", ta.dtype, tb.dtype),
            )
            .help(format!("convert one of them: `cast({nb}, dtype={})`", ta.dtype)))
    }

    /// No `help`: the checker knows the source text of both operands and proposes the `broadcast` call.
    pub fn equal_shapes(&self, a: usize, b: usize) -> Result<(), TypeError> {
        let (ta, tb) = (self.ty(a), self.ty(b));
        if ta.shape == tb.shape {
            return Ok(());
        }
        let (na, nb) = (self.operand_name(a), self.operand_name(b));
        Err(self.error(
            TypeErrorKind::Shape,
            Where::Operand(b),
            format!("needs operands of equal shape: `{na}` is {}, but `{nb}` is {}", ta.shape, tb.shape),
        ))
    }

    pub fn rank_at_least(&self, operand: usize, least: usize, way_out: &str) -> Result<(), TypeError> {
        let ty = self.ty(operand);
        if ty.rank() >= least {
            return Ok(());
        }
        let name = self.operand_name(operand);
        Err(self
            .error(
                TypeErrorKind::Rank,
                Where::Operand(operand),
                format!("needs rank >= {least}, but `{name}` is {ty} of rank {}", ty.rank()),
            )
            .help(way_out))
    }

    /// `axis` lies in `0..rank`, the rank of operand 0.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize, TypeError> {
        self.axis_of(&self.operand_name(0), axis, rank)
    }

    /// `axis` lies in `0..rank`, the rank of what `name` says.
    pub fn axis_of(&self, name: &str, axis: i64, rank: usize) -> Result<usize, TypeError> {
        match usize::try_from(axis) {
            Ok(a) if a < rank => Ok(a),
            _ => Err(self
                .error(
                    TypeErrorKind::Axis,
                    Where::Attr("axis"),
                    format!("has no axis {axis} here: `{name}` has rank {rank}"),
                )
                .help(axes_of_rank(rank))),
        }
    }

    /// The dimensions of a shape attribute.
    pub fn shape(&self, attr: usize, name: &'static str) -> Result<Shape, TypeError> {
        let given = self.call.ints(attr);
        let mut dims = Vec::with_capacity(given.len());
        for d in given {
            dims.push(u64::try_from(*d).map_err(|_| {
                self.error(
                    TypeErrorKind::Attribute,
                    Where::Attr(name),
                    format!("needs a {name} without negative dimensions, not {given:?}"),
                )
                .help("write every dimension out; none is inferred")
            })?);
        }
        Shape::new(dims).map_err(|overflow| {
            self.error(TypeErrorKind::Overflow, Where::Attr(name), format!("has no result: {overflow}"))
                .help("use smaller or fewer dimensions")
        })
    }
}

/// What an axis may be, as a way out.
pub(super) fn axes_of_rank(rank: usize) -> String {
    match rank {
        0 => "a tensor of rank 0 has no axes; `reshape` it to give it some".into(),
        1 => "the only axis is 0 (or -1, from the end)".into(),
        _ => format!("axes are 0 to {} (or -{rank} to -1, from the end)", rank - 1),
    }
}

/// `axes` ascending, distinct, in range.
pub(super) fn check_axes(premises: &Premises<'_>, axes: &[i64], rank: usize) -> Result<(), TypeError> {
    for axis in axes {
        premises.axis(*axis, rank)?;
    }
    if !axes.is_sorted_by(|a, b| a < b) {
        return Err(premises
            .error(TypeErrorKind::Axis, Where::Attr("axis"), format!("needs distinct ascending axes, not {axes:?}"))
            .help(axes_of_rank(rank)));
    }
    Ok(())
}

/// A small host type, for the instances of operators.
pub(super) fn host(dtype: DType, dims: &[u64]) -> TensorType {
    // Instances are written out in this module and small; a scalar is the harmless answer to a slip.
    TensorType::new(dtype, Shape::new(dims.to_vec()).unwrap_or_default(), Placement::Host)
}
