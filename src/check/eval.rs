//! Evaluating expressions: names, `let`, tuples, inputs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;

use super::function::repeated;
use super::value::{Closure, Literal, Scope, TupleValue, Value};
use super::{Composites, MAX_NODES, MAX_STEPS};
use crate::diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use crate::ir::{Graph, Node, NodeId, NodeKind, Origin, Placement, Registry, Shape, TensorType, TypeErrorKind};
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, Ident, Let, Pattern, TypeExpr, UnaryOp};

/// Deepest evaluation, through calls. The stack holds it many times over.
const MAX_DEPTH: usize = 10_000;

pub(super) struct Checker<'a> {
    pub sources: &'a SourceMap,
    pub registry: &'a Registry,
    pub composites: &'a dyn Composites,
    found: Diagnostics,
    /// What was reported: the body of a function is evaluated at each call, its faults are reported once.
    reported: HashSet<(&'static str, Option<Span>, String)>,
    /// Names that were reported as unknown.
    unknown: HashSet<Arc<str>>,
    pub graph: Graph,
    pub scope: Scope,
    pub tuples: Vec<TupleValue>,
    pub lists: Vec<Vec<i64>>,
    pub functions: Vec<Closure<'a>>,
    /// Each function of the text, by its place, with one of its values.
    pub defined: IndexMap<Span, usize>,
    pub called: HashSet<Span>,
    /// A `tensor<..>` of the text is one input however often it is evaluated.
    inputs: HashMap<Span, NodeId>,
    input_names: HashMap<Arc<str>, Span>,
    /// Checking a function that is never called: nothing of it belongs to the program.
    pub aside: bool,
    depth: usize,
    steps: usize,
    stopped: bool,
}

impl<'a> Checker<'a> {
    pub fn new(sources: &'a SourceMap, registry: &'a Registry, composites: &'a dyn Composites) -> Self {
        Self {
            sources,
            registry,
            composites,
            found: Diagnostics::new(),
            reported: HashSet::new(),
            unknown: HashSet::new(),
            graph: Graph::new(),
            scope: Scope::default(),
            tuples: Vec::new(),
            lists: Vec::new(),
            functions: Vec::new(),
            defined: IndexMap::new(),
            called: HashSet::new(),
            inputs: HashMap::new(),
            input_names: HashMap::new(),
            aside: false,
            depth: 0,
            steps: 0,
            stopped: false,
        }
    }

    pub fn finish(self) -> (Graph, Diagnostics) {
        (self.graph, self.found)
    }

    /// Reports once, and gives the value to go on with.
    pub fn report(&mut self, diagnostic: Diagnostic) -> Value {
        let key = (diagnostic.code, diagnostic.primary.as_ref().map(|l| l.span), diagnostic.message.clone());
        if !self.stopped && self.reported.insert(key) {
            self.found.push(diagnostic);
            // Those that are not shown are not looked for.
            self.stopped |= self.found.omitted() > 0;
        }
        Value::Poison
    }

    fn stop(&mut self, span: Span, what: String) -> Value {
        let value = self.report(
            Diagnostic::error("E0213", what)
                .at(span, "reached here")
                .note("functions are inlined: each call adds its whole body")
                .help("split the program"),
        );
        self.stopped = true;
        value
    }

    /// Counts work; `false` if there was too much of it.
    pub fn spend(&mut self, steps: usize, span: Span) -> bool {
        self.steps = self.steps.saturating_add(steps);
        if !self.stopped && self.steps > MAX_STEPS {
            self.stop(span, format!("the program has more than {MAX_STEPS} expressions when its calls are inlined"));
        }
        if !self.stopped && self.graph.len() > MAX_NODES {
            self.stop(span, format!("the program has more than {MAX_NODES} values when its calls are inlined"));
        }
        !self.stopped
    }

    pub fn eval(&mut self, expr: &'a Expr) -> Value {
        if !self.spend(1, expr.span) {
            return Value::Poison;
        }
        if self.depth >= MAX_DEPTH {
            return self.stop(expr.span, format!("calls and expressions nest more than {MAX_DEPTH} levels deep"));
        }
        self.depth += 1;
        let value = self.eval_kind(expr);
        self.depth -= 1;
        value
    }

