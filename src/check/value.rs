//! What expressions evaluate to while checking.

use std::collections::HashMap;
use std::sync::Arc;

use crate::diagnostics::Span;
use crate::ir::NodeId;
use crate::syntax::ast::Function;

/// A value. Tuples, lists and functions live in arenas of the checker, so that values are cheap to copy and no chain of
/// them is ever dropped recursively.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Tensor(NodeId),
    Literal(Literal),
    /// A list of integers: only an attribute can use it.
    Ints(usize),
    Tuple(usize),
    Function(usize),
    /// The name of a function inside its own body.
    Itself,
    /// The value of something already reported.
    Poison,
}

/// A number or truth value that has no type yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Literal {
    Bool(bool),
    Int(i64),
    Float(f64),
}

/// A tuple.
#[derive(Clone, Debug)]
pub(super) struct TupleValue {
    pub elements: Vec<Value>,
    /// The names of its elements if a handler made it: `primal`, `g_NAME`, ..
    pub names: Option<Vec<Arc<str>>>,
}

/// A function with the values its body refers to.
#[derive(Debug)]
pub(super) struct Closure<'a> {
    pub function: &'a Function,
    /// The whole `fn` expression, which identifies it.
    pub span: Span,
    pub captured: HashMap<Arc<str>, Value>,
}

/// The names in scope. Leaving a block undoes its bindings.
#[derive(Debug, Default)]
pub(super) struct Scope {
    names: HashMap<Arc<str>, Value>,
    undo: Vec<(Arc<str>, Option<Value>)>,
}

impl Scope {
    pub fn new(names: HashMap<Arc<str>, Value>) -> Scope {
        Scope { names, undo: Vec::new() }
    }

    pub fn get(&self, name: &str) -> Option<Value> {
        self.names.get(name).copied()
    }

    /// In no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(|n| &**n)
    }

    /// A mark to [`leave`](Scope::leave) to.
    pub fn enter(&self) -> usize {
        self.undo.len()
    }

    pub fn bind(&mut self, name: &Arc<str>, value: Value) {
        let before = self.names.insert(name.clone(), value);
        self.undo.push((name.clone(), before));
    }

    pub fn leave(&mut self, mark: usize) {
        while self.undo.len() > mark {
            if let Some((name, before)) = self.undo.pop() {
                match before {
                    Some(value) => self.names.insert(name, value),
                    None => self.names.remove(&name),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_a_block_restores_shadowed_names() {
        let mut scope = Scope::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        scope.bind(&a, Value::Tensor(NodeId(1)));
        let mark = scope.enter();
        scope.bind(&a, Value::Tensor(NodeId(2)));
        scope.bind(&a, Value::Tensor(NodeId(3)));
        scope.bind(&b, Value::Poison);
        scope.leave(mark);
        assert_eq!((scope.get("a"), scope.get("b")), (Some(Value::Tensor(NodeId(1))), None));
    }
}
