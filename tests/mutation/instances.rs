//! Types and attributes over which rules are compared.

use kina_ad::ir::{AttrKind, AttrValue, DType, Param, Placement, Registry, Shape, TensorType};
use kina_ad::rules::{AttrPattern, Pattern, Rewrite, RuleSet, VarKind};

use super::build::{Instance, Sides, sides};

/// Steps of the search, and instances after which it ends.
const STEPS: usize = 40_000;
const INSTANCES: usize = 16;

pub fn tensor(dtype: DType, shape: &[u64]) -> TensorType {
    TensorType::new(dtype, Shape::new(shape.to_vec()).expect("a small shape"), Placement::Host)
}

/// The instances on which a rewrite fires, built.
pub fn of_rewrite(rewrite: &Rewrite, rules: &RuleSet) -> Vec<Sides> {
    let vars = rewrite.head.vars.len();
    let mut search = Search {
        rewrite,
        rules,
        instance: Instance { tensors: vec![None; vars], attrs: vec![None; vars] },
        steps: 0,
        found: Vec::new(),
    };
    let mut plan = Vec::new();
    plan_pattern(&rewrite.left, &rules.registry, &mut plan);
    search.step(&plan, &mut Vec::new());
    search.found
}

enum Step<'r> {
    Tensor(usize),
    Attr(usize, AttrKind),
    Apply(&'r Pattern),
}

fn plan_pattern<'r>(pattern: &'r Pattern, registry: &Registry, plan: &mut Vec<Step<'r>>) {
    match pattern {
        Pattern::Var(v) => plan.push(Step::Tensor(v.0 as usize)),
        Pattern::Op { op, operands, attrs } => {
            operands.iter().for_each(|o| plan_pattern(o, registry, plan));
            for (attr, (_, kind, _)) in attrs.iter().zip(registry.op(*op).signature().attrs()) {
                if let AttrPattern::Var(v) = attr {
                    plan.push(Step::Attr(v.0 as usize, kind));
                }
            }
            plan.push(Step::Apply(pattern));
        }
    }
}

struct Search<'r> {
    rewrite: &'r Rewrite,
    rules: &'r RuleSet,
    instance: Instance,
    steps: usize,
    found: Vec<Sides>,
}

impl<'r> Search<'r> {
    fn step(&mut self, plan: &[Step<'r>], stack: &mut Vec<TensorType>) {
        self.steps += 1;
        if self.steps > STEPS || self.found.len() >= INSTANCES {
            return;
        }
        let Some((first, rest)) = plan.split_first() else {
            self.found.extend(sides(self.rewrite, self.rules, &self.instance));
            return;
        };
        match first {
            Step::Tensor(v) => {
                let choices = match &self.instance.tensors[*v] {
                    Some(ty) => vec![ty.clone()],
                    None => {
                        // What occurs already comes first: most operators want equal types.
                        let bound = self.instance.tensors.iter().flatten().cloned();
                        bound.chain(pool()).collect()
                    }
                };
                let old = self.instance.tensors[*v].clone();
                for ty in choices {
                    self.instance.tensors[*v] = Some(ty.clone());
                    stack.push(ty);
                    self.step(rest, stack);
                    stack.pop();
                }
                self.instance.tensors[*v] = old;
            }
            Step::Attr(v, kind) => {
                let old = self.instance.attrs[*v].clone();
                let choices = old.clone().map_or_else(|| attr_pool(*kind), |value| vec![value]);
                for value in choices {
                    self.instance.attrs[*v] = Some(value);
                    self.step(rest, stack);
                }
                self.instance.attrs[*v] = old;
            }
            Step::Apply(Pattern::Op { op, operands, attrs }) => {
                let values: Option<Vec<AttrValue>> = attrs
                    .iter()
                    .map(|a| match a {
                        AttrPattern::Const(v) => Some(v.clone()),
                        AttrPattern::Var(v) => self.instance.attrs[v.0 as usize].clone(),
                    })
                    .collect();
                let (Some(values), Some(from)) = (values, stack.len().checked_sub(operands.len())) else { return };
                // Graphs have constants as their dtype has them.
                if self.rules.registry.op(*op).canonical(&values).is_some_and(|canonical| canonical != values) {
                    return;
                }
                let types: Vec<&TensorType> = stack[from..].iter().collect();
                let Ok(ty) = self.rules.registry.infer(*op, &types, &values) else { return };
                let taken = stack.split_off(from);
                stack.push(ty);
                self.step(rest, stack);
                stack.pop();
                stack.extend(taken);
            }
            Step::Apply(Pattern::Var(_)) => {}
        }
    }
}

const SHAPES: [&[u64]; 12] =
    [&[2, 3], &[3], &[2, 3, 4], &[], &[2, 1], &[1, 3], &[3, 3], &[2, 3, 1], &[2, 1, 4], &[4], &[1], &[2, 3, 2, 2]];

fn pool() -> impl Iterator<Item = TensorType> {
    let dtypes = [DType::F32, DType::F64, DType::I64, DType::Bool];
    SHAPES.iter().flat_map(move |shape| dtypes.into_iter().map(move |dtype| tensor(dtype, shape)))
}

fn attr_pool(kind: AttrKind) -> Vec<AttrValue> {
    let ints = |lists: &[&[i64]]| lists.iter().map(|l| AttrValue::Ints(l.to_vec())).collect();
    match kind {
        AttrKind::Bool => vec![AttrValue::Bool(false), AttrValue::Bool(true)],
        AttrKind::Int => (0..3).map(AttrValue::Int).collect(),
        // Also the ends of I32, beyond which constants have no value.
        AttrKind::Float => [2.5, 1.0, -3.0, 0.0, -0.0, 2147483647.0, -2147483648.0].map(AttrValue::float).to_vec(),
        AttrKind::Axis | AttrKind::NewAxis => (0..4).map(AttrValue::Int).collect(),
        AttrKind::Axes => ints(&[&[1], &[0], &[2], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2], &[]]),
        AttrKind::Shape => SHAPES
            .iter()
            .map(|s| AttrValue::Ints(s.iter().map(|d| *d as i64).collect()))
            .chain(ints(&[&[6], &[3, 2], &[4, 3, 2], &[12], &[2, 2, 3]]))
            .collect(),
        AttrKind::Permutation => ints(&[&[1, 0], &[0, 2, 1], &[2, 0, 1], &[1, 2, 0], &[0, 1], &[0], &[0, 1, 2]]),
        AttrKind::PerAxis => {
            ints(&[&[1, 1], &[0, 1], &[1, 2], &[0], &[1], &[2], &[0, 1, 0], &[1, 1, 1], &[2, 3], &[3]])
        }
        // Words belong to their parameter.
        AttrKind::Word => Vec::new(),
        AttrKind::DType => DType::ALL.into_iter().map(AttrValue::DType).collect(),
        AttrKind::Type => pool().map(AttrValue::Type).collect(),
    }
}

