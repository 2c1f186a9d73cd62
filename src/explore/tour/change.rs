//! Two extracted graphs beside each other.

use std::collections::{BTreeMap, BTreeSet};

use super::page::{Line, Mark};
use super::state::State;
use crate::diagnostics::SourceMap;
use crate::ir::print::Printer;
use crate::ir::{Graph, NodeId, NodeKind, Registry};

/// What two graphs have in common, and what not. Both columns have the same number of lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    pub before: Vec<Line>,
    pub after: Vec<Line>,
    pub removed: usize,
    pub added: usize,
}

/// Equal lines that are shown before and after those that differ.
const CONTEXT: usize = 2;

/// Compares the graphs of two states. A value has the name that it has afterwards, so that one keeps its name when others change.
/// With `all`, equal lines are shown too, wherever they are.
pub fn change(before: &State, after: &State, registry: &Registry, sources: &SourceMap, all: bool) -> Change {
    let (Some(old), Some(new)) = (&before.graph, &after.graph) else { return Change::default() };
    let names = names_of_before(before, after);
    let old = rows(old, registry, sources, names, &before.classes);
    let new = rows(new, registry, sources, after.names.clone(), &after.classes);
    align(&old, &new, all)
}

fn names_of_before(before: &State, after: &State) -> Vec<String> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut names: Vec<Option<String>> = Vec::with_capacity(before.names.len());
    for class in &before.classes {
        let name = after.value(*class).and_then(|v| after.names.get(v.index()));
        names.push(name.filter(|n| taken.insert((*n).clone())).cloned());
    }
    // Names of what has gone must not be those of what is there now.
    taken.extend(after.names.iter().cloned());
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    names
        .into_iter()
        .zip(&before.names)
        .map(|(name, own)| {
            name.unwrap_or_else(|| {
                if taken.insert(own.clone()) {
                    return own.clone();
                }
                let number = last.entry(own).or_insert(0);
                loop {
                    *number += 1;
                    let name = format!("{own}'{number}");
                    if taken.insert(name.clone()) {
                        return name;
                    }
                }
            })
        })
        .collect()
}

/// One line for each value, inputs aside, and one for each result.
pub fn rows(
    graph: &Graph,
    registry: &Registry,
    sources: &SourceMap,
    names: Vec<String>,
    classes: &[egg::Id],
) -> Vec<Line> {
    let printer = Printer::with_names(graph, registry, sources, names);
    let line = |id: NodeId, text: String| {
        let line = Line::plain(text);
        match classes.get(id.index()) {
            Some(class) => line.about(*class),
            None => line,
        }
    };
    let values = graph
        .iter()
        .filter(|(_, node)| node.kind != NodeKind::Input)
        .map(|(id, node)| line(id, format!("{} = {} : {}", printer.names()[id.index()], printer.call(id), node.ty)));
    let results =
        graph.outputs.iter().map(|o| line(o.node, format!("result {} = {}", o.name, printer.names()[o.node.index()])));
    values.chain(results).collect()
}

/// The longest list of lines that both have in the same order stands side by side, the others where they belong.
fn align(old: &[Line], new: &[Line], all: bool) -> Change {
    let places: BTreeMap<&str, usize> = new.iter().enumerate().map(|(i, l)| (&*l.text, i)).collect();
    let common: Vec<(usize, usize)> =
        old.iter().enumerate().filter_map(|(i, l)| Some((i, *places.get(&*l.text)?))).collect();
    let kept = rising(&common);
    let is_new: BTreeSet<&str> = new.iter().map(|l| &*l.text).collect();
    let is_old: BTreeSet<&str> = old.iter().map(|l| &*l.text).collect();
    let mut pairs: Vec<(Line, Line)> = Vec::new();
    let empty = || Line::plain("");
    let (mut removed, mut added) = (0, 0);
    let (mut i, mut j) = (0, 0);
    for (a, b) in kept.into_iter().chain([(old.len(), new.len())]) {
        // What merely stands elsewhere is no change.
        let left = old[i..a].iter().map(|l| {
            let is_gone = !is_new.contains(&*l.text);
            removed += usize::from(is_gone);
            Line { mark: if is_gone { Mark::Removed } else { Mark::Plain }, ..l.clone() }
        });
        let mut left: Vec<Line> = left.filter(|l| l.mark == Mark::Removed).collect();
        let right = new[j..b].iter().map(|l| {
            let is_there = !is_old.contains(&*l.text);
            added += usize::from(is_there);
            Line { mark: if is_there { Mark::Added } else { Mark::Plain }, ..l.clone() }
        });
        let mut right: Vec<Line> = right.collect();
        // Moved lines stand where they are now.
        let moved: Vec<Line> = right.extract_if(.., |l| l.mark == Mark::Plain).collect();
        let rows = left.len().max(right.len());
        left.resize_with(rows, empty);
        right.resize_with(rows, empty);
        pairs.extend(left.into_iter().zip(right));
        pairs.extend(moved.into_iter().map(|l| (l.clone(), l)));
        if let (Some(x), Some(y)) = (old.get(a), new.get(b)) {
            pairs.push((x.clone(), y.clone()));
        }
        (i, j) = ((a + 1).min(old.len()), (b + 1).min(new.len()));
    }
    let pairs = if all { pairs } else { around(pairs) };
    let (before, after) = pairs.into_iter().unzip();
    Change { before, after, removed, added }
}

