//! What the fuzz targets share. `units` is also compiled into the integration tests of the crate, which run the seeds.

pub mod mutate;
pub mod units;
