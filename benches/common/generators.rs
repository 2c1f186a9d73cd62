//! Programs of any size, as text.

use std::fmt::Write as _;

/// `v1 = v0 * w`, `v2 = tanh(v1)`, `v3 = v2 + w`, ..: a chain of so many operators that share one weight, whose gradient
/// therefore has as many contributions as the chain has uses.
pub fn chain(operators: usize) -> String {
    steps(operators, |i| match i % 3 {
        0 => format!("v{i} * w"),
        1 => format!("v{i}.tanh()"),
        _ => format!("v{i} + w"),
    })
}

/// A function of `v0` and `w` in which step `i` computes `v{i + 1}`, and its gradient.
pub fn steps(count: usize, step: impl Fn(usize) -> String) -> String {
    const TYPE: &str = "tensor<F32, [4], @host>";
    let mut text = format!("let f = fn(v0: {TYPE}, w: {TYPE}) -> {TYPE} {{\n");
    for i in 0..count {
        let _ = writeln!(text, "  let v{} = {} in", i + 1, step(i));
    }
    let _ = write!(text, "  v{count}\n}} in\nhandle f(tensor<F32, [4], @host>, {TYPE}) with reverseMode");
    text
}

// The sizes of GPT-2's smallest model, and a batch. They are in the types only: nothing here is run.
const BATCH: usize = 4;
const TOKENS: usize = 256;
const WIDTH: usize = 768;
const HEADS: usize = 12;
const HEAD: usize = WIDTH / HEADS;
const VOCABULARY: usize = 50257;

/// A language model of so many pre-norm layers with its training loss: causal attention of several heads with rotary
/// positions, a network with a gated GELU, residuals, tied output weights, mean NLL. The loss and the gradients of all
/// weights.
pub fn transformer(layers: usize) -> String {
    let rows = BATCH * TOKENS;
    let mut weights = Weights::default();
    let table = weights.add("table", &[VOCABULARY, WIDTH]);
    let mut body = format!(
        "  let tokens = tensor<I64, [{BATCH}, {TOKENS}], @host> in
  let targets = tensor<I64, [{rows}], @host> in
  let mask = tensor<F32, [{TOKENS}, {TOKENS}], @host> in
  let cosines = tensor<F32, [{TOKENS}, {HEAD}], @host> in
  let sines = tensor<F32, [{TOKENS}, {HEAD}], @host> in
  let x0 = gather({table}, tokens).reshape([{rows}, {WIDTH}]) in\n"
    );
    for i in 0..layers {
        let n = norm(&mut weights, &mut body, &format!("n{i}"), &format!("x{i}"));
        let [q, k, v] = ["q", "k", "v"].map(|name| {
            let linear = linear(&mut weights, &format!("{name}{i}"), &n, WIDTH, WIDTH);
            let split = format!("[{BATCH}, {TOKENS}, {HEADS}, {HEAD}]");
            let _ = writeln!(body, "  let h{name}{i} = ({linear}).reshape({split}).transpose([0, 2, 1, 3]) in");
            format!("h{name}{i}")
        });
        let (q, k) = (rotate(&mut body, &q), rotate(&mut body, &k));
        let scores = format!("[{BATCH}, {HEADS}, {TOKENS}, {TOKENS}]");
        let _ = writeln!(
            body,
            "  let s{i} = (matmul({q}, {k}.transpose([0, 1, 3, 2])) * 0.125 + mask.broadcast({scores})).softmax(axis=3) in
  let a{i} = matmul(s{i}, {v}).transpose([0, 2, 1, 3]).reshape([{rows}, {WIDTH}]) in"
        );
        let _ = writeln!(
            body,
            "  let y{i} = x{i} + ({}) in",
            linear(&mut weights, &format!("o{i}"), &format!("a{i}"), WIDTH, WIDTH)
        );
        let p = norm(&mut weights, &mut body, &format!("p{i}"), &format!("y{i}"));
        let [gate, up] = ["gate", "up"].map(|name| linear(&mut weights, &format!("{name}{i}"), &p, WIDTH, 4 * WIDTH));
        let _ = writeln!(body, "  let u{i} = ({gate}).gelu_tanh() * ({up}) in");
        let down = linear(&mut weights, &format!("down{i}"), &format!("u{i}"), 4 * WIDTH, WIDTH);
        let _ = writeln!(body, "  let x{} = y{i} + ({down}) in", i + 1);
    }
    let last = norm(&mut weights, &mut body, "last", &format!("x{layers}"));
    let _ = write!(body, "  matmul({last}, {table}.transpose([1, 0])).nll(targets, axis=1).mean()");
    weights.program(&body)
}

/// Layer normalisation of the rows of `from`, with a gain and an offset; the name of the result.
fn norm(weights: &mut Weights, body: &mut String, to: &str, from: &str) -> String {
    let shape = format!("[{}, {WIDTH}]", BATCH * TOKENS);
    let (gain, offset) = (weights.add(&format!("gain_{to}"), &[WIDTH]), weights.add(&format!("offset_{to}"), &[WIDTH]));
    let _ = writeln!(
        body,
        "  let {to} = {from}.layer_norm(axis=1) * {gain}.broadcast({shape}) + {offset}.broadcast({shape}) in"
    );
    to.to_owned()
}

/// Rotary positions for queries or keys `[BATCH, HEADS, TOKENS, HEAD]`; the name of the result.
fn rotate(body: &mut String, x: &str) -> String {
    let shape = format!("[{BATCH}, {HEADS}, {TOKENS}, {HEAD}]");
    let half = |from| format!("{x}.slice([0, 0, 0, {from}], [{BATCH}, {HEADS}, {TOKENS}, {}])", from + HEAD / 2);
    let (low, high) = (half(0), half(HEAD / 2));
    let _ = writeln!(
        body,
        "  let turned_{x} = concat(-{high}, {low}, axis=3) in
  let r{x} = {x} * cosines.broadcast({shape}) + turned_{x} * sines.broadcast({shape}) in"
    );
    format!("r{x}")
}

/// `x @ w + b` for the rows of `x`, as an expression.
fn linear(weights: &mut Weights, name: &str, x: &str, from: usize, to: usize) -> String {
    let (w, b) = (weights.add(&format!("w_{name}"), &[from, to]), weights.add(&format!("b_{name}"), &[to]));
    format!("{x}.matmul({w}) + {b}.broadcast([{}, {to}])", BATCH * TOKENS)
}

/// The parameters of the function, in order.
#[derive(Default)]
struct Weights(Vec<(String, String)>);

impl Weights {
    fn add(&mut self, name: &str, shape: &[usize]) -> String {
        self.0.push((name.to_owned(), format!("tensor<F32, {shape:?}, @host>")));
        name.to_owned()
    }

    /// The program that differentiates a scalar function with this body.
    fn program(&self, body: &str) -> String {
        let join =
            |each: &dyn Fn(&(String, String)) -> String, by: &str| self.0.iter().map(each).collect::<Vec<_>>().join(by);
        format!(
            "let f = fn({}) -> tensor<F32, [], @host> {{\n{body}\n}} in\n{}\nhandle f({}) with reverseMode",
            join(&|(name, ty)| format!("{name}: {ty}"), ", "),
            join(&|(name, ty)| format!("let {name} = {ty} in"), "\n"),
            join(&|(name, _)| name.clone(), ", "),
        )
    }
}
