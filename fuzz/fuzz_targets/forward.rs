//! libFuzzer program of the target `forward`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::forward(input));
