//! Threads that share one piece of work, through the OpenMP runtime.
//!
//! Code that is called from OpenMP programs, or that calls BLAS libraries built on it, should not bring a second set of
//! threads: the runtime keeps one, and its variables (`OMP_PROC_BIND`, `KMP_BLOCKTIME`, ..) hold here too.

use std::ffi::{c_int, c_uint, c_void};
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

unsafe extern "C" {
    /// What `#pragma omp parallel num_threads(threads)` compiles to: calls `work(data)` on every thread of a team that the
    /// calling thread belongs to, and returns when all of them have. A part of the interface of LLVM's and GNU's
    /// runtimes.
    fn GOMP_parallel(work: extern "C" fn(*mut c_void), data: *mut c_void, threads: c_uint, flags: c_uint);
    /// OpenMP's own question: how many threads the next team has, unless it is told.
    fn omp_get_max_threads() -> c_int;
}

/// How many threads share work unless a caller says otherwise.
///
/// The runtime is asked, not the operating system: it knows `OMP_NUM_THREADS`, and once it has bound the calling thread to one
/// processor, the system would say 1.
pub(super) fn default_threads() -> NonZero<usize> {
    // SAFETY: it takes nothing and only reads a setting of the calling thread.
    let threads = unsafe { omp_get_max_threads() };
    usize::try_from(threads).ok().and_then(NonZero::new).unwrap_or(NonZero::<usize>::MIN)
}

/// Pieces of work for each thread, at most: a thread that is kept waiting by others is not waited for, and threads that work
/// near each other share what the memory system fetches ahead.
const PIECES: u64 = 64;

/// One call of [`share`].
struct Job<'w> {
    work: &'w (dyn Fn(usize, u64, u64) + Sync),
    rows: u64,
    pieces: u64,
    next: AtomicU64,
    /// How many threads have come; each takes the next number.
    members: AtomicUsize,
    threads: usize,
}

/// Calls `work(member, begin, end)` for ranges that together are `0..rows`, on up to `threads` threads; ranges have about `grain` rows
/// at least. Members are numbers below `threads`, and no two threads of the call have the same one. `work` must not
/// panic: it is called from C.
pub(super) fn share(threads: NonZero<usize>, rows: u64, grain: u64, work: &(dyn Fn(usize, u64, u64) + Sync)) {
    let team = threads.get().min(usize::try_from(rows).unwrap_or(usize::MAX)).min(c_uint::MAX as usize);
    if team < 2 {
        work(0, 0, rows);
        return;
    }
    let pieces = rows.min((rows / grain.max(1)).max(team as u64)).min((team as u64).saturating_mul(PIECES));
    let job = Job { work, rows, pieces, next: AtomicU64::new(0), members: AtomicUsize::new(0), threads: team };
    let data = (&raw const job).cast_mut().cast();
    // SAFETY: `member` gets the address of `job`, which lives until the call returns, that is until every thread has
    // returned from it. The threads only share it, and all that it holds may be shared.
    unsafe { GOMP_parallel(member, data, team as c_uint, 0) };
}

/// What each thread of a team runs.
extern "C" fn member(data: *mut c_void) {
    // SAFETY: `share` passes the address of its job, which outlives this call and is only ever shared.
    let job = unsafe { &*data.cast::<Job<'_>>() };
    let member = job.members.fetch_add(1, Ordering::Relaxed);
    // The runtime starts no more threads than it is asked for; were it otherwise, they would have nothing to do.
    if member >= job.threads {
        return;
    }
    loop {
        let piece = job.next.fetch_add(1, Ordering::Relaxed);
        if piece >= job.pieces {
            break;
        }
        let bound = |p: u64| (u128::from(job.rows) * u128::from(p) / u128::from(job.pieces)) as u64;
        (job.work)(member, bound(piece), bound(piece + 1));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::share;

    #[test]
    fn ranges_cover_the_rows_once_and_members_have_numbers_of_their_own() {
        for threads in [1, 2, 3, 8] {
            for rows in [0, 1, 2, 7, 100, 1000] {
                let seen = Mutex::new(Vec::new());
                let work = |member: usize, begin: u64, end: u64| {
                    assert!(member < threads);
                    if let Ok(mut seen) = seen.lock() {
                        seen.extend(begin..end);
                    }
                };
                share(threads.try_into().unwrap(), rows, 3, &work);
                let mut seen = seen.into_inner().unwrap();
                seen.sort_unstable();
                assert_eq!(seen, (0..rows).collect::<Vec<_>>(), "{threads} threads, {rows} rows");
            }
        }
    }

    #[test]
    fn several_threads_may_share_work_at_once() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let sum = std::sync::atomic::AtomicU64::new(0);
                    let add = |_: usize, begin, end| {
                        sum.fetch_add((begin..end).sum::<u64>(), std::sync::atomic::Ordering::Relaxed);
                    };
                    share(3.try_into().unwrap(), 1000, 1, &add);
                    assert_eq!(sum.into_inner(), 499_500);
                });
            }
        });
    }
}
