//! What `./x bench` does with its measurements: who is timed when, who must agree with whom, what the report says.

#[path = "../../benches/common/contest.rs"]
mod contest;
#[path = "../../benches/suite/report.rs"]
mod report;

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use kina_ad::ir::Shape;
use kina_ad::{Data, Tensor};

use contest::{Contestant, Times, Turns, compare, quantile};
use report::{Goal, Report, Section, Spread, Table, Unit, cells};

/// Takes what it is told to, and writes down when it is called.
struct Scripted {
    name: &'static str,
    seconds: f64,
    results: Vec<f32>,
    calls: Rc<RefCell<Vec<(&'static str, u32)>>>,
}

impl Contestant for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    fn time(&mut self, repeats: u32) -> Result<f64, Box<dyn Error>> {
        self.calls.borrow_mut().push((self.name, repeats));
        Ok(self.seconds * f64::from(repeats))
    }

    fn results(&mut self) -> Result<Vec<Tensor>, Box<dyn Error>> {
        let shape = Shape::new(vec![self.results.len() as u64])?;
        Ok(vec![Tensor::new(shape, Data::F32(self.results.clone()))?])
    }
}

fn compared(a: &[f32], b: &[f32]) -> (Result<Vec<Times>, String>, Vec<(&'static str, u32)>) {
    let calls = Rc::new(RefCell::new(Vec::new()));
    let scripted = |name, seconds, results: &[f32]| {
        Box::new(Scripted { name, seconds, results: results.to_vec(), calls: calls.clone() }) as Box<dyn Contestant>
    };
    let turns = Turns { rounds: 3, tolerance: 1e-5, pause: Duration::ZERO };
    let times = compare(&mut [scripted("slow", 0.002, a), scripted("fast", 1e-6, b)], &turns);
    let calls = calls.borrow().clone();
    (times.map_err(|e| e.to_string()), calls)
}

#[test]
fn contestants_take_turns_and_short_calls_are_repeated() {
    let (times, calls) = compared(&[1.0, 1000.0], &[1.0, 1000.005]);
    let turns = &calls[calls.len() - 12..];
    let order: Vec<&str> = turns.iter().step_by(2).map(|(name, _)| *name).collect();
    assert_eq!(order, ["slow", "fast", "fast", "slow", "slow", "fast"]);
    assert!(turns.iter().step_by(2).all(|(_, repeats)| *repeats == 1), "a turn begins with a call that is not timed");
    let repeats = |name| calls.iter().rev().find(|(n, _)| *n == name).unwrap().1;
    assert!((3..10).contains(&repeats("slow")), "{} calls", repeats("slow"));
    assert!(repeats("fast") >= 5000, "a measurement takes 5 ms: {} calls do not", repeats("fast"));
    let times = times.unwrap();
    assert!(times[0].over(&times[1]).iter().all(|r| (r - 2000.0).abs() < 1e-6));
}

#[test]
fn who_computes_something_else_is_not_timed() {
    for (a, b) in [([1.0, 2.0], [1.0, 2.1]), ([1.0, 2.0], [1.0, f32::NAN]), ([f32::NAN, 2.0], [1.0, 2.0])] {
        let error = compared(&a, &b).0.unwrap_err();
        assert!(error.starts_with("fast differs from slow by "), "{error}");
    }
    let (error, _) = compared(&[1.0], &[1.0, 2.0]);
    assert!(error.unwrap_err().contains("NaN"), "shapes differ");
}

#[test]
fn quantiles_are_interpolated() {
    let values = [4.0, 1.0, 3.0, 2.0];
    assert_eq!([0.0, 0.25, 0.5, 1.0].map(|part| quantile(&values, part)), [1.0, 1.75, 2.5, 4.0]);
    assert!(quantile(&[], 0.5).is_nan());
}

fn goal(asked: f64, measured: Option<&[f64]>) -> Goal {
    Goal { job: "a / b".into(), unit: Unit::Ratio, asked: ("so much", asked), measured: measured.map(Spread::of) }
}

#[test]
fn the_report_says_what_is_not_reached_and_what_is_not_measured() {
    let times = |name: &str, rounds: &[f64]| Times { name: name.into(), rounds: rounds.to_vec() };
    let (ours, other) = (times("kina-ad -O2", &[0.001, 0.002, 0.003]), times("other", &[0.01, 0.01, 0.01]));
    let report = Report {
        about: vec![("processor".into(), "one".into())],
        missing: vec!["JAX. There is no network.".into()],
        goals: vec![goal(0.5, Some(&[0.2, 0.3, 0.4])), goal(0.2, Some(&[0.3])), goal(0.2, None)],
        sections: vec![report::contest("A job", "Text.", &[ours.clone(), other], &ours)],
    };
    let text = report.markdown();
    for line in [
        "- processor: one",
        "| a / b | <= so much | 0.300 | 0.250 to 0.350 | yes |",
        "| a / b | <= so much | 0.300 |  | **no** |",
        "| a / b | <= so much |  |  | not measured |",
        "Not measured: JAX. There is no network.",
        "| kina-ad -O2 | 2.00 ms | 1.50 ms to 2.50 ms | 1.00 ms | 3.00 ms | 1 |  |",
        "| other | 10.0 ms | 10.0 ms to 10.0 ms | 10.0 ms | 10.0 ms | 0.200 | 0.150 to 0.250 |",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    }
    let json = report.json();
    let reached: Vec<_> = (0..3).map(|i| json["goals"][i]["reached"].as_bool()).collect();
    assert_eq!(reached, [Some(true), Some(false), None]);
    assert_eq!(json["sections"][0]["data"][1]["rounds"][2], 0.01);
}

#[test]
fn figures_have_three_digits_and_a_unit() {
    let shown = [
        (Unit::Seconds, 12.3456, "12.3 s"),
        (Unit::Seconds, 0.0123, "12.3 ms"),
        (Unit::Seconds, 9.99e-7, "999 ns"),
        (Unit::Seconds, 1.5e-10, "0.150 ns"),
        (Unit::Bytes, 205_852_672.0, "196 MiB"),
        (Unit::Bytes, 0.0, "0 B"),
        (Unit::Ratio, 0.0123, "0.0123"),
        (Unit::Ratio, 1234.5, "1234"),
        (Unit::Ratio, f64::NAN, "NaN"),
    ];
    for (unit, value, text) in shown {
        assert_eq!(unit.show(value), text);
    }
    assert_eq!(cells(Unit::Seconds, &Spread::of(&[1.0])), ["1.00 s", "1.00 s to 1.00 s", "1.00 s", "1.00 s"]);
}

/// Cells are not escaped: what is written into one must not end it.
#[test]
fn a_table_has_as_many_cells_in_each_row_as_in_its_head() {
    let mut table = Table::new(&["a", "b"]);
    table.rows.push(vec!["c".into(), "d".into()]);
    let section =
        Section { title: "T".into(), text: String::new(), tables: vec![table], data: serde_json::Value::Null };
    let text = Report { sections: vec![section], ..Report::default() }.markdown();
    assert!(text.ends_with("## T\n\n| a | b |\n| --- | ---: |\n| c | d |\n"), "{text}");
}
