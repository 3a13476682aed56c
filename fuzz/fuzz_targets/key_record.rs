//! libFuzzer program of the target `key_record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::key_record(input));
