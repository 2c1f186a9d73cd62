//! The operators and functions of the attribute language, and what they compute.

use std::collections::BTreeSet;

use crate::ir::{AttrValue, Shape};
use crate::syntax::ast::BinaryOp;

/// The functions of the attribute language. Their names are reserved in rule files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrFunction {
    /// `range(n)`: [0, 1, .., n-1]
    Range,
    /// `prod(list)`
    Prod,
    /// `sum(list)`
    Sum,
    /// `offsets(list)`: `[0, list[0], list[0] + list[1], .., sum(list)]`, where the parts of a concatenation begin and end
    Offsets,
    /// `len(list)`
    Len,
    /// `count(shape, axes)`: the product of the dimensions at `axes`
    Count,
    /// `ones_at(shape, axes)`: the shape with 1 at `axes`
    OnesAt,
    /// `without(shape, axes)`: the shape without the dimensions at `axes`
    Without,
    /// `expanded(from, to)`: the axes of `to` that broadcasting `from` added or stretched
    Expanded,
    /// `others(axes, rank)`: the axes not in `axes`
    Others,
    /// `invert(perm)`
    Invert,
    /// `swap_last(rank)`: the permutation that swaps the last two axes
    SwapLast,
    /// `with_shape(type, shape)`: the type with another shape
    WithShape,
    /// `with_dtype(type, dtype)`: the type with another dtype
    WithDType,
    /// `is_float(type)`, `is_float(dtype)`
    IsFloat,
    /// `abs(number)`
    Abs,
}

impl AttrFunction {
    pub const ALL: [(&'static str, AttrFunction, usize); 16] = [
        ("range", AttrFunction::Range, 1),
        ("prod", AttrFunction::Prod, 1),
        ("sum", AttrFunction::Sum, 1),
        ("offsets", AttrFunction::Offsets, 1),
        ("len", AttrFunction::Len, 1),
        ("count", AttrFunction::Count, 2),
        ("ones_at", AttrFunction::OnesAt, 2),
        ("without", AttrFunction::Without, 2),
        ("expanded", AttrFunction::Expanded, 2),
        ("others", AttrFunction::Others, 2),
        ("invert", AttrFunction::Invert, 1),
        ("swap_last", AttrFunction::SwapLast, 1),
        ("with_shape", AttrFunction::WithShape, 2),
        ("with_dtype", AttrFunction::WithDType, 2),
        ("is_float", AttrFunction::IsFloat, 1),
        ("abs", AttrFunction::Abs, 1),
    ];

    /// A call of it, with names that say what its arguments are.
    pub fn form(self) -> &'static str {
        match self {
            AttrFunction::Range => "range(n)",
            AttrFunction::Prod => "prod(list)",
            AttrFunction::Sum => "sum(list)",
            AttrFunction::Offsets => "offsets(list)",
            AttrFunction::Len => "len(list)",
            AttrFunction::Count => "count(shape, axes)",
            AttrFunction::OnesAt => "ones_at(shape, axes)",
            AttrFunction::Without => "without(shape, axes)",
            AttrFunction::Expanded => "expanded(from, to)",
            AttrFunction::Others => "others(axes, rank)",
            AttrFunction::Invert => "invert(perm)",
            AttrFunction::SwapLast => "swap_last(rank)",
            AttrFunction::WithShape => "with_shape(type, shape)",
            AttrFunction::WithDType => "with_dtype(type, dtype)",
            AttrFunction::IsFloat => "is_float(type)",
            AttrFunction::Abs => "abs(number)",
        }
    }

    /// The function and its number of arguments.
    pub fn from_name(name: &str) -> Option<(AttrFunction, usize)> {
        Self::ALL.into_iter().find(|(n, _, _)| *n == name).map(|(_, f, arity)| (f, arity))
    }
}

/// Lists in rules are about ranks; a rule that builds longer ones is hostile.
const MAX_LIST: usize = 4096;

