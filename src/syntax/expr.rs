//! pest pairs to expression trees.

use pest::iterators::Pair;

use super::ast::{Arg, BinaryOp, Expr, ExprKind, FnParam, Function, Ident, Let, Pattern, TypeExpr, UnaryOp};
use super::grammar::Rule;
use crate::diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};

/// Highest syntax tree, in nodes from the root to a leaf. `a + b + c` is a tree of height 3, so it also limits chains
/// of operators and methods. Whoever walks a tree recursively can rely on it.
pub const MAX_HEIGHT: u32 = 1000;

pub(super) type Node<'a> = Pair<'a, Rule>;

/// Builds trees for one text, or for a part of it.
pub(super) struct Builder<'a> {
    pub sources: &'a SourceMap,
    pub file: FileId,
    /// Where the parsed part starts in the file.
    pub base: usize,
    pub bag: &'a mut Diagnostics,
    /// A tree that is too high is reported once.
    pub too_high: bool,
}

/// An expression with the height of its tree.
pub(super) struct Built {
    pub expr: Expr,
    pub height: u32,
}

/// An operator that waits for its right operand.
enum Waiting {
    Prefix(UnaryOp, Span),
    Infix(BinaryOp, Span),
}

pub(super) const PREFIX_LEVEL: u8 = 6;
pub(super) const COMPARISON_LEVEL: u8 = 3;

/// How tightly an operator binds.
pub(super) fn level(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Or => 1,
        BinaryOp::And => 2,
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => COMPARISON_LEVEL,
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Concat => 4,
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => 5,
    }
}

pub(super) fn binary_op(rule: Rule) -> Option<BinaryOp> {
    Some(match rule {
        Rule::op_or => BinaryOp::Or,
        Rule::op_and => BinaryOp::And,
        Rule::op_eq => BinaryOp::Eq,
        Rule::op_ne => BinaryOp::Ne,
        Rule::op_le => BinaryOp::Le,
        Rule::op_ge => BinaryOp::Ge,
        Rule::op_lt => BinaryOp::Lt,
        Rule::op_gt => BinaryOp::Gt,
        Rule::op_concat => BinaryOp::Concat,
        Rule::op_add => BinaryOp::Add,
        Rule::op_sub => BinaryOp::Sub,
        Rule::op_mul => BinaryOp::Mul,
        Rule::op_div => BinaryOp::Div,
        Rule::op_rem => BinaryOp::Rem,
        _ => return None,
    })
}

/// The text of `i64::MIN` without its sign: the one integer literal that only fits when negated.
const MIN_MAGNITUDE: &str = "9223372036854775808";

