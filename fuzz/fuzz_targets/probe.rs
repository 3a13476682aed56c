//! libFuzzer program of the target `probe`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::probe(input));
