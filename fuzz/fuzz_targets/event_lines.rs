//! libFuzzer program of the target `event_lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::event_lines(input));
