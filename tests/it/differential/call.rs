//! One call: which types its operands have, its attributes, and how it is written.

use std::collections::BTreeSet;

use kina_ad::ir::attr::format_float;
use kina_ad::ir::operator::Default as AttrDefault;
use kina_ad::ir::{AttrKind, AttrValue, DType, Param, TensorType};

use super::build::{Builder, MAX_ELEMENTS, MAX_RANK, bounded, host};
use super::coverage;
use super::script::Numbers;
use super::vocabulary::{Callee, Vocabulary};

/// Constants that F32 represents. The last are rare.
pub const FLOATS: [f64; 12] =
    [1.0, 2.0, 0.5, -1.0, 0.0, -0.25, 3.0, -0.0, 0.1, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
const INTS: [i64; 6] = [1, 2, 0, -1, 3, -7];

/// What a call may grow to, in elements.
const LARGEST: u64 = 4 * MAX_ELEMENTS;

/// A well-typed call.
pub struct Plan {
    pub operands: Vec<TensorType>,
    pub attrs: Vec<AttrValue>,
    pub result: TensorType,
}

/// Infix operators by the name of what they call.
fn infix(name: &str) -> Option<&'static str> {
    Some(match name {
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "div" => "/",
        "equal" => "==",
        "not_equal" => "!=",
        "less" => "<",
        "less_equal" => "<=",
        "greater" => ">",
        "greater_equal" => ">=",
        _ => return None,
    })
}

/// The types of the operands, if `base` is the type that decides. Where the family is not listed, all are alike.
pub fn operand_types(
    callee: &Callee,
    base: &TensorType,
    attrs: &[AttrValue],
    numbers: &mut Numbers<'_>,
) -> Vec<TensorType> {
    match callee.name.as_str() {
        "nll" | "cross_entropy" | "weighted_cross_entropy" => {
            let axis = attrs.first().and_then(AttrValue::as_int).unwrap_or(0) as usize;
            let rows = if axis < base.rank() { base.with_shape(base.shape.without(axis)) } else { base.clone() };
            let classes = base.shape.get(axis).copied().unwrap_or(1);
            let all = [base.clone(), rows.with_dtype(DType::I64), host(base.dtype, vec![classes])];
            all.into_iter().take(callee.signature.operand_count()).collect()
        }
        "take_along_axis" => {
            let axis = attrs.first().and_then(AttrValue::as_int).unwrap_or(0) as usize;
            if axis >= base.rank() {
                return vec![base.clone(); 2];
            }
            vec![base.clone(), base.with_shape(base.shape.without(axis)).with_dtype(DType::I64)]
        }
        "gather" => {
            let dims = (0..numbers.below(3)).map(|_| Builder::dim(numbers)).collect();
            let dtype = if numbers.one_in(3) { DType::I32 } else { DType::I64 };
            vec![base.clone(), host(dtype, dims)]
        }
        "matmul" if base.rank() >= 2 => {
            let mut dims = base.shape.to_vec();
            let columns = dims[dims.len() - 1];
            dims.truncate(dims.len() - 2);
            dims.extend([columns, Builder::dim(numbers)]);
            vec![base.clone(), host(base.dtype, dims)]
        }
        "concat" => {
            let axis = attrs.first().and_then(AttrValue::as_int).unwrap_or(0) as usize;
            let count = *numbers.pick(&[2, 3, 1]);
            let mut part = || {
                let mut dims = base.shape.to_vec();
                dims.get_mut(axis).into_iter().for_each(|d| *d = Builder::dim(numbers));
                host(base.dtype, dims)
            };
            std::iter::once(base.clone()).chain((1..count).map(|_| part())).collect()
        }
        "select" => vec![base.with_dtype(DType::Bool), base.clone(), base.clone()],
        _ => vec![base.clone(); callee.signature.operand_count()],
    }
}

/// `n` things in an order that the numbers choose.
fn shuffled(n: usize, numbers: &mut Numbers<'_>) -> Vec<i64> {
    let mut left: Vec<i64> = (0..n as i64).collect();
    (0..n).map(|_| left.remove(numbers.below(left.len()))).collect()
}

/// A shape to which a shape stretches.
fn stretched(dims: &[u64], numbers: &mut Numbers<'_>) -> Vec<i64> {
    let added = numbers.below(MAX_RANK + 1 - dims.len().min(MAX_RANK));
    let mut out: Vec<u64> = (0..added).map(|_| Builder::dim(numbers)).collect();
    out.extend(dims.iter().map(|d| if *d == 1 { Builder::dim(numbers) } else { *d }));
    let small = bounded(out.clone());
    // What cannot be stretched further stays.
    let fits = small[added..].iter().zip(dims).all(|(s, d)| s == d || *d == 1);
    let chosen = if fits { small } else { dims.to_vec() };
    chosen.into_iter().map(|d| d as i64).collect()
}

