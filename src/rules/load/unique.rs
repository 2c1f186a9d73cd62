//! One rule under each name, and definitions before their users.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::super::scope::is_function;
use crate::diagnostics::{Diagnostic, Diagnostics, Span};
use crate::ir::Registry;
use crate::syntax::PROGRAM_HEAD;
use crate::syntax::ast::{DefItem, Expr, ExprKind, Item, Line, RewriteItem, VjpItem};

pub(super) fn as_vjp(item: &Item) -> Option<&VjpItem> {
    match item {
        Item::Vjp(vjp) => Some(vjp),
        _ => None,
    }
}

/// An alternative without a primary VJP would never be used, and an override without one replaces nothing.
pub(super) fn orphans(items: &[Item], faulty: &BTreeSet<Arc<str>>, bag: &mut Diagnostics) {
    let vjps = || items.iter().filter_map(as_vjp);
    let key = |vjp: &'_ VjpItem| (vjp.op.name.clone(), vjp.alternative.as_ref().map(|a| a.name.clone()));
    let there: BTreeSet<_> = vjps().map(|v| (key(v), v.is_override)).collect();
    for vjp in vjps().filter(|v| !faulty.contains(&v.op.name)) {
        let name = &vjp.op.name;
        let primary = (name.clone(), None);
        if let Some(alternative) = &vjp.alternative
            && ![true, false].iter().any(|o| there.contains(&(primary.clone(), *o)))
        {
            let message =
                format!("`vjp {name} as {}` is an alternative to a VJP that does not exist", alternative.name);
            bag.push(
                Diagnostic::error("E0412", message)
                    .at(vjp.op.span.to(alternative.span), format!("there is no `vjp {name}` without a name"))
                    .help(format!("leave out `as {}`", alternative.name)),
            );
        } else if vjp.is_override && !there.contains(&(key(vjp), false)) {
            bag.push(
                Diagnostic::warning("E0412", format!("`override vjp {name}` replaces nothing"))
                    .at(vjp.op.span, "there is no other VJP of this operator in effect")
                    .help("leave out `override`, if it is not for other profiles"),
            );
        }
    }
}

pub(super) fn unique_defs<'i>(
    items: &'i [Item],
    builtin: &Registry,
    bag: &mut Diagnostics,
) -> BTreeMap<&'i str, &'i DefItem> {
    let mut defs: BTreeMap<&str, &DefItem> = BTreeMap::new();
    for item in items {
        let Item::Def(def) = item else { continue };
        let name = &*def.name.name;
        if builtin.id(name).is_some() {
            bag.push(
                Diagnostic::error("E0406", format!("`{name}` is an operator already"))
                    .at(def.name.span, "this name is taken")
                    .help("choose another name for the composite"),
            );
        } else if is_function(name) {
            bag.push(
                Diagnostic::error("E0406", format!("`{name}` is a function of the attribute language"))
                    .at(def.name.span, "this name is taken")
                    .help("choose another name for the composite"),
            );
        } else if name == PROGRAM_HEAD {
            bag.push(
                Diagnostic::error("E0406", format!("`{name}` begins programs that are S-expressions"))
                    .at(def.name.span, "this name is taken")
                    .help("choose another name for the composite"),
            );
        } else if let Some(first) = defs.get(name) {
            bag.push(duplicate(&format!("`def {name}`"), def.name.span, first.name.span, "remove one of them"));
        } else {
            defs.insert(name, def);
        }
    }
    defs
}

