//! Trees back to source, for stubs and listings. What is printed parses to the same tree (up to spans).

use std::fmt::Write;

use super::ast::{Arg, Expr, ExprKind, Function, Let, Pattern, TypeExpr, UnaryOp};
use crate::ir::attr::format_float;

/// An expression as source. Operands of an operator that are operators themselves stand in parentheses.
pub fn print_expr(expr: &Expr) -> String {
    let mut out = String::new();
    write_expr(&mut out, expr, 0);
    out
}

/// `tensor<F32, [2, 3], @host>`
pub fn print_type(ty: &TypeExpr) -> String {
    let dims: Vec<String> = ty.dims.iter().map(|(d, _)| d.map_or_else(|| "?".into(), |d| d.to_string())).collect();
    format!("tensor<{}, [{}], @{}>", ty.dtype.name, dims.join(", "), ty.placement.name)
}

/// A number of spaces per level of `fn` bodies.
const INDENT: usize = 2;

fn write_expr(out: &mut String, expr: &Expr, indent: usize) {
    match &expr.kind {
        ExprKind::Name(name) => out.push_str(name),
        ExprKind::Int(value) => {
            let _ = write!(out, "{value}");
        }
        ExprKind::Float(value) => out.push_str(&format_float(*value)),
        ExprKind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        ExprKind::List(elements) => write_list(out, '[', elements, ']', indent),
        ExprKind::Tuple(elements) => write_list(out, '(', elements, ')', indent),
        ExprKind::Comprehension { element, name, list, condition } => {
            out.push('[');
            write_expr(out, element, indent);
            let _ = write!(out, " for {} in ", name.name);
            write_expr(out, list, indent);
            if let Some(condition) = condition {
                out.push_str(" if ");
                write_expr(out, condition, indent);
            }
            out.push(']');
        }
        ExprKind::Call { callee, args, method } => match args.split_first() {
            Some((receiver, rest)) if *method => {
                write_operand(out, &receiver.value, indent);
                let _ = write!(out, ".{}", callee.name);
                write_args(out, rest, indent);
            }
            _ => {
                out.push_str(&callee.name);
                write_args(out, args, indent);
            }
        },
        ExprKind::Unary(op, operand) => {
            out.push(if *op == UnaryOp::Neg { '-' } else { '!' });
            write_operand(out, operand, indent);
        }
        ExprKind::Binary(op, left, right) => {
            write_operand(out, left, indent);
            let _ = write!(out, " {} ", op.symbol());
            write_operand(out, right, indent);
        }
        ExprKind::If(condition, yes, no) => {
            for (word, part) in [("if ", condition), (" then ", yes), (" else ", no)] {
                out.push_str(word);
                write_expr(out, part, indent);
            }
        }
        ExprKind::Index(list, index) => {
            write_operand(out, list, indent);
            out.push('[');
            write_expr(out, index, indent);
            out.push(']');
        }
        ExprKind::NoCotangent => out.push_str("none"),
        ExprKind::Block(lets, body) => {
            for l in lets {
                write_let(out, l, indent);
                new_line(out, indent);
            }
            write_expr(out, body, indent);
        }
        ExprKind::Fn(function) => write_function(out, function, indent),
        ExprKind::Input(ty) => out.push_str(&print_type(ty)),
        ExprKind::Handle { callee, args, handler } => {
            let _ = write!(out, "handle {}", callee.name);
            write_args(out, args, indent);
            let _ = write!(out, " with {}", handler.name);
        }
        ExprKind::Error => out.push_str("<error>"),
    }
}

fn write_let(out: &mut String, l: &Let, indent: usize) {
    match &l.pattern {
        Pattern::Name(name) => {
            let _ = write!(out, "let {} = ", name.name);
        }
        Pattern::Tuple(names, _) => {
            let names: Vec<&str> = names.iter().map(|n| &*n.name).collect();
            let _ = write!(out, "let ({}) = ", names.join(", "));
        }
    }
    write_expr(out, &l.value, indent);
    out.push_str(" in");
}

fn write_function(out: &mut String, function: &Function, indent: usize) {
    let params: Vec<String> =
        function.params.iter().map(|p| format!("{}: {}", p.name.name, print_type(&p.ty))).collect();
    let _ = write!(out, "fn({})", params.join(", "));
    if let Some(result) = &function.result {
        let _ = write!(out, " -> {}", print_type(result));
    }
    out.push_str(" {");
    new_line(out, indent + INDENT);
    write_expr(out, &function.body, indent + INDENT);
    new_line(out, indent);
    out.push('}');
}

fn write_args(out: &mut String, args: &[Arg], indent: usize) {
    out.push('(');
    for (i, arg) in args.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        if arg.spread {
            out.push('*');
        }
        if let Some(name) = &arg.name {
            let _ = write!(out, "{}=", name.name);
        }
        write_expr(out, &arg.value, indent);
    }
    out.push(')');
}

fn write_list(out: &mut String, open: char, elements: &[Expr], close: char, indent: usize) {
    out.push(open);
    for (i, element) in elements.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write_expr(out, element, indent);
    }
    out.push(close);
}

/// An operand of an operator or a method.
fn write_operand(out: &mut String, expr: &Expr, indent: usize) {
    let atom = match &expr.kind {
        ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::If(..)
        | ExprKind::Block(..)
        | ExprKind::Handle { .. } => false,
        ExprKind::Int(value) => *value >= 0,
        ExprKind::Float(value) => !value.is_sign_negative(),
        _ => true,
    };
    if !atom {
        out.push('(');
    }
    write_expr(out, expr, indent);
    if !atom {
        out.push(')');
    }
}

fn new_line(out: &mut String, indent: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
}
