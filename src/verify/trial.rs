//! A VJP built over one instance of its operator, as a graph.

use std::collections::BTreeMap;

use super::report::describe_attrs;
use super::sample::Limits;
use crate::diagnostics::{Diagnostic, Span};
use crate::ir::{
    AttrValue, DType, Graph, Handler, HandlerParam, Node, NodeId, NodeKind, Origin, Output, Registry, TensorType,
};
use crate::rules::term::{Bindings, Builder, TermError};
use crate::rules::{Conclusion, DomainFact, GraphBuilder, RuleSet, Vjp, typecheck};

/// A VJP built over one instance of its operator.
pub struct Trial {
    pub graph: Graph,
    pub operands: Vec<NodeId>,
    /// The parameter that each operand is given for: several for a variadic one.
    pub params: Vec<usize>,
    pub cotangent: NodeId,
    pub primal: NodeId,
    /// By operand; `None` for `none`.
    pub conclusions: Vec<Option<NodeId>>,
    /// Condition and value of each kink whose operand is float here.
    pub kinks: Vec<Option<(NodeId, NodeId)>>,
    pub limits: Vec<Limits>,
    /// The attributes of the call in words.
    pub attrs: String,
}

impl Trial {
    /// Builds operator, conclusions and kinks over an instance; `None` where the rule does not apply.
    pub fn new(
        vjp: &Vjp,
        rules: &RuleSet,
        types: &[TensorType],
        attrs: &[AttrValue],
    ) -> Result<Option<Trial>, Box<Diagnostic>> {
        let registry = &rules.registry;
        let refs: Vec<&TensorType> = types.iter().collect();
        let Ok(result) = registry.infer(vjp.op, &refs, attrs) else { return Ok(None) };
        if !result.dtype.is_float() {
            return Ok(None);
        }
        let head = &vjp.head;
        let mut graph = Graph::new();
        let signature = registry.op(vjp.op).signature();
        let mut params = Vec::new();
        let mut operands: Vec<NodeId> = Vec::new();
        for (i, ty) in types.iter().enumerate() {
            let (param, element) = signature.param_of(i, types.len());
            let Some(var) = vjp.operands.get(param) else { return Ok(None) };
            let name = &head.vars[var.0 as usize].name;
            let name = element.map_or_else(|| name.clone(), |e| format!("{name}[{e}]"));
            operands.push(input(&mut graph, &name, ty.clone(), head.span));
            params.push(param);
        }
        let cotangent = input(&mut graph, &head.vars[vjp.cotangent.0 as usize].name, result.clone(), head.span);
        let mut bindings = Bindings::new(head.vars.len(), &head.locals);
        vjp.bind_operands(signature, &operands, &mut bindings);
        if !typecheck::bind_attrs(&vjp.attrs, attrs, &mut bindings) {
            return Ok(None);
        }
        let mut builder = GraphBuilder { registry, graph: &mut graph, rule: head.rule.clone(), serves: Vec::new() };
        let built = |e: TermError| {
            Box::new(
                Diagnostic::error("E0407", format!("`{}` is ill-typed: {e}", head.rule.name))
                    .at(e.span, "ill-typed here")
                    .help("restrict the rule with `where`, or mend this expression"),
            )
        };
        let Ok(primal) = Builder::op(&mut builder, vjp.op, &operands, attrs.to_vec()) else {
            return Ok(None);
        };
        bindings.bind_tensor(vjp.primal, primal);
        bindings.bind_tensor(vjp.cotangent, cotangent);
        if !typecheck::conditions(head, &mut bindings, &mut builder).map_err(built)? {
            return Ok(None);
        }
        let limits = limits(&head.domain, &mut bindings, &mut builder).map_err(built)?;
        let limit_of = |param: &usize| limits.get(&vjp.operands[*param].0).copied().unwrap_or_default();
        let limits = params.iter().map(limit_of).collect();
        let mut conclusions = Vec::new();
        for (i, ty) in types.iter().enumerate() {
            conclusions.push(match vjp.conclusion(signature, i, types.len(), &mut bindings) {
                Some(Conclusion::Cotangent(term)) if ty.dtype.is_float() => {
                    bindings.expected = Some(ty.clone());
                    Some(bindings.build(term, &mut builder).map_err(built)?)
                }
                _ => None,
            });
        }
        let shown = describe_attrs(signature.attrs().map(|(name, _, _)| name).zip(attrs));
        let mut kinks = Vec::new();
        for kink in &vjp.kinks {
            let Some(at) = params.iter().position(|p| *p == kink.operand) else {
                kinks.push(None);
                continue;
            };
            let ty = &types[at];
            kinks.push(if ty.dtype.is_float() {
                bindings.expected = Some(ty.clone());
                let condition = bindings.build(&kink.condition, &mut builder).map_err(built)?;
                Some((condition, bindings.build(&kink.value, &mut builder).map_err(built)?))
            } else {
                None
            });
        }
        let nodes = conclusions.iter().flatten().copied();
        let nodes = nodes.chain(kinks.iter().flatten().flat_map(|(c, v)| [*c, *v])).chain([primal]);
        graph.outputs = nodes.map(|node| Output { name: "value".into(), node }).collect();
        Ok(Some(Trial { graph, operands, params, cotangent, primal, conclusions, kinks, limits, attrs: shown }))
    }
}

