//! `kina-ad explore`: a tour through a saturation, application by application.
//!
//! [`Tour`] has the state and does the [`Command`]s, whose names, keys and help stand in one [table](command::TABLE); no terminal has
//! a part in it. What a view shows is a [`Page`] of lines. [`screen`] draws it, [`terminal`] reads keys, [`script`] runs commands from a
//! text. E-graphs of earlier moments and what is extracted from them are made on request ([`state`]): on a terminal by another
//! thread, so that keys never wait for them.

mod change;
pub mod command;
mod error;
mod linalg;
mod list;
mod model;
mod moves;
mod needs;
pub mod page;
pub mod screen;
pub mod script;
pub mod state;
pub mod terminal;
mod views;

pub use command::Command;
pub use error::TourError;
pub use list::Row;
pub use model::{About, Missing, Reply, Tour, View};
pub use page::Page;
