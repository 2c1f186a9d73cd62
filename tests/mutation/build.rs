//! Rules built into graphs of built-in operators.

use kina_ad::diagnostics::Span;
use kina_ad::ir::{
    Array, AttrValue, DType, Graph, Node, NodeId, NodeKind, OpId, Origin, Output, Precision, Registry, TensorType,
    TypeError,
};
use kina_ad::rules::term::{Bindings, Builder, TermError, expand};
use kina_ad::rules::{AttrPattern, Conclusion, DomainCompare, Pattern, Rewrite, RuleSet, Vjp, typecheck};

/// Adds operator calls to a graph, composites as what they are defined to be.
pub struct Expanding<'a> {
    pub rules: &'a RuleSet,
    pub graph: &'a mut Graph,
    pub span: Span,
}

impl Builder for Expanding<'_> {
    type Value = NodeId;

    fn ty(&self, value: NodeId) -> TensorType {
        self.graph.ty(value).clone()
    }

    fn op(&mut self, op: OpId, operands: &[NodeId], attrs: Vec<AttrValue>) -> Result<NodeId, TypeError> {
        let registry: &Registry = &self.rules.registry;
        if let Some(def) = self.rules.def(registry.op(op).name()) {
            return expand(def, operands, &attrs, self).map_err(TermError::into_type_error);
        }
        let id = self.graph.add(registry, op, operands.to_vec(), attrs, Origin::Program(self.span))?;
        if let Some(check) = self.graph.check_of(registry, id) {
            self.graph.checks.add(check);
        }
        Ok(id)
    }

    fn splat(&mut self, value: f64, ty: TensorType) -> Result<NodeId, TypeError> {
        let (op, attrs) = self.rules.registry.splat(value, ty)?;
        self.op(op, &[], attrs)
    }

    fn accepts(&self, op: OpId, operands: &[&TensorType], attrs: &[AttrValue]) -> bool {
        self.rules.registry.infer(op, operands, attrs).is_ok()
    }
}

pub fn input(graph: &mut Graph, ty: TensorType, span: Span) -> NodeId {
    let name = format!("input_{}", graph.inputs.len());
    let node = Node { kind: NodeKind::Input, ty, name: Some(name.as_str().into()), origin: Origin::Program(span) };
    let id = graph.push(node);
    graph.inputs.push(id);
    id
}

/// Why a rule says nothing of an instance.
#[derive(Clone, Debug, PartialEq)]
pub enum Silent {
    /// Its `where` lines or fixed attributes exclude it.
    DoesNotFire,
    IllTyped(String),
}

impl From<TermError> for Silent {
    fn from(error: TermError) -> Silent {
        Silent::IllTyped(error.to_string())
    }
}

/// Operands, primal result and cotangent of a VJP, in a graph.
pub struct Premise {
    pub operands: Vec<NodeId>,
    pub primal: NodeId,
    pub cotangent: NodeId,
    pub attrs: Vec<AttrValue>,
}

/// What a VJP says of a premise.
pub struct Said {
    /// By operand; `None` for `none`, and for operands that are no floats.
    pub conclusions: Vec<Option<NodeId>>,
    /// Operand, condition and value of each kink.
    pub kinks: Vec<(usize, NodeId, NodeId)>,
    /// What `domain` lines say: operand, comparison, bound.
    pub domain: Vec<(usize, DomainCompare, f64)>,
}

pub fn premise(
    graph: &mut Graph,
    op: OpId,
    rules: &RuleSet,
    types: &[TensorType],
    attrs: &[AttrValue],
    span: Span,
) -> Option<Premise> {
    let operands: Vec<NodeId> = types.iter().map(|ty| input(graph, ty.clone(), span)).collect();
    let primal = Expanding { rules, graph, span }.op(op, &operands, attrs.to_vec()).ok()?;
    let ty = graph.ty(primal).clone();
    if !ty.dtype.is_float() {
        return None;
    }
    let cotangent = input(graph, ty, span);
    Some(Premise { operands, primal, cotangent, attrs: attrs.to_vec() })
}

