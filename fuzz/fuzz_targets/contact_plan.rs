//! libFuzzer program of the target `contact_plan`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::contact_plan(input));
