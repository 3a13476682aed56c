//! libFuzzer program of the target `delivery_notice`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::delivery_notice(input));
