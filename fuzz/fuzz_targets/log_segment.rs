//! libFuzzer program of the target `log_segment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::log_segment(input));
