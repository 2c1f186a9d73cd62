//! The crate as its users call it: every stage through [`Session`], errors as values, calls from several threads.

use kina_ad::ir::{DType, Precision, Shape};
use kina_ad::{CheckOptions, Data, Differentiated, Level, Optimised, Refusal, RuleOptions, RunError, Session, Tensor};

const NLL: &str = "let nll = fn(logits: tensor<F32, [2, 5], @host>) -> tensor<F32, [2], @host> {
    let targets = tensor<I64, [2], @host> in
    -logits.log_softmax(axis=1).take_along_axis(targets, axis=1)
  } in
  let logits = tensor<F32, [2, 5], @host> in
  handle nll(logits) with reverseMode";

const LEVELS: [Level; 3] = [Level::O0, Level::O1, Level::O2];

fn session() -> Session {
    Session::new(&RuleOptions::default()).expect("the rules of the profile load")
}

fn optimised(session: &mut Session, program: &str, level: Level) -> Result<(Differentiated, Optimised), Refusal> {
    let graph = session.check("p.kina", program, &CheckOptions::default())?;
    let mut differentiated = session.differentiate(&graph)?;
    let optimised = session.optimise(&mut differentiated, level)?;
    Ok((differentiated, optimised))
}

fn tensor(dims: &[u64], data: Data) -> Tensor {
    Tensor::new(Shape::new(dims.to_vec()).expect("a small shape"), data).expect("as many elements as the shape says")
}

fn logits(seed: f32) -> Tensor {
    tensor(&[2, 5], Data::F32((0..10).map(|i| (seed + i as f32 * 0.7).sin() * 3.0).collect()))
}

fn targets(values: [i64; 2]) -> Tensor {
    tensor(&[2], Data::I64(values.to_vec()))
}

#[test]
fn everything_is_a_call_and_may_cross_threads() {
    fn crosses<T: Send + Sync>(_: &T) {}
    let mut session = session();
    let program = session.parse("p.kina", NLL).expect("it parses");
    let graph = session.check_tree(&program, &CheckOptions::default()).expect("it is well-typed");
    let mut differentiated = session.differentiate(&graph).expect("it has a gradient");
    let optimised = session.optimise(&mut differentiated, Level::O2).expect("it can be optimised");
    let schedule = session.schedule(&optimised).expect("it has a schedule");
    assert_eq!(optimised.level, Level::O2);
    assert!(!schedule.groups.is_empty());
    let inputs = [&logits(1.0), &targets([0, 4])];
    let results = session.interpret(&optimised, &inputs, Precision::Double).expect("it runs");
    assert_eq!(
        results.iter().map(|t| (t.dtype(), t.shape().to_vec())).collect::<Vec<_>>(),
        [(DType::F32, vec![2]), (DType::F32, vec![2, 5])]
    );
    assert!(session.check_gradients(&differentiated, &inputs, 0).expect("it runs").passed());
    crosses(&session);
    crosses(&graph);
    crosses(&optimised);
    crosses(&schedule);
    crosses(&results);
}

#[test]
fn faults_of_a_text_come_back_as_diagnostics_and_the_session_goes_on() {
    let mut session = session();
    let refusal = session.check("p.kina", "let x = tensor<F32, [2], @host> in x.exq() + y", &CheckOptions::default());
    let refusal = refusal.expect_err("it has two faults");
    let codes: Vec<&str> = refusal.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["E0202", "E0201"]);
    assert!(refusal.to_string().contains("p.kina:1:"), "{refusal}");
    assert!(!refusal.is_io());
    let device = NLL.replace("@host", "@device");
    let (_, program) = optimised(&mut session, &device, Level::O2).expect("it can be differentiated");
    let names: Vec<&str> = program.graph.outputs.iter().map(|o| &*o.name).collect();
    assert_eq!(names, ["primal", "g_logits"]);
    assert!(optimised(&mut session, NLL, Level::O2).is_ok());
}

#[test]
fn traps_and_tensors_that_do_not_fit_are_values() {
    let mut session = session();
    for level in LEVELS {
        let (_, program) = optimised(&mut session, NLL, level).expect("it is right");
        let run = |inputs: &[&Tensor]| session.interpret(&program, inputs, Precision::Typed);
        for bad in [[0, 5], [-1, 0], [i64::MAX, 0], [i64::MIN, 0]] {
            let error = run(&[&logits(0.0), &targets(bad)]).expect_err("the index is out of range");
            assert!(matches!(&error, RunError::Trap(m) if m == "take_along_axis index out of bounds"), "{error}");
        }
        for inputs in [&[&logits(0.0)][..], &[&targets([0, 0]), &logits(0.0)]] {
            let error = run(inputs).expect_err("the inputs do not fit");
            assert_eq!(error.code(), "E0803", "{error}");
        }
        assert!(run(&[&logits(0.0), &targets([1, 2])]).is_ok());
    }
}

