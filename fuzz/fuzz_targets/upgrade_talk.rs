//! libFuzzer program of the target `upgrade_talk`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::upgrade_talk(input));
