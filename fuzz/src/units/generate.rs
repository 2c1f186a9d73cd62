//! Bytes to a well-typed program: every choice is a byte, and what is chosen among is asked of the operator registry,
//! so that an operator is generated as soon as it exists.

use std::fmt::Write as _;

use kina_ad::ir::operator::{Call, Param, Visibility};
use kina_ad::ir::{AttrKind, AttrValue, DType, Placement, Registry, Shape, TensorType};

/// Largest tensor of a generated program, in elements.
const MAX_ELEMENTS: u64 = 512;
/// Most operator calls of a function.
const MAX_CALLS: usize = 12;
/// Sizes around those of vectors.
const SIZES: [u64; 10] = [2, 3, 1, 4, 5, 0, 8, 16, 17, 33];

/// The input of a fuzz target as a sequence of choices; zeros once it is used up.
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub fn new(data: &'a [u8]) -> Choices<'a> {
        Choices(data)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// One of `0..n`; 0 if there is nothing to choose from.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).cloned()
    }
}

/// A value of the program by the name that it has there.
#[derive(Clone, Debug)]
struct Named {
    name: String,
    ty: TensorType,
}

/// A program of a few inputs and one or two functions, of which gradients are taken.
pub fn program(choices: &mut Choices<'_>, registry: &Registry) -> String {
    let mut writer = Writer { choices, registry, text: String::new(), next: 0 };
    let inputs = writer.inputs();
    let twice = writer.choices.below(4) == 3;
    writer.function("f", &inputs, None);
    if twice {
        writer.function("h", &inputs, Some("f"));
    }
    let name = if twice { "h" } else { "f" };
    let arguments: Vec<&str> = inputs.iter().map(|i| i.name.as_str()).collect();
    let handle = if writer.choices.below(4) == 3 { ("", "") } else { ("handle ", " with reverseMode") };
    let _ = write!(writer.text, "{}{name}({}){}", handle.0, arguments.join(", "), handle.1);
    writer.text
}

struct Writer<'w, 'a> {
    choices: &'w mut Choices<'a>,
    registry: &'w Registry,
    text: String,
    /// Number of the next value.
    next: usize,
}

