//! `def` items to composites.

use super::compile::{Parts, constant, no_when, rule_ref, walk};
use super::extent::measure;
use super::rule::{Def, VarKind};
use super::scope::{Library, Scope, kind_of_value};
use crate::diagnostics::{Diagnostic, Diagnostics, SourceMap};
use crate::ir::operator::{Default as AttrDefault, Words, listed};
use crate::ir::{AttrKind, Param, Signature};
use crate::syntax::ast::{DefItem, Expr, ExprKind, Ident, Line};

/// Compiles a `def`.
pub fn compile_def(item: &DefItem, library: &Library<'_>, sources: &SourceMap, bag: &mut Diagnostics) -> Option<Def> {
    let errors = bag.error_count();
    let mut scope = Scope::new(library);
    let mut signature = Signature::new(Vec::new());
    let mut params = Vec::new();
    for param in &item.params {
        let name = &*param.name.name;
        if scope.is_bound(name) {
            bag.push(scope.bound_twice(name, param.name.span));
            continue;
        }
        scope.place(&param.name.name, param.name.span);
        let used_as = attr_use(name, item, library);
        let declared: Words = param.words.iter().map(|w| w.name.clone()).collect();
        if let Some((first, again)) = repeated(&param.words) {
            bag.push(
                Diagnostic::error("E0406", format!("`{}` is bound twice", again.name))
                    .at(again.span, "again here")
                    .also(first.span, "first here")
                    .help("give each its own name"),
            );
        }
        let words = match &used_as {
            _ if !declared.is_empty() => Some(declared),
            Some((AttrKind::Word, words)) => Some(words.clone()),
            _ => None,
        };
        if let Some(words) = words {
            if let Some((kind, used)) = used_as.filter(|(_, used)| words.iter().any(|w| !used.contains(w))) {
                let used = if kind == AttrKind::Word { listed(&used) } else { kind.describe().to_owned() };
                bag.push(
                    Diagnostic::error("E0408", format!("`{name}` is used as {used}, but it may be {}", listed(&words)))
                        .at(param.name.span, "words that its use does not have")
                        .help("declare words that are possible where it is used"),
                );
            }
            let first = words.first().filter(|_| !param.words.is_empty()).cloned();
            let written = match param.default.as_ref().map(|d| &d.kind) {
                Some(ExprKind::Name(word)) => Some(word.clone()),
                Some(ExprKind::NoCotangent) => Some("none".into()),
                _ => None,
            };
            let default = first.or(written.filter(|w| words.contains(w)));
            if let (None, Some(expr)) = (&default, &param.default) {
                bag.push(
                    Diagnostic::error("E0408", format!("the default of `{name}` must be {}", listed(&words)))
                        .at(expr.span, "not one of these words")
                        .help("write one of them"),
                );
            }
            params.push(scope.word_var(name, words.clone()));
            signature = signature.word(name, words, default);
            continue;
        }
        let used_as = used_as.map(|(kind, _)| kind);
        let default = match &param.default {
            None => None,
            Some(expr) => match constant(expr) {
                Some(v) => Some(v),
                None => {
                    bag.push(
                        Diagnostic::error("E0408", format!("the default of `{name}` must be a constant"))
                            .at(expr.span, "not a constant")
                            .help(
                                "write a number, true, false, a list of whole numbers, or the words that are possible: \
                                 `reduction = none|mean|sum`",
                            ),
                    );
                    // Its uses are no further faults.
                    scope.var(name, VarKind::Attr(None));
                    continue;
                }
            },
        };
        let kind = match (&default, used_as) {
            (Some(value), None) => VarKind::Attr(Some(kind_of_value(value))),
            (_, Some(kind)) => VarKind::Attr(Some(kind)),
            (None, None) => VarKind::Tensor,
        };
        signature = match kind {
            VarKind::Tensor | VarKind::Tensors => signature.operand(name),
            VarKind::Attr(kind) => {
                let kind = kind.unwrap_or(AttrKind::Int);
                match default.map(|v| kind.coerce(v)) {
                    None => signature.attr(name, kind),
                    Some(Ok(value)) => signature.attr_or(name, kind, AttrDefault::Value(value)),
                    Some(Err(value)) => {
                        bag.push(
                            Diagnostic::error(
                                "E0408",
                                format!(
                                    "`{name}` is used as {}, but its default is {}",
                                    kind.describe(),
                                    value.describe()
                                ),
                            )
                            .at(param.name.span, "wrong default")
                            .help("write a default of that kind, or none"),
                        );
                        // Its uses are no further faults.
                        scope.var(name, VarKind::Attr(Some(kind)));
                        continue;
                    }
                }
            }
        };
        params.push(scope.var(name, kind));
    }
    scope.describe(&item.lines, true, None);
    let mut parts = Parts::default();
    let mut not_a_derivative = None;
    for line in &item.lines {
        match line {
            // Examples may call any definition, this one too: see `load`.
            Line::Example { conclusion: None, .. } => {}
            Line::NotADerivative(span) => not_a_derivative = Some(*span),
            _ => parts.line(&mut scope, line, bag),
        }
    }
    let result = scope.tensor(&item.result, bag);
    if bag.error_count() > errors {
        return None;
    }
    let result = result?;
    let mut head = parts.head(scope, rule_ref(&item.name.name, item.name.span, sources), &item.doc, item.span);
    no_when(&head, bag);
    head.extent = measure(&head, [&result], library, bag)?;
    Some(Def { name: item.name.name.clone(), signature, params, result, not_a_derivative, head })
}

/// The first word that stands twice.
fn repeated(words: &[Ident]) -> Option<(&Ident, &Ident)> {
    words.iter().enumerate().find_map(|(i, again)| {
        let first = words[..i].iter().find(|w| w.name == again.name)?;
        Some((first, again))
    })
}

/// The attribute kind, and what it may be if it is a word, under which a parameter of a `def` is used, if it stands in an attribute position.
fn attr_use(name: &str, item: &DefItem, library: &Library<'_>) -> Option<(AttrKind, Words)> {
    let mut found = None;
    let mut visit = |expr: &Expr| {
        let ExprKind::Call { callee, args, .. } = &expr.kind else { return };
        let signature = match library.registry.by_name(&callee.name) {
            Some((_, op)) => op.signature(),
            None => match library.defs.get(&callee.name) {
                Some(def) => &def.signature,
                None => return,
            },
        };
        for (i, arg) in args.iter().enumerate() {
            let param = match &arg.name {
                Some(n) => signature.params().iter().find(|p| p.name() == &*n.name),
                None => signature.params().get(i),
            };
            if let (Some(Param::Attr { kind, words, .. }), ExprKind::Name(used)) = (param, &arg.value.kind)
                && &**used == name
                && found.is_none()
            {
                found = Some((*kind, words.clone()));
            }
        }
    };
    for line in &item.lines {
        if let Line::Bind { value, .. } | Line::Where(value) | Line::When(value) = line {
            walk(value, &mut visit);
        }
    }
    walk(&item.result, &mut visit);
    found
}
