//! libFuzzer program of the target `pass_plan`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::pass_plan(input));
