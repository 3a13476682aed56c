//! libFuzzer program of the target `tls_frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::tls_frames(input));
