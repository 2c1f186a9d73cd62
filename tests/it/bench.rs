//! What `./x bench` does with its measurements: who is timed when, who must agree with whom, how peers are asked, what the
//! report says.

#[path = "../../benches/common/contest.rs"]
mod contest;
#[path = "../../benches/suite/peers.rs"]
mod peers;
#[path = "../../benches/suite/report.rs"]
mod report;

use std::cell::RefCell;
use std::error::Error;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use kina_ad::exec::arrays::{read_npy, write_npy};
use kina_ad::exec::inputs::{Input, InputSource};
use kina_ad::ir::{DType, Placement, Shape, TensorType};
use kina_ad::{Data, Tensor};

use contest::{Contestant, Times, Turns, compare, quantile};
use peers::{Peer, PeerError, Way};
use report::{Goal, Report, Section, Spread, Table, Unit, cells};

/// Who was called, and how often in one go.
type Calls = Vec<(&'static str, u32)>;

/// Takes what it is told to, and writes down when it is called.
struct Scripted {
    name: &'static str,
    seconds: f64,
    results: Vec<f32>,
    calls: Rc<RefCell<Calls>>,
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

fn compared(a: &[f32], b: &[f32]) -> (Result<Vec<Times>, String>, Calls) {
    let calls = Rc::new(RefCell::new(Vec::new()));
    let scripted = |name, seconds, results: &[f32]| {
        Box::new(Scripted { name, seconds, results: results.to_vec(), calls: calls.clone() }) as Box<dyn Contestant>
    };
    let turns = Turns { pause: Duration::ZERO, ..Turns::new(3) };
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

/// A peer that gives these answers, whatever it is asked, and ends.
fn peer(answers: &[&str]) -> Result<Peer, PeerError> {
    let mut command = Command::new("sh");
    command.args(["-c", "for answer; do read -r question; printf '%s\\n' \"$answer\"; done", "sh"]).args(answers);
    Peer::start("a peer", command)
}

#[test]
fn a_peer_is_loaded_prepared_timed_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let tensor = |v: f32| Tensor::new(Shape::new(vec![1]).unwrap(), Data::F32(vec![v])).unwrap();
    write_npy(&file("value.npy"), &tensor(1.0)).unwrap();
    write_npy(&file("gradient.npy"), &tensor(2.0)).unwrap();
    let files = serde_json::json!({"ok": {"files": [file("value.npy"), file("gradient.npy")]}}).to_string();
    let versions = r#"{"ok": {"Framework": "1.2"}}"#;
    let answers = [
        versions,
        r#"{"ok": {}}"#,
        r#"{"ok": {}}"#,
        r#"{"ok": {"seconds": 0.25}}"#,
        &files,
        r#"{"ok": {"seconds": 3.0}}"#,
    ];
    let mut peer = peer(&answers).unwrap();
    assert_eq!(peer.versions["Framework"], "1.2");
    let input = Input { name: "x".into(), ty: tensor_type(), source: InputSource::Given, tensor: tensor(0.5) };
    peer.load("job", &[input], folder.path()).unwrap();
    assert_eq!(read_npy(&file("x.npy")).unwrap(), tensor(0.5));
    let peer = Rc::new(RefCell::new(peer));
    let mut way = Way::new("its name", "fast", peer.clone(), folder.path()).unwrap();
    assert_eq!(way.time(2).unwrap(), 0.25);
    assert_eq!(way.name(), "its name");
    assert_eq!(way.results().unwrap(), [tensor(1.0), tensor(2.0)]);
    assert_eq!(peer.borrow_mut().compile().unwrap(), 3.0);
    let end = peer.borrow_mut().compile().unwrap_err();
    assert!(matches!(end, PeerError::Ended("a peer") | PeerError::Pipe { .. }), "{end}");
}

fn tensor_type() -> TensorType {
    TensorType::new(DType::F32, Shape::new(vec![1]).unwrap(), Placement::Host)
}

#[test]
fn a_peer_that_fails_is_an_error_with_its_name() {
    let hello = r#"{"ok": {}}"#;
    let refused = |answer: &str| peer(&[hello, answer]).unwrap().compile().unwrap_err();
    assert_eq!(refused(r#"{"error": "ValueError: no"}"#).to_string(), "a peer: ValueError: no");
    for answer in ["Segmentation fault", r#"{"ok": {"second": 1}}"#, "{}"] {
        let error = refused(answer);
        assert!(matches!(&error, PeerError::Answer { line, .. } if line.trim() == answer), "{error}");
    }
    assert!(peer(&[]).is_err());
    assert!(matches!(Peer::start("a peer", Command::new("/no/such/program")), Err(PeerError::Pipe { .. })));
}
