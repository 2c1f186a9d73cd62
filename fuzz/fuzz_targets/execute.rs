#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kina_ad_fuzz::units::execute::run(data));
