//! libFuzzer program of the target `frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::frames(input));
