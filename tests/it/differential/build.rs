//! From scripts to programs. [`Builder`] keeps the values in scope with their types, and whatever the numbers say, it
//! writes something well-typed.

use std::collections::BTreeSet;

use kina_ad::ir::{DType, Placement, Shape, TensorType};

use super::case::Case;
use super::functions::Open;
use super::script::{Numbers, Script};
use super::values::{MIXES, Mix, elements};
use super::vocabulary::{Verb, Vocabulary};

/// Greatest rank, number of elements and number of results.
pub const MAX_RANK: usize = 5;
pub const MAX_ELEMENTS: u64 = 400;
const MAX_RESULTS: usize = 5;

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

/// A program in the making.
pub struct Builder<'v> {
    pub vocabulary: &'v Vocabulary<'v>,
    /// Smooth programs have inputs away from kinks only.
    smooth: bool,
    pub values: Vec<Value>,
    pub open: Vec<Open>,
    /// The bindings written so far, of the innermost function.
    pub text: String,
    inputs: Vec<(String, Vec<String>)>,
    /// What the calls show; see [`coverage`](super::coverage).
    pub features: BTreeSet<String>,
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
        features: BTreeSet::new(),
        names: 0,
    };
    if smooth {
        // For its gradient.
        builder.open(&mut Numbers::new(&script.results));
    }
    for step in &script.steps {
        let mut numbers = Numbers::new(&step.numbers);
        match vocabulary.verbs[step.verb % vocabulary.verbs.len()] {
            Verb::Call(i) => builder.call(&vocabulary.callees[i], &mut numbers),
            Verb::Redex(i) => builder.redex(&vocabulary.rules.rewrites()[i], &mut numbers),
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
    pub fn fresh(&mut self, letter: char) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }

    /// Writes `let NAME = EXPRESSION in`; returns the place of the value.
    pub fn bind(&mut self, expression: &str, ty: TensorType) -> usize {
        let name = self.fresh('v');
        self.line(&format!("let {name} = {expression} in"));
        self.push(name, ty, None)
    }

    pub fn line(&mut self, line: &str) {
        self.text.push_str(&"  ".repeat(self.open.len()));
        self.text.push_str(line);
        self.text.push('\n');
    }

    pub fn push(&mut self, name: String, ty: TensorType, bound: Option<u64>) -> usize {
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

    /// A value to compute with: most often a float, and in a function most often one that the function computes.
    pub fn favourite(&self, numbers: &mut Numbers<'_>) -> Option<usize> {
        let base = self.open.last().map_or(0, |o| o.base);
        let own = if numbers.below(4) < 3 { &self.values[base..] } else { &self.values[..] };
        let floats = numbers.below(5) < 4;
        let first = self.values.len() - own.len();
        let fitting: Vec<usize> =
            (first..self.values.len()).rev().filter(|i| !floats || self.values[*i].ty.dtype.is_float()).collect();
        let newest = numbers.below(4) < 2;
        if newest { fitting.first().copied() } else { (!fitting.is_empty()).then(|| *numbers.pick(&fitting)) }
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

    pub fn any_type(&self, numbers: &mut Numbers<'_>) -> TensorType {
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
            12..21 => {
                let Some(from) = self.any(numbers, |_| true) else {
                    return self.declare(ty.clone(), Mix::Indices(size), numbers);
                };
                let computed = self.convert(from, ty, numbers);
                let name = self.used(computed);
                let last = size.saturating_sub(1);
                self.bind(&format!("{name}.minimum({last}).maximum(0)"), ty.clone())
            }
            21..23 => self.operand(ty, numbers),
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
        Case { program: self.text, inputs: self.inputs, features: self.features }
    }
}

/// Does `broadcast` stretch the one shape to the other?
fn stretches(from: &Shape, to: &Shape) -> bool {
    let added = to.rank().checked_sub(from.rank());
    added.is_some_and(|added| from.iter().zip(&to[added..]).all(|(f, t)| f == t || *f == 1))
}
