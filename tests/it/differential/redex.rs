//! Left sides of rewrites as programs, so that every rewrite of the rule files has something to do.

use std::collections::BTreeMap;

use kina_ad::ir::attr::format_float;
use kina_ad::ir::operator::Visibility;
use kina_ad::ir::{AttrKind, AttrValue, OpId, TensorType};
use kina_ad::rules::term::VarId;
use kina_ad::rules::{AttrPattern, Pattern, Rewrite, RuleSet};

use super::build::{Builder, host};
use super::call::{FLOATS, Plan, attribute, operand_types};
use super::script::Numbers;

/// Can a program write the left side?
pub fn is_writable(rules: &RuleSet, pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Var(_) => true,
        Pattern::Op { op, operands, .. } => {
            rules.registry.op(*op).visibility() == Visibility::Surface && operands.iter().all(|o| is_writable(rules, o))
        }
    }
}

/// What the metavariables stand for.
#[derive(Default)]
struct Bound {
    tensors: BTreeMap<VarId, usize>,
    attrs: BTreeMap<VarId, AttrValue>,
}

impl Builder<'_> {
    /// Writes the left side of a rewrite with operands that the numbers choose. (Where they do not fit together, only a
    /// part of it.)
    pub fn redex(&mut self, rewrite: &Rewrite, numbers: &mut Numbers<'_>) {
        let wish = match self.favourite(numbers).filter(|f| self.values[*f].ty.dtype.is_float()) {
            Some(place) => self.values[place].ty.clone(),
            None => host(kina_ad::ir::DType::F32, self.dims(numbers)),
        };
        self.pattern(&rewrite.left, &wish, &mut Bound::default(), numbers);
    }

    /// A value of the form of a pattern; of the wished type, if the form allows it.
    fn pattern(
        &mut self,
        pattern: &Pattern,
        wish: &TensorType,
        bound: &mut Bound,
        numbers: &mut Numbers<'_>,
    ) -> Option<usize> {
        match pattern {
            Pattern::Var(var) => {
                if let Some(place) = bound.tensors.get(var) {
                    return Some(*place);
                }
                let place = self.operand(wish, numbers);
                bound.tensors.insert(*var, place);
                Some(place)
            }
            Pattern::Op { op, operands, attrs } => self.form(*op, operands, attrs, wish, bound, numbers),
        }
    }

    fn form(
        &mut self,
        op: OpId,
        patterns: &[Pattern],
        attrs: &[AttrPattern],
        wish: &TensorType,
        bound: &mut Bound,
        numbers: &mut Numbers<'_>,
    ) -> Option<usize> {
        let vocabulary = self.vocabulary;
        let name = vocabulary.rules.registry.op(op).name();
        let callee = vocabulary.callees.iter().find(|c| c.name == name)?;
        let mut operands = Vec::new();
        if let Some(first) = patterns.first() {
            operands.push(self.pattern(first, wish, bound, numbers)?);
        }
        let base = operands.first().map_or(wish, |first| &self.values[*first].ty).clone();
        let mut values = Vec::new();
        for ((name, kind, _), pattern) in callee.signature.attrs().zip(attrs) {
            let mut draw = || match kind {
                AttrKind::Float => AttrValue::float(*numbers.pick(&FLOATS)),
                _ => {
                    let reshaping = matches!(callee.name.as_str(), "reshape" | "squeeze");
                    attribute(name, kind, &base, reshaping, numbers)
                }
            };
            values.push(match pattern {
                AttrPattern::Const(value) => value.clone(),
                AttrPattern::Var(var) => bound.attrs.entry(*var).or_insert_with(&mut draw).clone(),
            });
        }
        if name == "splat" {
            let value = values.first().and_then(AttrValue::as_float)?;
            let like = self.operand(&base, numbers);
            let like = self.used(like);
            return Some(self.bind(&format!("splat({}, like={like})", format_float(value)), base));
        }
        let types = operand_types(callee, &base, &values, numbers);
        let plan = Plan::typed(vocabulary, callee, types, values)?;
        let limit = vocabulary.bound(callee, &plan.operands, &plan.attrs);
        for (i, ty) in plan.operands.iter().enumerate().skip(1) {
            let place = match (patterns.get(i)?, limit.filter(|l| l.operand == i)) {
                (Pattern::Var(_), Some(limit)) => self.indices(ty, limit.size, numbers),
                (pattern, _) => self.pattern(pattern, ty, bound, numbers)?,
            };
            operands.push(place);
        }
        let fits = operands.iter().zip(&plan.operands).all(|(place, ty)| self.values[*place].ty == *ty);
        if !fits {
            return None;
        }
        let text = self.written(callee, &plan, &operands, &mut Numbers::new(&[]));
        Some(self.bind(&text, plan.result))
    }
}
