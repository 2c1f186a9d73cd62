//! The jobs that are timed against others, and what is asked of each.

use crate::Part;
use crate::environment::{Framework, JAX, PYTORCH};
use crate::job::nll;

/// Value and gradient of one function of one shape.
pub struct Timed {
    /// The part of the run that it belongs to.
    pub group: Part,
    pub title: String,
    pub text: &'static str,
    /// What the peers call the function.
    pub function: &'static str,
    pub source: String,
    /// Is it what the kernel written by hand computes?
    pub by_hand: bool,
    pub goals: &'static [Asked],
}

/// At most this ratio of our time to another one's.
pub struct Asked {
    pub over: Over,
    pub most: (&'static str, f64),
}

pub enum Over {
    One(&'static str),
    /// The peer whose median is least.
    BestPeer,
}

/// A way to use a framework: what the report calls it, what the peer does.
pub struct Entry {
    pub name: &'static str,
    pub framework: Framework,
    pub way: &'static str,
    /// Functions it has a form of its own for; `None` if it takes any.
    pub only: Option<&'static str>,
}

pub const BY_HAND: &str = "C by hand";
const CROSS_ENTROPY: &str = "PyTorch fused cross_entropy";
const COMPILE: &str = "torch.compile";
pub const JIT: &str = "jax.jit";

pub const ENTRIES: [Entry; 4] = [
    Entry { name: "PyTorch eager", framework: PYTORCH, way: "eager", only: None },
    Entry { name: CROSS_ENTROPY, framework: PYTORCH, way: "cross_entropy", only: Some("nll") },
    Entry { name: COMPILE, framework: PYTORCH, way: "compile", only: None },
    Entry { name: JIT, framework: JAX, way: "jit", only: None },
];

/// The shape of the tiny job, whose time is that of a call.
pub const TINY: [u64; 3] = [1, 4, 8];
/// The shape of GPT-2's loss on a batch of 4 sequences of 256.
pub const LARGE: [u64; 3] = [4, 256, 50257];

const LARGE_GOALS: &[Asked] = &[
    Asked { over: Over::One(BY_HAND), most: ("0.65", 0.65) },
    Asked { over: Over::One(CROSS_ENTROPY), most: ("1/8", 1.0 / 8.0) },
    Asked { over: Over::One(JIT), most: ("1/8", 1.0 / 8.0) },
    Asked { over: Over::One(COMPILE), most: ("1/6", 1.0 / 6.0) },
];
const THIRD: &[Asked] = &[Asked { over: Over::BestPeer, most: ("1/3", 1.0 / 3.0) }];
const HALF: &[Asked] = &[Asked { over: Over::BestPeer, most: ("1/2", 0.5) }];
const CALL: &[Asked] = &[Asked { over: Over::One(JIT), most: ("1/5", 0.2) }];

pub fn timed() -> Vec<Timed> {
    let loss = |group, shape: &[u64], text, goals| Timed {
        group,
        title: format!("NLL value and gradient, F32 {shape:?}"),
        text,
        function: "nll",
        source: nll(shape),
        by_hand: true,
        goals,
    };
    let rows = |function, title| {
        Timed {
        group: Part::Rows,
        title: format!("{title} value and gradient, F32 [4096, 1024]"),
        text: "",
        function,
        source: format!(
            "let f = fn(x: tensor<F32, [4096, 1024], @host>) -> tensor<F32, [4096, 1024], @host> {{ x.{function}(axis=1) }} in
let x = tensor<F32, [4096, 1024], @host> in
handle f(x) with reverseMode"
        ),
        by_hand: false,
        goals: HALF,
    }
    };
    vec![
        loss(Part::Nll, &LARGE, "The loss of GPT-2 on 4 sequences of 256 tokens.", LARGE_GOALS),
        loss(Part::Nll, &[4, 128, 8192], "", THIRD),
        loss(Part::Nll, &[32, 64, 512], "", THIRD),
        loss(
            Part::Tiny,
            &TINY,
            "So small that its time is that of a call: from Rust for kina-ad and C, from Python for the others.",
            CALL,
        ),
        rows("softmax", "Softmax"),
        rows("layer_norm", "Layer norm"),
        rows("rms_norm", "RMS norm"),
    ]
}
