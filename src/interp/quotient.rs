//! The derivative of a weighted sum along a line, by finite differences.
//!
//! At step h the slope is the central difference of five points, `(8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h`, whose
//! error is O(h^4). Steps are halved, so two steps share their points. Two steps that agree settle the slope; otherwise
//! a wide range of steps is tried, from small to large, and the two neighbours that agree best count. Differences are taken element by element
//! before they are summed: elements that do not change cancel exactly.
//!
//! Left and right slope, `(4 f(h) - f(2h) - 3 f(0)) / 2h` and its mirror image, cost no further points. Where they
//! differ, and no less at half the step, the function has a kink within the step; if they do so at the smallest usable
//! step, it is here.

use super::evaluate::InterpError;

/// Steps are `2^-k`; one of these and half of it settle most slopes.
const TRIED: [i32; 2] = [8, 5];
/// All steps, if those disagree.
const ALL: std::ops::RangeInclusive<i32> = 5..=22;
/// Evaluations that settle an ordinary slope.
pub(super) const EVALUATIONS: u64 = 6;

/// An uncertainty so many times the agreement asked for ends the search, once larger steps are worse.
const SETTLED: f64 = 10.0;
/// How relative a difference of left and right slope counts as a kink.
const KINK: f64 = 1e-5;

/// The derivative at the middle of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slope {
    /// Two steps gave `value`, but for `uncertainty`.
    Smooth {
        value: f64,
        uncertainty: f64,
    },
    Kink {
        left: f64,
        right: f64,
    },
    /// The function is not finite around the point, however small the step.
    Unusable,
}

impl Slope {
    /// Distance of `value` from the slope, or from the interval between the slopes at a kink.
    pub fn distance(&self, value: f64) -> f64 {
        match *self {
            Slope::Smooth { value: slope, .. } => (value - slope).abs(),
            Slope::Kink { left, right } => (left.min(right) - value).max(value - left.max(right)).max(0.0),
            Slope::Unusable => 0.0,
        }
    }
}

/// Values on both sides of the middle: `f(-t)` and `f(t)`, `None` if they are not finite.
type Pair = Option<(Vec<f64>, Vec<f64>)>;

/// A function of one variable, with the values already computed.
struct Line<'a, F> {
    middle: &'a [f64],
    weights: &'a [f64],
    /// Slopes below it need no relative precision.
    scale: f64,
    at: F,
    /// By the exponent of the step: index 0 is the widest of all, twice the greatest step.
    pairs: Vec<Option<Pair>>,
    /// How far rounding moves a difference of values: measured where it is all that is left.
    rounding: f64,
}

/// Slopes at one step.
#[derive(Clone, Copy)]
struct Estimate {
    central: f64,
    left: f64,
    right: f64,
    /// What rounding of the function's values alone may do.
    noise: f64,
}

impl Estimate {
    fn gap(&self) -> f64 {
        (self.right - self.left).abs()
    }
}

/// The slope of `sum(weights * f(t))` at 0. Steps that agree within a relative `agreement` settle it at once. `middle`
/// is `f(0)` and `at` computes `f(t)`; an error of `at` is passed on unless it is a trap, which makes the point unusable.
pub fn slope(
    middle: &[f64],
    weights: &[f64],
    scale: f64,
    agreement: f64,
    at: impl FnMut(f64) -> Result<Vec<f64>, InterpError>,
) -> Result<Slope, InterpError> {
    let pairs = vec![None; (ALL.end() - ALL.start() + 2) as usize];
    let mut line = Line { middle, weights, scale, at, pairs, rounding: 0.0 };
    for k in TRIED {
        if let (Some(wide), Some(narrow)) = (line.estimate(k)?, line.estimate(k + 1)?) {
            let difference = (wide.central - narrow.central).abs();
            let agree = difference <= (agreement * line.size(&narrow)).max(narrow.noise);
            if agree && !line.differ(&narrow) {
                // Rounding is less at the larger step, all else at the smaller one.
                let value = if difference <= narrow.noise { wide.central } else { narrow.central };
                return Ok(Slope::Smooth { value, uncertainty: difference.max(narrow.noise) });
            }
        }
    }
    line.measure_rounding()?;
    if let Some(kink) = line.kink()? {
        return Ok(kink);
    }
    // From small steps to large ones: those reach kinks nearby, and many of them may look smooth from afar.
    let mut best: Option<(f64, f64)> = None;
    for k in (*ALL.start()..*ALL.end()).rev() {
        let (Some(wide), Some(narrow)) = (line.estimate(k)?, line.estimate(k + 1)?) else { continue };
        let uncertainty = (wide.central - narrow.central).abs().max(narrow.noise);
        if line.has_gap(&wide, &narrow) {
            continue;
        }
        match best {
            Some((value, least)) if uncertainty >= least => {
                if least <= SETTLED * agreement * value.abs().max(line.scale) && uncertainty > 8.0 * least {
                    break;
                }
            }
            _ => best = Some((narrow.central, uncertainty)),
        }
    }
    Ok(best.map_or(Slope::Unusable, |(value, uncertainty)| Slope::Smooth { value, uncertainty }))
}

