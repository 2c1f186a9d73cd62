//! The static check of rules: every conclusion is typed over a family of instances of ranks 0 to 4.
//!
//! A rule whose conclusion has the wrong type on any instance is refused at load time, with both types. (The same
//! comparison is made again whenever a rule fires, since the family is finite.)

use super::builders::TypeBuilder;
use super::rule::{AttrPattern, Conclusion, Kink, Pattern, Rewrite, RuleHead, VarKind, Vjp};
use super::term::{AttrTerm, AttrTermKind, Bindings, TermError, TermErrorCause, VarId};
use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::ir::{
    AttrKind, AttrValue, DType, Operator, Placement, Registry, Shape, TensorType, TypeError, TypeErrorKind,
};
use crate::syntax::ast::BinaryOp;

/// Typing steps that one rewrite may take, and instances after which it counts as checked.
const STEPS: usize = 60_000;
const INSTANCES: usize = 12;
/// Steps of each of many searches for varied instances.
const VARIED_STEPS: usize = 4_000;

/// Steps that typing all rules ahead may take: files are untrusted, and may hold very many rules.
const ALL_STEPS: usize = 4_000_000;

/// What is left of the steps for all rules.
pub struct Ahead {
    steps: usize,
    /// The first rule that none were left for, with the number of such rules.
    left_out: Option<(Span, usize)>,
}

impl Default for Ahead {
    fn default() -> Self {
        Ahead { steps: ALL_STEPS, left_out: None }
    }
}

impl Ahead {
    /// Are there steps left for a rule? If not, that is noted.
    fn begins(&mut self, head: &RuleHead) -> bool {
        if self.steps > 0 {
            return true;
        }
        let (first, count) = self.left_out.unwrap_or((head.span, 0));
        self.left_out = Some((first, count + 1));
        false
    }

    fn spend(&mut self, steps: usize) {
        self.steps = self.steps.saturating_sub(steps);
    }

    /// Which rules were left out.
    pub fn report(self) -> Diagnostics {
        let mut bag = Diagnostics::new();
        if let Some((first, count)) = self.left_out {
            bag.push(
                Diagnostic::warning("E0420", format!("the types of {count} rule(s) were not checked ahead"))
                    .at(first, "the first of them")
                    .note(format!("checking those before them took {ALL_STEPS} steps, which is the limit"))
                    .help("their types are compared whenever they fire; load fewer rules to have them checked now"),
            );
        }
        bag
    }
}

