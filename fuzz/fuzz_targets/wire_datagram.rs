//! libFuzzer program of the target `wire_datagram`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::wire_datagram(input));
