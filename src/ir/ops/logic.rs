//! Comparisons, logical operators and select.

use std::sync::Arc;

use super::premises::{Accept, Premises, host};
use crate::ir::array::{Array, Values};
use crate::ir::attr::AttrValue;
use crate::ir::kernel::{BinaryFn, CompareFn, Kernel, Loop, Scalar, UnaryFn};
use crate::ir::memory::{self, OutOfMemory};
use crate::ir::operator::{Call, Eval, EvalError, Operator, Signature, TypeError};
use crate::ir::range::Range;
use crate::ir::types::{DType, TensorType};

/// `out[i] = a[i] <op> b[i]`, a Bool.
struct Compare {
    name: &'static str,
    doc: &'static str,
    function: CompareFn,
    signature: Signature,
}

/// `out[i] = f(a[i], ..)` of Bools.
struct Logical {
    name: &'static str,
    doc: &'static str,
    function: LogicalFn,
    signature: Signature,
}

#[derive(Clone, Copy)]
enum LogicalFn {
    And,
    Or,
    Not,
}

/// `out[i] = cond[i] ? a[i] : b[i]`.
struct Select {
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<dyn Operator>> {
    let compare = |name, doc, function| -> Arc<dyn Operator> {
        Arc::new(Compare { name, doc, function, signature: Signature::operands_only(&["a", "b"]) })
    };
    let logical = |name, doc, function, operands: &[&str]| -> Arc<dyn Operator> {
        Arc::new(Logical { name, doc, function, signature: Signature::operands_only(operands) })
    };
    vec![
        compare("equal", "a == b; false if one is NaN", CompareFn::Eq),
        compare("not_equal", "a != b; true if one is NaN", CompareFn::Ne),
        compare("less", "a < b; false if one is NaN", CompareFn::Lt),
        compare("less_equal", "a <= b; false if one is NaN", CompareFn::Le),
        compare("greater", "a > b; false if one is NaN", CompareFn::Gt),
        compare("greater_equal", "a >= b; false if one is NaN", CompareFn::Ge),
        logical("logical_and", "a and b", LogicalFn::And, &["a", "b"]),
        logical("logical_or", "a or b", LogicalFn::Or, &["a", "b"]),
        logical("logical_not", "not x", LogicalFn::Not, &["x"]),
        Arc::new(Select { signature: Signature::operands_only(&["cond", "a", "b"]) }),
    ]
}

impl Compare {
    /// Bools have no order.
    fn only_equality(&self) -> bool {
        matches!(self.function, CompareFn::Eq | CompareFn::Ne)
    }

    fn apply<T: PartialOrd>(&self, a: &[T], b: &[T]) -> Result<Vec<bool>, OutOfMemory> {
        memory::collect(a.len() as u64, a.iter().zip(b).map(|(a, b)| self.function.holds(a, b)))
    }
}

impl Operator for Compare {
    fn name(&self) -> &str {
        self.name
    }

    fn doc(&self) -> &str {
        self.doc
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name, &self.signature, call);
        premises.placement()?;
        if !self.only_equality() {
            premises.dtype(0, Accept::Numbers)?;
            premises.dtype(1, Accept::Numbers)?;
        }
        premises.equal_dtypes(0, 1)?;
        premises.equal_shapes(0, 1)?;
        Ok(premises.ty(0).with_dtype(DType::Bool))
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let values = match (&eval.args[0].values, &eval.args[1].values) {
            (Values::Float(a), Values::Float(b)) => self.apply(a, b),
            (Values::Int(a), Values::Int(b)) => self.apply(a, b),
            _ => self.apply(eval.args[0].bools(), eval.args[1].bools()),
        }?;
        Ok(Array::new(eval.result.shape.clone(), Values::Bool(values)))
    }

    fn kernel(&self, _call: Call<'_>, result: &TensorType) -> Kernel {
        let body = Scalar::compare(self.function, Scalar::Input(0), Scalar::Input(1));
        Kernel::Loops(vec![Loop::elementwise(&result.shape, DType::Bool, 2, body)])
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let mut types = vec![
            host(DType::F32, &[3]),
            host(DType::F64, &[2, 3]),
            host(DType::I32, &[2, 1, 3]),
            host(DType::I64, &[1, 2, 2, 3]),
        ];
        if self.only_equality() {
            types.push(host(DType::Bool, &[4]));
        }
        types.into_iter().map(|t| (vec![t.clone(), t], vec![])).collect()
    }
}

