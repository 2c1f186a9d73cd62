//! Compiled code computes what the steps say, wherever an element stands.

use kina_ad::ir::{DType, Level, Shape};
use kina_ad::{CheckOptions, Compiled, Data, RuleOptions, Session, Tensor};

use super::sample::sample;
use super::{DTYPES, FUNCTIONS, Function, same};

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
