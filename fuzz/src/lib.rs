//! What the fuzz targets share. `units` is also compiled into the integration tests of the crate, which run the seeds.

use std::ffi::{c_char, c_int};

/// Generated programs and what is asked of them: the differential tests, here with the fuzzer in place of proptest.
#[allow(dead_code, unused_imports, reason = "the tests among them are not part of this build")]
#[path = "../../tests/it/differential/mod.rs"]
pub mod differential;
pub mod mutate;
pub mod units;

unsafe extern "C" {
    fn LLVMFuzzerRunDriver(
        argc: *mut c_int,
        argv: *mut *mut *mut c_char,
        one_input: unsafe extern "C" fn(*const u8, usize) -> c_int,
    ) -> c_int;

    fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> c_int;
}

/// The same as libFuzzer's own `main`, but met by the linker before all others: MLIR has a library with a `main`, that of
/// mlir-opt, and which of two is taken depends on the order of libraries.
#[unsafe(no_mangle)]
extern "C" fn main(mut argc: c_int, mut argv: *mut *mut c_char) -> c_int {
    // SAFETY: these are the arguments of the process; the targets define `LLVMFuzzerTestOneInput` by libfuzzer-sys.
    unsafe { LLVMFuzzerRunDriver(&raw mut argc, &raw mut argv, LLVMFuzzerTestOneInput) }
}