    fn eval_kind(&mut self, expr: &'a Expr) -> Value {
        match &expr.kind {
            ExprKind::Name(name) => self.name(name, expr.span),
            ExprKind::Int(value) => Value::Literal(Literal::Int(*value)),
            ExprKind::Float(value) => Value::Literal(Literal::Float(*value)),
            ExprKind::Bool(value) => Value::Literal(Literal::Bool(*value)),
            ExprKind::List(elements) => self.list(elements),
            ExprKind::Tuple(elements) => {
                let elements = elements.iter().map(|e| self.eval(e)).collect();
                self.tuple(TupleValue { elements, names: None })
            }
            ExprKind::Call { callee, args, method } => self.call(callee, args, *method, expr.span),
            ExprKind::Unary(UnaryOp::Neg, operand) => self.negate(operand, expr.span),
            ExprKind::Binary(op, left, right) if op.operator_name().is_some() => {
                self.binary(*op, left, right, expr.span)
            }
            ExprKind::Block(lets, body) => self.block(lets, body),
            ExprKind::Fn(function) => self.function(function, expr.span, None),
            ExprKind::Input(ty) => self.input(ty, expr.span),
            ExprKind::Handle { callee, args, handler } => self.handle(callee, args, handler, expr.span),
            ExprKind::Error => Value::Poison,
            ExprKind::Unary(UnaryOp::Not, _) => self.not_in_programs("`!`", "logical_not", expr.span),
            ExprKind::Binary(BinaryOp::And, ..) => self.not_in_programs("`&&`", "logical_and", expr.span),
            ExprKind::Binary(BinaryOp::Or, ..) => self.not_in_programs("`||`", "logical_or", expr.span),
            ExprKind::Binary(op, ..) => self.not_in_programs(&format!("`{}`", op.symbol()), "", expr.span),
            ExprKind::Comprehension { .. } => self.not_in_programs("a list comprehension", "", expr.span),
            ExprKind::If(..) => self.not_in_programs("`if`", "select", expr.span),
            ExprKind::Index(..) => self.report(
                Diagnostic::error("E0214", "indexing by `[..]` belongs to rule files, not to programs")
                    .at(expr.span, "not available here")
                    .help("take a tuple apart by `let (a, b) = ..`, and a tensor by operators"),
            ),
            ExprKind::NoCotangent => self.not_in_programs("`none`", "", expr.span),
        }
    }

    fn not_in_programs(&mut self, what: &str, instead: &str, span: Span) -> Value {
        let d = Diagnostic::error("E0214", format!("{what} belongs to rule files, not to programs"))
            .at(span, "not available here");
        self.report(match self.registry.id(instead) {
            Some(_) => d.help(format!("use the operator `{instead}`")),
            None => d.help("write what it stands for"),
        })
    }

    fn name(&mut self, name: &Arc<str>, span: Span) -> Value {
        match self.scope.get(name) {
            Some(Value::Itself) => self.recursion(name, span),
            Some(value) => value,
            None if !self.first_use_of_unknown(name) => Value::Poison,
            None => {
                let d = Diagnostic::error("E0201", format!("unknown name `{name}`")).at(span, "not bound here");
                let d = if self.registry.id(name).is_some() || self.composites.signature(name).is_some() {
                    d.help(format!("`{name}` is an operator: call it, `{name}(..)`"))
                } else {
                    let otherwise = format!("bind it first: `let {name} = .. in`");
                    d.did_you_mean_or(name, self.scope.names(), otherwise)
                };
                self.report(d)
            }
        }
    }

    /// Is this the first use of a name that nothing has? A name that is missing is one fault, however often it is used.
    pub fn first_use_of_unknown(&mut self, name: &Arc<str>) -> bool {
        self.unknown.insert(name.clone())
    }

    pub fn recursion(&mut self, name: &str, span: Span) -> Value {
        self.report(
            Diagnostic::error("E0211", format!("`{name}` uses itself"))
                .at(span, "inside its own definition")
                .note("functions are inlined, so there is no recursion")
                .help("write the steps out"),
        )
    }

    fn list(&mut self, elements: &'a [Expr]) -> Value {
        let mut ints = Vec::with_capacity(elements.len());
        let mut failed = false;
        for element in elements {
            match self.eval(element) {
                Value::Literal(Literal::Int(i)) => ints.push(i),
                Value::Poison => failed = true,
                other => {
                    failed = true;
                    let what = self.describe(other);
                    self.report(
                        Diagnostic::error("E0208", format!("a list holds constant integers, not {what}"))
                            .at(element.span, "not a constant integer")
                            .note("lists are attributes: axes, shapes, permutations"),
                    );
                }
            }
        }
        if failed {
            return Value::Poison;
        }
        self.lists.push(ints);
        Value::Ints(self.lists.len() - 1)
    }

    pub fn tuple(&mut self, tuple: TupleValue) -> Value {
        self.tuples.push(tuple);
        Value::Tuple(self.tuples.len() - 1)
    }

    /// A chain of `let`s: a loop, however long.
    fn block(&mut self, lets: &'a [Let], body: &'a Expr) -> Value {
        let mark = self.scope.enter();
        for l in lets {
            let value = match (&l.value.kind, &l.pattern) {
                (ExprKind::Fn(function), Pattern::Name(name)) => {
                    self.function(function, l.value.span, Some(&name.name))
                }
                _ => self.eval(&l.value),
            };
            match &l.pattern {
                Pattern::Name(name) => self.bind(name, value),
                Pattern::Tuple(names, span) => self.bind_tuple(names, *span, value, &l.value),
            }
        }
        let value = self.eval(body);
        self.scope.leave(mark);
        value
    }

    fn bind(&mut self, name: &Ident, value: Value) {
        if let Value::Tensor(id) = value {
            self.name_node(id, name);
        }
        self.scope.bind(&name.name, value);
    }

