//! libFuzzer program of the target `one_way`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::one_way(input));
