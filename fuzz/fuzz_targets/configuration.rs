//! libFuzzer program of the target `configuration`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::configuration(input));
