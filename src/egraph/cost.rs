//! The cost model: one number per operator call, from shapes, by way of the same kernels that are lowered.
//!
//! Costs estimate time per element in thousandths of a simple arithmetic step's tenfold, i.e. `300` is one fused
//! addition. Elementwise work is cheap, since it will be fused into a loop that runs anyway; reading a whole row for
//! a reduction is what starts a loop; elementary functions dominate everything else.

use std::fmt::Write as _;

use crate::ir::kernel::{BinaryFn, Kernel, Loop, MapDim, Scalar, UnaryFn};
use crate::ir::target::ROW_BYTES;
use crate::ir::{AttrValue, Call, OpId, Registry, TensorType};

/// Cost units, summed over elements. Saturating: a huge shape is merely expensive.
pub type Cost = u64;

/// Any operator call, so that of equal forms the one with fewer operators wins.
const CALL: Cost = 1_000;
/// `exp`, `log`, `tanh`, .. per element.
const TRANSCENDENTAL: Cost = 5_000;
/// Division and square root per element.
const DIVISION: Cost = 1_000;
/// Additions, multiplications and their like per element.
const ARITHMETIC: Cost = 300;
/// Comparisons, selections, logic, conversions, per element.
const CHOICE: Cost = 200;
/// An element of a reduction.
const REDUCTION: Cost = 500;
/// An element of a reduction whose rows no second-level cache holds: whoever needs the result to go on with the row fetches
/// it again.
const REFETCH: Cost = 8_000;
/// An element of a loop that must visit its points in order.
const SEQUENTIAL: Cost = 2_000;
/// An element copied from where a stretched dimension repeats it.
const COPY: Cost = 50;
/// An element copied against the memory order.
const STRIDED: Cost = 1_000;
/// An element read at a computed place.
const GATHER: Cost = 1_000;
/// An element of a constant.
const CONSTANT: Cost = 10;

/// The cost of a call; `None` for composites, which cannot be lowered.
pub fn cost(
    registry: &Registry,
    op: OpId,
    operands: &[&TensorType],
    attrs: &[AttrValue],
    result: &TensorType,
) -> Option<Cost> {
    match registry.op(op).kernel(Call { operands, attrs }, result) {
        Kernel::Composite => None,
        Kernel::Reshape => Some(CALL),
        Kernel::Loops(loops) => Some(loops.iter().fold(CALL, |sum, l| sum.saturating_add(loop_cost(l)))),
    }
}

fn loop_cost(l: &Loop) -> Cost {
    let mut per_point = scalar_cost(&l.body, l.domain.len());
    if l.sequence.is_some() {
        per_point += SEQUENTIAL;
    } else if l.reduce.is_some() {
        per_point += REDUCTION;
        if row_bytes(l) > ROW_BYTES {
            per_point += REFETCH;
        }
    }
    if let Scalar::Input(i) = l.body
        && l.reduce.is_none()
    {
        let dims = l.inputs.get(i).map(|r| {
            r.map.iter().filter_map(|m| match m {
                MapDim::Dim(d) => Some(*d),
                MapDim::Zero => None,
            })
        });
        let in_order = dims.is_none_or(|d| d.is_sorted());
        per_point += if in_order { COPY } else { STRIDED };
    }
    per_point.saturating_mul(l.points())
}

/// Bytes that lie between the first and the last element of one reduction.
fn row_bytes(l: &Loop) -> u64 {
    let first = (0..l.domain.len()).find(|d| !l.result_map.contains(&MapDim::Dim(*d))).unwrap_or(l.domain.len());
    l.domain[first..].iter().fold(l.dtype.size(), |bytes, d| bytes.saturating_mul(*d))
}

/// The cost of a scalar at each point of a loop of that many dimensions.
fn scalar_cost(s: &Scalar, dims: usize) -> Cost {
    let scalar_cost = |s: &Scalar| scalar_cost(s, dims);
    match s {
        Scalar::Input(_) | Scalar::Index(_) | Scalar::Previous => 0,
        Scalar::Constant(..) => CONSTANT,
        Scalar::Gather(_, at) if in_order(at, dims) => COPY,
        Scalar::Gather(_, at) => GATHER + at.iter().map(scalar_cost).sum::<Cost>(),
        Scalar::Select(c, a, b) => CHOICE + scalar_cost(c) + scalar_cost(a) + scalar_cost(b),
        Scalar::Compare(_, a, b) => CHOICE + scalar_cost(a) + scalar_cost(b),
        Scalar::Unary(f, a) => {
            let own = match f {
                f if f.is_transcendental() => TRANSCENDENTAL,
                UnaryFn::Sqrt | UnaryFn::Rsqrt => DIVISION,
                _ => ARITHMETIC,
            };
            own + scalar_cost(a)
        }
        Scalar::Binary(f, a, b) => {
            let own = match f {
                f if f.is_transcendental() => TRANSCENDENTAL,
                BinaryFn::Div => DIVISION,
                _ => ARITHMETIC,
            };
            own + scalar_cost(a) + scalar_cost(b)
        }
        #[allow(unreachable_patterns)]
        _ => CHOICE,
    }
}

/// Do neighbours along the innermost dimension read neighbours, at places known from the shapes alone?
fn in_order(at: &[Scalar], dims: usize) -> bool {
    let Some(inner) = dims.checked_sub(1) else { return false };
    let steps: Option<Vec<i64>> = at.iter().map(|c| c.affine(inner)).collect();
    steps.is_some_and(|steps| match steps.split_last() {
        Some((last, before)) => *last == 1 && before.iter().all(|s| *s == 0),
        None => false,
    })
}

/// The model in words, for `--explain-cost` and the documentation.
pub fn describe() -> String {
    let rows: [(&str, Cost); 11] = [
        ("each operator call", CALL),
        ("exp, log, tanh, pow per element", TRANSCENDENTAL),
        ("division, square root per element", DIVISION),
        ("addition, multiplication, .. per element", ARITHMETIC),
        ("comparison, selection per element", CHOICE),
        ("reduction, per element read", REDUCTION),
        ("the same where its row is larger than a second-level cache, besides", REFETCH),
        ("scan or scatter, per element read", SEQUENTIAL),
        ("copy to a stretched dimension, per element", COPY),
        ("copy against memory order, per element", STRIDED),
        ("read at a computed place, per element", GATHER),
    ];
    let mut out = String::new();
    for (what, cost) in rows {
        let _ = writeln!(out, "{cost:>6}  {what}");
    }
    out
}
