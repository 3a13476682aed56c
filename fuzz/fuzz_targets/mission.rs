//! libFuzzer program of the target `mission`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::mission(input));
