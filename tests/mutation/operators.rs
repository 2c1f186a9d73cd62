//! The operators of mutation: what is done to one expression.

use kina_ad::ir::{AttrKind, Param};
use kina_ad::syntax::ast::{Arg, BinaryOp, Expr, ExprKind, UnaryOp};

use super::mutants::{Edits, Place, commutes, enclosed, is_operand};

/// Names that a rule has bound so far.
#[derive(Default)]
pub struct Names {
    pub tensors: Vec<String>,
    pub attrs: Vec<String>,
}

/// What may stand for what by a slip.
const SIBLINGS: &[(&str, &[&str])] = &[
    ("sin", &["cos", "sinh"]),
    ("cos", &["sin", "cosh"]),
    ("tan", &["tanh"]),
    ("asin", &["acos", "sin"]),
    ("acos", &["asin"]),
    ("atan", &["tanh"]),
    ("sinh", &["cosh", "sin"]),
    ("cosh", &["sinh", "cos"]),
    ("tanh", &["sigmoid", "tan"]),
    ("exp", &["exp2", "expm1"]),
    ("exp2", &["exp"]),
    ("expm1", &["exp"]),
    ("log", &["log1p"]),
    ("log1p", &["log"]),
    ("sqrt", &["rsqrt", "cbrt"]),
    ("rsqrt", &["sqrt", "reciprocal"]),
    ("cbrt", &["sqrt"]),
    ("sign", &["abs"]),
    ("abs", &["sign"]),
    ("floor", &["ceil", "round"]),
    ("ceil", &["floor"]),
    ("round", &["floor"]),
    ("maximum", &["minimum"]),
    ("minimum", &["maximum"]),
    ("max", &["min", "sum"]),
    ("min", &["max"]),
    ("sum", &["mean", "max"]),
    ("mean", &["sum"]),
    ("prod", &["sum"]),
    ("softmax", &["log_softmax"]),
    ("log_softmax", &["softmax"]),
    ("sigmoid", &["tanh"]),
    ("erf", &["erfc", "tanh"]),
    ("erfc", &["erf"]),
    ("unsqueeze", &["squeeze"]),
    ("squeeze", &["unsqueeze"]),
    ("cumsum", &["cumprod"]),
    ("logsumexp", &["max"]),
    ("gather", &["scatter_add"]),
    ("logical_and", &["logical_or"]),
    ("logical_or", &["logical_and"]),
    ("take_along_axis", &["scatter_along_axis"]),
    ("ones_at", &["without"]),
    ("without", &["ones_at"]),
    ("count", &["ones_at"]),
];

/// Reductions along axes that may keep the dimension.
const REDUCTIONS: [&str; 6] = ["sum", "mean", "max", "min", "prod", "logsumexp"];

/// All changes of one expression itself; its parts have their own.
pub fn apply(edits: &mut Edits<'_>, expr: &Expr, place: Place) {
    let span = expr.span;
    match &expr.kind {
        ExprKind::Name(name) => replace_name(edits, expr, name, place),
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => change_constant(edits, expr, place),
        ExprKind::Unary(op, a) => {
            let operator = if *op == UnaryOp::Neg { "flip a sign" } else { "drop a not" };
            edits.push(operator, span, edits.part(a));
        }
        ExprKind::Binary(op, a, b) => {
            infix(edits, expr, *op, a, b);
            move_reduction_out(edits, expr, *op, a, b);
        }
        ExprKind::Call { callee, args, .. } => call(edits, expr, &callee.name, args, place),
        ExprKind::If(_, a, b) => {
            edits.push("drop an arm", span, edits.part(a));
            edits.push("drop an arm", span, edits.part(b));
            edits.exchange("swap operands", a, b);
        }
        ExprKind::Index(_, index) => edits.push("drop a term", span, edits.part(index)),
        ExprKind::Comprehension { list, .. } => edits.push("drop a term", span, edits.part(list)),
        _ => {}
    }
}

fn replace_name(edits: &mut Edits<'_>, expr: &Expr, name: &str, place: Place) {
    let others = match place {
        Place::Tensor | Place::Typed => &edits.names.tensors,
        Place::Attr => &edits.names.attrs,
    };
    for other in others.clone() {
        if other != name {
            edits.push("replace a name", expr.span, other);
        }
    }
}

