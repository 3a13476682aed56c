//! libFuzzer program of the target `packed_records`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::packed_records(input));
