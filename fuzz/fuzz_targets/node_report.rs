//! libFuzzer program of the target `node_report`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::node_report(input));