/// One primary VJP per operator, and one alternative per name; `override` replaces.
pub(super) fn unique_vjps<'i>(items: &'i [Item], bag: &mut Diagnostics) -> Vec<&'i VjpItem> {
    let mut table: BTreeMap<(&str, Option<&str>, bool), &VjpItem> = BTreeMap::new();
    for vjp in items.iter().filter_map(as_vjp) {
        let key = (&*vjp.op.name, vjp.alternative.as_ref().map(|a| &*a.name), vjp.is_override);
        match table.get(&key) {
            Some(first) => {
                let help = if vjp.is_override {
                    "keep one of the overrides".to_owned()
                } else {
                    format!(
                        "write `override vjp {0}` to replace it, or `vjp {0} as NAME` to add an alternative",
                        vjp.op.name
                    )
                };
                bag.push(duplicate(&format!("the VJP of `{}`", vjp.op.name), vjp.op.span, first.op.span, &help));
            }
            None => {
                table.insert(key, vjp);
            }
        }
    }
    let replaced: BTreeSet<(&str, Option<&str>)> = table.keys().filter(|k| k.2).map(|k| (k.0, k.1)).collect();
    table.into_iter().filter(|(k, _)| k.2 || !replaced.contains(&(k.0, k.1))).map(|(_, v)| v).collect()
}

pub(super) fn unique_rewrites<'i>(items: &'i [Item], bag: &mut Diagnostics) -> Vec<&'i RewriteItem> {
    let mut table: BTreeMap<&str, &RewriteItem> = BTreeMap::new();
    for item in items {
        let Item::Rewrite(rewrite) = item else { continue };
        let name = &*rewrite.name.name;
        match table.get(name) {
            Some(first) => bag.push(duplicate(
                &format!("a rewrite named `{name}`"),
                rewrite.name.span,
                first.name.span,
                "give it another name",
            )),
            None => {
                table.insert(name, rewrite);
            }
        }
    }
    table.into_values().collect()
}

fn duplicate(what: &str, second: Span, first: Span, help: &str) -> Diagnostic {
    Diagnostic::error("E0406", format!("{what} stands twice"))
        .at(second, "again here")
        .also(first, "first here")
        .help(help)
}

/// Definitions before their users; a definition that reaches itself is an error.
pub(super) fn definition_order<'i>(
    defs: &BTreeMap<&'i str, &'i DefItem>,
    bag: &mut Diagnostics,
) -> Option<Vec<&'i DefItem>> {
    let mut uses: BTreeMap<&str, BTreeSet<&'i str>> = BTreeMap::new();
    for (name, def) in defs {
        let mut called = BTreeSet::new();
        for line in &def.lines {
            if let Line::Bind { value, .. } = line {
                calls(value, &mut called);
            }
        }
        calls(&def.result, &mut called);
        called.retain(|c| defs.contains_key(c));
        uses.insert(name, called);
    }
    let mut users: BTreeMap<&str, Vec<&'i str>> = BTreeMap::new();
    let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
    let mut ready: VecDeque<&'i str> = VecDeque::new();
    for name in defs.keys() {
        missing.insert(name, uses[name].len());
        if uses[name].is_empty() {
            ready.push_back(name);
        }
        for used in &uses[name] {
            users.entry(used).or_default().push(name);
        }
    }
    let mut order: Vec<&DefItem> = Vec::new();
    while let Some(name) = ready.pop_front() {
        missing.remove(name);
        order.push(defs[name]);
        for user in users.get(name).into_iter().flatten() {
            let left = missing.entry(user).or_default();
            *left = left.saturating_sub(1);
            if *left == 0 {
                ready.push_back(user);
            }
        }
    }
    if missing.is_empty() {
        return Some(order);
    }
    for name in missing.keys() {
        bag.push(
            Diagnostic::error("E0416", format!("`def {name}` is defined through itself"))
                .at(defs[name].name.span, "part of a circle of definitions")
                .help("a composite must come down to operators"),
        );
    }
    None
}

/// The names that an expression calls.
fn calls<'e>(expr: &'e Expr, out: &mut BTreeSet<&'e str>) {
    crate::rules::compile::walk(expr, &mut |e: &'e Expr| {
        if let ExprKind::Call { callee, .. } = &e.kind {
            out.insert(&callee.name);
        }
    });
}
