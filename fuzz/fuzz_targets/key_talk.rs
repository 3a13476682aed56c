//! libFuzzer program of the target `key_talk`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::key_talk(input));
