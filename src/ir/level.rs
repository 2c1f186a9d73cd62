//! Optimisation levels.

use std::fmt;

/// How much the compiler may change (DESIGN §3, §7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// No rewrites, one operator at a time, each index operator with its own bounds check.
    O0,
    /// Rewrites that are equal on every float; fusion; one check per distinct (indices, bound).
    O1,
    /// Rewrites that hold over the reals too; sums are reassociated.
    #[default]
    O2,
}

impl Level {
    pub const ALL: [Level; 3] = [Level::O0, Level::O1, Level::O2];

    /// May loops be fused?
    pub fn fuses(self) -> bool {
        self >= Level::O1
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::O0 => "-O0",
            Level::O1 => "-O1",
            Level::O2 => "-O2",
        })
    }
}
