//! The way back: a typed graph as a program, one `let` for each value.

use std::collections::HashSet;

use crate::diagnostics::{SourceMap, Span};
use crate::ir::print::{PrintOptions, Printer};
use crate::ir::{AttrKind, AttrValue, Check, DType, Node, NodeId, NodeKind, Param, Placement, TensorType};
use crate::syntax::ast::{Arg, Expr, ExprKind, Ident, Let, Pattern, Program, TypeExpr, UnaryOp};
use crate::syntax::{Form, Remarks, print_expr, print_program};

/// The operators that bounds checks can be written with.
const TAKE: &str = "take_along_axis";
const GATHER: &str = "gather";

/// A graph as a program in one of the written forms: its inputs, a call for each value with every attribute, and its
/// results as a tuple. Beside each `let` stands, as a comment, the type of the value and on request who made it.
///
/// The text is a program that computes the same results and traps on the same inputs, unless the graph has what no
/// program can say: an internal operator, a reduction over an empty list of axes, or, before differentiation, a
/// gradient. Those are written all the same, and refused where the text is read.
pub fn graph_text(printer: &Printer<'_>, form: Form, options: PrintOptions) -> String {
    let mut lets = Vec::new();
    let mut remarks = Vec::new();
    let writer = TreeWriter::new(printer);
    let graph = printer.graph;
    for (id, node) in graph.iter() {
        let name = &printer.names()[id.index()];
        lets.push(writer.bind(name, writer.value(node)));
        remarks.push(match node.kind {
            NodeKind::Input => String::new(),
            _ => {
                let ty = print_expr(&writer.type_of(&node.ty), form);
                let origin =
                    if options.origins { format!("  {}", printer.origin(&node.origin)) } else { String::new() };
                format!(" {ty}{origin}")
            }
        });
    }
    for check in writer.checks_without_a_node() {
        lets.push(writer.bind("_", writer.check(check)));
        remarks.push(" a bounds check of the program".to_owned());
    }
    let mut results = Vec::new();
    for output in &graph.outputs {
        let name = &printer.names()[output.node.index()];
        if writer.names.contains(&*output.name) {
            results.push(writer.name(name));
        } else {
            lets.push(writer.bind(&output.name, writer.name(name)));
            remarks.push(String::new());
            results.push(writer.name(&output.name));
        }
    }
    let value = if results.len() == 1 { results.remove(0) } else { writer.expr(ExprKind::Tuple(results)) };
    let program = Program { body: writer.expr(ExprKind::Block(lets, Box::new(value))) };
    print_program(&program, form, Remarks::Lets(&remarks))
}

/// Makes syntax trees of a graph's parts.
struct TreeWriter<'a> {
    printer: &'a Printer<'a>,
    names: HashSet<&'a str>,
    /// The trees come from no text: their place is an empty one.
    place: Span,
}

impl<'a> TreeWriter<'a> {
    fn new(printer: &'a Printer<'a>) -> Self {
        let mut nowhere = SourceMap::new();
        let file = nowhere.add("", "");
        let names = printer.names().iter().map(String::as_str).collect();
        TreeWriter { printer, names, place: nowhere.span(file, 0, 0) }
    }

    fn expr(&self, kind: ExprKind) -> Expr {
        Expr { kind, span: self.place }
    }

    fn ident(&self, name: &str) -> Ident {
        Ident { name: name.into(), span: self.place }
    }

    fn name(&self, name: &str) -> Expr {
        self.expr(ExprKind::Name(name.into()))
    }

    fn bind(&self, name: &str, value: Expr) -> Let {
        Let { pattern: Pattern::Name(self.ident(name)), value }
    }

    fn tensor(&self, dtype: DType, dims: &[u64], placement: Placement) -> Expr {
        self.expr(ExprKind::Input(TypeExpr {
            dtype: self.ident(dtype.name()),
            dims: dims.iter().map(|d| (Some(*d), self.place)).collect(),
            placement: self.ident(placement.name()),
            span: self.place,
        }))
    }

    fn type_of(&self, ty: &TensorType) -> Expr {
        self.tensor(ty.dtype, &ty.shape, ty.placement)
    }