impl Writer<'_, '_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next)
    }

    /// One to four inputs of related shapes, at least one of them float.
    fn inputs(&mut self) -> Vec<Named> {
        let rank = self.choices.below(4);
        let dims: Vec<u64> = (0..rank).map(|_| self.choices.pick(&SIZES).unwrap_or(2)).collect();
        let float = if self.choices.below(3) == 2 { DType::F64 } else { DType::F32 };
        let mut inputs = Vec::new();
        for number in 0..=self.choices.below(4) {
            let (mut dims, mut dtype) = (dims.clone(), float);
            match self.choices.below(8) {
                1 if rank > 0 => {
                    let axis = self.choices.below(rank);
                    dims[axis] = self.choices.pick(&SIZES).unwrap_or(1);
                }
                2 if rank > 0 => {
                    dims.remove(self.choices.below(rank));
                }
                3 => dims.push(self.choices.pick(&SIZES).unwrap_or(2)),
                _ => {}
            }
            if number > 0 {
                let other = [DType::I64, DType::I32, DType::Bool, DType::F32, DType::F64];
                dtype = *other.get(self.choices.below(10)).unwrap_or(&float);
            }
            let ty = small(dtype, dims);
            let name = format!("x{number}");
            self.line(&format!("let {name} = {ty} in"));
            inputs.push(Named { name, ty });
        }
        inputs
    }

    /// `let NAME = fn(p0: .., ..) { .. } in`, of one float tensor. `inner` is a function of the same parameters, whose
    /// value and gradients it uses.
    fn function(&mut self, name: &str, inputs: &[Named], inner: Option<&str>) {
        let params: Vec<Named> =
            inputs.iter().map(|i| Named { name: format!("p{}", i.name), ty: i.ty.clone() }).collect();
        let written: Vec<String> = params.iter().map(|p| format!("{}: {}", p.name, p.ty)).collect();
        self.line(&format!("let {name} = fn({}) {{", written.join(", ")));
        // Parameters first, then what is captured.
        let mut values: Vec<Named> = params.iter().chain(inputs).cloned().collect();
        if let Some(inner) = inner {
            values.extend(self.gradients(inner, &params));
        }
        for _ in 0..MAX_CALLS {
            if self.choices.is_empty() {
                break;
            }
            values.extend(self.call(&values));
        }
        let floats: Vec<&Named> = values.iter().filter(|v| v.ty.dtype.is_float()).collect();
        // Mostly the last one, on which most depends.
        let back = self.choices.below(4).min(floats.len() - 1);
        let result = floats[floats.len() - 1 - back].name.clone();
        self.line(&format!("{result}\n}} in"));
    }

    /// `let (primal, gradients..) = handle inner(params) with reverseMode in`
    fn gradients(&mut self, inner: &str, params: &[Named]) -> Vec<Named> {
        let primal = self.fresh();
        let floats = params.iter().filter(|p| p.ty.dtype.is_float());
        let gradients: Vec<Named> = floats.map(|p| Named { name: format!("d{}", p.name), ty: p.ty.clone() }).collect();
        let names: Vec<&str> = gradients.iter().map(|g| g.name.as_str()).collect();
        let arguments: Vec<&str> = params.iter().map(|p| p.name.as_str()).collect();
        self.line(&format!(
            "let ({primal}, {}) = handle {inner}({}) with reverseMode in",
            names.join(", "),
            arguments.join(", ")
        ));
        gradients
    }

    /// One call of an operator that is well-typed; nothing if none was found.
    fn call(&mut self, values: &[Named]) -> Option<Named> {
        let operators: Vec<_> =
            self.registry.iter().filter(|(_, op)| op.visibility() == Visibility::Surface).collect();
        let (id, op) = operators[self.choices.below(operators.len())];
        let wanted = op.signature().operand_count();
        let first = values[self.recent(values.len())].clone();
        let attrs: Vec<AttrValue> =
            op.signature().attrs().map(|(_, kind, _)| self.attribute(kind, &first.ty, values)).collect::<Option<_>>()?;
        // Operands behind the first one in the order in which the bytes prefer them; the first ones that fit.
        let mut operands: Vec<Named> = Vec::new();
        if wanted > 0 {
            let mut candidates: Vec<Vec<Named>> = vec![vec![first]];
            for _ in 1..wanted {
                let start = self.choices.below(values.len());
                let rotated: Vec<&Named> = values[start..].iter().chain(&values[..start]).collect();
                let longer = |c: &Vec<Named>| rotated.iter().map(|v| [&c[..], &[(*v).clone()]].concat()).collect::<Vec<_>>();
                candidates = candidates.iter().flat_map(longer).collect();
            }
            let fits = |c: &&Vec<Named>| self.registry.infer(id, &types(c), &attrs).is_ok();
            operands = candidates.iter().find(fits)?.clone();
        }
        let ty = self.registry.infer(id, &types(&operands), &attrs).ok()?;
        let operand_types = types(&operands);
        if ty.shape.elements() > MAX_ELEMENTS || ty.rank() > 6 {
            return None;
        }
        // An index operand gets no values that depend on anything: most would be out of bounds.
        let bound = op.bound(Call { operands: &operand_types, attrs: &attrs });
        if bound.is_some_and(|b| operands[b.operand].name.starts_with('v') && self.choices.below(4) != 3) {
            return None;
        }
        let mut arguments = Vec::new();
        let (mut operand, mut attr) = (operands.iter(), attrs.iter());
        for param in op.signature().params() {
            match param {
                Param::Operand(_) => arguments.extend(operand.next().map(|o| o.name.clone())),
                Param::Attr { name, .. } => arguments.extend(attr.next().map(|a| format!("{name}={a}"))),
            }
        }
        let name = self.fresh();
        self.line(&format!("  let {name} = {}({}) in", op.name(), arguments.join(", ")));
        Some(Named { name, ty })
    }

    /// An index below `n`, near its end more often than not.
    fn recent(&mut self, n: usize) -> usize {
        let byte = usize::from(self.choices.byte());
        if byte.is_multiple_of(2) { n - 1 - (byte / 2) % n.min(3) } else { (byte / 2) % n }
    }

    /// An attribute that suits an operand of type `ty`.
    fn attribute(&mut self, kind: AttrKind, ty: &TensorType, values: &[Named]) -> Option<AttrValue> {
        let rank = ty.rank();
        Some(match kind {
            AttrKind::Bool => AttrValue::Bool(self.choices.below(2) == 1),
            AttrKind::Int => AttrValue::Int(self.choices.below(4) as i64),
            AttrKind::Float => {
                let numbers = [1.0, 2.0, 0.5, -1.0, 0.0, 3.0, 1e-3, -0.0, 100.0, f64::INFINITY, f64::NAN];
                AttrValue::float(self.choices.pick(&numbers)?)
            }
            AttrKind::Axis => AttrValue::Int(if rank == 0 { return None } else { self.choices.below(rank) as i64 }),
            AttrKind::Axes => {
                let mask = self.choices.byte();
                let axes: Vec<i64> = (0..rank as i64).filter(|a| mask >> (a % 8) & 1 == 1).collect();
                if axes.is_empty() { return None } else { AttrValue::Ints(axes) }
            }
            AttrKind::Permutation => {
                let mut left: Vec<i64> = (0..rank as i64).collect();
                let mut axes = Vec::new();
                while !left.is_empty() {
                    axes.push(left.remove(self.choices.below(left.len())));
                }
                AttrValue::Ints(axes)
            }
            AttrKind::Shape => self.shape(ty, values),
            AttrKind::DType => AttrValue::DType(self.choices.pick(&DType::ALL)?),
            AttrKind::Type => AttrValue::Type(values[self.recent(values.len())].ty.clone()),
        })
    }

    /// A shape that `ty` may be brought to: that of another value, or its own with a dimension added, stretched, merged
    /// or split.
    fn shape(&mut self, ty: &TensorType, values: &[Named]) -> AttrValue {
        let mut dims = ty.shape.to_vec();
        match self.choices.below(5) {
            0 => dims = values[self.choices.below(values.len())].ty.shape.to_vec(),
            1 => dims.insert(self.choices.below(dims.len() + 1), 1),
            2 => {
                for d in dims.iter_mut().filter(|d| **d == 1) {
                    *d = SIZES[self.choices.below(SIZES.len())];
                }
                if self.choices.below(2) == 1 {
                    dims.insert(0, SIZES[self.choices.below(SIZES.len())]);
                }
            }
            3 if dims.len() > 1 => {
                let axis = self.choices.below(dims.len() - 1);
                dims[axis] *= dims.remove(axis + 1);
            }
            _ => {
                if let Some(axis) = dims.iter().position(|d| d.is_multiple_of(2) && *d > 0) {
                    dims[axis] /= 2;
                    dims.insert(axis, 2);
                } else {
                    dims = vec![ty.shape.elements()];
                }
            }
        }
        AttrValue::Ints(dims.into_iter().map(|d| d as i64).collect())
    }
}

/// A tensor of these dimensions, or a scalar if it would have too many elements.
fn small(dtype: DType, dims: Vec<u64>) -> TensorType {
    let shape = Shape::new(dims).ok().filter(|s| s.elements() <= MAX_ELEMENTS).unwrap_or_default();
    TensorType::new(dtype, shape, Placement::Host)
}

fn types(values: &[Named]) -> Vec<&TensorType> {
    values.iter().map(|v| &v.ty).collect()
}