/// A shape of as many elements.
fn refactored(dims: &[u64], numbers: &mut Numbers<'_>) -> Vec<i64> {
    let mut dims = dims.to_vec();
    for _ in 0..1 + numbers.below(3) {
        let at = numbers.below(dims.len().max(1));
        match numbers.below(4) {
            0 if dims.len() > 1 => {
                let at = at.min(dims.len() - 2);
                let next = dims.remove(at + 1);
                dims[at] *= next;
            }
            1 if dims.get(at).is_some_and(|d| *d > 3 && d % 2 == 0) && dims.len() < MAX_RANK => {
                dims[at] /= 2;
                dims.insert(at, 2);
            }
            2 if dims.get(at) == Some(&1) => {
                dims.remove(at);
            }
            _ if dims.len() < MAX_RANK => dims.insert(numbers.below(dims.len() + 1), 1),
            _ => {}
        }
    }
    dims.into_iter().map(|d| d as i64).collect()
}

/// The dtypes that the operands of a callee may have together.
pub fn operand_dtypes(vocabulary: &Vocabulary<'_>, callee: &Callee) -> BTreeSet<Vec<DType>> {
    let dtypes = |operands: &[TensorType]| operands.iter().map(|t| t.dtype).collect::<Vec<_>>();
    let mut all = BTreeSet::new();
    for dtype in DType::ALL {
        for dims in [vec![2, 2], vec![]] {
            let plan = Plan::around(vocabulary, callee, &host(dtype, dims), false, &mut Numbers::new(&[]));
            all.extend(plan.map(|plan| dtypes(&plan.operands)));
        }
    }
    if all.is_empty() {
        all.extend(vocabulary.instances(callee).iter().map(|(operands, _)| dtypes(operands)));
    }
    all
}

impl Plan {
    /// The rank that axes count in.
    fn rank(&self) -> usize {
        self.operands.first().unwrap_or(&self.result).rank()
    }

    /// The call with operands around a type.
    fn around(
        vocabulary: &Vocabulary<'_>,
        callee: &Callee,
        base: &TensorType,
        reshaping: bool,
        numbers: &mut Numbers<'_>,
    ) -> Option<Plan> {
        let attrs: Vec<AttrValue> =
            callee.signature.attr_params().map(|param| any_attribute(param, base, reshaping, numbers)).collect();
        let operands = operand_types(callee, base, &attrs, numbers);
        Plan::typed(vocabulary, callee, operands, attrs)
    }

    /// The call, if it is well-typed and can be written.
    pub fn typed(
        vocabulary: &Vocabulary<'_>,
        callee: &Callee,
        operands: Vec<TensorType>,
        attrs: Vec<AttrValue>,
    ) -> Option<Plan> {
        let result = vocabulary.result(callee, &operands, &attrs).filter(|ty| ty.shape.elements() <= LARGEST)?;
        // An empty list of axes is what leaving `axis` out may mean; it cannot be written.
        let unwritten = |((_, kind, default), value): ((&str, AttrKind, Option<&AttrDefault>), &AttrValue)| {
            let none = kind == AttrKind::Axes && value.as_ints().is_some_and(<[i64]>::is_empty);
            none && default != Some(&AttrDefault::AllAxes)
        };
        if callee.signature.attrs().zip(&attrs).any(unwritten) {
            return None;
        }
        // No index is in bounds of a dimension without elements.
        let bound = vocabulary.bound(callee, &operands, &attrs);
        let possible = bound.is_none_or(|b| b.size > 0 || operands[b.operand].shape.elements() == 0);
        possible.then_some(Plan { operands, attrs, result })
    }
}

