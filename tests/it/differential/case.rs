//! A program with its inputs, as text: what is kept of a failure.
//!
//! ```text
//! // One line that says what the program once showed.
//! // input x1: 1.0, -0.0, NaN, inf
//! let x1 = tensor<F32, [4], @host> in
//! x1.exp()
//! ```
//!
//! Elements are in row-major order; a list that is too short is repeated, and it may go on in lines that begin with
//! `//   `. Inputs without a list are generated, as they are on the command line.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use kina_ad::exec::inputs::gather;
use kina_ad::exec::{Data, Tensor};
use kina_ad::ir::{DType, Graph, TensorType};

/// Elements in one line of a list.
const IN_A_LINE: usize = 12;

#[derive(Clone, Debug)]
pub struct Case {
    pub program: String,
    /// Names and elements.
    pub inputs: Vec<(String, Vec<String>)>,
    /// What its calls show; see [`coverage`](super::coverage).
    pub features: BTreeSet<String>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, elements) in &self.inputs {
            write!(f, "// input {name}:")?;
            for (i, element) in elements.iter().enumerate() {
                let separator = if i == 0 {
                    " "
                } else if i % IN_A_LINE == 0 {
                    ",\n//   "
                } else {
                    ", "
                };
                write!(f, "{separator}{element}")?;
            }
            f.write_char('\n')?;
        }
        f.write_str(&self.program)
    }
}

fn parsed<T: std::str::FromStr + Clone>(list: &[&str], count: usize) -> Result<Vec<T>, String> {
    let one = |e: &&str| e.parse().map_err(|_| format!("`{e}` is no element of its dtype"));
    let elements = list.iter().map(one).collect::<Result<Vec<T>, String>>()?;
    Ok(elements.into_iter().cycle().take(count).collect())
}

fn tensor_of(ty: &TensorType, list: &[&str]) -> Result<Tensor, String> {
    let count = ty.shape.elements() as usize;
    let data = match ty.dtype {
        DType::Bool => Data::Bool(parsed::<bool>(list, count)?.into_iter().map(u8::from).collect()),
        DType::I32 => Data::I32(parsed(list, count)?),
        DType::I64 => Data::I64(parsed(list, count)?),
        DType::F32 => Data::F32(parsed(list, count)?),
        DType::F64 => Data::F64(parsed(list, count)?),
    };
    Tensor::new(ty.shape.clone(), data).map_err(|e| e.to_string())
}

/// The lists of inputs in the head of a file.
pub fn input_lists(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut lists: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut inside = false;
    for line in text.lines().map_while(|line| line.strip_prefix("//")) {
        let rest = if let Some((name, rest)) = line.strip_prefix(" input ").and_then(|l| l.split_once(':')) {
            lists.push((name, Vec::new()));
            inside = true;
            rest
        } else if inside && line.starts_with("   ") {
            line
        } else {
            inside = false;
            continue;
        };
        let elements = rest.split(',').map(str::trim).filter(|e| !e.is_empty());
        lists.last_mut().expect("a list was begun").1.extend(elements);
    }
    lists
}

/// The inputs of a checked program, in its order.
pub fn inputs_of(text: &str, graph: &Graph) -> Result<Vec<Tensor>, String> {
    let mut given = Vec::new();
    for (name, list) in input_lists(text) {
        let input = graph.inputs.iter().find(|id| graph.node(**id).name.as_deref() == Some(name));
        let ty = graph.ty(*input.ok_or_else(|| format!("the program has no input `{name}`"))?);
        given.push((name.to_owned(), tensor_of(ty, &list).map_err(|e| format!("input `{name}`: {e}"))?));
    }
    let inputs = gather(graph, given, 0).map_err(|e| e.to_string())?;
    Ok(inputs.into_iter().map(|input| input.tensor).collect())
}
