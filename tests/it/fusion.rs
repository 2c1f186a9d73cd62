//! Which work goes through memory together, and that it stays the same work.

use kina_ad::exec::Tensor;
use kina_ad::exec::inputs::gather;
use kina_ad::ir::{Graph, Precision};
use kina_ad::run::{Engine, run};
use kina_ad::schedule::{Group, Schedule};
use kina_ad::{CheckOptions, Level, RuleOptions, Session};

/// A function of `x`, of targets `t` and of class weights `w`, along axis AXIS.
struct Function {
    call: &'static str,
    /// The fewest groups that there can be, and why.
    groups: usize,
}

/// What each of them is followed by is its gradient.
const FUNCTIONS: [Function; 11] = [
    Function { call: "x.softmax(axis=AXIS)", groups: 1 },
    Function { call: "x.log_softmax(axis=AXIS)", groups: 1 },
    Function { call: "x.logsumexp(axis=AXIS)", groups: 1 },
    Function { call: "x.layer_norm(axis=AXIS)", groups: 1 },
    Function { call: "x.rms_norm(axis=AXIS)", groups: 1 },
    Function { call: "-x.log_softmax(axis=AXIS).take_along_axis(t, axis=AXIS)", groups: 1 },
    // Targets are checked before anything is read at them, and those that are ignored become 0 before that.
    Function { call: "x.nll(t, axis=AXIS)", groups: 2 },
    Function { call: "x.cross_entropy(t, axis=AXIS, label_smoothing=0.1, z_loss=0.01)", groups: 2 },
    // The gradient waits for the number of rows that the mean is over, and the mean for the losses of all rows: targets,
    // their number, rows, and the mean.
    Function { call: "x.nll(t, axis=AXIS, ignore_index=0, reduction=mean)", groups: 4 },
    Function { call: "x.cross_entropy(t, axis=AXIS, label_smoothing=0.1, reduction=mean)", groups: 4 },
    // The same with the sum of the weights of the targets.
    Function {
        call: "weighted_cross_entropy(x, t, w, axis=AXIS, label_smoothing=0.1, z_loss=0.01, reduction=mean)",
        groups: 4,
    },
];

/// Shapes and axes, of all ranks and at all places: narrow, and wide enough for strips, with and without a rest.
const SHAPES: [(&[u64], usize); 14] = [
    (&[300], 0),
    (&[6, 300], 1),
    (&[3, 5, 100], 2),
    (&[2, 3, 4, 50], 3),
    (&[2, 2, 2, 3, 40], 4),
    (&[4, 30, 20], 1),
    (&[2, 30, 3, 20], 1),
    (&[2, 2, 30, 2, 5], 2),
    (&[30, 50], 0),
    (&[30, 4, 5], 0),
    (&[70, 1100], 0),
    (&[700, 300], 0),
    (&[2, 700, 640], 1),
    (&[2, 1500, 210], 1),
];

/// Shapes with dimensions of size 1 and 0.
const SMALL: [(&[u64], usize); 10] = [
    (&[1], 0),
    (&[1, 8], 1),
    (&[8, 1], 1),
    (&[1, 8], 0),
    (&[8, 1], 0),
    (&[5, 1, 7], 1),
    (&[1, 300, 1], 1),
    (&[5, 0], 0),
    (&[0, 5], 1),
    (&[3, 4, 0], 1),
];

fn program(call: &str, dims: &[u64], axis: usize) -> String {
    let rows: Vec<u64> = (0..dims.len()).filter(|d| *d != axis).map(|d| dims[d]).collect();
    let call = call.replace("AXIS", &axis.to_string());
    let classes = dims[axis];
    format!(
        "let t = tensor<I64, {rows:?}, @host> in let w = tensor<F32, [{classes}], @host> in
         let f = fn(x: tensor<F32, {dims:?}, @host>) {{ {call} }} in
         let x = tensor<F32, {dims:?}, @host> in handle f(x) with reverseMode"
    )
}

struct Compiled {
    session: Session,
    graph: Graph,
    schedule: Schedule,
}

impl Compiled {
    fn new(program: &str, level: Level) -> Compiled {
        let mut session = Session::new(&RuleOptions::default()).unwrap();
        // Where there is a gradient, it is one for any cotangent.
        let options = CheckOptions { cotangent_input: program.contains("handle") };
        let graph = session.check("p.kina", program, &options);
        let graph =
            graph.unwrap_or_else(|refusal| panic!("{program}: {}", refusal.render(kina_ad::diagnostics::Style::Plain)));
        let mut program = session.differentiate(&graph).unwrap();
        let optimised = session.optimise(&mut program, level).unwrap();
        let schedule = session.schedule(&optimised).unwrap();
        Compiled { session, graph: optimised.graph, schedule }
    }

