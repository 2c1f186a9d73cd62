//! The syntax trees of programs and rule files. One expression type serves both.

use std::sync::Arc;

use crate::diagnostics::Span;

/// A name with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    pub name: Arc<str>,
    pub span: Span,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Name(Arc<str>),
    /// An integer literal (no point, no exponent) that fits in i64.
    Int(i64),
    /// Any other number, `inf` and `nan` included.
    Float(f64),
    Bool(bool),
    /// `[a, b, c]`
    List(Vec<Expr>),
    /// `[element for name in list if condition]`
    Comprehension {
        element: Box<Expr>,
        name: Ident,
        list: Box<Expr>,
        condition: Option<Box<Expr>>,
    },
    /// `(a, b)`; at least two elements.
    Tuple(Vec<Expr>),
    /// `f(a, axis=1)`, and `x.f(a, axis=1)` as `f(x, a, axis=1)` with `method` set.
    Call {
        callee: Ident,
        args: Vec<Arg>,
        method: bool,
    },
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `if c then a else b` (attribute language).
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `list[i]` (attribute language).
    Index(Box<Expr>, Box<Expr>),
    /// `none` (rule conclusions only).
    NoCotangent,
    /// A chain of `let`s and what it evaluates to. A chain is flat, however long.
    Block(Vec<Let>, Box<Expr>),
    /// `fn(x: tensor<..>, ..) -> tensor<..> { body }`
    Fn(Box<Function>),
    /// `tensor<F32, [2, 3], @host>` as an expression: a program input.
    Input(TypeExpr),
    /// `handle f(args) with NAME`
    Handle {
        callee: Ident,
        args: Vec<Arg>,
        handler: Ident,
    },
    /// What stands where parsing had to give up; already reported.
    Error,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    pub name: Option<Ident>,
    /// `*xs`: all operands of a variadic operator (rules only).
    pub spread: bool,
    pub value: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Neg,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    /// `%`, attribute language.
    Rem,
    /// `++`, attribute language.
    Concat,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

impl BinaryOp {
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
            BinaryOp::Concat => "++",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::And => "&&",
            BinaryOp::Or => "||",
        }
    }

    /// The operator of the registry that it stands for between tensors.
    pub fn operator_name(self) -> Option<&'static str> {
        Some(match self {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
            BinaryOp::Div => "div",
            BinaryOp::Eq => "equal",
            BinaryOp::Ne => "not_equal",
            BinaryOp::Lt => "less",
            BinaryOp::Le => "less_equal",
            BinaryOp::Gt => "greater",
            BinaryOp::Ge => "greater_equal",
            BinaryOp::Rem | BinaryOp::Concat | BinaryOp::And | BinaryOp::Or => return None,
        })
    }
}

/// `let pattern = value in`
#[derive(Clone, Debug, PartialEq)]
pub struct Let {
    pub pattern: Pattern,
    pub value: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    Name(Ident),
    /// `(a, b)`
    Tuple(Vec<Ident>, Span),
}

/// A function literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub params: Vec<FnParam>,
    /// `None` where the source leaves it out: inferred.
    pub result: Option<TypeExpr>,
    pub body: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FnParam {
    pub name: Ident,
    pub ty: TypeExpr,
}

/// `tensor<F32, [1, 4, 8], @host>`, not yet checked.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeExpr {
    pub dtype: Ident,
    /// Dimensions with their places; `None` where the number does not fit in 64 bits.
    pub dims: Vec<(Option<u64>, Span)>,
    /// `host`, without the `@`.
    pub placement: Ident,
    pub span: Span,
}

/// A program: one expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    pub body: Expr,
}

/// A rule file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleFile {
    pub items: Vec<Item>,
    /// What items with syntax errors were to define: the names are no further faults where they are used.
    pub faulty: Vec<Arc<str>>,
    /// The file was refused as a whole, so that it is not known what it would define.
    pub is_refused: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Import { path: Arc<str>, span: Span },
    Vjp(VjpItem),
    Rewrite(RewriteItem),
    Def(DefItem),
}

/// `vjp OP [as NAME] { premise --- lines }`
#[derive(Clone, Debug, PartialEq)]
pub struct VjpItem {
    /// The `///` lines before it, joined by newlines, without the slashes and one following space.
    pub doc: String,
    pub is_override: bool,
    pub op: Ident,
    pub alternative: Option<Ident>,
    /// `y` in `y = op(..)`.
    pub result: Ident,
    /// The premise's call: plain names, or `name=constant` for a fixed attribute.
    pub premise: Expr,
    pub lines: Vec<Line>,
    /// From `vjp` (or `override`) to the closing brace.
    pub span: Span,
}

/// One line of a `vjp` body or a `def`, below the bar.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// `name = expr`: a local definition, or a conclusion if the name is `g_OPERAND`.
    Bind { name: Ident, value: Expr },
    /// `g_xs[i] = expr`
    BindIndexed { name: Ident, index: Ident, value: Expr },
    /// `where cond`
    Where(Expr),
    /// `when cond`
    When(Expr),
    /// `domain cond`
    Domain(Expr),
    /// `kink cond: name = expr`
    Kink { condition: Expr, name: Ident, value: Expr, span: Span },
    /// `example condition`, or `example point: name = expr`
    Example { condition: Expr, conclusion: Option<(Ident, Expr)>, span: Span },
    /// `not_a_derivative`
    NotADerivative(Span),
}

/// `rewrite NAME [class] { left => right  where ..  domain .. }`
#[derive(Clone, Debug, PartialEq)]
pub struct RewriteItem {
    pub doc: String,
    pub name: Ident,
    /// `exact` or `real`, as written.
    pub class: Ident,
    pub left: Expr,
    pub right: Expr,
    /// `<=>`
    pub both_ways: bool,
    /// Lines after the arrow: locals (`name = expr`) that `right` and each other may use, `where`, `domain`, `example`.
    pub lines: Vec<Line>,
    pub span: Span,
}

/// `def NAME(params) { lines => expr }`
#[derive(Clone, Debug, PartialEq)]
pub struct DefItem {
    pub doc: String,
    pub name: Ident,
    pub params: Vec<DefParam>,
    pub lines: Vec<Line>,
    pub result: Expr,
    pub span: Span,
}

/// A parameter with a default is an attribute, one without may be either.
#[derive(Clone, Debug, PartialEq)]
pub struct DefParam {
    pub name: Ident,
    pub default: Option<Expr>,
    /// The words that it may be, in `name = none|mean|sum`; the first is the default. Empty otherwise.
    pub words: Vec<Ident>,
}
