//! libFuzzer program of the target `offload_packets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::offload_packets(input));
