//! Interleaved timing.

use std::error::Error;
use std::time::Instant;

use crate::problem::{Gradient, Problem};

type Run<'a> = Box<dyn FnMut(&Problem, &mut Gradient) -> Result<(), Box<dyn Error>> + 'a>;

/// Someone who computes the problem's results into a buffer.
pub struct Contestant<'a> {
    pub name: &'static str,
    pub run: Run<'a>,
}

/// Seconds per call of one contestant, one per round.
pub struct Times {
    pub name: &'static str,
    pub rounds: Vec<f64>,
}

impl Times {
    pub fn median(&self) -> f64 {
        median(&self.rounds)
    }

    pub fn min(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn max(&self) -> f64 {
        self.rounds.iter().copied().fold(0.0, f64::max)
    }

    /// The median over rounds of this one's time over `other`'s in the same round, so that a machine that slows down
    /// halfway favours nobody.
    pub fn over(&self, other: &Times) -> f64 {
        median(&self.rounds.iter().zip(&other.rounds).map(|(a, b)| a / b).collect::<Vec<_>>())
    }
}

/// The middle value, or the mean of the middle two.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// Runs every contestant once per round, beginning with another one each round. A measurement repeats the call until it
/// takes a millisecond. Before anything is timed, all contestants must agree with the first.
pub fn compare(
    problem: &Problem,
    mut contestants: Vec<Contestant<'_>>,
    rounds: usize,
) -> Result<Vec<Times>, Box<dyn Error>> {
    const TOLERANCE: f32 = 1e-5;
    let mut outputs: Vec<Gradient> = contestants.iter().map(|_| problem.gradient()).collect::<Result<_, _>>()?;
    let mut repeats = Vec::new();
    for (contestant, out) in contestants.iter_mut().zip(&mut outputs) {
        (contestant.run)(problem, out)?; // faults the pages of the output in
        let start = Instant::now();
        (contestant.run)(problem, out)?;
        repeats.push((1e-3 / start.elapsed().as_secs_f64().max(1e-9)).ceil() as usize);
    }
    if let [first, rest @ ..] = &outputs[..] {
        for (out, contestant) in rest.iter().zip(&contestants[1..]) {
            let distance = out.distance(first);
            if distance.is_nan() || distance > TOLERANCE {
                return Err(format!("{} differs from {} by {distance:e}", contestant.name, contestants[0].name).into());
            }
        }
    }
    let count = contestants.len();
    let mut times: Vec<Times> = contestants.iter().map(|c| Times { name: c.name, rounds: Vec::new() }).collect();
    for round in 0..rounds {
        for turn in 0..count {
            let i = (round + turn) % count;
            let start = Instant::now();
            for _ in 0..repeats[i] {
                (contestants[i].run)(problem, &mut outputs[i])?;
            }
            times[i].rounds.push(start.elapsed().as_secs_f64() / repeats[i] as f64);
        }
    }
    Ok(times)
}
