//! libFuzzer program of the target `channels`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::channels(input));
