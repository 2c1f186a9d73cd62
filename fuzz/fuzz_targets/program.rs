#![no_main]

use kina_ad_fuzz::{mutate::mutate, units};

const VOCABULARY: &str = include_str!("../dictionaries/program.dict");

libfuzzer_sys::fuzz_target!(|data: &[u8]| units::program::run(data));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed, VOCABULARY)
});
