//! What a value is lowered to: the part of the module that computes it.

use super::page::Line;
use crate::ir::{Graph, Level, NodeId, Registry};

#[cfg(not(feature = "codegen"))]
pub fn lines(_: &Graph, _: &Registry, _: Level, _: NodeId) -> Vec<Line> {
    vec![
        Line::plain("this kina-ad was built without code generation"),
        Line::plain("build with the feature `codegen` to see linalg"),
    ]
}

/// The operations of the program's module that compute the value; the module of the value alone where it has none of its own
/// since others compute it on their way.
#[cfg(feature = "codegen")]
pub fn lines(graph: &Graph, registry: &Registry, level: Level, node: NodeId) -> Vec<Line> {
    use super::page::Mark;
    use crate::ir::{NodeKind, Output};
    use crate::lower::{Stage, emit};

    let refused = |error: &crate::lower::LowerError| -> Vec<Line> {
        error.to_string().lines().chain([error.help()]).map(Line::plain).collect()
    };
    if graph.node(node).kind == NodeKind::Input {
        return vec![Line::plain("an input of the program: an argument of `@main`")];
    }
    let mut places = vec![None; graph.len()];
    places[node.index()] = Some((PLACE.into(), 1));
    let text = match emit(graph, registry, level, Stage::Linalg, places, true) {
        Ok(text) => text,
        Err(error) => return refused(&error),
    };
    let own = part(&text);
    if !own.is_empty() {
        return own.into_iter().map(Line::plain).collect();
    }
    // The call by itself: what it reads is an input.
    let mut alone = Graph::new();
    let mut call = graph.node(node).clone();
    let mut map = std::collections::BTreeMap::new();
    if let NodeKind::Op { operands, .. } = &mut call.kind {
        for operand in operands {
            let input = *map.entry(*operand).or_insert_with(|| {
                let node = graph.node(*operand);
                let id = alone.push(crate::ir::Node { kind: NodeKind::Input, ..node.clone() });
                alone.inputs.push(id);
                id
            });
            *operand = input;
        }
    }
    let name = call.name.clone().unwrap_or_else(|| "value".into());
    let result = alone.push(call);
    alone.outputs.push(Output { name, node: result });
    let mut places = vec![None; alone.len()];
    places[result.index()] = Some((PLACE.into(), 1));
    match emit(&alone, registry, Level::O0, Stage::Linalg, places, true) {
        Ok(text) => {
            let remark = "no operation of its own: what reads it computes it on the way; alone it would be";
            let own = part(&text).into_iter().map(Line::plain);
            std::iter::once(Line::new(Mark::Faint, remark)).chain(own).collect()
        }
        Err(error) => refused(&error),
    }
}

/// The file that operations of the value are said to be from.
#[cfg(feature = "codegen")]
const PLACE: &str = "kina-ad explore: this value";

/// The operations of a module with locations that are from [`PLACE`], with the maps that they use and without locations.
#[cfg(feature = "codegen")]
fn part(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    // `#loc3 = loc("kina..":1:1)`, `#loc7 = loc("name"(#loc3))`
    let mut own: Vec<String> = vec![format!("\"{PLACE}\"")];
    let mut known = 0;
    while known < own.len() {
        let needle = own[known].clone();
        for line in lines.iter().filter(|l| l.starts_with("#loc")) {
            if let Some((id, place)) = line.split_once(" = ")
                && holds(place, &needle)
                && !own.iter().any(|o| o == id)
            {
                own.push(id.to_owned());
            }
        }
        known += 1;
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut taken = vec![false; lines.len()];
    for (i, line) in lines.iter().enumerate() {
        let Some(at) = line.rfind(" loc(").filter(|_| !line.starts_with('#')) else { continue };
        if line.trim_start().starts_with("^") || !own.iter().any(|o| holds(&line[at..], o)) {
            continue;
        }
        // The end of a region: all of it, from the line that opens it.
        let mut from = i;
        if line.trim_start().starts_with('}') {
            while from > 0 && (indent(lines[from]) > indent(line) || lines[from].trim_start().starts_with(['}', '^'])) {
                from -= 1;
            }
        }
        taken[from..=i].iter_mut().for_each(|t| *t = true);
    }
    let body: Vec<String> = lines.iter().zip(&taken).filter(|(_, t)| **t).map(|(l, _)| without_places(l)).collect();
    let least = body.iter().map(|l| indent(l)).min().unwrap_or(0);
    let uses = |map: &str| body.iter().any(|l| holds(l, map));
    let maps = lines.iter().filter(|l| l.starts_with("#map"));
    let mut out: Vec<String> =
        maps.filter(|l| l.split_once(" = ").is_some_and(|(name, _)| uses(name))).map(|l| (*l).to_owned()).collect();
    out.extend(body.iter().map(|l| l[least.min(l.len())..].to_owned()));
    out
}

/// Does `text` hold `word`, and not as the beginning of a longer one?
#[cfg(feature = "codegen")]
fn holds(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| !text[at + word.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

/// A line without its ` loc(..)`s.
#[cfg(feature = "codegen")]
fn without_places(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(" loc(") {
        out.push_str(&rest[..at]);
        let (mut depth, mut quoted, mut end) = (0usize, false, rest.len());
        for (i, c) in rest[at..].char_indices() {
            match c {
                '"' => quoted = !quoted,
                '(' if !quoted => depth += 1,
                ')' if !quoted => {
                    depth -= 1;
                    if depth == 0 {
                        end = at + i + 1;
                        break;
                    }
                }
                _ => {}
            }
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}
