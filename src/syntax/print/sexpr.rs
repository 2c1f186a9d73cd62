//! S-expressions (`syntax::sexpr` reads them).

use std::fmt::Write;

use super::kina::dims_text;
use super::{MAX_LINE, Writer, start};
use crate::ir::attr::format_float;
use crate::syntax::ast::{Arg, Expr, ExprKind, Function, Ident, Let, Pattern, TypeExpr, UnaryOp};

/// `(tensor F32 [2 3] @host)`
fn type_text(ty: &TypeExpr) -> String {
    format!("(tensor {} [{}] @{})", ty.dtype.name, dims_text(ty, " "), ty.placement.name)
}

/// A number that is written without a sign.
fn is_unsigned(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int(value) => *value >= 0,
        ExprKind::Float(value) => value.is_nan() || value.is_sign_positive(),
        _ => false,
    }
}

impl Writer<'_> {
    pub(super) fn sexpr(&mut self, expr: &Expr, indent: usize) {
        match &expr.kind {
            ExprKind::Name(name) => self.out.push_str(name),
            ExprKind::Int(value) => {
                let _ = write!(self.out, "{value}");
            }
            ExprKind::Float(value) => self.out.push_str(&format_float(*value)),
            ExprKind::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            ExprKind::NoCotangent => self.out.push_str("none"),
            ExprKind::Input(ty) => self.out.push_str(&type_text(ty)),
            ExprKind::List(elements) => {
                self.out.push('[');
                for (i, element) in elements.iter().enumerate() {
                    if i > 0 {
                        self.out.push(' ');
                    }
                    self.sexpr(element, indent);
                }
                self.out.push(']');
            }
            ExprKind::Tuple(elements) => self.sexpr_list(",", elements, indent),
            ExprKind::Unary(UnaryOp::Neg, operand) if is_unsigned(operand) => {
                self.out.push('-');
                self.sexpr(operand, indent);
            }
            ExprKind::Unary(op, operand) => {
                self.sexpr_list(if *op == UnaryOp::Neg { "-" } else { "!" }, [&**operand], indent);
            }
            ExprKind::Binary(op, left, right) => self.sexpr_list(op.symbol(), [&**left, right], indent),
            ExprKind::If(condition, yes, no) => self.sexpr_list("if", [&**condition, yes, no], indent),
            ExprKind::Index(list, index) => self.sexpr_list("@", [&**list, index], indent),
            ExprKind::Comprehension { element, name, list, condition } => {
                let parts = [Some(&**list), condition.as_deref(), Some(&**element)];
                self.sexpr_list(&format!("for {}", name.name), parts.into_iter().flatten(), indent);
            }
            ExprKind::Call { callee, args, method } => {
                // A method without a receiver is no method; no parser makes one.
                self.sexpr_call(if *method && !args.is_empty() { "." } else { "" }, callee, args, indent);
            }
            ExprKind::Handle { callee, args, handler } => {
                self.out.push_str("(handle ");
                self.sexpr_call("", callee, args, indent);
                let _ = write!(self.out, " {})", handler.name);
            }
            ExprKind::Block(lets, body) => self.sexpr_block(lets, body, indent),
            ExprKind::Fn(function) => self.sexpr_function(function, indent),
            ExprKind::Error => self.out.push_str("<error>"),
        }
    }

    fn sexpr_list<'e>(&mut self, head: &str, parts: impl IntoIterator<Item = &'e Expr>, indent: usize) {
        self.out.push('(');
        self.out.push_str(head);
        for part in parts {
            self.out.push(' ');
            self.sexpr(part, indent);
        }
        self.out.push(')');
    }

    fn sexpr_call(&mut self, dot: &str, callee: &Ident, args: &[Arg], indent: usize) {
        let _ = write!(self.out, "({dot}{}", callee.name);
        for arg in args {
            self.out.push(' ');
            if arg.spread {
                self.out.push('*');
            }
            if let Some(name) = &arg.name {
                let _ = write!(self.out, ":{} ", name.name);
            }
            self.sexpr(&arg.value, indent);
        }
        self.out.push(')');
    }

    fn sexpr_block(&mut self, lets: &[Let], body: &Expr, indent: usize) {
        let remarks = self.enter_block();
        self.out.push_str("(let");
        self.line(indent + 2, lets.first().map_or(body.span.start, |l| start(&l.pattern)));
        self.out.push('(');
        for (i, l) in lets.iter().enumerate() {
            if i > 0 {
                self.line(indent + 3, start(&l.pattern));
            }
            match &l.pattern {
                Pattern::Name(name) => {
                    let _ = write!(self.out, "({}", name.name);
                }
                Pattern::Tuple(names, _) => {
                    let names: Vec<&str> = names.iter().map(|n| &*n.name).collect();
                    let _ = write!(self.out, "((, {})", names.join(" "));
                }
            }
            if matches!(l.value.kind, ExprKind::Block(..) | ExprKind::Fn(..)) {
                self.line(indent + 5, l.value.span.start);
                self.sexpr(&l.value, indent + 5);
            } else {
                self.out.push(' ');
                self.sexpr(&l.value, indent + 3);
            }
            self.out.push_str(if i + 1 < lets.len() { ")" } else { "))" });
            self.beside(remarks.get(i));
        }
        self.line(indent + 2, body.span.start);
        self.sexpr(body, indent + 2);
        self.out.push(')');
    }

    /// One parameter on a line where they would not fit on one.
    fn sexpr_function(&mut self, function: &Function, indent: usize) {
        let params: Vec<String> =
            function.params.iter().map(|p| format!("({} {})", p.name.name, type_text(&p.ty))).collect();
        let result = function.result.as_ref().map(|ty| format!("-> {}", type_text(ty)));
        let mut line = format!("(fn ({})", params.join(" "));
        if let Some(result) = &result {
            line = format!("{line} {result}");
        }
        if params.len() < 2 || indent + line.len() <= MAX_LINE {
            self.out.push_str(&line);
        } else {
            self.out.push_str("(fn (");
            for (i, param) in params.iter().enumerate() {
                if i > 0 {
                    self.new_line(indent + 5);
                }
                self.out.push_str(param);
            }
            self.out.push(')');
            if let Some(result) = &result {
                self.new_line(indent + 4);
                self.out.push_str(result);
            }
        }
        self.line(indent + 2, function.body.span.start);
        self.sexpr(&function.body, indent + 2);
        self.out.push(')');
    }
}
