//! libFuzzer program of the target `frame_stream`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::frame_stream(input));
