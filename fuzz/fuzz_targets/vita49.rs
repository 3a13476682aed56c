//! libFuzzer program of the target `vita49`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::vita49(input));
