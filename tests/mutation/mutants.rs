//! Mutants of rules: small edits of their text, each with a stable name.

use std::collections::{BTreeMap, BTreeSet};

use kina_ad::diagnostics::Span;
use kina_ad::ir::Param;
use kina_ad::rules::RuleSet;
use kina_ad::syntax::ast::{Arg, BinaryOp, Expr, ExprKind, Item, Line};

use super::corpus::{File, slice};
use super::operators::{self, Names};

/// Which rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    Vjp { op: String, alternative: Option<String> },
    Rewrite(String),
    Def(String),
}

impl Rule {
    pub fn of(item: &Item) -> Option<Rule> {
        match item {
            Item::Import { .. } => None,
            Item::Vjp(vjp) => Some(Rule::Vjp {
                op: vjp.op.name.to_string(),
                alternative: vjp.alternative.as_ref().map(|a| a.name.to_string()),
            }),
            Item::Rewrite(rewrite) => Some(Rule::Rewrite(rewrite.name.name.to_string())),
            Item::Def(def) => Some(Rule::Def(def.name.name.to_string())),
        }
    }

    pub fn name(&self) -> String {
        match self {
            Rule::Vjp { op, alternative: None } => format!("vjp {op}"),
            Rule::Vjp { op, alternative: Some(alternative) } => format!("vjp {op} as {alternative}"),
            Rule::Rewrite(name) => format!("rewrite {name}"),
            Rule::Def(name) => format!("def {name}"),
        }
    }
}

/// One change of one rule.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub rule: Rule,
    pub file: usize,
    /// The operator of mutation.
    pub operator: &'static str,
    /// What stands there and what stands there instead, as one line each.
    pub before: String,
    pub after: String,
    /// The whole text of the file with the change.
    pub text: String,
}

impl Mutant {
    /// Stable as long as the rule is: it has no line number.
    pub fn name(&self) -> String {
        format!("{}: {}: `{}` -> `{}`", self.rule.name(), self.operator, self.before, self.after)
    }
}

/// What is being replaced by what.
pub struct Edit {
    pub operator: &'static str,
    pub span: Span,
    pub text: String,
}

/// Where an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Its value is a tensor.
    Tensor,
    /// It is an attribute.
    Attr,
    /// It is the tensor whose type is asked for.
    Typed,
}

/// All mutants of the rules of a file, in the order of the text.
pub fn of_file(index: usize, file: &File, rules: &RuleSet) -> Vec<Mutant> {
    let mut out = Vec::new();
    for item in &file.items {
        let Some(rule) = Rule::of(item) else { continue };
        let mut seen = BTreeSet::from([file.text.clone()]);
        for edit in of_item(item, &file.text, rules) {
            let (start, end) = (edit.span.start as usize, edit.span.end as usize);
            let text = format!("{}{}{}", &file.text[..start], edit.text, &file.text[end..]);
            // Two ways to the same text are one mutant.
            if !seen.insert(text.clone()) {
                continue;
            }
            let (before, after) = shown(&file.text, start, end, &edit.text);
            out.push(Mutant { rule: rule.clone(), file: index, operator: edit.operator, before, after, text });
        }
    }
    out
}

/// The lines around a change, before and after it, each as one line.
fn shown(text: &str, start: usize, end: usize, new: &str) -> (String, String) {
    let first = text[..start].rfind('\n').map_or(0, |i| i + 1);
    let last = text[end..].find('\n').map_or(text.len(), |i| end + i);
    let one_line = |s: String| s.split_whitespace().collect::<Vec<_>>().join(" ");
    (one_line(text[first..last].to_owned()), one_line(format!("{}{new}{}", &text[first..start], &text[end..last])))
}

fn of_item(item: &Item, text: &str, rules: &RuleSet) -> Vec<Edit> {
    let mut edits = Edits { text, rules, names: Names::default(), out: Vec::new() };
    match item {
        Item::Import { .. } => {}
        Item::Vjp(vjp) => {
            edits.premise(&vjp.premise);
            edits.names.tensors.push(vjp.result.name.to_string());
            edits.names.tensors.push(format!("g_{}", vjp.result.name));
            edits.conclusions(&vjp.lines);
            edits.lines(&vjp.lines);
        }
        Item::Rewrite(rewrite) => {
            edits.pattern_names(&rewrite.left);
            edits.expr(&rewrite.left, Place::Tensor);
            if &*rewrite.class.name == "real" {
                edits.push("promise more", rewrite.class.span, "exact".into());
            }
            edits.lines(&rewrite.lines);
            edits.expr(&rewrite.right, Place::Tensor);
        }
        Item::Def(def) => {
            for param in &def.params {
                match &param.default {
                    Some(default) => {
                        edits.names.attrs.push(param.name.name.to_string());
                        edits.expr(default, Place::Attr);
                    }
                    None if !param.words.is_empty() => edits.names.attrs.push(param.name.name.to_string()),
                    None => {
                        let is_attr = edits.used_as_attr(&param.name.name, &def.lines, &def.result);
                        let names = if is_attr { &mut edits.names.attrs } else { &mut edits.names.tensors };
                        names.push(param.name.name.to_string());
                    }
                }
            }
            edits.lines(&def.lines);
            edits.expr(&def.result, Place::Tensor);
        }
    }
    edits.out
}

