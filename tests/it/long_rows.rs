//! Rows that no second-level cache holds: softmax and its losses in blocks, each under its own maximum.

use kina_ad::schedule::GroupKind;
use kina_ad::{CheckOptions, Data, Level, RuleOptions, Session, Tensor};

/// The value and gradient of the loss of a row, its cotangent being 1, in double precision.
fn closed_form(row: &[f64], target: usize) -> (f64, Vec<f64>) {
    let m =
        row.iter().copied().fold(f64::NEG_INFINITY, |m, x| if x.is_nan() || m.is_nan() { f64::NAN } else { m.max(x) });
    let sum: f64 = row.iter().map(|x| (x - m).exp()).sum();
    let softmax = row.iter().enumerate().map(|(i, x)| (x - m).exp() / sum - f64::from(u8::from(i == target)));
    (sum.ln() - (row[target] - m), softmax.collect())
}

/// Numbers that look random and are the same everywhere, in -6..6.
fn logits(count: usize) -> Vec<f64> {
    let mut state = 12u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from((12.0 * ((state >> 40) as f64 / f64::from(1u32 << 24)) - 6.0) as f32)
    };
    (0..count).map(next).collect()
}

/// Rows with special elements, along the last axis: what they begin with, what else is in them.
fn rows(width: usize) -> Vec<Vec<f64>> {
    let plain = logits(width);
    let with = |change: &dyn Fn(&mut Vec<f64>)| {
        let mut row = plain.clone();
        change(&mut row);
        row
    };
    vec![
        plain.clone(),
        // Whole blocks of -inf at the beginning, and at the end.
        with(&|row| row[..20_000].fill(f64::NEG_INFINITY)),
        with(&|row| row[width - 9_000..].fill(f64::NEG_INFINITY)),
        // Everything but the target.
        with(&|row| {
            row.fill(f64::NEG_INFINITY);
            row[7] = -3.0;
        }),
        with(&|row| row.fill(f64::NEG_INFINITY)),
        with(&|row| row[30_000] = f64::INFINITY),
        with(&|row| row[width - 1] = f64::NAN),
        // Blocks far apart: what the first blocks have is nothing beside the last.
        with(&|row| row.iter_mut().enumerate().for_each(|(i, x)| *x += (i / 1000) as f64 * 10.0)),
        with(&|row| row.iter_mut().for_each(|x| *x -= 1e8)),
    ]
}

fn check(program: &str, dtype: &str, width: usize, tolerance: f64) {
    let mut rows = rows(width);
    if dtype == "F32" {
        rows.iter_mut().flatten().for_each(|x| *x = f64::from(*x as f32));
    }
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    let graph = session.check("long.kina", program, &CheckOptions::default()).unwrap();
    let mut program = session.differentiate(&graph).unwrap();
    let optimised = session.optimise(&mut program, Level::O2).unwrap();
    // A group whose rows are the blocks, and no temporary of the size of the logits.
    let schedule = session.schedule(&optimised).unwrap();
    let blocks =
        |kind: &GroupKind| matches!(kind, GroupKind::Rows(r) if r.iter().product::<u64>() > 20 * rows.len() as u64);
    assert!(schedule.groups.iter().any(|g| blocks(&g.kind)), "{}", schedule.to_text(&[]));
    assert!(schedule.temporaries(1) < (rows.len() * width) as u64, "{}", schedule.to_text(&[]));
    let targets: Vec<i64> = rows.iter().map(|_| 7).collect();
    let flat: Vec<f64> = rows.concat();
    let data = match dtype {
        "F32" => Data::F32(flat.iter().map(|x| *x as f32).collect()),
        _ => Data::F64(flat.clone()),
    };
    let shape = optimised.graph.ty(optimised.graph.inputs[0]).shape.clone();
    let x = Tensor::new(shape, data).unwrap();
    let t = Tensor::new(kina_ad::ir::Shape::new(vec![rows.len() as u64]).unwrap(), Data::I64(targets)).unwrap();
    let results = session.compile(&optimised).unwrap().call(&[&x, &t]).unwrap();
    let values: Vec<Vec<f64>> = results.iter().map(|r| r.to_array().unwrap().floats().to_vec()).collect();
    for (i, row) in rows.iter().enumerate() {
        let (loss, gradient) = closed_form(row, 7);
        let close = |got: f64, want: f64| {
            (got.is_nan() && want.is_nan()) || got == want || (got - want).abs() <= tolerance * want.abs().max(1.0)
        };
        assert!(close(values[0][i], loss), "row {i}: the loss is {} and not {loss}", values[0][i]);
        for (j, (got, want)) in values[1][i * width..].iter().zip(&gradient).enumerate() {
            assert!(close(*got, *want), "row {i}: gradient {j} is {got} and not {want}");
        }
    }
}

fn nll(dtype: &str, width: usize) -> String {
    format!(
        "let nll = fn(logits: tensor<{dtype}, [9, {width}], @host>) {{
           let targets = tensor<I64, [9], @host> in
           -logits.log_softmax(axis=1).take_along_axis(targets, axis=1)
         }} in
         let logits = tensor<{dtype}, [9, {width}], @host> in
         handle nll(logits) with reverseMode"
    )
}

/// Widths that blocks divide, that they do not, and one more than a multiple.
#[test]
fn long_rows_go_through_memory_in_blocks() {
    for width in [270_001, 4096 * 66, 4096 * 66 + 1] {
        check(&nll("F32", width), "F32", width, 2e-5);
    }
    check(&nll("F64", 140_003), "F64", 140_003, 1e-12);
}

#[test]
fn rows_that_a_cache_holds_go_through_it_at_once() {
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    let graph = session.check("nll.kina", &nll("F32", 50_257), &CheckOptions::default()).unwrap();
    let mut program = session.differentiate(&graph).unwrap();
    let optimised = session.optimise(&mut program, Level::O2).unwrap();
    let schedule = session.schedule(&optimised).unwrap();
    assert_eq!(schedule.groups.len(), 1, "{}", schedule.to_text(&[]));
    assert_eq!(schedule.groups[0].kind, GroupKind::Rows(vec![9]));
}
