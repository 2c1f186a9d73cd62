//! Kina text. Parentheses stand only where the grammar needs them, so that text that was within the limits of nesting
//! is so again.

use std::fmt::Write;

use super::{MAX_LINE, Writer, start};
use crate::ir::attr::format_float;
use crate::syntax::ast::{Arg, BinaryOp, Expr, ExprKind, Function, Let, Pattern, TypeExpr, UnaryOp};
use crate::syntax::expr::{COMPARISON_LEVEL, PREFIX_LEVEL, level};

/// How tightly calls by `.` and indexing bind.
const POSTFIX_LEVEL: u8 = PREFIX_LEVEL + 1;

/// How tightly the outermost part of an expression binds; 0 for what reaches as far to the right as it can.
fn strength(expr: &Expr) -> u8 {
    match &expr.kind {
        ExprKind::Block(..) | ExprKind::If(..) => 0,
        ExprKind::Binary(op, ..) => level(*op),
        ExprKind::Unary(..) => PREFIX_LEVEL,
        ExprKind::Int(value) if *value < 0 => PREFIX_LEVEL,
        ExprKind::Float(value) if value.is_sign_negative() && !value.is_nan() => PREFIX_LEVEL,
        _ => POSTFIX_LEVEL,
    }
}

/// `tensor<F32, [2, 3], @host>`
pub(super) fn type_text(ty: &TypeExpr) -> String {
    format!("tensor<{}, [{}], @{}>", ty.dtype.name, dims_text(ty, ", "), ty.placement.name)
}

/// Dimensions; one that does not fit is written as a number that does not fit.
pub(super) fn dims_text(ty: &TypeExpr, separator: &str) -> String {
    let dim = |d: &Option<u64>| d.map_or_else(|| (u128::from(u64::MAX) + 1).to_string(), |d| d.to_string());
    ty.dims.iter().map(|(d, _)| dim(d)).collect::<Vec<_>>().join(separator)
}