/// The edits of one item.
pub struct Edits<'a> {
    pub text: &'a str,
    rules: &'a RuleSet,
    pub names: Names,
    out: Vec<Edit>,
}

impl Edits<'_> {
    pub fn push(&mut self, operator: &'static str, span: Span, text: String) {
        self.out.push(Edit { operator, span, text });
    }

    pub fn slice(&self, expr: &Expr) -> &str {
        slice(self.text, expr.span)
    }

    /// An expression as a part of another: in parentheses if it needs them.
    pub fn part(&self, expr: &Expr) -> String {
        let text = self.slice(expr);
        let compound = matches!(expr.kind, ExprKind::Binary(..) | ExprKind::Unary(..) | ExprKind::If(..));
        if compound && !(text.starts_with('(') && enclosed(text)) { format!("({text})") } else { text.into() }
    }

    /// The parameters of an operator or `def`.
    pub fn params(&self, callee: &str) -> Option<Vec<Param>> {
        match self.rules.registry.by_name(callee) {
            Some((_, op)) => Some(op.signature().params().to_vec()),
            None => self.rules.def(callee).map(|def| def.signature.params().to_vec()),
        }
    }

    /// The names that a premise binds, and its operands exchanged.
    fn premise(&mut self, premise: &Expr) {
        let ExprKind::Call { callee, args, .. } = &premise.kind else { return };
        let params = self.params(&callee.name).unwrap_or_default();
        let mut operands: Vec<&Expr> = Vec::new();
        for (i, arg) in args.iter().enumerate() {
            let ExprKind::Name(name) = &arg.value.kind else { continue };
            // A list of tensors stands for no tensor.
            if arg.spread {
                continue;
            }
            match params.get(i) {
                Some(Param::Attr { .. }) => self.names.attrs.push(name.to_string()),
                _ => {
                    self.names.tensors.push(name.to_string());
                    operands.push(&arg.value);
                }
            }
        }
        if let [first, second, ..] = operands.as_slice() {
            self.exchange("swap operands", first, second);
        }
    }

    /// Two parts of the text exchanged.
    pub fn exchange(&mut self, operator: &'static str, first: &Expr, second: &Expr) {
        let between = &self.text[first.span.end as usize..second.span.start as usize];
        let text = format!("{}{between}{}", self.part(second), self.part(first));
        self.push(operator, first.span.to(second.span), text);
    }

    /// Names of a left side, by what they stand for.
    fn pattern_names(&mut self, left: &Expr) {
        let mut found: Vec<(String, Place)> = Vec::new();
        self.walk(left, Place::Tensor, &mut |expr, place| {
            if let ExprKind::Name(name) = &expr.kind {
                found.push((name.to_string(), place));
            }
        });
        for (name, place) in found {
            let names = if place == Place::Tensor { &mut self.names.tensors } else { &mut self.names.attrs };
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }

    fn used_as_attr(&self, name: &str, lines: &[Line], result: &Expr) -> bool {
        let mut found = false;
        let binds = lines.iter().filter_map(|l| match l {
            Line::Bind { value, .. } => Some(value),
            _ => None,
        });
        for root in binds.chain([result]) {
            self.walk(root, Place::Tensor, &mut |expr, place| {
                found |= place == Place::Attr && matches!(&expr.kind, ExprKind::Name(n) if &**n == name);
            });
        }
        found
    }

    /// Changes of whole conclusions.
    fn conclusions(&mut self, lines: &[Line]) {
        let values: Vec<&Expr> = lines
            .iter()
            .filter_map(|l| match l {
                Line::Bind { name, value } if name.name.starts_with("g_") => Some(value),
                _ => None,
            })
            .collect();
        let of_float: Vec<&Expr> = values.into_iter().filter(|v| v.kind != ExprKind::NoCotangent).collect();
        for value in &of_float {
            self.push("conclude nothing", value.span, "none".into());
        }
        if let [first, second] = of_float.as_slice() {
            self.exchange("swap conclusions", first, second);
        }
    }

    fn lines(&mut self, lines: &[Line]) {
        for line in lines {
            match line {
                Line::Bind { name, value } | Line::BindIndexed { name, value, .. } => {
                    let place = if self.is_tensor(value) { Place::Tensor } else { Place::Attr };
                    if value.kind != ExprKind::NoCotangent {
                        self.expr(value, place);
                    }
                    if !name.name.starts_with("g_") {
                        let names =
                            if place == Place::Tensor { &mut self.names.tensors } else { &mut self.names.attrs };
                        names.push(name.name.to_string());
                    }
                }
                Line::Where(condition) => {
                    self.drop_line("drop where", "where", condition);
                    self.expr(condition, Place::Attr);
                }
                // What is worth trying is no claim.
                Line::When(_) => {}
                Line::Domain(condition) => {
                    self.drop_line("drop domain", "domain", condition);
                    self.expr(condition, Place::Attr);
                }
                Line::Kink { condition, value, .. } => {
                    self.expr(condition, Place::Tensor);
                    self.expr(value, Place::Tensor);
                }
                // Examples are tests, and what is no derivative is one by statement.
                Line::Example { .. } | Line::NotADerivative(_) => {}
            }
        }
    }

    /// Removes a line that starts with a keyword.
    fn drop_line(&mut self, operator: &'static str, keyword: &str, condition: &Expr) {
        if let Some(start) = self.text[..condition.span.start as usize].rfind(keyword) {
            let span = Span { start: start as u32, ..condition.span };
            self.push(operator, span, String::new());
        }
    }

    /// All changes of an expression and its parts.
    fn expr(&mut self, root: &Expr, place: Place) {
        let mut parts: Vec<(Expr, Place)> = Vec::new();
        self.walk(root, place, &mut |expr, place| parts.push((expr.clone(), place)));
        if place == Place::Tensor {
            let text = format!("-{}", self.part(root));
            self.push("flip a sign", root.span, text);
        }
        for (part, place) in parts {
            operators::apply(self, &part, place);
        }
    }

    /// Is its value a tensor?
    pub fn is_tensor(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name(name) => self.names.tensors.iter().any(|t| **t == **name),
            ExprKind::Call { callee, args, .. } => {
                // `abs` is an operator and a function of numbers.
                self.params(&callee.name).is_some_and(|params| {
                    params.iter().zip(args).all(|(p, a)| !is_operand(p) || self.is_tensor(&a.value))
                        || params.iter().filter(|p| is_operand(p)).count() > 1
                        || params.iter().any(|p| matches!(p, Param::Variadic(_)))
                })
            }
            ExprKind::Unary(_, a) => self.is_tensor(a),
            ExprKind::Binary(_, a, b) | ExprKind::If(_, a, b) => self.is_tensor(a) || self.is_tensor(b),
            _ => false,
        }
    }

    /// Visits an expression and its parts, each with its place.
    pub fn walk(&self, expr: &Expr, place: Place, visit: &mut dyn FnMut(&Expr, Place)) {
        visit(expr, place);
        match &expr.kind {
            ExprKind::List(items) | ExprKind::Tuple(items) => items.iter().for_each(|e| self.walk(e, place, visit)),
            ExprKind::Call { callee, args, .. } => self.walk_args(&callee.name, args, place, visit),
            ExprKind::Unary(_, a) => self.walk(a, place, visit),
            ExprKind::Binary(_, a, b) => {
                self.walk(a, place, visit);
                self.walk(b, place, visit);
            }
            ExprKind::Index(a, b) => {
                self.walk(a, Place::Attr, visit);
                self.walk(b, Place::Attr, visit);
            }
            ExprKind::If(c, a, b) => {
                self.walk(c, Place::Attr, visit);
                self.walk(a, place, visit);
                self.walk(b, place, visit);
            }
            ExprKind::Comprehension { element, list, condition, .. } => {
                self.walk(element, Place::Attr, visit);
                self.walk(list, Place::Attr, visit);
                if let Some(condition) = condition {
                    self.walk(condition, Place::Attr, visit);
                }
            }
            _ => {}
        }
    }

    fn walk_args(&self, callee: &str, args: &[Arg], place: Place, visit: &mut dyn FnMut(&Expr, Place)) {
        if ["shape", "type", "dtype", "rank", "dim"].contains(&callee) {
            for (i, arg) in args.iter().enumerate() {
                self.walk(&arg.value, if i == 0 { Place::Typed } else { Place::Attr }, visit);
            }
            return;
        }
        let params = if place == Place::Tensor { self.params(callee) } else { None };
        for (i, arg) in args.iter().enumerate() {
            let param = params.as_ref().and_then(|params| match &arg.name {
                Some(name) => params.iter().find(|p| p.name() == &*name.name),
                None => params.get(i),
            });
            let of_arg = if param.is_some_and(is_operand) { Place::Tensor } else { Place::Attr };
            self.walk(&arg.value, of_arg, visit);
        }
    }
}

/// Does the parameter stand for tensors?
pub fn is_operand(param: &Param) -> bool {
    matches!(param, Param::Operand(_) | Param::Variadic(_))
}

/// Does the parenthesis that opens a text close at its end?
pub fn enclosed(text: &str) -> bool {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1 == text.len();
        }
    }
    false
}

/// How many mutants each operator of mutation gives.
pub fn census(mutants: &[Mutant]) -> BTreeMap<&'static str, usize> {
    let mut census = BTreeMap::new();
    for mutant in mutants {
        *census.entry(mutant.operator).or_insert(0) += 1;
    }
    census
}

/// An operator that commutes: its operands exchanged are no mutant.
pub fn commutes(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Eq | BinaryOp::Ne | BinaryOp::And | BinaryOp::Or)
}
