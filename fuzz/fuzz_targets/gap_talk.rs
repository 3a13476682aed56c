//! libFuzzer program of the target `gap_talk`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::gap_talk(input));
