//! libFuzzer program of the target `bag_manifests`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::bag_manifests(input));
