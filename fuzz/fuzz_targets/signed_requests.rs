//! libFuzzer program of the target `signed_requests`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::signed_requests(input));
