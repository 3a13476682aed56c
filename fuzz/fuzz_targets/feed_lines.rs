//! libFuzzer program of the target `feed_lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::feed_lines(input));