/// Checks every conclusion of a VJP over the instances of its operator.
pub fn vjp(vjp: &Vjp, registry: &Registry, ahead: &mut Ahead, bag: &mut Diagnostics) {
    if !ahead.begins(&vjp.head) {
        return;
    }
    let operator = registry.op(vjp.op);
    let mut fired = false;
    for (types, attrs) in operator.instances() {
        let refs: Vec<&TensorType> = types.iter().collect();
        let Ok(result) = registry.infer(vjp.op, &refs, &attrs) else { continue };
        if !result.dtype.is_float() {
            continue;
        }
        let mut builder = TypeBuilder::new(registry);
        let mut bindings = Bindings::new(vjp.head.vars.len(), &vjp.head.locals);
        let given: Vec<usize> = types.iter().map(|ty| builder.given(ty.clone())).collect();
        vjp.bind_operands(operator.signature(), &given, &mut bindings);
        if !bind_attrs(&vjp.attrs, &attrs, &mut bindings) {
            continue;
        }
        bindings.bind_tensor(vjp.primal, builder.given(result.clone()));
        bindings.bind_tensor(vjp.cotangent, builder.given(result.clone()));
        let described = || describe(&vjp.head, &bindings, &builder);
        let instance = described();
        match conditions(&vjp.head, &mut bindings, &mut builder) {
            Ok(true) => fired = true,
            Ok(false) => continue,
            Err(error) => {
                bag.push(ill_typed(&vjp.head, &error, &instance));
                return;
            }
        }
        ahead.spend(1 + vjp.head.extent.calls as usize);
        for (i, ty) in types.iter().enumerate() {
            let conclusion = vjp.conclusion(operator.signature(), i, types.len(), &mut bindings);
            let Some(Conclusion::Cotangent(term)) = conclusion else { continue };
            let param = operator.signature().param_of(i, types.len()).0;
            // Integers and Bools carry no cotangent: such an operand is never active, and its conclusion never used.
            if !ty.dtype.is_float() {
                if ever_float(operator, param) {
                    continue;
                }
                let shown = vjp.operands.get(param).map_or("", |v| &vjp.head.vars[v.0 as usize].name);
                bag.push(
                    Diagnostic::error(
                        "E0407",
                        format!("`{shown}` of `{}` is {}: it carries no cotangent", operator.name(), ty.dtype),
                    )
                    .at(term.span, "a cotangent for an operand that is not float")
                    .help(format!("conclude `g_{shown} = none`")),
                );
                return;
            }
            bindings.expected = Some(ty.clone());
            let before = bindings.steps();
            let built = bindings.build(term, &mut builder);
            ahead.spend(bindings.steps() - before);
            match built {
                Ok(value) => {
                    let found = super::term::Builder::ty(&builder, value);
                    if found != *ty {
                        bag.push(wrong_type(&vjp.head, term.span, ty, &found, &instance));
                        return;
                    }
                }
                Err(error) => {
                    bag.push(ill_typed(&vjp.head, &error, &instance));
                    return;
                }
            }
        }
        for kink in &vjp.kinks {
            let ty = &types[kink.operand];
            if ty.dtype.is_float()
                && let Some(fault) = ill_typed_kink(vjp, kink, ty, &mut bindings, &mut builder, &instance)
            {
                bag.push(fault);
                return;
            }
        }
    }
    if !fired {
        bag.push(
            Diagnostic::warning(
                "E0413",
                format!("`{}` fires on no instance of `{}`", vjp.head.rule.name, operator.name()),
            )
            .at(vjp.head.span, "never used")
            .help("relax its `where` lines and fixed attributes, or remove it"),
        );
    }
}

/// The condition of a kink is a Bool for each element of the operand, its value a cotangent of the operand.
fn ill_typed_kink<'r>(
    vjp: &'r Vjp,
    kink: &'r Kink,
    ty: &TensorType,
    bindings: &mut Bindings<'r, usize>,
    builder: &mut TypeBuilder<'_>,
    instance: &str,
) -> Option<Diagnostic> {
    for (term, wanted) in [(&kink.condition, ty.with_dtype(DType::Bool)), (&kink.value, ty.clone())] {
        bindings.expected = Some(ty.clone());
        match bindings.build(term, builder) {
            Ok(value) => {
                let found = super::term::Builder::ty(builder, value);
                if found != wanted {
                    return Some(wrong_type(&vjp.head, term.span, &wanted, &found, instance));
                }
            }
            Err(error) => return Some(ill_typed(&vjp.head, &error, instance)),
        }
    }
    None
}

/// Is an operand of that parameter a float tensor in some instance?
fn ever_float(operator: &dyn Operator, param: usize) -> bool {
    operator.instances().iter().any(|(types, _)| {
        let parts = operator.signature().split(types);
        parts.get(param).is_some_and(|part| part.iter().any(|ty| ty.dtype.is_float()))
    })
}

/// Checks that the right side of a rewrite has the type of its left side wherever the left side matches.
pub fn rewrite(rewrite: &Rewrite, registry: &Registry, ahead: &mut Ahead, bag: &mut Diagnostics) {
    if !ahead.begins(&rewrite.head) {
        return;
    }
    let mut search = Search::new(rewrite, registry);
    search.run();
    ahead.spend(search.steps);
    if let Some(diagnostic) = search.failure {
        bag.push(diagnostic);
    } else if search.instances.is_empty() {
        bag.push(
            Diagnostic::warning("E0413", format!("no instance was found on which `{}` fires", rewrite.head.rule.name))
                .at(rewrite.head.span, "its types could not be checked ahead; they are whenever it fires")
                .help("if it can never fire, relax its `where` lines or remove it"),
        );
    }
}

