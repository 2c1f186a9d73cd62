//! What the check of gradients found.

use std::fmt;
use std::sync::Arc;

use crate::ir::NodeId;

/// The greatest relative error that passes.
pub const TOLERANCE: f64 = 1e-6;

/// A gradient to check. Nodes are those of a graph in which parameters still stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GradientProbe {
    pub name: Arc<str>,
    pub primal: NodeId,
    pub param: NodeId,
    pub gradient: NodeId,
    /// Ones if `None`.
    pub cotangent: Option<NodeId>,
}

/// What the check of one gradient found.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Passed,
    Failed,
    /// Why there is nothing to compare. Counts as a failure of the check.
    NotChecked(String),
}

/// The check of one gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct GradientResult {
    pub name: Arc<str>,
    pub elements: usize,
    /// Coordinates and directions compared.
    pub checked: usize,
    /// Those of them where the one-sided derivatives differ; there the gradient must lie between them.
    pub at_kinks: usize,
    /// Coordinates and directions where no step gives a usable difference quotient. They were not compared.
    pub unresolved: usize,
    /// The worst relative error, and the element it was met at (for sampled directions, none).
    pub worst: f64,
    pub worst_at: Option<usize>,
    pub verdict: Verdict,
}

/// All gradients of a program.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GradReport {
    pub gradients: Vec<GradientResult>,
}

impl GradReport {
    pub fn passed(&self) -> bool {
        self.gradients.iter().all(|g| g.verdict == Verdict::Passed)
    }
}

/// A power of ten that bounds an error: `<= 1e-6`, the tolerance, for everything below it. What is measured there is
/// partly the rounding of the differences, and elementary functions differ between machines in the last digit, so a
/// finer threshold would not be the same everywhere.
pub fn bucket(error: f64) -> String {
    if error.is_nan() {
        return "NaN".to_owned();
    }
    for exponent in (1..=6).rev() {
        if error <= 10f64.powi(-exponent) {
            return format!("<= 1e-{exponent}");
        }
    }
    "> 1e-1".to_owned()
}

impl fmt::Display for GradReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for g in &self.gradients {
            write!(f, "g_{}: ", g.name)?;
            match &g.verdict {
                Verdict::NotChecked(why) => writeln!(f, "not checked: {why}")?,
                verdict => {
                    let kinks = if g.at_kinks > 0 { format!(", {} at kinks", g.at_kinks) } else { String::new() };
                    let lost =
                        if g.unresolved > 0 { format!(", {} not resolved", g.unresolved) } else { String::new() };
                    let place = match (verdict, g.worst_at) {
                        (Verdict::Failed, Some(at)) => format!(", worst at element {at}"),
                        _ => String::new(),
                    };
                    let word = if *verdict == Verdict::Passed { "passed" } else { "FAILED" };
                    let what = if g.checked + g.unresolved < g.elements { "sampled" } else { "compared" };
                    writeln!(
                        f,
                        "worst relative error {} ({} of {} {what}{kinks}{lost}{place}): {word}",
                        bucket(g.worst),
                        g.checked,
                        g.elements
                    )?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hide_what_machines_differ_in() {
        assert_eq!(bucket(0.0), "<= 1e-6");
        assert_eq!(bucket(3e-8), "<= 1e-6");
        assert_eq!(bucket(3e-5), "<= 1e-4");
        assert_eq!(bucket(0.5), "> 1e-1");
    }
}
