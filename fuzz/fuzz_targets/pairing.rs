//! libFuzzer program of the target `pairing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::pairing(input));
