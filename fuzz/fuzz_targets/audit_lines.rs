//! libFuzzer program of the target `audit_lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::audit_lines(input));