#[cfg(feature = "codegen")]
mod compiled {
    use std::thread;

    use kina_ad::CallError;
    use kina_ad::exec::inputs::gather;

    use super::*;

    #[test]
    fn device_programs_are_refused_by_name() {
        let mut session = session();
        let device = NLL.replace("@host", "@device");
        let (_, program) = optimised(&mut session, &device, Level::O2).expect("it can be differentiated");
        let refusal = session.compile(&program).expect_err("there is no device");
        assert!(
            refusal.to_string().contains("scatter_along_axis: checked device lowering is not available"),
            "{refusal}"
        );
    }

    /// Every thread calls the same code with inputs of its own, some of them out of range, and gets what the interpreter
    /// says about them.
    #[test]
    fn several_threads_call_one_compiled_function() {
        let mut session = session();
        for level in LEVELS {
            let (_, program) = optimised(&mut session, NLL, level).expect("it is right");
            let code = session.compile(&program).expect("it compiles");
            thread::scope(|scope| {
                for worker in 0..8_u8 {
                    let (session, program, code) = (&session, &program, &code);
                    scope.spawn(move || {
                        for round in 0..50_u8 {
                            let logits = logits(f32::from(worker) + f32::from(round) / 50.0);
                            let good = targets([i64::from(worker % 5), i64::from(round % 5)]);
                            let want = session.interpret(program, &[&logits, &good], Precision::Double);
                            let got = code.call(&[&logits, &good]);
                            close(&got.expect("it runs"), &want.expect("it runs"));
                            let bad = targets([i64::from(worker % 5), 5 + i64::from(round)]);
                            let error = code.call(&[&logits, &bad]).expect_err("the index is out of range");
                            let message = "take_along_axis index out of bounds".to_owned();
                            assert_eq!(error, CallError::Trap { message });
                        }
                    });
                }
            });
        }
    }

    fn close(got: &[Tensor], want: &[Tensor]) {
        for (got, want) in got.iter().zip(want) {
            let (Data::F32(got), Data::F32(want)) = (got.data(), want.data()) else { panic!("not F32") };
            let apart = got.iter().zip(want).any(|(g, w)| (g - w).abs() > 1e-5 * (1.0 + w.abs()));
            assert!(!apart, "got {got:?}, want {want:?}");
        }
    }

    #[test]
    fn several_threads_compile_at_once() {
        thread::scope(|scope| {
            for worker in 0..4_u64 {
                scope.spawn(move || {
                    let mut session = session();
                    let columns = worker + 2;
                    let text = NLL.replace("[2, 5]", &format!("[2, {columns}]"));
                    let (differentiated, program) = optimised(&mut session, &text, Level::O2).expect("it is right");
                    let generated = gather(&differentiated.tape, Vec::new(), worker).expect("inputs");
                    let inputs: Vec<&Tensor> = generated.iter().map(|i| &i.tensor).collect();
                    let results = session.compile(&program).expect("it compiles").call(&inputs).expect("it runs");
                    assert_eq!(results[1].shape().to_vec(), [2, columns]);
                });
            }
        });
    }

    #[test]
    fn calls_that_do_not_fit_are_refused_before_anything_is_read() {
        let mut session = session();
        let (_, program) = optimised(&mut session, NLL, Level::O2).expect("it is right");
        let code = session.compile(&program).expect("it compiles");
        let (x, t) = (logits(0.0), targets([0, 1]));
        assert!(matches!(code.call(&[&x]), Err(CallError::Count { expected: 2, given: 1, .. })));
        assert!(matches!(code.call(&[&t, &x]), Err(CallError::Type { index: 0, .. })));
        let short = tensor(&[2, 4], Data::F32(vec![0.0; 8]));
        assert!(matches!(code.call(&[&short, &t]), Err(CallError::Type { index: 0, .. })));
        let mut outputs = [tensor(&[2], Data::F32(vec![0.0; 2]))];
        assert!(matches!(code.call_into(&[&x, &t], &mut outputs), Err(CallError::Count { expected: 2, given: 1, .. })));
    }
}
