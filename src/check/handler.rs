//! `handle f(..) with reverseMode`.

use std::sync::Arc;

use super::eval::Checker;
use super::value::{TupleValue, Value};
use crate::diagnostics::{Diagnostic, Span};
use crate::ir::{Handler, HandlerParam, Node, NodeId, NodeKind, Origin};
use crate::syntax::ast::{Arg, Ident};

impl<'a> Checker<'a> {
    /// Evaluates to the flat tuple (primal, one gradient per float argument).
    pub fn handle(&mut self, callee: &Ident, args: &'a [Arg], handler: &Ident, span: Span) -> Value {
        if &*handler.name != "reverseMode" {
            self.report(
                Diagnostic::error("E0212", format!("unknown handler `{}`", handler.name))
                    .at(handler.span, "not a handler")
                    .did_you_mean(&handler.name, ["reverseMode"])
                    .help("the only handler is `reverseMode`"),
            );
        }
        let function = match self.scope.get(&callee.name) {
            Some(value) => self.local_function(callee, value),
            None if !self.first_use_of_unknown(&callee.name) => None,
            None => {
                let d = Diagnostic::error("E0201", format!("unknown function `{}`", callee.name))
                    .at(callee.span, "not bound here");
                let d = if self.registry.id(&callee.name).is_some() {
                    d.help("a handler takes a function: wrap the operator in a `fn`")
                } else {
                    let otherwise = format!("bind it first: `let {} = fn(..) {{ .. }} in`", callee.name);
                    d.did_you_mean_or(&callee.name, self.scope.names(), otherwise)
                };
                self.report(d);
                None
            }
        };
        let Some(function) = function else {
            for arg in args {
                self.eval(&arg.value);
            }
            return Value::Poison;
        };
        let Some(arguments) = self.arguments(function, callee, args) else { return Value::Poison };
        let names: Vec<Arc<str>> =
            self.functions[function].function.params.iter().map(|p| p.name.name.clone()).collect();
        let param_spans: Vec<Span> = self.functions[function].function.params.iter().map(|p| p.name.span).collect();
        let mut operands = Vec::with_capacity(arguments.len());
        let mut params: Vec<HandlerParam> = Vec::new();
        for ((argument, name), place) in arguments.iter().zip(&names).zip(param_spans) {
            let ty = self.graph.ty(*argument).clone();
            if !ty.dtype.is_float() {
                operands.push(*argument);
                continue;
            }
            // The handler's number is known once those inside the body have theirs.
            let kind = NodeKind::Param { handler: usize::MAX, index: params.len(), argument: *argument };
            let origin = Origin::Program(place);
            let node = self.graph.push(Node { kind, ty, name: Some(name.clone()), origin });
            params.push(HandlerParam { name: name.clone(), node });
            operands.push(node);
        }
        if params.is_empty() {
            return self.report(
                Diagnostic::error("E0215", "nothing to differentiate with respect to")
                    .at(span, "no argument is a float tensor")
                    .help("pass the tensors to differentiate as F32 or F64 arguments"),
            );
        }
        let value = self.inline(function, operands);
        let primal = match value {
            Value::Tensor(id) if self.graph.ty(id).dtype.is_float() => id,
            Value::Poison => return Value::Poison,
            other => {
                let what = self.describe(other);
                return self.report(
                    Diagnostic::error(
                        "E0216",
                        format!("reverse mode needs a function of one float tensor, not of {what}"),
                    )
                    .at(callee.span, format!("its value is {what}"))
                    .help("return the tensor to differentiate"),
                );
            }
        };
        let index = self.graph.handlers.len();
        for param in &params {
            if let NodeKind::Param { handler, .. } = &mut self.graph.node_mut(param.node).kind {
                *handler = index;
            }
        }
        let mut elements = vec![Value::Tensor(primal)];
        let mut result_names: Vec<Arc<str>> = vec!["primal".into()];
        for (i, param) in params.iter().enumerate() {
            let ty = self.graph.ty(param.node).clone();
            let kind = NodeKind::Gradient { handler: index, index: i };
            let id = self.graph.push(Node { kind, ty, name: None, origin: Origin::Handler(span) });
            elements.push(Value::Tensor(id));
            result_names.push(format!("g_{}", param.name).into());
        }
        self.graph.handlers.push(Handler { primal, params, span, cotangent: None });
        self.tuple(TupleValue { elements, names: Some(result_names) })
    }

    /// Adds the input `cotangent` to the last handler.
    pub fn cotangent_input(&mut self, span: Span) {
        let Some(last) = self.graph.handlers.last() else {
            self.report(
                Diagnostic::error("E0217", "a cotangent input was asked for, but the program has no handler")
                    .at(span, "nothing is differentiated here")
                    .help("leave `--cotangent input` out, or add `handle f(..) with reverseMode`"),
            );
            return;
        };
        let (primal, place): (NodeId, Span) = (last.primal, last.span);
        if self.has_input("cotangent") {
            self.report(
                Diagnostic::error("E0204", "the program already has an input named `cotangent`")
                    .at(place, "its cotangent would have the same name")
                    .help("rename the program's input"),
            );
            return;
        }
        let ty = self.graph.ty(primal).clone();
        let id = self.push_input(ty, Some("cotangent".into()), place);
        if let Some(handler) = self.graph.handlers.last_mut() {
            handler.cotangent = Some(id);
        }
    }
}
