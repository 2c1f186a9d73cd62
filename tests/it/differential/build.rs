//! From scripts to programs. [`Builder`] keeps the values in scope with their types, and whatever the numbers say, it
//! writes something well-typed.

use std::collections::BTreeSet;

use kina_ad::ir::{DType, Placement, Shape, TensorType};

use super::case::Case;
use super::script::{Numbers, Script};
use super::values::{MIXES, Mix, elements};
use super::vocabulary::{Verb, Vocabulary};

/// Greatest rank, number of elements and number of results.
pub const MAX_RANK: usize = 5;
const MAX_ELEMENTS: u64 = 400;
const MAX_RESULTS: usize = 5;
/// Functions open at a time: two are second order.
const MAX_DEPTH: usize = 2;

/// Dimensions, the likelier ones several times. 17 and 67 are no multiples of any vector width.
const DIMS: [u64; 16] = [1, 2, 3, 1, 2, 3, 2, 3, 4, 2, 3, 5, 0, 8, 17, 67];

/// A value in scope.
#[derive(Clone)]
pub struct Value {
    pub name: String,
    pub ty: TensorType,
    /// Does something use it?
    used: bool,
    /// An index input is in bounds of dimensions of this size and above.
    bound: Option<u64>,
}

/// A function that is being written.
struct Open {
    name: String,
    /// `name: type` of each parameter, and the argument.
    params: Vec<(String, TensorType, String)>,
    /// Where its own values begin.
    base: usize,
    /// The text outside.
    outside: String,
}

/// A program in the making.
pub struct Builder<'v> {
    pub vocabulary: &'v Vocabulary<'v>,
    /// Smooth programs have inputs away from kinks only.
    smooth: bool,
    pub values: Vec<Value>,
    open: Vec<Open>,
    /// The bindings written so far, of the innermost function.
    text: String,
    inputs: Vec<(String, Vec<String>)>,
    /// What was called, with the dtype of the first operand.
    pub calls: BTreeSet<(String, Option<DType>)>,
    names: usize,
}

/// The program of a script.
pub fn build(vocabulary: &Vocabulary<'_>, script: &Script, smooth: bool) -> Case {
    let mut builder = Builder {
        vocabulary,
        smooth,
        values: Vec::new(),
        open: Vec::new(),
        text: String::new(),
        inputs: Vec::new(),
        calls: BTreeSet::new(),
        names: 0,
    };
    for step in &script.steps {
        let mut numbers = Numbers::new(&step.numbers);
        match vocabulary.verbs[step.verb % vocabulary.verbs.len()] {
            Verb::Call(i) => builder.call(&vocabulary.callees[i], &mut numbers),
            Verb::Open => builder.open(&mut numbers),
            Verb::Close => builder.close(&mut numbers),
            Verb::Input => {
                let ty = builder.any_type(&mut numbers);
                builder.input(ty, &mut numbers);
            }
        }
    }
    while !builder.open.is_empty() {
        builder.close(&mut Numbers::new(&[]));
    }
    builder.finish(&mut Numbers::new(&script.results))
}

pub fn host(dtype: DType, dims: Vec<u64>) -> TensorType {
    TensorType::new(dtype, Shape::new(dims).expect("a small shape"), Placement::Host)
}

/// Lowers dimensions, the last first, until the elements are few enough.
pub fn bounded(mut dims: Vec<u64>) -> Vec<u64> {
    while dims.iter().product::<u64>() > MAX_ELEMENTS {
        let largest = (0..dims.len()).max_by_key(|i| dims[*i]).expect("a product above 1 has factors");
        dims[largest] = 2.min(dims[largest] - 1);
    }
    dims
}

