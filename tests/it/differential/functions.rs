//! Functions and their gradients.

use kina_ad::ir::{DType, Shape, TensorType};

use super::build::Builder;
use super::script::Numbers;

/// Functions open at a time: two are second order.
const MAX_DEPTH: usize = 2;

/// A parameter and the argument that the handler passes.
struct Param {
    name: String,
    ty: TensorType,
    argument: String,
}

/// A function that is being written.
pub struct Open {
    name: String,
    params: Vec<Param>,
    /// Where its own values begin.
    pub base: usize,
    /// The text outside.
    outside: String,
}

/// `a, b, c`
fn list<'a>(items: impl Iterator<Item = &'a str>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

impl Builder<'_> {
    /// Begins a function of one to three parameters.
    pub fn open(&mut self, numbers: &mut Numbers<'_>) {
        if self.open.len() == MAX_DEPTH {
            return;
        }
        let name = self.fresh('f');
        let mut params = Vec::new();
        for i in 0..1 + numbers.below(3) {
            let any = i > 0 && numbers.one_in(6);
            let argument = match self.favourite(numbers) {
                Some(argument) if any || self.values[argument].ty.dtype.is_float() => argument,
                _ => {
                    let ty = self.any_type(numbers);
                    let dtype = if any || ty.dtype.is_float() { ty.dtype } else { DType::F32 };
                    self.input(ty.with_dtype(dtype), numbers)
                }
            };
            let (name, ty) = (self.fresh('p'), self.values[argument].ty.clone());
            params.push(Param { name, ty, argument: self.used(argument) });
        }
        let base = self.values.len();
        for param in &params {
            self.push(param.name.clone(), param.ty.clone(), None);
        }
        let outside = std::mem::take(&mut self.text);
        self.open.push(Open { name, params, base, outside });
    }

    /// Ends the innermost function and differentiates it; its value and gradients are new values.
    pub fn close(&mut self, numbers: &mut Numbers<'_>) {
        if self.open.is_empty() {
            return;
        }
        let primal = self.primal(numbers);
        let ty = self.values[primal].ty.clone();
        let result = self.used(primal);
        self.line(&result);
        let Some(Open { name, params, base, outside }) = self.open.pop() else { return };
        let body = std::mem::replace(&mut self.text, outside);
        self.values.truncate(base);
        let returns = if numbers.one_in(2) { format!(" -> {ty}") } else { String::new() };
        self.function(&name, &params, &returns, &body);
        if numbers.one_in(5) {
            let arguments = list(params.iter().map(|p| p.argument.as_str()));
            self.bind(&format!("{name}({arguments})"), ty.clone());
        }
        self.handle(&name, &params, ty);
        if self.open.is_empty() && numbers.one_in(4) {
            self.differentiate_again(&name, params, numbers);
        } else if numbers.one_in(4) {
            // A step of gradient descent.
            let floats: Vec<&Param> = params.iter().filter(|p| p.ty.dtype.is_float()).collect();
            let first = self.values.len() - floats.len();
            for (i, param) in floats.into_iter().enumerate() {
                let gradient = self.used(first + i);
                self.bind(&format!("{} - {gradient} * 0.125", param.argument), param.ty.clone());
            }
        }
    }

    /// What the function gives: most often its newest value, as it is or reduced.
    fn primal(&mut self, numbers: &mut Numbers<'_>) -> usize {
        let base = self.open.last().map_or(0, |o| o.base);
        let floats: Vec<usize> =
            (base..self.values.len()).rev().filter(|i| self.values[*i].ty.dtype.is_float()).collect();
        let place = if numbers.below(4) < 3 { floats[0] } else { *numbers.pick(&floats) };
        let form = *numbers.pick(&["", "", "sum", "mean", "max", "square"]);
        if form.is_empty() {
            return place;
        }
        let ty = self.values[place].ty.clone();
        let name = self.used(place);
        let scalar = ty.with_shape(Shape::scalar());
        match form {
            "square" => self.bind(&format!("{name} * {name}"), ty),
            "max" if ty.shape.elements() == 0 => self.bind(&format!("{name}.sum()"), scalar),
            reduction => self.bind(&format!("{name}.{reduction}()"), scalar),
        }
    }

    fn function(&mut self, name: &str, params: &[Param], returns: &str, body: &str) {
        let params: Vec<String> = params.iter().map(|p| format!("{}: {}", p.name, p.ty)).collect();
        self.line(&format!("let {name} = fn({}){returns} {{", params.join(", ")));
        self.text.push_str(body);
        self.line("} in");
    }

    /// Differentiates a function of a result type.
    fn handle(&mut self, name: &str, params: &[Param], ty: TensorType) {
        let mut results = vec![(self.fresh('y'), ty)];
        for param in params.iter().filter(|p| p.ty.dtype.is_float()) {
            results.push((self.fresh('g'), param.ty.clone()));
        }
        let names = list(results.iter().map(|(name, _)| name.as_str()));
        let arguments = list(params.iter().map(|p| p.argument.as_str()));
        self.line(&format!("let ({names}) = handle {name}({arguments}) with reverseMode in"));
        for (name, ty) in results {
            self.push(name, ty, None);
        }
    }

    /// Second order: the gradient of one of the gradients of a function.
    fn differentiate_again(&mut self, inner: &str, params: Vec<Param>, numbers: &mut Numbers<'_>) {
        let mut outer = Vec::new();
        let mut results = vec![self.fresh('y')];
        let mut gradients = Vec::new();
        for param in params {
            let name = self.fresh('p');
            if param.ty.dtype.is_float() {
                let gradient = self.fresh('g');
                gradients.push((gradient.clone(), param.ty.clone()));
                results.push(gradient);
            }
            outer.push(Param { name, ..param });
        }
        let (results, arguments) = (results.join(", "), list(outer.iter().map(|p| p.name.as_str())));
        let (gradient, ty) = numbers.pick(&gradients).clone();
        let value = if numbers.below(2) == 0 { format!("{gradient} * {gradient}") } else { gradient };
        let body = format!("  let ({results}) = handle {inner}({arguments}) with reverseMode in\n  {value}\n");
        let name = self.fresh('f');
        self.function(&name, &outer, "", &body);
        self.handle(&name, &outer, ty);
    }
}
