//! libFuzzer program of the target `repair_symbols`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::repair_symbols(input));
