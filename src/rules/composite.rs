//! A `def` that has a `vjp` of its own is an operator of the graph: it is differentiated whole and expands before
//! lowering.

use std::sync::{Arc, OnceLock, Weak};

use super::builders::{ArrayBuilder, PointwiseBuilder, TypeBuilder};
use super::family;
use super::rule::Def;
use super::term::expand;
use crate::ir::operator::{Call, Eval, Operator, Signature};
use crate::ir::{Array, AttrValue, EvalError, Kernel, Registry, TensorType, Trap, TypeError, TypeErrorKind, Where};

/// The operator of a `def`. Its body refers to operators of the registry that it is itself part of, so both are
/// set once that registry exists.
pub struct Composite {
    name: String,
    doc: String,
    signature: Signature,
    def: OnceLock<Arc<Def>>,
    registry: OnceLock<Weak<Registry>>,
}

impl Composite {
    pub fn new(name: &str, doc: &str, signature: Signature) -> Self {
        Self { name: name.into(), doc: doc.into(), signature, def: OnceLock::new(), registry: OnceLock::new() }
    }

    /// Gives it its body. A second call changes nothing.
    pub fn complete(&self, def: Arc<Def>, registry: &Arc<Registry>) {
        let _ = self.def.set(def);
        let _ = self.registry.set(Arc::downgrade(registry));
    }

    fn body(&self) -> Result<(&Arc<Def>, Arc<Registry>), TypeError> {
        let registry = self.registry.get().and_then(Weak::upgrade);
        match (self.def.get(), registry) {
            (Some(def), Some(registry)) => Ok((def, registry)),
            _ => Err(TypeError::new(
                TypeErrorKind::Attribute,
                Where::Call,
                format!("the definition of `{}` has errors", self.name),
            )),
        }
    }
}

impl Operator for Composite {
    fn name(&self) -> &str {
        &self.name
    }

    fn doc(&self) -> &str {
        &self.doc
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn infer(&self, call: Call<'_>) -> Result<TensorType, TypeError> {
        let (def, registry) = self.body()?;
        let mut builder = TypeBuilder::new(&registry);
        let operands: Vec<usize> = call.operands.iter().map(|t| builder.given((*t).clone())).collect();
        let result = expand(def, &operands, call.attrs, &mut builder).map_err(|e| e.into_type_error())?;
        Ok(super::term::Builder::ty(&builder, result))
    }

    fn reference(&self, eval: &Eval<'_>) -> Result<Array, EvalError> {
        let failed = || EvalError::Trap(Trap { operator: self.name.clone() });
        let (def, registry) = self.body().map_err(|_| failed())?;
        let mut builder = ArrayBuilder::new(&registry, eval.precision);
        let mut operands = Vec::with_capacity(eval.args.len());
        for (ty, array) in eval.call.operands.iter().zip(eval.args) {
            operands.push(builder.given((*ty).clone(), array.copy()?));
        }
        match expand(def, &operands, eval.call.attrs, &mut builder) {
            Ok(id) => Ok(builder.into_array(id)),
            Err(_) => Err(builder.failure.unwrap_or_else(failed)),
        }
    }

    fn kernel(&self, _call: Call<'_>, _result: &TensorType) -> Kernel {
        Kernel::Composite
    }

    /// If its definition is, for these operands and attributes.
    fn is_elementwise(&self, call: Call<'_>, _result: &TensorType) -> bool {
        let Ok((def, registry)) = self.body() else { return false };
        let mut builder = PointwiseBuilder::new(&registry);
        let operands: Vec<usize> = call.operands.iter().map(|t| builder.types.given((*t).clone())).collect();
        expand(def, &operands, call.attrs, &mut builder).is_ok() && builder.pointwise
    }

    fn instances(&self) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
        match self.body() {
            Ok((def, registry)) => family::of_def(def, &registry),
            Err(_) => Vec::new(),
        }
    }
}