    fn text(&self) -> String {
        self.schedule.to_text(&kina_ad::ir::names::value_names(&self.graph, &self.session.rules.registry))
    }

    /// Groups that go through everything that belongs to a tensor of so many elements.
    fn passes(&self, elements: u64) -> Vec<&Group> {
        self.schedule.groups.iter().filter(|g| g.nests.iter().any(|n| n.points() >= elements)).collect()
    }

    fn results(&self, engine: Engine) -> Vec<Tensor> {
        let inputs = gather(&self.graph, Vec::new(), 3).unwrap();
        let tensors: Vec<&Tensor> = inputs.iter().map(|i| &i.tensor).collect();
        let level = self.schedule.level;
        let results = run(&self.graph, &self.session.rules.registry, level, engine, &tensors).unwrap();
        results.into_iter().map(|(_, tensor)| tensor).collect()
    }
}

/// Engines of this build: the interpreter, and compiled code with one thread and, where rows are shared, with several.
fn engines(level: Level) -> Vec<Engine> {
    let mut engines = vec![Engine::Interpreted(Precision::Double)];
    let threads = if level == Level::O0 { &[1][..] } else { &[1, 3] };
    if cfg!(feature = "codegen") {
        engines.extend(threads.iter().map(|n| Engine::Compiled { threads: std::num::NonZero::new(*n) }));
    }
    engines
}

/// Every level and engine gives what the interpreter makes of the unoptimised graph. Inputs have the same names at all
/// levels, so that they are the same.
fn assert_all_agree(what: &str, program: &str) {
    let want = Compiled::new(program, Level::O0).results(Engine::Interpreted(Precision::Double));
    for level in [Level::O0, Level::O2] {
        let compiled = Compiled::new(program, level);
        for engine in engines(level) {
            for (got, want) in compiled.results(engine).iter().zip(&want) {
                let (got, want) = (got.to_array().unwrap(), want.to_array().unwrap());
                for (i, (g, w)) in got.floats().iter().zip(want.floats()).enumerate() {
                    let close = (g - w).abs() <= 2e-5 * (1.0 + w.abs()) || g == w || (g.is_nan() && w.is_nan());
                    assert!(close, "{what} {level} {engine:?}: element {i} is {g}, not {w}\n{}", compiled.text());
                }
            }
        }
    }
}

/// The functions of tensors of that rank. There are no targets along the only axis.
fn functions(rank: usize) -> impl Iterator<Item = &'static Function> {
    FUNCTIONS.iter().filter(move |f| rank > 1 || f.groups == 1 && !f.call.contains("take"))
}

#[test]
fn a_function_and_its_gradient_are_one_row_group() {
    for (dims, axis) in SHAPES {
        for &Function { call, groups } in functions(dims.len()) {
            let compiled = Compiled::new(&program(call, dims, axis), Level::O2);
            let (schedule, text) = (&compiled.schedule, compiled.text());
            let what = format!("{call} of {dims:?} along {axis}\n{text}");
            // Without rows, what is summed up is all one row, and the loss too.
            let [pass] = compiled.passes(dims.iter().product())[..] else { panic!("one pass: {what}") };
            assert_eq!(schedule.groups.len(), groups, "{what}");
            assert!(matches!(pass.kind, kina_ad::schedule::GroupKind::Rows(_)), "{what}");
            // A few numbers for each row, and a few rows for each thread.
            let rows = dims.iter().product::<u64>() / dims[axis];
            let row = pass.part(dims).iter().product::<u64>() * 4;
            let (few, alignment) = (12 * 8, 32 * 64);
            assert!(schedule.workspace <= rows * few + alignment, "{} bytes: {what}", schedule.workspace);
            let lanes = row / 4 / dims[axis];
            assert!(schedule.scratch <= 2 * row + lanes * few + alignment, "{} bytes: {what}", schedule.scratch);
            if groups == 1 {
                assert_eq!(schedule.workspace, 0, "{what}");
            }
        }
    }
}

/// Rows along the last axis need no memory at all but for the results: what they exchange is in registers.
#[test]
fn rows_along_the_last_axis_live_in_the_results() {
    for (dims, axis) in SHAPES.into_iter().filter(|(dims, axis)| axis + 1 == dims.len()) {
        for Function { call, .. } in functions(dims.len()).filter(|f| f.groups == 1) {
            let compiled = Compiled::new(&program(call, dims, axis), Level::O2);
            let bytes = (compiled.schedule.workspace, compiled.schedule.scratch);
            assert_eq!(bytes, (0, 0), "{call} of {dims:?}\n{}", compiled.text());
        }
    }
}

