//! Compiled code computes what the steps say, wherever an element stands.

use kina_ad::ir::{DType, Level, Shape};
use kina_ad::{CheckOptions, Compiled, Data, RuleOptions, Session, Tensor};

use super::sample::sample;
use super::{DTYPES, FUNCTIONS, Function, PROMISED, Worst, same};

const LEVELS: [Level; 2] = [Level::O1, Level::O2];

/// A program that computes functions of one array.
fn compile(session: &mut Session, functions: &[&str], dtype: DType, length: usize, level: Level) -> Compiled {
    let calls: Vec<String> = functions.iter().map(|f| format!("{f}(x)")).collect();
    let program = format!("let x = tensor<{dtype}, [{length}], @host> in\n({})\n", calls.join(", "));
    let graph = session.check("functions.kina", &program, &CheckOptions::default()).expect("it is right");
    let mut differentiated = session.differentiate(&graph).expect("there is nothing to differentiate");
    let program = session.optimise(&mut differentiated, level).expect("it can be optimised");
    session.compile(&program).expect("it compiles")
}

fn tensor(dtype: DType, values: &[f64]) -> Tensor {
    let shape = Shape::new(vec![values.len() as u64]).unwrap();
    let data = match dtype {
        DType::F32 => Data::F32(values.iter().map(|x| *x as f32).collect()),
        _ => Data::F64(values.to_vec()),
    };
    Tensor::new(shape, data).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    match tensor.data() {
        Data::F32(v) => v.iter().map(|x| f64::from(*x)).collect(),
        Data::F64(v) => v.clone(),
        _ => panic!("floats give floats"),
    }
}

fn names<'f>(functions: impl IntoIterator<Item = &'f Function>) -> Vec<&'static str> {
    functions.into_iter().map(|f| f.name).collect()
}

#[test]
fn compiled_code_equals_the_steps_bit_by_bit() {
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    for dtype in DTYPES {
        let operands = sample(dtype, 20);
        let input = tensor(dtype, &operands);
        for level in LEVELS {
            let code = compile(&mut session, &names(&FUNCTIONS), dtype, operands.len(), level);
            let results = code.call(&[&input]).unwrap();
            assert_eq!(results.len(), FUNCTIONS.len());
            for (function, result) in FUNCTIONS.iter().zip(&results) {
                let steps = function.evaluate(dtype, &operands);
                let differs = values(result).into_iter().zip(steps).position(|(a, b)| !same(a, b));
                let at = differs.map(|i| operands[i]);
                assert_eq!(at, None, "{} {dtype} {level}", function.name);
            }
        }
    }
}

/// Arrays of every length from 1 to 40, so that elements stand in each lane and in what is left over; each length for a third of
/// the functions, to save time.
#[test]
fn a_value_does_not_depend_on_its_place() {
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    for dtype in DTYPES {
        let pool: Vec<f64> = sample(dtype, 1).into_iter().step_by(37).collect();
        for length in 1..=40 {
            let functions: Vec<&Function> = FUNCTIONS.iter().skip(length % 3).step_by(3).collect();
            let code = compile(&mut session, &names(functions.iter().copied()), dtype, length, Level::O2);
            for start in (0..pool.len() - length).step_by(41) {
                let operands = &pool[start..start + length];
                let results = code.call(&[&tensor(dtype, operands)]).unwrap();
                for (function, result) in functions.iter().zip(&results) {
                    let steps = function.evaluate(dtype, operands);
                    let equal = values(result).into_iter().zip(steps).all(|(a, b)| same(a, b));
                    assert!(equal, "{} {dtype} [{length}] of {operands:?}", function.name);
                }
            }
        }
    }
}

/// Every F32 there is, in pieces that the threads take in turns.
#[test]
#[ignore = "minutes: ./x ulp"]
fn every_f32_is_as_promised() {
    const PIECE: u64 = 1 << 16;
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for function in &FUNCTIONS {
        let start = std::time::Instant::now();
        let code = compile(&mut session, &[function.name], DType::F32, PIECE as usize, Level::O2);
        let part = &|thread: u64| {
            let mut worst = Worst::default();
            for piece in (thread..(1 << 32) / PIECE).step_by(threads) {
                let bits = piece * PIECE..(piece + 1) * PIECE;
                let operands: Vec<f64> = bits.map(|b| f64::from(f32::from_bits(b as u32))).collect();
                let results = code.call(&[&tensor(DType::F32, &operands)]).unwrap();
                let found = function.worst(DType::F32, &operands, &values(&results[0]));
                if found.ulps > worst.ulps {
                    worst = found;
                }
            }
            worst
        };
        let worst = std::thread::scope(|scope| {
            let parts: Vec<_> = (0..threads as u64).map(|t| scope.spawn(move || part(t))).collect();
            let parts = parts.into_iter().map(|p| p.join().expect("no panic"));
            parts.max_by(|a, b| a.ulps.total_cmp(&b.ulps)).expect("there is a thread")
        });
        let seconds = start.elapsed().as_secs();
        println!("{} F32: {:.3} ULP at {:e} ({:e}), {seconds} s", function.name, worst.ulps, worst.at, worst.result);
        assert!(worst.ulps <= PROMISED, "{}: {worst:?}", function.name);
    }
}