/// Builds what a VJP concludes.
///
/// # Errors
/// The rule does not fire here, or is ill-typed.
pub fn said(graph: &mut Graph, vjp: &Vjp, rules: &RuleSet, premise: &Premise) -> Result<Said, Silent> {
    let head = &vjp.head;
    let mut bindings = Bindings::new(head.vars.len(), &head.locals);
    let signature = rules.registry.op(vjp.op).signature();
    vjp.bind_operands(signature, &premise.operands, &mut bindings);
    bindings.bind_tensor(vjp.primal, premise.primal);
    bindings.bind_tensor(vjp.cotangent, premise.cotangent);
    if !typecheck::bind_attrs(&vjp.attrs, &premise.attrs, &mut bindings) {
        return Err(Silent::DoesNotFire);
    }
    let types: Vec<TensorType> = premise.operands.iter().map(|o| graph.ty(*o).clone()).collect();
    let mut builder = Expanding { rules, graph, span: head.span };
    if !typecheck::conditions(head, &mut bindings, &mut builder)? {
        return Err(Silent::DoesNotFire);
    }
    let mut said = Said { conclusions: Vec::new(), kinks: Vec::new(), domain: Vec::new() };
    for fact in &head.domain {
        let bound = bindings.attr(&fact.bound, &mut builder)?.as_float();
        let operands =
            (0..types.len()).filter(|i| vjp.operands.get(signature.param_of(*i, types.len()).0) == Some(&fact.tensor));
        said.domain.extend(operands.filter_map(|i| bound.map(|bound| (i, fact.compare, bound))));
    }
    for (i, ty) in types.iter().enumerate() {
        said.conclusions.push(match vjp.conclusion(signature, i, types.len(), &mut bindings) {
            Some(Conclusion::Cotangent(term)) if ty.dtype.is_float() => {
                bindings.expected = Some(ty.clone());
                let node = bindings.build(term, &mut builder)?;
                if builder.ty(node) != *ty {
                    return Err(Silent::IllTyped(format!("{} for {ty}", builder.ty(node))));
                }
                Some(node)
            }
            _ => None,
        });
    }
    for kink in &vjp.kinks {
        let at = (0..types.len()).find(|i| signature.param_of(*i, types.len()).0 == kink.operand);
        let Some((at, ty)) = at.map(|at| (at, &types[at])).filter(|(_, ty)| ty.dtype.is_float()) else { continue };
        bindings.expected = Some(ty.clone());
        let condition = bindings.build(&kink.condition, &mut builder)?;
        let value = bindings.build(&kink.value, &mut builder)?;
        if builder.ty(condition) != ty.with_dtype(DType::Bool) || builder.ty(value) != *ty {
            return Err(Silent::IllTyped("a kink".into()));
        }
        said.kinks.push((at, condition, value));
    }
    Ok(said)
}

/// Values of a rewrite's metavariables by type and attribute.
#[derive(Clone, Debug)]
pub struct Instance {
    pub tensors: Vec<Option<TensorType>>,
    pub attrs: Vec<Option<AttrValue>>,
}

/// Both sides of a rewrite in one graph.
pub struct Sides {
    pub graph: Graph,
    pub left: NodeId,
    /// By metavariable.
    pub inputs: Vec<Option<NodeId>>,
    /// `None` where the types differ or it is ill-typed.
    pub right: Option<NodeId>,
    /// What `domain` lines say: metavariable, comparison, bound.
    pub domain: Vec<(usize, DomainCompare, f64)>,
}

/// Builds both sides over an instance; `None` where the rule does not fire.
pub fn sides(rewrite: &Rewrite, rules: &RuleSet, instance: &Instance) -> Option<Sides> {
    let mut graph = Graph::new();
    let head = &rewrite.head;
    let inputs: Vec<Option<NodeId>> =
        instance.tensors.iter().map(|ty| ty.as_ref().map(|ty| input(&mut graph, ty.clone(), head.span))).collect();
    let mut builder = Expanding { rules, graph: &mut graph, span: head.span };
    let left = pattern(&rewrite.left, &inputs, &instance.attrs, &mut builder)?;
    let mut bindings = Bindings::new(head.vars.len(), &head.locals);
    bindings.tensors.clone_from(&inputs);
    bindings.attrs.clone_from(&instance.attrs);
    bindings.expected = Some(builder.ty(left));
    if !matches!(typecheck::conditions(head, &mut bindings, &mut builder), Ok(true)) {
        return None;
    }
    let mut domain = Vec::new();
    for fact in &head.domain {
        let bound = bindings.attr(&fact.bound, &mut builder).ok()?.as_float()?;
        domain.push((fact.tensor.0 as usize, fact.compare, bound));
    }
    let right =
        bindings.build(&rewrite.right, &mut builder).ok().filter(|right| builder.ty(*right) == builder.ty(left));
    graph.outputs = [left].into_iter().chain(right).map(|node| Output { name: "side".into(), node }).collect();
    Some(Sides { graph, left, inputs, right, domain })
}

fn pattern(
    p: &Pattern,
    inputs: &[Option<NodeId>],
    attrs: &[Option<AttrValue>],
    builder: &mut Expanding<'_>,
) -> Option<NodeId> {
    match p {
        Pattern::Var(v) => inputs[v.0 as usize],
        Pattern::Op { op, operands, attrs: of_call } => {
            let operands: Option<Vec<NodeId>> = operands.iter().map(|o| pattern(o, inputs, attrs, builder)).collect();
            let values: Option<Vec<AttrValue>> = of_call
                .iter()
                .map(|a| match a {
                    AttrPattern::Const(v) => Some(v.clone()),
                    AttrPattern::Var(v) => attrs[v.0 as usize].clone(),
                })
                .collect();
            builder.op(*op, &operands?, values?).ok()
        }
    }
}

/// The values of some nodes in the arithmetic of their dtypes.
pub fn typed(graph: &Graph, registry: &Registry, inputs: &[Array], nodes: &[NodeId]) -> Option<Vec<Array>> {
    let mut evaluator = kina_ad::interp::Evaluator::new(graph, registry, inputs.to_vec(), Precision::Typed).ok()?;
    nodes.iter().map(|node| evaluator.require(*node).ok().cloned()).collect()
}
