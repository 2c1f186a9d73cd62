//! A program to be timed, with its inputs, and kina-ad as a contestant for it.

use std::error::Error;
use std::time::Instant;

use kina_ad::exec::inputs::{Input, gather};
use kina_ad::{CheckOptions, Compiled, Level, Optimised, RuleOptions, Session, Tensor};

use crate::contest::Contestant;

/// A differentiated and optimised program whose cotangent is an input: nobody may assume it.
pub struct Job {
    pub session: Session,
    pub program: Optimised,
    /// In the order of the program's inputs.
    pub inputs: Vec<Input>,
}

impl Job {
    /// # Errors
    /// A program that is refused, inputs larger than memory.
    pub fn new(source: &str) -> Result<Job, Box<dyn Error>> {
        let mut session = Session::new(&RuleOptions::default())?;
        let program = optimised(&mut session, source)?;
        let inputs = gather(&program.graph, Vec::new(), 0)?;
        Ok(Job { session, program, inputs })
    }

    /// # Errors
    /// If the program has no such input.
    pub fn input(&self, name: &str) -> Result<&Tensor, Box<dyn Error>> {
        let found = self.inputs.iter().find(|i| i.name == name).map(|i| &i.tensor);
        found.ok_or_else(|| format!("the program has no input {name}").into())
    }

    /// Tensors for its results.
    ///
    /// # Errors
    /// Too little memory.
    pub fn outputs(&self) -> Result<Vec<Tensor>, Box<dyn Error>> {
        let graph = &self.program.graph;
        let types = graph.outputs.iter().map(|o| graph.ty(o.node));
        Ok(types.map(|ty| Tensor::zeros(ty.dtype, ty.shape.clone())).collect::<Result<_, _>>()?)
    }

    /// # Errors
    /// A failure of the compiler.
    pub fn contestant(&self) -> Result<KinaAd<'_>, Box<dyn Error>> {
        let code = self.session.compile(&self.program)?;
        Ok(KinaAd { code, inputs: self.inputs.iter().map(|i| &i.tensor).collect(), outputs: self.outputs()? })
    }
}

/// The negative log-likelihood of `targets` (I64, the shape without its last axis) under `x` (F32 of the shape, its last axis the
/// classes), one per row, and its gradient.
pub fn nll(shape: &[u64]) -> String {
    let (rows, axis) = (&shape[..shape.len().saturating_sub(1)], shape.len().saturating_sub(1));
    format!(
        "let nll = fn(x: tensor<F32, {shape:?}, @host>) -> tensor<F32, {rows:?}, @host> {{
  let targets = tensor<I64, {rows:?}, @host> in
  let log_probs = x.log_softmax(axis={axis}) in
  let picked = log_probs.take_along_axis(targets, axis={axis}) in
  -picked
}} in
let x = tensor<F32, {shape:?}, @host> in
handle nll(x) with reverseMode"
    )
}

/// Program text to the cheapest form of its value and gradient, at -O2.
///
/// # Errors
/// A program that is refused.
pub fn optimised(session: &mut Session, source: &str) -> Result<Optimised, Box<dyn Error>> {
    let graph = session.check("bench.kina", source, &CheckOptions { cotangent_input: true })?;
    let mut program = session.differentiate(&graph)?;
    Ok(session.optimise(&mut program, Level::O2)?)
}

/// Compiled code, writing into tensors that are there.
pub struct KinaAd<'j> {
    code: Compiled,
    inputs: Vec<&'j Tensor>,
    outputs: Vec<Tensor>,
}

impl Contestant for KinaAd<'_> {
    fn name(&self) -> &str {
        "kina-ad -O2"
    }

    fn time(&mut self, repeats: u32) -> Result<f64, Box<dyn Error>> {
        let start = Instant::now();
        for _ in 0..repeats {
            self.code.call_into(&self.inputs, &mut self.outputs)?;
        }
        Ok(start.elapsed().as_secs_f64())
    }

    fn results(&mut self) -> Result<Vec<Tensor>, Box<dyn Error>> {
        self.time(1)?;
        Ok(self.outputs.clone())
    }
}
