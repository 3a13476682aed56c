//! libFuzzer program of the target `record_check`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::record_check(input));
