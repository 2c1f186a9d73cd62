//! Arrays compared: how far apart, and which elements are NaN or infinite on one side only.

use std::fmt;

use crate::interp::{TOLERANCE, bucket};
use crate::ir::{Array, Values};

/// How two arrays of one shape compare.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    pub elements: usize,
    /// The worst relative error `|a - b| / max(|a|, |b|, 1e-3 * G, 1e-8)`, where G is the greatest finite magnitude: the measure of
    /// the gradient check.
    pub worst: f64,
    /// Elements that are NaN or infinite on one side and not, or otherwise, on the other.
    pub displaced: usize,
    /// Integers and Bools that are not equal.
    pub unequal: usize,
}

impl Agreement {
    /// Is what differs no more than rounding?
    pub fn holds(&self) -> bool {
        self.worst <= TOLERANCE && self.displaced == 0 && self.unequal == 0
    }

    /// Compares the elements of two arrays of one shape and kind; `None` if they are of different ones.
    pub fn of(a: &Array, b: &Array) -> Option<Agreement> {
        if a.shape != b.shape {
            return None;
        }
        let elements = a.values.len();
        let mut agreement = Agreement { elements, worst: 0.0, displaced: 0, unequal: 0 };
        match (&a.values, &b.values) {
            (Values::Float(a), Values::Float(b)) => {
                let finite = a.iter().chain(b).filter(|v| v.is_finite());
                let least = (1e-3 * finite.fold(0.0, |most: f64, v| most.max(v.abs()))).max(1e-8);
                for (a, b) in a.iter().zip(b) {
                    if a.is_finite() && b.is_finite() {
                        // Halved, so that the distance of the largest numbers is finite.
                        let distance = (a / 2.0 - b / 2.0).abs() / (a.abs().max(b.abs()).max(least) / 2.0);
                        agreement.worst = agreement.worst.max(distance);
                    } else if !((a.is_nan() && b.is_nan()) || a == b) {
                        agreement.displaced += 1;
                    }
                }
            }
            (Values::Int(a), Values::Int(b)) => agreement.unequal = a.iter().zip(b).filter(|(a, b)| a != b).count(),
            (Values::Bool(a), Values::Bool(b)) => agreement.unequal = a.iter().zip(b).filter(|(a, b)| a != b).count(),
            _ => return None,
        }
        Some(agreement)
    }
}

/// The size of an error as a power of ten, since what rounds differs between machines.
impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let elements = if self.elements == 1 { "element" } else { "elements" };
        write!(f, "worst relative difference {} ({} {elements}", bucket(self.worst), self.elements)?;
        if self.displaced > 0 {
            write!(f, ", {} NaN or infinite on one side only", self.displaced)?;
        }
        if self.unequal > 0 {
            write!(f, ", {} not equal", self.unequal)?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Shape;

    fn floats(values: &[f64]) -> Array {
        Array::new(Shape::new(vec![values.len() as u64]).unwrap(), Values::Float(values.to_vec()))
    }

    #[test]
    fn rounding_is_no_difference_and_a_moved_nan_is_one() {
        let agree = |a: &[f64], b: &[f64]| Agreement::of(&floats(a), &floats(b)).unwrap();
        assert!(agree(&[1.0, 2.0], &[1.0 + 1e-12, 2.0]).holds());
        assert!(agree(&[f64::NAN, f64::INFINITY], &[f64::NAN, f64::INFINITY]).holds());
        // Noise where the result is zero.
        assert!(agree(&[0.0, 1.0], &[1e-17, 1.0]).holds() && agree(&[0.0], &[1e-17]).holds());
        assert_eq!(agree(&[f64::MAX], &[-f64::MAX]).worst, 2.0);
        let wrong = agree(&[1.0, f64::NAN, 3.0], &[1.1, 2.0, f64::NEG_INFINITY]);
        assert!(!wrong.holds());
        assert_eq!(
            wrong.to_string(),
            "worst relative difference <= 1e-1 (3 elements, 2 NaN or infinite on one side only)"
        );
        assert_eq!(Agreement::of(&floats(&[1.0]), &floats(&[1.0, 2.0])), None);
        let ints =
            |values: &[i64]| Array::new(Shape::new(vec![values.len() as u64]).unwrap(), Values::Int(values.to_vec()));
        assert!(!Agreement::of(&ints(&[1, 2]), &ints(&[1, 3])).unwrap().holds());
        assert_eq!(Agreement::of(&ints(&[1]), &floats(&[1.0])), None);
    }
}
