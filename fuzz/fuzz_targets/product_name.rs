//! libFuzzer program of the target `product_name`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::product_name(input));
