//! libFuzzer program of the target `web_access`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::web_access(input));