impl Operator for Logical {
    fn name(&self) -> &str {
        self.name
    }

    fn doc(&self) -> &str {
        self.doc
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new(self.name, &self.signature, call);
        premises.placement()?;
        for i in 0..call.operands.len() {
            premises.dtype(i, Accept::Bools)?;
            premises.equal_shapes(0, i)?;
        }
        Ok(premises.ty(0).clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let a = eval.args[0].bools();
        let b = eval.args.get(1).map_or(a, |b| b.bools());
        let values = a.iter().zip(b).map(|(a, b)| match self.function {
            LogicalFn::And => *a && *b,
            LogicalFn::Or => *a || *b,
            LogicalFn::Not => !*a,
        });
        Ok(Array::new(eval.result.shape.clone(), Values::Bool(memory::collect(a.len() as u64, values)?)))
    }

    fn kernel(&self, call: Call<'_>, result: &TensorType) -> Kernel {
        let body = match self.function {
            LogicalFn::And => Scalar::binary(BinaryFn::And, Scalar::Input(0), Scalar::Input(1)),
            LogicalFn::Or => Scalar::binary(BinaryFn::Or, Scalar::Input(0), Scalar::Input(1)),
            LogicalFn::Not => Scalar::unary(UnaryFn::Not, Scalar::Input(0)),
        };
        Kernel::Loops(vec![Loop::elementwise(&result.shape, DType::Bool, call.operands.len(), body)])
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        let operands = self.signature.operand_count();
        [&[4][..], &[2, 3], &[2, 1, 3], &[1, 2, 2, 3]]
            .into_iter()
            .map(|shape| (vec![host(DType::Bool, shape); operands], vec![]))
            .collect()
    }
}

impl Operator for Select {
    fn name(&self) -> &str {
        "select"
    }

    fn doc(&self) -> &str {
        "a where cond holds, b elsewhere; the arm not taken has no influence, even if it is NaN"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let premises = Premises::new("select", &self.signature, call);
        premises.placement()?;
        premises.dtype(0, Accept::Bools)?;
        premises.equal_dtypes(1, 2)?;
        premises.equal_shapes(0, 1)?;
        premises.equal_shapes(1, 2)?;
        Ok(premises.ty(1).clone())
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        fn pick<T: Copy>(cond: &[bool], a: &[T], b: &[T]) -> Result<Vec<T>, OutOfMemory> {
            let arms = cond.iter().zip(a.iter().zip(b));
            memory::collect(cond.len() as u64, arms.map(|(c, (a, b))| if *c { *a } else { *b }))
        }
        let cond = eval.args[0].bools();
        let values = match (&eval.args[1].values, &eval.args[2].values) {
            (Values::Float(a), Values::Float(b)) => Values::Float(pick(cond, a, b)?),
            (Values::Int(a), Values::Int(b)) => Values::Int(pick(cond, a, b)?),
            _ => Values::Bool(pick(cond, eval.args[1].bools(), eval.args[2].bools())?),
        };
        Ok(Array::new(eval.result.shape.clone(), values))
    }

    fn kernel(&self, _call: Call<'_>, result: &TensorType) -> Kernel {
        let body = Scalar::select(Scalar::Input(0), Scalar::Input(1), Scalar::Input(2));
        Kernel::Loops(vec![Loop::elementwise(&result.shape, result.dtype, 3, body)])
    }

    fn range(&self, operands: &[Range], _call: Call<'_>, _result: &TensorType) -> Range {
        operands[1].hull(operands[2])
    }

    fn keeps_numbers(&self, _call: Call<'_>) -> bool {
        true
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        [
            host(DType::F32, &[3]),
            host(DType::F64, &[2, 3]),
            host(DType::F32, &[2, 1, 3]),
            host(DType::F32, &[1, 2, 2, 3]),
            host(DType::I64, &[4]),
            host(DType::Bool, &[2, 2]),
        ]
        .into_iter()
        .map(|t| (vec![t.with_dtype(DType::Bool), t.clone(), t], vec![]))
        .collect()
    }
}
