//! Drawings: graphs and schedules as SVG, with a layout of our own, so that nothing has to be installed to look at one.
//!
//! `graph` and `schedule` say what is drawn: items with operands, which `fold` searches for what repeats, and `assemble` turns into a
//! picture of boxes, frames and edges. `far` takes out edges that are too long to follow, `layout` gives places, and `svg` writes.
//! `docs/drawings.md` says how to read one.
//!
//! Nothing here takes quadratic time, or recurses: a graph of any size is folded, and drawn if that leaves few enough boxes.

mod assemble;
mod far;
mod fold;
mod graph;
mod layout;
mod linear;
mod picture;
mod schedule;
mod svg;
mod text;

use crate::diagnostics::Diagnostic;
use crate::ir::print::Printer;
use crate::schedule::Schedule;
use picture::Picture;

/// Most boxes of a drawing.
pub const MAX_BOXES: usize = 2000;
/// Most rows that all edges of a drawing pass together.
const MAX_BENDS: usize = 200_000;

/// How something is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Draw one copy of what repeats, in a frame.
    pub fold: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { fold: true }
    }
}

/// Why something is not drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrawError {
    #[error("a drawing of {boxes} boxes could not be read: there may be {MAX_BOXES}")]
    Boxes { boxes: usize, folded: bool },
    #[error("a drawing whose edges pass more than {MAX_BENDS} boxes could not be read")]
    Edges { folded: bool },
}

impl From<DrawError> for Diagnostic {
    fn from(error: DrawError) -> Diagnostic {
        let (DrawError::Boxes { folded, .. } | DrawError::Edges { folded }) = error;
        let out = if folded {
            "look at it with `--format text`, or draw a smaller program, such as one with fewer layers"
        } else {
            "leave `--unfold` out, so that of parts that repeat one copy is drawn"
        };
        Diagnostic::error("E0606", error.to_string()).help(out)
    }
}

/// A graph as SVG, under a title.
///
/// # Errors
/// It would have too many boxes, or edges that are too long.
pub fn graph(printer: &Printer<'_>, title: &str, options: Options) -> Result<String, DrawError> {
    draw(graph::picture(printer, title, options), options)
}

/// The schedule of a graph as SVG, under a title.
///
/// # Errors
/// It would have too many boxes, or edges that are too long.
pub fn schedule(
    schedule: &Schedule,
    printer: &Printer<'_>,
    title: &str,
    options: Options,
) -> Result<String, DrawError> {
    draw(schedule::picture(schedule, printer, title, options), options)
}

fn draw(mut picture: Picture, options: Options) -> Result<String, DrawError> {
    if options.fold {
        far::cut(&mut picture);
    }
    let boxes = picture.nodes.len();
    if boxes > MAX_BOXES {
        return Err(DrawError::Boxes { boxes, folded: options.fold });
    }
    svg::svg(&picture, MAX_BENDS).ok_or(DrawError::Edges { folded: options.fold })
}
