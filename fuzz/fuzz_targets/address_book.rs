//! libFuzzer program of the target `address_book`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::address_book(input));
