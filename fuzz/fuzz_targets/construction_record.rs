//! libFuzzer program of the target `construction_record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::construction_record(input));
