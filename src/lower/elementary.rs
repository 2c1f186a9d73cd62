//! The code of elementary functions as operations.

use melior::ir::Value;

use super::LowerError;
use super::builder::{Builder, refused};
use super::scalar::compare;
use crate::ir::DType;
use crate::ir::elementary::{Code, Op, StepId};

/// Emits the code at `x`; returns the function's value.
pub(super) fn inline<'c, 'a>(b: &Builder<'c, 'a>, code: &Code, x: Value<'c, 'a>) -> Result<Value<'c, 'a>, LowerError> {
    let mut values: Vec<(Value<'c, 'a>, DType)> = Vec::with_capacity(code.steps.len());
    for step in &code.steps {
        let of = |id: StepId| values.get(id.index()).copied().ok_or_else(|| refused("a step before its operands"));
        let at = |id: StepId| of(id).map(|(value, _)| value);
        let ty = b.computed(step.dtype);
        let name = |float, int| if step.dtype.is_float() { float } else { int };
        let value = match step.op {
            Op::Operand => x,
            Op::Float(v) => b.constant_float(v.get(), ty)?,
            Op::Int(v) => b.constant_int(v, ty)?,
            Op::Neg(x) => b.value("arith.negf", &[at(x)?], ty, &[])?,
            Op::Abs(x) => b.value("math.absf", &[at(x)?], ty, &[])?,
            Op::Sqrt(x) => b.value("math.sqrt", &[at(x)?], ty, &[])?,
            Op::Round(x) => b.value("math.roundeven", &[at(x)?], ty, &[])?,
            Op::Add(x, y) => b.value(name("arith.addf", "arith.addi"), &[at(x)?, at(y)?], ty, &[])?,
            Op::Sub(x, y) => b.value(name("arith.subf", "arith.subi"), &[at(x)?, at(y)?], ty, &[])?,
            Op::Mul(x, y) => b.value(name("arith.mulf", "arith.muli"), &[at(x)?, at(y)?], ty, &[])?,
            Op::Div(x, y) => b.value("arith.divf", &[at(x)?, at(y)?], ty, &[])?,
            Op::Fma(x, y, z) => b.value("math.fma", &[at(x)?, at(y)?, at(z)?], ty, &[])?,
            Op::And(x, y) => b.value("arith.andi", &[at(x)?, at(y)?], ty, &[])?,
            Op::Or(x, y) => b.value("arith.ori", &[at(x)?, at(y)?], ty, &[])?,
            Op::Xor(x, y) => b.value("arith.xori", &[at(x)?, at(y)?], ty, &[])?,
            Op::Shl(x, n) => b.value("arith.shli", &[at(x)?, b.constant_int(n.into(), ty)?], ty, &[])?,
            Op::Shr(x, n) => b.value("arith.shrui", &[at(x)?, b.constant_int(n.into(), ty)?], ty, &[])?,
            Op::Compare(f, x, y) => {
                let (x, dtype) = of(x)?;
                compare(b, f, x, at(y)?, dtype)?
            }
            Op::Below(x, y) => b.cmpi(6, at(x)?, at(y)?)?,
            Op::Select(c, x, y) => b.select(at(c)?, at(x)?, at(y)?, ty)?,
            Op::Bitcast(x) => b.value("arith.bitcast", &[at(x)?], ty, &[])?,
            Op::Convert(x) => {
                let name = if step.dtype == DType::F64 { "arith.extf" } else { "arith.truncf" };
                b.value(name, &[at(x)?], ty, &[])?
            }
        };
        values.push((value, step.dtype));
    }
    let result = values.get(code.result.index()).map(|(value, _)| *value);
    result.ok_or_else(|| refused("code without its result"))
}
