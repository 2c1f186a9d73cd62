//! The fixed target description (DESIGN §7): what schedules and costs assume of a processor. Nothing is probed, so that the
//! same program gives the same code on every machine.

/// Bytes of a core's second-level cache: rows up to it stay in the cache while a group goes through them several times.
pub const ROW_BYTES: u64 = 1 << 20;
