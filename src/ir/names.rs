//! Names of values that stay the same when other parts of a program change.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{Graph, NodeKind};
use super::operator::Registry;

/// The name of each node: the source name where there is one, otherwise the operator and a short hash of what the
/// node computes (`exp_3f2a`), so that an edit elsewhere renames nothing. Names are unique; of several nodes of one
/// source name all but the first get a number.
pub fn value_names(graph: &Graph, registry: &Registry) -> Vec<String> {
    let mut taken = Taken::default();
    // Source names first: they have precedence over hashes that happen to look alike.
    let mut source: BTreeMap<usize, String> = BTreeMap::new();
    for (id, node) in graph.iter() {
        if let Some(name) = &node.name {
            source.insert(id.index(), taken.unique(name));
        }
    }
    let mut names: Vec<String> = Vec::with_capacity(graph.len());
    for (id, node) in graph.iter() {
        if let Some(name) = source.remove(&id.index()) {
            names.push(name);
            continue;
        }
        let (base, hash) = match &node.kind {
            NodeKind::Op { op, operands, attrs } => {
                let name = registry.op(*op).name();
                let mut hash = Fnv::new();
                hash.text(name);
                for operand in operands {
                    hash.text(&names[operand.index()]);
                }
                for attr in attrs {
                    hash.text(&attr.to_string());
                }
                (name.to_owned(), hash.0)
            }
            NodeKind::Input => ("input".to_owned(), id.0.into()),
            NodeKind::Param { argument, .. } => (names[argument.index()].clone(), 0),
            // Nothing to hash: handlers and their gradients are numbered in program order.
            NodeKind::Gradient { handler, index } => {
                names.push(taken.unique(&format!("gradient_{handler}_{index}")));
                continue;
            }
        };
        // Four digits, more where two values would collide.
        let hex = format!("{hash:016x}");
        let name = [4, 8, 16].iter().map(|n| format!("{base}_{}", &hex[..*n])).find(|n| !taken.names.contains(n));
        names.push(match name {
            Some(name) => {
                taken.names.insert(name.clone());
                name
            }
            None => taken.unique(&format!("{base}_{hex}")),
        });
    }
    names
}

/// The names that are in use.
#[derive(Default)]
struct Taken {
    names: BTreeSet<String>,
    /// The last number tried for a base, so that many values of one name do not take quadratic time.
    last: BTreeMap<String, u64>,
}

impl Taken {
    /// `name`, with a number from 2 on if it is taken.
    fn unique(&mut self, name: &str) -> String {
        if self.names.insert(name.to_owned()) {
            return name.to_owned();
        }
        let number = self.last.entry(name.to_owned()).or_insert(1);
        loop {
            *number += 1;
            let candidate = format!("{name}_{number}");
            if self.names.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}

/// 64-bit FNV-1a: the standard hasher promises no stability between releases.
pub(crate) struct Fnv(pub(crate) u64);

impl Fnv {
    pub(crate) fn new() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    /// A text and an end mark.
    pub(crate) fn text(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
