//! What Linux says about the memory of this process.

/// A line of /proc/self/status, in bytes: `VmHWM:` for the most memory this process has had resident.
pub fn status(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}