/// Metavariables bound so that the left side of a rewrite is well-typed and its `where` lines hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// By metavariable.
    pub tensors: Vec<Option<TensorType>>,
    pub attrs: Vec<Option<AttrValue>>,
}

/// Instances over varied types, at most so many: each search begins with other types. Empty for a rewrite that is ill-typed or
/// of which no instance was found.
pub fn instances(rewrite: &Rewrite, registry: &Registry, most: usize) -> Vec<Instance> {
    let mut all: Vec<Instance> = Vec::new();
    let types = pool().len();
    // Neighbours of the pool are alike, so a stride that meets all of them.
    for turn in (0..types).map(|i| i * 5 % types) {
        let mut search = Search::new(rewrite, registry);
        search.pool.rotate_left(turn);
        search.turn = turn;
        search.limits = (VARIED_STEPS, 2);
        search.values = true;
        search.run();
        if search.failure.is_some() {
            return Vec::new();
        }
        for instance in search.instances {
            if !all.contains(&instance) {
                all.push(instance);
            }
        }
        if all.len() >= most {
            all.truncate(most);
            break;
        }
    }
    all
}

/// Binds attribute metavariables; false if a fixed attribute differs.
pub fn bind_attrs<V: Copy>(patterns: &[AttrPattern], values: &[AttrValue], bindings: &mut Bindings<'_, V>) -> bool {
    patterns.iter().zip(values).all(|(pattern, value)| match pattern {
        AttrPattern::Const(wanted) => wanted == value,
        AttrPattern::Var(v) => {
            bindings.bind_attr(*v, value.clone());
            true
        }
    })
}