impl Builder<'_> {
    /// Calls an operator or `def` with operands of a type that the numbers choose.
    pub fn call(&mut self, callee: &Callee, numbers: &mut Numbers<'_>) {
        let favourite = self.favourite(numbers);
        let Some(plan) = self.plan(callee, favourite, numbers) else { return };
        let bound = self.vocabulary.bound(callee, &plan.operands, &plan.attrs);
        // The operand that the favourite becomes.
        let suiting: Vec<usize> = match favourite.map(|f| &self.values[f].ty) {
            Some(ty) => (0..plan.operands.len()).filter(|i| plan.operands[*i] == *ty).collect(),
            None => Vec::new(),
        };
        let place = if suiting.is_empty() { 0 } else { *numbers.pick(&suiting) };
        let mut operands = Vec::new();
        for (i, ty) in plan.operands.iter().enumerate() {
            operands.push(match bound.filter(|b| b.operand == i) {
                Some(bound) => self.indices(ty, bound.size, numbers),
                None => match favourite.filter(|_| i == place) {
                    Some(favourite) if self.values[favourite].ty == *ty => favourite,
                    Some(favourite) if numbers.below(4) < 3 => self.convert(favourite, ty, numbers),
                    _ => self.operand(ty, numbers),
                },
            });
        }
        let dtypes: Vec<DType> = plan.operands.iter().map(|t| t.dtype).collect();
        self.features.insert(coverage::call(&callee.name, &dtypes));
        let rank = plan.rank();
        for ((name, kind, _), value) in callee.signature.attrs().zip(&plan.attrs) {
            self.features.extend(coverage::attribute(&callee.name, name, kind, value, rank));
        }
        let text = self.written(callee, &plan, &operands, numbers);
        self.bind(&text, plan.result);
    }

    /// Types and attributes with which the call is well-typed: around the type of the favourite, if that works.
    fn plan(&mut self, callee: &Callee, favourite: Option<usize>, numbers: &mut Numbers<'_>) -> Option<Plan> {
        let ty = match favourite {
            Some(place) => self.values[place].ty.clone(),
            None => host(DType::F32, self.dims(numbers)),
        };
        // Its dtype first, or another one first.
        let turn = numbers.below(3 * DType::ALL.len());
        let mut dtypes: Vec<DType> = DType::ALL.into_iter().cycle().skip(turn).take(DType::ALL.len()).collect();
        if turn >= DType::ALL.len() {
            dtypes.insert(0, ty.dtype);
        }
        let lifted = |ones: usize| [&vec![1; ones][..], &ty.shape].concat();
        let filled = ty.shape.iter().map(|d| (*d).max(2)).collect();
        let shapes = [ty.shape.to_vec(), lifted(1), lifted(2), bounded(filled)];
        // Attributes are drawn once, so that every attempt uses as many numbers.
        let seeds: Vec<u8> = (0..6).map(|_| numbers.next()).collect();
        for dims in shapes.iter().filter(|d| d.len() <= MAX_RANK) {
            for dtype in &dtypes {
                for reshaping in [false, true] {
                    let base = host(*dtype, dims.clone());
                    let mut seeds = Numbers::new(&seeds);
                    let plan = Plan::around(self.vocabulary, callee, &base, reshaping, &mut seeds);
                    if plan.is_some() {
                        return plan;
                    }
                }
            }
        }
        // Operators of a family of their own say themselves how they are called.
        let instances = self.vocabulary.instances(callee);
        if instances.is_empty() {
            return None;
        }
        let (operands, attrs) = numbers.pick(&instances).clone();
        Plan::typed(self.vocabulary, callee, operands, attrs)
    }

    /// The text of a call: as an operator, a method or a function; some operands as literals, attributes in one of
    /// their forms.
    pub fn written(&mut self, callee: &Callee, plan: &Plan, operands: &[usize], numbers: &mut Numbers<'_>) -> String {
        let form = numbers.below(3);
        let alike = plan.operands.windows(2).all(|pair| pair[0] == pair[1]);
        let literal = if operands.len() == 2 && alike { numbers.below(12) } else { 0 };
        let mut arguments = Vec::new();
        for (i, place) in operands.iter().enumerate() {
            let dtype = plan.operands[i].dtype;
            // At most one operand is a literal: the last, more rarely the first.
            let argument = if (i == 1 && literal >= 9) || (i == 0 && literal == 8) {
                constant(dtype, numbers)
            } else {
                self.operand_of(&callee.name, *place)
            };
            // An operand that comes after attributes goes by its name.
            let in_front = callee.signature.params().iter().take_while(|p| p.is_operand()).count();
            arguments.push(match callee.signature.param_of(i, operands.len()).0 {
                param if param < in_front => argument,
                param => format!("{}={argument}", callee.signature.operand_names().nth(param).unwrap_or_default()),
            });
        }
        if let (Some(operator), [a, b]) = (infix(&callee.name), &arguments[..])
            && form < 2
        {
            return format!("{a} {operator} {b}");
        }
        if let ("neg", 0, [a]) = (callee.name.as_str(), form, &arguments[..]) {
            return format!("-{a}");
        }
        let method = form == 1 && literal != 8 && callee.signature.params().first().is_some_and(Param::is_operand);
        let rank = plan.rank();
        let receiver = if method { format!("{}.", arguments.remove(0)) } else { String::new() };
        for ((name, kind, default), value) in callee.signature.attrs().zip(&plan.attrs) {
            let is_default = default.is_some_and(|default| default.value(rank) == *value);
            if is_default && (numbers.below(2) == 0 || value.as_ints().is_some_and(<[i64]>::is_empty)) {
                continue;
            }
            let text = self.attribute_text(kind, value, rank, numbers);
            let name = if kind == AttrKind::Type { "like" } else { name };
            arguments.push(format!("{name}={text}"));
        }
        format!("{receiver}{}({})", callee.name, arguments.join(", "))
    }

    fn attribute_text(&mut self, kind: AttrKind, value: &AttrValue, rank: usize, numbers: &mut Numbers<'_>) -> String {
        match (kind, value) {
            (AttrKind::Type, AttrValue::Type(ty)) => match self.any(numbers, |v| v.ty == *ty) {
                Some(place) => self.used(place),
                None => ty.to_string(),
            },
            (AttrKind::Axis, AttrValue::Int(axis)) if numbers.one_in(3) => (axis - rank as i64).to_string(),
            (AttrKind::NewAxis, AttrValue::Int(axis)) if numbers.one_in(3) => (axis - rank as i64 - 1).to_string(),
            (AttrKind::Axes | AttrKind::Permutation, AttrValue::Ints(axes)) => {
                let from_end = numbers.below(3);
                let written: Vec<String> = axes
                    .iter()
                    .enumerate()
                    .map(|(i, axis)| (if from_end > i { axis - rank as i64 } else { *axis }).to_string())
                    .collect();
                match &written[..] {
                    [one] if kind == AttrKind::Axes && numbers.below(2) == 0 => one.clone(),
                    all => format!("[{}]", all.join(", ")),
                }
            }
            (_, value) => value.to_string(),
        }
    }
}

