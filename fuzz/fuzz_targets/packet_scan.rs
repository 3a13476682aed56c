//! libFuzzer program of the target `packet_scan`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::packet_scan(input));