/// Types and attributes of calls of a `def`, in F64: operands of few shapes that its body accepts.
pub fn of_def(name: &str, rules: &RuleSet) -> Vec<(Vec<TensorType>, Vec<AttrValue>)> {
    let Some(def) = rules.def(name) else { return Vec::new() };
    let operands = def.params.iter().filter(|v| def.head.vars[v.0 as usize].kind == VarKind::Tensor).count();
    // All defaults first, then each attribute changed by itself.
    let lists: Vec<Vec<AttrValue>> = def
        .signature
        .params()
        .iter()
        .filter_map(|param| match param {
            Param::Attr { kind, default, words, .. } => Some((*kind, default, words)),
            _ => None,
        })
        .enumerate()
        .map(|(i, (kind, default, words))| {
            let mut values = Vec::new();
            if let Some(kina_ad::ir::operator::Default::Value(v)) = default {
                values.push(v.clone());
            }
            match kind {
                AttrKind::Word => values.extend(words.iter().map(|w| AttrValue::Word(w.to_string()))),
                AttrKind::Float => values.extend([i as f64 - 0.5, 0.25, 1.0].map(AttrValue::float)),
                AttrKind::Axis => values.extend([0, 1, -1].map(AttrValue::Int)),
                other => values.extend(attr_pool(other).into_iter().take(6)),
            }
            values
        })
        .collect();
    let mut all = vec![lists.iter().filter_map(|l| l.first().cloned()).collect::<Vec<_>>()];
    for (i, list) in lists.iter().enumerate() {
        for value in list.iter().skip(1) {
            let mut changed = all[0].clone();
            if i < changed.len() {
                changed[i] = value.clone();
                all.push(changed);
            }
        }
    }
    let mut out = Vec::new();
    for shape in [&[2, 3][..], &[3], &[3, 3], &[2, 1, 3], &[]] {
        let less: Vec<u64> = shape.iter().copied().take(shape.len().saturating_sub(1)).collect();
        let last: Vec<u64> = shape.last().copied().into_iter().collect();
        let types = [
            tensor(DType::F64, shape),
            tensor(DType::I64, &less),
            tensor(DType::F64, &last),
            tensor(DType::I64, shape),
            tensor(DType::Bool, shape),
            tensor(DType::F64, &less),
        ];
        let combinations = types.len().pow(operands.min(4) as u32);
        for attrs in &all {
            for mut code in 0..combinations {
                let mut chosen = Vec::new();
                for _ in 0..operands {
                    chosen.push(types[code % types.len()].clone());
                    code /= types.len();
                }
                let mut builder = kina_ad::rules::TypeBuilder::new(&rules.registry);
                let given: Vec<usize> = chosen.iter().map(|ty| builder.given(ty.clone())).collect();
                if kina_ad::rules::term::expand(def, &given, attrs, &mut builder).is_ok() {
                    out.push((chosen, attrs.clone()));
                    break;
                }
            }
        }
    }
    out.truncate(40);
    out
}
