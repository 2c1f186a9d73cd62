//! Interleaved timing: contestants take turns within a round, so that whatever else the machine does hits all of them.

use std::error::Error;
use std::time::Duration;

use kina_ad::{Data, Tensor};

/// Someone who computes the results of a job.
pub trait Contestant {
    fn name(&self) -> &str;

    /// Calls so many times; the seconds of all calls together.
    ///
    /// # Errors
    /// Whatever goes wrong in a call.
    fn time(&mut self, repeats: u32) -> Result<f64, Box<dyn Error>>;

    /// What a call computes; nothing if results are not compared.
    ///
    /// # Errors
    /// Whatever goes wrong in a call.
    fn results(&mut self) -> Result<Vec<Tensor>, Box<dyn Error>>;
}

/// Seconds per call of one contestant, one per round.
#[derive(Clone, Debug)]
pub struct Times {
    pub name: String,
    pub rounds: Vec<f64>,
}

impl Times {
    /// This one's time over `other`'s, round by round, so that a machine that slows down halfway favours nobody.
    pub fn over(&self, other: &Times) -> Vec<f64> {
        self.rounds.iter().zip(&other.rounds).map(|(a, b)| a / b).collect()
    }
}

/// The value below which this part of the values lies, interpolated: the median for 0.5, the extremes for 0 and 1.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = part.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

/// How contestants are compared.
pub struct Turns {
    pub rounds: usize,
    /// How far elements may be apart, relative to the larger of 1 and the value.
    pub tolerance: f64,
    /// After every turn. Threads that wait for work may spin for a while, in which they would take a core from whoever
    /// is next; forbidding it would make calls of several parallel regions slower than they are.
    pub pause: Duration,
}

impl Turns {
    /// As every benchmark here does it. `./x bench` lets OpenMP's threads spin for less than this.
    pub fn new(rounds: usize) -> Turns {
        Turns { rounds, tolerance: 1e-5, pause: Duration::from_millis(50) }
    }
}

/// What a measurement is too short below.
const SECONDS: f64 = 5e-3;

/// Runs every contestant once per round, beginning with another one each round. A turn is a call that is not timed, which wakes
/// threads and warms caches, and a measurement, which repeats the call until it takes 5 milliseconds. Before anything is
/// timed, all contestants must agree with the first.
///
/// # Errors
/// A contestant that fails, or computes something else.
pub fn compare(contestants: &mut [Box<dyn Contestant + '_>], turns: &Turns) -> Result<Vec<Times>, Box<dyn Error>> {
    agree(contestants, turns.tolerance)?;
    let mut repeats = Vec::new();
    for contestant in &mut *contestants {
        contestant.time(1)?; // faults pages in
        let mut count = 1;
        // The first calls may be slow: a count that suffices is found by trying it.
        while count < 1 << 20 {
            let seconds = contestant.time(count)?;
            if seconds >= SECONDS {
                break;
            }
            count = (f64::from(count) * (1.2 * SECONDS / seconds.max(1e-9)).clamp(2.0, 100.0)).ceil() as u32;
        }
        repeats.push(count);
        std::thread::sleep(turns.pause);
    }
    let count = contestants.len();
    let mut times: Vec<Times> =
        contestants.iter().map(|c| Times { name: c.name().to_owned(), rounds: Vec::new() }).collect();
    for round in 0..turns.rounds {
        for turn in 0..count {
            let i = (round + turn) % count;
            contestants[i].time(1)?;
            times[i].rounds.push(contestants[i].time(repeats[i])? / f64::from(repeats[i]));
            std::thread::sleep(turns.pause);
        }
    }
    Ok(times)
}

fn agree(contestants: &mut [Box<dyn Contestant + '_>], tolerance: f64) -> Result<(), Box<dyn Error>> {
    let [first, rest @ ..] = contestants else { return Ok(()) };
    let expected = first.results()?;
    for other in rest {
        let results = other.results()?;
        if results.len() != expected.len() {
            return Err(format!(
                "{} has {} results, {} has {}",
                other.name(),
                results.len(),
                first.name(),
                expected.len()
            )
            .into());
        }
        for (i, (a, b)) in expected.iter().zip(&results).enumerate() {
            let distance = distance(a, b);
            if distance.is_nan() || distance > tolerance {
                let (other, first) = (other.name(), first.name());
                return Err(format!(
                    "{other} differs from {first} by {distance:e} in result {i}; allowed are {tolerance:e}"
                )
                .into());
            }
        }
    }
    Ok(())
}

/// The largest difference of two F32 tensors, relative to the larger of 1 and the value; NaN for other dtypes or shapes.
fn distance(a: &Tensor, b: &Tensor) -> f64 {
    let (Data::F32(x), Data::F32(y)) = (a.data(), b.data()) else { return f64::NAN };
    if a.shape() != b.shape() {
        return f64::NAN;
    }
    let each = x.iter().zip(y).map(|(x, y)| f64::from((x - y).abs() / x.abs().max(1.0)));
    each.fold(0.0, |most, d| if d > most || d.is_nan() { d } else { most })
}