fn change_constant(edits: &mut Edits<'_>, expr: &Expr, place: Place) {
    let mut push = |text: String| edits.push("change a constant", expr.span, text);
    match &expr.kind {
        ExprKind::Bool(b) => push((!b).to_string()),
        ExprKind::Int(i) => {
            push(i.saturating_add(1).to_string());
            if *i != 0 {
                push("0".into());
            }
            if place == Place::Tensor && *i != 0 {
                push(format!("(-{i})"));
            }
        }
        ExprKind::Float(v) if v.is_finite() => {
            push(format!("{:?}", v + 1.0));
            if *v != 0.0 {
                push("0.0".into());
                push(format!("(-{v:?})"));
            }
            // A slip in the digits.
            push(format!("{:?}", if *v == 0.0 { 1e-3 } else { v * 1.001 }));
        }
        ExprKind::Float(v) if v.is_infinite() => push("1.0".into()),
        _ => {}
    }
}

fn infix(edits: &mut Edits<'_>, expr: &Expr, op: BinaryOp, a: &Expr, b: &Expr) {
    let span = expr.span;
    let (left, right) = (edits.part(a), edits.part(b));
    // What stood in parentheses still does.
    let inside = enclosed(edits.slice(expr));
    let within = move |text: String| if inside { format!("({text})") } else { text };
    let mut with =
        |operator, op: BinaryOp| edits.push(operator, span, within(format!("{left} {} {right}", op.symbol())));
    match op {
        BinaryOp::Add => with("flip a sign", BinaryOp::Sub),
        BinaryOp::Sub => with("flip a sign", BinaryOp::Add),
        BinaryOp::Mul => with("exchange an operator", BinaryOp::Div),
        BinaryOp::Div => with("exchange an operator", BinaryOp::Mul),
        BinaryOp::Eq => with("exchange an operator", BinaryOp::Ne),
        BinaryOp::Ne => with("exchange an operator", BinaryOp::Eq),
        BinaryOp::And => with("exchange an operator", BinaryOp::Or),
        BinaryOp::Or => with("exchange an operator", BinaryOp::And),
        BinaryOp::Lt => [BinaryOp::Le, BinaryOp::Gt].into_iter().for_each(|op| with("exchange an operator", op)),
        BinaryOp::Le => [BinaryOp::Lt, BinaryOp::Ge].into_iter().for_each(|op| with("exchange an operator", op)),
        BinaryOp::Gt => [BinaryOp::Ge, BinaryOp::Lt].into_iter().for_each(|op| with("exchange an operator", op)),
        BinaryOp::Ge => [BinaryOp::Gt, BinaryOp::Le].into_iter().for_each(|op| with("exchange an operator", op)),
        BinaryOp::Rem | BinaryOp::Concat => {}
    }
    if !commutes(op) {
        edits.push("swap operands", span, within(format!("{right} {} {left}", op.symbol())));
    }
    let compares = op.operator_name().is_some_and(|name| name.contains("less") || name.contains("great"));
    if !compares && !matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
        edits.push("drop a term", span, left);
        edits.push("drop a term", span, right);
    }
}

fn call(edits: &mut Edits<'_>, expr: &Expr, callee: &str, args: &[Arg], place: Place) {
    let span = expr.span;
    let text = edits.slice(expr).to_owned();
    // `x.op(..)` is not written in rules.
    let Some(rest) = text.strip_prefix(callee).map(str::to_owned) else { return };
    for (name, siblings) in SIBLINGS {
        if *name == callee {
            for sibling in *siblings {
                if edits.params(sibling).is_some() || place == Place::Attr {
                    edits.push("exchange an operator", span, format!("{sibling}{rest}"));
                }
            }
        }
    }
    let params = if place == Place::Tensor { edits.params(callee) } else { None };
    let Some(params) = params else {
        if place == Place::Attr && !args.is_empty() {
            let first = edits.part(&args[0].value);
            if !["shape", "type", "dtype", "rank", "dim"].contains(&callee) {
                edits.push("drop a term", span, first);
            }
            if let [a, b] = args {
                edits.exchange("swap operands", &a.value, &b.value);
            }
        }
        return;
    };
    let operands: Vec<&Expr> = args
        .iter()
        .enumerate()
        .filter(|(i, arg)| arg.name.is_none() && params.get(*i).is_some_and(is_operand))
        .map(|(_, arg)| &arg.value)
        .collect();
    for pair in operands.windows(2) {
        edits.exchange("swap operands", pair[0], pair[1]);
    }
    let reduces = REDUCTIONS.contains(&callee);
    let drop = match (callee, reduces) {
        ("select", _) => "drop an arm",
        (_, true) => "drop a reduction",
        _ => "drop a call",
    };
    for operand in operands.iter().skip(usize::from(callee == "select")) {
        let text = edits.part(operand);
        edits.push(drop, span, text);
    }
    if callee == "broadcast"
        && let [inner, _] = args
        && let ExprKind::Call { callee: reduction, args: reduced, .. } = &inner.value.kind
        && REDUCTIONS.contains(&&*reduction.name)
        && let Some(x) = reduced.first()
    {
        edits.push("drop a reduction", span, edits.part(&x.value));
        move_reduction_in(edits, expr, &x.value);
    }
    attributes(edits, &params, args, &text, expr);
}