impl Builder<'_> {
    fn fresh(&mut self, letter: char) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }

    /// Writes `let NAME = EXPRESSION in`; returns the place of the value.
    pub fn bind(&mut self, expression: &str, ty: TensorType) -> usize {
        let name = self.fresh('v');
        self.line(&format!("let {name} = {expression} in"));
        self.push(name, ty, None)
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(&"  ".repeat(self.open.len()));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn push(&mut self, name: String, ty: TensorType, bound: Option<u64>) -> usize {
        self.values.push(Value { name, ty, used: false, bound });
        self.values.len() - 1
    }

    /// The name of a value, to be used in an expression.
    pub fn used(&mut self, place: usize) -> String {
        self.values[place].used = true;
        self.values[place].name.clone()
    }

    /// The name of a value, to be an operand of `callee`. What cannot be differentiated must not need to be.
    pub fn operand_of(&mut self, callee: &str, place: usize) -> String {
        let name = self.used(place);
        let active = !self.open.is_empty() && self.values[place].ty.dtype.is_float();
        if active && !self.vocabulary.has_vjp(callee) { format!("{name}.stop_gradient()") } else { name }
    }

    /// A value for which the condition holds. The newest has the lowest numbers.
    pub fn any(&self, numbers: &mut Numbers<'_>, fits: impl Fn(&Value) -> bool) -> Option<usize> {
        let fitting: Vec<usize> = (0..self.values.len()).rev().filter(|i| fits(&self.values[*i])).collect();
        (!fitting.is_empty()).then(|| *numbers.pick(&fitting))
    }

    pub fn dims(&self, numbers: &mut Numbers<'_>) -> Vec<u64> {
        let rank = numbers.below(MAX_RANK + 1);
        bounded((0..rank).map(|_| *numbers.pick(&DIMS)).collect())
    }

    /// A dimension that something is stretched to.
    pub fn dim(numbers: &mut Numbers<'_>) -> u64 {
        *numbers.pick(&DIMS)
    }

    fn any_type(&self, numbers: &mut Numbers<'_>) -> TensorType {
        use DType::{Bool, F32, F64, I32, I64};
        let dtype = *numbers.pick(&[F32, F32, F32, F64, F64, F32, F64, I64, I32, Bool]);
        host(dtype, self.dims(numbers))
    }

    pub fn input(&mut self, ty: TensorType, numbers: &mut Numbers<'_>) -> usize {
        let mix = if self.smooth { Mix::Ordinary } else { *numbers.pick(&MIXES) };
        self.declare(ty, mix, numbers)
    }

    /// Declares an input where the program is being written.
    pub fn declare(&mut self, ty: TensorType, mix: Mix, numbers: &mut Numbers<'_>) -> usize {
        let name = self.fresh('x');
        let seed = u64::from(numbers.next());
        self.line(&format!("let {name} = {ty} in"));
        self.inputs.push((name.clone(), elements(&ty, mix, seed)));
        self.push(name, ty, if let Mix::Indices(size) = mix { Some(size) } else { None })
    }

    /// A value of the type: one that is there, one that is made from another, or an input.
    pub fn operand(&mut self, ty: &TensorType, numbers: &mut Numbers<'_>) -> usize {
        let there = self.values.iter().filter(|v| v.ty == *ty).count();
        match (there, numbers.below(8)) {
            (1.., 0..5) | (_, 0..2) => {
                if let Some(place) = self.any(numbers, |v| v.ty == *ty) {
                    return place;
                }
                self.input(ty.clone(), numbers)
            }
            (_, 5..7) => match self.any(numbers, |_| true) {
                Some(from) => self.convert(from, ty, numbers),
                None => self.input(ty.clone(), numbers),
            },
            _ => self.input(ty.clone(), numbers),
        }
    }

    /// Indices into a dimension of size `size`.
    pub fn indices(&mut self, ty: &TensorType, size: u64, numbers: &mut Numbers<'_>) -> usize {
        let fits = |v: &Value| v.ty == *ty && v.bound.is_some_and(|b| b <= size);
        match numbers.below(24) {
            0..6 if self.values.iter().any(fits) => self.any(numbers, fits).expect("there is one"),
            0..12 => self.declare(ty.clone(), Mix::Indices(size), numbers),
            12..22 => {
                let Some(from) = self.any(numbers, |_| true) else {
                    return self.declare(ty.clone(), Mix::Indices(size), numbers);
                };
                let computed = self.convert(from, ty, numbers);
                let name = self.used(computed);
                let last = size.saturating_sub(1);
                self.bind(&format!("{name}.minimum({last}).maximum(0)"), ty.clone())
            }
            22 => self.operand(ty, numbers),
            _ => self.declare(ty.clone(), Mix::Wild(size), numbers),
        }
    }

    /// Makes a value of the type from another one: by a cast, a reshape or a broadcast, and if need be by a reduction.
    pub fn convert(&mut self, from: usize, ty: &TensorType, numbers: &mut Numbers<'_>) -> usize {
        let mut place = from;
        let shape = self.values[place].ty.shape.clone();
        if shape != ty.shape && shape.elements() != ty.shape.elements() {
            if !stretches(&shape, &ty.shape) {
                place = self.scalar(place, numbers);
            }
            let name = self.used(place);
            let stretched = self.values[place].ty.with_shape(ty.shape.clone());
            place = self.bind(&format!("{name}.broadcast(shape={})", ty.shape), stretched);
        } else if shape != ty.shape {
            let name = self.used(place);
            let reshaped = self.values[place].ty.with_shape(ty.shape.clone());
            place = self.bind(&format!("{name}.reshape(shape={})", ty.shape), reshaped);
        }
        if self.values[place].ty.dtype != ty.dtype {
            let name = self.operand_of("cast", place);
            place = self.bind(&format!("{name}.cast(dtype={})", ty.dtype), ty.clone());
        }
        place
    }

    /// Reduces over all axes.
    fn scalar(&mut self, mut place: usize, numbers: &mut Numbers<'_>) -> usize {
        if self.values[place].ty.dtype == DType::Bool {
            let name = self.used(place);
            let ty = self.values[place].ty.with_dtype(DType::I32);
            place = self.bind(&format!("{name}.cast(dtype=I32)"), ty);
        }
        let ty = self.values[place].ty.with_shape(Shape::scalar());
        let empty = self.values[place].ty.shape.elements() == 0;
        let reduction = if empty { "sum" } else { *numbers.pick(&["sum", "max", "min"]) };
        let name = self.used(place);
        self.bind(&format!("{name}.{reduction}()"), ty)
    }

    /// Begins a function of one to three parameters.
    fn open(&mut self, numbers: &mut Numbers<'_>) {
        if self.open.len() == MAX_DEPTH {
            return;
        }
        let name = self.fresh('f');
        let mut params = Vec::new();
        for i in 0..1 + numbers.below(3) {
            let any = i > 0 && numbers.one_in(6);
            let argument = match self.any(numbers, |v| any || v.ty.dtype.is_float()) {
                Some(argument) if !numbers.one_in(4) => argument,
                _ => {
                    let ty = self.any_type(numbers);
                    let dtype = if any || ty.dtype.is_float() { ty.dtype } else { DType::F32 };
                    self.input(ty.with_dtype(dtype), numbers)
                }
            };
            let ty = self.values[argument].ty.clone();
            let argument = self.used(argument);
            params.push((self.fresh('p'), ty, argument));
        }
        let outside = std::mem::take(&mut self.text);
        let base = self.values.len();
        for (param, ty, _) in &params {
            self.push(param.clone(), ty.clone(), None);
        }
        self.open.push(Open { name, params, base, outside });
    }

    /// Ends the innermost function and differentiates it; its value and gradients are new values.
    fn close(&mut self, numbers: &mut Numbers<'_>) {
        let Some(base) = self.open.last().map(|o| o.base) else { return };
        let newest: Vec<usize> =
            (base..self.values.len()).rev().filter(|i| self.values[*i].ty.dtype.is_float()).collect();
        let mut result = *numbers.pick(&newest);
        let form = numbers.below(6);
        if let Some(reduction) = [None, None, Some("sum"), Some("mean"), Some("max"), Some("square")][form] {
            let ty = self.values[result].ty.clone();
            let name = self.used(result);
            result = match reduction {
                "square" => self.bind(&format!("{name} * {name}"), ty),
                "max" if ty.shape.elements() == 0 => {
                    self.bind(&format!("{name}.sum()"), ty.with_shape(Shape::scalar()))
                }
                reduction => self.bind(&format!("{name}.{reduction}()"), ty.with_shape(Shape::scalar())),
            };
        }
        let primal = self.values[result].clone();
        self.line(&primal.name);
        let Some(Open { name, params, base, outside }) = self.open.pop() else { return };
        let body = std::mem::replace(&mut self.text, outside);
        self.values.truncate(base);
        let signature: Vec<String> = params.iter().map(|(name, ty, _)| format!("{name}: {ty}")).collect();
        let returns = if numbers.one_in(2) { format!(" -> {}", primal.ty) } else { String::new() };
        self.line(&format!("let {name} = fn({}){returns} {{", signature.join(", ")));
        self.text.push_str(&body);
        self.line("} in");
        let arguments: Vec<&str> = params.iter().map(|(.., argument)| argument.as_str()).collect();
        let arguments = arguments.join(", ");
        if numbers.one_in(5) {
            self.bind(&format!("{name}({arguments})"), primal.ty.clone());
        }
        let value = self.fresh('y');
        let mut results = vec![(value.clone(), primal.ty)];
        let mut steps = Vec::new();
        for (_, ty, argument) in params.iter().filter(|(_, ty, _)| ty.dtype.is_float()) {
            let gradient = self.fresh('g');
            steps.push((argument.clone(), gradient.clone(), ty.clone()));
            results.push((gradient, ty.clone()));
        }
        let names: Vec<&str> = results.iter().map(|(name, _)| name.as_str()).collect();
        self.line(&format!("let ({}) = handle {name}({arguments}) with reverseMode in", names.join(", ")));
        for (name, ty) in results {
            self.push(name, ty, None);
        }
        // A step of gradient descent.
        if numbers.one_in(4) {
            for (argument, gradient, ty) in steps {
                self.bind(&format!("{argument} - {gradient} * 0.125"), ty);
            }
        }
    }

    /// The results: what nothing uses, the newest first, and sometimes what is used as well.
    fn finish(mut self, numbers: &mut Numbers<'_>) -> Case {
        if self.values.is_empty() {
            self.input(host(DType::F32, vec![2]), numbers);
        }
        let mut results: Vec<usize> = (0..self.values.len()).rev().filter(|i| !self.values[*i].used).collect();
        results.truncate(MAX_RESULTS - 1);
        if results.is_empty() || numbers.one_in(3) {
            results.extend(self.any(numbers, |_| true));
        }
        let names: Vec<&str> = results.iter().map(|i| self.values[*i].name.as_str()).collect();
        let last = match names[..] {
            [one] => one.to_owned(),
            _ => format!("({})", names.join(", ")),
        };
        self.line(&last);
        Case { program: self.text, inputs: self.inputs, calls: self.calls }
    }
}

/// Does `broadcast` stretch the one shape to the other?
fn stretches(from: &Shape, to: &Shape) -> bool {
    let added = to.rank().checked_sub(from.rank());
    added.is_some_and(|added| from.iter().zip(&to[added..]).all(|(f, t)| f == t || *f == 1))
}
