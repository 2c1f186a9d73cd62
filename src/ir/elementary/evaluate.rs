//! Code evaluated here, bit by bit as compiled code computes it.

use super::code::{Code, Op, Step, StepId};
use crate::ir::types::DType;

/// Values of one step for several operands.
#[derive(Clone, Debug)]
enum Lanes {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    Bool(Vec<bool>),
}

impl Code {
    /// The function of each operand; `None` if the code is not one of `f32`, or is malformed.
    pub fn evaluate_f32(&self, operands: &[f32]) -> Option<Vec<f32>> {
        match self.evaluate(Lanes::F32(operands.to_vec()))? {
            Lanes::F32(results) => Some(results),
            _ => None,
        }
    }

    /// The function of each operand; `None` if the code is not one of `f64`, or is malformed.
    pub fn evaluate_f64(&self, operands: &[f64]) -> Option<Vec<f64>> {
        match self.evaluate(Lanes::F64(operands.to_vec()))? {
            Lanes::F64(results) => Some(results),
            _ => None,
        }
    }

    fn evaluate(&self, operands: Lanes) -> Option<Lanes> {
        let mut values: Vec<Lanes> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let value = step.evaluate(&values, &operands)?;
            values.push(value);
        }
        values.into_iter().nth(self.result.index())
    }
}

fn map<A: Copy, B>(a: &[A], f: impl Fn(A) -> B) -> Vec<B> {
    a.iter().map(|a| f(*a)).collect()
}

fn zip<A: Copy, B>(a: &[A], b: &[A], f: impl Fn(A, A) -> B) -> Vec<B> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

impl Step {
    fn evaluate(&self, values: &[Lanes], operands: &Lanes) -> Option<Lanes> {
        use Lanes::{Bool, F32, F64, I32, I64};
        let at = |id: StepId| values.get(id.index());
        macro_rules! floats {
            ($a:expr, $f:ident) => {
                match at($a)? {
                    F32(a) => F32(map(a, f32::$f)),
                    F64(a) => F64(map(a, f64::$f)),
                    _ => return None,
                }
            };
        }
        macro_rules! numbers {
            ($a:expr, $b:expr, $operator:tt, $wrapping:ident) => {
                match (at($a)?, at($b)?) {
                    (F32(a), F32(b)) => F32(zip(a, b, |a, b| a $operator b)),
                    (F64(a), F64(b)) => F64(zip(a, b, |a, b| a $operator b)),
                    (I32(a), I32(b)) => I32(zip(a, b, i32::$wrapping)),
                    (I64(a), I64(b)) => I64(zip(a, b, i64::$wrapping)),
                    _ => return None,
                }
            };
        }
        macro_rules! integers {
            ($a:expr, $b:expr, $operator:tt) => {
                match (at($a)?, at($b)?) {
                    (I32(a), I32(b)) => I32(zip(a, b, |a, b| a $operator b)),
                    (I64(a), I64(b)) => I64(zip(a, b, |a, b| a $operator b)),
                    _ => return None,
                }
            };
        }
        let lanes = match operands {
            F32(x) => x.len(),
            F64(x) => x.len(),
            _ => return None,
        };
        Some(match self.op {
            Op::Operand => operands.clone(),
            Op::Float(v) if self.dtype == DType::F32 => F32(vec![v.get() as f32; lanes]),
            Op::Float(v) => F64(vec![v.get(); lanes]),
            Op::Int(v) if self.dtype == DType::I32 => I32(vec![v as i32; lanes]),
            Op::Int(v) => I64(vec![v; lanes]),
            Op::Neg(a) => match at(a)? {
                F32(a) => F32(map(a, |a| -a)),
                F64(a) => F64(map(a, |a| -a)),
                _ => return None,
            },
            Op::Abs(a) => floats!(a, abs),
            Op::Sqrt(a) => floats!(a, sqrt),
            Op::Round(a) => floats!(a, round_ties_even),
            Op::Add(a, b) => numbers!(a, b, +, wrapping_add),
            Op::Sub(a, b) => numbers!(a, b, -, wrapping_sub),
            Op::Mul(a, b) => numbers!(a, b, *, wrapping_mul),
            Op::Div(a, b) => match (at(a)?, at(b)?) {
                (F32(a), F32(b)) => F32(zip(a, b, |a, b| a / b)),
                (F64(a), F64(b)) => F64(zip(a, b, |a, b| a / b)),
                _ => return None,
            },
            Op::Fma(a, b, c) => match (at(a)?, at(b)?, at(c)?) {
                (F32(a), F32(b), F32(c)) => F32(a.iter().zip(b).zip(c).map(|((a, b), c)| a.mul_add(*b, *c)).collect()),
                (F64(a), F64(b), F64(c)) => F64(a.iter().zip(b).zip(c).map(|((a, b), c)| a.mul_add(*b, *c)).collect()),
                _ => return None,
            },
            Op::And(a, b) => integers!(a, b, &),
            Op::Or(a, b) => integers!(a, b, |),
            Op::Xor(a, b) => integers!(a, b, ^),
            Op::Shl(a, n) => match at(a)? {
                I32(a) => I32(map(a, |a| a.wrapping_shl(n))),
                I64(a) => I64(map(a, |a| a.wrapping_shl(n))),
                _ => return None,
            },
            Op::Shr(a, n) => match at(a)? {
                I32(a) => I32(map(a, |a| (a as u32).wrapping_shr(n) as i32)),
                I64(a) => I64(map(a, |a| (a as u64).wrapping_shr(n) as i64)),
                _ => return None,
            },
            Op::Compare(f, a, b) => Bool(match (at(a)?, at(b)?) {
                (F32(a), F32(b)) => zip(a, b, |a, b| f.holds(&a, &b)),
                (F64(a), F64(b)) => zip(a, b, |a, b| f.holds(&a, &b)),
                (I32(a), I32(b)) => zip(a, b, |a, b| f.holds(&a, &b)),
                (I64(a), I64(b)) => zip(a, b, |a, b| f.holds(&a, &b)),
                _ => return None,
            }),
            Op::Below(a, b) => Bool(match (at(a)?, at(b)?) {
                (I32(a), I32(b)) => zip(a, b, |a, b| (a as u32) < b as u32),
                (I64(a), I64(b)) => zip(a, b, |a, b| (a as u64) < b as u64),
                _ => return None,
            }),
            Op::Select(c, a, b) => {
                let Bool(c) = at(c)? else { return None };
                macro_rules! choose {
                    ($a:expr, $b:expr) => {
                        c.iter().zip($a.iter().zip($b)).map(|(c, (a, b))| if *c { *a } else { *b }).collect()
                    };
                }
                match (at(a)?, at(b)?) {
                    (F32(a), F32(b)) => F32(choose!(a, b)),
                    (F64(a), F64(b)) => F64(choose!(a, b)),
                    (I32(a), I32(b)) => I32(choose!(a, b)),
                    (I64(a), I64(b)) => I64(choose!(a, b)),
                    _ => return None,
                }
            }
            Op::Bitcast(a) => match at(a)? {
                F32(a) => I32(map(a, |a| a.to_bits() as i32)),
                F64(a) => I64(map(a, |a| a.to_bits() as i64)),
                I32(a) => F32(map(a, |a| f32::from_bits(a as u32))),
                I64(a) => F64(map(a, |a| f64::from_bits(a as u64))),
                Bool(_) => return None,
            },
            Op::Convert(a) => match at(a)? {
                F32(a) => F64(map(a, f64::from)),
                F64(a) => F32(map(a, |a| a as f32)),
                _ => return None,
            },
        })
    }
}