/// Other axes, shapes, flags.
fn attributes(edits: &mut Edits<'_>, params: &[Param], args: &[Arg], text: &str, expr: &Expr) {
    for (i, arg) in args.iter().enumerate() {
        let param = match &arg.name {
            Some(name) => params.iter().find(|p| p.name() == &*name.name),
            None => params.get(i),
        };
        let Some(Param::Attr { kind, words, .. }) = param else { continue };
        let others: &[&str] = match kind {
            AttrKind::Axis | AttrKind::NewAxis => &["0", "1"],
            AttrKind::Axes => &["[0]", "[1]", "[]"],
            AttrKind::Bool => &["true", "false"],
            _ => &[],
        };
        let name = if *kind == AttrKind::Bool { "change a flag" } else { "change an axis" };
        for other in others {
            edits.push(name, arg.value.span, (*other).into());
        }
        for word in words.iter().filter(|_| *kind == AttrKind::Word) {
            edits.push("change a word", arg.value.span, word.to_string());
        }
    }
    let keeps = params.iter().any(|p| p.name() == "keepdims");
    let given = args.iter().any(|a| a.name.as_ref().is_some_and(|n| &*n.name == "keepdims"));
    if keeps && !given && args.len() < params.len() {
        edits.push("change a flag", expr.span, format!("{}, keepdims=true)", text.trim_end_matches(')')));
    }
}

/// `broadcast(sum(a * b, axis, keepdims=true), s)`: the product taken out of the sum.
fn move_reduction_in(edits: &mut Edits<'_>, whole: &Expr, inner: &Expr) {
    let ExprKind::Binary(op, a, b) = &inner.kind else { return };
    let text = edits.slice(whole).to_owned();
    let at = |e: &Expr| (e.span.start - whole.span.start) as usize..(e.span.end - whole.span.start) as usize;
    let (head, tail) = (&text[..at(inner).start], &text[at(inner).end..]);
    let (a, b) = (edits.part(a), edits.part(b));
    edits.push("move a reduction", whole.span, format!("({head}{a}{tail} {} {b})", op.symbol()));
    edits.push("move a reduction", whole.span, format!("({a} {} {head}{b}{tail})", op.symbol()));
}

/// `a * broadcast(sum(b, axis, keepdims=true), s)`: the product taken into the sum.
fn move_reduction_out(edits: &mut Edits<'_>, expr: &Expr, op: BinaryOp, a: &Expr, b: &Expr) {
    for (reduced, other, first) in [(a, b, true), (b, a, false)] {
        let ExprKind::Call { callee, args, .. } = &reduced.kind else { continue };
        let ("broadcast", Some(inner)) = (&*callee.name, args.first()) else { continue };
        let ExprKind::Call { callee, args, .. } = &inner.value.kind else { continue };
        let (true, Some(x)) = (REDUCTIONS.contains(&&*callee.name), args.first()) else { continue };
        let text = edits.slice(reduced).to_owned();
        let at = |i: u32| (i - reduced.span.start) as usize;
        let (head, tail) = (&text[..at(x.value.span.start)], &text[at(x.value.span.end)..]);
        let (x, other) = (edits.part(&x.value), edits.part(other));
        let inside =
            if first { format!("{x} {} {other}", op.symbol()) } else { format!("{other} {} {x}", op.symbol()) };
        edits.push("move a reduction", expr.span, format!("{head}{inside}{tail}"));
    }
}
