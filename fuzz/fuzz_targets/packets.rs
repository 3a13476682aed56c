//! libFuzzer program of the target `packets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::packets(input));
