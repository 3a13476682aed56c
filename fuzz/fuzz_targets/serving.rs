//! libFuzzer program of the target `serving`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::serving(input));