    /// The first name of a value stays. A lone `_` names nothing.
    fn name_node(&mut self, id: NodeId, name: &Ident) {
        let node = self.graph.node(id);
        if node.name.is_some() || &*name.name == "_" || matches!(node.kind, NodeKind::Param { .. }) {
            return;
        }
        if node.kind == NodeKind::Input && !self.aside {
            if let Some(first) = self.input_names.get(&name.name).copied() {
                self.report(
                    Diagnostic::error("E0204", format!("two inputs are named `{}`", name.name))
                        .at(name.span, "second input of this name")
                        .also(first, "first input of this name")
                        .help("rename one: inputs are given by name when the program runs"),
                );
            } else {
                self.input_names.insert(name.name.clone(), name.span);
            }
        }
        self.graph.node_mut(id).name = Some(name.name.clone());
    }

    /// Is there an input of this name?
    pub fn has_input(&self, name: &str) -> bool {
        self.input_names.contains_key(name)
    }

    fn bind_tuple(&mut self, names: &'a [Ident], span: Span, value: Value, expr: &Expr) {
        for (first, again) in repeated(names.iter().filter(|n| &*n.name != "_")) {
            self.report(
                Diagnostic::error("E0218", format!("`{}` is bound twice", again.name))
                    .at(again.span, "again here")
                    .also(first.span, "first here")
                    .help("choose another name, or `_` for a part that is not used"),
            );
        }
        let elements = match value {
            Value::Tuple(t) if self.tuples[t].elements.len() == names.len() => self.tuples[t].elements.clone(),
            Value::Poison => vec![Value::Poison; names.len()],
            Value::Tuple(t) => {
                let count = self.tuples[t].elements.len();
                self.report(
                    Diagnostic::error("E0210", format!("{} names for a tuple of {count}", names.len()))
                        .at(span, format!("{} names", names.len()))
                        .also(expr.span, format!("a tuple of {count}"))
                        .help("bind every part; `_` for one that is not used"),
                );
                vec![Value::Poison; names.len()]
            }
            other => {
                let what = self.describe(other);
                self.report(
                    Diagnostic::error("E0210", format!("{} names for {what}", names.len()))
                        .at(span, "wants a tuple")
                        .also(expr.span, what)
                        .help("bind it to one name"),
                );
                vec![Value::Poison; names.len()]
            }
        };
        for (name, element) in names.iter().zip(elements) {
            self.bind(name, element);
        }
    }

    fn input(&mut self, ty: &TypeExpr, span: Span) -> Value {
        if let Some(id) = self.inputs.get(&span) {
            return Value::Tensor(*id);
        }
        let Some(ty) = self.resolve_type(ty) else { return Value::Poison };
        let id = self.push_input(ty, None, span);
        self.inputs.insert(span, id);
        Value::Tensor(id)
    }

    /// Adds a program input.
    pub fn push_input(&mut self, ty: TensorType, name: Option<Arc<str>>, span: Span) -> NodeId {
        if let Some(name) = &name {
            self.input_names.insert(name.clone(), span);
        }
        let id = self.graph.push(Node { kind: NodeKind::Input, ty, name, origin: Origin::Program(span) });
        self.graph.inputs.push(id);
        id
    }

    /// A type as written, checked.
    pub fn resolve_type(&mut self, ty: &TypeExpr) -> Option<TensorType> {
        let dtype = self.dtype(&ty.dtype.name, ty.dtype.span);
        let placement = Placement::from_name(&ty.placement.name);
        if placement.is_none() {
            self.report(
                Diagnostic::error("E0203", format!("unknown placement `@{}`", ty.placement.name))
                    .at(ty.placement.span, "not a placement")
                    .did_you_mean(&format!("@{}", ty.placement.name), ["@host", "@device"])
                    .help("the placements are `@host` and `@device`"),
            );
        }
        let dims: Option<Vec<u64>> = ty.dims.iter().map(|(d, _)| *d).collect();
        let shape = dims.and_then(|dims| Shape::new(dims).ok());
        if shape.is_none() {
            let span = ty.dims.iter().find(|(d, _)| d.is_none()).map_or(ty.span, |(_, span)| *span);
            self.report(
                Diagnostic::error(TypeErrorKind::Overflow.code(), "the shape is too large")
                    .at(span, "too many elements")
                    .help("the size in bytes must stay below 2^63, and the rank must not exceed 64"),
            );
        }
        Some(TensorType::new(dtype?, shape?, placement?))
    }

    /// Records the bounds checks of the nodes from `first` on, each distinct one once.
    pub fn add_checks(&mut self, first: usize) {
        for i in first..self.graph.len() {
            if let Some(check) = self.graph.check_of(self.registry, NodeId(i as u32)) {
                self.graph.checks.add(check);
            }
        }
    }

    /// What a value is, for messages.
    pub fn describe(&self, value: Value) -> String {
        match value {
            Value::Tensor(id) => format!("a {}", self.graph.ty(id)),
            Value::Literal(Literal::Bool(_)) => "true or false".into(),
            Value::Literal(_) => "a number".into(),
            Value::Ints(_) => "a list".into(),
            Value::Tuple(t) => format!("a tuple of {}", self.tuples[t].elements.len()),
            Value::Function(_) | Value::Itself => "a function".into(),
            Value::Poison => "an error".into(),
        }
    }
}
