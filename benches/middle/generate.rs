//! Programs of any size, as Kina source.

use std::fmt::Write as _;

const BATCH: usize = 2;
const TIME: usize = 128;
/// Rows of activations: a linear layer sees them as one matrix.
const ROWS: usize = BATCH * TIME;
const WIDTH: usize = 768;
const HEADS: usize = 12;
const VOCABULARY: usize = 50_257;

/// A decoder of so many layers (layer norms, attention with rotary positions and a causal mask, a network with GELU,
/// residuals) and the mean negative log-likelihood of its targets, differentiated for every weight: about a hundred operators
/// in each layer. Everything is written out but matmul, softmax and reductions.
pub fn transformer(layers: usize) -> String {
    let (head, hidden) = (WIDTH / HEADS, 4 * WIDTH);
    let rows = format!("[{ROWS}, {WIDTH}]");
    let square = format!("[{WIDTH}, {WIDTH}]");
    let wide = format!("[{ROWS}, {hidden}]");
    let heads = format!("[{BATCH}, {HEADS}, {TIME}, {head}]");
    let scores = format!("[{BATCH}, {HEADS}, {TIME}, {TIME}]");
    let mut text = Program::default();
    text.parameter("x0", &rows);
    for i in 0..layers {
        text.norm(&format!("x{i}"), &format!("n{i}"), &rows);
        for name in ["q", "k", "v"] {
            text.linear(&format!("n{i}"), &format!("{name}{i}"), &square, &format!("[{WIDTH}]"), &rows);
            text.line(
                &format!("{name}h{i}"),
                &format!("{name}{i}.reshape([{BATCH}, {TIME}, {HEADS}, {head}]).transpose([0, 2, 1, 3])"),
            );
        }
        for name in ["q", "k"] {
            text.rotate(&format!("{name}h{i}"), &format!("{name}r{i}"), head, &heads);
        }
        text.line(
            &format!("s{i}"),
            &format!("matmul(qr{i}, kr{i}.transpose([0, 1, 3, 2])) * {}", 1.0 / (head as f64).sqrt()),
        );
        text.line(&format!("p{i}"), &format!("select(causal, s{i}, -1000000000.0).softmax(axis=3)"));
        text.line(&format!("c{i}"), &format!("p{i}.matmul(vh{i}).transpose([0, 2, 1, 3]).reshape({rows})"));
        text.linear(&format!("c{i}"), &format!("o{i}"), &square, &format!("[{WIDTH}]"), &rows);
        text.line(&format!("y{i}"), &format!("x{i} + o{i}"));
        text.norm(&format!("y{i}"), &format!("m{i}"), &rows);
        text.linear(&format!("m{i}"), &format!("h{i}"), &format!("[{WIDTH}, {hidden}]"), &format!("[{hidden}]"), &wide);
        text.line(&format!("t{i}"), &format!("((h{i} + h{i} * h{i} * h{i} * 0.044715) * 0.7978845608).tanh()"));
        text.line(&format!("a{i}"), &format!("h{i} * 0.5 * (t{i} + 1.0)"));
        text.linear(&format!("a{i}"), &format!("f{i}"), &format!("[{hidden}, {WIDTH}]"), &format!("[{WIDTH}]"), &rows);
        text.line(&format!("x{}", i + 1), &format!("y{i} + f{i}"));
    }
    text.norm(&format!("x{layers}"), "last", &rows);
    text.parameter("head", &format!("[{WIDTH}, {VOCABULARY}]"));
    let targets = format!("tensor<I64, [{ROWS}], @host>");
    let mask = format!("tensor<Bool, {scores}, @host>");
    let _ = writeln!(
        text.body,
        "  let picked = last.matmul(head).log_softmax(axis=1).take_along_axis({targets}, axis=1) in"
    );
    let angles = format!("tensor<F32, [1, 1, {TIME}, {head}], @host>");
    let first = format!("  let causal = {mask} in\n  let cosine = {angles} in\n  let sine = {angles} in\n");
    text.finish(&first, "(-picked).mean()", "[]")
}

/// `v1 = v0 * w`, `v2 = tanh(v1)`, `v3 = v2 + w`, ..
pub fn chain(operators: usize) -> String {
    const SHAPE: &str = "[4]";
    let mut text = Program::default();
    text.parameter("v0", SHAPE);
    text.parameter("w", SHAPE);
    for i in 0..operators {
        let step = match i % 3 {
            0 => format!("v{i} * w"),
            1 => format!("v{i}.tanh()"),
            _ => format!("v{i} + w"),
        };
        text.line(&format!("v{}", i + 1), &step);
    }
    text.finish("", &format!("v{operators}"), SHAPE)
}

/// A function under construction.
#[derive(Default)]
struct Program {
    /// Names and shapes.
    parameters: Vec<(String, String)>,
    body: String,
}

impl Program {
    fn parameter(&mut self, name: &str, shape: &str) {
        self.parameters.push((name.to_owned(), shape.to_owned()));
    }

    fn line(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.body, "  let {name} = {value} in");
    }

    /// `x * weight + bias` over the last axis.
    fn linear(&mut self, from: &str, to: &str, weight: &str, bias: &str, shape: &str) {
        self.parameter(&format!("w_{to}"), weight);
        self.parameter(&format!("b_{to}"), bias);
        self.line(to, &format!("{from}.matmul(w_{to}) + b_{to}.broadcast({shape})"));
    }

    /// Rotary positions: pairs of features, half a head apart, turn by an angle that depends on the time.
    fn rotate(&mut self, from: &str, to: &str, head: usize, heads: &str) {
        let half = head / 2;
        let part =
            |from_: usize, to: usize| format!("{from}.slice([0, 0, 0, {from_}], [{BATCH}, {HEADS}, {TIME}, {to}])");
        self.line(
            to,
            &format!(
                "{from} * cosine.broadcast({heads}) + concat(-{}, {}, axis=3) * sine.broadcast({heads})",
                part(half, head),
                part(0, half)
            ),
        );
    }

    /// Layer norm with gain and offset.
    fn norm(&mut self, from: &str, to: &str, shape: &str) {
        self.parameter(&format!("g_{to}"), &format!("[{WIDTH}]"));
        self.parameter(&format!("b_{to}"), &format!("[{WIDTH}]"));
        self.line(&format!("d_{to}"), &format!("{from} - {from}.mean(axis=1, keepdims=true).broadcast({shape})"));
        self.line(
            &format!("r_{to}"),
            &format!("((d_{to} * d_{to}).mean(axis=1, keepdims=true) + 0.00001).rsqrt().broadcast({shape})"),
        );
        self.line(to, &format!("d_{to} * r_{to} * g_{to}.broadcast({shape}) + b_{to}.broadcast({shape})"));
    }

    fn finish(self, first: &str, result: &str, shape: &str) -> String {
        let ty = |shape: &str| format!("tensor<F32, {shape}, @host>");
        let list = |item: &dyn Fn(&(String, String)) -> String, between: &str| {
            self.parameters.iter().map(item).collect::<Vec<String>>().join(between)
        };
        format!(
            "let f = fn({}) -> {} {{\n{first}{}  {result}\n}} in\n{}\nhandle f({}) with reverseMode",
            list(&|(name, shape)| format!("{name}: {}", ty(shape)), ", "),
            ty(shape),
            self.body,
            list(&|(name, shape)| format!("let {name} = {} in", ty(shape)), "\n"),
            list(&|(name, _)| name.clone(), ", "),
        )
    }
}
