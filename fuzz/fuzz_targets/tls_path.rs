//! libFuzzer program of the target `tls_path`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::tls_path(input));