    fn value(&self, node: &Node) -> Expr {
        match &node.kind {
            NodeKind::Input => self.type_of(&node.ty),
            NodeKind::Param { argument, .. } => self.name(&self.printer.names()[argument.index()]),
            NodeKind::Gradient { handler, index } => {
                let args = [*handler, *index].map(|i| self.expr(ExprKind::Int(i as i64)));
                self.call("gradient", args.into_iter().map(|value| (None, value)).collect())
            }
            NodeKind::Op { op, operands, attrs } => {
                let operator = self.printer.registry.op(*op);
                let params = operator.signature().params();
                let (mut operands, mut attrs) = (operator.signature().split(operands).into_iter(), attrs.iter());
                // What stands behind the last operand is given by name.
                let positional = params.iter().rposition(Param::is_operand).map_or(0, |last| last + 1);
                let mut args = Vec::new();
                for (i, param) in params.iter().enumerate() {
                    let name = (i >= positional).then(|| param.name());
                    let value = match param {
                        Param::Operand(_) | Param::Variadic(_) => {
                            let of_param = operands.next().into_iter().flatten();
                            args.extend(of_param.map(|o| (name, self.name(&self.printer.names()[o.index()]))));
                            None
                        }
                        Param::Attr { kind, .. } => {
                            let value = attrs.next();
                            // No axes of a tensor of rank 0: only leaving them out says that.
                            let of_rank_0 =
                                node.operands().next().is_some_and(|o| self.printer.graph.ty(o).rank() == 0);
                            let left_out = *kind == AttrKind::Axes && of_rank_0;
                            value.filter(|_| !left_out).map(|v| self.attribute(v))
                        }
                    };
                    args.extend(value.map(|value| (name, value)));
                }
                self.call(operator.name(), args)
            }
        }
    }

    /// A call of an operator: as a method where a value has the operator's name, since local names win over operators.
    fn call(&self, operator: &str, args: Vec<(Option<&str>, Expr)>) -> Expr {
        let method = self.names.contains(operator);
        let args = args.into_iter().enumerate().map(|(i, (name, value))| Arg {
            name: name.filter(|_| !(method && i == 0)).map(|n| self.ident(n)),
            spread: false,
            value,
        });
        self.expr(ExprKind::Call { callee: self.ident(operator), args: args.collect(), method })
    }

    fn attribute(&self, value: &AttrValue) -> Expr {
        match value {
            AttrValue::Bool(b) => self.expr(ExprKind::Bool(*b)),
            AttrValue::Int(i) => self.int(*i),
            AttrValue::Float(v) => self.float(v.get()),
            AttrValue::Ints(list) => self.expr(ExprKind::List(list.iter().map(|i| self.int(*i)).collect())),
            AttrValue::DType(dtype) => self.name(dtype.name()),
            AttrValue::Type(ty) => self.type_of(ty),
            AttrValue::Word(word) if word == "none" => self.expr(ExprKind::NoCotangent),
            AttrValue::Word(word) => self.name(word),
        }
    }

    fn negative(&self, magnitude: ExprKind) -> Expr {
        self.expr(ExprKind::Unary(UnaryOp::Neg, Box::new(self.expr(magnitude))))
    }

    fn int(&self, value: i64) -> Expr {
        match value.checked_neg() {
            Some(magnitude) if value < 0 => self.negative(ExprKind::Int(magnitude)),
            _ => self.expr(ExprKind::Int(value)),
        }
    }

    fn float(&self, value: f64) -> Expr {
        if value.is_sign_negative() && !value.is_nan() {
            self.negative(ExprKind::Float(-value))
        } else {
            self.expr(ExprKind::Float(value))
        }
    }

    /// The checks of the graph that none of its nodes implies: the operators they came from were rewritten.
    fn checks_without_a_node(&self) -> Vec<&Check> {
        let graph = self.printer.graph;
        let implied = graph.iter().filter_map(|(id, _)| graph.check_of(self.printer.registry, id));
        let implied: HashSet<(NodeId, u64)> = implied.map(|c| (c.indices, c.size)).collect();
        graph.checks.iter().filter(|c| !implied.contains(&(c.indices, c.size))).collect()
    }

    /// A call that does nothing but check its indices: it takes from zeros.
    fn check(&self, check: &Check) -> Expr {
        let ty = self.printer.graph.ty(check.indices);
        let by_row = &*check.operator != TAKE;
        let outer = if by_row { &[][..] } else { &ty.shape };
        let dims: Vec<u64> = outer.iter().copied().chain([check.size]).collect();
        let zeros =
            vec![(Some("value"), self.float(0.0)), (Some("type"), self.tensor(DType::F32, &dims, ty.placement))];
        let mut args =
            vec![(None, self.call("splat", zeros)), (None, self.name(&self.printer.names()[check.indices.index()]))];
        if !by_row {
            args.push((Some("axis"), self.int(ty.rank() as i64)));
        }
        self.call(if by_row { GATHER } else { TAKE }, args)
    }
}