impl<F: FnMut(f64) -> Result<Vec<f64>, InterpError>> Line<'_, F> {
    /// At the smallest steps, central differences of a function that has a slope differ by rounding only.
    fn measure_rounding(&mut self) -> Result<(), InterpError> {
        for k in ALL.end() - 3..*ALL.end() {
            if let (Some(wide), Some(narrow)) = (self.estimate(k)?, self.estimate(k + 1)?) {
                let difference = (wide.central - narrow.central).abs();
                self.rounding = self.rounding.max(difference * 2f64.powi(-k - 1));
            }
        }
        Ok(())
    }

    /// The left and right slope at the smallest step that rounding leaves usable, if they differ there.
    fn kink(&mut self) -> Result<Option<Slope>, InterpError> {
        for k in (ALL.start() + 4..*ALL.end()).rev() {
            let (Some(wide), Some(narrow)) = (self.estimate(k)?, self.estimate(k + 1)?) else { continue };
            if 4.0 * narrow.noise <= KINK * self.size(&narrow) {
                let Estimate { left, right, .. } = narrow;
                return Ok(self.has_gap(&wide, &narrow).then_some(Slope::Kink { left, right }));
            }
        }
        Ok(None)
    }

    /// Do left and right slope differ, by more than rounding?
    fn differ(&self, e: &Estimate) -> bool {
        e.gap() > (KINK * self.size(e)).max(4.0 * e.noise)
    }

    /// Do they differ, and not less at half the step?
    fn has_gap(&self, wide: &Estimate, narrow: &Estimate) -> bool {
        self.differ(narrow) && narrow.gap() > 0.5 * wide.gap()
    }

    /// What differences are relative to.
    fn size(&self, e: &Estimate) -> f64 {
        e.central.abs().max(e.left.abs()).max(e.right.abs()).max(self.scale)
    }

    fn estimate(&mut self, k: i32) -> Result<Option<Estimate>, InterpError> {
        self.fill(k - 1)?;
        self.fill(k)?;
        let (Some((far_left, far_right)), Some((left, right))) = (self.pair(k - 1), self.pair(k)) else {
            return Ok(None);
        };
        let h = 2f64.powi(-k);
        let mut e = Estimate { central: 0.0, left: 0.0, right: 0.0, noise: 0.0 };
        // Where nothing at all changes, rounding may have swallowed every change.
        let still = left == self.middle && right == self.middle;
        for (i, w) in self.weights.iter().enumerate().filter(|(_, w)| **w != 0.0) {
            let m = self.middle[i];
            e.central += w * (8.0 * (right[i] - left[i]) - (far_right[i] - far_left[i]));
            e.right += w * (4.0 * (right[i] - m) - (far_right[i] - m));
            e.left += w * (4.0 * (m - left[i]) - (m - far_left[i]));
            if still || right[i] != m || left[i] != m {
                e.noise += (w * m).abs();
            }
        }
        e.central /= 12.0 * h;
        e.right /= 2.0 * h;
        e.left /= 2.0 * h;
        e.noise = (e.noise * 2.0 * f64::EPSILON).max(self.rounding) / h;
        let finite = e.central.is_finite() && e.left.is_finite() && e.right.is_finite();
        Ok(finite.then_some(e))
    }

    fn slot(k: i32) -> usize {
        (k - (ALL.start() - 1)) as usize
    }

    fn pair(&self, k: i32) -> Option<(&[f64], &[f64])> {
        let pair = self.pairs[Self::slot(k)].as_ref()?.as_ref()?;
        Some((&pair.0, &pair.1))
    }

    /// Computes the values at `-2^-k` and `2^-k`.
    fn fill(&mut self, k: i32) -> Result<(), InterpError> {
        if self.pairs[Self::slot(k)].is_none() {
            let t = 2f64.powi(-k);
            let pair = match (self.finite(-t)?, self.finite(t)?) {
                (Some(left), Some(right)) => Some((left, right)),
                _ => None,
            };
            self.pairs[Self::slot(k)] = Some(pair);
        }
        Ok(())
    }

    fn finite(&mut self, t: f64) -> Result<Option<Vec<f64>>, InterpError> {
        match (self.at)(t) {
            Ok(v) => Ok(v.iter().all(|x| x.is_finite()).then_some(v)),
            Err(InterpError::Trap(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(f: impl Fn(f64) -> f64) -> Slope {
        slope(&[f(0.0)], &[1.0], 1e-3, 1e-9, |t| Ok(vec![f(t)])).unwrap()
    }

    #[track_caller]
    fn smooth(f: impl Fn(f64) -> f64, expected: f64) {
        match of(f) {
            Slope::Smooth { value, .. } => assert!((value - expected).abs() < 1e-9, "{value} is not {expected}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn smooth_slopes_are_precise() {
        smooth(|t| (2.0 + t).exp(), 2f64.exp());
        smooth(|t| (0.3 + t).tanh(), 1.0 - 0.3f64.tanh().powi(2));
        // Curved within the first steps: smaller ones settle it.
        smooth(|t| (200.0 * t).sin() / 200.0, 1.0);
        // A logarithm whose domain ends within the first steps.
        smooth(|t| (1e-3 + t).ln() * 1e-3, 1.0);
    }

    #[test]
    fn a_kink_nearby_is_not_a_kink_here() {
        smooth(|t| (t - 1e-4).max(0.0), 0.0);
        smooth(|t| (t + 1e-4).max(0.0), 1.0);
    }

    #[test]
    fn kinks_have_two_slopes() {
        match of(|t| t.max(0.0) + 3.0 * t) {
            Slope::Kink { left, right } => assert!((left - 3.0).abs() < 1e-9 && (right - 4.0).abs() < 1e-9),
            other => panic!("{other:?}"),
        }
        let kink = of(f64::abs);
        assert_eq!(kink.distance(0.0), 0.0);
        assert!((kink.distance(1.5) - 0.5).abs() < 1e-9 && (kink.distance(-3.0) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_jump_is_never_certain() {
        match of(|t| if t > 0.0 { 1.0 } else { 0.0 }) {
            Slope::Smooth { value, uncertainty } => assert!(value.abs() <= 4.0 * uncertainty),
            Slope::Kink { .. } | Slope::Unusable => {}
        }
        assert_eq!(of(|t| if t < 0.0 { f64::NAN } else { t }), Slope::Unusable);
    }
}