/// Computes `a op b`. `And` and `Or` are the caller's, since they do not always look at `b`.
pub fn binary(op: BinaryOp, a: AttrValue, b: AttrValue) -> Result<AttrValue, String> {
    use BinaryOp as B;
    match op {
        B::Eq => return Ok(AttrValue::Bool(equal(&a, &b))),
        B::Ne => return Ok(AttrValue::Bool(!equal(&a, &b))),
        B::Concat => {
            return match (a, b) {
                (AttrValue::Ints(mut x), AttrValue::Ints(y)) if x.len() + y.len() <= MAX_LIST => {
                    x.extend(y);
                    Ok(AttrValue::Ints(x))
                }
                (a, b) => Err(format!("`++` joins two lists, not {} and {}", a.describe(), b.describe())),
            };
        }
        B::And | B::Or => {
            return match (a, b) {
                (AttrValue::Bool(x), AttrValue::Bool(y)) => {
                    Ok(AttrValue::Bool(if op == B::And { x && y } else { x || y }))
                }
                (a, b) => Err(format!("a condition of {} and {}", a.describe(), b.describe())),
            };
        }
        _ => {}
    }
    if let (AttrValue::Int(x), AttrValue::Int(y)) = (&a, &b) {
        let (x, y) = (*x, *y);
        let int =
            |v: Option<i64>| v.map(AttrValue::Int).ok_or_else(|| "integer overflow or division by zero".to_owned());
        return match op {
            B::Add => int(x.checked_add(y)),
            B::Sub => int(x.checked_sub(y)),
            B::Mul => int(x.checked_mul(y)),
            B::Div => int(x.checked_div(y)),
            B::Rem => int(x.checked_rem(y)),
            B::Lt => Ok(AttrValue::Bool(x < y)),
            B::Le => Ok(AttrValue::Bool(x <= y)),
            B::Gt => Ok(AttrValue::Bool(x > y)),
            _ => Ok(AttrValue::Bool(x >= y)),
        };
    }
    let (Some(x), Some(y)) = (a.as_float(), b.as_float()) else {
        return Err(format!("arithmetic on {} and {}", a.describe(), b.describe()));
    };
    Ok(match op {
        B::Add => AttrValue::float(x + y),
        B::Sub => AttrValue::float(x - y),
        B::Mul => AttrValue::float(x * y),
        B::Div => AttrValue::float(x / y),
        B::Rem => AttrValue::float(x % y),
        B::Lt => AttrValue::Bool(x < y),
        B::Le => AttrValue::Bool(x <= y),
        B::Gt => AttrValue::Bool(x > y),
        _ => AttrValue::Bool(x >= y),
    })
}

/// Numbers compare by value, everything else by being the same.
fn equal(a: &AttrValue, b: &AttrValue) -> bool {
    match (a.as_float(), b.as_float()) {
        (Some(x), Some(y)) => x == y,
        _ => a == b,
    }
}

