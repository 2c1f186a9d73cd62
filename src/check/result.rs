//! The program as a whole: its value, its outputs, the names of its inputs.

use std::sync::Arc;

use super::CheckOptions;
use super::eval::Checker;
use super::value::Value;
use crate::diagnostics::{Diagnostic, Span};
use crate::ir::{NodeId, Output};
use crate::syntax::ast::{Expr, ExprKind};

impl<'a> Checker<'a> {
    /// Evaluates a program and names its results.
    pub fn program(&mut self, body: &'a Expr, options: &CheckOptions) {
        let value = self.eval(body);
        if options.cotangent_input && value != Value::Poison {
            self.cotangent_input(body.span);
        }
        self.name_inputs();
        let span = last_expression(body).span;
        match value {
            Value::Poison => {}
            Value::Tensor(id) => self.output("result".into(), id),
            Value::Tuple(t) => {
                let tuple = self.tuples[t].clone();
                for (i, element) in tuple.elements.iter().enumerate() {
                    let name = match &tuple.names {
                        Some(names) => names.get(i).cloned().unwrap_or_else(|| format!("result_{i}").into()),
                        None => format!("result_{i}").into(),
                    };
                    match element {
                        Value::Tensor(id) => self.output(name, *id),
                        Value::Poison => {}
                        other => {
                            self.not_a_result(*other, span);
                        }
                    }
                }
            }
            other => {
                self.not_a_result(other, span);
            }
        }
        self.uncalled();
    }

    fn output(&mut self, name: Arc<str>, node: NodeId) {
        self.graph.outputs.push(Output { name, node });
    }

    fn not_a_result(&mut self, value: Value, span: Span) -> Value {
        let what = self.describe(value);
        let help = match value {
            Value::Literal(literal) => format!("give it the type of a tensor: `splat({literal}, like=x)`"),
            Value::Function(_) => "call the function, or `handle` it".to_owned(),
            Value::Tuple(_) => "take the inner tuple apart: `let (a, b) = .. in`".to_owned(),
            _ => "a program returns a tensor or a tuple of tensors".to_owned(),
        };
        self.report(Diagnostic::error("E0219", format!("a program cannot return {what}")).at(span, what).help(help))
    }

    /// Inputs that no `let` names are `input_0`, `input_1`, ..
    fn name_inputs(&mut self) {
        let mut number = 0;
        for id in self.graph.inputs.clone() {
            if self.graph.node(id).name.is_some() {
                continue;
            }
            let name = loop {
                let name = format!("input_{number}");
                number += 1;
                if !self.has_input(&name) {
                    break name;
                }
            };
            self.graph.node_mut(id).name = Some(name.into());
        }
    }
}

/// What a chain of `let`s evaluates to.
fn last_expression(expr: &Expr) -> &Expr {
    let mut expr = expr;
    while let ExprKind::Block(_, body) = &expr.kind {
        expr = body;
    }
    expr
}
