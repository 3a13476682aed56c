//! libFuzzer program of the target `symbols`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::symbols(input));
