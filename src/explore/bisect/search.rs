//! Which of many is it? Halving, with no more assumed than that nothing is wrong with none of them and something is with all.
//!
//! Candidates stand in a row, and what is tried is how many of the first ones it takes. Between a number that makes no difference and
//! one that does, the middle is tried, until the two are neighbours: the candidate between them makes the difference, given those
//! before it. That takes as many steps as the number of candidates has bits, and holds even where candidates depend on each other.
//! What it needs of those before it is found in the same way, with it always on.

/// What a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Half of those that it may be.
    Halving,
    /// Those that were found, without any other.
    Alone,
    /// Half of those that what was found may need.
    Companion,
    /// What was found without one of it.
    Without,
}

/// One step of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub purpose: Purpose,
    /// From 1, and how many of this purpose there are at most (for halving).
    pub number: usize,
    pub at_most: usize,
    /// How many of how many suspects are on.
    pub tried: usize,
    pub of: usize,
    /// Everything that is on.
    pub on: Vec<usize>,
    /// The candidate that was found last, or that is left out.
    pub about: Option<usize>,
}

/// The fewest steps that tell `n` apart.
pub fn steps_for(n: usize) -> usize {
    n.max(1).next_power_of_two().trailing_zeros() as usize
}

/// The last of a row that makes a difference: the answer for `n` is yes, and for 0 it is no.
fn last<E>(n: usize, mut differs: impl FnMut(usize, usize, usize) -> Result<bool, E>) -> Result<usize, E> {
    let (mut no, mut yes) = (0, n);
    while yes - no > 1 {
        let middle = no + (yes - no) / 2;
        if differs(middle, middle - no, yes - no)? {
            yes = middle;
        } else {
            no = middle;
        }
    }
    Ok(yes - 1)
}

/// The first of `n` in a row after which something is wrong, by halving.
///
/// # Errors
/// Those of `differs`, which is told a step and how many of the row are on.
pub fn first<E>(n: usize, mut differs: impl FnMut(&Step, usize) -> Result<bool, E>) -> Result<usize, E> {
    let (mut number, at_most) = (0, steps_for(n));
    last(n, |on, tried, of| {
        number += 1;
        differs(&Step { purpose: Purpose::Halving, number, at_most, tried, of, on: Vec::new(), about: None }, on)
    })
}

/// The candidates that together make a difference and of which none can be left out. The first of them is the one that was found by
/// halving all. There is a difference with all `n` of them, and none without any.
///
/// # Errors
/// Those of `differs`.
pub fn fewest<E>(n: usize, mut differs: impl FnMut(&Step) -> Result<bool, E>) -> Result<Vec<usize>, E> {
    if n == 0 {
        return Ok(Vec::new());
    }
    let first = first(n, |step, on| differs(&Step { on: (0..on).collect(), ..step.clone() }))?;
    let mut found = vec![first];
    let mut before = first;
    let step = |purpose, number, on: &[usize], about| {
        let (tried, of) = (on.len(), on.len());
        Step { purpose, number, at_most: 1, tried, of, on: on.to_vec(), about: Some(about) }
    };
    // With everything before it there is a difference. How much of that does it take?
    while before > 0 {
        if differs(&step(Purpose::Alone, found.len(), &found, before))? {
            break;
        }
        let (mut number, at_most) = (0, steps_for(before));
        let next = last(before, |on, tried, of| {
            number += 1;
            let on = (0..on).chain(found.iter().copied()).collect();
            differs(&Step { purpose: Purpose::Companion, number, at_most, tried, of, on, about: None })
        })?;
        found.push(next);
        before = next;
    }
    // What was found early may have become superfluous. The last was needed by all others, as long as they are all there.
    let (mut at, mut complete) = (0, true);
    while found.len() > 1 && at < found.len() - usize::from(complete) {
        let mut rest = found.clone();
        let left_out = rest.remove(at);
        if differs(&step(Purpose::Without, at + 1, &rest, left_out))? {
            (found, at, complete) = (rest, 0, false);
        } else {
            at += 1;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    use super::*;

    fn search(n: usize, wrong: impl Fn(&BTreeSet<usize>) -> bool) -> (Vec<usize>, Vec<Step>) {
        let mut steps = Vec::new();
        let found = fewest(n, |step| {
            steps.push(step.clone());
            Ok::<bool, Infallible>(wrong(&step.on.iter().copied().collect()))
        });
        let Ok(found) = found;
        (found, steps)
    }

    #[test]
    fn one_of_200_is_found_in_8_steps_wherever_it_stands() {
        for culprit in 0..200 {
            let (found, steps) = search(200, |on| on.contains(&culprit));
            assert_eq!(found, [culprit]);
            let halving = steps.iter().filter(|s| s.purpose == Purpose::Halving).count();
            assert!(halving <= 8, "{halving}");
            assert!(steps.len() <= 9);
            assert!(steps.iter().all(|s| s.purpose != Purpose::Halving || s.at_most == 8));
        }
        assert_eq!(steps_for(200), 8);
        assert_eq!([1, 2, 3, 4, 256, 257].map(steps_for), [0, 1, 2, 2, 8, 9]);
    }

    #[test]
    fn what_is_wrong_only_together_is_found_together() {
        for (a, b, c) in [(3, 70, 150), (0, 1, 2), (5, 6, 199), (0, 100, 199)] {
            let (mut found, _) = search(200, |on| [a, b, c].iter().all(|i| on.contains(i)));
            assert_eq!(found[0], c, "the last of them is the one that makes the difference");
            found.sort_unstable();
            assert_eq!(found, [a, b, c]);
        }
    }

    #[test]
    fn what_is_found_makes_a_difference_and_none_of_it_is_superfluous() {
        // Neither monotone nor of one culprit: a pseudo-random function of what is on.
        let wrong = |on: &BTreeSet<usize>, n: usize, seed: u64| {
            let hash =
                on.iter().fold(seed, |h, i| (h ^ (*i as u64 + 1)).wrapping_mul(0x0100_0000_01b3).rotate_left(17));
            !on.is_empty() && (on.len() == n || hash % 3 == 0)
        };
        for seed in 0..200 {
            for n in [1, 2, 3, 7, 20] {
                let (found, steps) = search(n, |on| wrong(on, n, seed));
                let set: BTreeSet<usize> = found.iter().copied().collect();
                assert!(wrong(&set, n, seed) || steps.is_empty(), "{seed} {n} {found:?}");
                assert!(steps.len() <= 10 * (n + 1));
                for i in &found {
                    let mut rest = set.clone();
                    rest.remove(i);
                    assert!(found.len() == 1 || !wrong(&rest, n, seed), "{seed} {n}: {found:?} without {i}");
                }
            }
        }
    }
}
