//! libFuzzer program of the target `history_files`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::history_files(input));