impl Trial {
    /// Does the operator work point by point, as far as that operand is concerned?
    pub fn is_pointwise(&self, registry: &Registry, operand: usize) -> bool {
        let ty = self.graph.ty(self.primal);
        let elementwise = self.graph.with_call(self.primal, |op, call| registry.op(op).is_elementwise(call, ty));
        elementwise.unwrap_or(false) && self.graph.ty(self.operands[operand]).shape == ty.shape
    }
}

/// An instance with F64 for F32: constants of F32 are rounded, so that a rule is compared in F64 only.
pub fn in_f64(mut types: Vec<TensorType>, mut attrs: Vec<AttrValue>) -> (Vec<TensorType>, Vec<AttrValue>) {
    let wide = |dtype: DType| if dtype == DType::F32 { DType::F64 } else { dtype };
    types.iter_mut().for_each(|ty| ty.dtype = wide(ty.dtype));
    for attr in &mut attrs {
        match attr {
            AttrValue::Type(ty) => ty.dtype = wide(ty.dtype),
            AttrValue::DType(dtype) => *dtype = wide(*dtype),
            _ => {}
        }
    }
    (types, attrs)
}

/// Adds a program input.
pub(super) fn input(graph: &mut Graph, name: &str, ty: TensorType, span: Span) -> NodeId {
    let node = Node { kind: NodeKind::Input, ty, name: Some(name.into()), origin: Origin::Program(span) };
    let id = graph.push(node);
    graph.inputs.push(id);
    id
}

/// The bounds of integer inputs that index something.
pub(super) fn integer_bounds(graph: &Graph) -> BTreeMap<NodeId, u64> {
    let mut bounds = BTreeMap::new();
    for check in &graph.checks {
        let bound = bounds.entry(check.indices).or_insert(check.size);
        *bound = check.size.min(*bound);
    }
    bounds
}

/// The domain of each metavariable, by its number.
pub(super) fn limits(
    domain: &[DomainFact],
    bindings: &mut Bindings<'_, NodeId>,
    builder: &mut GraphBuilder<'_>,
) -> Result<BTreeMap<u32, Limits>, TermError> {
    let mut all: BTreeMap<u32, Limits> = BTreeMap::new();
    for fact in domain {
        if let Some(bound) = bindings.attr(&fact.bound, builder)?.as_float() {
            all.entry(fact.tensor.0).or_default().restrict(fact.compare, bound);
        }
    }
    Ok(all)
}

/// The program whose value is a conclusion, with a handler around it for all its float operands and the cotangent.
pub fn second_order_program(trial: &Trial, conclusion: NodeId, span: Span) -> Graph {
    let mut graph = Graph::new();
    let mut map: Vec<NodeId> = Vec::with_capacity(trial.graph.len());
    let mut params = Vec::new();
    for id in &trial.graph.inputs {
        let node = trial.graph.node(*id);
        input(&mut graph, node.name.as_deref().unwrap_or("x"), node.ty.clone(), span);
    }
    let seed = input(&mut graph, "h", trial.graph.ty(conclusion).clone(), span);
    let inputs = graph.inputs.clone();
    for (id, node) in trial.graph.iter() {
        let new = match &node.kind {
            NodeKind::Input => {
                let position = trial.graph.inputs.iter().position(|i| *i == id).unwrap_or(0);
                let argument = inputs[position];
                if node.ty.dtype.is_float() {
                    let kind = NodeKind::Param { handler: 0, index: params.len(), argument };
                    let param = graph.push(Node { kind, ..node.clone() });
                    params.push(HandlerParam { name: node.name.clone().unwrap_or_else(|| "x".into()), node: param });
                    param
                } else {
                    argument
                }
            }
            NodeKind::Op { op, operands, attrs } => {
                let operands = operands.iter().map(|o| map[o.index()]).collect();
                let kind = NodeKind::Op { op: *op, operands, attrs: attrs.clone() };
                graph.push(Node { kind, ..node.clone() })
            }
            NodeKind::Param { .. } | NodeKind::Gradient { .. } => graph.push(node.clone()),
        };
        map.push(new);
    }
    for check in &trial.graph.checks {
        graph.checks.add(crate::ir::Check { indices: map[check.indices.index()], ..check.clone() });
    }
    let primal = map[conclusion.index()];
    graph.outputs.push(Output { name: "primal".into(), node: primal });
    let names: Vec<std::sync::Arc<str>> = params.iter().map(|p| format!("g_{}", p.name).into()).collect();
    graph.handlers.push(Handler { primal, params, span, cotangent: Some(seed) });
    for (index, name) in names.into_iter().enumerate() {
        let ty = graph.ty(graph.handlers[0].params[index].node).clone();
        let kind = NodeKind::Gradient { handler: 0, index };
        let node = graph.push(Node { kind, ty, name: None, origin: Origin::Handler(span) });
        graph.outputs.push(Output { name, node });
    }
    graph
}