impl Writer<'_> {
    pub(super) fn kina(&mut self, expr: &Expr, indent: usize) {
        match &expr.kind {
            ExprKind::Name(name) => self.out.push_str(name),
            ExprKind::Int(value) => {
                let _ = write!(self.out, "{value}");
            }
            ExprKind::Float(value) => self.out.push_str(&format_float(*value)),
            ExprKind::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            ExprKind::List(elements) => self.kina_sequence('[', elements, ']', indent),
            ExprKind::Tuple(elements) => self.kina_sequence('(', elements, ')', indent),
            ExprKind::Comprehension { element, name, list, condition } => {
                self.out.push('[');
                self.kina(element, indent);
                let _ = write!(self.out, " for {} in ", name.name);
                self.kina(list, indent);
                if let Some(condition) = condition {
                    self.out.push_str(" if ");
                    self.kina(condition, indent);
                }
                self.out.push(']');
            }
            ExprKind::Call { callee, args, method } => match args.split_first() {
                Some((receiver, rest)) if *method => {
                    self.kina_operand(&receiver.value, POSTFIX_LEVEL, indent);
                    let _ = write!(self.out, ".{}", callee.name);
                    self.kina_args(rest, indent);
                }
                _ => {
                    self.out.push_str(&callee.name);
                    self.kina_args(args, indent);
                }
            },
            ExprKind::Unary(op, operand) => {
                self.out.push(if *op == UnaryOp::Neg { '-' } else { '!' });
                let behind = self.out.len();
                self.kina_operand(operand, PREFIX_LEVEL, indent);
                // Two minus signs stand apart: three would be the bar of a rule.
                if *op == UnaryOp::Neg && self.out[behind..].starts_with('-') {
                    self.out.insert(behind, ' ');
                }
            }
            ExprKind::Binary(op, left, right) => self.kina_chain(*op, left, right, indent),
            ExprKind::If(condition, yes, no) => {
                for (word, part) in [("if ", condition), (" then ", yes), (" else ", no)] {
                    self.out.push_str(word);
                    self.kina(part, indent);
                }
            }
            ExprKind::Index(list, index) => {
                self.kina_operand(list, POSTFIX_LEVEL, indent);
                self.out.push('[');
                self.kina(index, indent);
                self.out.push(']');
            }
            ExprKind::NoCotangent => self.out.push_str("none"),
            ExprKind::Block(lets, body) => self.kina_block(lets, body, indent),
            ExprKind::Fn(function) => {
                self.kina_function_head(function, indent);
                self.line(indent + 2, function.body.span.start);
                self.kina(&function.body, indent + 2);
                self.line(indent, expr.span.end);
                self.out.push('}');
            }
            ExprKind::Input(ty) => self.out.push_str(&type_text(ty)),
            ExprKind::Handle { callee, args, handler } => {
                let _ = write!(self.out, "handle {}", callee.name);
                self.kina_args(args, indent);
                let _ = write!(self.out, " with {}", handler.name);
            }
            ExprKind::Error => self.out.push_str("<error>"),
        }
    }

    fn kina_chain(&mut self, op: BinaryOp, left: &Expr, right: &Expr, indent: usize) {
        let strength = level(op);
        // Operators of one level group to the left, and comparisons do not chain.
        let of_left = if strength == COMPARISON_LEVEL { strength + 1 } else { strength };
        self.kina_operand(left, of_left, indent);
        let _ = write!(self.out, " {} ", op.symbol());
        self.kina_operand(right, strength + 1, indent);
    }

    /// An operand, in parentheses unless it binds at least as tightly as `at_least`.
    fn kina_operand(&mut self, expr: &Expr, at_least: u8, indent: usize) {
        if strength(expr) >= at_least {
            return self.kina(expr, indent);
        }
        self.out.push('(');
        self.kina(expr, indent + 1);
        self.out.push(')');
    }

    fn kina_block(&mut self, lets: &[Let], body: &Expr, indent: usize) {
        let remarks = self.enter_block();
        for (i, l) in lets.iter().enumerate() {
            if i > 0 {
                self.line(indent, start(&l.pattern));
            }
            match &l.pattern {
                Pattern::Name(name) => {
                    let _ = write!(self.out, "let {} =", name.name);
                }
                Pattern::Tuple(names, _) => {
                    let names: Vec<&str> = names.iter().map(|n| &*n.name).collect();
                    let _ = write!(self.out, "let ({}) =", names.join(", "));
                }
            }
            if let ExprKind::Block(..) = l.value.kind {
                self.line(indent + 2, l.value.span.start);
                self.kina(&l.value, indent + 2);
                self.line(indent, l.value.span.end);
            } else {
                self.out.push(' ');
                self.kina(&l.value, indent);
                self.out.push(' ');
            }
            self.out.push_str("in");
            self.beside(remarks.get(i));
        }
        self.line(indent, body.span.start);
        // A block in a block is not the same tree as a longer block.
        let at_least = u8::from(matches!(body.kind, ExprKind::Block(..)));
        self.kina_operand(body, at_least, indent);
    }

    /// From `fn` to the opening brace; one parameter on a line where it would be too long.
    fn kina_function_head(&mut self, function: &Function, indent: usize) {
        let params: Vec<String> =
            function.params.iter().map(|p| format!("{}: {}", p.name.name, type_text(&p.ty))).collect();
        let result = function.result.as_ref().map(|ty| format!(" -> {}", type_text(ty))).unwrap_or_default();
        let line = format!("fn({}){result} {{", params.join(", "));
        if params.len() < 2 || indent + line.len() <= MAX_LINE {
            self.out.push_str(&line);
            return;
        }
        self.out.push_str("fn(");
        for (i, param) in params.iter().enumerate() {
            self.new_line(indent + 4);
            self.out.push_str(param);
            self.out.push_str(if i + 1 < params.len() { "," } else { "" });
        }
        self.new_line(indent);
        let _ = write!(self.out, "){result} {{");
    }

    fn kina_args(&mut self, args: &[Arg], indent: usize) {
        self.out.push('(');
        for (i, arg) in args.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            if arg.spread {
                self.out.push('*');
            }
            if let Some(name) = &arg.name {
                let _ = write!(self.out, "{}=", name.name);
            }
            self.kina(&arg.value, indent);
        }
        self.out.push(')');
    }

    fn kina_sequence(&mut self, open: char, elements: &[Expr], close: char, indent: usize) {
        self.out.push(open);
        for (i, element) in elements.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.kina(element, indent);
        }
        self.out.push(close);
    }
}