impl Builder<'_> {
    pub fn span(&self, pair: &Node<'_>) -> Span {
        let span = pair.as_span();
        self.sources.span(self.file, self.base + span.start(), self.base + span.end())
    }

    pub fn ident(&self, pair: &Node<'_>) -> Ident {
        Ident { name: pair.as_str().into(), span: self.span(pair) }
    }

    /// A node over children of the given height.
    pub fn node(&mut self, kind: ExprKind, span: Span, children: u32) -> Built {
        if children < MAX_HEIGHT {
            return Built { expr: Expr { kind, span }, height: children + 1 };
        }
        if !std::mem::replace(&mut self.too_high, true) {
            self.bag.push(
                Diagnostic::error("E0103", format!("an expression of more than {MAX_HEIGHT} chained or nested parts"))
                    .at(span, "too long")
                    .help("bind parts with `let` (in rules: with `name = expression` lines)"),
            );
        }
        error(span)
    }

    /// The tree of an `expr` pair.
    pub fn expr(&mut self, pair: Node<'_>) -> Built {
        let whole = self.span(&pair);
        let mut operands: Vec<Built> = Vec::new();
        let mut waiting: Vec<Waiting> = Vec::new();
        for part in pair.into_inner() {
            let span = self.span(&part);
            match part.as_rule() {
                Rule::block => return self.block(part),
                Rule::neg => waiting.push(Waiting::Prefix(UnaryOp::Neg, span)),
                Rule::not => waiting.push(Waiting::Prefix(UnaryOp::Not, span)),
                Rule::operand => {
                    let operand = self.operand(part);
                    operands.push(operand);
                }
                Rule::method | Rule::index => {
                    if let Some(receiver) = operands.pop() {
                        let built = self.postfix(receiver, part);
                        operands.push(built);
                    }
                }
                Rule::infix => {
                    if let Some(op) = part.into_inner().next().and_then(|p| binary_op(p.as_rule())) {
                        self.reduce(&mut operands, &mut waiting, level(op), Some((op, span)));
                        waiting.push(Waiting::Infix(op, span));
                    }
                }
                _ => {}
            }
        }
        self.reduce(&mut operands, &mut waiting, 0, None);
        operands.pop().unwrap_or_else(|| error(whole))
    }

    /// Applies the waiting operators that bind at least as tightly as `down_to`.
    fn reduce(
        &mut self,
        operands: &mut Vec<Built>,
        waiting: &mut Vec<Waiting>,
        down_to: u8,
        next: Option<(BinaryOp, Span)>,
    ) {
        while let Some(top) = waiting.pop() {
            let strength = match &top {
                Waiting::Prefix(..) => PREFIX_LEVEL,
                Waiting::Infix(op, _) => level(*op),
            };
            if strength < down_to {
                waiting.push(top);
                return;
            }
            let Some(right) = operands.pop() else { return };
            let built = match top {
                Waiting::Prefix(op, span) => self.prefix(op, span, right),
                Waiting::Infix(op, op_span) => {
                    let Some(left) = operands.pop() else { return };
                    if let Some((_, next_span)) = next.filter(|_| down_to == COMPARISON_LEVEL && strength == down_to) {
                        self.bag.push(
                            Diagnostic::error("E0109", "comparisons do not chain")
                                .at(next_span, "second comparison")
                                .also(op_span, "first comparison")
                                .help("compare twice, and join with `&&` in rules or `*` in programs"),
                        );
                    }
                    let span = left.expr.span.to(right.expr.span);
                    let height = left.height.max(right.height);
                    self.node(ExprKind::Binary(op, Box::new(left.expr), Box::new(right.expr)), span, height)
                }
            };
            operands.push(built);
        }
    }

    pub fn prefix(&mut self, op: UnaryOp, span: Span, operand: Built) -> Built {
        let span = span.to(operand.expr.span);
        if op == UnaryOp::Neg
            && matches!(operand.expr.kind, ExprKind::Float(_))
            && self.sources.text(operand.expr.span).trim_start_matches('0') == MIN_MAGNITUDE
        {
            return self.node(ExprKind::Int(i64::MIN), span, 0);
        }
        self.node(ExprKind::Unary(op, Box::new(operand.expr)), span, operand.height)
    }

    fn postfix(&mut self, receiver: Built, pair: Node<'_>) -> Built {
        let span = receiver.expr.span.to(self.span(&pair));
        let mut height = receiver.height;
        let is_method = pair.as_rule() == Rule::method;
        let mut callee = None;
        let mut args = vec![Arg { name: None, spread: false, value: receiver.expr }];
        let mut index = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => callee = Some(self.ident(&part)),
                Rule::args => args.extend(self.args(part, &mut height)),
                Rule::expr => {
                    let built = self.expr(part);
                    height = height.max(built.height);
                    index = Some(built.expr);
                }
                _ => {}
            }
        }
        match (callee, index, args.len()) {
            (Some(callee), _, _) if is_method => self.node(ExprKind::Call { callee, args, method: true }, span, height),
            (_, Some(index), 1) => match args.pop() {
                Some(list) => self.node(ExprKind::Index(Box::new(list.value), Box::new(index)), span, height),
                None => error(span),
            },
            _ => error(span),
        }
    }

    /// The arguments in an `args` pair; raises `height` to the highest of them.
    pub fn args(&mut self, pair: Node<'_>, height: &mut u32) -> Vec<Arg> {
        let mut args = Vec::new();
        for arg in pair.into_inner().filter(|p| p.as_rule() == Rule::arg) {
            let mut name = None;
            let mut spread = false;
            for part in arg.into_inner() {
                match part.as_rule() {
                    Rule::spread => spread = true,
                    Rule::ident => name = Some(self.ident(&part)),
                    Rule::expr => {
                        let built = self.expr(part);
                        *height = built.height.max(*height);
                        args.push(Arg { name: name.take(), spread, value: built.expr });
                    }
                    _ => {}
                }
            }
        }
        args
    }

    fn operand(&mut self, pair: Node<'_>) -> Built {
        let whole = self.span(&pair);
        let Some(pair) = pair.into_inner().next() else { return error(whole) };
        let span = self.span(&pair);
        match pair.as_rule() {
            Rule::reference => self.reference(pair),
            Rule::group => self.group(pair),
            Rule::list => self.list(pair),
            Rule::choice => {
                let mut height = 0;
                let mut parts = self.exprs(pair, &mut height).into_iter();
                match (parts.next(), parts.next(), parts.next()) {
                    (Some(condition), Some(yes), Some(no)) => {
                        let span = span_to(span, &no);
                        let kind = ExprKind::If(Box::new(condition), Box::new(yes), Box::new(no));
                        self.node(kind, span, height)
                    }
                    _ => error(span),
                }
            }
            Rule::function => self.function(pair),
            Rule::handle => {
                let mut idents = Vec::new();
                let mut args = Vec::new();
                let mut height = 0;
                for part in pair.into_inner() {
                    match part.as_rule() {
                        Rule::ident => idents.push(self.ident(&part)),
                        Rule::args => args = self.args(part, &mut height),
                        _ => {}
                    }
                }
                let mut idents = idents.into_iter();
                match (idents.next(), idents.next()) {
                    (Some(callee), Some(handler)) => {
                        self.node(ExprKind::Handle { callee, args, handler }, span, height)
                    }
                    _ => error(span),
                }
            }
            Rule::tensor => {
                let ty = self.type_expr(pair);
                let kind = ty.map_or(ExprKind::Error, ExprKind::Input);
                self.node(kind, span, 0)
            }
            _ => self.literal(&pair),
        }
    }

    /// A number, a truth value or `none`.
    pub fn literal(&mut self, pair: &Node<'_>) -> Built {
        let (span, text) = (self.span(pair), pair.as_str());
        let kind = match pair.as_rule() {
            Rule::int => match text.parse::<i64>() {
                Ok(value) => ExprKind::Int(value),
                Err(_) => self.float(text, span),
            },
            Rule::float => self.float(text, span),
            Rule::inf => ExprKind::Float(f64::INFINITY),
            Rule::nan => ExprKind::Float(f64::NAN),
            Rule::truth => ExprKind::Bool(text == "true"),
            Rule::none => ExprKind::NoCotangent,
            _ => ExprKind::Error,
        };
        self.node(kind, span, 0)
    }

    /// A number that is not an `i64`.
    fn float(&mut self, text: &str, span: Span) -> ExprKind {
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => ExprKind::Float(value),
            _ => {
                self.bag.push(
                    Diagnostic::error("E0104", "the number is too large for F64")
                        .at(span, "beyond 1.8e308")
                        .help("write `inf` if you mean infinity"),
                );
                ExprKind::Error
            }
        }
    }

    /// The `expr` children of a pair; raises `height` to the highest of them.
    fn exprs(&mut self, pair: Node<'_>, height: &mut u32) -> Vec<Expr> {
        let mut exprs = Vec::new();
        for part in pair.into_inner().filter(|p| p.as_rule() == Rule::expr) {
            let built = self.expr(part);
            *height = built.height.max(*height);
            exprs.push(built.expr);
        }
        exprs
    }

    fn reference(&mut self, pair: Node<'_>) -> Built {
        let whole = self.span(&pair);
        let mut parts = pair.into_inner();
        let Some(name) = parts.next() else { return error(whole) };
        let callee = self.ident(&name);
        match parts.find(|p| p.as_rule() == Rule::args) {
            Some(args) => {
                let span = callee.span.to(self.span(&args));
                let mut height = 0;
                let args = self.args(args, &mut height);
                self.node(ExprKind::Call { callee, args, method: false }, span, height)
            }
            None => self.node(ExprKind::Name(callee.name), callee.span, 0),
        }
    }

    fn group(&mut self, pair: Node<'_>) -> Built {
        let span = self.span(&pair);
        let has_comma = pair.clone().into_inner().any(|p| p.as_rule() == Rule::comma);
        let mut height = 0;
        let mut elements = self.exprs(pair, &mut height);
        if elements.len() > 1 {
            return self.node(ExprKind::Tuple(elements), span, height);
        }
        if has_comma {
            self.bag.push(
                Diagnostic::error("E0105", "a tuple has at least two elements")
                    .at(span, "one element")
                    .help("remove the comma"),
            );
        }
        match elements.pop() {
            // The parentheses belong to the span: it is what a message points at.
            Some(inner) => Built { expr: Expr { kind: inner.kind, span }, height },
            None => error(span),
        }
    }

    fn list(&mut self, pair: Node<'_>) -> Built {
        let span = self.span(&pair);
        let mut height = 0;
        let mut elements = Vec::new();
        let mut name = None;
        let mut clause = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::expr => {
                    let built = self.expr(part);
                    height = height.max(built.height);
                    elements.push(built.expr);
                }
                Rule::each => {
                    name = part.clone().into_inner().find(|p| p.as_rule() == Rule::ident).map(|p| self.ident(&p));
                    clause = self.exprs(part, &mut height);
                }
                _ => {}
            }
        }
        let Some(name) = name else { return self.node(ExprKind::List(elements), span, height) };
        let mut clause = clause.into_iter();
        match (elements.pop(), clause.next()) {
            (Some(element), Some(list)) => {
                let kind = ExprKind::Comprehension {
                    element: Box::new(element),
                    name,
                    list: Box::new(list),
                    condition: clause.next().map(Box::new),
                };
                self.node(kind, span, height)
            }
            _ => error(span),
        }
    }

    fn block(&mut self, pair: Node<'_>) -> Built {
        let start = self.span(&pair);
        let mut lets = Vec::new();
        let mut height = 0;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::binding => lets.extend(self.binding(part, &mut height)),
                Rule::expr => {
                    let body = self.expr(part);
                    height = height.max(body.height);
                    let span = span_to(start, &body.expr);
                    return self.node(ExprKind::Block(lets, Box::new(body.expr)), span, height);
                }
                _ => {}
            }
        }
        error(start)
    }

    fn binding(&mut self, pair: Node<'_>, height: &mut u32) -> Option<Let> {
        let mut pattern = None;
        let mut value = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => pattern = Some(Pattern::Name(self.ident(&part))),
                Rule::tuple_pattern => {
                    let span = self.span(&part);
                    let names = part.into_inner().filter(|p| p.as_rule() == Rule::ident);
                    pattern = Some(Pattern::Tuple(names.map(|p| self.ident(&p)).collect(), span));
                }
                Rule::expr => {
                    let built = self.expr(part);
                    *height = built.height.max(*height);
                    value = Some(built.expr);
                }
                _ => {}
            }
        }
        Some(Let { pattern: pattern?, value: value? })
    }

    fn function(&mut self, pair: Node<'_>) -> Built {
        let span = self.span(&pair);
        let mut params = Vec::new();
        let mut result = None;
        let mut body = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::param => {
                    let mut parts = part.into_inner();
                    let name = parts.next().map(|p| self.ident(&p));
                    let ty = parts.find(|p| p.as_rule() == Rule::tensor).and_then(|p| self.type_expr(p));
                    if let (Some(name), Some(ty)) = (name, ty) {
                        params.push(FnParam { name, ty });
                    }
                }
                Rule::tensor => result = self.type_expr(part),
                Rule::expr => body = Some(self.expr(part)),
                _ => {}
            }
        }
        match body {
            Some(body) => {
                let function = Function { params, result, body: body.expr };
                self.node(ExprKind::Fn(Box::new(function)), span, body.height)
            }
            None => error(span),
        }
    }

    fn type_expr(&mut self, pair: Node<'_>) -> Option<TypeExpr> {
        let span = self.span(&pair);
        let (mut dtype, mut placement, mut dims) = (None, None, Vec::new());
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::ident => dtype = Some(self.ident(&part)),
                Rule::dims => {
                    let found = part.into_inner().filter(|p| p.as_rule() == Rule::dim);
                    dims = found.map(|p| (p.as_str().parse().ok(), self.span(&p))).collect();
                }
                Rule::placement => {
                    placement = part.into_inner().find(|p| p.as_rule() == Rule::ident).map(|p| self.ident(&p));
                }
                _ => {}
            }
        }
        Some(TypeExpr { dtype: dtype?, dims, placement: placement?, span })
    }
}

/// What stands where nothing could be built.
pub(super) fn error(span: Span) -> Built {
    Built { expr: Expr { kind: ExprKind::Error, span }, height: 1 }
}

/// From the start of `span` to the end of `expr`. (pest's span of a rule may include trailing white space.)
fn span_to(span: Span, expr: &Expr) -> Span {
    Span { end: expr.span.end, ..span }
}
