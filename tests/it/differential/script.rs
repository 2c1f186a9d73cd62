//! Scripts: what proptest draws and shrinks. A script is a list of steps, a step a verb and some numbers, and
//! [`Builder`](super::build::Builder) makes a valid program of any of them. Dropping steps and lowering numbers
//! therefore makes the program smaller and never invalid.

use proptest::prelude::*;

/// Numbers of one step. Most steps use few of them.
const NUMBERS: usize = 20;

/// One step: the verb counts into [`Vocabulary::verbs`](super::vocabulary::Vocabulary).
#[derive(Clone, Debug)]
pub struct Step {
    pub verb: usize,
    pub numbers: [u8; NUMBERS],
}

/// A program in the making.
#[derive(Clone, Debug)]
pub struct Script {
    pub steps: Vec<Step>,
    /// Chooses the results.
    pub results: [u8; 3],
}

impl Script {
    /// The script that bytes say, at most [`STEPS`](super::STEPS) steps long: three for the results, then a verb and its
    /// numbers for each step. What is missing is zero.
    pub fn from_bytes(bytes: &[u8]) -> Script {
        let mut bytes = Numbers::new(bytes);
        let results = std::array::from_fn(|_| bytes.next());
        let mut steps = Vec::new();
        while !bytes.0.is_empty() && steps.len() < super::STEPS {
            steps.push(Step { verb: bytes.next().into(), numbers: std::array::from_fn(|_| bytes.next()) });
        }
        Script { steps, results }
    }
}

/// All scripts of up to `steps` steps over a vocabulary of `verbs` verbs.
pub fn scripts(verbs: usize, steps: usize) -> impl Strategy<Value = Script> {
    let step = (0..verbs, proptest::array::uniform20(any::<u8>())).prop_map(|(verb, numbers)| Step { verb, numbers });
    let results = proptest::array::uniform3(any::<u8>());
    (proptest::collection::vec(step, 1..=steps), results).prop_map(|(steps, results)| Script { steps, results })
}

/// The numbers of a step, taken one by one. When they run out, there are only zeros.
pub struct Numbers<'a>(&'a [u8]);

impl<'a> Numbers<'a> {
    pub fn new(numbers: &'a [u8]) -> Self {
        Numbers(numbers)
    }

    pub fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number below `n`, which is not 0. A lower number of the script gives no higher one here.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.next()) * n / 256
    }

    /// True for one number in `n`, the highest ones.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }
}
