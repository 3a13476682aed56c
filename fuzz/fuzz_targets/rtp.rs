//! libFuzzer program of the target `rtp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::rtp(input));