/// Computes `function(args)`. The number of arguments was checked when the rule was compiled.
pub fn call(function: AttrFunction, args: &[AttrValue]) -> Result<AttrValue, String> {
    use AttrFunction as F;
    let int = |i: usize| args[i].as_int().ok_or_else(|| format!("expected an integer, found {}", args[i].describe()));
    let ints = |i: usize| match &args[i] {
        AttrValue::Ints(v) => Ok(v.clone()),
        AttrValue::Int(v) => Ok(vec![*v]),
        v => Err(format!("expected a list of integers, found {}", v.describe())),
    };
    let list = |v: Vec<i64>| AttrValue::Ints(v);
    let small = |n: i64| match usize::try_from(n) {
        Ok(n) if n <= MAX_LIST => Ok(n as i64),
        _ => Err(format!("a list of {n} elements")),
    };
    let product = |v: &[i64]| {
        v.iter().try_fold(1i64, |a, b| a.checked_mul(*b)).ok_or_else(|| "integer overflow in a product".to_owned())
    };
    let sum = |v: &[i64]| {
        v.iter().try_fold(0i64, |a, b| a.checked_add(*b)).ok_or_else(|| "integer overflow in a sum".to_owned())
    };
    let inside = |axes: &[i64], rank: usize| match axes.iter().find(|a| **a < 0 || **a >= rank as i64) {
        Some(a) => Err(format!("axis {a} is outside 0..{rank}")),
        None => Ok(()),
    };
    match function {
        F::Range => Ok(list((0..small(int(0)?)?).collect())),
        F::Prod => product(&ints(0)?).map(AttrValue::Int),
        F::Sum => sum(&ints(0)?).map(AttrValue::Int),
        F::Offsets => {
            let parts = ints(0)?;
            small(parts.len() as i64 + 1)?;
            sum(&parts)?;
            let mut at = 0;
            let ends = parts.iter().map(|part| {
                at += part;
                at
            });
            Ok(list(std::iter::once(0).chain(ends).collect()))
        }
        F::Len => Ok(AttrValue::Int(ints(0)?.len() as i64)),
        F::Count => {
            let (shape, axes) = (ints(0)?, ints(1)?);
            inside(&axes, shape.len())?;
            let dims: Vec<i64> = axes.iter().map(|a| shape[*a as usize]).collect();
            product(&dims).map(AttrValue::Int)
        }
        F::OnesAt => {
            let (mut shape, axes) = (ints(0)?, ints(1)?);
            inside(&axes, shape.len())?;
            for a in axes {
                shape[a as usize] = 1;
            }
            Ok(list(shape))
        }
        F::Without => {
            let (shape, axes) = (ints(0)?, ints(1)?);
            inside(&axes, shape.len())?;
            let dropped: BTreeSet<i64> = axes.into_iter().collect();
            let kept = (0..shape.len()).filter(|i| !dropped.contains(&(*i as i64))).map(|i| shape[i]);
            Ok(list(kept.collect()))
        }
        F::Expanded => {
            let (from, to) = (ints(0)?, ints(1)?);
            let added = to.len().checked_sub(from.len()).ok_or("`expanded` of a shape of smaller rank")?;
            let axes = (0..to.len()).filter(|i| *i < added || from[*i - added] != to[*i]);
            Ok(list(axes.map(|i| i as i64).collect()))
        }
        F::Others => {
            let (axes, rank) = (ints(0)?, small(int(1)?)?);
            let taken: BTreeSet<i64> = axes.into_iter().collect();
            Ok(list((0..rank).filter(|i| !taken.contains(i)).collect()))
        }
        F::Invert => {
            let perm = ints(0)?;
            inside(&perm, perm.len())?;
            let mut inverse = vec![-1; perm.len()];
            for (i, p) in perm.iter().enumerate() {
                inverse[*p as usize] = i as i64;
            }
            if inverse.contains(&-1) { Err(format!("{perm:?} is not a permutation")) } else { Ok(list(inverse)) }
        }
        F::SwapLast => {
            let rank = small(int(0)?)?;
            if rank < 2 {
                return Err(format!("`swap_last` of rank {rank}"));
            }
            let mut perm: Vec<i64> = (0..rank).collect();
            perm.swap(rank as usize - 1, rank as usize - 2);
            Ok(list(perm))
        }
        F::WithShape => {
            let AttrValue::Type(ty) = &args[0] else {
                return Err(format!("expected a tensor type, found {}", args[0].describe()));
            };
            let dims = ints(1)?.into_iter().map(u64::try_from).collect::<Result<Vec<u64>, _>>();
            let dims = dims.map_err(|_| "a negative dimension".to_owned())?;
            Ok(AttrValue::Type(ty.with_shape(Shape::new(dims).map_err(|e| e.to_string())?)))
        }
        F::WithDType => match (&args[0], &args[1]) {
            (AttrValue::Type(ty), AttrValue::DType(d)) => Ok(AttrValue::Type(ty.with_dtype(*d))),
            (a, b) => Err(format!("expected a tensor type and a dtype, found {} and {}", a.describe(), b.describe())),
        },
        F::IsFloat => match &args[0] {
            AttrValue::Type(ty) => Ok(AttrValue::Bool(ty.dtype.is_float())),
            AttrValue::DType(d) => Ok(AttrValue::Bool(d.is_float())),
            v => Err(format!("expected a tensor type or a dtype, found {}", v.describe())),
        },
        F::Abs => match &args[0] {
            AttrValue::Int(i) => i.checked_abs().map(AttrValue::Int).ok_or_else(|| "integer overflow".to_owned()),
            AttrValue::Float(v) => Ok(AttrValue::float(v.get().abs())),
            v => Err(format!("`abs` of {}", v.describe())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(v: &[i64]) -> AttrValue {
        AttrValue::Ints(v.to_vec())
    }

    #[test]
    fn shape_functions() {
        assert_eq!(call(AttrFunction::OnesAt, &[ints(&[2, 3, 4]), ints(&[0, 2])]), Ok(ints(&[1, 3, 1])));
        assert_eq!(call(AttrFunction::Without, &[ints(&[2, 3, 4]), AttrValue::Int(1)]), Ok(ints(&[2, 4])));
        assert_eq!(call(AttrFunction::Expanded, &[ints(&[3, 1]), ints(&[2, 3, 4])]), Ok(ints(&[0, 2])));
        assert_eq!(call(AttrFunction::Expanded, &[ints(&[3, 1]), ints(&[3, 1])]), Ok(ints(&[])));
        assert_eq!(call(AttrFunction::Invert, &[ints(&[2, 0, 1])]), Ok(ints(&[1, 2, 0])));
        assert_eq!(call(AttrFunction::SwapLast, &[AttrValue::Int(3)]), Ok(ints(&[0, 2, 1])));
        assert_eq!(call(AttrFunction::Sum, &[ints(&[2, 3, 4])]), Ok(AttrValue::Int(9)));
        assert_eq!(call(AttrFunction::Offsets, &[ints(&[2, 0, 4])]), Ok(ints(&[0, 2, 2, 6])));
        assert_eq!(call(AttrFunction::Count, &[ints(&[2, 3, 4]), ints(&[1, 2])]), Ok(AttrValue::Int(12)));
    }

    #[test]
    fn hostile_arguments_are_errors() {
        assert!(call(AttrFunction::Range, &[AttrValue::Int(1 << 40)]).is_err());
        assert!(call(AttrFunction::Range, &[AttrValue::Int(-1)]).is_err());
        assert!(call(AttrFunction::Prod, &[ints(&[i64::MAX, 2])]).is_err());
        assert!(call(AttrFunction::Offsets, &[ints(&[i64::MAX, 2])]).is_err());
        assert!(call(AttrFunction::Invert, &[ints(&[0, 0])]).is_err());
        assert!(call(AttrFunction::OnesAt, &[ints(&[2]), ints(&[1])]).is_err());
        assert!(binary(BinaryOp::Div, AttrValue::Int(1), AttrValue::Int(0)).is_err());
        assert!(binary(BinaryOp::Add, AttrValue::Int(i64::MAX), AttrValue::Int(1)).is_err());
    }
}