#[test]
fn rows_that_are_too_long_for_a_cache_are_cut_into_strips_of_lanes() {
    let strips = |dims: &[u64], axis| {
        let compiled = Compiled::new(&program("x.softmax(axis=AXIS)", dims, axis), Level::O2);
        let [group] = &compiled.schedule.groups[..] else { panic!("{}", compiled.text()) };
        (group.rows().to_vec(), group.strip.map(|s| s.width))
    };
    // Whole blocks of the inner dimensions where they fit.
    assert_eq!(strips(&[8, 256, 64], 1), (vec![8], None));
    assert_eq!(strips(&[8, 256, 3136], 1), (vec![8, 14], Some(224)));
    assert_eq!(strips(&[1024, 4096], 0), (vec![32], Some(128)));
    // None so narrow that memory is read in short pieces.
    assert_eq!(strips(&[16384, 2048], 0), (vec![16], Some(128)));
    // A rest.
    assert_eq!(strips(&[256, 1100], 0), (vec![5], Some(256)));
}

#[test]
fn fused_work_gives_the_same_results() {
    for (i, (dims, axis)) in SHAPES.into_iter().chain(SMALL).enumerate() {
        // Each shape meets some of the functions, each function some of the shapes; of no logits there is no target.
        for (_, Function { call, .. }) in functions(dims.len()).enumerate().filter(|(f, _)| (f + i).is_multiple_of(3)) {
            assert_all_agree(&format!("{call} of {dims:?} along {axis}"), &program(call, dims, axis));
        }
    }
}

/// Gradients of a layer norm's scale and shift are sums over all rows: one more pass, which both share.
#[test]
fn several_gradients() {
    let text =
        "let norm = fn(x: tensor<F32, [64, 500], @host>, s: tensor<F32, [500], @host>, b: tensor<F32, [500], @host>) {
          x.layer_norm() * s.broadcast(shape=[64, 500]) + b.broadcast(shape=[64, 500]) } in
        let x = tensor<F32, [64, 500], @host> in
        let s = tensor<F32, [500], @host> in let b = tensor<F32, [500], @host> in
        handle norm(x, s, b) with reverseMode";
    let compiled = Compiled::new(text, Level::O2);
    assert_eq!(compiled.passes(64 * 500).len(), 2, "{}", compiled.text());
    assert_eq!(compiled.schedule.groups.len(), 2, "{}", compiled.text());
    // The mean and the deviation of each row.
    assert_eq!(compiled.schedule.temporaries(1), 2 * 64 * 4, "{}", compiled.text());
    assert_all_agree("layer norm", text);
}

/// Results that share rows are one group, however they are asked for.
#[test]
fn several_outputs() {
    for (dims, axis) in [([40, 300], 1), ([300, 40], 0), ([30, 1100], 0)] {
        let (elements, kept) = (dims[0] * dims[1], if axis == 1 { [40, 1] } else { [1, dims[1]] });
        let text = format!(
            "let x = tensor<F32, {dims:?}, @host> in
             let e = exp(x - x.max(axis={axis}, keepdims=true).broadcast(shape={dims:?})) in
             let s = e.sum(axis={axis}, keepdims=true) in
             (e / s.broadcast(shape={dims:?}), s, log(s), e * e - x, x.max(axis={axis}, keepdims=true) + splat(1.0, like=s))"
        );
        let compiled = Compiled::new(&text, Level::O2);
        assert_eq!(compiled.schedule.groups.len(), 1, "{kept:?}\n{}", compiled.text());
        assert_eq!(compiled.passes(elements).len(), 1, "{}", compiled.text());
        assert_eq!(compiled.schedule.workspace, 0, "{}", compiled.text());
        assert_all_agree(&format!("outputs of {dims:?} along {axis}"), &text);
    }
}

/// A row reads another row, or another lane: that is no row group, or the value is whole.
#[test]
fn what_reads_across_rows_is_not_fused() {
    let shifts = [
        "e.reverse(axis=0)",
        "e.reverse(axis=1)",
        "transpose(e, perm=[1, 0])",
        "e.cumsum(axis=1)",
        "e.take_along_axis(iota(shape=[130], axis=0, dtype=I64), axis=1).unsqueeze(axis=1).broadcast(shape=[130, 130])",
        "e.take_along_axis(iota(shape=[130], axis=0, dtype=I64), axis=0).unsqueeze(axis=0).broadcast(shape=[130, 130])",
        "e.slice(start=[3, 0], limit=[4, 130]).broadcast(shape=[130, 130])",
    ];
    for axis in [0, 1] {
        for shift in shifts {
            let text = format!(
                "let x = tensor<F32, [130, 130], @host> in
                 let e = exp(x - x.max(axis={axis}, keepdims=true).broadcast(shape=[130, 130])) in
                 let r = {shift} in
                 (e + r, (e * r).sum(axis={axis}), (r - e).max(axis={}))",
                1 - axis
            );
            assert_all_agree(&format!("{shift} along {axis}"), &text);
        }
    }
}
