//! libFuzzer program of the target `bit_stream`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::bit_stream(input));