/// An attribute that the parameter accepts, for an operand of the type.
fn any_attribute(param: &Param, base: &TensorType, reshaping: bool, numbers: &mut Numbers<'_>) -> AttrValue {
    match param {
        Param::Attr { kind: AttrKind::Word, words, .. } => AttrValue::Word(numbers.pick(words).to_string()),
        Param::Attr { name, kind, .. } => attribute(name, *kind, base, reshaping, numbers),
        Param::Operand(_) | Param::Variadic(_) => AttrValue::Bool(false),
    }
}

/// An attribute of the name and kind, for an operand of the type.
pub fn attribute(
    name: &str,
    kind: AttrKind,
    base: &TensorType,
    reshaping: bool,
    numbers: &mut Numbers<'_>,
) -> AttrValue {
    let rank = base.rank();
    match kind {
        AttrKind::Bool => AttrValue::Bool(numbers.below(2) == 1),
        AttrKind::Int => AttrValue::Int(numbers.below(4) as i64),
        AttrKind::Float => AttrValue::float(if base.dtype.is_float() {
            *numbers.pick(&FLOATS)
        } else {
            // Every dtype holds 0 and 1.
            numbers.below(2) as f64
        }),
        // Of a dimension of size 1, which can be taken out, if there is one.
        AttrKind::Axis if reshaping && base.shape.contains(&1) => {
            AttrValue::Int(base.shape.iter().position(|d| *d == 1).unwrap_or(0) as i64)
        }
        AttrKind::Axis => AttrValue::Int(numbers.below(rank.max(1)) as i64),
        AttrKind::NewAxis => AttrValue::Int(numbers.below(rank + 1) as i64),
        AttrKind::Axes => {
            let one = numbers.below(rank.max(1)) as i64;
            let others = [0, 0, numbers.next(), u8::MAX][numbers.below(4)];
            AttrValue::Ints((0..rank as i64).filter(|a| *a == one || others >> a & 1 == 1).collect())
        }
        AttrKind::Shape if reshaping => AttrValue::Ints(refactored(&base.shape, numbers)),
        AttrKind::Shape => AttrValue::Ints(stretched(&base.shape, numbers)),
        AttrKind::PerAxis => {
            let mut number = |d: u64| match name {
                // In the lower half of the axis, and in the upper one.
                "start" => numbers.below(d as usize / 2 + 1) as u64,
                "limit" => d - numbers.below(d as usize / 2 + 1) as u64,
                "stride" => [1, 1, 2, 3][numbers.below(4)],
                _ => [0, 0, 1, 2][numbers.below(4)],
            };
            AttrValue::Ints(base.shape.iter().map(|d| number(*d) as i64).collect())
        }
        AttrKind::Permutation => AttrValue::Ints(shuffled(rank, numbers)),
        AttrKind::DType => AttrValue::DType(*numbers.pick(&DType::ALL)),
        AttrKind::Type => AttrValue::Type(base.clone()),
        // Patterns have their words.
        AttrKind::Word => AttrValue::Word(String::new()),
    }
}

/// A literal of the dtype.
fn constant(dtype: DType, numbers: &mut Numbers<'_>) -> String {
    match dtype {
        DType::F32 | DType::F64 => format_float(*numbers.pick(&FLOATS)),
        DType::I32 | DType::I64 => numbers.pick(&INTS).to_string(),
        DType::Bool => (numbers.below(2) == 1).to_string(),
    }
}
