//! Bytes to a program, which must give the same results however it is run.
//!
//! The interpreter at -O0 is what everything is compared with: at -O1 bit by bit, at -O2 and when compiled as far as
//! rounding allows (see `noise`). Traps must be the same everywhere.

use kina_ad::exec::inputs::gather;
use kina_ad::exec::{Data, Tensor};
use kina_ad::ir::{Array, DType, Precision};
use kina_ad::run::{Engine, RunError, run as run_graph};
use kina_ad::{CheckOptions, Graph, Level, Session};

use super::generate::{Choices, program};
use super::noise::Bounds;
use super::{default_session, shown};

/// One input in that many is also compiled, at both levels: LLVM takes longer than everything else together.
const COMPILED: usize = 16;
/// Larger graphs are not compiled.
const MAX_COMPILED: usize = 200;

pub fn run(data: &[u8]) {
    let mut session = default_session();
    let mut choices = Choices::new(data);
    let compiled = choices.below(COMPILED) == 1;
    let values = choices.byte();
    let text = program(&mut choices, &session.rules.registry);
    let graph = match session.check("program.kina", &text, &CheckOptions::default()) {
        Ok(graph) => graph,
        Err(refusal) => panic!("a program that the registry accepts is refused:\n{text}\n{refusal}"),
    };
    let Some(literal) = optimised(&session, &graph, Level::O0) else { return };
    let Some(inputs) = inputs(&literal, values) else { return };
    let case = Case { session: &session, text: &text, inputs: &inputs };

    let expected = case.interpret(&literal, Level::O0);
    let arrays: Vec<Array> = inputs.iter().map(|t| t.to_array().expect("an array in memory")).collect();
    let bounds = |graph: &Graph, results: &[Tensor]| {
        let exact: Vec<Array> = results.iter().map(|t| t.to_array().expect("an array in memory")).collect();
        Bounds::new(graph, &session.rules.registry, &arrays, &exact)
    };
    let near_literal = expected.as_ref().ok().map(|results| bounds(&literal, results));
    if compiled {
        case.compare("compiled at -O0", &expected, near_literal.as_ref(), &case.compile(&literal, Level::O0));
    }
    if let Some(exact) = optimised(&session, &graph, Level::O1) {
        case.identical(&expected, &case.interpret(&exact, Level::O1));
    }
    if let Some(real) = optimised(&session, &graph, Level::O2) {
        let found = case.interpret(&real, Level::O2);
        case.compare("interpreted at -O2", &expected, near_literal.as_ref(), &found);
        if compiled {
            let near_real = found.as_ref().ok().map(|results| bounds(&real, results));
            case.compare("compiled at -O2", &found, near_real.as_ref(), &case.compile(&real, Level::O2));
        }
    }
}

/// The graph to run; `None` if an operator has no VJP, which is shown.
fn optimised(session: &Session, graph: &Graph, level: Level) -> Option<Graph> {
    match session.differentiate(graph).and_then(|mut p| session.optimise(&mut p, level)) {
        Ok(optimised) => {
            shown::graph(&optimised.graph, session, level);
            Some(optimised.graph)
        }
        Err(refusal) => {
            shown::refusal(&refusal);
            None
        }
    }
}

/// Generated inputs, with some values at which something happens if `choice` says so.
/// `None` where an index can have no value.
fn inputs(graph: &Graph, choice: u8) -> Option<Vec<Tensor>> {
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, 1e-40, -1e-3];
    let seed = u64::from(choice / 8);
    let inputs = gather(graph, Vec::new(), seed).ok()?;
    let place = |x: f64| match choice % 4 {
        0 => x,
        // Whole numbers: ties, zeros, exact results.
        1 => x.round(),
        // A power of ten further out.
        2 => x * 10.0,
        _ => {
            let bits = x.to_bits() >> 30;
            if bits.is_multiple_of(6) { special[(bits / 6) as usize % special.len()] } else { x }
        }
    };
    let changed = |tensor: Tensor| {
        let data = match tensor.data().clone() {
            Data::F32(v) => Data::F32(v.into_iter().map(|x| place(f64::from(x)) as f32).collect()),
            Data::F64(v) => Data::F64(v.into_iter().map(place).collect()),
            // An index out of its bounds now and then.
            Data::I64(v) if choice % 32 == 7 => Data::I64(v.into_iter().map(|x| x - 11).collect()),
            Data::I32(v) if choice % 32 == 15 => Data::I32(v.into_iter().map(|x| x + 1_000).collect()),
            data => data,
        };
        Tensor::new(tensor.shape().clone(), data).expect("as many elements as before")
    };
    Some(inputs.into_iter().map(|i| changed(i.tensor)).collect())
}

/// Results in the order of the outputs, or the message of a trap.
type Outcome = Result<Vec<Tensor>, String>;

struct Case<'a> {
    session: &'a Session,
    text: &'a str,
    inputs: &'a [Tensor],
}

impl Case<'_> {
    fn interpret(&self, graph: &Graph, level: Level) -> Outcome {
        self.run(graph, level, Engine::Interpreted(Precision::Typed))
    }

    fn compile(&self, graph: &Graph, level: Level) -> Outcome {
        if cfg!(feature = "codegen") && graph.len() <= MAX_COMPILED {
            self.run(graph, level, Engine::Compiled)
        } else {
            self.interpret(graph, level)
        }
    }

    fn run(&self, graph: &Graph, level: Level, engine: Engine) -> Outcome {
        let inputs: Vec<&Tensor> = self.inputs.iter().collect();
        match run_graph(graph, &self.session.rules.registry, level, engine, &inputs) {
            Ok(results) => Ok(results.into_iter().map(|(_, tensor)| tensor).collect()),
            Err(RunError::Trap(message)) => Err(message),
            Err(error) => panic!("{engine:?} at {level}: {error}\n{}", self.text),
        }
    }

    fn compare(&self, how: &str, expected: &Outcome, bounds: Option<&Bounds>, found: &Outcome) {
        let (expected, found) = match (expected, found) {
            (Ok(expected), Ok(found)) => (expected, found),
            (expected, found) => {
                let trap = |o: &Outcome| o.as_ref().err().cloned();
                assert_eq!(trap(found), trap(expected), "{how}: another trap\n{}", self.text);
                return;
            }
        };
        for (i, (e, f)) in expected.iter().zip(found).enumerate() {
            let values = |t: &Tensor| t.to_array().expect("an array in memory");
            let violation = match e.dtype() {
                DType::F32 | DType::F64 => bounds.and_then(|b| b.violation(i, e.dtype(), values(f).floats())),
                _ => (values(e) != values(f)).then(|| format!("{e} and {f}")),
            };
            if let Some(violation) = violation {
                panic!("{how}: result {i}: {violation}\n{}\n{:?}", self.text, self.inputs);
            }
        }
    }

    /// Equal on every float: all NaNs are one value, zeros of different sign are two.
    fn identical(&self, expected: &Outcome, found: &Outcome) {
        let bits = |o: &Outcome| -> Result<Vec<Vec<u64>>, String> {
            let of = |t: &Tensor| {
                let array = t.to_array().expect("an array in memory");
                let one = |v: &f64| if v.is_nan() { u64::MAX } else { v.to_bits() };
                array.floats().iter().map(one).chain(array.ints().iter().map(|i| *i as u64)).collect()
            };
            o.clone().map(|tensors| tensors.iter().map(of).collect())
        };
        assert_eq!(bits(found), bits(expected), "-O1 is not exact\n{}\n{:?}", self.text, self.inputs);
    }
}
