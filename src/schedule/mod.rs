//! From a typed graph to an order of work: loop nests, fusion groups, bounds checks and a buffer plan.
//!
//! The schedule is complete: what it says is what `lower` emits. It depends on the graph and the level
//! only, never on the machine.

mod buffers;
mod events;
mod fuse;
mod nest;
mod phases;
mod reunite;
mod rows;
mod strips;
mod text;

use std::sync::Arc;

pub use nest::{Access, Body, Coordinate, Inst, InstId, Nest, NestResult, Sequence, ValueId};
pub use phases::Phase;

use crate::ir::{Graph, Level, NodeId, Registry, TensorType};

/// Why a graph has no schedule. All of these but [`TooLarge`](ScheduleError::TooLarge) are the fault of an earlier stage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("`{operator}` is a composite operator and was not expanded")]
    Composite { operator: String },
    #[error("the graph still has a handler or a parameter of one: differentiate first")]
    NotDifferentiated,
    #[error("`{operator}` has a kernel that does not fit its result type")]
    Kernel { operator: String },
    #[error("the temporaries that are needed at one time are too large to be addressed: more than 2^63 bytes")]
    TooLarge,
}

impl ScheduleError {
    /// The diagnostic code.
    pub fn code(&self) -> &'static str {
        if *self == ScheduleError::TooLarge { "E0605" } else { "E0604" }
    }

    /// The way out.
    pub fn help(&self) -> &'static str {
        match self {
            ScheduleError::TooLarge => "use smaller shapes",
            _ => "this is a fault of kina-ad: please report it with the program and the rule files",
        }
    }
}

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: dead, or computed again wherever it is used.
    Inlined,
    /// In the caller's input of that index.
    Input(usize),
    /// In the caller's output of that index.
    Output(usize),
    /// In the workspace, at that many bytes.
    Slot(u64),
    /// One row at a time in the scratch memory of the thread that computes it, at that many bytes; never whole.
    Row(u64),
    /// One element at a time, in a register.
    Register,
    /// The elements of another value under another shape.
    View(ValueId),
}

/// One value of the schedule.
#[derive(Clone, Debug)]
pub struct Value {
    pub ty: TensorType,
    /// The node that computes it, or of whose kernel it is a temporary.
    pub node: NodeId,
    pub place: Place,
}

/// A bounds check: every element of `indices` lies in `0..size`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    pub indices: ValueId,
    pub size: u64,
    /// The operator that speaks when it fails.
    pub operator: Arc<str>,
}

impl Site {
    /// The trap message of the specification.
    pub fn message(&self) -> String {
        format!("{} index out of bounds", self.operator)
    }
}

/// How the nests of a group relate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// One operator, one nest after the other.
    Single,
    /// One nest, of one or more operators.
    Loops,
    /// The nests share these outer dimensions and run row by row, all of them on one row before the next. With
    /// [strips](Group::strip) the last of these counts them; vectors without outer dimensions are one row.
    Rows(Vec<u64>),
}

/// How the last dimension of all nests of a group is cut: a row sees `width` of its `extent` lanes, the last row perhaps fewer.
///
/// Along an axis that is not the last one the elements that belong together are far apart, and those beside each other are
/// independent: lanes. A strip of lanes is narrow enough for a cache to hold it, and wide enough for vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strip {
    pub extent: u64,
    pub width: u64,
}

impl Strip {
    /// How many strips there are.
    pub fn count(&self) -> u64 {
        self.extent.div_ceil(self.width)
    }
}

/// A fusion group: operators that run in one pass.
#[derive(Clone, Debug)]
pub struct Group {
    pub kind: GroupKind,
    /// The operators it computes, ascending.
    pub nodes: Vec<NodeId>,
    pub nests: Vec<Nest>,
    /// Of a row group only.
    pub strip: Option<Strip>,
}

impl Group {
    /// The extents over which rows are counted; empty unless [`GroupKind::Rows`].
    pub fn rows(&self) -> &[u64] {
        match &self.kind {
            GroupKind::Rows(rows) => rows,
            _ => &[],
        }
    }

    /// How many outer dimensions of every nest a row fixes.
    pub fn outer(&self) -> usize {
        self.rows().len().saturating_sub(usize::from(self.strip.is_some()))
    }

    /// The shape of the part of a value of `shape` that one row computes.
    pub fn part(&self, shape: &[u64]) -> Vec<u64> {
        let mut part: Vec<u64> = shape.iter().skip(self.outer()).copied().collect();
        if let (Some(strip), Some(lanes)) = (self.strip, part.last_mut()) {
            *lanes = strip.width;
        }
        part
    }
}

/// One step of the work, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Check `sites[i]`; stop with status `i + 1` if it fails.
    Check(usize),
    /// Run `groups[i]`.
    Run(usize),
    /// Copy a value into the caller's output of that index (it is also an input or another output).
    Copy { from: ValueId, output: usize },
}

/// The schedule of one graph.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub level: Level,
    /// Values of the graph's nodes first, temporaries of their kernels after them.
    pub values: Vec<Value>,
    /// The graph's checks in their order, then those that only operators of the graph ask for.
    pub sites: Vec<Site>,
    pub groups: Vec<Group>,
    pub steps: Vec<Step>,
    /// Bytes of the workspace that the caller provides: the peak of all temporaries that are kept whole.
    pub workspace: u64,
    /// The most bytes of them that are needed at one time: no plan takes less.
    pub least: u64,
    /// Bytes of scratch memory that each thread needs besides: the largest peak of rows of one group.
    pub scratch: u64,
}

impl Schedule {
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// Bytes of all temporaries where `threads` threads share the work: the workspace, then the scratch memory of each
    /// thread. Saturating.
    pub fn temporaries(&self, threads: u64) -> u64 {
        self.workspace.saturating_add(self.scratch.saturating_mul(threads))
    }

    /// The value whose elements `id` sees: itself unless it is a view.
    pub fn root(&self, mut id: ValueId) -> ValueId {
        while let Place::View(of) = self.value(id).place {
            id = of;
        }
        id
    }
}

/// Orders, fuses and places the work of `graph`.
///
/// # Errors
/// See [`ScheduleError`].
pub fn schedule(graph: &Graph, registry: &Registry, level: Level) -> Result<Schedule, ScheduleError> {
    let (mut schedule, units) = events::units(graph, registry, level)?;
    let units = if level.fuses() { fuse::inline(&schedule, graph, units) } else { units };
    rows::group(&mut schedule, graph, units);
    buffers::plan(&mut schedule, graph)?;
    Ok(schedule)
}

#[cfg(test)]
pub(crate) mod tests;