/// Are all `where` lines true?
pub fn conditions<B: super::term::Builder>(
    head: &RuleHead,
    bindings: &mut Bindings<'_, B::Value>,
    builder: &mut B,
) -> Result<bool, TermError> {
    for condition in &head.conditions {
        if !bindings.condition(condition, builder)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn describe(head: &RuleHead, bindings: &Bindings<'_, usize>, builder: &TypeBuilder<'_>) -> String {
    let mut parts = Vec::new();
    for (i, var) in head.vars.iter().enumerate() {
        if var.kind == VarKind::Tensors {
            let types = bindings.tensors_of(VarId(i as u32)).iter();
            let types: Vec<String> = types.map(|v| super::term::Builder::ty(builder, *v).to_string()).collect();
            parts.push(format!("{}: [{}]", var.name, types.join(", ")));
        } else if let Some(value) = bindings.tensors[i] {
            parts.push(format!("{}: {}", var.name, super::term::Builder::ty(builder, value)));
        } else if let Some(value) = &bindings.attrs[i] {
            parts.push(format!("{} = {value}", var.name));
        }
    }
    parts.join(", ")
}

fn ill_typed(head: &RuleHead, error: &TermError, instance: &str) -> Diagnostic {
    let d = Diagnostic::error("E0407", format!("`{}` is ill-typed: {error}", head.rule.name))
        .at(error.span, "ill-typed here")
        .note(format!("for {instance}"));
    match &error.cause {
        TermErrorCause::Type(error) => d.help(type_help(error)),
        TermErrorCause::Attr(_) => d.help("restrict the rule with `where`, or mend this expression"),
    }
}

/// The way out of a call that is ill-typed, in the words of rules.
fn type_help(error: &TypeError) -> String {
    match (error.kind, &error.help) {
        (TypeErrorKind::Shape, _) => {
            "nothing is stretched by itself: `broadcast(.., shape(x))` does it, after a sum with `keepdims=true` or a \
             `reshape(.., ones_at(shape(x), axis))`"
                .into()
        }
        (_, Some(help)) => help.clone(),
        (_, None) => "restrict the rule with `where`, or mend this expression".to_owned(),
    }
}

fn wrong_type(head: &RuleHead, span: Span, wanted: &TensorType, found: &TensorType, instance: &str) -> Diagnostic {
    Diagnostic::error("E0407", format!("`{}` concludes {found}, but {wanted} is wanted", head.rule.name))
        .at(span, format!("this is {found}"))
        .note(format!("for {instance}"))
        .help(if wanted.dtype != found.dtype {
            "the dtypes must agree: `select(mask, a, b)` takes elements by a mask, `cast` converts"
        } else {
            "the shapes must agree: `broadcast` stretches, `sum` and `reshape` drop dimensions"
        })
}

/// A backtracking search for instances of a left side.
struct Search<'r> {
    rule: &'r Rewrite,
    registry: &'r Registry,
    tensors: Vec<Option<TensorType>>,
    attrs: Vec<Option<AttrValue>>,
    pool: Vec<TensorType>,
    /// Attribute values are tried from another one on in every search.
    turn: usize,
    /// Are instances looked for to compute values, and not only types?
    values: bool,
    /// Of steps and of instances.
    limits: (usize, usize),
    steps: usize,
    instances: Vec<Instance>,
    failure: Option<Diagnostic>,
}

/// A step of the search: choose a variable, or type an operator from what the stack has.
enum Step<'r> {
    Tensor(VarId),
    Attr(VarId, AttrKind),
    Apply(&'r Pattern),
}

impl<'r> Search<'r> {
    fn new(rule: &'r Rewrite, registry: &'r Registry) -> Self {
        let vars = rule.head.vars.len();
        Self {
            rule,
            registry,
            tensors: vec![None; vars],
            attrs: vec![None; vars],
            pool: pool(),
            turn: 0,
            values: false,
            limits: (STEPS, INSTANCES),
            steps: 0,
            instances: Vec::new(),
            failure: None,
        }
    }

    fn run(&mut self) {
        let mut plan = Vec::new();
        let rule = self.rule;
        plan_pattern(&rule.left, self.registry, &mut plan);
        self.step(&plan, &mut Vec::new());
    }

    fn done(&self) -> bool {
        self.steps > self.limits.0 || self.instances.len() >= self.limits.1 || self.failure.is_some()
    }

    /// Tries all ways to complete the plan; `stack` has the types of finished sub-patterns.
    fn step(&mut self, plan: &[Step<'r>], stack: &mut Vec<TensorType>) {
        self.steps += 1;
        if self.done() {
            return;
        }
        let Some((first, rest)) = plan.split_first() else {
            if let Some(ty) = stack.last().cloned() {
                self.conclude(&ty);
            }
            return;
        };
        match first {
            Step::Tensor(v) => {
                let index = v.0 as usize;
                if let Some(ty) = self.tensors[index].clone() {
                    stack.push(ty);
                    self.step(rest, stack);
                    stack.pop();
                    return;
                }
                // Types that already occur come first: most operators want equal ones.
                let bound: Vec<TensorType> = self.tensors.iter().flatten().cloned().collect();
                let pool: Vec<TensorType> = bound.into_iter().chain(self.pool.iter().cloned()).collect();
                for ty in pool {
                    if self.done() {
                        return;
                    }
                    self.tensors[index] = Some(ty.clone());
                    stack.push(ty);
                    self.step(rest, stack);
                    stack.pop();
                    self.tensors[index] = None;
                }
            }
            Step::Attr(v, kind) => {
                let index = v.0 as usize;
                if self.attrs[index].is_some() {
                    self.step(rest, stack);
                    return;
                }
                let mut values = attr_pool(*kind, &self.pool);
                // Each from another one on, so that not all are equal first.
                let turn = self.turn * (index + 1) % values.len().max(1);
                values.rotate_left(turn);
                // What a `where` line says that it is comes first: by chance it would hardly be met.
                if let Some(value) = self.stated(*v) {
                    values.insert(0, value);
                }
                for value in values {
                    if self.done() {
                        return;
                    }
                    self.attrs[index] = Some(value);
                    self.step(rest, stack);
                    self.attrs[index] = None;
                }
            }
            Step::Apply(pattern) => {
                let Pattern::Op { op, operands, attrs } = pattern else { return };
                let mut values = Vec::with_capacity(attrs.len());
                for attr in attrs {
                    match attr {
                        AttrPattern::Const(v) => values.push(v.clone()),
                        AttrPattern::Var(v) => match &self.attrs[v.0 as usize] {
                            Some(value) => values.push(value.clone()),
                            None => return,
                        },
                    }
                }
                let from = stack.len() - operands.len();
                let types: Vec<&TensorType> = stack[from..].iter().collect();
                let Ok(ty) = self.registry.infer(*op, &types, &values) else { return };
                let taken = stack.split_off(from);
                stack.push(ty);
                self.step(rest, stack);
                stack.pop();
                stack.extend(taken);
            }
        }
    }

    /// The value that `where` lines give an attribute by an equation, as far as it can be computed from what is chosen already.
    fn stated(&self, var: VarId) -> Option<AttrValue> {
        let head = &self.rule.head;
        let mut equations: Vec<&AttrTerm> = head.conditions.iter().collect();
        while let Some(condition) = equations.pop() {
            let AttrTermKind::Binary(op, a, b) = &condition.kind else { continue };
            match op {
                BinaryOp::And => equations.extend([&**a, &**b]),
                BinaryOp::Eq => {
                    let is_var = |t: &AttrTerm| t.kind == AttrTermKind::Var(var);
                    let other = match (is_var(a), is_var(b)) {
                        (true, false) => b,
                        (false, true) => a,
                        _ => continue,
                    };
                    let mut builder = TypeBuilder::new(self.registry);
                    let mut bindings = Bindings::new(head.vars.len(), &head.locals);
                    for (slot, ty) in bindings.tensors.iter_mut().zip(&self.tensors) {
                        *slot = ty.as_ref().map(|ty| builder.given(ty.clone()));
                    }
                    bindings.attrs.clone_from(&self.attrs);
                    if let Ok(value) = bindings.attr(other, &mut builder) {
                        return Some(value);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The left side is well-typed: the right side must have its type.
    fn conclude(&mut self, left: &TensorType) {
        let mut builder = TypeBuilder::new(self.registry);
        let mut bindings = Bindings::new(self.rule.head.vars.len(), &self.rule.head.locals);
        let fires = self.fires(left, &mut bindings, &mut builder);
        self.steps += bindings.steps() + self.rule.head.extent.calls as usize;
        let Some(instance) = fires else { return };
        // Over no elements there is nothing to compare.
        if self.values && left.shape.elements() == 0 {
            return;
        }
        self.instances.push(Instance { tensors: self.tensors.clone(), attrs: self.attrs.clone() });
        self.failure = match bindings.build(&self.rule.right, &mut builder) {
            Ok(value) => {
                let found = super::term::Builder::ty(&builder, value);
                (found != *left).then(|| wrong_type(&self.rule.head, self.rule.right.span, left, &found, &instance))
            }
            Err(error) => Some(ill_typed(&self.rule.head, &error, &instance)),
        };
    }

    /// Binds what the search chose; the instance in words if the rule fires on it.
    fn fires(
        &mut self,
        left: &TensorType,
        bindings: &mut Bindings<'r, usize>,
        builder: &mut TypeBuilder<'r>,
    ) -> Option<String> {
        for (i, ty) in self.tensors.iter().enumerate() {
            bindings.tensors[i] = ty.as_ref().map(|ty| builder.given(ty.clone()));
        }
        bindings.attrs.clone_from(&self.attrs);
        bindings.expected = Some(left.clone());
        let head = &self.rule.head;
        match conditions(head, bindings, builder) {
            Ok(true) => Some(describe(head, bindings, builder)),
            Ok(false) => None,
            Err(error) => {
                self.failure = Some(ill_typed(head, &error, &describe(head, bindings, builder)));
                None
            }
        }
    }
}

/// Operands first, attributes right before the operator that needs them.
fn plan_pattern<'r>(pattern: &'r Pattern, registry: &Registry, plan: &mut Vec<Step<'r>>) {
    match pattern {
        Pattern::Var(v) => plan.push(Step::Tensor(*v)),
        Pattern::Op { op, operands, attrs } => {
            for operand in operands {
                plan_pattern(operand, registry, plan);
            }
            for (attr, (_, kind, _)) in attrs.iter().zip(registry.op(*op).signature().attrs()) {
                if let AttrPattern::Var(v) = attr {
                    plan.push(Step::Attr(*v, kind));
                }
            }
            plan.push(Step::Apply(pattern));
        }
    }
}

/// Types of ranks 0 to 4, with size-1 dimensions and square matrices.
fn pool() -> Vec<TensorType> {
    let shapes: [&[u64]; 14] = [
        &[2, 3],
        &[2, 3, 4],
        &[],
        &[3],
        &[2, 1],
        &[1, 3],
        &[3, 3],
        &[2, 3, 1],
        &[2, 1, 4],
        &[2, 4],
        &[3, 4],
        &[1],
        &[2, 3, 4, 2],
        &[2],
    ];
    let mut out = Vec::new();
    for dtype in [DType::F32, DType::I64, DType::Bool, DType::F64] {
        for shape in shapes {
            if let Ok(shape) = Shape::new(shape.to_vec()) {
                out.push(TensorType::new(dtype, shape, Placement::Host));
            }
        }
    }
    out
}

/// Values that an attribute of a kind may have over tensors of these types.
pub fn attr_pool(kind: AttrKind, types: &[TensorType]) -> Vec<AttrValue> {
    match kind {
        AttrKind::Bool => vec![AttrValue::Bool(false), AttrValue::Bool(true)],
        AttrKind::Int => (0..3).map(AttrValue::Int).collect(),
        AttrKind::Float => vec![AttrValue::float(2.0), AttrValue::float(1.0)],
        AttrKind::Axis | AttrKind::NewAxis => (0..4).map(AttrValue::Int).collect(),
        AttrKind::Axes => {
            let lists: [&[i64]; 9] = [&[1], &[0], &[2], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2], &[3], &[]];
            lists.into_iter().map(|l| AttrValue::Ints(l.to_vec())).collect()
        }
        AttrKind::Shape => {
            let mut shapes: Vec<AttrValue> =
                types.iter().map(|t| AttrValue::Ints(t.shape.iter().map(|d| *d as i64).collect())).collect();
            shapes.dedup();
            shapes.truncate(14);
            shapes
        }
        AttrKind::PerAxis => {
            let lists: [&[i64]; 12] = [
                &[0, 0],
                &[1, 1],
                &[2, 3],
                &[0],
                &[1],
                &[2],
                &[0, 0, 0],
                &[1, 1, 1],
                &[2, 3, 4],
                &[0, 1],
                &[0, 1, 2],
                &[1, 0],
            ];
            lists.into_iter().map(|l| AttrValue::Ints(l.to_vec())).collect()
        }
        AttrKind::Permutation => {
            let lists: [&[i64]; 6] = [&[1, 0], &[0, 2, 1], &[2, 0, 1], &[0, 1], &[0], &[0, 1, 2]];
            lists.into_iter().map(|l| AttrValue::Ints(l.to_vec())).collect()
        }
        AttrKind::DType => DType::ALL.into_iter().map(AttrValue::DType).collect(),
        // A left side has the word itself.
        AttrKind::Word => Vec::new(),
        AttrKind::Type => types.iter().cloned().map(AttrValue::Type).collect(),
    }
}
