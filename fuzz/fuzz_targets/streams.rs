//! libFuzzer program of the target `streams`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::streams(input));
