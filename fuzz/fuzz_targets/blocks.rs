//! libFuzzer program of the target `blocks`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::blocks(input));
