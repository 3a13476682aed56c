//! libFuzzer program of the target `filter`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::filter(input));
