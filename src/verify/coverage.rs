//! Operator by operator: what the rules cover.

use std::collections::BTreeMap;

use super::report::{Report, bucket};
use super::statics::{Orders, orders};
use crate::ir::RuleRef;
use crate::rules::RuleSet;

/// One operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub operator: String,
    /// Its primary VJP.
    pub rule: Option<RuleRef>,
    /// How often it can be differentiated, in words.
    pub orders: String,
    /// `verified`, `refused`, or `-` where there is nothing to verify.
    pub verdict: &'static str,
    /// The worst relative error of its VJP, as a power of ten that bounds it.
    pub worst: Option<String>,
}

impl Row {
    /// `tanh    all orders    verified   <= 1e-9   rules/elementwise.rules:32`
    pub fn line(&self) -> String {
        format!(
            "{:20} {:34} {:9} {:8} {}\n",
            self.operator,
            self.orders,
            self.verdict,
            self.worst.as_deref().unwrap_or("-"),
            self.rule.as_ref().map_or("-", |r| &r.location),
        )
    }
}

/// All operators by name, and the composites that are differentiated through their definition.
pub fn rows(rules: &RuleSet, report: &Report) -> Vec<Row> {
    let verdicts: BTreeMap<&RuleRef, _> = report.verdicts.iter().map(|v| (&v.rule, v)).collect();
    let mut rows: Vec<Row> = Vec::new();
    for (op, orders) in orders(rules) {
        let vjp = rules.vjps(op).first();
        let verdict = vjp.and_then(|vjp| verdicts.get(&vjp.head.rule));
        rows.push(Row {
            operator: rules.registry.op(op).name().to_owned(),
            rule: vjp.map(|v| v.head.rule.clone()),
            orders: match orders {
                Orders::None if vjp.is_some_and(|v| v.not_a_derivative.is_some()) => {
                    "no derivative by intent".to_owned()
                }
                Orders::None => "nothing to differentiate".to_owned(),
                Orders::Missing => "no VJP".to_owned(),
                Orders::Until(culprit) => format!("until `{}`", rules.registry.op(culprit).name()),
                Orders::All => "all orders".to_owned(),
            },
            verdict: match verdict {
                Some(v) if v.passed() => "verified",
                Some(_) => "refused",
                None => "-",
            },
            worst: verdict.filter(|v| v.findings.points > 0).map(|v| bucket(v.findings.worst)),
        });
    }
    for def in rules.defs().filter(|d| rules.registry.id(&d.name).is_none()) {
        let verdict = verdicts.get(&def.head.rule);
        rows.push(Row {
            operator: def.name.to_string(),
            rule: Some(def.head.rule.clone()),
            orders: "through its definition".to_owned(),
            verdict: match verdict {
                Some(v) if v.passed() => "verified",
                Some(_) => "refused",
                None => "-",
            },
            worst: verdict.filter(|v| v.findings.points > 0).map(|v| bucket(v.findings.worst)),
        });
    }
    rows.sort_by(|a, b| a.operator.cmp(&b.operator));
    rows
}
