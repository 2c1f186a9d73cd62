//! Memory for elements, which is asked for and may be refused.
//!
//! Shapes come from programs, rules and files, and a legal shape may be larger than any machine. What holds as many
//! elements as a shape says is therefore made here, or in [`Tensor`](crate::exec::Tensor), and never by `vec!` or `collect`,
//! which end the process when the allocator refuses.

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// Memory does not suffice for an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not enough memory for an array of {bytes} bytes")]
pub struct OutOfMemory {
    pub bytes: u64,
}

/// Requests of fewer bytes are the allocator's affair alone.
const LARGE: u64 = 1 << 26;

/// Compares a request with what the machine has left. An allocator cannot be relied on to refuse: a system that
/// overcommits grants more than there is, and ends the process when it is used.
///
/// # Errors
/// [`OutOfMemory`] if `bytes` is more than what is left. Where the system does not say, nothing is refused.
pub fn check(bytes: u64) -> Result<(), OutOfMemory> {
    if bytes < LARGE || left().is_none_or(|left| bytes <= left) { Ok(()) } else { Err(OutOfMemory { bytes }) }
}

/// Bytes that this process can still come to use, of the machine's and within the limits of its container.
fn left() -> Option<u64> {
    let system = System::new_with_specifics(RefreshKind::nothing().with_memory(MemoryRefreshKind::everything()));
    if system.total_memory() == 0 {
        return None;
    }
    let machine = system.available_memory().saturating_add(system.free_swap());
    let container = system
        .cgroup_limits()
        .map(|limits| limits.total_memory.saturating_sub(limits.rss).saturating_add(limits.free_swap));
    Some(container.map_or(machine, |container| container.min(machine)))
}

/// An empty vector with room for `count` elements.
///
/// # Errors
/// [`OutOfMemory`]
pub fn reserve<T>(count: u64) -> Result<Vec<T>, OutOfMemory> {
    let refused = OutOfMemory { bytes: count.saturating_mul(size_of::<T>() as u64) };
    check(refused.bytes)?;
    let mut room = Vec::new();
    room.try_reserve_exact(usize::try_from(count).map_err(|_| refused)?).map_err(|_| refused)?;
    Ok(room)
}

/// `count` times `value`.
///
/// # Errors
/// [`OutOfMemory`]
pub fn filled<T: Copy>(count: u64, value: T) -> Result<Vec<T>, OutOfMemory> {
    let mut elements = reserve(count)?;
    elements.resize(count as usize, value); // fits: it was reserved
    Ok(elements)
}

/// The elements of an iterator that yields `count` of them.
///
/// # Errors
/// [`OutOfMemory`]
pub fn collect<T>(count: u64, elements: impl Iterator<Item = T>) -> Result<Vec<T>, OutOfMemory> {
    let mut collected = reserve(count)?;
    collected.extend(elements);
    Ok(collected)
}

/// The elements of a slice, each converted.
///
/// # Errors
/// [`OutOfMemory`]
pub fn map<T, U>(elements: &[T], convert: impl Fn(&T) -> U) -> Result<Vec<U>, OutOfMemory> {
    collect(elements.len() as u64, elements.iter().map(convert))
}

/// A copy of a slice.
///
/// # Errors
/// [`OutOfMemory`]
pub fn copy<T: Copy>(elements: &[T]) -> Result<Vec<T>, OutOfMemory> {
    map(elements, |element| *element)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_hold_what_they_are_asked_for() {
        assert_eq!(filled(3, 1.5).unwrap(), [1.5; 3]);
        assert_eq!(collect(2, [4, 5].into_iter()).unwrap(), [4, 5]);
        assert_eq!(map(&[1_i32, 2], |x| f64::from(*x)).unwrap(), [1.0, 2.0]);
        assert_eq!(copy(&[true, false]).unwrap(), [true, false]);
        assert!(filled(0, 0_u8).unwrap().is_empty());
    }

    #[test]
    fn what_no_machine_has_is_refused_before_it_is_used() {
        // A tera-element array: systems that overcommit would grant it.
        for count in [1 << 46, 1 << 60, u64::MAX] {
            let bytes = count.saturating_mul(8);
            assert_eq!(filled(count, 0_f64), Err(OutOfMemory { bytes }));
        }
        assert!(check(LARGE - 1).is_ok());
        assert_eq!(check(u64::MAX), Err(OutOfMemory { bytes: u64::MAX }));
    }
}
