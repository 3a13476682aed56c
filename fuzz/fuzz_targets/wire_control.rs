//! libFuzzer program of the target `wire_control`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::wire_control(input));