/// The pairs that differ and those around them; of the others only how many they are.
fn around(pairs: Vec<(Line, Line)>) -> Vec<(Line, Line)> {
    let differs: Vec<usize> =
        (0..pairs.len()).filter(|i| pairs[*i].0.mark != Mark::Plain || pairs[*i].1.mark != Mark::Plain).collect();
    let mut near = vec![false; pairs.len()];
    for i in &differs {
        let (from, to) = (i.saturating_sub(CONTEXT), (i + CONTEXT + 1).min(pairs.len()));
        near[from..to].iter_mut().for_each(|n| *n = true);
    }
    let mut out = Vec::new();
    let mut hidden = 0;
    let tell = |hidden: &mut usize, out: &mut Vec<(Line, Line)>| {
        if *hidden > 0 {
            let line = Line::new(Mark::Faint, format!("... {} the same", super::page::count(*hidden, "line")));
            out.push((line.clone(), line));
            *hidden = 0;
        }
    };
    for (pair, near) in pairs.into_iter().zip(near) {
        if near {
            tell(&mut hidden, &mut out);
            out.push(pair);
        } else {
            hidden += 1;
        }
    }
    tell(&mut hidden, &mut out);
    out
}

/// The longest part of the pairs, whose first members rise, in which the second members rise as well.
fn rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the pair that ends such a part with the least second member; and before each pair the one that comes before.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (i, (_, b)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *b);
        previous.push(length.checked_sub(1).map(|l| ends[l]));
        match ends.get_mut(length) {
            Some(end) => *end = i,
            None => ends.push(i),
        }
    }
    let mut out = Vec::new();
    let mut at = ends.last().copied();
    while let Some(i) = at {
        out.push(pairs[i]);
        at = previous[i];
    }
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<Line> {
        texts.iter().map(Line::plain).collect()
    }

    #[test]
    fn what_stands_on_both_sides_stands_side_by_side() {
        let (old, new) = (lines(&["a", "b", "c", "d"]), lines(&["a", "x", "y", "d", "c"]));
        let change = align(&old, &new, true);
        assert_eq!((change.removed, change.added), (1, 2));
        assert_eq!(change.before.len(), change.after.len());
        let marked = |lines: &[Line]| lines.iter().map(Line::marked).collect::<Vec<_>>();
        assert_eq!(marked(&change.before), ["  a", "- b", "  ", "  d", "  c"]);
        assert_eq!(marked(&change.after), ["  a", "+ x", "+ y", "  d", "  c"]);
    }

    #[test]
    fn what_is_far_from_any_change_is_counted() {
        let old: Vec<String> = (0..20).map(|i| format!("v{i}")).collect();
        let mut new = old.clone();
        new[10] = "w".to_owned();
        let of = |texts: &[String]| texts.iter().map(Line::plain).collect::<Vec<_>>();
        let change = align(&of(&old), &of(&new), false);
        assert_eq!(change.before.len(), 7);
        assert_eq!(change.before[0].text, "... 8 lines the same");
        assert_eq!(change.after[3].marked(), "+ w");
        assert_eq!(align(&of(&old), &of(&old), false).before.len(), 1);
    }
}
