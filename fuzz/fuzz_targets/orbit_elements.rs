//! libFuzzer program of the target `orbit_elements`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::orbit_elements(input));
